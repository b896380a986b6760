"""Parts of one's own (tests/support/own_parts.py) in every engine, through checkpoints and executors, and under the checks."""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import sgmcmc as sg

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
import own_parts
from own_parts import Brake, Cubic, FirstHalf, Geometric, Mirror, PerGroup, Sawtooth, Strided, SummedPerGroup

from sgmcmc.dispatch import simulate_device
from sgmcmc.integrators import Splitting
from sgmcmc.integrators.lanes import fits_lanes
from sgmcmc.run import lanes
from sgmcmc.testing.invariance import invariance_z
from sgmcmc.testing.targets import QUARTIC
from sgmcmc.testing.under_test import Kernel

RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 4))
Y = X @ [1.0, -1.0, 0.5, 0.2] + RNG.normal(size=60)
LINEAR = sg.models.LinearRegression(X, Y, 1.0, intercept=False)
GAUSS = sg.models.Gaussian(np.zeros(4), 1.0)
WIDE = sg.models.Gaussian(np.zeros(20), 1.0)
SHORT = {"draws": 30, "warmup": 10, "chains": 3, "seed": 7, "progress": False, "warn": False}

SAMPLERS = {
    "thermostat per group": sg.Sampler(0.1, thermostat=PerGroup(0.8, 2), sigma_xi=0.2, resample_thermostat=7),
    "thermostat per group, a = 1": sg.Sampler(
        0.1, sg.kinetics.MonomialGamma(1.0), PerGroup(0.8, 2), resample_momentum=7
    ),
    "thermostat per group, Euler": sg.Sampler(
        0.02, thermostat=PerGroup(0.8, 2), sigma_xi=0.2, integrator=sg.integrators.Euler()
    ),
    "thermostat by itself": sg.Sampler(0.1, thermostat=Cubic(0.8), sigma_theta=0.1, sigma_xi=0.2),
    "flow": sg.SGNHT(0.1, integrator=Splitting("BAWOWAB", W=Mirror(0.3))),
    "schedule": sg.SGNHT(Sawtooth(0.1, 7)),
    "scale": sg.SGHMC(0.1, scale=Geometric(0.5, 1.3)),
}


def python_gradient(theta):
    return 1.0 * theta


@pytest.mark.parametrize("name", SAMPLERS)
def test_compiled_and_in_python_the_draws_are_the_same(name):
    in_python = sg.Potential(python_gradient, dim=20)
    one, two = (sg.sample(m, SAMPLERS[name], init=np.full(20, 0.1), **SHORT).draws for m in (WIDE, in_python))
    np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)


def test_what_takes_each_coordinate_by_itself_runs_in_lanes():
    narrow = {name: fits_lanes(SAMPLERS[name].dynamics(4), 4) for name in SAMPLERS}
    assert [name for name, fits in narrow.items() if fits] == ["thermostat by itself", "flow", "schedule", "scale"]


@pytest.mark.parametrize("name", ["thermostat by itself", "flow", "schedule", "scale"])
def test_a_chain_in_lanes_has_the_bits_that_it_has_alone(name, monkeypatch):
    many = sg.sample(GAUSS, SAMPLERS[name], **SHORT).draws
    alone = sg.sample(GAUSS, SAMPLERS[name], **{**SHORT, "chains": 1}).draws
    np.testing.assert_array_equal(many[:1], alone)
    monkeypatch.setattr(lanes, "fits_lanes", lambda *_: False)
    np.testing.assert_allclose(sg.sample(GAUSS, SAMPLERS[name], **SHORT).draws, many, rtol=1e-9, atol=1e-12)


def test_the_thermostat_under_another_name_draws_the_same():
    mine = SAMPLERS["thermostat by itself"]
    ours = sg.Sampler(0.1, thermostat=sg.thermostats.NoseHoover(0.8, center="fixed"), sigma_theta=0.1, sigma_xi=0.2)
    for model in (GAUSS, WIDE):
        np.testing.assert_allclose(*(sg.sample(model, s, **SHORT).draws for s in (mine, ours)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["thermostat per group", "flow"])
def test_a_long_chain_has_the_same_bits_on_one_thread_and_on_two(name):
    long = sg.models.Gaussian(np.zeros(1 << 17), 1.0)
    options = {**SHORT, "draws": 2, "warmup": 1, "chains": 1}
    one, two = (sg.sample(long, SAMPLERS[name], threads=t, **options).draws for t in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_run_from_a_checkpoint_is_that_in_one_go(name, tmp_path):
    whole = sg.sample(GAUSS, SAMPLERS[name], **SHORT).draws
    sg.sample(GAUSS, SAMPLERS[name], checkpoint=tmp_path / "run.npz", **SHORT)
    again = sg.sample(GAUSS, SAMPLERS[name], checkpoint=tmp_path / "run.npz", resume=True, **SHORT)
    np.testing.assert_array_equal(again.draws, whole)


def test_an_executor_draws_the_same(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(own_parts.__file__).parent))
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        for name in ("thermostat per group", "flow", "schedule"):
            far = sg.sample(GAUSS, SAMPLERS[name], executor=pool, **SHORT).draws
            np.testing.assert_array_equal(far, sg.sample(GAUSS, SAMPLERS[name], **SHORT).draws)


def test_ask_and_tell_takes_a_scale_of_ones_own():
    one, two = (sg.SGHMC(0.1, scale=s) for s in (Geometric(0.5, 2.0), np.array([0.5, 1.0, 2.0])))
    states = [s.step(s.init(np.ones(3), seed=1), np.ones(3)) for s in (one, two)]
    np.testing.assert_array_equal(states[0].theta, states[1].theta)


# ---- minibatches and schedules --------------------------------------------------------------------------------------------


def posterior(**options):
    trace = sg.sample(
        LINEAR, sg.SGNHT(0.004), 4000, warmup=3000, thin=10, chains=8, seed=2, progress=False, warn=False, **options
    )
    return trace.draws.mean(axis=(0, 1))


def test_a_minibatch_scheme_of_ones_own_is_right_and_its_wrong_twin_is_seen():
    H, b = X.T @ X, X.T @ Y
    sd = np.sqrt(np.diag(np.linalg.inv(H)))
    truth = np.linalg.solve(H + np.eye(4) / LINEAR.prior.scale**2, b)
    right, wrong = (posterior(batch_size=15, minibatch=m) for m in (Strided(7), FirstHalf()))
    assert np.abs((right - truth) / sd).max() < 0.25
    assert np.abs((wrong - truth) / sd).max() > 0.6


def test_a_scheme_is_refused_without_a_size_or_a_choice():
    with pytest.raises(TypeError, match="choose has no implementation for Geometric"):
        sg.sample(LINEAR, sg.SGLD(1e-3), 10, batch_size=5, minibatch=Geometric(1.0, 1.0))


def test_a_schedule_of_ones_own_says_which_steps_are_recorded():
    schedule = Sawtooth(0.1, 7)
    trace = sg.sample(GAUSS, sg.SGHMC(schedule), 50, warmup=3, chains=1, seed=1, progress=False, warn=False)
    sizes = np.asarray(trace.weights)
    expected = [t for t in range(3, 400) if schedule.is_sampling(t)][:50]
    np.testing.assert_allclose(sizes / sizes.max(), schedule.step_sizes(expected) / schedule.step_sizes(expected).max())


class Broken(Sawtooth):
    __slots__ = ()

    def step_sizes(self, steps):
        return np.where(np.asarray(steps) == 5, -1.0, 0.1)


def test_a_schedule_that_gives_what_is_no_size_is_refused():
    with pytest.raises(ValueError, match=r"gave -1\.0 at step 5; it must be finite and not negative"):
        sg.sample(GAUSS, sg.SGHMC(Broken(0.1, 7)), 50, seed=1, progress=False)


# ---- the checks ------------------------------------------------------------------------------------------------------------


def defect(sampler):
    plain = Kernel(sampler).with_(resample_thermostat=None)
    return invariance_z(plain, QUARTIC, 0.05, 3, dim=2, scrambles=16, log2_points=12)[0]


def test_the_checks_pass_the_right_ones_and_reject_the_wrong_twins():
    right = sg.Sampler(0.1, thermostat=PerGroup(0.8, 2), sigma_xi=0.2)
    wrong = sg.Sampler(0.1, thermostat=SummedPerGroup(0.8, 2), sigma_xi=0.2)
    assert defect(right) < 5.2 < defect(wrong)
    right, wrong = (sg.SGHMC(0.1, integrator=Splitting("BAWOWAB", W=own)) for own in (Mirror(0.3), Brake(0.5)))
    assert defect(right) < 5.2 < defect(wrong)


# ---- on a GPU, by the simulator's forms: the functions that a thread runs, as plain Python -----------------------------------


@pytest.mark.parametrize("name", ["thermostat per group", "flow"])
def test_the_forms_for_gpus_draw_the_same(name):
    sampler, g = SAMPLERS[name], RNG.normal(size=(5, 4))
    found = []
    for device in (False, True):
        simulate_device(device)
        try:
            state = sampler.init(np.ones(4), seed=1)
            for row in g:
                state = sampler.step(state, row)
            found.append(state.theta)
        finally:
            simulate_device(False)
    np.testing.assert_allclose(*found, rtol=1e-12)
