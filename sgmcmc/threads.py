"""A thread pool for short work: numbered parts, done by the caller and a few idle threads."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["borrowed_pool", "rows_on_own_lines", "share", "undisturbed", "usable_cores", "zeros_on_lines"]

PAIR = 128  # bytes of two lines


def usable_cores() -> int:
    """How many cores this process may use: what a container or taskset leaves us, where the system can tell."""
    affinity = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if affinity is None else len(affinity(0))


def rows_on_own_lines(arrays: Iterable[NDArray[Any]], count: int) -> list[NDArray[Any]]:
    """Copies of arrays, in one piece of memory, whose rows share no line of the cache with each other or anything else.

    Each array has `count` rows, or one that is repeated; rows are contiguous. All that belongs to row i stands together. A row
    of a result is contiguous; the result itself is not.

    Two threads that write into one line take it from each other with every write, though they write to different places: four
    short chains ran at two thirds of their speed. Lines are fetched in pairs, so it is pairs that are kept apart.
    """
    given = list(arrays)
    ends = list(itertools.accumulate(-(-(a.nbytes // len(a)) // PAIR) * PAIR for a in given))
    stride = ends[-1] if ends else 0
    room, begin = _room_on_lines(count * stride)
    own: list[NDArray[Any]] = []
    for array, first in zip(given, [0, *ends], strict=False):
        shape, strides = (count, *array.shape[1:]), (stride, *array.strides[1:])
        own.append(np.ndarray(shape, array.dtype, room, begin + first, strides))
        own[-1][...] = array
    return own


def zeros_on_lines(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Zeros that begin where a line of the cache does: to load a vector that lies across two, both have to be looked at."""
    room, begin = _room_on_lines(math.prod(shape) * np.dtype(dtype).itemsize)
    room[...] = 0
    return np.ndarray(shape, dtype, room, begin)


def _room_on_lines(size: int) -> tuple[NDArray[np.uint8], int]:
    """So many bytes, and where in them the first pair of lines begins."""
    room = np.empty(size + PAIR, np.uint8)
    return room, -room.__array_interface__["data"][0] % PAIR


class _Helpers:
    """The helpers of this process, who live as long as it does: to start a thread takes as long as 30,000 updates."""

    pool: ThreadPoolExecutor | None = None
    size = 0
    guard = threading.Lock()

    @classmethod
    def at_least(cls, count: int) -> ThreadPoolExecutor:
        with cls.guard:
            if cls.pool is None or cls.size < count:
                # A pool that has become too small is left to those who still wait for it; it ends with them.
                cls.pool, cls.size = ThreadPoolExecutor(count, thread_name_prefix="sgmcmc"), count
            return cls.pool

    @classmethod
    def forget(cls) -> None:
        cls.pool, cls.size, cls.guard = None, 0, threading.Lock()


_idle: dict[int, list[ThreadPoolExecutor]] = {}  # idle pools, by number of threads


@contextlib.contextmanager
def borrowed_pool(threads: int) -> Iterator[ThreadPoolExecutor]:
    """A pool of its own for as long as this block lasts, with threads that were started before, if there are any idle.

    To start a few threads takes as long as a thousand steps of a small model. A pool of a block that raised is not used again:
    something may still be running in it.
    """
    try:
        pool = _idle.setdefault(threads, []).pop()
    except IndexError:
        pool = ThreadPoolExecutor(threads, thread_name_prefix="sgmcmc")
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    _idle.setdefault(threads, []).append(pool)


def _after_fork() -> None:
    """Threads do not survive a fork."""
    _Helpers.forget()
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def share(work: Callable[[int, int], None], parts: int, threads: int) -> None:
    """work(low, high) for stretches that make up the parts 0 … parts − 1, one stretch for each thread; the first is ours.

    `work` should let go of the GIL. Nothing is still running when this returns or raises, Ctrl-C included.
    """
    count = max(1, min(threads, parts))
    bounds = [i * parts // count for i in range(count + 1)]
    if count == 1:
        work(0, parts)
        return
    pool = _Helpers.at_least(count - 1)
    futures = [pool.submit(work, bounds[i], bounds[i + 1]) for i in range(1, count)]
    try:
        work(0, bounds[1])
    finally:
        wait(futures)
    for future in futures:
        future.result()


@contextlib.contextmanager
def undisturbed() -> Iterator[list[Any]]:
    """Ctrl-C waits until this block is done; for a moment's work. The list is empty until it is pressed."""
    pressed: list[Any] = []
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield pressed  # Python raises KeyboardInterrupt on its main thread only
        return
    signal.signal(signal.SIGINT, lambda *place: pressed.append(place))
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, handler)
        if pressed:
            handler(*pressed[0])
