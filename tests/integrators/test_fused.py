"""F A F in one loop is F, A and F one after another, to the last digits: short flows and long ones, friction of either sign."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.compiler.open_functions import LOOP
from sgmcmc.integrators import Moment
from sgmcmc.integrators.flows import apply_friction_with_scratch, drift
from sgmcmc.integrators.fused_faf import fused_faf
from sgmcmc.integrators.state import center_now, injected
from sgmcmc.thermostats import crosstalk_rate, learn

compiled = numba.njit(error_model="numpy", fastmath=set(LOOP))
MOMENTA = np.concatenate([[0.0], np.geomspace(1e-30, 1e12, 700), np.linspace(1e-3, 30.0, 3 * 467)])
LEARNS, DOES_NOT = 7, 8  # steps


@compiled
def in_one_go(d, kinetics, state, moment, sinh, rest):
    center, learns = center_now(d, moment), moment.step == LEARNS
    return fused_faf(d.thermostat, kinetics, d.scale, d, state, moment, learns, injected(d), center, sinh, rest)


@compiled
def by_letters(d, kinetics, state, moment, spare, rest):
    h, center, rate = moment.h, center_now(d, moment), crosstalk_rate(d.sigma_theta, d.temperature, moment.h)
    apply_friction_with_scratch(kinetics, d.thermostat, d.sigma_p, state.p, state.xi, 0.5 * h, spare)
    if moment.step == LEARNS:
        drift(kinetics, d.scale, d, state, rate, True, h, 0.5 * h)
        learn(d.noise, d.thermostat, kinetics, d.temperature, injected(d), center, state, 0.5 * h, 0.5 * h, moment)
        virial = drift(kinetics, d.scale, d, state, rate, True, h, 0.5 * h)
    else:
        virial = drift(kinetics, d.scale, d, state, rate, True, h, h)
    apply_friction_with_scratch(kinetics, d.thermostat, d.sigma_p, state.p, state.xi, 0.5 * h, spare)
    return virial


def moved(function, h, step, dtype, truth=False):
    """θ, p, ξ, both sides of the balance of energies and Σ p K'(p) after a step, from numbers of precision `dtype`.

    With `truth` in double precision.
    """
    sampler = sg.SGMGTD(0.01, a=1, mass=1.3, scale=0.7, center="adaptive")
    p = (MOMENTA * np.where(np.arange(MOMENTA.size) % 2, 1, -1)).astype(dtype)
    working = np.float64 if truth else dtype
    single = sampler.dynamics(p.size, dtype, inferred=True)
    numbers = {f: working(v) for f, v in single._asdict().items() if f.startswith(("sigma", "temp", "scale"))}
    parts = {f: type(v)._make(map(working, v)) for f, v in single._asdict().items() if f in ("kinetics", "thermostat")}
    dynamics = sampler.dynamics(p.size, working, inferred=True)._replace(**numbers, **parts)
    state = sampler.start(np.zeros(p.size, working), inferred=True)
    state.p[:] = p
    state.xi[:] = np.random.default_rng(3).normal(1.0, 1.5, p.size).astype(dtype)
    state.variance[:] = np.random.default_rng(4).exponential(0.3, p.size).astype(dtype)
    state.loss[:], state.bend[:], state.span[:] = (dtype(x) for x in (50.0 * h * h, 5.0 * h * h, h))
    moment = Moment(np.int64(step), working(dtype(h)), working(dtype(h)), np.int64(0))
    spare = np.empty_like(state.p), np.empty_like(state.p)
    virial = function(dynamics, dynamics.kinetics, state, moment, *spare)
    return state.theta, state.p, state.xi, state.bend, state.loss, virial


def error(function, h, step, dtype):
    """The largest errors, in units of the precision: of θ and ξ relative to what moves them, of others to themselves.

    Double precision is measured against the letters in double precision, which have a rounding of their own.
    """
    mine, true = moved(function, h, step, dtype), moved(by_letters, h, step, dtype, truth=True)
    errors = [np.abs(m.astype(np.float64) - t) for m, t in zip(mine[:5], true[:5], strict=True)]
    scales = np.abs(true[0]), np.abs(true[1]), np.abs(true[2]) + 1.0, np.abs(true[3]), np.abs(true[4]) + 50.0 * h * h
    worst = [np.max(e[s > 1e-30] / s[s > 1e-30]) for e, s in zip(errors, scales, strict=True)]
    return np.array([*worst, abs(mine[5] / true[5] - 1.0)]) / np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("h", [1e-6, 1e-3, 0.03, 0.2, 2.0])
@pytest.mark.parametrize("step", [LEARNS, DOES_NOT])
def test_f_a_f_in_one_loop_is_that_of_its_letters(step, h, dtype):
    theta, p, xi, bend, loss, virial = error(in_one_go, h, step, dtype)
    # Measured at most 3.6 for θ (letter by letter 2.9) and 3.3 for p; at h = 2 9.0 (5.2), as long flows multiply what was off.
    # A learning step moves θ by the new V, a difference, and is as far off as that is.
    if step != LEARNS:
        assert theta < 4.5
    assert p < (4.0 if h < 0.5 else 12.0)
    assert xi < 8.0
    assert virial < 4.0
    # Measured 1.6 in single precision. In double the letters, against which it is measured, have lost digits in 1 - tanh².
    if h < 0.5:
        assert bend < (2.0 if dtype is np.float32 else 2e4)
        assert loss < (20.0 if dtype is np.float32 else 2e4)


def test_learning_somewhere_else_than_in_the_middle_of_a_is_seen():
    def early(d, kinetics, state, moment, sinh, rest):
        return in_one_go(d, kinetics, state, moment._replace(h=dtype(0.9) * moment.h), sinh, rest)

    dtype = np.float32
    assert error(early, 0.2, LEARNS, dtype)[3] > 100.0


def test_not_a_number_stays_where_it_is():
    sampler = sg.SGMGTD(0.01, a=1)
    state = sampler.init(np.zeros(600, np.float32), seed=1)
    state.arrays.p[17] = np.nan
    after = sampler.step(state, np.zeros(600, np.float32)).arrays
    for array in (after.theta, after.p, after.xi):
        assert np.flatnonzero(np.isnan(array)).tolist() == [17]
