"""A finding: one number about a run, its interval, what it means, and what to do.

An interval inside the tolerance is good, one outside of it is a problem, and any other is not resolved.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

__all__ = ["PROBLEMS", "BiasFinding", "judged", "longer", "name_of", "student"]

PROBLEMS = ("running away", "unstable", "not mixed", "hot", "cold", "biased")

# Two-sided quantiles of Student's law at 95 % and 99.9 %, so that a run does not import scipy.
_DEGREES = np.array([1, 2, 3, 4, 5, 7, 10, 15, 30, 60, 1000])
_QUANTILES = {
    0.95: np.array([12.706, 4.303, 3.182, 2.776, 2.571, 2.365, 2.228, 2.131, 2.042, 2.000, 1.962]),
    0.999: np.array([636.62, 31.599, 12.924, 8.610, 6.869, 5.408, 4.587, 4.073, 3.646, 3.460, 3.300]),
}


class BiasFinding(NamedTuple):
    """`low` and `high` bound a 95 % interval, NaN where there is none; `verdict` is "good", "not resolved" (the interval
    is too wide to say), "unknown" (not measured) or one of PROBLEMS."""

    quantity: str
    value: float
    low: float
    high: float
    verdict: str
    advice: str

    @property
    def is_problem(self) -> bool:
        """Whether the verdict is one of PROBLEMS."""
        return self.verdict in PROBLEMS


def student(values: Any, level: float = 0.95) -> tuple[float, float]:
    """Mean of independent values and the half-width of its interval; NaN for fewer than two."""
    x = np.asarray(values, float)
    x = x[np.isfinite(x)]
    if x.size < 2:
        return (float(x[0]) if x.size else math.nan), math.nan
    # Between two entries of the table, the quantile of fewer degrees of freedom: an interval is never too short.
    place = int(np.searchsorted(_DEGREES, x.size - 1, side="right")) - 1
    return float(x.mean()), float(_QUANTILES[level][place] * x.std(ddof=1) / math.sqrt(x.size))


def judged(low: float, high: float, T: float, tolerance: float) -> str:
    """Of a temperature: "good" if all of its interval is within the tolerance, "hot" or "cold" if none of it is."""
    if math.isnan(low) or math.isnan(high):
        return "unknown"
    if (1.0 - tolerance) * T <= low and high <= (1.0 + tolerance) * T:
        return "good"
    if low > (1.0 + tolerance) * T:
        return "hot"
    return "cold" if high < (1.0 - tolerance) * T else "not resolved"


def longer(value: float, wide: float, T: float, tolerance: float) -> str:
    """How much longer a run must be for its interval to fit into the tolerance."""
    slack = tolerance * T - abs(value - T)
    times = min(wide / slack, 1e9) ** 2 if slack > 0.0 else math.inf
    return f"run about {math.ceil(times)} times as long" if times <= 100.0 else "run much longer"


def name_of(trace: Any, coordinate: int) -> str:
    """The name of a coordinate."""
    return str(trace.names[coordinate])
