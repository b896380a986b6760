"""The check of a winner: a run on fresh seeds, judged by the warnings of `sample` and by its variances.

A score of the race does not suffice: the best of many noisy scores is partly luck, and its chains are short.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sgmcmc import diagnostics
from sgmcmc.bias.health import problems
from sgmcmc.potentials import rows_of
from sgmcmc.tuning.variances import MOST_ROWS, Ratios, evaluated, excess, in_scale_units, variance_ratios

__all__ = ["CheckResult", "Problem", "check_trace"]

POINTS, MOST_ROW_GRADIENTS, FEWEST_POINTS = 4000, 20_000_000, 200
TOLERANCE, TOLERANCE_OF_MEAN = 0.10, 0.05  # of a variance, beyond what chance explains
BURST, TIMES_USUAL = 0.3, 3.0  # a variance too large by so much, with an error so many times the usual one
MIXED, USUAL_DRAWS = 1.1, 1000  # rank-normalised R̂, folded too (chains that differ in width), of a run of so many draws
_SHOWN = 50


class Problem(NamedTuple):
    """A verdict in the terms of `sample`, and the figure behind it."""

    verdict: str
    why: str


class CheckResult(NamedTuple):
    """The result of one check run; it passed if there are no problems."""

    problems_found: list[Problem]
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """All verdicts, each once, or "good"."""
        return ", ".join(dict.fromkeys(c.verdict for c in self.problems_found)) if self.problems_found else "good"

    @property
    def why(self) -> str:
        return "; ".join(c.why for c in self.problems_found)

    @property
    def blames_the_step(self) -> bool:
        """Whether a shorter step can help; chains that only mix slowly need a longer one."""
        return any(c.verdict != "not mixed" for c in self.problems_found)


def check_trace(trace: Any, scale: Any) -> CheckResult:
    """The problems of a run, and its smallest and largest variance along an axis in units of the right one."""
    rows = max(min(rows_of(trace.model), MOST_ROWS), 1)
    y, s = in_scale_units(scale, *evaluated(trace, max(FEWEST_POINTS, min(POINTS, MOST_ROW_GRADIENTS // rows))))
    with np.errstate(all="ignore"):
        ratios = variance_ratios(y, s)
        told = [f for f in problems(trace) if f.verdict != "not mixed"]  # which depends on the length of the run
        found = [Problem(f.verdict, f.advice.split("; ")[0]) for f in told]  # without what to do about it
        found += _of_variances(ratios) + _of_mixing(trace)
    return CheckResult(found, float(ratios.axes.min()), float(ratios.axes.max()))


def _of_variances(ratios: Ratios) -> list[Problem]:
    off = excess(ratios, TOLERANCE, TOLERANCE_OF_MEAN)
    bursts = (ratios.axes > 1.0 + BURST) & (ratios.errors > TIMES_USUAL * np.median(ratios.errors))
    if off == 0.0 and bursts.any():
        k = int(np.argmax(np.where(bursts, ratios.axes, 0.0)))
        why = f"along one axis it moves in bursts, with {ratios.axes[k]:.2f} ± {ratios.errors[k]:.2g} of the right variance"
        return [Problem("unstable", why)]
    if off == 0.0:
        return []
    if not np.isfinite(off):
        return [Problem("unstable", "gradients at its draws are not finite")]
    why = f"variances are {ratios.axes.min():.2f} to {ratios.axes.max():.2f} of the right ones, {ratios.mean:.2f} in the mean"
    return [Problem("hot" if off > 0.0 else "cold", why)]


def _of_mixing(trace: Any) -> list[Problem]:
    """Whether chains would still disagree after 1000 draws, as many as `sample` makes: R̂² − 1 goes with 1/draws."""
    some = np.unique(np.linspace(0, trace.dim - 1, min(trace.dim, _SHOWN)).astype(int))
    taken = np.unique(np.linspace(0, trace.n_draws - 1, min(trace.n_draws, USUAL_DRAWS)).astype(int))
    values = [diagnostics.r_hat(np.asarray(trace.draws[:, taken, i], np.float64)) for i in some]
    worst = float(np.nanmax(values)) if np.isfinite(values).any() else 1.0
    allowed = np.sqrt(1.0 + (MIXED**2 - 1.0) * max(1.0, USUAL_DRAWS / trace.n_draws))
    why = f"R̂ by ranks is up to {worst:.3g} after {trace.n_draws} draws"
    return [Problem("not mixed", why)] if worst > allowed else []
