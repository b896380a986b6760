"""Watching coordinates: the terms of the configurational temperature, one coordinate at a time, in segments of the run.

A mean over coordinates hides one that is far too hot. Of every watched coordinate and segment are kept Σ (θ − o) ∂U, Σ (θ − o)
and Σ ∂U, with o the origin of the chain; so the mean of (θ − c) ∂U is known for any centre c that is chosen later.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.compiler.open_functions import loop
from sgmcmc.integrators.lanes import LARGEST

__all__ = ["MEASURED", "MOST", "NOTHING", "ORIGIN", "new_watch", "temperatures_of", "watch", "watched"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

# What a step measures, where it is not the number of a segment, whose coordinates are then measured one by one too.
ORIGIN = -3  # it notes θ, from which work is measured
NOTHING = -2
MEASURED = -1  # the two temperatures, as means over coordinates

MOST = 1024  # coordinates that are watched: of more, evenly spaced ones
MOST_BYTES = 1 << 26  # for all chains

Array = NDArray[np.float64]


@loop(inline=True)
def watch(theta, origin, gradient, sums):
    """Add what a step measures to the sums of its segment: the three of every watched coordinate, and how many steps."""
    n = sums.size // 3
    stride = (theta.size + n - 1) // n
    for k in range(n):
        moved, slope = theta[k * stride] - origin[k * stride], gradient[k * stride]
        sums[k] += np.float64(moved * slope)
        sums[n + k] += np.float64(moved)
        sums[2 * n + k] += np.float64(slope)
    sums[3 * n] += np.float64(1)


def watched(dim: int, chains: int, segments: int) -> NDArray[np.intp]:
    """The coordinates that are watched: all, or evenly spaced ones. All of those that a pack may have."""
    most = max(LARGEST, min(MOST, MOST_BYTES // (24 * chains * segments)))
    stride = -(-dim // most)
    count = -(-dim // stride)
    return np.arange(count) * -(-dim // count)


def new_watch(segments: int, count: int) -> Array:
    """The sums of a chain that has measured nothing, a row for each segment."""
    return np.zeros((segments, 3 * count + 1))


def temperatures_of(sums: Any, origins: Any) -> Array:
    """The mean of (θ − c) ∂U of each coordinate, (chain, segment, coordinate), out of the sums and origins of all chains.

    c is the mean of θ over the other chains, or, if there is one chain only, over the other half of its segments: with the
    mean of the same draws the result would be too small. NaN where nothing was measured.
    """
    count = origins.shape[1]
    work, moved, slope = (sums[:, :, k * count : (k + 1) * count] for k in range(3))
    steps, start = sums[:, :, 3 * count, None], np.asarray(origins, np.float64)[:, None]
    with np.errstate(all="ignore"):
        total, n = moved + start * steps, steps
        if len(sums) > 1:
            every, n = total.sum(axis=(0, 1)), n.sum(axis=(0, 1))
            center = (every - total.sum(axis=1)) / (n - steps.sum(axis=1))
            center = center[:, None]
        else:
            center = _of_other_half(total[0], n[0])[None]
        found = (work - (center - start) * slope) / steps
    return np.asarray(found)


def _of_other_half(total: Array, steps: Array) -> Array:
    """The mean over the segments of the other half, for each segment; over all if there is but one segment."""
    half = max(1, len(total) // 2)
    parts = total[:half], total[half:] if len(total) > 1 else total
    counts = steps[:half], steps[half:] if len(total) > 1 else steps
    first, second = (part.sum(axis=0) / n.sum(axis=0) for part, n in zip(parts, counts, strict=True))
    return np.asarray(np.where((np.arange(len(total)) < half)[:, None], second, first))
