"""The pilot: where the posterior is, how wide in each coordinate, and how steep at most, before anything is tuned.

The scale comes from the second moment of the gradient: under exp(−U/T), E[(∂ᵢU)²] = T E[∂ᵢᵢU], so √(T/E[(∂ᵢU)²]) is the spread of
coordinate i at T = 1 with the others held. It is measured in rounds, each with the scale of the round before, and is frozen
then: a fixed scale is a change of units and leaves the law as it is, with no correction term.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc import checks
from sgmcmc.bias.gradients import gradient_at, some_rows
from sgmcmc.bias.stability import largest_curvature
from sgmcmc.potentials import dim_of
from sgmcmc.presets import SGHMC
from sgmcmc.sampling import sample

__all__ = ["Pilot", "find_scale"]

Array = NDArray[np.float64]
MOST_ROWS = 5000
_ROUNDS, _DRAWS, _DESCENT = 4, 64, 400


class Pilot(NamedTuple):
    """`theta` (chain, dim) are places to start from, `scale` (dim,) the units, `steepest` the largest curvature in them."""

    theta: Array
    scale: Array
    steepest: float


def find_scale(
    model: Any, *, chains: int = 4, init: Any = None, scale: Any = None, temperature: float = 1.0, seed: int = 0
) -> Pilot:
    """Go downhill from `init`, then run short chains and measure E[(∂U)²] along them, in four rounds.

    scale : units that are known already; only places and steepness are looked for then.
    Takes some thousand gradients, of at most 5000 rows each.
    """
    chains, dim = checks.integer("chains", chains, 1), dim_of(model)
    rows = some_rows(model, MOST_ROWS)

    def gradient(theta: Array) -> Array:
        return gradient_at(model, theta, rows)

    start = np.zeros(dim) if init is None else checks.finite_array("init", init)
    theta = _downhill(gradient, np.array(np.broadcast_to(start, (dim,)))) if start.ndim < 2 else start[0].copy()
    units = _first_units(gradient, theta) if scale is None else np.array(np.broadcast_to(scale, (dim,)), float)
    places = np.tile(theta, (chains, 1))
    for k in range(_ROUNDS):
        steepest = max(largest_curvature(gradient, places[0], units), 1e-300)
        sampler = SGHMC(0.7 / np.sqrt(steepest), float(np.sqrt(steepest)), temperature=temperature, scale=units)
        batch = None if rows is None else rows.size
        options: dict[str, Any] = {"batch_size": batch, "progress": False, "warn": False, "threads": 1}
        trace = sample(
            model, sampler, _DRAWS, warmup=5 * _DRAWS, chains=chains, thin=5, seed=seed + k, init=places, **options
        )
        places = np.asarray(trace.final["theta"], np.float64)
        if scale is None:
            flat = trace.draws.reshape(-1, dim)[:: max(1, chains * _DRAWS // 128)]
            square = np.mean([gradient(x) ** 2 for x in flat], axis=0)
            units = np.sqrt(temperature / np.maximum(square, 1e-300))
    return Pilot(places, units, max(largest_curvature(gradient, places[0], units), 1e-300))


def _downhill(gradient: Any, theta: Array) -> Array:
    """Near a mode, by Adam with a step that shrinks: robust where curvatures differ by orders of magnitude."""
    m, v, best = np.zeros_like(theta), np.zeros_like(theta), theta
    pace = 0.1 * max(1.0, float(np.abs(theta).max()))
    for t in range(1, _DESCENT + 1):
        g = gradient(theta)
        if not np.isfinite(g).all():
            return best
        best = theta
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
        theta = theta - pace * (1.0 - t / (_DESCENT + 1)) * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.99**t)) + 1e-300)
    return theta


def _first_units(gradient: Any, theta: Array) -> Array:
    """1/√ of the curvature along each axis; of many axes, by random directions (Hutchinson)."""
    dim, e = theta.size, 1e-4
    if dim <= 256:
        bends = np.array([(gradient(theta + d) - gradient(theta - d))[i] for i, d in enumerate(e * np.eye(dim))])
    else:
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (64, dim))
        bends = np.mean([z * (gradient(theta + e * z) - gradient(theta - e * z)) for z in signs], axis=0)
    bends = np.abs(bends) / (2.0 * e)
    usual = float(np.median(bends[bends > 0.0])) if (bends > 0.0).any() else 1.0
    return np.asarray(1.0 / np.sqrt(np.maximum(bends, 1e-6 * usual)))
