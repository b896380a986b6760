"""Runaway: θ that diverges slowly, because the gradient has the wrong sign or the posterior is improper.

E[(θ − c)·∇U] = dT > 0 holds for any stationary chain, so a negative mean is suspicious. A chain that moves to a far mode has one
too. The model tells them apart: along a straight line downhill, the potential of a proper posterior rises in the end.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.bias.finding import BiasFinding
from sgmcmc.bias.gradients import gradient_at, some_rows

__all__ = ["falls_for_ever", "runaway"]

Array = NDArray[np.float64]

FAR = 1e15  # no parameter in sensible units is so large
ELSEWHERE = 1e6  # where a gradient that overflows is looked at instead
DISTANCES = (1e1, 1e3, 1e6, 1e9)  # in units of |θ|, 1 at least
MOST_ROWS = 20_000


def runaway(trace: Any) -> BiasFinding | None:
    """A finding if half of the chains are suspect, and the potential falls without end from the furthest."""
    theta = np.asarray(trace.final.get("theta", np.empty((0, 0))), np.float64)
    model = trace.model if trace.model is not None else getattr(trace.rerun, "model", None)
    if theta.size == 0 or model is None or len(theta) != trace.chains:
        return None
    reach = np.abs(theta).max(axis=1)
    measured = np.asarray(trace.configurational_temperature)
    suspect = (measured < 0.0) | (reach > FAR)
    if 2 * int(suspect.sum()) < len(theta):
        return None
    furthest = int(np.argmax(np.where(suspect, reach, -1.0)))
    if not falls_for_ever(model, theta[furthest]):
        return None
    said = (
        f"theta runs away from its start (|theta| up to {reach[furthest]:.1e}) and U keeps falling on its way; the gradient "
        "may have the wrong sign (give the gradient of -log p, not of log p), or the posterior may be improper"
    )
    return BiasFinding("largest |theta|", float(reach[furthest]), math.nan, math.nan, "running away", said)


def falls_for_ever(model: Any, theta: Array) -> bool:
    """Whether U falls all along the line of steepest descent from θ, as far as its gradient is finite."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return _falls(model, np.asarray(theta, np.float64))
        except Exception:  # a user's gradient that fails there tells nothing
            return False


def _falls(model: Any, theta: Array) -> bool:
    rows = some_rows(model, MOST_ROWS)
    slope = gradient_at(model, theta, rows)
    if not np.isfinite(slope).all():
        theta = theta * (ELSEWHERE / np.abs(theta).max())
        slope = gradient_at(model, theta, rows)
    if not np.isfinite(slope).all() or not slope.any():
        return False
    downhill = -_unit(slope)
    far = max(1.0, float(np.abs(theta).max()))
    slopes = [gradient_at(model, theta + k * far * downhill, rows) for k in DISTANCES]
    forces = [-float(_unit(s) @ downhill) if s.any() else 0.0 for s in slopes if np.isfinite(s).all()]
    return len(forces) > 0 and all(force > 0.0 for force in forces)


def _unit(x: Array) -> Array:
    """x/|x|, also where squares overflow or underflow."""
    x = x / np.abs(x).max()
    return np.asarray(x / np.linalg.norm(x))
