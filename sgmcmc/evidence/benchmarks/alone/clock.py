"""The clock: several runs of the same thing, in turn with those of other processes, and what else the machine was doing."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = [
    "GO",
    "READY",
    "TURNS",
    "Watch",
    "forget_peak",
    "peak_megabytes",
    "resident_megabytes",
    "stay_on",
    "timed",
]

TURNS = "SGMCMC_BENCH_TURNS"  # in the environment of a process that takes turns: it says READY, and runs when it is told to GO
READY, GO = "sgmcmc bench: ready", "go"
WARM = 0.2  # seconds


class Watch:
    """The share of the machine that other processes used while it was on, ``with watch:``; NaN where the system does not tell."""

    def __init__(self) -> None:
        self.wall = self.other = 0.0

    def __enter__(self) -> None:
        self._begin, self._busy = time.perf_counter(), _busy()

    def __exit__(self, *_: object) -> None:
        (all_0, own_0), (all_1, own_1) = self._busy, _busy()
        self.wall += time.perf_counter() - self._begin
        self.other += (all_1 - all_0) - (own_1 - own_0)

    def others(self) -> float:
        return max(0.0, self.other) / (max(self.wall, 1e-9) * (os.cpu_count() or 1))


def _busy() -> tuple[float, float]:
    """Seconds of processor time: of everybody, and of this process with its children."""
    own = sum(os.times()[:4])  # user and system, of this process and of its children that have ended
    try:
        fields = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return float("nan"), own
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / os.sysconf("SC_CLK_TCK"), own


def timed(
    run: Callable[[Any], Any],
    inputs: Iterable[Any],
    budget: float,
    least: int = 5,
    keeps_time: bool = False,
    warm_up: bool = True,
) -> tuple[dict[str, Any], list[Any]]:
    """Run once per input, each timed; stop after `budget` seconds of running, but not before `least` runs.

    Returns {"seconds", "others"} and what the runs returned: their own seconds, if `run` keeps its time itself. Where
    contestants take turns, runs shorter than `WARM` are repeated for so long before one of them is timed: data left the caches
    and threads went to sleep while the others had their turns, and four chains on two cores took twice their time at first.
    They are repeated with the same input, so a chain that goes on from run to run needs a stream of its own.
    """
    watch = Watch()
    seconds: list[float] = []
    outputs: list[Any] = []
    for value in inputs:
        if not _is_my_turn():
            break
        with watch:
            ready = time.perf_counter() + (WARM if warm_up and TURNS in os.environ else 0.0)
            while time.perf_counter() < ready and (not seconds or seconds[-1] < WARM):
                run(value)
            begin = time.perf_counter()
            outputs.append(run(value))
            seconds.append(outputs[-1] if keeps_time else time.perf_counter() - begin)
        if len(seconds) >= least and watch.wall > budget:
            break
    return {"seconds": seconds, "others": watch.others()}, outputs


def _is_my_turn() -> bool:
    """Wait for the word that it is the turn of this process; at once where there are no turns. False: there are no more."""
    if TURNS not in os.environ:
        return True
    print(READY, flush=True)
    return sys.stdin.readline().strip() == GO


def peak_megabytes() -> float:
    """The largest resident memory of this process so far, or since `forget_peak`."""
    return _status("VmHWM") or _largest_so_far()


def _largest_so_far() -> float:
    try:
        import resource  # Windows does not have it
    except ImportError:
        return float("nan")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def resident_megabytes() -> float:
    """What is resident now; the peak where the system does not tell."""
    return _status("VmRSS") or peak_megabytes()


def forget_peak() -> None:
    """Begin anew with the peak, where the system allows it: compiling may have taken more than the run that follows."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _status(name: str) -> float:
    """A line of Linux's /proc/self/status in MiB, 0 elsewhere."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 2**10 for line in lines if line.startswith(f"{name}:")), 0.0)


def stay_on(threads: int | None) -> None:
    """Keep this process on so many cores, where the system allows it; libraries that count cores follow."""
    if threads is None:
        return
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = str(threads)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:threads]))
