"""The step of one long vector on several threads, each with a range of coordinates.

A piece begins at a multiple of the block, and every number it draws has the address of its coordinate; so what a chain does
depends neither on the number of threads nor on who took which piece. Σ p K'(p) is kept per piece and added up in their order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sgmcmc.compiler.kernels import kernel
from sgmcmc.integrators.state import Dynamics
from sgmcmc.integrators.step import BLOCK, in_one_block, noise_buffers, update_blocks
from sgmcmc.moments import accumulate
from sgmcmc.threads import share

__all__ = ["is_long", "update_spread"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

PIECE = 16 * BLOCK  # coordinates
LONG = 1 << 17  # coordinates: 0.3 ms for the cheapest sampler on one thread; to hand half of it over takes 0.05 ms


def is_long(dynamics: Dynamics, dim: int) -> bool:
    """Whether the update of a chain can be spread over threads, and is worth it."""
    return dim >= LONG and not in_one_block(dynamics)


@kernel
def update_pieces(dynamics, state, gradient, noise, moments, stream, step, before, h, virials, low, high):
    """The pieces low … high − 1 of a step, each with its moments while it is in the cache."""
    for piece in range(low, high):
        first = piece * PIECE
        end = min(first + PIECE, state.theta.size)
        virials[piece] = update_blocks(dynamics, state, gradient, noise, stream, step, before, h, first, end)
        accumulate(moments, state.theta, first, end)


def update_spread(
    dynamics: Dynamics,
    state: Any,
    gradient: Any,
    moments: Any,
    stream: Any,
    step: Any,
    before: Any,
    h: Any,
    threads: int,
) -> Any:
    """One step of a long vector, in place, on so many threads. Returns Σ p K'(p)."""
    dim, dtype = state.theta.size, state.theta.dtype
    virials = np.zeros(-(-dim // PIECE), dtype)

    def work(low: int, high: int) -> None:
        noise = noise_buffers(dynamics, dim, dtype)
        place = (stream, step, before, h)
        update_pieces(dynamics, state, gradient, noise, moments, *place, virials, np.int64(low), np.int64(high))

    share(work, virials.size, threads)
    return virials.sum()
