"""Targets with known answers: one-dimensional potentials, each with U, U', U'' and, by quadrature, its law.

A sampler that is right on a symmetric Gaussian alone may have a reversed sign, so some are skew or have two modes. The
functions act on whole arrays, coordinate by coordinate: n coordinates are n independent copies of the problem.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.compiler.field_docs import documented
from sgmcmc.testing.laws import Law

__all__ = ["FIVE_WELLS", "GAUSSIAN", "MIXTURE", "QUARTIC", "SKEW", "TARGETS", "Target", "gaussian", "scaled"]

Array = NDArray[np.float64]
Function = Callable[[Array], Array]


@documented
class Target(NamedTuple):
    """U(θ), coordinate by coordinate, with its first two derivatives and a typical size of θ.

    Parameters
    ----------
    name : str
    energy, gradient, hessian : callable
        U, U' and U'' of an array.
    size : float

    Examples
    --------
    >>> target = sg.testing.Target("Gaussian", lambda x: x**2 / 2, lambda x: x, lambda x: np.ones_like(x))
    >>> round(target.law(temperature=2.0).variance, 6)
    2.0
    """

    name: str
    energy: Function
    gradient: Function
    hessian: Function
    size: float = 1.0

    def law(self, temperature: float = 1.0) -> Law:
        return _law(self.energy, temperature, self.size)


@lru_cache(maxsize=64)
def _law(energy: Function, temperature: float, size: float) -> Law:
    return Law(energy, temperature, size)


@lru_cache(maxsize=64)
def scaled(target: Target, s: float) -> Target:
    """U(θ/s): the same target s times as wide."""
    if s == 1.0:
        return target
    return Target(
        f"{target.name}, scale {s:.3g}",
        lambda x: target.energy(x / s),
        lambda x: target.gradient(x / s) / s,
        lambda x: target.hessian(x / s) / s**2,
        s * target.size,
    )


def gaussian(precision: float = 1.0, center: float = 0.0) -> Target:
    """U = k (θ − c)²/2."""
    return Target(
        f"Gaussian, precision {precision:g}",
        lambda x: 0.5 * precision * (x - center) ** 2,
        lambda x: precision * (x - center),
        lambda x: np.full_like(x, precision),
        precision**-0.5,
    )


GAUSSIAN = gaussian()

QUARTIC = Target(
    "quartic θ²/2 + θ⁴/4",
    lambda x: 0.5 * x**2 + 0.25 * x**4,
    lambda x: x * (1.0 + x * x),  # x**3 would be a general power, ten times slower
    lambda x: 1.0 + 3.0 * x**2,
)

# Convex, with one steep and one gentle side: log-concave, all moments, no symmetry.
SKEW = Target(
    "skew e^θ − θ + θ²/8",
    lambda x: np.exp(x) - x + 0.125 * x**2,
    lambda x: np.exp(x) - 1.0 + 0.25 * x,
    lambda x: np.exp(x) + 0.25,
)

_MEANS, _SCALES, _WEIGHTS = np.array([-1.0, 1.5]), np.array([0.6, 1.0]), np.array([0.7, 0.3])


def _components(x: Array) -> tuple[Array, Array]:
    """log Σ_k w_k N(x; m_k, s_k) and the share of each component."""
    z = (np.asarray(x)[..., None] - _MEANS) / _SCALES
    logs = np.log(_WEIGHTS / _SCALES) - 0.5 * z**2
    top = logs.max(axis=-1, keepdims=True)
    share = np.exp(logs - top)
    total = share.sum(axis=-1, keepdims=True)
    return (top + np.log(total))[..., 0], share / total


def _mixture_gradient(x: Array) -> Array:
    _, share = _components(x)
    slope: Array = (share * (np.asarray(x)[..., None] - _MEANS) / _SCALES**2).sum(axis=-1)
    return slope


def _mixture_hessian(x: Array) -> Array:
    _, share = _components(x)
    slopes = (np.asarray(x)[..., None] - _MEANS) / _SCALES**2
    mean = (share * slopes).sum(axis=-1)
    bend: Array = (share / _SCALES**2).sum(axis=-1) - (share * slopes**2).sum(axis=-1) + mean**2
    return bend


MIXTURE = Target("asymmetric mixture", lambda x: -_components(x)[0], _mixture_gradient, _mixture_hessian)

_C = np.array([-0.47, -0.83, -0.71, -0.02, 0.24, 0.01, 0.27, -0.37, 0.87, -0.37])
_W = np.pi * np.arange(1, 11) / 4.0


def _waves(x: Array) -> tuple[Array, Array, Array]:
    """S = Σ c_i sin(iπ(θ + 4)/4) with its first two derivatives."""
    phase = _W * (np.asarray(x)[..., None] + 4.0)
    sine, cosine = np.sin(phase), np.cos(phase)
    return sine @ _C, cosine @ (_C * _W), -sine @ (_C * _W**2)


def _wells_energy(x: Array) -> Array:
    value: Array = 0.75 * x**2 + 1.5 * np.exp(-_waves(x)[0])
    return value


def _wells_gradient(x: Array) -> Array:
    s, ds, _ = _waves(x)
    value: Array = 1.5 * x - 1.5 * ds * np.exp(-s)
    return value


def _wells_hessian(x: Array) -> Array:
    s, ds, dds = _waves(x)
    value: Array = 1.5 + 1.5 * (ds**2 - dds) * np.exp(-s)
    return value


FIVE_WELLS = Target("five wells", _wells_energy, _wells_gradient, _wells_hessian)

TARGETS = (GAUSSIAN, QUARTIC, SKEW, MIXTURE, FIVE_WELLS)
