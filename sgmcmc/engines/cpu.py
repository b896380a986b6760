"""The compiled chain loop: rows, gradient, update, record, for as many steps as a chunk has."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from sgmcmc.dispatch import loop
from sgmcmc.engines.parts import estimate_by
from sgmcmc.engines.pieces import move_by
from sgmcmc.engines.ways import copy
from sgmcmc.kernels import kernel
from sgmcmc.minibatch import choose, coming
from sgmcmc.potentials import expect
from sgmcmc.rng import GRADIENT_NOISE, fill_normals
from sgmcmc.update import begin, fill_noise

__all__ = ["Buffers", "Gradient", "run_chunk"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


class Gradient(NamedTuple):
    """How the gradient is estimated: rows of the data, their weight N/n, and what is done to it on request."""

    minibatch: Any
    n_rows: int
    weight: float  # N/n; 1 without data
    noise: float  # B: the gradient gets N(0, 2B) per coordinate
    clip: float  # per coordinate; inf is off


class Buffers(NamedTuple):
    """Scratch space of one chain."""

    noise: Any
    gradient: Any
    gradient_noise: Any  # (1, dim), or (1, 0)
    rows: Any
    memory: Any
    origin: Any  # θ when recording began
    sums: Any  # float64: Σ p K'/d, Σ (θ − origin)·∇U/d, and how many of each
    watch: Any  # float64, (segments, …): sums by coordinate, see sgmcmc.engines.watch
    parts: Any  # Whole, or Parts: how the sum over the rows is taken
    pieces: Any  # Whole, or Pieces: how the coordinates are gone through


@loop(inline=True)
def find_gradient(gradient, model, theta, rows, memory, parts, normals, stream, step, out):
    """∇Ũ(θ) into `out`: minibatch, then the noise and the clipping that were asked for."""
    choose(gradient.minibatch, gradient.n_rows, stream, step, memory, rows)
    low, high = coming(gradient.minibatch, step, memory, rows.size)
    expect(model, memory[low:high])
    estimate_by(parts, model, theta, rows, gradient.weight, step, out)
    if gradient.noise > 0.0:
        amplitude = math.sqrt(2.0 * gradient.noise)
        fill_normals(normals, stream, step, GRADIENT_NOISE, 0)
        for i in range(out.size):
            out[i] += amplitude * normals[0, i]
    if gradient.clip < math.inf:
        for i in range(out.size):
            out[i] = min(max(out[i], -gradient.clip), gradient.clip)


@loop
def run_steps(dynamics, model, gradient, state, buffers, stream, step, before, step_sizes, kept, phases, fresh, out):
    """The steps step, step + 1, … of one chain, `fresh` if its momenta are still to be drawn.

    Steps listed in `kept` are recorded in `out`; `phases` says what each of them measures (sgmcmc.engines.watch).

    Gives back how many were finite: fewer than there are step sizes means that the chain diverged in the next one.
    """
    theta = state.theta
    batch = buffers.noise.theta.shape[0]
    short = buffers.noise.theta.shape[1] == theta.size
    recorded = 0
    if fresh:
        begin(dynamics, state.p, stream)
    for t in range(step_sizes.size):
        now, h, row = step + t, step_sizes[t], t % batch
        if short and row == 0:
            fill_noise(dynamics, buffers.noise, min(batch, step_sizes.size - t), stream, now, 0)
        b = buffers
        find_gradient(gradient, model, theta, b.rows, b.memory, b.parts, b.gradient_noise, stream, now, b.gradient)
        if not move_by(b.pieces, dynamics, state, b, row, stream, now, before, h, phases[t]):
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
