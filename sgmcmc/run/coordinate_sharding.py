"""A long chain in ranges of coordinates, which are independent between two gradients.

What a step does beside its gradient (the work of the gradient, the update, a look whether all is finite) is done piece by piece,
while a piece is in the cache: one way through memory in place of three. A leader finds the gradients and gives a signal; he and
his helpers then take a stretch of the pieces each, on the same arrays. Sums are kept per piece and added up in their order, so
nothing depends on how many threads there are.
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
from sgmcmc.run.coordinate_temperatures import MEASURED, ORIGIN, watch
from sgmcmc.run.row_sharding import APART, Whole, awaited

__all__ = ["Pieces", "help_chunk", "helpers", "move_by", "pieces_for"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


class Pieces(NamedTuple):
    """What a thread knows of the pieces; the arrays are those of all."""

    sums: NDArray[Any]  # (3, pieces) of a step: Σ p K'(p), Σ (θ − origin)·∇U, and 0 if all is finite, else NaN
    # Of the leader, at 0: the step after the last whose gradient is there. Of helper i, at i·APART: that whose pieces are done.
    signals: NDArray[np.int64]
    me: int
    team: int
    yielding: int  # the address of `sched_yield`


def pieces_for(dynamics: Dynamics, model: Any, dim: int, dtype: Any) -> Whole | Pieces:
    """Whether a chain is long enough for pieces: it depends on the chain, never on the threads.

    Where Python finds the gradient, Python also calls for the update, which `sgmcmc.integrators.threaded` then shares out.
    """
    if isinstance(model, PythonPotential) or not is_long(dynamics, dim):
        return Whole()
    return helpers(1, np.zeros((3, -(-dim // PIECE)), dtype))[0]


def helpers(team: int, sums: NDArray[Any]) -> list[Pieces]:
    """The leader and his helpers, so many in all."""
    signals = np.zeros((team + 1) * APART, np.int64)
    return [Pieces(sums, signals, me, team, yield_address()) for me in range(team)]


@open_function(on=1, inline=True, fastmath=LOOP)
def move_by(pieces, dynamics, state, buffers, row, stream, step, before, h, phase):
    """All that a step does after its gradient, as a whole or in pieces; gives back whether θ and ξ are finite after it.

    An infinite ξ would hold θ still for ever. Temperatures are summed up in `buffers` as `phase` says.
    """


@implements(move_by, Whole)
def _(pieces, dynamics, state, buffers, row, stream, step, before, h, phase):
    theta, gradient = state.theta, buffers.gradient
    if phase == ORIGIN:
        copy(theta, buffers.origin)
    elif phase >= MEASURED:
        buffers.sums[1] += work(theta, buffers.origin, gradient)
        if phase >= 0:
            watch(theta, buffers.origin, gradient, buffers.watch[phase])
    virial = update(dynamics, state, gradient, buffers.noise, row, stream, step, before, h)
    if phase >= MEASURED:
        buffers.sums[0] += virial / theta.size
        buffers.sums[2] += 1.0
    return is_finite(state)


@implements(move_by, Pieces)
def _(pieces, dynamics, state, buffers, row, stream, step, before, h, phase):
    if phase >= 0:  # before helpers change θ
        watch(state.theta, buffers.origin, buffers.gradient, buffers.watch[phase])
    if pieces.team > 1:
        give_signal(pieces.signals, 0, step + 1)
    b = buffers
    move_pieces(pieces, dynamics, state, b.gradient, b.origin, b.noise, stream, step, before, h, phase)
    for other in range(1, pieces.team):
        if not awaited(pieces, other, step):
            state.theta[0] = np.nan  # a chain that cannot go on ends as one that diverged
            return False
    virial, done, finite = np.float64(0), np.float64(0), np.float64(0)
    for k in range(pieces.sums.shape[1]):
        virial += pieces.sums[0, k]
        done += pieces.sums[1, k]
        finite += pieces.sums[2, k]
    if phase >= MEASURED:
        buffers.sums[0] += virial / state.theta.size
        buffers.sums[1] += done / state.theta.size
        buffers.sums[2] += 1.0
    if finite != 0.0:
        if pieces.team > 1:
            give_signal(pieces.signals, pieces.team * APART, 1)  # there will be no next gradient to wait for
        return False
    return True


@loop
def move_pieces(pieces, dynamics, state, gradient, origin, noise, stream, step, before, h, phase):
    """The pieces of this thread, one after the other, from the work of the gradient to the look whether all is finite."""
    count, sums = pieces.sums.shape[1], pieces.sums
    for k in range(pieces.me * count // pieces.team, (pieces.me + 1) * count // pieces.team):
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
def help_chunk(pieces, dynamics, state, gradient, origin, noise, stream, step, before, step_sizes, phases):
    """What a helper does for a chunk: his pieces of every step, as soon as its gradient is there. Gives back how many."""
    for t in range(step_sizes.size):
        now, h = step + t, step_sizes[t]
        if not awaited(pieces, 0, now):
            return t
        move_pieces(pieces, dynamics, state, gradient, origin, noise, stream, now, before, h, phases[t])
        before = h
        give_signal(pieces.signals, pieces.me * APART, now + 1)
    return step_sizes.size
