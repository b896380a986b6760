"""Preconditioning: axes of a chain's own. With a square matrix S as `scale` a chain runs in φ = S⁻¹θ; the gradient is Sᵀ∇U.

θ moves S times as far as φ. So a step takes the turned gradient, moves an array that begins at 0, and θ goes S times as far at
its end. What a chain holds is θ itself, wherever it is looked at, kept or gone on with; p and ξ are those of φ. The two products
take d² multiplications each, in the order they are written in: a chain has the same bits in whichever loop it runs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.compiler.open_functions import implements, loop
from sgmcmc.compiler.precision import like
from sgmcmc.integrators import Noise
from sgmcmc.integrators.units import at, learn_variance, part
from sgmcmc.thermostats import put_in

__all__ = ["Frame", "NoiseInFrame", "add_product", "from_units", "in_frame", "in_units", "slope_in_units", "turn"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


class Frame(NamedTuple):
    """Axes and units of a chain's own."""

    axes: Any  # S; its columns are the axes
    transposed: Any  # Sᵀ, so that both products run along rows


class NoiseInFrame(NamedTuple):
    """`Noise`, with room for what a step works on in its frame."""

    p: Any
    theta: Any
    xi: Any
    slope: Any  # Sᵀ∇U
    moved: Any  # what the step adds to φ


def in_frame(noise: Noise, dim: int, dtype: Any) -> NoiseInFrame:
    """These buffers, with that room."""
    room: list[NDArray[Any]] = [np.zeros(dim, dtype) for _ in range(2)]
    return NoiseInFrame(*noise, *room)


def from_units(scale: Any, x: Any) -> Any:
    """Sφ for φ = x (…, dim), whatever form the scale S has: a number, one for every coordinate, a matrix."""
    return x @ scale.T if np.ndim(scale) == 2 else scale * x


def slope_in_units(scale: Any, g: Any) -> Any:
    """Sᵀ∇U for ∇U = g (…, dim)."""
    return g @ scale if np.ndim(scale) == 2 else scale * g


def in_units(scale: Any, x: Any) -> Any:
    """S⁻¹θ for θ = x (…, dim)."""
    return np.linalg.solve(scale, np.asarray(x)[..., np.newaxis])[..., 0] if np.ndim(scale) == 2 else x / scale


@implements(at, Frame)
def _(scale, i):
    return like(scale.axes[0, 0], 1)


@implements(part, Frame)
def _(scale, low, high):
    return scale


@implements(learn_variance, Frame)
def _(scale, thermostat, variance, difference, added, gain):
    for i in range(difference.size):
        slope, square = like(added, 0), like(added, 0)
        for k in range(difference.size):
            slope += scale.transposed[i, k] * difference[k]
            square += scale.transposed[i, k] * scale.transposed[i, k]
        put_in(thermostat, variance, i, difference.size, slope * slope + square * added, gain)


@loop(apart=True, ordered=True)
def turn(axes, gradient, slope):
    """slope = Sᵀ∇U."""
    for i in range(slope.size):
        slope[i] = like(gradient[0], 0)
    add_product(axes, gradient, slope)


@loop(apart=True, ordered=True)
def add_product(rows, x, out):
    """out += x[0] rows[0] + x[1] rows[1] + …"""
    for k in range(x.size):
        factor = x[k]
        for i in range(out.size):
            out[i] += factor * rows[k, i]
