"""One chain on a block of threads: the work of a thread between two barriers of `kernels.block_per_chain`.

`lane` is the number of this thread in its block, `lanes` the number of threads. Results do not depend on `lanes`: a sum over
features is always split into `LANES` partial sums, the coordinates into `STRANDS` strands, and both are added in order. Arrays of
all chains are shaped (chain, coordinate), as neighbouring threads work on neighbouring coordinates of one chain.

Shared memory, in numbers of the run's precision: SUMS × WIDTH partial sums, SUMS errors and 2 × STRANDS sums of what is
measured, 2432 in all: 19 KiB in double precision, half of that in single.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sgmcmc.compiler.open_functions import LOOP, implements, leaf, loop, open_function
from sgmcmc.compiler.precision import like, zero
from sgmcmc.gpu.update import advance_stretch, stretch
from sgmcmc.integrators.resampling import resample_momentum
from sgmcmc.integrators.state import Noise, State
from sgmcmc.integrators.step import BEFORE_THE_FIRST_STEP
from sgmcmc.minibatch import FullData, WithReplacement, choose
from sgmcmc.potentials import add_gradient_within, part_of_sum, sum_over_rows, sums_per_row, to_errors, weigh
from sgmcmc.rng import MINIBATCH, Stream, integer_below
from sgmcmc.run.array_loops import copy, is_finite
from sgmcmc.run.coordinate_temperatures import ORIGIN
from sgmcmc.run.gpu.loop import compensated, disturb, rows_column
from sgmcmc.run.gpu.measure import compare_strand, learn_strand

__all__ = [
    "LANES",
    "STRANDS",
    "SUMS",
    "WIDTH",
    "Own",
    "add_measured",
    "add_partial_sums",
    "add_rows",
    "advance_strands",
    "begin_strands",
    "choose_together",
    "find_alone",
    "find_errors",
    "finish_strands",
    "own_arrays",
    "record",
    "rows_at_once",
]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

LANES = 32  # partial sums of a sum over features
WIDTH = LANES + 1  # a row of partial sums in shared memory; odd, so that a column of them lies in different banks
SUMS = 64  # sums over features between two barriers
STRANDS = 128  # strand s has the coordinates 4s … 4s + 3, those 4·128 further on, and so on


class Own(NamedTuple):
    """The arrays of one chain, and its random stream."""

    state: Any
    noise: Any
    slope: Any  # Σ_rows of the gradient, then ∇Ũ
    difference: Any  # a sample of its noise
    normals: Any
    rows: Any
    memory: Any
    model_scratch: Any
    origin: Any
    sums: Any
    stream: Any


@loop
def own_arrays(common, state, scratch, key0, key1, number, chain):
    """Chain `number`, whose arrays are row `chain` of the common arrays.

    Unused arrays have length 1 here, not 0; `stretch` cuts them to length. (An array of another length would hold two
    registers through all steps.)
    """
    return Own(
        State(
            state.theta[chain],
            state.p[chain],
            state.xi[chain],
            state.variance[chain],
            state.loss[chain],
            state.bend[chain],
            state.span[chain],
            state.pending[chain],
        ),
        Noise(scratch.noise_p[chain], scratch.noise_theta[chain], scratch.noise_xi[chain]),
        scratch.gradient[chain],
        scratch.difference[chain],
        scratch.gradient_noise[chain],
        scratch.rows[rows_column(common.gradient.minibatch, chain), : common.rows],
        scratch.memory[chain],
        scratch.model_scratch[chain],
        scratch.origin[chain],
        scratch.sums[chain],
        Stream(key0, key1, number),
    )


# ---- rows ------------------------------------------------------------------------------------------------------------


@open_function(inline=False, fastmath=LOOP)
def choose_together(minibatch, n_rows, own, step, lane, lanes):
    """`choose`, by all threads if each row depends on its address alone; other rules by the first thread."""


@implements(choose_together)
def _(minibatch, n_rows, own, step, lane, lanes):
    if lane == 0:
        choose(minibatch, n_rows, own.stream, step, own.memory, own.rows)


@implements(choose_together, FullData)
def _(minibatch, n_rows, own, step, lane, lanes):
    return None


@implements(choose_together, WithReplacement)
def _(minibatch, n_rows, own, step, lane, lanes):
    for i in range(lane, own.rows.size, lanes):
        own.rows[i] = integer_below(n_rows, own.stream, step, i, MINIBATCH)


# ---- Σ_rows of the gradient --------------------------------------------------------------------------------------------


@leaf
def rows_at_once(model):
    """How many rows are summed between two barriers; 0 for a model whose gradient one thread computes."""
    width = sums_per_row(model)
    return SUMS // width if width > 0 else 0


@loop
def find_alone(model, own, rows, before, lane):
    """Add these rows to the gradient on the first thread; `before` rows are in it already."""
    if lane == 0:
        if before == 0:
            for j in range(own.slope.size):
                own.slope[j] = 0.0
        add_gradient_within(model, own.state.theta, rows, own.model_scratch, own.slope)


@loop
def add_partial_sums(model, theta, rows, partial, lane, lanes):
    """partial[s, n] = partial sum n of sum s; the 32 threads of a warp read neighbouring features of one row."""
    width = sums_per_row(model)
    for work in range(lane, rows.size * width * LANES, lanes):
        s, part = work // LANES, work % LANES
        partial[s, part] = part_of_sum(model, theta, rows[s // width], s % width, part, LANES)


@loop
def find_errors(model, rows, partial, errors, lane, lanes):
    """The sums of each row from their partial sums, and the derivatives by them; a thread has whole rows."""
    width = sums_per_row(model)
    for r in range(lane, rows.size, lanes):
        for s in range(r * width, (r + 1) * width):
            total = partial[s, 0]
            for part in range(1, LANES):
                total += partial[s, part]
            errors[s] = total
        to_errors(model, rows[r], errors[r * width : (r + 1) * width])


@loop
def add_rows(model, rows, errors, slope, first, lane, lanes):
    """Add these rows to the gradient; `first` rows are in it already. Neighbouring threads have neighbouring features."""
    for j in range(lane, slope.size, lanes):
        found = sum_over_rows(model, rows, errors, j)
        slope[j] = slope[j] + found if first > 0 else found


# ---- the update --------------------------------------------------------------------------------------------------------


@loop
def begin_strands(common, own, lane, lanes):
    """Draw the first momenta of a chain."""
    dynamics, n = common.dynamics, common.sizes.p
    size = common.together
    for strand in range(lane, STRANDS, lanes):
        for low in range(strand * size, n, STRANDS * size):
            p = own.state.p[low : min(low + size, n)]
            resample_momentum(own.stream, dynamics.kinetics, dynamics.temperature, p, BEFORE_THE_FIRST_STEP, low)


@loop
def work_of(theta, origin, gradient):
    """(θ − origin)·∇U of a few coordinates."""
    total = zero(theta[0])
    for i in range(theta.size):
        total += (theta[i] - origin[i]) * gradient[i]
    return total


@loop
def finish_strands(common, own, phase, now, measured, lane, lanes):
    """The rest of the gradient: weight, prior, noise, clipping; then the sample of its noise.

    measured[1, s] = (θ − origin)·∇U of strand s.
    """
    dim, gradient = common.sizes.theta, common.gradient
    size = common.together
    for strand in range(lane, STRANDS, lanes):
        work = zero(gradient.weight)
        for low in range(strand * size, dim, STRANDS * size):
            high = min(low + size, dim)
            theta, slope, origin = own.state.theta[low:high], own.slope[low:high], own.origin[low:high]
            compare_strand(gradient.measure, common, own, now, low, high)
            weigh(common.model, theta, gradient.weight, slope)
            disturb(gradient, own.normals[min(low, own.normals.size) : high], own.stream, now, low, slope)
            learn_strand(gradient.measure, common, own, now, low, high)
            if phase == ORIGIN:
                copy(theta, origin)
            work += work_of(theta, origin, slope)
        measured[1, strand] = work


@loop
def advance_strands(common, own, now, before, h, measured, lane, lanes):
    """A step of the coordinates whose gradient this thread finished. Returns whether their θ and ξ are finite.

    measured[0, s] = Σ p K'(p) of strand s.
    """
    dim, dynamics, fine = common.sizes.theta, common.dynamics, True
    size = common.together
    for strand in range(lane, STRANDS, lanes):
        virial = zero(h)
        for low in range(strand * size, dim, STRANDS * size):
            part = stretch(own.state, common.sizes, low, min(low + size, dim))
            virial += advance_stretch(dynamics, part, own.slope, own.noise, own.stream, now, before, h, low)
            fine = fine and is_finite(part)
        measured[0, strand] = virial
    return fine


@loop
def add_measured(own, measured, lane):
    """Add the sums of the strands to those of the chain, on the first thread; four accumulators hide the latency."""
    if lane == 0:
        for kind in range(2):
            a, b, c, d = measured[kind, 0], measured[kind, 1], measured[kind, 2], measured[kind, 3]
            for s in range(4, STRANDS, 4):
                a += measured[kind, s]
                b += measured[kind, s + 1]
                c += measured[kind, s + 2]
                d += measured[kind, s + 3]
            mean = ((a + b) + (c + d)) / like(a, own.slope.size)
            own.sums[kind], own.sums[kind + 2] = compensated(own.sums[kind], own.sums[kind + 2], mean)


@loop
def record(theta, out, lane, lanes):
    """out[:] = θ, by all threads."""
    for j in range(lane, theta.size, lanes):
        out[j] = theta[j]
