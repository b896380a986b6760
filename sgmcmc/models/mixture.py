"""A mixture of round Gaussians: several wells, with moments that are known exactly."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sgmcmc.checks import finite_array
from sgmcmc.dispatch import implements, loop
from sgmcmc.elementary import exp, log
from sgmcmc.potentials import Model, add_energy, add_gradient, add_gradient_within, scratch_size

__all__ = ["GaussianMixture"]


class _Fields(NamedTuple):
    means: NDArray[np.float64]
    scales: NDArray[np.float64]
    weights: NDArray[np.float64]
    precisions: NDArray[np.float64]
    log_peaks: NDArray[np.float64]


class GaussianMixture(_Fields, Model):
    """U(θ) = −log Σ_k weights_k N(θ; means_k, scales_k² I).

    means: (components, dim).
    scales: one standard deviation per component, or one for all.
    weights: one per component, above 0; divided by their sum. None for equal weights.
    """

    __slots__ = ()

    def __new__(cls, means: ArrayLike, scales: ArrayLike = 1.0, weights: ArrayLike | None = None) -> Self:
        centers = finite_array("means", means, ndim=2)
        if centers.size == 0:
            raise ValueError(f"means has shape {centers.shape}; give at least one component and one coordinate")
        sds = _per_component("scales", scales, len(centers))
        shares = _per_component("weights", 1.0 if weights is None else weights, len(centers))
        shares = shares / shares.sum()
        # log of weights_k N(means_k; means_k, scales_k² I), the height of each component
        log_peaks = np.log(shares) - centers.shape[1] * np.log(sds * math.sqrt(2.0 * math.pi))
        return super().__new__(cls, centers, sds, shares, sds**-2.0, log_peaks)

    @property
    def dim(self) -> int:
        """How many coordinates θ has."""
        return int(self.means.shape[1])

    @property
    def mean(self) -> NDArray[np.float64]:
        """E[θ]."""
        return np.asarray(self.weights @ self.means)

    @property
    def cov(self) -> NDArray[np.float64]:
        """The covariance matrix of θ: within the components and between them."""
        apart = self.means - self.mean
        within = float(self.weights @ self.scales**2)
        return within * np.eye(self.dim) + np.asarray((self.weights[:, None] * apart).T @ apart)

    def __repr__(self) -> str:
        return f"GaussianMixture({len(self.means)} components, {self.dim} parameter{'s' * (self.dim != 1)})"


def _per_component(name: str, value: ArrayLike, count: int) -> NDArray[np.float64]:
    array = finite_array(name, value)
    if array.shape not in ((), (count,)):
        raise ValueError(f"{name} has shape {array.shape}; give ({count},), one per component, or one number for all")
    if not (array > 0.0).all():
        raise ValueError(f"{name} has a value of {array.min():g}; give numbers above 0")
    return np.array(np.broadcast_to(array, (count,)))


@loop
def _fill_levels(model: Any, theta: Any, levels: Any) -> Any:
    """levels[k] = log of weights_k N(θ; means_k, scales_k² I); returns the largest."""
    for k in range(levels.size):
        center, square = model.means[k], 0.0
        for j in range(theta.size):
            square += (theta[j] - center[j]) * (theta[j] - center[j])
        levels[k] = model.log_peaks[k] - 0.5 * model.precisions[k] * square
    largest = levels[0]
    for k in range(1, levels.size):
        largest = max(largest, levels[k])
    return largest


@implements(add_gradient, GaussianMixture, allocates=True)
def _(model: Any, theta: Any, rows: Any, out: Any) -> None:
    _add_pulls(model, theta, np.empty_like(model.log_peaks), out)


@implements(add_gradient_within, GaussianMixture)
def _(model: Any, theta: Any, rows: Any, scratch: Any, out: Any) -> None:
    _add_pulls(model, theta, scratch, out)


@implements(scratch_size, GaussianMixture)
def _(model: Any) -> Any:
    return model.log_peaks.size


@loop
def _add_pulls(model: Any, theta: Any, shares: Any, out: Any) -> Any:
    largest, total = _fill_levels(model, theta, shares), 0.0
    for k in range(shares.size):
        shares[k] = exp(shares[k] - largest)
        total += shares[k]
    for k in range(shares.size):
        # ∇U = Σ_k P(k | θ) (θ − means_k) / scales_k²
        center, pull = model.means[k], shares[k] / total * model.precisions[k]
        for j in range(theta.size):
            out[j] += pull * (theta[j] - center[j])


@implements(add_energy, GaussianMixture, allocates=True)
def _(model: Any, theta: Any, rows: Any) -> Any:
    levels = np.empty_like(model.log_peaks)
    largest, total = _fill_levels(model, theta, levels), 0.0
    for k in range(levels.size):
        total += exp(levels[k] - largest)
    return -(largest + log(total))
