"""The opening of a run: a moment in which the thread that asked for it takes part.

To wake a thread takes a twentieth of a millisecond, and to be woken by it another; 5000 steps of a small model take one. Chunks
are short here, and the tasks take turns: a thread that another process holds up leaves more of them to the others.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from typing import Protocol

from sgmcmc.threads import borrowed_pool, undisturbed

__all__ = ["Opener", "open_run"]


class Opener(Protocol):
    """What does a chunk of work, and returns how much was done, and whether there is more."""

    @property
    def steps_left(self) -> int: ...

    def chunk(self) -> int: ...


def open_run(tasks: Sequence[Opener], threads: int, end: float) -> list[int]:
    """Chunks of all tasks in turn until `end`, on so many threads, of which this is one. Gives back how many steps each took.

    Ctrl-C waits for the chunks that are running: it would come between a kernel and the notes on what the kernel did. A task
    that has not begun still has its first chunk, so that all chains have draws.
    """
    steps, waiting = [0] * len(tasks), deque(range(len(tasks)))

    with undisturbed() as pressed:

        def work() -> None:
            while time.perf_counter() < end:
                try:
                    i = waiting.popleft()
                except IndexError:
                    return
                if pressed and steps[i] > 0:
                    return
                steps[i] += tasks[i].chunk()
                if tasks[i].steps_left > 0:
                    waiting.append(i)

        _together(work, min(threads, len(tasks)))
        if (
            pressed
        ):  # also if the time was up before some had their turn, as it is where other processes hold up this one
            for i, task in enumerate(tasks):
                steps[i] += task.chunk() if steps[i] == 0 and task.steps_left > 0 else 0
    return steps


def _together(work: Callable[[], None], threads: int) -> None:
    """`work` by so many threads at once; nothing is still running when this returns or raises."""
    if threads < 2:
        work()
        return
    with borrowed_pool(threads - 1) as pool:
        futures = [pool.submit(work) for _ in range(threads - 1)]
        try:
            work()
        finally:
            wait(futures)
        for future in futures:
            future.result()
