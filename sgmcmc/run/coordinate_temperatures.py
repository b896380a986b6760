"""Configurational temperatures by coordinate, in segments of the run.

A mean over coordinates hides one that is far too hot. Per tracked coordinate and segment these sums are kept: Σ (θ − o) ∂U,
Σ (θ − o) and Σ ∂U, with o the origin of the chain. They give the mean of (θ − c) ∂U for any centre c chosen later.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.compiler.open_functions import loop
from sgmcmc.integrators.lanes import LARGEST

__all__ = [
    "MEASURED",
    "MOST",
    "NOTHING",
    "ORIGIN",
    "add_to_segment",
    "new_segment_sums",
    "temperatures_of",
    "tracked_coordinates",
]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

# The phase of a step says what it measures. A number >= 0 is a segment: also its sums by coordinate.
ORIGIN = -3  # θ is stored, as the origin of the work
NOTHING = -2
MEASURED = -1  # both temperatures, as means over coordinates

MOST = 1024  # tracked coordinates: of more, evenly spaced ones
MOST_BYTES = 1 << 26  # of the sums of all chains

Array = NDArray[np.float64]


@loop(inline=True)
def add_to_segment(theta, origin, gradient, sums):
    """Add a step to the sums of its segment: three per tracked coordinate, and the number of steps."""
    n = sums.size // 3
    stride = (theta.size + n - 1) // n
    for k in range(n):
        moved, slope = theta[k * stride] - origin[k * stride], gradient[k * stride]
        sums[k] += np.float64(moved * slope)
        sums[n + k] += np.float64(moved)
        sums[2 * n + k] += np.float64(slope)
    sums[3 * n] += np.float64(1)


def tracked_coordinates(dim: int, chains: int, segments: int) -> NDArray[np.intp]:
    """The tracked coordinates: all, or evenly spaced ones; all of those of a chain in a lane group."""
    most = max(LARGEST, min(MOST, MOST_BYTES // (24 * chains * segments)))
    stride = -(-dim // most)
    count = -(-dim // stride)
    return np.arange(count) * -(-dim // count)


def new_segment_sums(segments: int, count: int) -> Array:
    """Zero sums, a row per segment."""
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
    halves = total[:half], total[half:] if len(total) > 1 else total
    counts = steps[:half], steps[half:] if len(total) > 1 else steps
    first, second = (one.sum(axis=0) / n.sum(axis=0) for one, n in zip(halves, counts, strict=True))
    return np.asarray(np.where((np.arange(len(total)) < half)[:, None], second, first))
