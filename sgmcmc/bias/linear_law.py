"""The linear law: what gradient noise that coordinates share does to variances near a mode, by a Lyapunov equation.

Frictions of the coordinates' own absorb noise of independent coordinates. Minibatch noise has a covariance C with entries off
the diagonal, and in small steps a sampler on U = φᵀHφ/2, with k the mean of K'', is the linear process

    dφ = −σ_θHφ dt + (1 − 2c) k p dt + …,   dp = −Hφ dt − ξ k p dt + …

whose noises have the covariance 2D, D_φφ = σ_θT(1 − c) + hσ_θ²C/2, D_φp = hσ_θC/2, D_pp = σ_pT + hC/2. ξ is its centre where it
is pulled to it, else what makes every momentum as hot as it should be. Stationary: AΣ + ΣAᵀ + 2D = 0. On a logistic regression
with 8 % of its labels True, N = 400, 50 rows a step, SGNHT had a standard deviation of 0.75 of the right one in one coordinate
at temperatures of 0.99; so the temperatures do not see it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.thermostats import sharers

__all__ = ["Surroundings", "off_by", "remedy", "shared_part", "variance_ratios"]

Array = NDArray[np.float64]

ITERATIONS = 40  # of the frictions, at most; each makes what is left some three times smaller
SETTLED = 1e-3  # of a temperature
HALVINGS = 12  # of a step, or doublings of a batch, that are tried


class Surroundings(NamedTuple):
    """What a sampler meets, in the chain's units: the Hessian H and the covariance C of a step's gradient noise."""

    hessian: Array
    noise: Array


def variance_ratios(sampler: Any, h: float, met: Surroundings) -> Array:
    """The variance of every coordinate by what it should be, T (H⁻¹)_jj, for small steps h."""
    from scipy.linalg import solve_continuous_lyapunov

    H, d, T, k, sigma_theta = met.hessian, len(met.hessian), sampler.temperature, sampler.bend, sampler.sigma_theta
    brought = 0.5 * h * met.noise  # hC/2
    own = np.diag(brought) if sharers(sampler.thermostat, d) == 1 else np.full(d, np.trace(brought) / d)
    c = np.minimum(sigma_theta * own / T, 0.9) if sampler.wants_variance else np.zeros(d)
    D = np.block(
        [
            [np.diag(sigma_theta * T * (1.0 - c)) + sigma_theta**2 * brought, sigma_theta * brought],
            [sigma_theta * brought, (sampler.sigma_p * T - sampler.noise_estimate) * np.eye(d) + brought],
        ]
    )

    def covariance(xi: Array) -> Array:
        A = np.block([[-sigma_theta * H, np.diag((1.0 - 2.0 * c) * k)], [-H, np.diag(-xi * k)]])
        return np.asarray(solve_continuous_lyapunov(A, -2.0 * D))

    pulled = sampler.sigma_xi > 0.0 or sampler.resample_thermostat is not None
    xi = sampler.sigma_p + own / T
    for _ in range(0 if pulled and sampler.wants_variance else ITERATIONS):
        hot = np.diag(covariance(xi))[d:] * k / T
        hot = hot if sharers(sampler.thermostat, d) == 1 else np.full(d, hot.mean())
        if np.abs(hot - 1.0).max() < SETTLED:
            break
        xi = xi * np.clip(hot, 0.3, 3.0) ** 0.7
    return np.asarray(np.diag(covariance(xi))[:d] / (T * np.diag(np.linalg.inv(H))))


def shared_part(sampler: Any, h: float, halves: Sequence[Array]) -> float:
    """The diffusion that coordinates share, in the direction where it is most, by all that frictions absorb there.

    A bound of what it does to a variance, without a Hessian. The direction is found on one half of the rows and judged on the
    other, as that where scatter alone is most would be far off.
    """

    def of(noise: Array) -> Array:
        brought = 0.5 * h * noise / sampler.temperature
        own = np.diag(brought) if sharers(sampler.thermostat, len(brought)) == 1 else np.trace(brought) / len(brought)
        root = np.sqrt(sampler.sigma_p + own) * np.ones(len(brought))
        return np.asarray((brought - np.diag(own * np.ones(len(brought)))) / np.outer(root, root))

    one, other = (of(noise) for noise in halves)
    found = []
    for a, b in ((one, other), (other, one)):
        _, v = np.linalg.eigh(a)
        found += [abs(v[:, 0] @ b @ v[:, 0]), abs(v[:, -1] @ b @ v[:, -1])]
    return float(max(found))


def off_by(sampler: Any, h: float, met: Surroundings, halves: tuple[Array, Array]) -> tuple[int, float]:
    """The coordinate whose variance is furthest off, and by how much; 0 if the two halves of the rows do not agree on it."""
    found = variance_ratios(sampler, h, met) - 1.0
    worst = int(np.argmax(np.abs(found)))
    for noise in halves:
        other = variance_ratios(sampler, h, met._replace(noise=noise))[worst] - 1.0
        if not other * found[worst] > 0.25 * found[worst] ** 2:
            return worst, 0.0
    return worst, float(found[worst])


def remedy(sampler: Any, h: float, met: Surroundings, tolerance: float) -> tuple[float, float]:
    """By how much a step must be shorter, and by how much a batch larger, for no variance to be off by the tolerance."""

    def first(make: Callable[[float], tuple[float, Array]]) -> float:
        for n in range(1, HALVINGS + 1):
            step, noise = make(2.0**n)
            if np.abs(variance_ratios(sampler, step, met._replace(noise=noise)) - 1.0).max() < tolerance:
                return 2.0**n
        return float("inf")

    return first(lambda factor: (h / factor, met.noise)), first(lambda factor: (h, met.noise / factor))
