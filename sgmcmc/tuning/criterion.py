"""Criteria: how good the draws of a run are, as one number, smaller is better.

The default estimates the squared error that the run has made, bias and scatter together, in units of the posterior's variance:

    KSD²_U/D + 1/ESS + max(0, |T̂/T − 1| − 2 se)²

KSD_U is the kernel Stein discrepancy without its diagonal (0 in the mean for independent draws of the target) and D that
diagonal, so the first term is 0 for right draws and grows with any bias; the kernel is (d + |x − y|²)^(−1/2) in units of the
common scale. The last is the configurational temperature at the draws. All are of runs that cost the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc import diagnostics
from sgmcmc.bias.gradients import gradient_at, some_rows
from sgmcmc.frames import in_units, slope_in_units

__all__ = ["Criterion", "discrepancy", "mixing"]

Array = NDArray[np.float64]
Criterion = Callable[[Any], float]

POINTS, MOST_ROWS = 600, 20_000
_SHOWN = 50  # coordinates whose effective sample size is computed


def mixing(trace: Any) -> float:
    """1/ESS of the worst of up to 50 parameters: sees how fast a chain moves, and not where."""
    some = np.unique(np.linspace(0, trace.dim - 1, min(trace.dim, _SHOWN)).astype(int))
    sizes = [diagnostics.ess(np.asarray(trace.draws[:, :, i], np.float64)) for i in some]
    worst = float(np.min(sizes))
    return 1.0 / worst if worst > 0.0 else math.inf


def discrepancy(scale: Any = 1.0, points: int = POINTS) -> Criterion:
    """The default criterion, in units of `scale`; it evaluates the gradient, over at most 20,000 rows, at `points` draws."""

    def criterion(trace: Any) -> float:
        T = float(trace.info.get("temperature", 1.0))
        chains, n, dim = trace.draws.shape
        taken = np.unique(np.linspace(0, n - 1, min(n, max(points // chains, 2))).astype(int))
        x = np.asarray(trace.draws[:, taken], np.float64)
        rows = some_rows(trace.model, MOST_ROWS)
        g = np.stack([gradient_at(trace.model, row, rows) for row in x.reshape(-1, dim)]).reshape(x.shape) / T
        return _stein(in_units(scale, x), -slope_in_units(scale, g)) + mixing(trace) + _temperature(x, g) ** 2

    return criterion


def _stein(x: Array, s: Array) -> float:
    """KSD²_U/D of draws (chain, draw, dim) with scores, 0 where it is negative."""
    from sgmcmc.testing.stein import stein

    dim = x.shape[-1]
    flat, score = x.reshape(-1, dim) - x.mean(axis=(0, 1)), s.reshape(-1, dim)
    u = stein(flat, score, flat, score, math.sqrt(dim))
    n, diagonal = len(u), float(np.trace(u))
    off = (float(u.sum()) - diagonal) / (n * (n - 1))
    return max(off, 0.0) / (diagonal / n) if math.isfinite(off) else math.inf


def _temperature(x: Array, g: Array) -> float:
    """How far E[(θ − c)·∇U]/(dT) is from 1, beyond two standard errors."""
    center = x.mean(axis=(0, 1))
    values = ((x - center) * g).mean(axis=2)
    error = diagnostics.mcse(values)
    return max(0.0, abs(float(values.mean()) - 1.0) - 2.0 * (error if math.isfinite(error) else 0.0))
