"""A stage of the race: every arm runs for the same cost, on threads of this process or on an executor."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.checks import DivergenceError
from sgmcmc.potentials import PythonPotential
from sgmcmc.run.sample import sample
from sgmcmc.samplers import Sampler
from sgmcmc.threads import usable_cores
from sgmcmc.trace import Trace
from sgmcmc.tuning.space import Setting

__all__ = ["Arm", "Run", "run_all"]


@dataclass
class Arm:
    """A setting, its chains, and its latest score."""

    number: int
    point: NDArray[np.float64]
    setting: Setting
    sampler: Sampler
    trace: Any  # the newest draws, or where to start from
    score: float = np.inf

    @property
    def place(self) -> NDArray[np.float64]:
        """(chain, dim): the last θ of the chains."""
        theta = self.trace.final["theta"] if isinstance(self.trace, Trace) else self.trace
        return np.asarray(theta, np.float64)


@dataclass(frozen=True)
class Run:
    """One run for a worker; `options` are those of `sample`."""

    model: Any
    sampler: Sampler
    options: dict[str, Any]


def run_one(run: Run, told: Callable[[int], None] | bool = False) -> Trace | str:
    """The trace, or the reason why there is none."""
    try:
        return sample(run.model, run.sampler, threads=1, progress=told, warn=False, **run.options)
    except DivergenceError as error:
        return f"diverged in step {error.step}"
    except KeyboardInterrupt:
        return "interrupted"


def run_all(
    runs: Sequence[Run], executor: Executor | None, threads: int | None, done: Callable[[], None]
) -> tuple[list[Trace | str], bool]:
    """The results in the order of the runs, and whether Ctrl-C ended it; then those not finished are "interrupted"."""
    if executor is not None:
        return _gather([executor.submit(run_one, run) for run in runs], runs, done, lambda: None)
    python = isinstance(runs[0].model, PythonPotential)
    workers = min(len(runs), threads if threads is not None else (1 if python else usable_cores()))
    stop = threading.Event()

    def told(steps: int) -> None:
        if stop.is_set():
            raise KeyboardInterrupt

    with ThreadPoolExecutor(workers) as pool:
        return _gather([pool.submit(run_one, run, told) for run in runs], runs, done, stop.set)


def _gather(
    futures: list[Future[Trace | str]], runs: Sequence[Run], done: Callable[[], None], stop: Callable[[], None]
) -> tuple[list[Trace | str], bool]:
    interrupted = False
    try:
        pending = set(futures)
        while pending:
            ready, pending = wait(pending, 0.2, FIRST_COMPLETED)  # wakes up now and then, so that Ctrl-C is handled
            for _ in ready:
                done()
    except KeyboardInterrupt:
        interrupted = True
        stop()
        wait([f for f in futures if not f.cancel()], 30.0)
    return [_result(f, run) for f, run in zip(futures, runs, strict=True)], interrupted


def _result(future: Future[Trace | str], run: Run) -> Trace | str:
    """A trace with its model, which is not pickled with it; "interrupted" for one that was cut short."""
    if future.cancelled() or not future.done():
        return "interrupted"
    found = future.result()
    if isinstance(found, str):
        return found
    return "interrupted" if found.info["interrupted"] else replace(found, parameters=found.layout, model=run.model)
