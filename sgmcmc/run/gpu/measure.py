"""The variance of gradient noise, measured on a GPU.

A learning step has two looks at its rows, and keeps the sum of the first: one half of the rows, then the other; or, with one
row per step, that of the next step, then its own. All other steps, and all steps of a run that measures nothing, have one look:
their loop over looks compiles to nothing.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from sgmcmc.compiler.open_functions import LOOP, implements, loop, open_function
from sgmcmc.integrators.preconditioning import part
from sgmcmc.run.loop_compiled import Measured, Unmeasured, put_sample
from sgmcmc.run.row_sharding import contrast
from sgmcmc.thermostats import is_learning_step

__all__ = ["Look", "compare", "compare_strand", "keep", "learn_strand", "look_of", "looks"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


class Look(NamedTuple):
    """Some rows of a step. The first ones are still to be chosen, and their sum starts at 0."""

    rows: Any  # in a tuple, as a device function cannot return a slice
    before: Any  # the number of rows of the step before them
    step: Any  # the step that the rows belong to


@open_function
def looks(measure, step):
    """The number of looks of a step."""


@implements(looks, Unmeasured)
def _(measure, step):
    return 1


@implements(looks, Measured)
def _(measure, step):
    return 2 if is_learning_step(step) else 1


@open_function
def look_of(measure, half, rows, step, number):
    """Look `number` of a step, with `half` of its rows in the first."""


@implements(look_of, Unmeasured)
def _(measure, half, rows, step, number):
    return Look(rows, 0, step)


@implements(look_of, Measured)
def _(measure, half, rows, step, number):
    first = is_learning_step(step) and number == 0
    whole = half == 0 or not is_learning_step(step)
    low, high = 0 if whole or first else half, half if first and not whole else rows.size
    return Look(rows[low:high], low, step + 1 if first and half == 0 else step)


@loop
def compare(measure, gradient, half, n, difference, out):
    """A sample of the noise of ∇Ũ into `difference`, which holds the sum of the first look; `out` is the sum over all rows."""
    factor = measure.amplitude * gradient.weight
    if half > 0:
        contrast(difference, out, factor, half, n)
    else:
        for j in range(out.size):
            difference[j] = math.sqrt(0.5) * factor * (difference[j] - out[j])


# ---- a block of threads ------------------------------------------------------------------------------------------------


@open_function(inline=False, fastmath=LOOP)
def keep(measure, own, step, number, lane, lanes):
    """Keep the sum of a first look, on all threads, if there is a second."""


@implements(keep, Unmeasured)
def _(measure, own, step, number, lane, lanes):
    return None


@implements(keep, Measured)
def _(measure, own, step, number, lane, lanes):
    if is_learning_step(step) and number == 0:
        for j in range(lane, own.slope.size, lanes):
            own.difference[j] = own.slope[j]


@open_function(inline=False, fastmath=LOOP)
def compare_strand(measure, common, own, step, low, high):
    """`compare`, for the coordinates low … high − 1."""


@implements(compare_strand, Unmeasured)
def _(measure, common, own, step, low, high):
    return None


@implements(compare_strand, Measured)
def _(measure, common, own, step, low, high):
    if is_learning_step(step):
        compare(measure, common.gradient, common.half, common.rows, own.difference[low:high], own.slope[low:high])


@open_function(inline=False, fastmath=LOOP)
def learn_strand(measure, common, own, step, low, high):
    """Add the sample of coordinates low … high − 1 to the running mean of the variance."""


@implements(learn_strand, Unmeasured)
def _(measure, common, own, step, low, high):
    return None


@implements(learn_strand, Measured)
def _(measure, common, own, step, low, high):
    if is_learning_step(step):
        dynamics, variables = common.dynamics, common.sizes.xi
        variance = own.state.variance[min(low, variables) : min(high, variables)]
        scale, difference, slope = part(dynamics.scale, low, high), own.difference[low:high], own.slope[low:high]
        put_sample(common.gradient, scale, dynamics.thermostat, variance, difference, slope, step)
