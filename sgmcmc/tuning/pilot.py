"""The pilot: where the posterior is, how wide in each coordinate, and how steep at most, before anything is tuned.

The scale comes from the second moment of the gradient: under exp(−U/T), E[∇U ∇Uᵀ] = T E[∇²U], so √(T/E[(∂ᵢU)²]) is the spread of
coordinate i at T = 1 with the others held. It is measured in rounds, each with the scale of the round before, and is frozen
then: a fixed scale is a change of units and leaves the law as it is, with no correction term.

Where coordinates depend on each other, units do not help: a chain needs of the order of √κ steps for one independent draw, κ the
ratio of the largest eigenvalue of the Hessian to the smallest, its diagonal made 1. If that is more than two products with a
matrix cost, the scale becomes a matrix S, in rounds, too: with M = E[Sᵀ∇U (Sᵀ∇U)ᵀ]/T, drawn towards a multiple of the identity, S
becomes S M^(−1/2). An axis along which next to nothing pulls thus becomes longer by a small factor in each round, and only as
far as the gradient that is met on the way allows: the Hessian at the mode would let it go to where other curvatures are.
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
from sgmcmc.trace import Trace

__all__ = ["Pilot", "find_scale"]

Array = NDArray[np.float64]
MOST_ROWS = 5000
_ROUNDS, _DRAWS, _DESCENT = 4, 64, 400
_HALVINGS, _HOT = 6, 1.5
_LARGEST, _COST = 256, 32  # coordinates of a matrix; the row of a matrix costs as much as 1/32 of a usual step
_TURNS, _PER_AXIS = 6, 10  # rounds of a matrix; draws of each for every coordinate


class Pilot(NamedTuple):
    """`theta` (chain, dim) are places to start from, `scale` the units, (dim,) or (dim, dim), `steepest` the largest curvature
    in them."""

    theta: Array
    scale: Array
    steepest: float


def find_scale(
    model: Any,
    *,
    chains: int = 4,
    init: Any = None,
    scale: Any = None,
    temperature: float = 1.0,
    seed: int = 0,
    matrix: bool = True,
) -> Pilot:
    """Go downhill from `init`, then run short chains and measure E[(∂U)²] along them, in four rounds.

    scale : units that are known already; only places and steepness are looked for then.
    matrix : whether the scale may be one, where coordinates depend on each other (up to 256 of them).
    Takes some thousand gradients, of at most 5000 rows each.
    """
    chains, dim = checks.integer("chains", chains, 1), dim_of(model)
    rows = some_rows(model, MOST_ROWS)

    def gradient(theta: Array) -> Array:
        return gradient_at(model, theta, rows)

    start = np.zeros(dim) if init is None else checks.finite_array("init", init)
    theta = _downhill(gradient, np.array(np.broadcast_to(start, (dim,)))) if start.ndim < 2 else start[0].copy()
    units = _first_units(gradient, theta) if scale is None else _known(scale, dim)
    batch = None if rows is None else rows.size
    options: dict[str, Any] = {"batch_size": batch, "progress": False, "warn": False, "threads": 1, "chains": chains}
    options |= {"warmup": 5 * _DRAWS, "thin": 5}

    def run(places: Array, units: Array, number: int, draws: int = _DRAWS) -> Trace:
        """Short chains; if they are hot, as where curvature grows away from `places`, again with half the step."""
        step = 0.7 / np.sqrt(_steepest(gradient, places, units))
        for k in range(_HALVINGS):
            sampler = SGHMC(0.5**k * step, 0.7 / step, temperature=temperature, scale=units)
            last = k == _HALVINGS - 1
            try:
                trace = sample(model, sampler, draws, seed=seed + number, init=places, **options)
            except checks.DivergenceError:
                if last:
                    raise
                continue
            if last or _heat(gradient, trace.draws) < _HOT * temperature:
                break
        return trace

    places = np.tile(theta, (chains, 1))
    for k in range(_ROUNDS):
        trace = run(places, units, k)
        places = np.asarray(trace.final["theta"], np.float64)
        if scale is None:
            flat = trace.draws.reshape(-1, dim)[:: max(1, chains * _DRAWS // 128)]
            square = np.mean([gradient(x) ** 2 for x in flat], axis=0)
            units = np.sqrt(temperature / np.maximum(square, 1e-300))
    if scale is None and matrix and 1 < dim <= _LARGEST and _dependence(gradient, places, units) > 1.5 + dim / _COST:
        S = np.diag(units)
        for k in range(_TURNS):
            trace = run(places, S, _ROUNDS + k, -(-_PER_AXIS * dim // chains))
            places = np.asarray(trace.final["theta"], np.float64)
            S = _turned(S, np.array([gradient(x) for x in _flat(np.asarray(trace.draws, np.float64))]), temperature)
        units = S
    return Pilot(places, units, _steepest(gradient, places, units))


def _steepest(gradient: Any, places: Array, units: Array) -> float:
    """The largest curvature at any of these places."""
    return max([1e-300, *(largest_curvature(gradient, x, units) for x in places)])


def _heat(gradient: Any, draws: Array) -> float:
    """The configurational temperature of the draws."""
    few = np.asarray(draws[:, ::8], np.float64)
    away = few - few.mean(axis=(0, 1))
    return float(np.mean([x @ gradient(y) for x, y in zip(_flat(away), _flat(few), strict=True)]) / draws.shape[-1])


def _flat(x: Array) -> Array:
    return x.reshape(-1, x.shape[-1])


def _known(scale: Any, dim: int) -> Array:
    given = np.asarray(scale, np.float64)
    return given if given.ndim == 2 else np.array(np.broadcast_to(given, (dim,)))


def _dependence(gradient: Any, places: Array, units: Array) -> float:
    """√κ of the mean Hessian at these places, its diagonal made 1; 0 if it is not positive definite, as between modes."""
    e = 1e-4 * np.diag(units)
    columns = [np.mean([gradient(x + step) - gradient(x - step) for x in places], axis=0) for step in e]
    H = units * np.column_stack(columns).T
    sizes = np.sqrt(np.maximum(np.diag(H), 0.0))
    if not np.isfinite(H).all() or not (sizes > 0.0).all():
        return 0.0
    widths = np.linalg.eigvalsh(0.5 * (H + H.T) / np.outer(sizes, sizes))
    return float(np.sqrt(widths[-1] / widths[0])) if widths[0] > 1e-12 * widths[-1] else 0.0


def _turned(S: Array, slopes: Array, temperature: float) -> Array:
    """S M^(−1/2), with M from gradients at draws that were made with S."""
    g = slopes @ S
    n, dim = g.shape
    M = g.T @ g / (n * temperature)
    common = max(float(np.trace(M)) / dim, 1e-300)
    widths, Q = np.linalg.eigh((n * M + dim * common * np.eye(dim)) / (n + dim))
    return np.asarray(S @ (Q / np.sqrt(widths)) @ Q.T)


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
