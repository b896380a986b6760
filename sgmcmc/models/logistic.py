"""Logistic regression: P(y = 1 | x, θ) = 1 / (1 + exp(−x·θ))."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sgmcmc.compiler.open_functions import implements
from sgmcmc.elementary import sigmoid, softplus
from sgmcmc.models.design import Columns, coefficient_names, design, draws_of, responses, values_of
from sgmcmc.models.predictor import LinearPredictor, loss, loss_slope
from sgmcmc.priors import Gaussian, require_prior

__all__ = ["LogisticRegression"]


class _Fields(NamedTuple):
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    prior: Any
    columns: Columns


class LogisticRegression(_Fields, LinearPredictor):
    """Logistic regression: −log p(y | x, θ) = log(1 + e^z) − y z with z = x·θ.

    Parameters
    ----------
    X : array (rows, columns), raw
    y : array (rows,)
        Labels 0 or 1.
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
    >>> model = sg.models.LogisticRegression([[-1.0], [0.0], [1.0]], [0, 0, 1])
    >>> model.dim, model.n_rows, model.predict([0.0], [[2.0]])
    (1, 3, array([0.5]))
    """

    __repr__ = LinearPredictor._repr

    def __new__(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        prior: Any = Gaussian(10.0),  # noqa: B008  (an immutable value)
        intercept: bool = False,
        standardise: bool = False,
        names: Sequence[str] | None = None,
    ) -> Self:
        matrix, columns = design(X, intercept, standardise)
        self = super().__new__(cls, matrix, _labels(y, len(matrix)), require_prior(prior), columns)
        self.names = coefficient_names(X, names, intercept)
        return self

    def simulate(self, theta: ArrayLike, rng: np.random.Generator) -> NDArray[np.float64]:
        """Responses that the model would give at one θ, one for each row of its data."""
        from scipy.special import expit

        p = expit(self.X @ draws_of(theta, self.dim)[0])
        return np.asarray(rng.random(self.n_rows) < p, dtype=np.float64)

    def predict(self, theta: ArrayLike, X: ArrayLike) -> NDArray[np.float64]:
        """P(y = 1) for each row of X, at one θ or averaged over draws of shape (…, dim)."""
        from scipy.special import expit

        return self._average(theta, X, expit)


def _labels(y: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    labels = responses(y, n_rows)
    values = values_of(labels)
    if not np.isin(values, (0.0, 1.0)).all():
        shown = ", ".join(f"{v:g}" for v in values[:5]) + (", ..." if values.size > 5 else "")
        raise ValueError(f"labels must be 0 or 1; got values [{shown}]")
    return labels


@implements(loss, LogisticRegression)
def _(model: Any, z: Any, i: Any) -> Any:
    return softplus(z) - model.y[i] * z


@implements(loss_slope, LogisticRegression)
def _(model: Any, z: Any, i: Any) -> Any:
    return sigmoid(z) - model.y[i]
