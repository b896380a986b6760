"""Loops over a vector that every engine needs: a copy, the work of the gradient, a check that all is finite."""

from __future__ import annotations

from sgmcmc.compiler.open_functions import loop
from sgmcmc.compiler.precision import like, zero

__all__ = ["copy", "is_finite", "nothing_if_finite", "sum_of_work", "work"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@loop(inline=True)
def copy(source, target):
    """target[:] = source, without the error message that NumPy's would have to allocate."""
    for i in range(source.size):
        target[i] = source[i]


@loop(inline=True)
def sum_of_work(theta, origin, gradient):
    """(θ − origin)·∇U."""
    total = zero(theta[0])
    for i in range(theta.size):
        total += (theta[i] - origin[i]) * gradient[i]
    return total


@loop(inline=True)
def work(theta, origin, gradient):
    """(θ − origin)·∇U/d, whose mean is T for any fixed origin; one that is near makes it less noisy."""
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
    """Whether θ and ξ are finite: an infinite friction would hold θ still for ever."""
    return nothing_if_finite(state.theta) + nothing_if_finite(state.xi) == 0.0
