"""A Gaussian target with any covariance: the model whose every answer is known."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sgmcmc.checks import finite_array
from sgmcmc.compiler.open_functions import implements, loop
from sgmcmc.potentials import Model, add_energy, add_gradient, fill_gradients

__all__ = ["Gaussian"]


class _Fields(NamedTuple):
    mean: NDArray[np.float64]
    precision: NDArray[np.float64]
    covariance: NDArray[np.float64]
    log_z: float


class Gaussian(_Fields, Model):
    """Gaussian target: U(θ) = ½ (θ − mean)ᵀ cov⁻¹ (θ − mean) + ½ log det(2π cov).

    Parameters
    ----------
    mean : array (dim,) or float for every coordinate
    cov : array (dim, dim), array (dim,) of variances, or one variance for every coordinate

    Examples
    --------
    >>> model = sg.models.Gaussian(mean=[0.0, 1.0], cov=4.0)
    >>> model.gradient([4.0, 1.0])
    array([1., 0.])
    """

    __slots__ = ()

    def __new__(cls, mean: ArrayLike = 0.0, cov: ArrayLike = 1.0) -> Self:
        center, spread = finite_array("mean", mean), finite_array("cov", cov)
        dim = max(center.size if center.ndim == 1 else 1, len(spread) if spread.ndim > 0 else 1)
        if center.ndim > 1 or dim == 0 or center.size not in (1, dim) or spread.shape not in ((), (dim,), (dim, dim)):
            raise ValueError(
                f"mean has shape {center.shape} and cov {spread.shape}; give mean (d,), and cov (d, d), (d,) or one number"
            )
        center = np.array(np.broadcast_to(center, (dim,)))
        if spread.ndim < 2:
            return DiagonalGaussian._make(_diagonal(center, np.array(np.broadcast_to(spread, (dim,)))))  # type: ignore
        return cls._make(_dense(center, spread))

    @property
    def dim(self) -> int:
        """How many coordinates θ has."""
        return self.mean.size

    @property
    def cov(self) -> NDArray[np.float64]:
        """The covariance matrix."""
        return self.covariance.copy()

    def __repr__(self) -> str:
        return f"Gaussian({self.dim} parameter{'s' * (self.dim != 1)})"


class DiagonalGaussian(Gaussian):
    """What `Gaussian` makes of variances: the same law with d numbers in place of d²."""

    __slots__ = ()

    @property
    def cov(self) -> NDArray[np.float64]:
        """The covariance matrix."""
        return np.diag(self.covariance)


def _diagonal(mean: NDArray[np.float64], variances: NDArray[np.float64]) -> tuple[Any, ...]:
    if not (variances > 0.0).all():
        raise ValueError(f"cov has a variance of {variances.min():g}; give variances above 0")
    if variances.min() < 1e-300 or variances.max() > 1e300:
        raise ValueError(
            f"cov goes from {variances.min():g} to {variances.max():g}; give variances from 1e-300 to 1e300"
        )
    return mean, 1.0 / variances, variances, 0.5 * float(np.log(2.0 * math.pi * variances).sum())


def _dense(mean: NDArray[np.float64], cov: NDArray[np.float64]) -> tuple[Any, ...]:
    asymmetry = abs(cov - cov.T).max()
    if asymmetry > 1e-10 * abs(cov).max():
        raise ValueError(
            f"cov is not symmetric, entries differ from their mirror by up to {asymmetry:.2g}; symmetrise it"
        )
    cov = 0.5 * (cov + cov.T)
    try:
        root = np.linalg.cholesky(cov)
    except np.linalg.LinAlgError:
        lowest = np.linalg.eigvalsh(cov)[0]
        raise ValueError(f"cov is not positive definite, its smallest eigenvalue is {lowest:.3g}") from None
    inverse_root = np.linalg.solve(root, np.eye(len(cov)))
    log_z = float(np.log(root.diagonal()).sum()) + 0.5 * len(cov) * math.log(2.0 * math.pi)
    return mean, inverse_root.T @ inverse_root, cov, log_z


@implements(add_gradient, Gaussian)
def _(model: Any, theta: Any, rows: Any, out: Any) -> None:
    for i in range(theta.size):
        row, pull = model.precision[i], 0.0
        for j in range(theta.size):
            pull += row[j] * (theta[j] - model.mean[j])
        out[i] += pull


@implements(add_energy, Gaussian)
def _(model: Any, theta: Any, rows: Any) -> Any:
    total = 0.0
    for i in range(theta.size):
        row, pull = model.precision[i], 0.0
        for j in range(theta.size):
            pull += row[j] * (theta[j] - model.mean[j])
        total += pull * (theta[i] - model.mean[i])
    return 0.5 * total + model.log_z


@implements(add_gradient, DiagonalGaussian)
def _(model: Any, theta: Any, rows: Any, out: Any) -> None:
    for j in range(theta.size):
        out[j] += model.precision[j] * (theta[j] - model.mean[j])


@implements(add_energy, DiagonalGaussian)
def _(model: Any, theta: Any, rows: Any) -> Any:
    total = 0.0
    for j in range(theta.size):
        z = theta[j] - model.mean[j]
        total += model.precision[j] * z * z
    return 0.5 * total + model.log_z


# ---- many chains side by side ---------------------------------------------------------------------------------------


@implements(fill_gradients, Gaussian)
def _(model: Any, theta: Any, scratch: Any, out: Any) -> None:
    for i in range(len(out)):
        _pull(out[i], theta[0], model.precision[i, 0], model.mean[0], True)
        for j in range(1, len(out)):
            _pull(out[i], theta[j], model.precision[i, j], model.mean[j], False)


@implements(fill_gradients, DiagonalGaussian)
def _(model: Any, theta: Any, scratch: Any, out: Any) -> None:
    for j in range(len(out)):
        _pull(out[j], theta[j], model.precision[j], model.mean[j], True)


@loop(apart=True)
def _pull(out: Any, x: Any, precision: Any, mean: Any, anew: Any) -> Any:
    """out = or += precision · (x − mean)."""
    for i in range(out.size):
        out[i] = precision * (x[i] - mean) if anew else out[i] + precision * (x[i] - mean)
