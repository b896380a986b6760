"""Threads for short work, and memory in which threads do not share cache lines."""

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

PAIR = 128  # bytes of two cache lines


def usable_cores() -> int:
    """The number of cores that this process may use, within a container or taskset if the system tells."""
    affinity = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if affinity is None else len(affinity(0))


def rows_on_own_lines(arrays: Iterable[NDArray[Any]], count: int) -> list[NDArray[Any]]:
    """Copies of arrays in one block of memory, whose rows share no cache line with each other or anything else.

    Each array has `count` rows, or one that is repeated; rows are contiguous. The rows i of all arrays are adjacent. A row of a
    result is contiguous; the result itself is not.

    Two threads that write to one cache line slow each other down (false sharing): four short chains ran at two thirds of their
    speed. Lines are fetched in pairs, so rows are aligned to pairs.
    """
    given = list(arrays)
    ends = list(itertools.accumulate(-(-(a.nbytes // len(a)) // PAIR) * PAIR for a in given))
    stride = ends[-1] if ends else 0
    memory, begin = _aligned_bytes(count * stride)
    own: list[NDArray[Any]] = []
    for array, first in zip(given, [0, *ends], strict=False):
        shape, strides = (count, *array.shape[1:]), (stride, *array.strides[1:])
        own.append(np.ndarray(shape, array.dtype, memory, begin + first, strides))
        own[-1][...] = array
    return own


def zeros_on_lines(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Zeros aligned to cache lines: a vector that crosses a line takes two loads."""
    memory, begin = _aligned_bytes(math.prod(shape) * np.dtype(dtype).itemsize)
    memory[...] = 0
    return np.ndarray(shape, dtype, memory, begin)


def _aligned_bytes(size: int) -> tuple[NDArray[np.uint8], int]:
    """At least `size` bytes, and the offset of the first pair of lines in them."""
    memory = np.empty(size + PAIR, np.uint8)
    return memory, -memory.__array_interface__["data"][0] % PAIR


class _Helpers:
    """The helper threads of this process, which end with it: starting a thread takes as long as 30,000 updates."""

    pool: ThreadPoolExecutor | None = None
    size = 0
    guard = threading.Lock()

    @classmethod
    def at_least(cls, count: int) -> ThreadPoolExecutor:
        with cls.guard:
            if cls.pool is None or cls.size < count:
                # A pool that is too small ends when the last of its callers does.
                cls.pool, cls.size = ThreadPoolExecutor(count, thread_name_prefix="sgmcmc"), count
            return cls.pool

    @classmethod
    def forget(cls) -> None:
        cls.pool, cls.size, cls.guard = None, 0, threading.Lock()


_idle: dict[int, list[ThreadPoolExecutor]] = {}  # idle pools, by number of threads


@contextlib.contextmanager
def borrowed_pool(threads: int) -> Iterator[ThreadPoolExecutor]:
    """A pool for the duration of this block; its threads may have been started before.

    Starting a few threads takes as long as a thousand steps of a small model. The pool of a block that raised is not used
    again: something may still be running in it.
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


def share(work: Callable[[int, int], None], count: int, threads: int) -> None:
    """work(low, high) for ranges that cover 0 … count − 1, one range per thread; the caller runs the first.

    `work` should release the GIL. Nothing is still running when this returns or raises, Ctrl-C included.
    """
    ranges = max(1, min(threads, count))
    bounds = [i * count // ranges for i in range(ranges + 1)]
    if ranges == 1:
        work(0, count)
        return
    pool = _Helpers.at_least(ranges - 1)
    futures = [pool.submit(work, bounds[i], bounds[i + 1]) for i in range(1, ranges)]
    try:
        work(0, bounds[1])
    finally:
        wait(futures)
    for future in futures:
        future.result()


@contextlib.contextmanager
def undisturbed() -> Iterator[list[Any]]:
    """Delay Ctrl-C until the end of this block, for short work. The list is empty until it is pressed."""
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
