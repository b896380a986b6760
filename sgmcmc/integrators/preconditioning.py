"""Preconditioning: a length for each coordinate, or axes of a chain's own.

With a scale s a chain runs in φ = θ/s, whose gradient is s·∇U. With a square matrix S it runs in φ = S⁻¹θ; the gradient is Sᵀ∇U.
θ moves S times as far as φ. So a step takes the turned gradient, moves an array that begins at 0, and θ goes S times as far at
its end. What a chain holds is θ itself, wherever it is looked at, kept or continued; p and ξ are those of φ. The two products
take d² multiplications each, in the order they are written in: a chain has the same bits in whichever loop it runs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.compiler.open_functions import LOOP, implements, loop, open_function
from sgmcmc.compiler.precision import like
from sgmcmc.integrators.state import Noise
from sgmcmc.thermostats import couples_coordinates, put_in

__all__ = [
    "DiagonalScale",
    "MatrixScale",
    "NoiseInAxes",
    "add_product",
    "at",
    "from_units",
    "in_axes",
    "in_units",
    "learn_variance",
    "part",
    "slope_in_units",
    "turn",
]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


class DiagonalScale(NamedTuple):
    """A scale of its own for every coordinate."""

    values: Any


@open_function
def at(scale, i):
    """The scale of coordinate i: one number for all, or `DiagonalScale`."""


@implements(at, np.floating)
def _(scale, i):
    return scale


@implements(at, DiagonalScale)
def _(scale, i):
    return scale.values[i]


@open_function
def part(scale, low, high):
    """The scale of the coordinates low … high."""


@implements(part, np.floating)
def _(scale, low, high):
    return scale


@implements(part, DiagonalScale)
def _(scale, low, high):
    return DiagonalScale(scale.values[low:high])


@open_function(fastmath=LOOP)
def learn_variance(scale, thermostat, variance, difference, added, gain):
    """Put a sample of the gradient's noise, `difference`, and the variance `added` on purpose into the running mean of V."""


@implements(learn_variance)
def _(scale, thermostat, variance, difference, added, gain):
    for i in range(difference.size):
        s = at(scale, i)
        put_in(thermostat, variance, i, difference.size, s * s * (difference[i] * difference[i] + added), gain)


class MatrixScale(NamedTuple):
    """Axes and units of a chain's own."""

    axes: Any  # S; its columns are the axes
    transposed: Any  # Sᵀ, so that both products run along rows


class NoiseInAxes(NamedTuple):
    """`Noise`, with room for what a step works on in its axes."""

    p: Any
    theta: Any
    xi: Any
    slope: Any  # Sᵀ∇U
    moved: Any  # what the step adds to φ


def in_axes(noise: Noise, dim: int, dtype: Any) -> NoiseInAxes:
    """These buffers, with that room."""
    room: list[NDArray[Any]] = [np.zeros(dim, dtype) for _ in range(2)]
    return NoiseInAxes(*noise, *room)


def from_units(scale: Any, x: Any) -> Any:
    """Sφ for φ = x (…, dim), whatever form the scale S has: a number, one for every coordinate, a matrix."""
    return x @ scale.T if np.ndim(scale) == 2 else scale * x


def slope_in_units(scale: Any, g: Any) -> Any:
    """Sᵀ∇U for ∇U = g (…, dim)."""
    return g @ scale if np.ndim(scale) == 2 else scale * g


def in_units(scale: Any, x: Any) -> Any:
    """S⁻¹θ for θ = x (…, dim)."""
    return np.linalg.solve(scale, np.asarray(x)[..., np.newaxis])[..., 0] if np.ndim(scale) == 2 else x / scale


@implements(couples_coordinates, np.floating)
@implements(couples_coordinates, DiagonalScale)
def _(part):
    return False


@implements(at, MatrixScale)
def _(scale, i):
    return like(scale.axes[0, 0], 1)


@implements(part, MatrixScale)
def _(scale, low, high):
    return scale


@implements(learn_variance, MatrixScale)
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
