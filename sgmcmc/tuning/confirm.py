"""Confirming the winner: checks on fresh seeds, until a setting passes or its share of the budget is spent.

A setting that passes continues and is checked once more, as some faults are small and some grow slowly. One that fails by its
step gets a shorter one for which `sample` predicts no bias, if the space has it; one that only mixes badly, or has no shorter
step, is replaced by the next best of the race.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from sgmcmc.bias.foreseen import foreseen
from sgmcmc.samplers import Sampler
from sgmcmc.trace import Trace
from sgmcmc.trace.joining import joined
from sgmcmc.tuning.check import CheckResult, Problem, check_trace
from sgmcmc.tuning.race import Arm, Run
from sgmcmc.tuning.space import Setting, Space

__all__ = ["MOST_CHECKS", "Confirmed", "confirm"]

MOST_CHECKS, PASSES = 3, 2  # in all; of one setting that passes
_FINER = 0.8  # of the step: one shorter than needed mixes slowly
_FRESH = 0xD1B54A32D192ED03  # added to the seed for each setting that is checked


class Confirmed(NamedTuple):
    """The chosen arm, its newest trace (None if there is none), a row per check, and the result of its last check."""

    arm: Arm
    trace: Trace | None
    rows: list[dict[str, Any]]
    check: CheckResult | None
    interrupted: bool


class _Seen(NamedTuple):
    arm: Arm
    check: CheckResult
    trace: Trace | None


def confirm(
    finalists: list[Arm],
    space: Space,
    scale: Any,
    plan: Callable[[Arm, Any, int], Run],
    carry_out: Callable[[Run], tuple[Trace | str, bool]],
    may_replace: bool,
) -> Confirmed:
    """Check the best, and its replacements if `may_replace`. `plan` gets an arm, its start and the number of its seed."""
    arm, rest, rows, seen = finalists[0], finalists[1:], list[dict[str, Any]](), list[_Seen]()
    start: Any = arm.place
    fresh, passed, interrupted = 0, 0, False
    for number in range(MOST_CHECKS):
        run = plan(arm, start, fresh)
        found, interrupted = carry_out(run)
        if interrupted or found == "interrupted":
            interrupted = True
            break
        check = _checked_run(found, start, scale)
        seen.append(_Seen(arm, check, None if isinstance(found, str) else found))
        rows.append(_row(number, arm, check, run))
        passed = passed + 1 if not check.problems_found else 0
        if passed == PASSES:
            break
        if passed > 0:
            start = found if isinstance(found, Trace) else arm.place
            continue
        following = _next(arm, check, found, rest, space) if may_replace else None
        if following is None:
            break
        arm, start, fresh = following, following.place, fresh + 1
    return _chosen(seen, rows, finalists[0], interrupted)


def fresh_seed(seed: int, number: int) -> int:
    """A seed that no run of the race had."""
    return (seed + (number + 1) * _FRESH) % 2**64


def _checked_run(found: Trace | str, before: Any, scale: Any) -> CheckResult:
    """The check of a run; if it passes and continues one that passed, of the draws of both, which see a smaller fault."""
    if isinstance(found, str):
        return CheckResult([Problem("unstable", found)], np.nan, np.nan)
    if not np.isfinite(found.draws).all():
        return CheckResult([Problem("unstable", "draws are not finite")], np.nan, np.nan)
    check = check_trace(found, scale)
    if check.problems_found or not isinstance(before, Trace):
        return check
    return check_trace(joined([before, found]), scale)


def _next(arm: Arm, check: CheckResult, found: Trace | str, rest: list[Arm], space: Space) -> Arm | None:
    """The same arm with a shorter step, or the next best of the race."""
    shorter = _shorter(arm.setting, found, space) if check.blames_the_step else None
    if shorter is not None:
        return replace(arm, setting=shorter, sampler=space.sampler(shorter), score=np.inf)
    return rest.pop(0) if rest else None


def _shorter(setting: Setting, found: Trace | str, space: Space) -> Setting | None:
    """Half the step, or the longest below it for which `sample` predicts no bias, which saves a check.

    Half the step, too, if bias is predicted for all steps of the space.
    """
    half = shorter = space.shorter(setting)
    while shorter is not None and _is_foreseen(found, space.sampler(shorter)):
        shorter = space.shorter(shorter, _FINER)
    return half if shorter is None else shorter


def _is_foreseen(found: Trace | str, sampler: Sampler) -> bool:
    """Whether bias is predicted for a run like this one with another sampler."""
    if isinstance(found, str) or found.rerun is None:
        return False
    other = replace(found, rerun=replace(found.rerun, sampler=sampler), parameters=found.layout)
    return any(f.is_problem for f in foreseen(other))


def _row(number: int, arm: Arm, check: CheckResult, run: Run) -> dict[str, Any]:
    steps = (run.options["draws"] * run.options["thin"] + run.options["warmup"]) * run.options["chains"]
    shown = {k: v for k, v in arm.setting.items() if np.ndim(v) == 0}
    found = {"look": number, "arm": arm.number, "verdict": check.verdict, "lowest variance": check.low}
    return found | {"highest variance": check.high, "gradients": steps, "why": check.why} | shown


def _chosen(seen: list[_Seen], rows: list[dict[str, Any]], first: Arm, interrupted: bool) -> Confirmed:
    """The setting that passed its last check; else, of all that ran, the least wrong one."""
    if len(seen) == 0:
        return Confirmed(first, None, rows, None, interrupted)
    best = len(seen) - 1
    if seen[best].check.problems_found:
        best = min(range(len(seen)), key=lambda k: (_wrong(seen, k), -k))  # the newest check of a setting counts
    for k, row in enumerate(rows):
        row["chosen"] = k == best and not seen[k].check.problems_found
    return Confirmed(seen[best].arm, seen[best].trace, rows, seen[best].check, interrupted)


def _wrong(seen: list[_Seen], k: int) -> float:
    """The error of the variances of a setting, at the worst of its checks."""
    same = [s.check for s in seen if s.arm.setting is seen[k].arm.setting]
    return max(float(np.nan_to_num(max(check.high - 1.0, 1.0 - check.low), nan=np.inf)) for check in same)
