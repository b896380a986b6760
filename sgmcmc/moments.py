"""Running moments of θ for those who own the loop: nothing is stored but a mean and a variance per coordinate.

They are updated where the arrays live, in the launch or the compiled call of the step itself. They are in double precision
whatever the chain is in: a mean of float32 stops moving once a new number weighs less than its last bit, which may be after
10⁵ steps. On a GPU this moves as many bytes as compensated sums in single precision would.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sgmcmc.compiler.open_functions import LOOP, implements, leaf, open_function

__all__ = ["Moments", "NoMoments", "Running", "accumulate", "welford"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


class NoMoments(NamedTuple):
    """No moments: `accumulate` compiles to nothing."""


class Running(NamedTuple):
    """Moments as the kernels see them: the weight 1/n of the n-th position, and an array of each moment."""

    weight: Any
    mean: Any
    variance: Any


@leaf
def welford(weight, mean, variance, x):
    """Mean and variance with one number more, whose weight is 1/n (Welford); a variance is never below 0."""
    away = x - mean
    return mean + weight * away, (1.0 - weight) * (variance + weight * away * away)


@open_function(inline=False, fastmath=LOOP)
def accumulate(moments, theta, low, high):
    """Let the moments of the coordinates low … high − 1 know of the position θ."""


@implements(accumulate, NoMoments)
def _(moments, theta, low, high):
    return None


@implements(accumulate, Running)
def _(moments, theta, low, high):
    for i in range(low, high):
        x = np.float64(theta[i])
        moments.mean[i], moments.variance[i] = welford(moments.weight, moments.mean[i], moments.variance[i], x)


class Moments:
    """Running mean and variance of θ, coordinate by coordinate.

    Give it to ``sampler.step(state, gradient, moments=moments)`` for the steps that shall count. What counts is the
    position that the step arrives at, the one that `sample` would record. `mean` and `variance` (with 1/n, like
    `np.var`) are float64 arrays that live, and stay, where the chain does: on a GPU they have
    ``__cuda_array_interface__``.

    Examples
    --------
    >>> moments, sampler = sg.Moments(), sg.SGNHT(0.1)
    >>> state = sampler.step(sampler.init(np.zeros(2)), gradient=np.zeros(2), moments=moments)
    >>> moments, bool((moments.mean == state.theta).all())
    (<Moments of 1 steps>, True)
    """

    def __init__(self) -> None:
        self.count = 0
        self._arrays: tuple[Any, Any] | None = None
        self._on_device = False

    @property
    def mean(self) -> Any:
        return self._known()[0]

    @property
    def variance(self) -> Any:
        return self._known()[1]

    def _known(self) -> tuple[Any, Any]:
        if self._arrays is None:
            raise ValueError("there are no moments before the first step; call sampler.step(..., moments=this)")
        return self._arrays

    def next(self, dim: int, on_device: bool, upload: Any) -> Running:
        """What the kernel of the next step updates; `upload` brings arrays to where the chain lives."""
        if self._arrays is None:
            self._arrays, self._on_device = (upload(np.zeros(dim)), upload(np.zeros(dim))), on_device
        if on_device != self._on_device:
            here, there = ("on a GPU", "on the host") if self._on_device else ("on the host", "on a GPU")
            raise ValueError(f"moments live {here}, the chain {there}; give each chain a Moments of its own")
        if self.mean.size != dim:
            raise ValueError(
                f"moments are of {self.mean.size} coordinates, the chain has {dim}; give each chain a Moments of its own"
            )
        self.count += 1
        return Running(np.float64(1.0 / self.count), *self._arrays)

    def __repr__(self) -> str:
        return f"<Moments of {self.count} steps>"
