"""The exact posterior of a logistic regression, by Hamiltonian Monte Carlo with all the data and a Metropolis test.

Plain NumPy, none of the samplers here: the yardstick must not share their errors. Preconditioned by the curvature at the mode,
a few leapfrog steps of random length give nearly independent draws.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Posterior", "logistic_posterior"]

Array = NDArray[np.float64]


class Posterior(NamedTuple):
    """Draws (draw, dim) from all chains, with their mean and standard deviation."""

    draws: Array
    mean: Array
    sd: Array
    acceptance: float


def logistic_posterior(
    X: Any, y: Any, prior_scale: float, draws: int = 250, chains: int = 8, seed: int = 0
) -> Posterior:
    """Posterior of θ with a Gaussian prior of standard deviation `prior_scale`; X has its column of ones already."""
    from scipy.special import expit

    X, y = np.asarray(X, float), np.asarray(y, float)
    precision = prior_scale**-2
    mode = np.zeros(X.shape[1])
    for _ in range(100):  # Newton
        p = expit(X @ mode)
        slope = X.T @ (p - y) + precision * mode
        curvature = (X.T * (p * (1.0 - p))) @ X + precision * np.eye(mode.size)
        move = np.linalg.solve(curvature, slope)
        mode -= move
        if np.abs(move).max() < 1e-10:
            break
    root = np.linalg.inv(np.linalg.cholesky(curvature)).T  # θ = mode + root u makes u nearly standard normal
    A = X @ root
    shift, inner = X @ mode, root.T @ (precision * mode)
    Q = precision * root.T @ root

    def energy_and_gradient(u: Array) -> tuple[Array, Array]:
        z = u @ A.T + shift
        energy = (np.logaddexp(0.0, z) - y * z).sum(axis=1) + u @ inner + 0.5 * ((u @ Q) * u).sum(axis=1)
        return energy, (expit(z) - y) @ A + inner + u @ Q

    rng = np.random.default_rng(seed)
    u = rng.standard_normal((chains, mode.size))
    energy, gradient = energy_and_gradient(u)
    h, kept, accepted, warmup = 0.5, [], 0.0, 50
    for t in range(warmup + draws):
        p = rng.standard_normal(u.shape)
        v, g = u, gradient
        start, kick = energy + 0.5 * (p**2).sum(axis=1), p
        step = h * rng.uniform(0.7, 1.3)
        for _ in range(int(rng.integers(2, 5))):
            kick = kick - 0.5 * step * g
            v = v + step * kick
            e, g = energy_and_gradient(v)
            kick = kick - 0.5 * step * g
        end = e + 0.5 * (kick**2).sum(axis=1)
        take = np.log(rng.random(chains)) < start - end
        u, energy, gradient = (
            np.where(take[:, None], v, u),
            np.where(take, e, energy),
            np.where(take[:, None], g, gradient),
        )
        rate = float(take.mean())
        if t < warmup:
            h *= float(np.exp(0.1 * (rate - 0.85)))
        else:
            accepted += rate / draws
            kept.append(mode + u @ root.T)
    out = np.concatenate(kept)
    return Posterior(out, out.mean(axis=0), out.std(axis=0), accepted)
