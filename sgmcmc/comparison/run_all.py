"""All runs of a comparison at once: on threads of this process, or wherever an executor takes them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

from sgmcmc.comparison.runs import Outcome, Setting, Task, run_task
from sgmcmc.potentials import PythonPotential
from sgmcmc.threads import usable_cores

__all__ = ["run_all"]


def run_all(
    tasks: Sequence[Task], setting: Setting, executor: Executor | None, threads: int | None, progress: bool
) -> tuple[list[Outcome], bool]:
    """The outcomes, in the order of the tasks, and whether Ctrl-C ended it; then those not begun are missing."""
    bar = _Bar(len(tasks), progress)
    try:
        if executor is not None:
            return _collect(tasks, partial(_submit, executor, setting), bar, lambda: None)
        return _on_threads(tasks, setting, _workers(setting, threads, len(tasks)), bar)
    finally:
        bar.close()


def _workers(setting: Setting, threads: int | None, tasks: int) -> int:
    """A thread for each core; one for a gradient in Python, as several would wait for each other while the clock runs."""
    if threads is None:
        threads = 1 if isinstance(setting.model, PythonPotential) else usable_cores()
    return min(threads, tasks)


def _submit(executor: Executor, setting: Setting, task: Task) -> Future[Outcome]:
    return executor.submit(run_task, task, setting)


def _on_threads(tasks: Sequence[Task], setting: Setting, workers: int, bar: _Bar) -> tuple[list[Outcome], bool]:
    stop = threading.Event()
    with ThreadPoolExecutor(workers) as pool:

        def submit(task: Task) -> Future[Outcome]:
            share = _Share(bar, stop)
            future = pool.submit(run_task, task, setting, share)
            future.add_done_callback(lambda _: share.fill())
            return future

        return _collect(tasks, submit, None, stop.set)


def _collect(
    tasks: Sequence[Task], submit: Callable[[Task], Future[Outcome]], bar: _Bar | None, stop: Callable[[], None]
) -> tuple[list[Outcome], bool]:
    futures = [submit(task) for task in tasks]
    try:
        pending = set(futures)
        while pending:
            done, pending = wait(pending, 0.2, FIRST_COMPLETED)  # awake now and then, to hear a Ctrl-C
            if bar is not None:
                bar.add(float(len(done)))
        return [future.result() for future in futures], False
    except KeyboardInterrupt:
        stop()
        begun = [future for future in futures if not future.cancel()]
        if bar is None:
            wait(begun)  # a few tenths of a second: these runs have been told
        return [future.result() for future in begun if future.done()], True


class _Share:
    """How much of one run is done, for the bar; ends the run when all are to stop."""

    def __init__(self, bar: _Bar, stop: threading.Event) -> None:
        self.bar, self.stop, self.done = bar, stop, 0.0

    def __call__(self, more: float) -> None:
        more = min(more, 1.0 - self.done)
        self.done += more
        self.bar.add(more)
        if self.stop.is_set():
            raise KeyboardInterrupt

    def fill(self) -> None:
        self.bar.add(1.0 - self.done)
        self.done = 1.0


class _Bar:
    """A progress bar in units of runs that several threads push; None if it is switched off."""

    def __init__(self, runs: int, shown: bool) -> None:
        self._lock = threading.Lock()
        self._bar: Any = None
        if shown:
            from tqdm.auto import tqdm

            shape = "{desc}: {percentage:3.0f}%|{bar}| {n:.1f}/{total} [{elapsed}<{remaining}]"
            self._bar = tqdm(total=runs, desc="runs", bar_format=shape, mininterval=0.2)

    def add(self, share: float) -> None:
        if self._bar is not None:
            with self._lock:
                self._bar.update(min(share, self._bar.total - self._bar.n))

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
