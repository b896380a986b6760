"""Coordinate sharding: the update of a long chain by ranges of coordinates, which are independent between two gradients.

All that a step does after its gradient (work, update, check that all is finite) is done shard by shard, while a shard is in the
cache: one pass through memory in place of three. The leader computes the gradient and signals; all threads then update a range of
the shards each, in the same arrays. Sums are kept per shard and added in order, so nothing depends on the number of threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.compiler.intrinsics import give_signal, yield_address
from sgmcmc.compiler.kernels import kernel
from sgmcmc.compiler.open_functions import LOOP, implements, loop, open_function
from sgmcmc.integrators import Dynamics
from sgmcmc.integrators.step import update, update_blocks
from sgmcmc.integrators.threaded import PIECE, is_long
from sgmcmc.potentials import PythonPotential
from sgmcmc.run.array_loops import copy, is_finite, nothing_if_finite, sum_of_work, work
from sgmcmc.run.coordinate_temperatures import MEASURED, ORIGIN, add_to_segment
from sgmcmc.run.row_sharding import SIGNAL_STRIDE, Unsharded, awaited

__all__ = ["CoordinateShards", "coordinate_shards_for", "run_helper", "split_coordinates", "update_sharded"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


class CoordinateShards(NamedTuple):
    """The shards as one thread sees them; the arrays are shared by all threads."""

    sums: NDArray[Any]  # (3, shards) of a step: Σ p K'(p), Σ (θ − origin)·∇U, and 0 if all is finite, else NaN
    # Leader, at 0: the step after the last one with a gradient. Helper i, at i·SIGNAL_STRIDE: the one after its last update.
    signals: NDArray[np.int64]
    thread: int
    threads: int
    yielding: int  # address of `sched_yield`


def coordinate_shards_for(dynamics: Dynamics, model: Any, dim: int, dtype: Any) -> Unsharded | CoordinateShards:
    """The shards of a chain, if it is long enough: it depends on the chain, never on the threads.

    Where Python computes the gradient, it also calls the update, which `sgmcmc.integrators.threaded` divides among threads.
    """
    if isinstance(model, PythonPotential) or not is_long(dynamics, dim):
        return Unsharded()
    return split_coordinates(1, np.zeros((3, -(-dim // PIECE)), dtype))[0]


def split_coordinates(threads: int, sums: NDArray[Any]) -> list[CoordinateShards]:
    """The same shards for each of `threads` threads; the first is the leader."""
    signals = np.zeros((threads + 1) * SIGNAL_STRIDE, np.int64)
    return [CoordinateShards(sums, signals, thread, threads, yield_address()) for thread in range(threads)]


@open_function(on=1, inline=True, fastmath=LOOP)
def update_sharded(shards, dynamics, state, buffers, row, stream, step, before, h, phase):
    """All that a step does after its gradient, sharded or not. Returns whether θ and ξ are finite.

    An infinite ξ would stop θ. Temperatures are added to the sums in `buffers` as `phase` says.
    """


@implements(update_sharded, Unsharded)
def _(shards, dynamics, state, buffers, row, stream, step, before, h, phase):
    theta, gradient = state.theta, buffers.gradient
    if phase == ORIGIN:
        copy(theta, buffers.origin)
    elif phase >= MEASURED:
        buffers.sums[1] += work(theta, buffers.origin, gradient)
        if phase >= 0:
            add_to_segment(theta, buffers.origin, gradient, buffers.segment_sums[phase])
    virial = update(dynamics, state, gradient, buffers.noise, row, stream, step, before, h)
    if phase >= MEASURED:
        buffers.sums[0] += virial / theta.size
        buffers.sums[2] += 1.0
    return is_finite(state)


@implements(update_sharded, CoordinateShards)
def _(shards, dynamics, state, buffers, row, stream, step, before, h, phase):
    if phase >= 0:  # before helpers change θ
        add_to_segment(state.theta, buffers.origin, buffers.gradient, buffers.segment_sums[phase])
    if shards.threads > 1:
        give_signal(shards.signals, 0, step + 1)
    b = buffers
    update_shards(shards, dynamics, state, b.gradient, b.origin, b.noise, stream, step, before, h, phase)
    for other in range(1, shards.threads):
        if not awaited(shards, other, step):
            state.theta[0] = np.nan  # a stopped chain ends like a diverged one
            return False
    virial, done, finite = np.float64(0), np.float64(0), np.float64(0)
    for k in range(shards.sums.shape[1]):
        virial += shards.sums[0, k]
        done += shards.sums[1, k]
        finite += shards.sums[2, k]
    if phase >= MEASURED:
        buffers.sums[0] += virial / state.theta.size
        buffers.sums[1] += done / state.theta.size
        buffers.sums[2] += 1.0
    if finite != 0.0:
        if shards.threads > 1:
            give_signal(shards.signals, shards.threads * SIGNAL_STRIDE, 1)  # there is no next gradient
        return False
    return True


@loop
def update_shards(shards, dynamics, state, gradient, origin, noise, stream, step, before, h, phase):
    """The shards of this thread: work of the gradient, update, check that all is finite."""
    count, sums = shards.sums.shape[1], shards.sums
    for k in range(shards.thread * count // shards.threads, (shards.thread + 1) * count // shards.threads):
        low = k * PIECE
        high = min(low + PIECE, state.theta.size)
        theta = state.theta[low:high]
        if phase == ORIGIN:
            copy(theta, origin[low:high])
        elif phase >= MEASURED:
            sums[1, k] = sum_of_work(theta, origin[low:high], gradient[low:high])
        sums[0, k] = update_blocks(dynamics, state, gradient, noise, stream, step, before, h, low, high)
        sums[2, k] = nothing_if_finite(theta) + nothing_if_finite(state.xi[low:high])


@kernel
def run_helper(shards, dynamics, state, gradient, origin, noise, stream, step, before, step_sizes, phases):
    """A helper's part of a chunk: its shards of each step, once the gradient is there. Returns the number of steps."""
    for t in range(step_sizes.size):
        now, h = step + t, step_sizes[t]
        if not awaited(shards, 0, now):
            return t
        update_shards(shards, dynamics, state, gradient, origin, noise, stream, now, before, h, phases[t])
        before = h
        give_signal(shards.signals, shards.thread * SIGNAL_STRIDE, now + 1)
    return step_sizes.size
