"""One run of a comparison: a sampler with a seed, until its budget is spent, it diverges, or Ctrl-C is pressed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sgmcmc.checks import DivergenceError
from sgmcmc.comparison.budget import Budget
from sgmcmc.run.plan import make_plan
from sgmcmc.run.sample import sample
from sgmcmc.samplers import Sampler
from sgmcmc.trace import Trace
from sgmcmc.trace.joining import joined

__all__ = ["Outcome", "Setting", "Task", "rehearse", "run_task"]

_PILOT = 0.05  # of the time, until the speed is known; and so near to the end is near enough
_STRETCHES = 8  # of a run by the clock


@dataclass(frozen=True)
class Setting:
    """What all runs have in common; `options` go to `sample` as they are, `warmup` is a share of the budget."""

    model: Any
    budget: Budget
    chains: int
    draws: int
    warmup: float
    options: dict[str, Any]


@dataclass(frozen=True)
class Task:
    """A sampler by its name, and a seed."""

    name: str
    sampler: Sampler
    seed: int


@dataclass(frozen=True)
class Outcome:
    """How a run ended. Warm-up is in `gradients` and `seconds`, and by itself in `warm_gradients` and `warm_seconds`."""

    name: str
    seed: int
    status: str
    trace: Trace | None = None
    gradients: int = 0
    seconds: float = 0.0
    warm_gradients: int = 0
    warm_seconds: float = 0.0

    @property
    def usable(self) -> bool:
        """Whether there are draws to measure."""
        return self.trace is not None and self.trace.n_draws > 0 and not self.status.startswith("failed")


Told = Callable[[float], None]  # is told by how much of the run there is more; raises KeyboardInterrupt to end it


def run_task(task: Task, setting: Setting, told: Told | None = None) -> Outcome:
    """The run; whatever goes wrong in it is in the status, so that one sampler does not take the others along."""
    told = _untold if told is None else told
    try:
        if setting.budget.seconds is not None:
            return _by_clock(task, setting, setting.budget.seconds, told)
        return _by_gradients(task, setting, int(setting.budget.gradients), told)  # type: ignore[arg-type]
    except DivergenceError as error:
        return Outcome(task.name, task.seed, f"diverged in step {error.step} (chain {error.chain})")
    except KeyboardInterrupt:
        return Outcome(task.name, task.seed, "interrupted")
    except Exception as error:
        return Outcome(task.name, task.seed, f"failed: {type(error).__name__}: {' '.join(str(error).split())}")


def _untold(share: float) -> None:
    pass


def rehearse(task: Task, setting: Setting) -> None:
    """One step: compiles what the run will use, and raises for arguments that do not fit."""
    try:
        if _sample(task, setting, False, draws=1, warmup=0).info["interrupted"]:
            raise KeyboardInterrupt  # there is nothing yet to be returned
    except DivergenceError:
        pass  # a row of the table will say so
    except (TypeError, ValueError) as error:
        raise type(error)(f"samplers[{task.name!r}]: {error}") from error


def _sample(task: Task, setting: Setting, progress: Any, **options: Any) -> Trace:
    given = {"threads": 1, "warn": False, "chains": setting.chains, "seed": task.seed} | setting.options | options
    return sample(setting.model, task.sampler, progress=progress, **given)


def _by_gradients(task: Task, setting: Setting, budget: int, told: Told) -> Outcome:
    steps = budget // setting.chains
    draws, warmup, thin = _plan(task, setting, steps)
    trace = _sample(task, setting, lambda done: told(done / budget), draws=draws, warmup=warmup, thin=thin)
    gradients, seconds = int(trace.info["gradient_evaluations"]), float(trace.info["seconds"])
    warm = min(warmup * setting.chains, gradients)
    return _outcome(task, trace, gradients, seconds, warm, seconds * warm / max(gradients, 1))


def _plan(task: Task, setting: Setting, steps: int) -> tuple[int, int, int]:
    """Draws, warm-up steps and thinning that spend `steps`."""
    warmup = int(setting.warmup * steps)
    draws, thin = _fitting_draws(task, setting, steps - warmup, warmup)
    whole = make_plan(task.sampler.schedule, draws, 0, thin, warmup).steps
    return draws, steps - whole, thin


def _by_clock(task: Task, setting: Setting, budget: float, told: Told) -> Outcome:
    """Longer and longer stretches of warm-up, which tell the speed; then as many draws as the time that is left allows.

    The chains are never stopped by the clock, which would leave them of unequal length.
    """
    spent, told_of, stretch, speed = _Spent(), _Meter(budget, told), 1, 0.0
    warm: Any = None
    while stretch > 0:
        before = spent
        warm = _sample(task, setting, told_of, draws=1, warmup=stretch - 1, **({} if warm is None else {"init": warm}))
        spent = spent.after(warm)
        if warm.info["interrupted"]:
            return Outcome(task.name, task.seed, "interrupted")
        speed = (spent.gradients - before.gradients) / max(spent.seconds - before.seconds, 1e-9)
        told_of.speed = speed
        affordable = int((max(setting.warmup, _PILOT) * budget - spent.seconds) * speed) // setting.chains
        stretch = min(2 * stretch, affordable) if spent.seconds < _PILOT * budget else affordable
    left = max(int((budget - spent.seconds) * speed) // setting.chains, 1)
    draws, thin = _fitting_draws(task, setting, left, int(warm.final["step"].max()))
    parts, warm_spent = [warm], spent
    draws = -(-draws // _STRETCHES)  # the speed of a short stretch may mislead
    while draws > 0:
        parts.append(_sample(task, setting, told_of, draws=draws, warmup=0, thin=thin, init=parts[-1]))
        before, spent = spent, spent.after(parts[-1])
        speed = (spent.gradients - before.gradients) / max(spent.seconds - before.seconds, 1e-9)
        over = parts[-1].info["interrupted"] or spent.seconds > (1.0 - _PILOT) * budget
        seconds = 0.0 if over else min(budget - spent.seconds, budget / _STRETCHES)
        draws = int(seconds * speed) // (setting.chains * thin)
    return _outcome(task, joined(parts[1:]), *spent, *warm_spent)


def _fitting_draws(task: Task, setting: Setting, steps: int, first: int) -> tuple[int, int]:
    """How many draws, and how far apart, `steps` are good for; a schedule with phases gives fewer."""
    draws = min(setting.draws, steps)
    thin = steps // draws
    while draws > 1 and make_plan(task.sampler.schedule, draws, 0, thin, first).steps > steps:
        draws = int(0.9 * draws)
    return draws, thin


class _Spent(NamedTuple):
    gradients: int = 0
    seconds: float = 0.0

    def after(self, trace: Trace) -> _Spent:
        """With what this part of the run took."""
        info = trace.info
        return _Spent(self.gradients + int(info["gradient_evaluations"]), self.seconds + float(info["seconds"]))


class _Meter:
    """Tells by how much of the time there is less, from the steps done and the speed."""

    def __init__(self, budget: float, told: Told) -> None:
        self.budget, self.told, self.speed = budget, told, 0.0

    def __call__(self, done: int) -> None:
        self.told(0.0 if self.speed == 0.0 else done / self.speed / self.budget)


def _outcome(task: Task, trace: Trace, gradients: int, seconds: float, warm: int, warm_seconds: float) -> Outcome:
    status = "interrupted" if trace.info["interrupted"] else "ok"
    if not np.isfinite(trace.draws).all():
        status = "failed: draws that are not finite"
    return Outcome(task.name, task.seed, status, trace, gradients, seconds, warm, warm_seconds)
