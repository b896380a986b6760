"""The chain loop of one CUDA thread: rows, gradient, noise, update, record, for the steps of one chunk.

The same open functions in the same order on the same random numbers as in `sgmcmc.run.loop_compiled.run_steps`; the memory
layout differs. Arrays of all chains are shaped (coordinate, chain), so that neighbouring threads read neighbouring numbers; a
chain has a column. Nothing allocates. Sums have the precision of the run, are compensated, and are downloaded after each chunk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sgmcmc.compiler.open_functions import implements, leaf, loop, open_function
from sgmcmc.compiler.precision import like
from sgmcmc.gpu.normals import fill_column, fill_step_noise
from sgmcmc.integrators.state import Moment, Noise, State
from sgmcmc.integrators.step import advance_block, begin
from sgmcmc.minibatch import FullData, choose
from sgmcmc.potentials import add_gradient_within, estimate_within, weigh
from sgmcmc.rng import GRADIENT_NOISE, Stream
from sgmcmc.run.array_loops import add_noise_and_clip, copy, is_finite, work
from sgmcmc.run.coordinate_temperatures import MEASURED, ORIGIN
from sgmcmc.run.gpu.measure import compare, look_of
from sgmcmc.run.loop_compiled import Measured, Unmeasured, put_sample
from sgmcmc.thermostats import is_learning_step

__all__ = ["Chunk", "Common", "Scratch", "run_thread"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


class Common(NamedTuple):
    """What all chains share: the dynamics, the model, its gradient, and the lengths of a chain's arrays."""

    dynamics: Any
    model: Any
    gradient: Any  # loop_compiled.Gradient
    sizes: Any  # State of lengths
    rows: Any  # rows per step
    half: Any  # rows of the first half in a learning step; 0: one row, compared with that of the next step
    together: Any  # how many coordinates a thread of a block advances at a time: the four of a Philox call, or all


class Scratch(NamedTuple):
    """Scratch arrays of all chains, (length, chain); unused ones have length 1."""

    noise_p: Any
    noise_theta: Any
    noise_xi: Any
    gradient: Any
    difference: Any  # a sample of the gradient's noise
    gradient_noise: Any
    rows: Any
    memory: Any
    model_scratch: Any
    origin: Any  # θ when recording began
    sums: Any  # (4, chains): Σ p K'/d and Σ (θ − origin)·∇U/d, and the compensation of each


class Chunk(NamedTuple):
    """The steps of a chunk: those of `step_sizes` from number `step` on; the first `recorded` of `kept` are recorded."""

    step: Any
    before: Any
    step_sizes: Any
    steps: Any
    kept: Any
    recorded: Any
    phases: Any  # what each step measures (sgmcmc.run.coordinate_temperatures); not by coordinate
    fresh: Any  # whether momenta are still to be drawn


@open_function
def rows_column(minibatch, chain):
    """The column of a chain's rows: all chains share the full data set."""


@implements(rows_column)
def _(minibatch, chain):
    return chain


@implements(rows_column, FullData)
def _(minibatch, chain):
    return 0 * chain


@loop(called=True)
def find_gradient_within(gradient, model, theta, rows, memory, normals, model_scratch, stream, step, out):
    """∇Ũ(θ) into `out`: minibatch, then added noise and clipping."""
    choose(gradient.minibatch, gradient.n_rows, stream, step, memory, rows)
    estimate_within(model, theta, rows, gradient.weight, model_scratch, out)
    disturb(gradient, normals, stream, step, 0, out)


@open_function(on=1, inline=True)
def find_gradient_by(measure, common, own, difference, rows, memory, normals, model_scratch, stream, step, out):
    """∇Ũ(θ) into `out`; in a learning step of a run that measures its noise, also that."""


@implements(find_gradient_by, Unmeasured)
def _(measure, common, own, difference, rows, memory, normals, model_scratch, stream, step, out):
    find_gradient_within(
        common.gradient, common.model, own.theta, rows, memory, normals, model_scratch, stream, step, out
    )


@implements(find_gradient_by, Measured)
def _(measure, common, own, difference, rows, memory, normals, model_scratch, stream, step, out):
    gradient, model, half, theta = common.gradient, common.model, common.half, own.theta
    if is_learning_step(step):
        for number in range(2):
            sum_within(gradient, half, model, theta, rows, memory, model_scratch, stream, step, number, difference, out)
        finish_within(common, theta, own.variance, normals, stream, step, difference, out)
    else:
        find_gradient_within(gradient, model, theta, rows, memory, normals, model_scratch, stream, step, out)


@loop(called=True)
def sum_within(gradient, half, model, theta, rows, memory, model_scratch, stream, step, number, difference, out):
    """Σ of the gradient over the rows of a look into `out`; the sum of the first look goes to `difference`."""
    look = look_of(gradient.measure, half, rows, step, number)
    if number > 0:
        copy(out, difference)
    if look.before == 0:
        choose(gradient.minibatch, gradient.n_rows, stream, look.step, memory, rows)
        for j in range(out.size):
            out[j] = 0.0
    add_gradient_within(model, theta, look.rows, model_scratch, out)


@loop(called=True)
def finish_within(common, theta, variance, normals, stream, step, difference, out):
    """The rest of a learning step's gradient, and V."""
    gradient, dynamics = common.gradient, common.dynamics
    compare(gradient.measure, gradient, common.half, common.rows, difference, out)
    weigh(common.model, theta, gradient.weight, out)
    disturb(gradient, normals, stream, step, 0, out)
    put_sample(gradient, dynamics.scale, dynamics.thermostat, variance, difference, out, step)


@loop
def disturb(gradient, normals, stream, step, first, out):
    """The noise and the clipping of the coordinates from `first` on, a multiple of 4."""
    if gradient.noise > 0.0:
        fill_column(normals, stream, step, GRADIENT_NOISE, first)
    add_noise_and_clip(gradient, normals, out)


@leaf
def compensated(total, lost, x):
    """total + x, and its rounding error (Kahan)."""
    y = x - lost
    result = total + y
    return result, (result - total) - y


@loop
def run_thread(common, state, scratch, chunk, key0, key1, number, chain, out):
    """A chunk of chain `number`, whose arrays are column `chain`. Returns the number of finite steps.

    `out` is (draw, coordinate, chain).
    """
    dynamics, gradient = common.dynamics, common.gradient
    stream = Stream(key0, key1, number)
    own = State(
        state.theta.T[chain],
        state.p.T[chain],
        state.xi.T[chain],
        state.variance.T[chain],
        state.loss.T[chain],
        state.bend.T[chain],
        state.span.T[chain],
        state.pending.T[chain],
    )
    theta, noise = own.theta, Noise(scratch.noise_p.T[chain], scratch.noise_theta.T[chain], scratch.noise_xi.T[chain])
    slope, difference = scratch.gradient.T[chain], scratch.difference.T[chain]
    origin, sums = scratch.origin.T[chain], scratch.sums.T[chain]
    rows = scratch.rows.T[rows_column(gradient.minibatch, chain)]
    normals, memory, model_scratch = (
        scratch.gradient_noise.T[chain],
        scratch.memory.T[chain],
        scratch.model_scratch.T[chain],
    )
    before, recorded = chunk.before, 0
    if chunk.fresh:
        begin(dynamics, own.p, stream)
    for t in range(chunk.steps):
        now, h = chunk.step + t, chunk.step_sizes[t]
        fill_step_noise(dynamics, noise, stream, now, 0)
        find_gradient_by(
            gradient.measure, common, own, difference, rows, memory, normals, model_scratch, stream, now, slope
        )
        phase = chunk.phases[t]
        if phase == ORIGIN:
            copy(theta, origin)
        elif phase >= MEASURED:
            sums[1], sums[3] = compensated(sums[1], sums[3], work(theta, origin, slope))
        virial = advance_block(dynamics, dynamics.scale, own, slope, noise, stream, Moment(now, before, h, 0))
        before = h
        if phase >= MEASURED:
            sums[0], sums[2] = compensated(sums[0], sums[2], virial / like(virial, theta.size))
        if not is_finite(own):
            return t
        if recorded < chunk.recorded and chunk.kept[recorded] == now:
            copy(theta, out[recorded, :, chain])
            recorded += 1
    return chunk.steps
