"""What the experiments share: the same tuning for every sampler, runs on all cores with a bar, tables in two forms.

Fairness: a contestant is a sampler with ranges for its own parameters. Each one gets the same number of settings, points of a
scrambled Sobol sequence in the logarithms of its ranges, scored on the same tuning runs; the best quarter is scored again on
more of them, then four times as many settings near the best so far, and the best of all wins. A sampler that contains another
one also tries what was best for that. The results come from other seeds.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sgmcmc.evidence.experiments.kept import digest, load, save

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Contestant", "Winner", "interval", "run_tasks", "screen", "settings", "tune", "unfinished"]

Setting = dict[str, float]
LAST = 5  # the last stage of `tune`


class Contestant(NamedTuple):
    """A sampler with the ranges of what is tuned; `make` gives the sampler for a setting."""

    name: str
    make: Callable[..., Any]
    ranges: Mapping[str, tuple[float, float]]

    def sampler(self, setting: Mapping[str, float]) -> Any:
        return self.make(**setting)


class Winner(NamedTuple):
    """What tuning chose, and what it was worth on the tuning runs."""

    contestant: Contestant
    setting: Setting
    score: float


def settings(contestant: Contestant, budget: int, seed: int) -> list[Setting]:
    """`budget` settings: the same points of the unit cube for everybody, spread over the logarithms of the ranges."""
    from scipy.stats import qmc

    cube = qmc.Sobol(len(contestant.ranges), seed=seed).random_base2((budget - 1).bit_length())[:budget]
    low, high = np.log(np.array(list(contestant.ranges.values()))).T
    points = np.exp(low + cube * (high - low))
    return [dict(zip(contestant.ranges, (float(f"{v:.3g}") for v in point), strict=True)) for point in points]


def tune(
    contestants: Sequence[Contestant],
    score: Callable[..., float],
    budget: int = 32,
    seed: int = 0,
    label: str = "tuning",
    progress: bool = True,
    keep: Path | None = None,
    heirs: Callable[[Contestant, dict[str, Setting]], list[Setting]] | None = None,
) -> tuple[list[Winner], pd.DataFrame]:
    """The best setting of every contestant by `score(contestant, setting, stage)`, smaller is better, and all that was tried.

    Stage 0 scores every setting, stage 1 the best quarter again, on more runs; stages 2, 3 and 4 score neighbours of the best so
    far on those runs, nearer from stage to stage. In stage 5 come the settings that a sampler inherits from those it contains
    (`heirs` sees the winners so far), and neighbours, as many in all for everybody. A sampler that diverges scores infinity.
    """
    import pandas as pd

    tried: list[tuple[str, Setting, int, float]] = []

    def scores_of(tasks: list[tuple[Contestant, Setting, int]], stage: int, what: str) -> list[float]:
        values = list(run_tasks(_scored, [(score, *task) for task in tasks], f"{label}, {what}", progress, keep))
        tried.extend((c.name, s, stage, value) for (c, s, _), value in zip(tasks, values, strict=True))
        return values

    few = max(1, budget // 4)
    first = [(c, s, 0) for c in contestants for s in settings(c, budget, seed)]
    scores = scores_of(first, 0, "all settings")
    known = []
    for i, c in enumerate(contestants):
        own = sorted(range(budget), key=lambda k, i=i: scores[i * budget + k])[:few]  # type: ignore[misc]
        known += [(c, first[i * budget + k][1], 1) for k in own]
    values = scores_of(known, 1, "the best quarter")
    for stage in range(2, LAST):
        around = [(c, s, 1) for c in contestants for s in neighbours(c, _least(c, known, values)[1], few, seed, stage)]
        values = values + scores_of(around, stage, f"around the best, {stage - 1}")
        known = known + around
    winners: list[Winner] = []
    for c in contestants:
        inherited = [] if heirs is None else heirs(c, {w.contestant.name: w.setting for w in winners})
        own_known = known + [(c, s, 1) for s in inherited]
        own_values = values + scores_of(own_known[len(known) :], LAST, f"what {c.name} inherits")
        around = [
            (c, s, 1) for s in neighbours(c, _least(c, own_known, own_values)[1], few + 1 - len(inherited), seed, LAST)
        ]
        own_values = own_values + scores_of(around, LAST, f"last round, {c.name}")
        value, best = _least(c, own_known + around, own_values)
        winners.append(Winner(c, best, value))
    return winners, pd.DataFrame(tried, columns=["sampler", "setting", "stage", "score"])


def screen(
    contestants: Sequence[Contestant],
    score: Callable[..., float],
    budget: int,
    seed: int,
    rest: tuple[Any, ...],
    label: str,
    what: str,
    progress: bool = True,
    keep: Path | None = None,
    sources: bytes | None = None,
) -> tuple[list[tuple[Contestant, Setting]], pd.DataFrame]:
    """Tuning of long runs, in one stage: the best setting of each by `score(contestant, setting, *rest)`, and all scores."""
    import pandas as pd

    tasks = [(c, s, *rest) for c in contestants for s in settings(c, budget, seed)]
    scores = list(run_tasks(score, tasks, label, progress, keep, sources=sources))
    tried = [(t[0].name, t[1], value) for t, value in zip(tasks, scores, strict=True)]
    winners = [(c, _least(c, tasks, scores)[1]) for c in contestants]
    return winners, pd.DataFrame(tried, columns=["sampler", "setting", what])


def _least(contestant: Contestant, tasks: Sequence[tuple[Any, ...]], scores: Sequence[float]) -> tuple[float, Setting]:
    """The smallest score of a contestant and its setting."""
    own = ((v, t[1]) for t, v in zip(tasks, scores, strict=True) if t[0] is contestant)
    return min(own, key=lambda pair: pair[0])


def neighbours(contestant: Contestant, setting: Setting, count: int, seed: int, stage: int = 2) -> list[Setting]:
    """Settings near one: every parameter times e^z with z of standard deviation 0.5, 0.3, 0.2, kept within its range."""
    rng = np.random.default_rng([seed, stage])
    width = {2: 0.5, 3: 0.3}.get(stage, 0.2)
    found = []
    for _ in range(count):
        factors = np.exp(width * rng.standard_normal(len(setting)))
        moved = {k: v * f for (k, v), f in zip(setting.items(), factors, strict=True)}
        found.append({k: float(f"{np.clip(v, *contestant.ranges[k]):.3g}") for k, v in moved.items()})
    return found


def _scored(score: Callable[..., float], contestant: Contestant, setting: Setting, stage: int) -> float:
    from sgmcmc.checks import DivergenceError

    try:
        value = float(score(contestant, setting, stage))
    except (DivergenceError, FloatingPointError):
        return np.inf
    return value if np.isfinite(value) else np.inf


def run_tasks(
    function: Callable[..., Any],
    tasks: Sequence[tuple[Any, ...]],
    label: str,
    progress: bool = True,
    keep: Path | None = None,
    news: Callable[[], str] | None = None,
    sources: bytes | None = None,
) -> Iterator[Any]:
    """function(*task) for every task, in order, on all cores; `function` and what it is given must be importable.

    With a folder `keep` each result is written there as it comes, and one that is there already, from the same task and the
    same sources, is not computed again: what was stopped goes on. The sources are all of this package, unless fewer are given,
    on which alone the results depend. While a run is waited for, the bar shows what `news` says.
    """
    if len(tasks) == 0:
        return
    from tqdm import tqdm

    known_by = _sources() if sources is None else sources
    files = [None if keep is None else keep / f"{digest(known_by, function, task)}.npz" for task in tasks]
    kept = {k: file for k, file in enumerate(files) if file is not None and file.exists()}
    missing = [k for k in range(len(tasks)) if k not in kept]
    with _one_thread():
        futures = {k: _workers().submit(_quietly, function, tasks[k], files[k]) for k in missing}
    try:
        bar = tqdm(range(len(tasks)), desc=label, unit="run", disable=not progress, smoothing=0.0)
        for k in bar:
            while news is not None and k not in kept and not wait([futures[k]], timeout=2.0).done:
                bar.set_postfix_str(news())
            yield load(kept[k]) if k in kept else futures[k].result()
    except BaseException:
        _workers().shutdown(wait=False, cancel_futures=True)
        _workers.cache_clear()
        raise


@cache
def _workers() -> ProcessPoolExecutor:
    """One process per core, for as long as this one lives: to start them takes seconds, and tuning has dozens of stages."""
    import multiprocessing

    from sgmcmc.threads import usable_cores

    return ProcessPoolExecutor(usable_cores(), multiprocessing.get_context("spawn"), _end_with, (os.getpid(),))


def _end_with(parent: int) -> None:
    """Let this process end when its parent has, however that ended: a run takes minutes, and its result would be lost."""
    import threading

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    if os.name == "posix":  # elsewhere the number of a parent that has ended stays
        threading.Thread(target=watch, daemon=True).start()


def unfinished(out: Path, name: str) -> Path:
    """Where an experiment keeps the results of its runs until its section is written."""
    return out / "unfinished" / name


@cache
def _sources() -> bytes:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[2].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Two processes with two threads each would only get in each other's way. Libraries read this when they are loaded: it is
    set here, for processes to inherit, and put back."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _quietly(function: Callable[..., Any], task: tuple[Any, ...], file: Path | None) -> Any:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # settings far from the best are stiff; they lose by their score
        result = function(*task)
    if file is not None:
        save(file, result)
    return result


def interval(values: Any) -> tuple[float, float]:
    """Mean and half-width of its 95 % interval (Student) over seeds."""
    from scipy.stats import t

    x = np.asarray(values, float)
    x = x[np.isfinite(x)]
    if x.size < 2:
        return (float(x.mean()) if x.size else np.nan), np.nan
    return float(x.mean()), float(t.ppf(0.975, x.size - 1) * x.std(ddof=1) / np.sqrt(x.size))
