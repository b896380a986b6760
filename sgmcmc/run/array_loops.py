"""Loops over a vector for all chain loops: copy, noise and clipping and work of the gradient, check that all is finite."""

from __future__ import annotations

import math

from sgmcmc.compiler.open_functions import loop
from sgmcmc.compiler.precision import like, zero

__all__ = ["add_noise_and_clip", "copy", "is_finite", "nothing_if_finite", "sum_of_work", "work"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@loop(inline=True)
def copy(source, target):
    """target[:] = source, without the error message for which NumPy's allocates."""
    for i in range(source.size):
        target[i] = source[i]


@loop(inline=True)
def add_noise_and_clip(gradient, normals, out):
    """What a run does to a gradient on request: noise N(0, 2B) from these normals, then clipping. NaN stays, and is seen."""
    if gradient.noise > 0.0:
        amplitude = math.sqrt(
            gradient.noise + gradient.noise
        )  # no literal: beside arrays in double precision it is double
        for i in range(out.size):
            out[i] += amplitude * normals[i]
    if gradient.clip < math.inf:
        for i in range(out.size):
            out[i] = min(max(out[i], -gradient.clip), gradient.clip) if out[i] == out[i] else out[i]


@loop(inline=True)
def sum_of_work(theta, origin, gradient):
    """(θ − origin)·∇U."""
    total = zero(theta[0])
    for i in range(theta.size):
        total += (theta[i] - origin[i]) * gradient[i]
    return total


@loop(inline=True)
def work(theta, origin, gradient):
    """(θ − origin)·∇U/d, whose mean is T for any fixed origin; its variance is smaller for one near θ."""
    total = sum_of_work(theta, origin, gradient)
    return total / like(total, theta.size)


@loop(inline=True)
def nothing_if_finite(values):
    """Σ 0·x: 0 if all numbers are finite, else NaN. The sum keeps the loop free of branches."""
    total = values.dtype.type(0)
    for i in range(values.size):
        total += 0.0 * values[i]
    return total


@loop(inline=True)
def is_finite(state):
    """Whether θ and ξ are finite: an infinite friction would stop θ."""
    return nothing_if_finite(state.theta) + nothing_if_finite(state.xi) == 0.0
