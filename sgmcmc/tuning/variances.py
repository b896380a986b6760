"""Variances in units of the right ones, from the exact gradients at the draws of one run, with no reference run.

Under exp(−U/T) the virial identity E[(y_j − c_j) (Sᵀ∇U)_j] = T holds along every axis j of y = S⁻¹θ, for any centre c. For a
Gaussian target the left side divided by T is the variance of the draws over that of the target. The mean over all axes is the
configurational temperature, which hides one axis that is twice too wide among 25 that are right.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc import diagnostics
from sgmcmc.bias.gradients import gradient_at, some_rows
from sgmcmc.frames import in_units, slope_in_units

__all__ = ["Ratios", "along_ends", "evaluated", "excess", "in_frame", "variance_ratios"]

Array = NDArray[np.float64]

MOST_ROWS, MOST_AXES, LARGEST = 20_000, 50, 256
FALSE_ALARMS = 0.01  # of all axes together


class Ratios(NamedTuple):
    """The variance over the right one along each axis looked at, and in the mean over all axes, with standard errors."""

    axes: Array
    errors: Array
    mean: float
    error: float


def evaluated(trace: Any, points: int) -> tuple[Array, Array]:
    """At most `points` draws, evenly spaced, (chain, draw, dim), and ∇U/T at them, over at most 20,000 rows."""
    chains, n, dim = trace.draws.shape
    taken = np.unique(np.linspace(0, n - 1, min(n, max(points // chains, 2))).astype(int))
    x = np.asarray(trace.draws[:, taken], np.float64)
    rows = some_rows(trace.model, MOST_ROWS)
    g = np.stack([gradient_at(trace.model, row, rows) for row in x.reshape(-1, dim)]).reshape(x.shape)
    return x, g / float(trace.info.get("temperature", 1.0))


def variance_ratios(y: Array, s: Array) -> Ratios:
    """From draws y (chain, draw, dim) and slopes s, both in units of the scale: along up to 50 axes and two directions more."""
    v = _centered(y) * s
    some = np.unique(np.linspace(0, v.shape[2] - 1, min(v.shape[2], MOST_AXES)).astype(int))
    axes = [_mean(v[:, :, j]) for j in some]
    found = axes + along_ends(y, s)
    return Ratios(np.array([m for m, _ in found]), np.array([e for _, e in found]), *_mean(v.mean(axis=2)))


def along_ends(y: Array, s: Array) -> list[tuple[float, float]]:
    """The ratios along the stiffest and the softest direction, where slopes are largest and smallest, and their errors.

    Where coordinates depend on each other, a stiff direction that is hot and a soft one that is cold cancel along axes: SGNHT with
    batches of 64 of 1000 rows and h = 0.46 has ratios of 0.86 to 1.04 along 10 axes, and of 1.17 and 0.50 along these. Each half of
    the chains is measured along the directions that the other half gives: chosen by the same draws, they would look hot and cold
    by chance. Beyond 256 coordinates there are too few draws to find them.
    """
    if not 1 < y.shape[2] <= LARGEST:
        return []
    parts = np.array_split(np.arange(len(y)), 2) if len(y) > 1 else [np.arange(1), np.arange(1)]
    centered, found = _centered(y), []
    for own, other in (parts, parts[::-1]):
        ends = np.linalg.svd(s[other].reshape(-1, s.shape[2]), full_matrices=False)[2][[0, -1]].T
        found.append((centered[own] @ ends) * (s[own] @ ends))
    both = np.concatenate(found)
    return [_mean(both[:, :, k]) for k in (0, 1)]


def excess(ratios: Ratios, tolerance: float = 0.0, tolerance_of_mean: float = 0.0) -> float:
    """How far the worst ratio is from 1, with its sign, beyond its tolerance and what chance explains; 0 if none is."""
    q = NormalDist().inv_cdf(1.0 - 0.5 * FALSE_ALARMS / len(ratios.axes))
    values = np.append(ratios.axes, ratios.mean) - 1.0
    slack = np.append(q * ratios.errors + tolerance, 2.0 * ratios.error + tolerance_of_mean)
    beyond = np.abs(values) - slack
    worst = int(np.argmax(beyond))
    return float(np.sign(values[worst]) * max(0.0, beyond[worst]))


def in_frame(scale: Any, x: Array, g: Array) -> tuple[Array, Array]:
    """Draws and slopes in units of the scale."""
    return np.asarray(in_units(scale, x)), np.asarray(slope_in_units(scale, g))


def _centered(y: Array) -> Array:
    """Draws minus the mean of the other chains: with the mean of the same draws, ratios would be too small by 1/ESS."""
    means = y.mean(axis=1, keepdims=True)
    others = (means.sum(axis=0) - means) / (len(y) - 1) if len(y) > 1 else means
    return np.asarray(y - others, np.float64)


def _mean(values: Array) -> tuple[float, float]:
    error = diagnostics.mcse(values)
    return float(values.mean()), float(error) if np.isfinite(error) else 0.0
