"""The compiled loop of small models: up to 64 chains in lockstep, one in each lane of the vectors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sgmcmc.compiler.kernels import kernel
from sgmcmc.compiler.open_functions import loop
from sgmcmc.compiler.precision import zero
from sgmcmc.integrators import Noise
from sgmcmc.integrators.step import begin, fill_noise, update
from sgmcmc.potentials import add_prior_gradient, fill_gradients
from sgmcmc.rng import GRADIENT_NOISE, fill_normals
from sgmcmc.run.array_loops import copy, is_finite
from sgmcmc.run.coordinate_temperatures import MEASURED, ORIGIN

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

__all__ = ["Room", "run_pack"]


class Room(NamedTuple):
    """Scratch space and measurements of a pack, packed as the state is."""

    noise: Noise  # (steps, elements) each
    gradient_noise: Any  # the same, or (steps, 0)
    gradient: Any
    rows: Any  # views of θ and of the gradient with a row per coordinate
    scratch: Any  # (rows, lanes)
    origin: Any  # θ when recording began
    virial: Any  # p K'(p) of this step
    sums: Any  # (Σ p K', Σ (θ − origin) ∇U) in float64: they do not depend on where chunks begin
    watch: Any  # (segments, …): sums by coordinate, as sgmcmc.run.coordinate_temperatures has them, with a number for every lane
    ended: Any  # per lane, how many steps of this chunk were finite


@loop(inline=True)
def find_gradients(model, gradient, theta, room, row):
    """∇Ũ of all chains: the model's, its prior's, and the noise and the clipping that were asked for."""
    out, normals = room.gradient, room.gradient_noise
    fill_gradients(model, room.rows[0], room.scratch, room.rows[1])
    add_prior_gradient(model, theta, out)
    if gradient.noise > 0.0:
        # Not 2.0 · noise: room.sums is double, so literals are too here, and single numbers would be taken as doubles.
        amplitude, own = math.sqrt(gradient.noise + gradient.noise), normals[row]
        for i in range(out.size):
            out[i] += amplitude * own[i]
    if gradient.clip < math.inf:
        for i in range(out.size):
            out[i] = min(max(out[i], -gradient.clip), gradient.clip)


@loop(apart=True, inline=True)
def gather_work(theta, origin, gradient, total):
    """total += (θ − origin) ∇U, element by element."""
    for i in range(theta.size):
        total[i] += np.float64((theta[i] - origin[i]) * gradient[i])


@loop(apart=True, inline=True)
def gather_virial(virial, total):
    """total += p K'(p), which a step has left in `virial`."""
    for i in range(virial.size):
        total[i] += np.float64(virial[i])


@loop(apart=True, inline=True)
def gather_watch(theta, origin, gradient, total):
    """As `sgmcmc.run.coordinate_temperatures.watch`, of all lanes; a pack watches all of its coordinates."""
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
    """As `is_finite`, of one lane."""
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
def bury(state, room, live, t, zero):
    """Note the lanes that left the finite numbers in step t, and set them to 0 so that they do no harm. Whether none is left."""
    lanes, left = room.ended.size, 0
    for lane in range(lanes):
        if not (lane_is_finite(state.theta, lane, lanes, zero) and lane_is_finite(state.xi, lane, lanes, zero)):
            room.ended[lane] = min(room.ended[lane], t)
            clear_lane(state.theta, lane, lanes)
            clear_lane(state.p, lane, lanes)
            clear_lane(state.xi, lane, lanes)
            clear_lane(state.pending, lane, lanes)
        if lane < live and room.ended[lane] > t:
            left += 1
    return left == 0


@loop(apart=True)
def record(theta, places, index, out):
    """out[place, index] = θ of each chain."""
    lanes = theta.size // out.shape[2]
    for lane in range(places.size):
        for j in range(out.shape[2]):
            out[places[lane], index, j] = theta[j * lanes + lane]


@loop
def run_steps(
    dynamics,
    model,
    gradient,
    state,
    room,
    lanes,
    step,
    before,
    step_sizes,
    kept,
    phases,
    fresh,
    places,
    first,
    out,
):
    """The steps step, step + 1, … of all chains of a pack, `fresh` if their momenta are still to be drawn.

    Steps listed in `kept` are recorded in out[place] from `first` on, one for each chain. How far a lane came is left in
    room.ended. (`out` is whole: a part of it would be of another type than all of it, and be compiled for once more.)
    """
    theta, batch = state.theta, room.noise.theta.shape[0]
    recorded = 0
    for lane in range(room.ended.size):
        room.ended[lane] = step_sizes.size
    if fresh:
        begin(dynamics, state.p, lanes)
    for t in range(step_sizes.size):
        now, h, row = step + t, step_sizes[t], t % batch
        if row == 0:
            count = min(batch, step_sizes.size - t)
            fill_noise(dynamics, room.noise, count, lanes, now, 0)
            if gradient.noise > 0.0:
                fill_normals(room.gradient_noise[:count], lanes, now, GRADIENT_NOISE, 0)
        find_gradients(model, gradient, theta, room, row)
        phase = phases[t]
        if phase == ORIGIN:
            copy(theta, room.origin)
        elif phase >= MEASURED:
            gather_work(theta, room.origin, room.gradient, room.sums[1])
            if phase >= 0:
                gather_watch(theta, room.origin, room.gradient, room.watch[phase])
        update(dynamics, state, room.gradient, room.noise, row, lanes, now, before, h)
        if phase >= MEASURED:
            gather_virial(room.virial, room.sums[0])
        before = h
        if not is_finite(state) and bury(state, room, lanes.live, t, zero(h)):
            break
        if recorded < kept.size and kept[recorded] == now:
            record(theta, places, first + recorded, out)
            recorded += 1


@kernel
def run_pack(
    dynamics,
    model,
    gradient,
    state,
    room,
    lanes,
    step,
    before,
    step_sizes,
    kept,
    phases,
    fresh,
    places,
    first,
    out,
):
    """`run_steps`, compiled."""
    run_steps(
        dynamics,
        model,
        gradient,
        state,
        room,
        lanes,
        step,
        before,
        step_sizes,
        kept,
        phases,
        fresh,
        places,
        first,
        out,
    )
