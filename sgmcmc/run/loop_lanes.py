"""The compiled chain loop of small models: up to 64 chains in lockstep, one per vector lane."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sgmcmc.compiler.kernels import kernel
from sgmcmc.compiler.open_functions import loop
from sgmcmc.compiler.precision import zero
from sgmcmc.integrators.state import Noise
from sgmcmc.integrators.step import begin, fill_noise, update
from sgmcmc.potentials import add_prior_gradient, fill_gradients
from sgmcmc.rng import GRADIENT_NOISE, fill_normals
from sgmcmc.run.array_loops import add_noise_and_clip, copy, is_finite
from sgmcmc.run.coordinate_temperatures import MEASURED, ORIGIN

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

__all__ = ["Scratch", "run_lanes"]


class Scratch(NamedTuple):
    """Scratch arrays and sums of a lane group, laid out as its state: element (i, lane) at i·lanes + lane."""

    noise: Noise  # (steps, elements) each
    gradient_noise: Any  # the same, or (steps, 0)
    gradient: Any
    rows: Any  # views of θ and of the gradient with a row per coordinate
    model_scratch: Any  # (rows, lanes)
    origin: Any  # θ when recording began
    virial: Any  # p K'(p) of this step
    sums: Any  # (Σ p K', Σ (θ − origin) ∇U) in float64, which makes them independent of the chunks
    segment_sums: Any  # (segments, …): as sgmcmc.run.coordinate_temperatures has them, a number per lane
    ended: Any  # per lane: the number of finite steps of this chunk


@loop(inline=True)
def find_gradients(model, gradient, theta, scratch, row):
    """∇Ũ of all chains: model, prior, then added noise and clipping."""
    out, normals = scratch.gradient, scratch.gradient_noise
    fill_gradients(model, scratch.rows[0], scratch.model_scratch, scratch.rows[1])
    add_prior_gradient(model, theta, out)
    add_noise_and_clip(gradient, normals[row], out)


@loop(apart=True, inline=True)
def add_lane_work(theta, origin, gradient, total):
    """total += (θ − origin) ∇U, element by element."""
    for i in range(theta.size):
        total[i] += np.float64((theta[i] - origin[i]) * gradient[i])


@loop(apart=True, inline=True)
def add_lane_virial(virial, total):
    """total += p K'(p) of this step, from `virial`."""
    for i in range(virial.size):
        total[i] += np.float64(virial[i])


@loop(apart=True, inline=True)
def add_lanes_to_segment(theta, origin, gradient, total):
    """`coordinate_temperatures.add_to_segment`, for all lanes and all coordinates."""
    n = theta.size
    for i in range(n):
        moved = theta[i] - origin[i]
        total[i] += np.float64(moved * gradient[i])
        total[n + i] += np.float64(moved)
        total[2 * n + i] += np.float64(gradient[i])
    for i in range(3 * n, total.size):
        total[i] += np.float64(1)


@loop
def lane_is_finite(array, lane, lanes, zero):
    """`is_finite` of one lane."""
    total = zero
    for i in range(lane, array.size, lanes):
        total += 0.0 * array[i]
    return total == 0.0


@loop
def clear_lane(array, lane, lanes):
    """Set a lane to 0."""
    for i in range(lane, array.size, lanes):
        array[i] = 0.0


@loop
def end_lanes(state, scratch, live, t, zero):
    """Record the lanes that became infinite in step t, and set them to 0. Returns whether no chain is left."""
    lanes, left = scratch.ended.size, 0
    for lane in range(lanes):
        if not (lane_is_finite(state.theta, lane, lanes, zero) and lane_is_finite(state.xi, lane, lanes, zero)):
            scratch.ended[lane] = min(scratch.ended[lane], t)
            clear_lane(state.theta, lane, lanes)
            clear_lane(state.p, lane, lanes)
            clear_lane(state.xi, lane, lanes)
            clear_lane(state.pending, lane, lanes)
        if lane < live and scratch.ended[lane] > t:
            left += 1
    return left == 0


@loop(apart=True)
def record(theta, out_rows, index, out):
    """out[row, index] = θ of each chain."""
    lanes = theta.size // out.shape[2]
    for lane in range(out_rows.size):
        for j in range(out.shape[2]):
            out[out_rows[lane], index, j] = theta[j * lanes + lane]


@loop
def run_steps(
    dynamics,
    model,
    gradient,
    state,
    scratch,
    lanes,
    step,
    before,
    step_sizes,
    kept,
    phases,
    fresh,
    out_rows,
    first_draw,
    out,
):
    """The steps step, step + 1, … of all chains of a lane group; `fresh`: momenta are still to be drawn.

    Steps listed in `kept` are recorded in out[row] from `first_draw` on, for each row of `out_rows`. scratch.ended tells how
    many steps of each lane were finite. (`out` is the whole array: a slice has another type, for which all would compile again.)
    """
    theta, batch = state.theta, scratch.noise.theta.shape[0]
    recorded = 0
    for lane in range(scratch.ended.size):
        scratch.ended[lane] = step_sizes.size
    if fresh:
        begin(dynamics, state.p, lanes)
    for t in range(step_sizes.size):
        now, h, row = step + t, step_sizes[t], t % batch
        if row == 0:
            count = min(batch, step_sizes.size - t)
            fill_noise(dynamics, scratch.noise, count, lanes, now, 0)
            if gradient.noise > 0.0:
                fill_normals(scratch.gradient_noise[:count], lanes, now, GRADIENT_NOISE, 0)
        find_gradients(model, gradient, theta, scratch, row)
        phase = phases[t]
        if phase == ORIGIN:
            copy(theta, scratch.origin)
        elif phase >= MEASURED:
            add_lane_work(theta, scratch.origin, scratch.gradient, scratch.sums[1])
            if phase >= 0:
                add_lanes_to_segment(theta, scratch.origin, scratch.gradient, scratch.segment_sums[phase])
        update(dynamics, state, scratch.gradient, scratch.noise, row, lanes, now, before, h)
        if phase >= MEASURED:
            add_lane_virial(scratch.virial, scratch.sums[0])
        before = h
        if not is_finite(state) and end_lanes(state, scratch, lanes.live, t, zero(h)):
            break
        if recorded < kept.size and kept[recorded] == now:
            record(theta, out_rows, first_draw + recorded, out)
            recorded += 1


@kernel
def run_lanes(
    dynamics,
    model,
    gradient,
    state,
    scratch,
    lanes,
    step,
    before,
    step_sizes,
    kept,
    phases,
    fresh,
    out_rows,
    first_draw,
    out,
):
    """`run_steps`, compiled."""
    run_steps(
        dynamics,
        model,
        gradient,
        state,
        scratch,
        lanes,
        step,
        before,
        step_sizes,
        kept,
        phases,
        fresh,
        out_rows,
        first_draw,
        out,
    )
