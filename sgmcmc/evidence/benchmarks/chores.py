"""This package without chains: the fused update, the normals, and the memory bandwidth that bounds both."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np

import sgmcmc as sg
from sgmcmc.evidence.benchmarks.alone.checking import normals_check, variance_check
from sgmcmc.evidence.benchmarks.alone.clock import timed
from sgmcmc.evidence.benchmarks.alone.problems import UPDATE
from sgmcmc.evidence.benchmarks.fill import fill
from sgmcmc.evidence.benchmarks.ours import sampler_for
from sgmcmc.rng import stream
from sgmcmc.threads import usable_cores

__all__ = ["many_normals", "normals", "triad", "update"]

Config = dict[str, Any]
BLOCK = 512  # normals at a time: they stay in the first cache, as in the update


def update(config: Config, folder: Path) -> dict[str, Any]:
    """`Sampler.step` in place. Only the step is timed; the gradient, a copy of θ, is made in between."""
    sampler = sampler_for(config["method"], UPDATE.h, UPDATE.friction)
    rng = np.random.default_rng(0)
    state = sampler.init(rng.standard_normal(config["dim"], dtype=np.float32), seed=1)
    # ξ starts in its law, too: from a constant it takes θ several units of time to come back to its own
    state.xi[:] = UPDATE.friction + rng.standard_normal(state.xi.size, dtype=np.float32)
    gradient = np.empty_like(state.theta)

    def steps(count: int) -> float:
        nonlocal state
        seconds = 0.0
        for _ in range(count):
            np.copyto(gradient, state.theta)
            begin = time.perf_counter()
            state = sampler.step(state, gradient, inplace=True)
            seconds += time.perf_counter() - begin
        return seconds

    first = steps(1)
    given = [config["steps"]] * config["runs"]
    record, _ = timed(steps, given, config["budget"], keeps_time=True)
    check, work = variance_check(theta=state.theta), config["steps"] * config["dim"]
    return record | {"version": sg.__version__, "first": first, "work": work, "check": check}


def normals(config: Config, folder: Path) -> dict[str, Any]:
    """One thread; an array of `count`, filled `blocks` times."""
    out, own = np.empty((1, config["count"]), config["dtype"]), stream(1, 0)
    begin = time.perf_counter()
    fill(out, own, 0, 1)
    first = time.perf_counter() - begin
    blocks = config["blocks"]
    record, _ = timed(lambda i: fill(out, own, 1 + i * blocks, blocks), range(config["runs"]), config["budget"])
    work = config["count"] * blocks
    return record | {"version": sg.__version__, "first": first, "work": work, "check": normals_check(out)}


def many_normals(config: Config, folder: Path) -> dict[str, Any]:
    """On all cores, in blocks that are never written to memory: the time that noise takes of an update."""
    threads = usable_cores()
    rooms = [np.empty((1, BLOCK), np.float32) for _ in range(threads)]
    times = config["count"] // BLOCK // threads
    fill(rooms[0], stream(1, 0), 0, 1)
    with ThreadPoolExecutor(threads) as pool:

        def run(number: int) -> None:
            jobs = [pool.submit(fill, room, stream(1, i), number * times, times) for i, room in enumerate(rooms)]
            for job in jobs:
                job.result()

        record, _ = timed(run, range(config["runs"]), config["budget"])
    check = normals_check(np.concatenate(rooms))
    work = times * threads * BLOCK
    return record | {"version": sg.__version__, "first": 0.0, "work": work, "check": check, "threads": threads}


def triad(config: Config, folder: Path) -> dict[str, Any]:
    """STREAM's triad a = b + s c on all cores; its bytes are three arrays, as STREAM counts them."""

    @numba.njit(parallel=True, fastmath=True)  # type: ignore[untyped-decorator]
    def run(a: Any, b: Any, c: Any, s: Any) -> None:
        for i in numba.prange(a.size):
            a[i] = b[i] + s * c[i]

    a, b, c = (
        np.zeros(config["count"], np.float32),
        np.ones(config["count"], np.float32),
        np.full(config["count"], 2, np.float32),
    )
    begin = time.perf_counter()
    run(a, b, c, np.float32(3))
    first = time.perf_counter() - begin
    record, _ = timed(lambda _: run(a, b, c, np.float32(3)), range(config["runs"]), config["budget"])
    check = {"right": bool((a == 7).all()), "text": "b + 3c = 7"}
    return record | {"version": numba.__version__, "first": first, "work": 3 * 4 * config["count"], "check": check}
