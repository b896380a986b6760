"""The gradient as sums over a few ranges of the rows, each by one thread.

Every thread of a team runs the whole chain, on a state of its own: the rows, the noise and the update are the same for all, bit
for bit, and cheap. Only the sums over the rows are shared out. After its parts a thread gives a signal, waits for those of the
others, and adds up all parts in their order; so the draws do not depend on how many threads there are. One thread alone adds up
the same parts.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.compiler.intrinsics import give_signal, give_way, read_signal, yield_address
from sgmcmc.compiler.open_functions import LOOP, implements, loop, open_function
from sgmcmc.compiler.precision import like
from sgmcmc.minibatch import rows_per_step
from sgmcmc.potentials import add_gradient, estimate, sums_in_parts, weigh

__all__ = [
    "APART",
    "Parts",
    "Whole",
    "awaited",
    "contrast",
    "estimate_by",
    "estimate_in_halves",
    "first_half",
    "members",
    "parts_for",
]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

MOST_PARTS = 8
ROWS = 500  # of a part, at least; amortises the cache misses at its start
LONG = 1 << 15  # numbers in a batch: 10 µs at the least, where a signal takes a tenth of one
PATIENCE = 2000  # looks at a signal, some microseconds, before a thread lets others have its core
APART = 8  # signals lie in cache lines of their own


class Whole(NamedTuple):
    """Nothing is taken apart: one sum over all rows, one stretch of coordinates."""


class Parts(NamedTuple):
    """What a thread of a team knows; the arrays are those of all."""

    sums: NDArray[Any]  # (2, parts, dim): of this step, and of the one before, which another thread may still read
    # Of thread i, at i·APART: the step after the last whose sums it has. At the end, 1 is "give up".
    signals: NDArray[np.int64]
    me: int
    team: int
    yielding: int  # the address of `sched_yield`


def parts_for(model: Any, dim: int, minibatch: Any, n_rows: int, dtype: Any) -> Whole | Parts:
    """Whether the gradient is worth being taken in parts: it depends on the model and the batch, never on the threads."""
    size = rows_per_step(minibatch, n_rows)
    if size * dim < LONG or size < 2 or not sums_in_parts(model):
        return Whole()
    return members(1, np.zeros((2, min(max(2, size // ROWS), MOST_PARTS), dim), dtype))[0]


def members(team: int, sums: NDArray[Any]) -> list[Parts]:
    """A team of so many, for these parts."""
    signals = np.zeros((team + 1) * APART, np.int64)
    return [Parts(sums, signals, me, team, yield_address()) for me in range(team)]


@open_function(on=1, inline=True, fastmath=LOOP)
def estimate_by(parts, model, theta, rows, weight, step, out):
    """`estimate`, as a whole or in parts."""


@implements(estimate_by, Whole)
def _(parts, model, theta, rows, weight, step, out):
    estimate(model, theta, rows, weight, out)


@implements(estimate_by, Parts)
def _(parts, model, theta, rows, weight, step, out):
    add_parts(parts, model, theta, rows, step, out)
    weigh(model, theta, weight, out)


@loop(inline=True)
def add_parts(parts, model, theta, rows, step, out):
    """The sum over all rows, part by part, each by one thread."""
    sums, count = parts.sums[step % 2], parts.sums.shape[1]
    for k in range(parts.me, count, parts.team):
        own = sums[k]
        for j in range(own.size):
            own[j] = 0.0
        add_gradient(model, theta, rows[k * rows.size // count : (k + 1) * rows.size // count], own)
    together = await_others(parts, step)
    for j in range(out.size):
        out[j] = 0.0 if together else np.nan  # a chain that cannot go on ends as one that diverged
    for k in range(count):
        own = sums[k]
        for j in range(out.size):
            out[j] += own[j]


@open_function
def first_half(parts, n):
    """How many of n rows are in the first of the two halves that a learning step compares: whole parts, if there are any."""


@implements(first_half, Whole)
def _(parts, n):
    return n // 2


@implements(first_half, Parts)
def _(parts, n):
    count = parts.sums.shape[1]
    return (count // 2) * n // count


@open_function(on=1, inline=True, fastmath=LOOP)
def estimate_in_halves(parts, model, theta, rows, weight, factor, step, difference, out):
    """`estimate`, from two halves of the rows, n₁ and n₂ of n, and factor·(n/√(n₁n₂) Σ₁ − √(n₁/n₂) Σ) into `difference`.

    For factor = N/n its mean is 0 and its variance that of the gradient, if the rows are independent.
    """


@implements(estimate_in_halves, Whole)
def _(parts, model, theta, rows, weight, factor, step, difference, out):
    half = first_half(parts, rows.size)
    for j in range(out.size):
        out[j] = 0.0
    add_gradient(model, theta, rows[:half], out)
    for j in range(out.size):
        difference[j] = out[j]
    add_gradient(model, theta, rows[half:], out)
    contrast(difference, out, factor, half, rows.size)
    weigh(model, theta, weight, out)


@implements(estimate_in_halves, Parts)
def _(parts, model, theta, rows, weight, factor, step, difference, out):
    count = parts.sums.shape[1]
    add_parts(parts, model, theta, rows, step, out)
    for j in range(out.size):
        difference[j] = 0.0
    for k in range(count // 2):
        own = parts.sums[step % 2, k]
        for j in range(out.size):
            difference[j] += own[j]
    contrast(difference, out, factor, first_half(parts, rows.size), rows.size)
    weigh(model, theta, weight, out)


@loop(inline=True)
def contrast(first, total, factor, half, n):
    """first ← factor·(n/√(n₁n₂) Σ₁ − √(n₁/n₂) Σ), where `first` is Σ₁, the sum over n₁ = half of n rows, and `total` is Σ."""
    one, all_rows = like(factor, half), like(factor, n)
    two = all_rows - one
    of_first, of_total = factor * all_rows / math.sqrt(one * two), factor * math.sqrt(one / two)
    for j in range(first.size):
        first[j] = of_first * first[j] - of_total * total[j]


@loop
def await_others(parts, step):
    """Give a signal, and wait for those of the others. Whether all are there; not if a thread gave up."""
    if parts.team > 1:
        give_signal(parts.signals, parts.me * APART, step + 1)
        for other in range(parts.team):
            if not awaited(parts, other, step):
                return False
    return True


@loop
def awaited(team, other, step):
    """Wait for the signal of another thread that it is done with a step. Whether it came; not if a thread gave up."""
    looks = 0
    while read_signal(team.signals, other * APART) <= step:
        if read_signal(team.signals, team.team * APART) != 0:
            return False
        looks += 1
        if looks > PATIENCE:
            give_way(team.yielding)
    return True
