"""Threads at work are on cores of their own; memory for draws comes in large pages."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sgmcmc import threads
from sgmcmc.runs import pages

two_cores = pytest.mark.skipif(
    threads._Cores.number() < 0 or threads.usable_cores() < 2, reason="there are not two cores to choose from"
)


def cores_of_two_threads(place):
    """Where two threads are that were on the same core when they entered `place()`, and what they may use after it."""
    allowed = os.sched_getaffinity(0)
    one, meet = min(allowed), threading.Barrier(2)

    def work():
        os.sched_setaffinity(0, {one})
        os.sched_setaffinity(0, allowed)
        meet.wait()
        with place():
            core = threads._Cores.number()
            meet.wait()
        return core, os.sched_getaffinity(0) == allowed

    with ThreadPoolExecutor(2) as pool:
        found = [future.result() for future in [pool.submit(work) for _ in range(2)]]
    return {core for core, _ in found}, all(free for _, free in found)


class Anywhere:
    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


@two_cores
def test_threads_at_work_are_on_different_cores_and_stay_free():
    for _ in range(20):
        cores, free = cores_of_two_threads(threads.on_own_core)
        assert len(cores) == 2
        assert free
    assert threads._Cores.taken == {}


@two_cores
def test_without_it_they_stay_where_they_were_woken():
    """The control: among 20 pairs, one at least."""
    assert min(len(cores_of_two_threads(Anywhere)[0]) for _ in range(20)) == 1


def test_a_thread_that_is_on_its_own_core_already_enters_for_nothing():
    with threads.on_own_core():
        before = dict(threads._Cores.taken)
        with threads.on_own_core():
            assert threads._Cores.taken == before
        assert threads._Cores.taken == before
    assert threads._Cores.taken == {}
    with pytest.raises(KeyError), threads.on_own_core():
        raise KeyError
    assert threads._Cores.taken == {}


@two_cores
def test_one_core_that_is_left_to_us_is_shared():
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert cores_of_two_threads(threads.on_own_core) == ({min(allowed)}, True)
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.parametrize("shape", [(4, 5000, 25), (1, 0, 3), (2, 10, 2), (3, 7, 1_000_000), (8, 524288, 1)])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_memory_has_its_shape_and_can_be_written_to(shape, kind):
    array = pages.empty(shape, kind)
    assert array.shape == shape
    assert array.dtype == kind
    assert array.flags.c_contiguous
    assert array.flags.aligned
    array[...] = 3.0
    assert (array == 3.0).all()


@pytest.mark.skipif(not hasattr(pages.mmap, "MADV_HUGEPAGE"), reason="this system has no large pages")
def test_large_pages_are_asked_for_where_they_are_filled(monkeypatch):
    asked = []
    monkeypatch.setattr(pages.np, "empty", lambda *a: asked.append(a) or np.zeros(*a))
    for size, plain in ((1_000_000, True), (2_000_000, False), (2_100_000, True), (40_000_000, True)):
        asked.clear()
        array = pages.empty((size,), np.uint8)
        assert (len(asked) == 1) == plain
        assert plain or array.__array_interface__["data"][0] % pages.LARGE == 0


def test_a_system_that_refuses_gives_ordinary_memory(monkeypatch):
    def refuse(*_, **__):
        raise OSError("no")

    monkeypatch.setattr(pages.mmap, "mmap", refuse)
    assert pages.empty((2_000_000,), np.uint8).shape == (2_000_000,)
