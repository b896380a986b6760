"""The columns of the table: which there are, which were asked for, and their numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.checks import show
from sgmcmc.comparison.measures import Points, errors, ksd_of_prefixes, points_of, worth
from sgmcmc.comparison.modes import Modes, visits
from sgmcmc.comparison.reference import Reference
from sgmcmc.comparison.runs import Outcome

__all__ = ["METRICS", "Judge", "choose_metrics"]

Array = NDArray[np.float64]
METRICS = {
    "ess_bulk": "effective sample size of the centre, of the worst parameter",
    "ess_tail": "effective sample size of the 5 % and 95 % quantiles, of the worst parameter",
    "ess_per_second": "ess_bulk per second of sampling, warm-up included",
    "ess_per_gradient": "ess_bulk per gradient evaluation, warm-up included",
    "r_hat": "R̂ of the worst parameter: 1 if the chains agree",
    "ksd": "kernel Stein discrepancy: 0 in the limit if the draws come from the target",
    "error_mean": "error of the mean in units of the true sd, root mean square over the parameters",
    "error_sd": "relative error of the sd, root mean square over the parameters",
    "modes": "modes that some chain was in",
    "mode_changes": "moves from mode to mode between successive draws, over all chains",
    "mode_error": "distance of the masses of the modes from the true ones, in total variation",
}
_OF_REFERENCE, _OF_MODES = ("error_mean", "error_sd"), ("modes", "mode_changes", "mode_error")
_CHECKPOINTS, _KSD_POINTS = 25, 1000

Own = dict[str, Callable[..., Any]]


def choose_metrics(metrics: Any, reference: Any, modes: Modes | None) -> tuple[list[str], Own]:
    """Names of the metrics, and functions of a trace that the user gave; None is all that can be computed here."""
    missing = [m for m in _OF_REFERENCE if reference is None] + [m for m in _OF_MODES if modes is None]
    if modes is not None and modes.masses is None:
        missing.append("mode_error")
    if metrics is None:
        return [m for m in METRICS if m not in missing], {}
    if isinstance(metrics, str) or not isinstance(metrics, Sequence):
        raise TypeError(
            f"metrics={show(metrics)} is not a list; give names ({', '.join(METRICS)}) or functions of a trace"
        )
    own = {getattr(m, "__name__", repr(m)): m for m in metrics if callable(m)}
    names = [m for m in metrics if not callable(m)]
    for name in names:
        if name not in METRICS:
            raise ValueError(f"metrics has {name!r}, which is unknown; choose from {', '.join(METRICS)}")
        if name in missing:
            remedy = (
                "give reference=" if name in _OF_REFERENCE else "take a model whose modes are known, or give modes="
            )
            raise ValueError(f"metrics has {name!r}, which cannot be computed here; {remedy}")
    return names, own


@dataclass(frozen=True)
class Judge:
    """Gives the numbers of a run."""

    model: Any
    names: Sequence[str]
    own: Own
    reference: Reference | None
    modes: Modes | None
    temperature: float

    def points(self, outcome: Outcome) -> Points | None:
        """Draws with their scores, if the discrepancy is asked for."""
        if "ksd" not in self.names or not outcome.usable:
            return None
        return points_of(self.model, _draws(outcome), self.temperature, _KSD_POINTS)

    def scale(self, outcomes: Sequence[Outcome]) -> Array:
        """Units of the discrepancy, the same for all: the true sd, else the median over the runs of theirs."""
        if self.reference is not None:
            return self.reference.sd
        sds = [_draws(o).reshape(-1, _draws(o).shape[-1]).std(axis=0) for o in outcomes if o.usable]
        middle = np.median(sds, axis=0) if len(sds) > 0 else np.ones(1)
        return np.where(middle > 0.0, middle, 1.0)

    def row(self, outcome: Outcome, points: Points | None, scale: Array) -> dict[str, Any]:
        """The numbers of one run; NaN throughout if it has no draws that can be used."""
        if not outcome.usable:
            return dict.fromkeys((*self.names, *self.own), np.nan)
        draws = _draws(outcome)
        found: dict[str, Any] = worth(draws)
        found["ess_per_second"] = found["ess_bulk"] / max(outcome.seconds, 1e-9)
        found["ess_per_gradient"] = found["ess_bulk"] / max(outcome.gradients, 1)
        if points is not None:
            found["ksd"] = ksd_of_prefixes(points, scale, np.array([len(points.x)]))[0]
        if self.reference is not None:
            found["error_mean"], found["error_sd"] = errors(draws, self.reference)
        if self.modes is not None:
            found |= visits(self.modes, draws)._asdict()
        return {n: found[n] for n in self.names} | {n: float(f(outcome.trace)) for n, f in self.own.items()}

    def history(self, outcome: Outcome, points: Points | None, scale: Array) -> list[dict[str, Any]]:
        """Accuracy after so and so many draws of each chain, and what had been spent by then."""
        if not outcome.usable:
            return []
        draws = _draws(outcome)
        n = draws.shape[1]
        ends = np.unique(np.geomspace(min(4, n), n, _CHECKPOINTS).astype(int))
        rows: list[dict[str, Any]] = []
        for end in ends:
            share = end / n
            spent = outcome.warm_gradients + share * (outcome.gradients - outcome.warm_gradients)
            seconds = outcome.warm_seconds + share * (outcome.seconds - outcome.warm_seconds)
            rows.append({"sampler": outcome.name, "seed": outcome.seed, "gradients": int(spent), "seconds": seconds})
            if self.reference is not None:
                rows[-1]["error_mean"], rows[-1]["error_sd"] = errors(draws[:, :end], self.reference)
        if points is not None:
            reached = np.array([max(int((points.seen <= end).sum()), 1) for end in ends])
            for row, value in zip(rows, ksd_of_prefixes(points, scale, reached), strict=True):
                row["ksd"] = value
        return rows


def _draws(outcome: Outcome) -> Array:
    assert outcome.trace is not None
    return outcome.trace.draws.astype(np.float64)
