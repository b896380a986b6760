"""Throughput on a GPU beside the CPU: chains, a thread each, and updates of long vectors of one's own gradient.

    python benchmarks/gpu.py --csv gpu.csv --markdown gpu.md
    NUMBA_ENABLE_CUDASIM=1 python benchmarks/gpu.py --simulator      # only shows that the script is in order

Every number is the best of a few runs after one that is not counted, which compiles; the device has come to rest when the
clock is stopped. Times of chains include bringing draws and states home. It has not yet been run on a GPU.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import sgmcmc as sg
from sgmcmc.gpu.availability import READY, SIMULATOR, find_state


class Sizes(NamedTuple):
    """What is measured."""

    chains: tuple[int, ...]
    dims: tuple[int, ...]
    chain_steps: int
    updates: int
    repeats: int
    cpu_up_to: tuple[int, int]  # chains and coordinates: beyond them the CPU's throughput is what it was


FULL = Sizes((100, 1000, 10_000, 100_000), (100_000, 1_000_000, 10_000_000), 1000, 50, 5, (1000, 1_000_000))
TINY = Sizes((2, 3), (8, 13), 2, 2, 1, (2, 8))


class Row(NamedTuple):
    """One measurement; the rate is chain-steps or coordinate-steps per second."""

    what: str
    size: int
    precision: str
    device: str
    seconds: float
    rate: float


class Borrowed:
    """Host memory that says it is a device's: what the simulator takes for an array of another library."""

    def __init__(self, array: Any) -> None:
        self.array = array
        data = (array.ctypes.data, False)
        self.__cuda_array_interface__ = {"shape": array.shape, "typestr": array.dtype.str, "data": data, "version": 3}


def best_of(repeats: int, run: Callable[[], Any]) -> float:
    """Seconds of the fastest of `repeats` runs, after one to warm up."""
    run()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def chain_rows(sizes: Sizes) -> Iterator[Row]:
    """Logistic regression, 25 coordinates, 16 rows of 1000 per step."""
    rng = np.random.default_rng(0)
    model = sg.models.LogisticRegression(rng.normal(size=(1000, 25)), (rng.random(1000) < 0.5).astype(float))
    common = {"draws": 1, "warmup": sizes.chain_steps - 1, "batch_size": 16, "seed": 1, "progress": False}
    for chains in sizes.chains:
        for kind in (np.float64, np.float32):
            for device in ("cpu", "cuda") if chains <= sizes.cpu_up_to[0] else ("cuda",):
                options = common | {"chains": chains, "dtype": kind, "device": device}
                seconds = best_of(sizes.repeats, lambda o=options: sg.sample(model, sg.SGNHT(1e-3), **o))
                rate = chains * sizes.chain_steps / seconds
                yield Row("chains", chains, np.dtype(kind).name, device, seconds, rate)


def update_rows(sizes: Sizes, simulated: bool) -> Iterator[Row]:
    """`sampler.step` in place with a gradient that is there already, with running moments and without."""
    from numba import cuda

    stream = cuda.stream()

    def on_device(array: Any) -> Any:
        return Borrowed(array) if simulated else cuda.to_device(array, stream=stream)

    for dim in sizes.dims:
        for kind in (np.float64, np.float32):
            for device in ("cpu", "cuda") if dim <= sizes.cpu_up_to[1] else ("cuda",):
                gradient = (np.asarray if device == "cpu" else on_device)(np.zeros(dim, kind))
                for moments in (None, sg.Moments()):
                    what = "updates" if moments is None else "updates with moments"
                    run = walker(gradient, sizes.updates, moments, cuda.synchronize)
                    seconds = best_of(sizes.repeats, run)
                    yield Row(what, dim, np.dtype(kind).name, device, seconds, dim * sizes.updates / seconds)


def walker(gradient: Any, steps: int, moments: sg.Moments | None, rest: Callable[[], None]) -> Callable[[], None]:
    """A loop of steps that ends when the device has come to rest."""
    sampler = sg.SGNHT(1e-3)
    start = sampler.init(gradient, seed=1)

    def run() -> None:
        state = start
        for _ in range(steps):
            state = sampler.step(state, gradient, inplace=True, moments=moments)
        if hasattr(gradient, "__cuda_array_interface__"):
            rest()

    return run


def as_markdown(rows: list[Row]) -> str:
    lines = ["| what | size | precision | device | seconds | steps per second |", "|---|---:|---|---|---:|---:|"]
    lines += [f"| {r.what} | {r.size} | {r.precision} | {r.device} | {r.seconds:.3g} | {r.rate:.3g} |" for r in rows]
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description="Throughput on a GPU beside the CPU.")
    options.add_argument("--csv", type=Path)
    options.add_argument("--markdown", type=Path)
    options.add_argument(
        "--simulator", action="store_true", help="tiny sizes in Numba's simulator; the numbers mean nothing"
    )
    given = options.parse_args()
    found = find_state()
    if found.state != (SIMULATOR if given.simulator else READY):
        remedy = "set NUMBA_ENABLE_CUDASIM=1 for --simulator" if given.simulator else "there is nothing to measure"
        raise SystemExit(f"no usable GPU: {found}; {remedy}")
    sizes = TINY if given.simulator else FULL
    rows = []
    for source in (chain_rows(sizes), update_rows(sizes, given.simulator)):
        for row in source:
            rows.append(row)
            print(*row, sep="\t", file=sys.stderr, flush=True)
    text = f"{found}, Python {sys.version.split()[0]}, sgmcmc {sg.__version__}\n\n{as_markdown(rows)}"
    print(text)
    if given.markdown is not None:
        given.markdown.write_text(text + "\n")
    if given.csv is not None:
        with given.csv.open("w", newline="") as file:
            csv.writer(file).writerows([Row._fields, *rows])


if __name__ == "__main__":
    main()
