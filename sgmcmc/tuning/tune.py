"""`tune`: a sampler with settings that fit a model, chosen by successive halving over chains.

Twenty-seven settings run for a cost c each; the best nine go on for 3c; the best three of these and six neighbours of the best
go on for 3c; the best three of all go on for 9c, and the best of them wins. Chains continue from their last states; a score is
that of the newest draws alone, so errors of an early stage are forgotten. A third of the budget is for checks of the winner on
fresh seeds (`confirm`), 18c each, and is spent as far as needed.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc import checks
from sgmcmc.compiler import waiting
from sgmcmc.potentials import dim_of, rows_of
from sgmcmc.run.arguments import as_seed
from sgmcmc.samplers import Sampler
from sgmcmc.trace import Trace
from sgmcmc.tuning.confirm import MOST_CHECKS, Confirmed, confirm, fresh_seed
from sgmcmc.tuning.cost import cost_of_step
from sgmcmc.tuning.criterion import Criterion, discrepancy
from sgmcmc.tuning.pilot import Pilot, find_scale
from sgmcmc.tuning.race import Arm, Run, run_all
from sgmcmc.tuning.space import Space, default_space
from sgmcmc.tuning.tuned import Tuned

__all__ = ["tune"]


class Stage(NamedTuple):
    """How many of the best continue, how many neighbours of the best join them, and the budget of each, in units of c."""

    keep: int
    join: int
    cost: int


ARMS = 27
STAGES = (Stage(ARMS, 0, 1), Stage(9, 0, 3), Stage(3, 6, 3), Stage(3, 0, 9))
CHECK = Stage(1, 0, 18)
RACE = sum((s.keep + s.join) * s.cost for s in STAGES)
UNITS = RACE + MOST_CHECKS * CHECK.cost
WARMUP, WARMUP_OF_CHECK = 0.2, 1 / 3  # of a chain
DRAWS, FEWEST, NUMBERS = 10_000, 1000, 1 << 22  # draws of a chain, and numbers of all: with few, all mix equally well
USUAL = 32  # rows


def tune(
    sampler: Callable[..., Sampler],
    model: Any,
    budget: int = 1_000_000,
    *,
    space: Mapping[str, Any] | None = None,
    criterion: Criterion | None = None,
    chains: int = 4,
    seed: int | None = 0,
    init: Any = None,
    temperature: float = 1.0,
    executor: Executor | None = None,
    threads: int | None = None,
    progress: bool = True,
    **options: Any,
) -> Tuned:
    """Choose step size, a, softening, friction, noises, resampling periods, batch size and scale of a sampler.

    The winner is run on fresh seeds and must pass what `sample` looks at, and its variances must be right within 10 %
    (``.checks``); else a shorter step or the next best takes its place, and if none passes, a RunWarning says so.
    Ctrl-C ends it and returns the best there is so far.

    Parameters
    ----------
    sampler : `SGMGTD`, `SGHMC`, …, or a function of yours that makes a Sampler from what is in the space
    model : as for sample
    budget : int
        Steps that all runs may spend together, warm-up included. One with 32 rows and a = 1 counts 1, any other what it
        costs in proportion (`cost_of_step`): many rows more, and an a other than 1 and 2 ten times as much. The pilot,
        some thousand gradients, and those at draws that criterion and check evaluate come on top.
    space : dict, optional
        By name, a range (low, high), a list of choices, or a value to hold; omitted ones have defaults
        (docs/tuning.md). ``"batch_size"`` is one of the names, ``"scale"`` another: units, measured unless given.
    criterion : callable, optional
        A function of a trace, smaller is better; None is `sgmcmc.tuning.discrepancy`, which sees bias. With one of your
        own the winner is still checked, but never replaced.
    chains : int, per setting
    seed : int; the same seed gives the same table, on threads or an executor
    init : array, where the pilot starts
    temperature : float, of the target exp(−U/T)
    executor : concurrent.futures.Executor, to run elsewhere; None is threads of this process
    threads : int, how many settings at a time
    progress : bool
    **options : more for sample, the same for all: ``minibatch``, ``gradient_noise``, ``dtype``, …

    Returns
    -------
    Tuned

    Examples
    --------
    >>> sg.tune(sg.SGLD, sg.models.Gaussian(), budget=5400, chains=1, progress=False).passed
    True
    """
    if not callable(sampler) or isinstance(sampler, Sampler):
        raise TypeError(f"sampler={checks.show(sampler)} makes no samplers; give SGMGTD itself, not SGMGTD(...)")
    chains, seed = checks.integer("chains", chains, 1), as_seed(seed, None)
    budget = checks.integer("budget", budget, 50 * RACE * chains)
    temperature = checks.number("temperature", temperature, 0.0, 1e300, open_low=True)
    if criterion is not None and not callable(criterion):
        raise TypeError(f"criterion={checks.show(criterion)} cannot be called; give a function of a trace, or None")
    given = default_space(sampler, model) | _space(space)
    scalable = "scale" in _names(sampler)
    known = given.pop("scale", None if scalable else 1.0)
    with waiting.speaking(progress):
        pilot = find_scale(
            model, chains=chains, init=init, scale=known, temperature=temperature, seed=seed, progress=progress
        )
    fixed = ({"scale": pilot.scale} if scalable else {}) | ({"temperature": temperature} if temperature != 1.0 else {})
    race = _Race(
        model,
        Space(sampler, given, pilot.steepest, fixed),
        pilot,
        discrepancy(pilot.scale) if criterion is None else criterion,
        {"chains": chains, "seed": seed} | options,
        budget / UNITS / chains,
    )
    with waiting.speaking(progress):
        best, complaint = race.run(executor, threads, progress, criterion is None)
    if complaint is not None:
        warnings.warn(complaint, checks.RunWarning, stacklevel=2)
    return best


def _space(space: Any) -> dict[str, Any]:
    if space is None:
        return {}
    if not isinstance(space, Mapping) or not all(isinstance(name, str) for name in space):
        raise TypeError(
            f'space={checks.show(space)} is not a dictionary; give {{"step_size": (1e-3, 0.1), "a": [1, 2]}}'
        )
    return dict(space)


def _names(make: Callable[..., Any]) -> list[str]:
    try:
        return list(inspect.signature(make).parameters)
    except (TypeError, ValueError):
        return []


class _Race:
    """The stages, one after the other."""

    def __init__(
        self, model: Any, space: Space, pilot: Pilot, criterion: Criterion, options: dict[str, Any], unit: float
    ) -> None:
        self.model, self.space, self.pilot, self.criterion = model, space, pilot, criterion
        self.options, self.unit, self.rows = options, unit, rows_of(model)
        self.tried: list[dict[str, Any]] = []
        self.arms: list[Arm] = []

    def run(
        self, executor: Executor | None, threads: int | None, progress: bool, may_replace: bool
    ) -> tuple[Tuned, str | None]:
        """The result, and a warning if it did not pass."""
        from tqdm.auto import tqdm

        field: list[Arm] = []
        self._join(self.space.points(ARMS, self.options["seed"] % 2**32), None)
        total, interrupted = sum(s.keep + s.join for s in STAGES), False
        with tqdm(total=total, desc="tuning", unit="run", disable=not progress) as bar:
            for number, stage in enumerate(STAGES):
                best = sorted(self.arms, key=lambda a: (a.score, a.number))[: stage.keep] if number > 0 else self.arms
                field = best + self._neighbours(best[0], stage.join, number)
                interrupted = self._stage(field, number, stage, executor, threads, lambda: bar.update() and None)
                self.arms = [a for a in field if np.isfinite(a.score)] if not interrupted else self.arms
                if interrupted or len(self.arms) == 0:
                    break
            best = self._finalists(interrupted)
            if interrupted:
                return self._result(Confirmed(best[0], None, [], None, True)), None
            bar.set_description("checking")
            found = confirm(
                best,
                self.space,
                self.pilot.scale,
                self._check_run,
                lambda run: self._carry_out(run, executor, threads),
                may_replace,
            )
        return self._result(found), _sentence(found)

    def _carry_out(self, run: Run, executor: Executor | None, threads: int | None) -> tuple[Trace | str, bool]:
        results, interrupted = run_all([run], executor, threads, lambda: None)
        return results[0], interrupted

    def _join(self, points: NDArray[np.float64], parent: Arm | None) -> list[Arm]:
        first = len(self.arms) if parent is None else max(t["arm"] for t in self.tried) + 1
        new = []
        for k, point in enumerate(points):
            setting = self.space.setting(point)
            start = self.pilot.theta if parent is None else np.asarray(parent.trace.final["theta"], np.float64)
            new.append(Arm(first + k, point, setting, self.space.sampler(setting), start))
        if parent is None:
            self.arms = new
        return new

    def _neighbours(self, parent: Arm, count: int, stage: int) -> list[Arm]:
        if count == 0:
            return []
        points = self.space.near(parent.point, count, 0.12, (self.options["seed"] + stage) % 2**32)
        return self._join(points, parent)

    def _stage(
        self, field: list[Arm], number: int, stage: Stage, executor: Any, threads: Any, done: Callable[[], None]
    ) -> bool:
        runs = [self._planned(arm, stage) for arm in field]
        results, interrupted = run_all(runs, executor, threads, done)
        try:
            for arm, run, found in zip(field, runs, results, strict=True):
                self._take(arm, run, found, number)
        except KeyboardInterrupt:  # in the criterion
            return True
        return interrupted

    def _take(self, arm: Arm, run: Run, found: Trace | str, number: int) -> None:
        if not isinstance(found, str):
            arm.score, arm.trace = self._score(found), found
        elif found != "interrupted":
            arm.score = np.inf
        steps = (run.options["draws"] * run.options["thin"] + run.options["warmup"]) * self.options["chains"]
        status = found if isinstance(found, str) else "ok"
        row = {"stage": number, "arm": arm.number, "score": arm.score, "status": status, "gradients": steps}
        self.tried.append(row | {k: v for k, v in arm.setting.items() if np.ndim(v) == 0})

    def _check_run(self, arm: Arm, start: Any, fresh: int) -> Run:
        """The run of a check: from given θ, with all else fresh, or continuing a trace."""
        share = 0.0 if isinstance(start, Trace) else WARMUP_OF_CHECK
        run = self._planned(replace(arm, trace=start), CHECK, share)
        return replace(run, options=run.options | {"seed": fresh_seed(self.options["seed"], fresh)})

    def _planned(self, arm: Arm, stage: Stage, warmup_share: float = WARMUP) -> Run:
        size = arm.setting.get("batch_size")
        rows = self.rows if size is None else size
        cost = cost_of_step(arm.sampler, self.model, rows) / cost_of_step(None, self.model, min(self.rows, USUAL))
        steps = max(20, int(stage.cost * self.unit / cost))
        warmup = int(warmup_share * steps)
        most = max(FEWEST, min(DRAWS, NUMBERS // (dim_of(self.model) * self.options["chains"])))
        draws = min(most, steps - warmup)
        plan = {"draws": draws, "warmup": warmup, "thin": (steps - warmup) // draws, "init": arm.trace}
        return Run(self.model, arm.sampler, self.options | plan | ({} if self.rows == 0 else {"batch_size": size}))

    def _score(self, trace: Trace) -> float:
        if not np.isfinite(trace.draws).all():
            return np.inf
        value = float(self.criterion(trace))
        return value if np.isfinite(value) else np.inf

    def _finalists(self, interrupted: bool) -> list[Arm]:
        """The arms that are left, the best first."""
        scored = sorted((a for a in self.arms if np.isfinite(a.score)), key=lambda a: (a.score, a.number))
        if len(scored) == 0 and interrupted:
            raise KeyboardInterrupt
        if len(scored) == 0:
            raise ValueError(
                "every setting diverged or could not be scored; give a smaller step_size in space=, or init="
            )
        return scored

    def _result(self, found: Confirmed) -> Tuned:
        import pandas as pd

        best = found.arm
        score = best.score if found.trace is None or np.isfinite(best.score) else self._score(found.trace)
        theta = best.place if found.trace is None else found.trace.final["theta"]
        table = pd.DataFrame(self.tried).sort_values(["stage", "score", "arm"], kind="stable", ignore_index=True)
        own = {k: v for k, v in self.options.items() if k != "seed"}
        return Tuned(
            best.sampler, best.setting.get("batch_size"), best.setting, score, table, found.interrupted,
            self.model, np.asarray(theta, np.float64), own, pd.DataFrame(found.rows) if found.rows else None,
        )  # fmt: skip


def _sentence(found: Confirmed) -> str | None:
    """The sentence about a winner that did not pass."""
    if found.check is None or not found.check.problems_found:
        return None
    wanted = "shorter" if found.check.blames_the_step else "longer"
    tried = f"{len(found.rows)} run{'s' if len(found.rows) > 1 else ''}"
    return (
        f"tune has found no setting that passes its check on fresh seeds, in {tried}; the one it returns is "
        f"{found.check.verdict} ({found.check.why}); give a larger budget=, or {wanted} steps in space="
    )
