"""Softmax regression: P(y = k | x, θ) = exp(z_k) / Σ_l exp(z_l) with z = x·W, one column of W per class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sgmcmc.checks import integer
from sgmcmc.compiler.open_functions import implements, loop
from sgmcmc.compiler.precision import zero
from sgmcmc.elementary import exp, log
from sgmcmc.models.design import Columns, Named, coefficient_names, design, draws_of, responses
from sgmcmc.parameters import Parameters
from sgmcmc.potentials import (
    Model,
    add_energy,
    add_gradient,
    add_gradient_within,
    part_of_sum,
    scratch_size,
    sum_over_rows,
    sums_per_row,
    to_errors,
)
from sgmcmc.priors import Gaussian, require_prior

__all__ = ["SoftmaxRegression"]


class _Fields(NamedTuple):
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    prior: Any
    columns: Columns
    classes: int


class SoftmaxRegression(_Fields, Named, Model):
    """Softmax regression: −log p(y | x, θ) = log Σ_l exp(z_l) − z_y with z = x·W.

    θ is W of shape (features, classes), flattened row by row: ``W = theta.reshape(-1, model.classes)``. Every class has
    its own column; adding the same vector to all of them changes nothing but the prior.

    Parameters
    ----------
    X : array (rows, columns), raw
    y : array (rows,)
        Labels 0, 1, …, classes − 1.
    prior : NamedTuple
        Of every entry of W, the intercepts' too.
    classes : int, optional
        How many classes there are; None for the largest label plus one.
    intercept : bool
        Put a column of ones first; W[0] is then the intercepts.
    standardise : bool
        Centre every column and scale it to standard deviation 1; `predict` does the same to new rows.
    names : list of str, optional
        Of the columns, for summaries and pictures; None takes those of a data frame, if X is one.

    Examples
    --------
    >>> model = sg.models.SoftmaxRegression([[-1.0], [0.0], [1.0]], [0, 1, 2])
    >>> model.parameters, model.predict(np.zeros(3), [[2.0]]).round(3)
    ({'W': (1, 3)}, array([[0.333, 0.333, 0.333]]))
    """

    __repr__ = Model._repr

    def __new__(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        prior: Any = Gaussian(10.0),  # noqa: B008  (an immutable value)
        classes: int | None = None,
        intercept: bool = False,
        standardise: bool = False,
        names: Sequence[str] | None = None,
    ) -> Self:
        matrix, columns = design(X, intercept, standardise)
        labels, count = _labels(y, len(matrix), classes)
        self = super().__new__(cls, matrix, labels, require_prior(prior), columns, count)
        self.names = coefficient_names(X, names, intercept)
        return self

    @property
    def dim(self) -> int:
        """Features times classes."""
        return int(self.X.shape[1]) * self.classes

    @property
    def n_rows(self) -> int:
        """How many rows of data there are."""
        return len(self.X)

    @property
    def parameters(self) -> Parameters:
        """W, or for each named column its row of W."""
        if self.names is None:
            return {"W": (self.X.shape[1], self.classes)}
        return dict.fromkeys(self.names, (self.classes,))

    def simulate(self, theta: ArrayLike, rng: np.random.Generator) -> NDArray[np.int64]:
        """Responses that the model would give at one θ, one for each row of its data."""
        W = draws_of(theta, self.dim)[0].reshape(-1, self.classes)
        noisy = self.X @ W + rng.gumbel(size=(self.n_rows, self.classes))  # the largest of these has the law of softmax
        return np.asarray(noisy.argmax(axis=1), dtype=np.int64)

    def predict(self, theta: ArrayLike, X: ArrayLike) -> NDArray[np.float64]:
        """P(y = k) of shape (rows, classes), at one θ or averaged over draws of shape (…, dim)."""
        draws, matrix = draws_of(theta, self.dim), self.columns.apply(X)
        from scipy.special import softmax

        total = np.zeros((len(matrix), self.classes))
        for draw in draws:
            total += softmax(matrix @ draw.reshape(-1, self.classes), axis=1)
        return total / len(draws)


def _labels(y: ArrayLike, n_rows: int, classes: int | None) -> tuple[NDArray[np.int64], int]:
    labels = responses(y, n_rows)
    count = max(int(labels.max()) + 1, 2) if classes is None else integer("classes", classes, 2)
    wrong = np.unique(labels[(labels != np.floor(labels)) | (labels < 0.0) | (labels >= count)])
    if wrong.size > 0:
        shown = ", ".join(f"{v:g}" for v in wrong[:5]) + (", ..." if wrong.size > 5 else "")
        raise ValueError(f"labels must be whole numbers from 0 to {count - 1}; got values [{shown}]")
    return labels.astype(np.int64), count


@loop
def _fill_logits(x: Any, W: Any, z: Any) -> Any:
    """z = x·W; returns the largest. Four features at a time: a third off the time of 784 features and 10 classes."""
    for k in range(z.size):
        z[k] = 0.0
    fours = x.size - x.size % 4
    for j in range(0, fours, 4):
        x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
        w0, w1, w2, w3 = W[j], W[j + 1], W[j + 2], W[j + 3]
        for k in range(z.size):
            z[k] += (x0 * w0[k] + x1 * w1[k]) + (x2 * w2[k] + x3 * w3[k])
    for j in range(fours, x.size):
        for k in range(z.size):
            z[k] += x[j] * W[j, k]
    largest = z[0]
    for k in range(1, z.size):
        largest = max(largest, z[k])
    return largest


@implements(add_gradient, SoftmaxRegression, allocates=True)
def _(model: Any, theta: Any, rows: Any, out: Any) -> None:
    W = theta.reshape(model.X.shape[1], model.classes)
    G = out.reshape(model.X.shape[1], model.classes)
    z = np.empty_like(W[0])
    for i in rows:
        x = model.X[i]
        largest, total = _fill_logits(x, W, z), 0.0
        for k in range(z.size):
            z[k] = exp(z[k] - largest)
            total += z[k]
        share = 1.0 / total
        for k in range(z.size):
            z[k] *= share  # P(y = k)
        z[model.y[i]] -= 1.0
        for j in range(x.size):
            for k in range(z.size):
                G[j, k] += x[j] * z[k]  # ∂/∂W_jk = x_j (P(y = k) − [y_i = k])


@implements(scratch_size, SoftmaxRegression)
def _(model: Any) -> Any:
    return model.classes


@implements(add_gradient_within, SoftmaxRegression)
def _(model: Any, theta: Any, rows: Any, scratch: Any, out: Any) -> None:
    # The same sums without views of another shape, which θ and `out` have only where they are contiguous.
    classes, features = model.classes, model.X.shape[1]
    for i in rows:
        for k in range(classes):
            scratch[k] = part_of_sum(model, theta, i, k, 0, 1)
        to_errors(model, i, scratch)
        for k in range(classes):
            for j in range(features):
                out[j * classes + k] += model.X[i, j] * scratch[k]


@implements(sums_per_row, SoftmaxRegression)
def _(model: Any) -> Any:
    return model.classes


@implements(part_of_sum, SoftmaxRegression)
def _(model: Any, theta: Any, i: Any, k: Any, first: Any, stride: Any) -> Any:
    z = 0.0
    for j in range(first, model.X.shape[1], stride):
        z += model.X[i, j] * theta[j * model.classes + k]
    return z


@implements(to_errors, SoftmaxRegression)
def _(model: Any, i: Any, z: Any) -> None:
    # ∂/∂z_k = P(y = k) − [y_i = k]
    largest = z[0]
    for k in range(1, model.classes):
        largest = max(largest, z[k])
    total = zero(largest)
    for k in range(model.classes):
        z[k] = exp(z[k] - largest)
        total += z[k]
    for k in range(model.classes):
        z[k] = z[k] / total - (1.0 if k == model.y[i] else 0.0)


@implements(sum_over_rows, SoftmaxRegression)
def _(model: Any, rows: Any, errors: Any, j: Any) -> Any:
    feature, k = j // model.classes, j % model.classes
    total = 0.0
    for r in range(rows.size):
        total += errors[r * model.classes + k] * model.X[rows[r], feature]
    return total


@implements(add_energy, SoftmaxRegression, allocates=True)
def _(model: Any, theta: Any, rows: Any) -> Any:
    W = theta.reshape(model.X.shape[1], model.classes)
    z = np.empty_like(W[0])
    energy = 0.0
    for i in rows:
        largest, total = _fill_logits(model.X[i], W, z), 0.0
        for k in range(z.size):
            total += exp(z[k] - largest)
        energy += (largest - z[model.y[i]]) + log(total)
    return energy
