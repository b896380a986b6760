"""Measures of a run: what its draws are worth, and how far they are from the truth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc import diagnostics
from sgmcmc.comparison.reference import Reference
from sgmcmc.potentials import gradient_of

__all__ = ["Points", "errors", "ksd_of_prefixes", "points_of", "scores_at", "worth"]

Array = NDArray[np.float64]


def worth(draws: Array) -> dict[str, float]:
    """Effective sample sizes and R̂ of draws (chain, draw, dim), each that of the worst parameter."""
    columns = [draws[:, :, j] for j in range(draws.shape[2])]
    return {
        "ess_bulk": _least([diagnostics.ess(x, "bulk") for x in columns]),
        "ess_tail": _least([diagnostics.ess(x, "tail") for x in columns]),
        "r_hat": -_least([-diagnostics.r_hat(x) for x in columns]),
    }


def _least(values: list[float]) -> float:
    """NaN if any is: a parameter of which nothing can be said is worse than one of which something can."""
    return float(np.min(values))


def errors(draws: Array, reference: Reference) -> tuple[float, float]:
    """Of mean and sd, in units of the true sd, as root mean squares over the parameters."""
    flat = draws.reshape(-1, draws.shape[-1])
    mean = (flat.mean(axis=0) - reference.mean) / reference.sd
    sd = flat.std(axis=0, ddof=1) / reference.sd - 1.0 if len(flat) > 1 else np.full(flat.shape[1], np.nan)
    return float(np.sqrt(np.mean(mean**2))), float(np.sqrt(np.mean(sd**2)))


class Points(NamedTuple):
    """Some draws in the order of time, their scores ∇ log π, and how many draws of each chain were seen until each."""

    x: Array
    s: Array
    seen: NDArray[np.intp]


def points_of(model: Any, draws: Array, temperature: float, most: int) -> Points:
    """At most `most` of the draws (chain, draw, dim), evenly spaced, those of all chains side by side."""
    chains, n, dim = draws.shape
    taken = np.unique(np.linspace(0, n - 1, min(n, max(most // chains, 1))).astype(np.intp))
    x = draws[:, taken].transpose(1, 0, 2).reshape(-1, dim)
    return Points(x, scores_at(model, x, temperature), np.repeat(taken + 1, chains))


def scores_at(model: Any, x: Array, temperature: float) -> Array:
    """−∇U/T of a model at points (n, dim), over all rows."""
    gradient = model.gradient if hasattr(model, "gradient") else lambda theta: gradient_of(model, theta)
    return -np.stack([gradient(np.ascontiguousarray(row)) for row in x]) / temperature


def ksd_of_prefixes(points: Points, scale: Array, ends: NDArray[np.intp]) -> list[float]:
    """The kernel Stein discrepancy of the points up to each end, in units of `scale`, with the inverse multiquadric kernel.

    In the coordinates θ/scale the score is scale · ∇ log π; the kernel is (1 + ‖x − y‖²)^(−1/2).
    """
    from sgmcmc.testing.stein import stein

    x, s = (points.x - points.x.mean(axis=0)) / scale, points.s * scale
    u = stein(x, s, x, s)
    within = np.cumsum(np.cumsum(u, axis=0), axis=1).diagonal()
    return [float(np.sqrt(max(within[n - 1], 0.0)) / n) for n in ends]
