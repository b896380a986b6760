"""A mixture of round Gaussians: several wells, with moments that are known exactly."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sgmcmc.checks import finite_array
from sgmcmc.compiler.open_functions import implements, leaf, loop
from sgmcmc.elementary import exp, log
from sgmcmc.potentials import (
    Model,
    add_energy,
    add_gradient,
    add_gradient_within,
    fill_gradients,
    scratch_rows,
    scratch_size,
)

__all__ = ["GaussianMixture"]


class _Fields(NamedTuple):
    means: NDArray[np.float64]
    scales: NDArray[np.float64]
    weights: NDArray[np.float64]
    precisions: NDArray[np.float64]
    log_peaks: NDArray[np.float64]


class GaussianMixture(_Fields, Model):
    """Mixture of round Gaussians: U(θ) = −log Σ_k weights_k N(θ; means_k, scales_k² I).

    Parameters
    ----------
    means : array (components, dim)
    scales : array (components,) or float
        One standard deviation per component, or one for all.
    weights : array (components,), optional
        Above 0; divided by their sum. None for equal weights.

    Examples
    --------
    >>> sg.models.GaussianMixture(means=[[-2.0], [2.0]]).cov
    array([[5.]])
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
    if array.min() < 1e-150 or array.max() > 1e150:
        raise ValueError(f"{name} goes from {array.min():g} to {array.max():g}; give numbers from 1e-150 to 1e150")
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


# ---- many chains side by side ---------------------------------------------------------------------------------------


@implements(scratch_rows, GaussianMixture)
def _(model: Any) -> Any:
    return model.log_peaks.size + 2


@implements(fill_gradients, GaussianMixture)
def _(model: Any, theta: Any, scratch: Any, out: Any) -> None:
    components, dim = model.means.shape
    if dim == 2 and theta.shape[1] == 1:
        _fill_one_in_the_plane(model, theta[0, 0], theta[1, 0], scratch, out)
        return
    largest, total = scratch[components], scratch[components + 1]
    for k in range(components):
        if dim == 2:  # one loop instead of several
            _levels_in_the_plane(model, k, theta[0], theta[1], scratch[k], largest)
        else:
            for j in range(dim):
                _lower(scratch[k], theta[j], model.means[k, j], 0.5 * model.precisions[k], model.log_peaks[k], j == 0)
            _raise(largest, scratch[k], k == 0)
    for k in range(components):
        if dim == 2:
            _pulls_in_the_plane(model, k, scratch[k], largest, theta[0], theta[1], total, out[0], out[1])
        else:
            _to_shares(scratch[k], largest, total, k == 0)
            for j in range(dim):
                _pull(out[j], scratch[k], theta[j], model.means[k, j], model.precisions[k], k == 0)
    for j in range(dim):
        _divide(out[j], total)


@leaf
def _fill_one_in_the_plane(model: Any, x: Any, y: Any, levels: Any, out: Any) -> Any:
    """The same for one chain alone: the same operations in the same order, with sums that stay in registers.

    Through the loops for many chains it waits for what the loop before has just stored (a step of SGLD: 111 ns, and 98 so).
    """
    components = model.log_peaks.size
    largest = _level(model, 0, x, y)
    for k in range(components):
        levels[k, 0] = _level(model, k, x, y)
        largest = levels[k, 0] if levels[k, 0] > largest else largest
    total = exp(levels[0, 0] - largest)
    pull = model.precisions[0] * total
    gx, gy = pull * (x - model.means[0, 0]), pull * (y - model.means[0, 1])
    for k in range(1, components):
        share = exp(levels[k, 0] - largest)
        pull = model.precisions[k] * share
        total += share
        gx += pull * (x - model.means[k, 0])
        gy += pull * (y - model.means[k, 1])
    out[0, 0], out[1, 0] = gx / total, gy / total


@leaf
def _level(model: Any, k: Any, x: Any, y: Any) -> Any:
    dx, dy = x - model.means[k, 0], y - model.means[k, 1]
    return model.log_peaks[k] - 0.5 * model.precisions[k] * (dx * dx + dy * dy)


@loop(apart=True, inline=True, ordered=True)
def _levels_in_the_plane(model: Any, k: Any, x: Any, y: Any, level: Any, largest: Any) -> Any:
    peak, half, cx, cy = model.log_peaks[k], 0.5 * model.precisions[k], model.means[k, 0], model.means[k, 1]
    for i in range(level.size):
        dx, dy = x[i] - cx, y[i] - cy
        level[i] = peak - half * (dx * dx + dy * dy)
    if k == 0:
        for i in range(level.size):
            largest[i] = level[i]
    else:
        for i in range(level.size):
            largest[i] = level[i] if level[i] > largest[i] else largest[i]


@loop(apart=True, inline=True, ordered=True)
def _pulls_in_the_plane(
    model: Any, k: Any, level: Any, largest: Any, x: Any, y: Any, total: Any, gx: Any, gy: Any
) -> Any:
    """Σ_k P(k | θ) (θ − means_k) / scales_k², still to be divided by Σ_k P."""
    precision, cx, cy = model.precisions[k], model.means[k, 0], model.means[k, 1]
    if k == 0:
        for i in range(level.size):
            share = exp(level[i] - largest[i])
            total[i], gx[i], gy[i] = share, precision * share * (x[i] - cx), precision * share * (y[i] - cy)
    else:
        for i in range(level.size):
            share = exp(level[i] - largest[i])
            total[i] += share
            gx[i] += precision * share * (x[i] - cx)
            gy[i] += precision * share * (y[i] - cy)


@loop(apart=True)
def _lower(level: Any, x: Any, center: Any, half: Any, peak: Any, anew: Any) -> Any:
    for i in range(level.size):
        level[i] = (peak if anew else level[i]) - half * (x[i] - center) * (x[i] - center)


@loop(apart=True)
def _raise(largest: Any, level: Any, anew: Any) -> Any:
    for i in range(level.size):
        largest[i] = level[i] if anew | (level[i] > largest[i]) else largest[i]


@loop(apart=True)
def _to_shares(level: Any, largest: Any, total: Any, anew: Any) -> Any:
    for i in range(level.size):
        level[i] = exp(level[i] - largest[i])
        total[i] = level[i] if anew else total[i] + level[i]


@loop(apart=True)
def _pull(out: Any, share: Any, x: Any, center: Any, precision: Any, anew: Any) -> Any:
    for i in range(out.size):
        pull = precision * share[i] * (x[i] - center)
        out[i] = pull if anew else out[i] + pull


@loop(apart=True, ordered=True)
def _divide(out: Any, total: Any) -> Any:
    for i in range(out.size):
        out[i] /= total[i]
