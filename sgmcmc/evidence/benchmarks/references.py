"""The exact posteriors that logistic regressions are judged by: computed once, kept in the folder of the run.

Small ones by Hamiltonian Monte Carlo with a Metropolis test (`experiments.exact`), none of our samplers; from 10,000 rows on
the posterior is Gaussian to far less than the bounds of the checks, and Laplace's approximation is taken.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sgmcmc.evidence.benchmarks.alone.problems import logistic_data
from sgmcmc.evidence.experiments.exact import logistic_posterior

__all__ = ["GAUSSIAN_FROM", "laplace", "prepare", "prepare_start"]

GAUSSIAN_FROM = 10_000
_CHUNK = 50_000  # rows in double precision at a time


def prepare(folder: Path, n: int, d: int, quick: bool) -> Path:
    """posterior-N-D.npz with mean, sd and draws, unless it is there already."""
    path = folder / f"posterior-{n}-{d}.npz"
    if path.exists():
        return path
    X, y = logistic_data(n, d)
    if n >= GAUSSIAN_FROM:
        mean, covariance = laplace(X, y)
        draws = np.random.default_rng(3).multivariate_normal(mean, covariance, size=2000, method="cholesky")
        sd = np.sqrt(np.diag(covariance))
    else:
        posterior = logistic_posterior(X, y, prior_scale=1.0, draws=500 if quick else 6000, chains=8, seed=0)
        draws, mean, sd = posterior.draws, posterior.mean, posterior.sd
        draws = draws[:: max(1, len(draws) // 4000)]
    half = path.with_suffix(".part.npz")
    np.savez(half, mean=mean, sd=sd, draws=draws)
    half.replace(path)
    return path


def prepare_start(folder: Path, n: int = 1000, d: int = 25) -> None:
    """The data that scripts of the case `start` load."""
    X, y = logistic_data(n, d)
    np.save(folder / "start-X.npy", X)
    np.save(folder / "start-y.npy", y)


def laplace(X: Any, y: Any) -> tuple[Any, Any]:
    """Mode and inverse curvature with prior N(0, 1), by Newton's method, the rows in chunks."""
    d = X.shape[1]
    mode = np.zeros(d)
    for _ in range(30):
        slope, curvature = mode.copy(), np.eye(d)
        for low in range(0, len(X), _CHUNK):
            rows = X[low : low + _CHUNK].astype(np.float64)
            p = 1.0 / (1.0 + np.exp(-rows @ mode))
            slope += rows.T @ (p - y[low : low + _CHUNK])
            curvature += (rows.T * (p * (1.0 - p))) @ rows
        move = np.linalg.solve(curvature, slope)
        mode -= move
        if np.abs(move).max() < 1e-9:
            break
    return mode, np.linalg.inv(curvature)
