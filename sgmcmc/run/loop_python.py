"""The Python chain loop: a gradient in plain Python (NumPy, PyTorch or JAX inside) with the compiled update.

The same steps in the same order, on the same random numbers, as in loop_compiled.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sgmcmc.compiler.kernels import kernel
from sgmcmc.integrators.step import draw_momenta, update_once
from sgmcmc.integrators.threaded import is_long, update_spread
from sgmcmc.minibatch import choose
from sgmcmc.moments import NoMoments
from sgmcmc.rng import GRADIENT_NOISE, fill_normals
from sgmcmc.run.array_loops import add_noise_and_clip, work
from sgmcmc.run.coordinate_temperatures import MEASURED, ORIGIN, add_to_segment
from sgmcmc.run.loop_compiled import learn_from
from sgmcmc.thermostats import LEARN_EVERY

__all__ = ["is_finite", "run_chunk"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@kernel
def choose_rows(minibatch, n_rows, stream, step, memory, rows):
    """The rows of a step."""
    choose(minibatch, n_rows, stream, step, memory, rows)


@kernel
def draw_normals(out, stream, step, purpose):
    """A row of normals."""
    fill_normals(out, stream, step, purpose, 0)


@kernel
def perturb(gradient, normals, out):
    """`add_noise_and_clip`, compiled."""
    add_noise_and_clip(gradient, normals, out)


@kernel
def work_done(theta, origin, gradient):
    """`work`, compiled: θ may have millions of coordinates."""
    return work(theta, origin, gradient)


@kernel
def add_to_segment_compiled(theta, origin, gradient, sums):
    """`add_to_segment`, compiled."""
    add_to_segment(theta, origin, gradient, sums)


def is_finite(state: Any) -> bool:
    """Whether θ and ξ are finite."""
    return bool(np.isfinite(state.theta).all() and np.isfinite(state.xi).all())


@kernel
def learn(gradient, dynamics, state, difference, slope, step):
    """`learn_from`, compiled."""
    learn_from(gradient.measure, gradient, dynamics, state, difference, slope, step)


def estimate(gradient: Any, model: Any, theta: Any, buffers: Any, stream: Any, step: int, twice: bool = False) -> None:
    """∇Ũ(θ) without added noise and clipping; in a learning step from two halves of the rows.

    twice: compare two gradients of whole batches, for one that has noise of its own or is no sum over its rows.
    """
    rows, out, difference = buffers.rows, buffers.gradient, buffers.difference
    choose_rows(gradient.minibatch, gradient.n_rows, stream, np.int64(step), buffers.memory, rows)
    if difference.size == 0 or step % LEARN_EVERY != 0:
        model.estimate(theta, rows, gradient.weight, out)
        return
    n, half = rows.size, rows.size // 2
    factor = gradient.measure.amplitude
    if n == 1 or twice:  # one row has no halves: compare it with the row of the next step
        other = np.empty_like(rows)
        choose_rows(gradient.minibatch, gradient.n_rows, stream, np.int64(step + 1), buffers.memory, other)
        model.estimate(theta, other, gradient.weight, difference)
        model.estimate(theta, rows, gradient.weight, out)
        difference[:] = factor * np.sqrt(0.5) * (difference - out)
        return
    kind = theta.dtype.type
    model.estimate(theta, rows[:half], kind(gradient.n_rows / half), difference)
    model.estimate(theta, rows[half:], kind(gradient.n_rows / (n - half)), out)
    first, share = difference.copy(), kind(half / n)
    difference[:] = factor * kind(np.sqrt(half * (n - half)) / n) * (first - out)
    out[:] = share * first + (1 - share) * out


def find_gradient(
    gradient: Any, model: Any, dynamics: Any, state: Any, buffers: Any, stream: Any, step: int, twice: bool = False
) -> None:
    """∇Ũ(θ) into buffers.gradient."""
    theta, out = state.theta, buffers.gradient
    estimate(gradient, model, theta, buffers, stream, step, twice)
    if gradient.noise > 0.0:
        draw_normals(buffers.gradient_noise, stream, np.int64(step), GRADIENT_NOISE)
    if gradient.noise > 0.0 or gradient.clip < np.inf:
        perturb(gradient, buffers.gradient_noise[0], out)
    if buffers.difference.size > 0 and step % LEARN_EVERY == 0:
        learn(gradient, dynamics, state, buffers.difference, out, np.int64(step))


def run_chunk(
    dynamics: Any,
    model: Any,
    gradient: Any,
    state: Any,
    buffers: Any,
    stream: Any,
    step: int,
    before: Any,
    step_sizes: Any,
    kept: Any,
    phases: Any,
    fresh: bool,
    out: Any,
    threads: int = 1,
    twice: bool = False,
) -> int:
    """As `sgmcmc.run.loop_compiled.run_chunk`, with the update of a long vector on `threads` threads.

    A KeyboardInterrupt in the gradient ends the chunk before its step; the state is still finite.
    """
    theta, recorded, long = state.theta, 0, is_long(dynamics, state.theta.size)
    if fresh and state.p.size:
        draw_momenta(dynamics, state.p, stream)
    for t, h in enumerate(step_sizes):
        now = int(step) + t
        try:
            find_gradient(gradient, model, dynamics, state, buffers, stream, now, twice)
        except KeyboardInterrupt:
            return t
        phase = int(phases[t])
        if phase == ORIGIN:
            buffers.origin[:] = theta
        elif phase >= MEASURED:
            # Python floats: NumPy would warn where a sum overflows.
            buffers.sums[1] = float(buffers.sums[1]) + float(work_done(theta, buffers.origin, buffers.gradient))
            if phase >= 0:
                add_to_segment_compiled(theta, buffers.origin, buffers.gradient, buffers.segment_sums[phase])
        position = (stream, np.int64(now), before, h)
        if long:
            virial = update_spread(dynamics, state, buffers.gradient, NoMoments(), *position, threads)
        else:
            virial = update_once(dynamics, state, buffers.gradient, buffers.noise, NoMoments(), *position)
        before = h
        if phase >= MEASURED:
            buffers.sums[0] = float(buffers.sums[0]) + float(virial) / theta.size
            buffers.sums[2] += 1.0
        if not is_finite(state):
            return t
        if recorded < kept.size and kept[recorded] == now:
            out[recorded] = theta
            recorded += 1
    return len(step_sizes)
