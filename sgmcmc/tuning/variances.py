"""Variances in units of the right ones, from the exact gradients at the draws of one run, with no reference run.

Under exp(−U/T) the virial identity E[(y_j − c_j) (Sᵀ∇U)_j] = T holds along every axis j of y = S⁻¹θ, for any centre c. For a
Gaussian target the left side divided by T is the variance of the draws over that of the target. The mean over all axes is the
configurational temperature, which hides one axis that is twice too wide among 25 that are right.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.bias.gradients import gradient_at, some_rows
from sgmcmc.integrators.preconditioning import in_units, slope_in_units

__all__ = ["Ratios", "along_ends", "errors_of_means", "evaluated", "excess", "in_scale_units", "variance_ratios"]

Array = NDArray[np.float64]

MOST_ROWS, MOST_AXES, LARGEST = 20_000, 50, 256
FALSE_ALARMS = 0.01  # of all axes together
BATCHES = 32  # of draws, for standard errors


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
    y, s = _halves(y), _halves(s)
    v = _centered(y) * s
    some = np.unique(np.linspace(0, v.shape[2] - 1, min(v.shape[2], MOST_AXES)).astype(int))
    found = np.concatenate((v.mean(axis=2, keepdims=True), v[:, :, some], along_ends(y, s)), axis=2)
    values, errors = found.mean(axis=(0, 1)), errors_of_means(found)
    return Ratios(values[1:], errors[1:], float(values[0]), float(errors[0]))


def along_ends(y: Array, s: Array) -> Array:
    """Values (chain, draw, 2) whose means are the ratios along the stiffest and the softest direction, by their slopes.

    Where coordinates depend on each other, a stiff direction that is hot and a soft one that is cold cancel along axes: SGNHT
    with batches of 64 of 1000 rows and h = 0.46 has ratios of 0.86 to 1.04 along 10 axes, and of 1.17 and 0.50 along these.
    Each half of the chains is measured along the directions that the other half gives: chosen by the same draws, they would
    look hot and cold by chance. Beyond 256 coordinates there are too few draws to find them.
    """
    if not 1 < y.shape[2] <= LARGEST:
        return np.empty((*y.shape[:2], 0))
    halves = np.array_split(np.arange(len(y)), 2)
    centered, found = _centered(y), []
    for own, other in (halves, halves[::-1]):
        slopes = s[other].reshape(-1, s.shape[2])
        moments = slopes.T @ slopes
        if not np.isfinite(moments).all():
            return np.full((*y.shape[:2], 2), np.nan)
        ends = np.linalg.eigh(moments)[1][:, [-1, 0]]
        found.append((centered[own] @ ends) * (s[own] @ ends))
    return np.concatenate(found)


def excess(ratios: Ratios, tolerance: float = 0.0, tolerance_of_mean: float = 0.0) -> float:
    """How far the worst ratio is from 1, signed, beyond its tolerance and what chance explains; 0 if none is, ∞ if unknown."""
    from scipy.stats import t

    q = float(t.ppf(1.0 - 0.5 * FALSE_ALARMS / len(ratios.axes), BATCHES - 1))
    values = np.append(ratios.axes, ratios.mean) - 1.0
    slack = np.append(q * ratios.errors + tolerance, 2.0 * ratios.error + tolerance_of_mean)
    beyond = np.abs(values) - slack
    if not np.isfinite(beyond).all():
        return np.inf
    worst = int(np.argmax(beyond))
    return float(np.sign(values[worst]) * max(0.0, beyond[worst]))


def in_scale_units(scale: Any, x: Array, g: Array) -> tuple[Array, Array]:
    """Draws and slopes in units of the scale."""
    return np.asarray(in_units(scale, x)), np.asarray(slope_in_units(scale, g))


def _halves(x: Array) -> Array:
    """One chain alone as two, its halves; several as they are."""
    n = x.shape[1] // 2
    return x if len(x) > 1 else x[:, : 2 * n].reshape(2, n, x.shape[2])


def _centered(y: Array) -> Array:
    """Draws minus the mean of the other chains: with the mean of the same draws, ratios would be too small by 1/ESS."""
    means = y.mean(axis=1, keepdims=True)
    return np.asarray(y - (means.sum(axis=0) - means) / (len(y) - 1), np.float64)


def errors_of_means(values: Array) -> Array:
    """Standard errors of the means of values (chain, draw, k) by batch means, 32 batches over all chains.

    For 50 axes at once they take a hundredth of the time of effective sample sizes, and a burst does not go unseen.
    """
    chains, n, k = values.shape
    per = max(1, min(BATCHES // chains, n // 2))
    size = n // per
    means = values[:, n - per * size :].reshape(chains * per, size, k).mean(axis=1)
    if len(means) < 2:
        return np.zeros(k)
    return np.asarray(means.std(axis=0, ddof=1) / np.sqrt(len(means)), np.float64)
