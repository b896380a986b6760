"""Transforms: parameters with bounds, as smooth functions x(u) of free numbers u, which is where samplers move.

If x has the density p(x), then u has the density p(x(u)) |det ∂x/∂u|, so that with U(x) = −log p(x)

    U_free(u)  = U(x(u)) − log |det ∂x/∂u|
    ∇U_free(u) = (∂x/∂u)ᵀ ∇U(x) − ∇ log |det ∂x/∂u|

| transform | x(u) | log \\|det\\| |
|---|---|---|
| `Real` | u | 0 |
| `Positive` | eᵘ | Σ u |
| `Above(low)`, `Below(high)` | low + eᵘ, high − eᵘ | Σ u |
| `Bounded(low, high)` | low + (high − low) σ(u) | Σ log((high − low) σ(u) σ(−u)) |
| `Ordered` | x₁ = u₁, x_i = x_{i−1} + e^{u_i} | Σ_{i>1} u_i |
| `Simplex` | softmax(V u), V an orthonormal basis of the vectors with sum 0 | Σ log x_i + ½ log k |

A density on the simplex is one of its first k − 1 coordinates, as for the Dirichlet law. Every function takes leading axes:
draws of shape (chain, draw, …) are transformed at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.checks import integer, number

__all__ = ["Above", "Below", "Bounded", "Ordered", "Positive", "Real", "Simplex", "Transform"]

Shape = tuple[int, ...]
Array = NDArray[Any]


@dataclass(frozen=True)
class Transform:
    """x(u) for one parameter. `shape` is that of x: a whole number, a tuple, or None for what the model says (else a number)."""

    shape: int | Shape | None = None

    def __post_init__(self) -> None:
        if self.shape is not None:
            object.__setattr__(self, "shape", _shape(self.shape))

    def free_shape(self, shape: Shape) -> Shape:
        """The shape of u for an x of this shape."""
        return shape

    def forward(self, u: Array) -> Array:
        """x(u)."""
        raise NotImplementedError

    def inverse(self, x: Array) -> Array:
        """u(x); ValueError where x is outside."""
        raise NotImplementedError

    def pull_back(self, u: Array, slope: Array) -> Array:
        """(∂x/∂u)ᵀ slope, where `slope` has the shape of x."""
        raise NotImplementedError

    def log_jacobian(self, u: Array) -> Array:
        """log |det ∂x/∂u| in parts, to be summed over the axes of the parameter."""
        raise NotImplementedError

    def log_jacobian_slope(self, u: Array) -> Array:
        """The gradient of log |det ∂x/∂u| by u."""
        raise NotImplementedError

    def _inside(self, x: Array, inside: Any) -> None:
        if not np.all(inside):
            raise ValueError(f"a value of {np.asarray(x).tolist()} is outside of {self!r}; give one inside its bounds")


class Real(Transform):
    """Any number: x = u."""

    def forward(self, u: Array) -> Array:
        return np.array(u)

    def inverse(self, x: Array) -> Array:
        self._inside(x, np.isfinite(x))
        return np.array(x)

    def pull_back(self, u: Array, slope: Array) -> Array:
        return np.array(slope)

    def log_jacobian(self, u: Array) -> Array:
        return np.zeros_like(u)

    def log_jacobian_slope(self, u: Array) -> Array:
        return np.zeros_like(u)


class Positive(Transform):
    """Numbers above 0: x = eᵘ."""

    def forward(self, u: Array) -> Array:
        return np.asarray(np.exp(u))

    def inverse(self, x: Array) -> Array:
        self._inside(x, np.isfinite(x) & (np.asarray(x) > 0))
        return np.asarray(np.log(x))

    def pull_back(self, u: Array, slope: Array) -> Array:
        return np.asarray(np.exp(u) * slope)

    def log_jacobian(self, u: Array) -> Array:
        return np.array(u)

    def log_jacobian_slope(self, u: Array) -> Array:
        return np.ones_like(u)


@dataclass(frozen=True)
class Above(Positive):
    """Numbers above `low`: x = low + eᵘ."""

    shape: int | Shape | None = None
    low: float = 0.0

    def __init__(self, low: float, shape: int | Shape | None = None) -> None:
        object.__setattr__(self, "low", number("low", low, -1e300, 1e300))
        object.__setattr__(self, "shape", shape)
        self.__post_init__()

    def forward(self, u: Array) -> Array:
        return self.low + super().forward(u)

    def inverse(self, x: Array) -> Array:
        return super().inverse(np.asarray(x) - self.low)


@dataclass(frozen=True)
class Below(Positive):
    """Numbers below `high`: x = high − eᵘ."""

    shape: int | Shape | None = None
    high: float = 0.0

    def __init__(self, high: float, shape: int | Shape | None = None) -> None:
        object.__setattr__(self, "high", number("high", high, -1e300, 1e300))
        object.__setattr__(self, "shape", shape)
        self.__post_init__()

    def forward(self, u: Array) -> Array:
        return self.high - super().forward(u)

    def inverse(self, x: Array) -> Array:
        return super().inverse(self.high - np.asarray(x))

    def pull_back(self, u: Array, slope: Array) -> Array:
        return -super().pull_back(u, slope)


@dataclass(frozen=True)
class Bounded(Transform):
    """Numbers between `low` and `high`: x = low + (high − low) σ(u), with the logistic function σ."""

    shape: int | Shape | None = None
    low: float = 0.0
    high: float = 1.0

    def __init__(self, low: float = 0.0, high: float = 1.0, shape: int | Shape | None = None) -> None:
        object.__setattr__(self, "low", number("low", low, -1e150, 1e150))
        object.__setattr__(self, "high", number("high", high, self.low, 1e150, open_low=True))
        object.__setattr__(self, "shape", shape)
        self.__post_init__()

    def forward(self, u: Array) -> Array:
        return self.low + (self.high - self.low) * _logistic(u)

    def inverse(self, x: Array) -> Array:
        part, rest = np.asarray(x) - self.low, self.high - np.asarray(x)
        self._inside(x, (part > 0) & (rest > 0))
        return np.asarray(np.log(part) - np.log(rest))

    def pull_back(self, u: Array, slope: Array) -> Array:
        return np.asarray((self.high - self.low) * _logistic(u) * _logistic(-np.asarray(u)) * slope)

    def log_jacobian(self, u: Array) -> Array:
        size = np.abs(u)  # σ(u) σ(−u) is even in u
        return np.asarray(math.log(self.high - self.low) - size - 2.0 * np.log1p(np.exp(-size)))

    def log_jacobian_slope(self, u: Array) -> Array:
        return np.asarray(1.0 - 2.0 * _logistic(u))


class Ordered(Transform):
    """Numbers that rise along the last axis: x₁ = u₁, x_i = x_{i−1} + e^{u_i}."""

    def free_shape(self, shape: Shape) -> Shape:
        _last_axis(self, shape, 1)
        return shape

    def forward(self, u: Array) -> Array:
        return np.asarray(np.cumsum(_steps(u), axis=-1))

    def inverse(self, x: Array) -> Array:
        x = np.asarray(x)
        gaps = np.diff(x, axis=-1)
        self._inside(x, np.isfinite(x).all() and (gaps > 0).all())
        return np.concatenate([x[..., :1], np.log(gaps)], axis=-1)

    def pull_back(self, u: Array, slope: Array) -> Array:
        above = np.flip(np.cumsum(np.flip(slope, -1), axis=-1), -1)  # u_i moves x_i and all that follow
        return np.concatenate([above[..., :1], above[..., 1:] * np.exp(u[..., 1:])], axis=-1)

    def log_jacobian(self, u: Array) -> Array:
        return np.concatenate([np.zeros_like(u[..., :1]), u[..., 1:]], axis=-1)

    def log_jacobian_slope(self, u: Array) -> Array:
        return np.concatenate([np.zeros_like(u[..., :1]), np.ones_like(u[..., 1:])], axis=-1)


class Simplex(Transform):
    """k numbers above 0 with sum 1 along the last axis: softmax(V u) of k − 1 free numbers."""

    def free_shape(self, shape: Shape) -> Shape:
        _last_axis(self, shape, 2)
        return (*shape[:-1], shape[-1] - 1)

    def forward(self, u: Array) -> Array:
        z = _spread(u)
        weights = np.exp(z - z.max(axis=-1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=-1, keepdims=True))

    def inverse(self, x: Array) -> Array:
        x = np.asarray(x, dtype=np.float64)
        self._inside(x, (x > 0).all() and (np.abs(x.sum(axis=-1) - 1.0) < 1e-6).all())
        return _gather(np.log(x))

    def pull_back(self, u: Array, slope: Array) -> Array:
        x = self.forward(u)
        return _gather(x * (slope - (x * slope).sum(axis=-1, keepdims=True)))

    def log_jacobian(self, u: Array) -> Array:
        z = _spread(u)
        top = z.max(axis=-1, keepdims=True)
        k = z.shape[-1]
        log_sum = top + np.log(np.exp(z - top).sum(axis=-1, keepdims=True))
        return np.asarray(0.5 * math.log(k) - k * log_sum)  # Σ z is 0

    def log_jacobian_slope(self, u: Array) -> Array:
        x = self.forward(u)
        return _gather(-x.shape[-1] * x)


def _shape(shape: Any) -> Shape:
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    return tuple(integer("shape", size, 1) for size in sizes)


def _last_axis(transform: Transform, shape: Shape, least: int) -> None:
    if not shape or shape[-1] < least:
        raise ValueError(
            f"{transform!r} was given the shape {shape}; give {type(transform).__name__}(shape) with a last axis of at "
            f"least {least}"
        )


def _logistic(u: Array) -> Array:
    """1/(1 + e^{−u}) without overflow."""
    half = 0.5 * np.asarray(u)
    return np.asarray(np.where(half >= 0, 1.0 / (1.0 + np.exp(-2.0 * np.abs(half))), _small(half)))


def _small(half: Array) -> Array:
    e = np.exp(-2.0 * np.abs(half))
    return np.asarray(e / (1.0 + e))


def _steps(u: Array) -> Array:
    return np.concatenate([u[..., :1], np.exp(u[..., 1:])], axis=-1)


def _norms(free: int) -> NDArray[np.float64]:
    """Column j of V is (1, …, 1, −(j + 1), 0, …) with j + 1 ones, divided by √((j + 1)(j + 2))."""
    j = np.arange(1, free + 1, dtype=np.float64)
    return np.sqrt(j * (j + 1.0))


def _spread(u: Array) -> Array:
    """V u, without the matrix."""
    w = np.asarray(u) / _norms(u.shape[-1])
    tails = np.flip(np.cumsum(np.flip(w, -1), axis=-1), -1)
    z = np.concatenate([tails, np.zeros_like(w[..., :1])], axis=-1)
    z[..., 1:] -= np.arange(1, w.shape[-1] + 1) * w
    return z


def _gather(z: Array) -> Array:
    """Vᵀ z."""
    free = z.shape[-1] - 1
    heads = np.cumsum(z[..., :-1], axis=-1)
    return np.asarray((heads - np.arange(1, free + 1) * z[..., 1:]) / _norms(free))
