"""Prefetching: to ask for rows that will be needed soon, while there is still work on those that are here.

Rows that are chosen at random are in no cache, and a processor does not guess them. It can have a few dozen lines of memory on
their way at once, but only if they are named in time.
"""

from __future__ import annotations

import numpy as np

from sgmcmc.compiler.intrinsics import fetch
from sgmcmc.compiler.open_functions import implements, loop, open_function

__all__ = ["fetch", "fetch_row"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@open_function
def per_line(number):
    """How many numbers of this kind are in a line of memory: known to the compiler, as an array's `itemsize` is not."""


@implements(per_line, np.float32)
def _(number):
    return 16


@implements(per_line, np.float64)
def _(number):
    return 8


@loop(inline=True)
def fetch_row(x):
    """All of a contiguous row."""
    for j in range(0, x.size, per_line(x[0])):
        fetch(x, j)
    fetch(x, x.size - 1)
