"""Units: a length for each coordinate, learnt while a chain warms up."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sgmcmc.compiler.open_functions import LOOP, implements, open_function
from sgmcmc.thermostats import (
    put_in,
)

__all__ = ["Units", "at", "learn_variance", "part"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


class Units(NamedTuple):
    """A scale of its own for every coordinate."""

    values: Any


@open_function
def at(scale, i):
    """The scale of coordinate i: one number for all, or `Units`."""


@implements(at, np.floating)
def _(scale, i):
    return scale


@implements(at, Units)
def _(scale, i):
    return scale.values[i]


@open_function
def part(scale, low, high):
    """The scale of the coordinates low … high."""


@implements(part, np.floating)
def _(scale, low, high):
    return scale


@implements(part, Units)
def _(scale, low, high):
    return Units(scale.values[low:high])


@open_function(fastmath=LOOP)
def learn_variance(scale, thermostat, variance, difference, added, gain):
    """Put a sample of the gradient's noise, `difference`, and the variance `added` on purpose into the running mean of V."""


@implements(learn_variance)
def _(scale, thermostat, variance, difference, added, gain):
    for i in range(difference.size):
        s = at(scale, i)
        put_in(thermostat, variance, i, difference.size, s * s * (difference[i] * difference[i] + added), gain)
