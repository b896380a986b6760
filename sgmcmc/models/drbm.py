"""The discriminative restricted Boltzmann machine: a classifier with hidden binary units that can be summed out exactly.

    p(y | x, θ) ∝ exp(d_y) Π_j (1 + exp(o_yj)),    o_yj = c_j + U_jy + Σ_i W_ji x_i

(Larochelle and Bengio 2008). θ holds W (hidden × pixels), U (hidden × classes), c (hidden) and d (classes), in this order.
The products are BLAS's, the rest is compiled; the arithmetic is done in the precision of θ, so float32 in a float32 run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sgmcmc import checks
from sgmcmc.compiler.kernels import kernel
from sgmcmc.elementary import sigmoid, softplus
from sgmcmc.parameters import Parameters
from sgmcmc.potentials import PythonPotential
from sgmcmc.priors import Gaussian, require_prior

__all__ = ["DRBM"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@kernel
def _free_energies(projected, U, d, scores):
    """scores[n, y] = d_y + Σ_j softplus(a_nj + U_jy), a = c + W x being `projected`."""
    for n in range(projected.shape[0]):
        for y in range(d.size):
            total = d[y]
            for j in range(projected.shape[1]):
                total += softplus(projected[n, j] + U[y, j])
            scores[n, y] = total


@kernel
def _hidden_slopes(projected, U, residual, slopes, dU):
    """slopes[n, j] = Σ_y r_ny σ(o_yj) and dU[y, j] = Σ_n r_ny σ(o_yj), where r = p(y | x) − 1[y = label]."""
    for n in range(projected.shape[0]):
        for j in range(projected.shape[1]):
            slopes[n, j] = 0.0
        for y in range(residual.shape[1]):
            r = residual[n, y]
            for j in range(projected.shape[1]):
                s = r * sigmoid(projected[n, j] + U[y, j])
                slopes[n, j] += s
                dU[y, j] += s


class DRBM(PythonPotential):
    """Discriminative RBM: its gradient in closed form, from minibatches.

    Parameters
    ----------
    X : array (rows, pixels)
        Bytes are divided by 255.
    y : array (rows,)
        Labels 0, 1, …, classes − 1.
    hidden : int
        How many hidden units.
    prior : NamedTuple
        Of every parameter.
    classes : int, optional
        How many classes there are; None for the largest label plus one.

    Examples
    --------
    >>> model = sg.models.DRBM(np.eye(4), [0, 1, 0, 1], hidden=3)
    >>> model.predict(np.zeros(model.dim), np.eye(4)[:1])
    array([[0.5, 0.5]])
    """

    X: NDArray[Any]
    y: NDArray[np.int64]
    hidden: int
    classes: int

    def __new__(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        hidden: int = 500,
        prior: Any = Gaussian(1.0),  # noqa: B008  (an immutable value)
        classes: int | None = None,
    ) -> Any:
        self = object.__new__(cls)
        pixels = checks.any_array("X", X)
        if pixels.ndim != 2 or pixels.size == 0:
            raise ValueError(f"X has shape {pixels.shape}; give (rows, pixels)")
        if pixels.dtype != np.uint8:
            pixels = checks.finite_array("X", pixels, ndim=2)
        labels = checks.any_array("y", y)
        if labels.shape != (len(pixels),) or labels.dtype.kind not in "iu" or labels.min() < 0:
            raise ValueError(
                f"y has shape {labels.shape} and dtype {labels.dtype}; give one whole number from 0 on per row of X"
            )
        self.X, self.y = pixels, labels.astype(np.int64)
        self.hidden = checks.integer("hidden", hidden, 1)
        self.classes = (
            int(labels.max()) + 1 if classes is None else checks.integer("classes", classes, int(labels.max()) + 1)
        )
        self.prior, self.n_rows = require_prior(prior), len(pixels)
        self.dim = self.hidden * (pixels.shape[1] + self.classes + 1) + self.classes
        self.data, self.energy_function, self.gradient_function, self._fills = (), None, self.gradient_sum, True
        return self

    @property
    def parameters(self) -> Parameters:
        """The weights of pixels and classes, and the biases of hidden units and classes."""
        pixels, h, k = self.X.shape[1], self.hidden, self.classes
        return {"W": (h, pixels), "U": (k, h), "c": (h,), "d": (k,)}

    # ---- the pieces of θ -----------------------------------------------------------------------------------------------

    def split(self, theta: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """W (hidden, pixels), U (classes, hidden), c and d, as views of θ."""
        pixels, h, k = self.X.shape[1], self.hidden, self.classes
        W, U, c, d = np.split(theta, np.cumsum([h * pixels, h * k, h]))
        return W.reshape(h, pixels), U.reshape(k, h), c, d

    def init(self, seed: int = 0, scale: float = 0.01) -> NDArray[np.float64]:
        """A start: small random weights, biases 0."""
        theta = scale * np.random.default_rng(seed).standard_normal(self.dim)
        for bias in self.split(theta)[2:]:
            bias[:] = 0.0
        return theta

    def _pixels(self, X: NDArray[Any], dtype: Any) -> NDArray[Any]:
        values = X.astype(dtype)
        return values / dtype.type(255) if X.dtype == np.uint8 else values

    def _scores(self, theta: NDArray[Any], x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        W, U, c, d = self.split(theta)
        projected = x @ W.T
        projected += c
        scores = np.empty((len(x), self.classes), theta.dtype)
        _free_energies(projected, U, d, scores)
        return projected, scores

    # ---- what samplers and people ask ----------------------------------------------------------------------------------

    def gradient_sum(self, theta: NDArray[Any], rows: NDArray[np.int64], out: NDArray[Any]) -> None:
        """out = Σ_{i in rows} ∇(−log p(y_i | x_i, θ))."""
        x, labels = self._pixels(self.X[rows], theta.dtype), self.y[rows]
        projected, scores = self._scores(theta, x)
        scores -= scores.max(axis=1, keepdims=True)
        residual = np.exp(scores)
        residual /= residual.sum(axis=1, keepdims=True)
        residual[np.arange(len(labels)), labels] -= theta.dtype.type(1)
        dW, dU, dc, dd = self.split(out)
        dU[:] = 0
        slopes = np.empty_like(projected)
        _hidden_slopes(projected, self.split(theta)[1], residual, slopes, dU)
        np.matmul(slopes.T, x, out=dW)
        dc[:] = slopes.sum(axis=0)
        dd[:] = residual.sum(axis=0)

    def energy(self, theta: ArrayLike) -> float:
        """U(θ) over all rows."""
        from sgmcmc.potentials.wrapped import _Prior, _prior_energy

        at = np.ascontiguousarray(theta, dtype=np.float64)
        total = 0.0
        for rows in np.array_split(np.arange(self.n_rows), max(1, self.n_rows // 2000)):
            _, scores = self._scores(at, self._pixels(self.X[rows], at.dtype))
            top = scores.max(axis=1)
            own = scores[np.arange(rows.size), self.y[rows]]
            total += float((top + np.log(np.exp(scores - top[:, None]).sum(axis=1)) - own).sum())
        return total + float(_prior_energy(_Prior(self.prior), at))

    def predict(self, theta: ArrayLike, X: ArrayLike) -> NDArray[np.float64]:
        """P(y | x) for each row of X, (rows, classes), at one θ or averaged over draws of shape (…, dim)."""
        draws = np.asarray(theta).reshape(-1, self.dim)
        total = np.zeros((len(np.asarray(X)), self.classes))
        for draw in draws:
            total += self.probabilities(np.ascontiguousarray(draw), np.asarray(X))
        return total / len(draws)

    def probabilities(self, theta: NDArray[Any], X: NDArray[Any], batch: int = 2000) -> NDArray[Any]:
        """P(y | x) at one θ, in its precision, a batch of rows at a time."""
        parts = []
        for begin in range(0, len(X), batch):
            _, scores = self._scores(theta, self._pixels(X[begin : begin + batch], theta.dtype))
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            parts.append(weights / weights.sum(axis=1, keepdims=True))
        return np.concatenate(parts)

    def __repr__(self) -> str:
        shape = f"{self.n_rows} rows, {self.X.shape[1]} pixels, hidden={self.hidden}, classes={self.classes}"
        return f"DRBM({shape}, prior={self.prior!r})"

    def __reduce__(self) -> Any:
        return DRBM, (self.X, self.y, self.hidden, self.prior, self.classes)
