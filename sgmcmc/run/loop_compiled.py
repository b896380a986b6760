"""The compiled chain loop: rows, gradient, update, record, for the steps of one chunk."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from sgmcmc.compiler.kernels import kernel
from sgmcmc.compiler.open_functions import LOOP, implements, loop, open_function
from sgmcmc.integrators.preconditioning import learn_variance
from sgmcmc.integrators.step import begin, fill_ahead
from sgmcmc.minibatch import choose, coming
from sgmcmc.potentials import expect
from sgmcmc.rng import GRADIENT_NOISE, fill_normals
from sgmcmc.run.array_loops import add_noise_and_clip, copy
from sgmcmc.run.coordinate_sharding import update_sharded
from sgmcmc.run.row_sharding import estimate_in_halves, estimate_sharded
from sgmcmc.thermostats import is_learning_step, learning_gain

__all__ = ["Buffers", "Gradient", "Measured", "Unmeasured", "put_sample", "run_chunk"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


class Unmeasured(NamedTuple):
    """The variance of the gradient noise is known, or has no effect."""


class Measured(NamedTuple):
    """The variance of the gradient noise is measured on two halves of the rows of a learning step."""

    amplitude: float  # √(variance of this kind of batch / variance of independent rows)


class Gradient(NamedTuple):
    """How the gradient is estimated: rows of the data, their weight N/n, added noise, clipping."""

    minibatch: Any
    n_rows: int
    weight: float  # N/n; 1 without data
    noise: float  # B: the gradient gets N(0, 2B) per coordinate
    clip: float  # per coordinate; inf is off
    measure: Any = Unmeasured()  # or Measured: whether the run measures the variance of its noise


class Buffers(NamedTuple):
    """Scratch arrays of one chain, and where its measurements are summed."""

    noise: Any
    gradient: Any
    difference: Any  # a sample of the gradient noise, from two halves of the rows; empty if it is not measured
    gradient_noise: Any  # (1, dim), or (1, 0)
    rows: Any
    memory: Any
    origin: Any  # θ when recording began
    sums: Any  # float64: Σ p K'/d, Σ (θ − origin)·∇U/d, and the number of terms
    segment_sums: Any  # float64, (segments, …): see sgmcmc.run.coordinate_temperatures
    row_shards: Any  # Unsharded or RowShards
    coordinate_shards: Any  # Unsharded or CoordinateShards


@open_function(on=1, inline=True, fastmath=LOOP)
def estimate(measure, gradient, model, theta, buffers, stream, step):
    """(N/n) Σ over the rows, plus prior, into buffers.gradient; in a learning step also a sample of its noise."""


@implements(estimate, Unmeasured)
def _(measure, gradient, model, theta, buffers, stream, step):
    estimate_sharded(buffers.row_shards, model, theta, buffers.rows, gradient.weight, step, buffers.gradient)


@implements(estimate, Measured)
def _(measure, gradient, model, theta, buffers, stream, step):
    b = buffers
    if not is_learning_step(step):
        estimate_sharded(b.row_shards, model, theta, b.rows, gradient.weight, step, b.gradient)
    elif b.rows.size > 1:
        factor = measure.amplitude * gradient.weight
        estimate_in_halves(b.row_shards, model, theta, b.rows, gradient.weight, factor, step, b.difference, b.gradient)
    else:  # one row has no halves: compare it with the row of the next step
        choose(gradient.minibatch, gradient.n_rows, stream, step + 1, b.memory, b.rows)
        estimate_sharded(b.row_shards, model, theta, b.rows, gradient.weight, step, b.difference)
        choose(gradient.minibatch, gradient.n_rows, stream, step, b.memory, b.rows)
        estimate_sharded(b.row_shards, model, theta, b.rows, gradient.weight, step, b.gradient)
        for j in range(b.difference.size):
            b.difference[j] = math.sqrt(0.5) * measure.amplitude * (b.difference[j] - b.gradient[j])


@open_function(on=1, inline=True, fastmath=LOOP)
def learn_from(measure, gradient, dynamics, state, difference, slope, step):
    """Add the sample of the noise that `estimate` found to the running mean of its variance."""


@implements(learn_from, Unmeasured)
def _(measure, gradient, dynamics, state, difference, slope, step):
    return None


@implements(learn_from, Measured)
def _(measure, gradient, dynamics, state, difference, slope, step):
    if is_learning_step(step):
        put_sample(gradient, dynamics.scale, dynamics.thermostat, state.variance, difference, slope, step)


@loop(inline=True)
def put_sample(gradient, scale, thermostat, variance, difference, slope, step):
    """Add a sample of the noise of ∇Ũ, `slope`, to the running mean of its variance."""
    for j in range(difference.size):
        if abs(slope[j]) >= gradient.clip:
            difference[j] = 0.0  # a clipped gradient does not fluctuate
    added, gain = gradient.noise + gradient.noise, learning_gain(gradient.noise, step)
    learn_variance(scale, thermostat, variance, difference, added, gain)


@loop(inline=True)
def find_gradient(gradient, model, dynamics, state, buffers, stream, step):
    """∇Ũ(θ) into buffers.gradient: minibatch, then added noise and clipping."""
    b, out = buffers, buffers.gradient
    choose(gradient.minibatch, gradient.n_rows, stream, step, b.memory, b.rows)
    low, high = coming(gradient.minibatch, step, b.memory, b.rows.size)
    expect(model, b.memory[low:high])
    estimate(gradient.measure, gradient, model, state.theta, b, stream, step)
    if gradient.noise > 0.0:
        fill_normals(b.gradient_noise, stream, step, GRADIENT_NOISE, 0)
    add_noise_and_clip(gradient, b.gradient_noise[0], out)
    learn_from(gradient.measure, gradient, dynamics, state, b.difference, out, step)


@loop
def run_steps(dynamics, model, gradient, state, buffers, stream, step, before, step_sizes, kept, phases, fresh, out):
    """The steps step, step + 1, … of one chain; `fresh`: its momenta are still to be drawn.

    Steps listed in `kept` are recorded in `out`; `phases` says what each step measures (sgmcmc.run.coordinate_temperatures).

    Returns the number of finite steps: if it is less than the number of step sizes, the chain diverged in the next one.
    """
    theta = state.theta
    batch = buffers.noise.theta.shape[0]
    recorded = 0
    if fresh:
        begin(dynamics, state.p, stream)
    for t in range(step_sizes.size):
        now, h, row = step + t, step_sizes[t], t % batch
        if row == 0:
            fill_ahead(buffers.noise, dynamics, min(batch, step_sizes.size - t), stream, now)
        b = buffers
        find_gradient(gradient, model, dynamics, state, b, stream, now)
        if not update_sharded(b.coordinate_shards, dynamics, state, b, row, stream, now, before, h, phases[t]):
            return t
        before = h
        if recorded < kept.size and kept[recorded] == now:
            copy(theta, out[recorded])
            recorded += 1
    return step_sizes.size


@kernel
def run_chunk(dynamics, model, gradient, state, buffers, stream, step, before, step_sizes, kept, phases, fresh, out):
    """`run_steps`, compiled."""
    return run_steps(
        dynamics, model, gradient, state, buffers, stream, step, before, step_sizes, kept, phases, fresh, out
    )
