"""Linear regression with Gaussian noise of known size, whose posterior under a Gaussian prior is known exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sgmcmc.checks import number
from sgmcmc.compiler.open_functions import implements
from sgmcmc.elementary import log
from sgmcmc.models.design import Columns, coefficient_names, design, draws_of, responses
from sgmcmc.models.predictor import LinearPredictor, loss, loss_slope
from sgmcmc.priors import Gaussian, require_prior

__all__ = ["LinearRegression"]

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


class _Fields(NamedTuple):
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    noise: float
    prior: Any
    columns: Columns


class LinearRegression(_Fields, LinearPredictor):
    """Linear regression: y ~ N(x·θ, noise²).

    Parameters
    ----------
    X : array (rows, columns), raw
    y : array (rows,)
    noise : float
        The standard deviation of y about x·θ.
    prior : NamedTuple
        Of every coefficient, the intercept's too.
    intercept : bool
        Put a column of ones first; θ[0] is then the intercept.
    standardise : bool
        Centre every column and scale it to standard deviation 1; `predict` does the same to new rows.
    names : list of str, optional
        Of the columns, for summaries and pictures; None takes those of a data frame, if X is one.

    Examples
    --------
    >>> model = sg.models.LinearRegression([[1.0], [1.0]], [1.0, 3.0], prior=sg.priors.Gaussian(1.0))
    >>> mean, cov = model.posterior()
    >>> mean.round(3), cov.round(3)
    (array([1.333]), array([[0.333]]))
    """

    __repr__ = LinearPredictor._repr

    def __new__(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        noise: float = 1.0,
        prior: Any = Gaussian(10.0),  # noqa: B008  (an immutable value)
        intercept: bool = False,
        standardise: bool = False,
        names: Sequence[str] | None = None,
    ) -> Self:
        matrix, columns = design(X, intercept, standardise)
        noise = number("noise", noise, 0.0, open_low=True)
        self = super().__new__(cls, matrix, responses(y, len(matrix)), noise, require_prior(prior), columns)
        self.names = coefficient_names(X, names, intercept)
        return self

    def posterior(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns the exact posterior mean and covariance, for a Gaussian prior.

        Σ⁻¹ = XᵀX/noise² + I/scale²,    μ = Σ (Xᵀy/noise² + mean/scale²)
        """
        if not isinstance(self.prior, Gaussian):
            raise TypeError(f"prior={self.prior!r} has no exact posterior here; use priors.Gaussian")
        tau = 1.0 / self.prior.scale**2
        precision = self.X.T @ self.X / self.noise**2 + tau * np.eye(self.dim)
        mean = np.linalg.solve(precision, self.X.T @ self.y / self.noise**2 + tau * self.prior.mean)
        return np.asarray(mean, dtype=np.float64), np.asarray(np.linalg.inv(precision), dtype=np.float64)

    def simulate(self, theta: ArrayLike, rng: np.random.Generator) -> NDArray[np.float64]:
        """Responses that the model would give at one θ, one for each row of its data."""
        at = draws_of(theta, self.dim)[0]
        return np.asarray(self.X @ at + self.noise * rng.standard_normal(self.n_rows))

    def predict(self, theta: ArrayLike, X: ArrayLike) -> NDArray[np.float64]:
        """E[y] for each row of X, at one θ or averaged over draws of shape (…, dim)."""
        return self._average(theta, X, lambda z: z)


@implements(loss, LinearRegression)
def _(model: Any, z: Any, i: Any) -> Any:
    e = (model.y[i] - z) / model.noise
    return 0.5 * e * e + (log(model.noise) + _LOG_SQRT_2PI)


@implements(loss_slope, LinearRegression)
def _(model: Any, z: Any, i: Any) -> Any:
    return (1.0 / (model.noise * model.noise)) * (z - model.y[i])
