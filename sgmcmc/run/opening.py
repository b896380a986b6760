"""The opening of a run: its first moment, in which the calling thread works too.

Waking a thread takes 0.05 ms, and being woken by it as long; 5000 steps of a small model take 1 ms. Chunks are short here, and
tasks take turns: if another process holds up a thread, the others take more turns.
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
    """Work in chunks: `chunk` does one and returns its steps, `steps_left` tells whether there is more."""

    @property
    def steps_left(self) -> int: ...

    def chunk(self) -> int: ...


def open_run(tasks: Sequence[Opener], threads: int, end: float) -> list[int]:
    """Chunks of all tasks in turn until `end`, on `threads` threads, this one included. Returns the steps of each task.

    Ctrl-C waits for the running chunks, as it must not come between a kernel and the update of its chain. A task that has not
    begun still runs its first chunk, so that all chains have draws.
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
        if pressed:  # also if the time was up before some had their turn
            for i, task in enumerate(tasks):
                steps[i] += task.chunk() if steps[i] == 0 and task.steps_left > 0 else 0
    return steps


def _together(work: Callable[[], None], threads: int) -> None:
    """`work` on `threads` threads at once; nothing is still running when this returns or raises."""
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
