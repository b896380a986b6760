"""Temperatures of single coordinates: a mean over coordinates hides one that is far off.

The run leaves the mean of (θ_j − c_j) ∂U/∂θ_j in up to 64 segments of every chain (`Trace.by_coordinate`). Their scatter gives an
interval for each coordinate, of logarithms, as such means are skewed. It is widened for segments that are not independent, and
its level is 1 − α/d, so that with d coordinates, all of them right, a run is called wrong with probability α at most.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.bias.finding import BiasFinding, judged, longer, name_of
from sgmcmc.bias.quantiles import student_quantile

__all__ = ["TOLERANCE", "Intervals", "intervals", "mean_interval", "worst_coordinate"]

Array = NDArray[np.float64]

TOLERANCE = 0.2  # of the temperature of a single coordinate
FEWEST = 8  # segments of all chains together
MANY = 32  # chains, whose means are enough by themselves
WIDEST = 5.0  # half the length of an interval of logarithms that still says something
SLACK = 3.0  # standard errors that are added to the correlation of neighbouring segments


class Intervals(NamedTuple):
    """Of each coordinate: mean, and the ends of its interval."""

    value: Array
    low: Array
    high: Array


def intervals(values: Array, outside: float) -> Intervals | None:
    """Of values (chain, segment, k), each missing its interval with probability `outside`; None if there are too few."""
    x = values.mean(axis=1, keepdims=True) if len(values) >= MANY else values
    chains, segments, _ = x.shape
    n = chains * segments
    if n < FEWEST:
        return None
    with np.errstate(all="ignore"):
        mean = x.mean(axis=(0, 1))
        rest = x - mean
        squares = np.square(rest).sum(axis=(0, 1))
        fewer = _inflation(rest, squares)
        degrees = np.maximum(1.0, np.nan_to_num(n / fewer - 1.0, nan=1.0))
        t = np.array([student_quantile(outside, d) for d in degrees])
        wide = t * np.sqrt(squares / (n - 1) * fewer / n)
        factor = np.where(wide < WIDEST * mean, np.exp(wide / mean), np.inf)  # from 0 to infinity, if that wide
        above = mean > 0.0
        low = np.where(above, mean / factor, mean - wide)
        high = np.where(above, mean * factor, mean + wide)
    return Intervals(mean, low, high)


def _inflation(rest: Array, squares: Array) -> Array:
    """By how much correlation makes the variance of the mean larger: (1 + ρ)/(1 − ρ), ρ that of neighbouring segments.

    ρ is taken at the upper end of its own interval: a slow coordinate must not pass for many independent values.
    """
    chains, segments, k = rest.shape
    if segments == 1:
        return np.ones(k)
    rho = (rest[:, 1:] * rest[:, :-1]).sum(axis=(0, 1)) / squares * segments / (segments - 1)
    rho = np.clip(rho + SLACK / math.sqrt(chains * (segments - 1)), 0.0, 0.999)
    return np.asarray((1.0 + rho) / (1.0 - rho))


def mean_interval(trace: Any, outside: float = 0.05) -> tuple[float, float, float]:
    """The configurational temperature and its interval by segments; NaN unless every coordinate was measured."""
    found = trace.by_coordinate
    complete = found is not None and np.array_equal(found.coordinates, np.arange(found.coordinates.size))
    if not complete or found.coordinates.size == 0:
        return math.nan, math.nan, math.nan
    one = intervals(found.values.mean(axis=2, keepdims=True), outside)
    return (
        (math.nan, math.nan, math.nan) if one is None else (float(one.value[0]), float(one.low[0]), float(one.high[0]))
    )


def worst_coordinate(trace: Any, outside: float) -> BiasFinding | None:
    """The coordinate that is furthest off in units of its interval; `outside` is for all coordinates together."""
    if trace.by_coordinate is None:
        return None
    coordinates, values = trace.by_coordinate
    T = float(trace.info.get("temperature", 1.0))
    found = intervals(values, outside / max(coordinates.size, 1))
    if found is None or coordinates.size == 0:
        return None
    verdicts = [judged(a, b, T, TOLERANCE) for a, b in zip(found.low, found.high, strict=True)]
    worst = _worst(found, verdicts, T)
    value, low, high = (float(part[worst]) for part in found)
    advice = _advice(trace, int(coordinates[worst]), (value, low, high), verdicts[worst], T)
    return BiasFinding("configurational temperature, worst coordinate", value, low, high, verdicts[worst], advice)


def _worst(found: Intervals, verdicts: list[str], T: float) -> int:
    """Among those of the gravest verdict that which is off by most, in units of its interval."""
    graveness = {"good": 0, "unknown": 1, "not resolved": 1, "hot": 2, "cold": 2}
    with np.errstate(all="ignore"):
        off = np.where(found.value > T, found.value - T, T - found.value)
        half = np.where(found.value > T, found.value - found.low, found.high - found.value)
        score = np.nan_to_num(off / half, nan=0.0, posinf=1e300)
    grave = np.array([graveness[v] for v in verdicts])
    return int(np.argmax(np.where(grave == grave.max(), score, -1.0)))


def _advice(trace: Any, coordinate: int, interval: tuple[float, float, float], verdict: str, T: float) -> str:
    value, low, high = interval
    of_theta = trace.info.get("keep") is None and coordinate < trace.dim  # else the names are those of what was kept
    name = name_of(trace, coordinate) if of_theta else f"theta[{coordinate}]"
    if verdict == "good":
        return "No coordinate is off by more than a fifth."
    if verdict in ("unknown", "not resolved"):
        return f"The interval of {name} is too wide to say; {longer(value, high - value, T, TOLERANCE)}."
    mean = float(np.mean(trace.configurational_temperature))
    cure = (
        "its gradient may be wrong or its noise larger than elsewhere: look at it, or take a smaller step"
        if verdict == "hot"
        else "warm up longer, then look at its gradient, or take a smaller step"
    )
    return (
        f"{name} is {verdict}: its configurational temperature is {value:.3g} ({low:.3g} to {high:.3g}) for a target of "
        f"{T:g}, while the mean over coordinates is {mean:.4g}; {cure}"
    )
