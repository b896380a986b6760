"""Stability margin: the longest step that is stable in the stiffest direction, divided by the step that was taken.

With λ the largest eigenvalue of the Hessian of U in units of `scale` and k the largest K'', a splitting is stable up to
h = 2/√(λk), the Euler scheme up to σ_p/λ (or the former, if that is less), overdamped dynamics up to 2/(λσ_θ).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.bias.finding import BiasFinding
from sgmcmc.bias.gradients import gradient_at, some_rows
from sgmcmc.bias.rerun import Rerun
from sgmcmc.integrators import is_explicit
from sgmcmc.integrators.preconditioning import from_units, slope_in_units
from sgmcmc.kinetics import Overdamped, curvature

__all__ = ["largest_curvature", "longest_step", "stability"]

Array = NDArray[np.float64]

ITERATIONS, MOST_ROWS, POINTS = 25, 20_000, 3
NARROW = 1.25


def stability(trace: Any, model: Any, rerun: Rerun | None) -> BiasFinding:
    """The margin at the stiffest of a few draws; a problem below 1.25."""
    name = "stability margin of the step"
    if model is None or rerun is None or rerun.step_size is None or trace.moments is not None:
        why = "The trace does not know its sampler and model, or its step size changes; make it by sample with a constant one."
        return BiasFinding(name, math.nan, math.nan, math.nan, "unknown", why)
    flat = trace.draws.reshape(-1, trace.dim)
    points = [np.asarray(flat[i], np.float64) for i in np.linspace(0, len(flat) - 1, POINTS).astype(int)]
    rows, scale = some_rows(model, MOST_ROWS), rerun.sampler.scale
    steepest = max(largest_curvature(lambda x: gradient_at(model, x, rows), point, scale) for point in points)
    if not steepest > 0.0:
        return BiasFinding(name, math.inf, math.nan, math.nan, "good", "No direction pulls back: any step is stable.")
    margin = longest_step(rerun.sampler, steepest) / rerun.step_size
    if margin < NARROW:
        better = 0.5 * margin * rerun.step_size
        said = f"The step is at the edge of stability: take {better:.2g}, or give scale= the posterior's spread."
        return BiasFinding(name, margin, math.nan, math.nan, "unstable", said)
    return BiasFinding(name, margin, math.nan, math.nan, "good", "The step resolves the stiffest direction.")


def largest_curvature(gradient: Any, theta: Array, scale: Any) -> float:
    """The largest eigenvalue of Sᵀ H S, S the scale, by power iteration on differences of the gradient."""
    v = np.random.default_rng(0).standard_normal(theta.size)
    value = 0.0
    for _ in range(ITERATIONS):
        v /= np.linalg.norm(v)
        e = from_units(scale, 1e-4 * v)
        change = slope_in_units(scale, gradient(theta + e) - gradient(theta - e)) / 2e-4
        before, value = value, float(v @ change)
        if not np.isfinite(change).all() or np.linalg.norm(change) == 0.0 or abs(value - before) < 1e-3 * abs(value):
            break
        v = change
    return value


def longest_step(sampler: Any, steepest: float) -> float:
    """The longest stable step for a spring of this stiffness."""
    if isinstance(sampler.kinetics, Overdamped):
        return 2.0 / (steepest * float(sampler.sigma_theta))
    with np.errstate(all="ignore"):
        bend = np.nanmax([float(curvature(sampler.kinetics, p)) for p in np.geomspace(1e-6, 100.0, 200)])
    splitting = 2.0 / math.sqrt(steepest * float(bend))
    return min(splitting, float(sampler.sigma_p) / steepest) if is_explicit(sampler.integrator) else splitting
