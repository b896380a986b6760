"""Confirming the winner: looks at runs on fresh seeds, until a setting passes or the part of the budget for it is spent.

A setting that passes goes on and is looked at once more, as some faults are small and some grow slowly. One that fails by its
step gets a shorter one of which `sample` foresees nothing wrong, if the space has it; one that only mixes badly, or has no
shorter step, makes way for the next best of the race.
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
from sgmcmc.tuning.check import Complaint, Look, look_at
from sgmcmc.tuning.race import Arm, Run
from sgmcmc.tuning.space import Setting, Space

__all__ = ["LOOKS", "Confirmed", "confirm"]

LOOKS, TWICE = 3, 2  # looks in all; at one setting, if it passes
_FINER = 0.8  # of the step, which must not get shorter than it has to: chains then mix too slowly
_FRESH = 0xD1B54A32D192ED03  # added to the seed for each setting that is looked at


class Confirmed(NamedTuple):
    """The arm that is chosen, its newest trace (None if there is none), a row for each look, and what was seen last of it."""

    arm: Arm
    trace: Trace | None
    rows: list[dict[str, Any]]
    look: Look | None
    interrupted: bool


class _Seen(NamedTuple):
    arm: Arm
    look: Look
    trace: Trace | None


def confirm(
    finalists: list[Arm],
    space: Space,
    scale: Any,
    plan: Callable[[Arm, Any, int], Run],
    carry_out: Callable[[Run], tuple[Trace | str, bool]],
    may_replace: bool,
) -> Confirmed:
    """Look at the best, or at what takes its place if `may_replace`. `plan` gets an arm, its start and its seed's number."""
    arm, rest, rows, seen = finalists[0], finalists[1:], list[dict[str, Any]](), list[_Seen]()
    start: Any = arm.place
    fresh, passed, interrupted = 0, 0, False
    for number in range(LOOKS):
        run = plan(arm, start, fresh)
        found, interrupted = carry_out(run)
        if interrupted or found == "interrupted":
            interrupted = True
            break
        look = _looked(found, start, scale)
        seen.append(_Seen(arm, look, None if isinstance(found, str) else found))
        rows.append(_row(number, arm, look, run))
        passed = passed + 1 if not look.complaints else 0
        if passed == TWICE:
            break
        if passed > 0:
            start = found if isinstance(found, Trace) else arm.place
            continue
        following = _next(arm, look, found, rest, space) if may_replace else None
        if following is None:
            break
        arm, start, fresh = following, following.place, fresh + 1
    return _chosen(seen, rows, finalists[0], interrupted)


def fresh_seed(seed: int, number: int) -> int:
    """A seed that no run of the race has."""
    return (seed + (number + 1) * _FRESH) % 2**64


def _looked(found: Trace | str, before: Any, scale: Any) -> Look:
    """What a run shows; if it is good and went on from one that was, the draws of both: more of them see a smaller fault."""
    if isinstance(found, str):
        return Look([Complaint("unstable", found)], np.nan, np.nan)
    if not np.isfinite(found.draws).all():
        return Look([Complaint("unstable", "draws are not finite")], np.nan, np.nan)
    look = look_at(found, scale)
    if look.complaints or not isinstance(before, Trace):
        return look
    return look_at(joined([before, found]), scale)


def _next(arm: Arm, look: Look, found: Trace | str, rest: list[Arm], space: Space) -> Arm | None:
    """The same with a shorter step, or the next best of the race."""
    shorter = _shorter(arm.setting, found, space) if look.blames_the_step else None
    if shorter is not None:
        return replace(arm, setting=shorter, sampler=space.sampler(shorter), score=np.inf)
    return rest.pop(0) if rest else None


def _shorter(setting: Setting, found: Trace | str, space: Space) -> Setting | None:
    """Half the step, or the longest below of which `sample` foresees no bias: another look would be spent before it began.

    Half the step, too, if the space has none of which nothing is foreseen.
    """
    half = shorter = space.shorter(setting)
    while shorter is not None and _is_foreseen(found, space.sampler(shorter)):
        shorter = space.shorter(shorter, _FINER)
    return half if shorter is None else shorter


def _is_foreseen(found: Trace | str, sampler: Sampler) -> bool:
    """Whether a run like one that was found, with another sampler, would be known to be wrong without its draws."""
    if isinstance(found, str) or found.rerun is None:
        return False
    other = replace(found, rerun=replace(found.rerun, sampler=sampler), parameters=found.layout)
    return any(f.is_problem for f in foreseen(other))


def _row(number: int, arm: Arm, look: Look, run: Run) -> dict[str, Any]:
    steps = (run.options["draws"] * run.options["thin"] + run.options["warmup"]) * run.options["chains"]
    shown = {k: v for k, v in arm.setting.items() if np.ndim(v) == 0}
    found = {"look": number, "arm": arm.number, "verdict": look.verdict, "lowest variance": look.low}
    return found | {"highest variance": look.high, "gradients": steps, "why": look.why} | shown


def _chosen(seen: list[_Seen], rows: list[dict[str, Any]], first: Arm, interrupted: bool) -> Confirmed:
    """What passed at the last look; else, of all that ran, what was least wrong."""
    if len(seen) == 0:
        return Confirmed(first, None, rows, None, interrupted)
    best = len(seen) - 1
    if seen[best].look.complaints:
        best = min(range(len(seen)), key=lambda k: (_wrong(seen, k), -k))  # the newest look at a setting counts
    for k, row in enumerate(rows):
        row["chosen"] = k == best and not seen[k].look.complaints
    return Confirmed(seen[best].arm, seen[best].trace, rows, seen[best].look, interrupted)


def _wrong(seen: list[_Seen], k: int) -> float:
    """How far the variances of a setting are off, at the worst of all looks at it."""
    same = [s.look for s in seen if s.arm.setting is seen[k].arm.setting]
    return max(float(np.nan_to_num(max(look.high - 1.0, 1.0 - look.low), nan=np.inf)) for look in same)
