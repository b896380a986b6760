"""The opening of a run: its first milliseconds, in which the thread that asked for it takes part.

To wake a thread takes a twentieth of a millisecond, and to be woken by it another; 5000 steps of a small model take one.
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
    """Somebody who can work until a moment, and says how much was done."""

    def stretch(self, end: float) -> int: ...


def open_run(tasks: Sequence[Opener], threads: int, end: float) -> list[int]:
    """Stretches of as many tasks as can begin before `end`, on so many threads, of which this is one. Gives back their steps.

    Ctrl-C waits meanwhile: here it would come between a kernel and the notes on what the kernel did.
    """
    steps, waiting = [0] * len(tasks), deque(range(len(tasks)))

    def work() -> None:
        while time.perf_counter() < end:
            try:
                i = waiting.popleft()
            except IndexError:
                return
            steps[i] = tasks[i].stretch(end)

    with undisturbed():
        _together(work, min(threads, len(tasks)))
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
