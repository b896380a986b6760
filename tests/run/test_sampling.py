"""`sample`: what a chain draws depends on its seed and its number alone, and is what was asked for.

Statistical checks compare means over independent chains: z = error / (sd of the chains / √chains), Student's t with at least
31 degrees of freedom. |z| < 6 in every one of the fewer than 50 checks is a false alarm once in 20,000 runs of the file.
"""

from __future__ import annotations

import _thread
import os
import signal
import subprocess
import sys
import threading
import time
from typing import NamedTuple

import numba
import numpy as np
import pytest
from scipy import stats

import sgmcmc as sg
from sgmcmc.integrators import State
from sgmcmc.integrators import step as update
from sgmcmc.kinetics import curvature, energy, velocity
from sgmcmc.potentials import add_gradient
from sgmcmc.run import scheduler

MEAN, VARIANCE = np.array([1.0, -2.0, 0.5]), np.array([1.0, 4.0, 0.25])
GAUSS = sg.models.Gaussian(MEAN, VARIANCE)
SGNHT, SGMGTD, SGLD = sg.SGNHT(0.2), sg.SGMGTD(0.1, a=2.0), sg.SGLD(0.1)
LIMIT = 6.0

rng = np.random.default_rng(7)
X = rng.normal(size=(60, 3))
Y = (rng.random(60) < 1.0 / (1.0 + np.exp(-X @ np.array([1.0, -1.0, 0.5])))).astype(np.float64)
LOGISTIC = sg.models.LogisticRegression(X, Y, prior=sg.priors.Gaussian(2.0))


def run(sampler=SGNHT, model=GAUSS, **options):
    settings = {"draws": 50, "warmup": 10, "chains": 3, "seed": 11, "progress": False} | options
    return sg.sample(model, sampler, **settings)


def same(one, two):
    """The same draws and the same last state, bit for bit."""
    np.testing.assert_array_equal(one.draws, two.draws)
    assert one.draws.dtype == two.draws.dtype
    assert one.final.keys() == two.final.keys()
    for name, value in one.final.items():
        np.testing.assert_array_equal(value, two.final[name], err_msg=name)


def z_score(values, truth):
    """How many standard errors the mean of independent values is off."""
    values = np.asarray(values, np.float64)
    return (values.mean() - truth) / (values.std(ddof=1) / np.sqrt(len(values)))


both = pytest.mark.parametrize("sampler", [SGNHT, SGMGTD], ids=["SGNHT", "SGMGTD"])

# ---- what draws do not depend on ----------------------------------------------------------------------------------------


@both
def test_draws_do_not_depend_on_the_number_of_threads(sampler):
    one = run(sampler, chains=9, threads=1)
    for threads in (2, 5):
        same(one, run(sampler, chains=9, threads=threads))


@both
def test_draws_do_not_depend_on_the_length_of_chunks(sampler, monkeypatch):
    whole = run(sampler, draws=300)
    monkeypatch.setattr("sgmcmc.run.job.CHUNK_SECONDS", 1e-12)  # chunks of one step
    pieces = run(sampler, draws=300)
    same(whole, pieces)
    np.testing.assert_allclose(pieces.kinetic_temperature, whole.kinetic_temperature, rtol=1e-12)
    np.testing.assert_allclose(pieces.configurational_temperature, whole.configurational_temperature, rtol=1e-12)


@both
def test_a_chain_alone_is_that_chain_among_many(sampler):
    alone, many = run(sampler, chains=1), run(sampler, chains=7)
    np.testing.assert_array_equal(alone.draws[0], many.draws[0])
    assert len({d.tobytes() for d in many.draws}) == 7


@both
def test_progress_changes_nothing(sampler, capsys):
    same(run(sampler), run(sampler, progress=True))
    assert "3 chains" in capsys.readouterr().err


def test_a_seed_is_all_it_takes_to_repeat_a_run():
    same(run(seed=3), run(seed=3))
    assert not np.array_equal(run(seed=3).draws, run(seed=4).draws)
    assert not np.array_equal(run(seed=3).draws, run(seed=3 + 2**40).draws)
    largest = run(seed=2**64 - 1)
    assert largest.info["seed"] == 2**64 - 1


def test_without_a_seed_one_is_taken_and_recorded():
    one, two = run(seed=None), run(seed=None)
    assert one.info["seed"] != two.info["seed"]
    same(one, run(seed=one.info["seed"]))


# ---- which steps are recorded -------------------------------------------------------------------------------------------


def test_warmup_and_thin_choose_from_the_same_chain():
    every = run(draws=100, warmup=0).draws
    chosen = run(draws=10, warmup=15, thin=4).draws
    np.testing.assert_array_equal(chosen, every[:, 15 + 4 * np.arange(1, 11) - 1])
    assert run(draws=10, warmup=15, thin=4).info["steps"] == 3 * (15 + 40)


def test_a_trace_knows_the_facts_of_its_run():
    trace = run(warmup=20, draws=5, thin=3)
    info, steps = trace.info, 3 * (20 + 15)
    assert (info["steps"], info["gradient_evaluations"], info["row_evaluations"]) == (steps, steps, 0)
    assert info["steps_per_second"] == pytest.approx(steps / info["seconds"])
    assert info["chains"] == [0, 1, 2]
    assert (info["diverged"], info["interrupted"], info["dtype"], info["temperature"]) == ({}, False, "float64", 1.0)
    assert info["versions"] == {"sgmcmc": sg.__version__, "numpy": np.__version__, "numba": numba.__version__}
    assert info["sampler"] == repr(SGNHT)
    assert info["model"] == repr(GAUSS)
    assert (trace.final["step"] == 35).all()


def test_rows_are_counted():
    trace = run(model=LOGISTIC, sampler=sg.SGNHT(0.02), batch_size=16)
    assert trace.info["row_evaluations"] == 16 * trace.info["gradient_evaluations"] == 16 * 3 * 60
    assert (trace.info["batch_size"], trace.info["minibatch"]) == (16, "replacement")


# ---- going on -----------------------------------------------------------------------------------------------------------


@both
def test_a_run_that_goes_on_equals_one_long_run(sampler, tmp_path):
    whole = run(sampler, draws=60, thin=2)
    first = run(sampler, draws=25, thin=2)
    second = run(sampler, draws=35, thin=2, warmup=0, init=first, seed=None)
    np.testing.assert_array_equal(np.concatenate([first.draws, second.draws], axis=1), whole.draws)
    for name in whole.final:
        np.testing.assert_array_equal(second.final[name], whole.final[name], err_msg=name)
    first.save(tmp_path / "run.npz")
    again = run(sampler, draws=35, thin=2, warmup=0, init=sg.Trace.load(tmp_path / "run.npz"), seed=None)
    same(again, second)  # and `first` is still what it was: going on from it does not change it


def test_another_step_size_may_follow():
    first = run(draws=25)
    second = run(sg.SGNHT(0.1), draws=25, warmup=0, init=first)
    assert not np.array_equal(second.draws, run(SGNHT, draws=25, warmup=0, init=first).draws)
    assert (second.final["step"] == 60).all()


def test_another_kind_of_sampler_cannot_go_on():
    for sampler in (SGLD, SGMGTD, sg.SGHMC(0.1), sg.SGNHT(0.1, per="chain")):
        with pytest.raises(ValueError, match="init is a trace of Sampler"):
            run(sampler, init=run())


def test_start_values_are_taken_as_given():
    p = np.array([[0.5, -0.5, 1.0], [0.0, 0.1, 0.2], [2.0, 2.0, 2.0]])
    xi = np.array([1.0, 2.0, 3.0])
    trace = run(init={"theta": MEAN, "p": p, "xi": xi}, draws=1, warmup=0)
    for chain in range(3):
        state = SGNHT.init(MEAN, seed=11, chain=chain)
        state.arrays.p[:], state.arrays.xi[:] = p[chain], xi
        state = SGNHT.step(state, GAUSS.gradient(MEAN))
        np.testing.assert_array_equal(trace.draws[chain, 0], state.theta)


def test_start_values_may_be_one_row_for_all_or_one_for_each():
    one, each = run(init=MEAN), run(init=np.tile(MEAN, (3, 1)))
    same(one, each)
    assert not np.array_equal(one.draws[0], one.draws[1])


# ---- ask and tell -------------------------------------------------------------------------------------------------------


@both
def test_ask_and_tell_equals_sample(sampler):
    trace = run(sampler, draws=120, warmup=0, init=MEAN)
    for chain in (0, 2):
        state = sampler.init(MEAN, seed=11, chain=chain, gradient_variance=0.0)  # `sample` knows: the gradient is exact
        for t in range(120):
            state = sampler.step(state, GAUSS.gradient(state.theta))
            np.testing.assert_array_equal(state.theta, trace.draws[chain, t], err_msg=f"chain {chain}, step {t}")
        assert state.step == 120


@both
def test_a_step_in_place_equals_one_that_copies_and_only_it_changes_its_input(sampler):
    copying, moving = sampler.init(MEAN, seed=1), sampler.init(MEAN, seed=1)
    arrays = moving.arrays
    for _ in range(10):
        kept = State(*(a.copy() for a in copying.arrays))
        gradient = GAUSS.gradient(copying.theta)
        after = sampler.step(copying, gradient)
        for name in State._fields:
            np.testing.assert_array_equal(getattr(copying.arrays, name), getattr(kept, name))
        moving = sampler.step(moving, gradient, inplace=True)
        assert all(one is two for one, two in zip(moving.arrays, arrays, strict=True))
        for name in State._fields:
            np.testing.assert_array_equal(getattr(after.arrays, name), getattr(moving.arrays, name))
        copying = after


def test_the_gradient_of_ask_and_tell_is_not_changed():
    gradient = np.ones(3)
    SGNHT.step(SGNHT.init(MEAN), gradient, inplace=True)
    np.testing.assert_array_equal(gradient, np.ones(3))


# ---- precision and length -----------------------------------------------------------------------------------------------


def moments_are_right(trace, variance):
    """z-scores of mean and variance, per coordinate."""
    means = [z_score(trace.draws[:, :, j].astype(float).mean(axis=1), MEAN[j]) for j in range(3)]
    squares = ((trace.draws.astype(float) - MEAN) ** 2).mean(axis=1)
    return np.array(means + [z_score(squares[:, j], variance[j]) for j in range(3)])


def test_single_precision_stays_single_and_has_the_same_law():
    trace = run(draws=4000, warmup=500, chains=32, dtype=np.float32)
    assert trace.draws.dtype == np.float32
    assert all(trace.final[name].dtype == np.float32 for name in State._fields)
    assert trace.info["dtype"] == "float32"
    assert np.abs(moments_are_right(trace, VARIANCE)).max() < LIMIT
    assert np.abs(moments_are_right(trace, 1.1 * VARIANCE)).max() > LIMIT


def test_a_single_precision_run_goes_on_as_one_long_run():
    whole = run(draws=30, dtype=np.float32)
    second = run(draws=10, warmup=0, dtype=np.float32, init=run(draws=20, dtype=np.float32))
    np.testing.assert_array_equal(second.draws, whole.draws[:, 20:])


@both
def test_long_vectors_are_the_same_in_blocks_of_any_size(sampler, monkeypatch):
    wide = sg.models.Gaussian(np.linspace(-1.0, 1.0, 1300), np.linspace(0.5, 2.0, 1300))
    blocks = run(sampler, wide, draws=8, chains=2)
    for size in (2048, 100):
        monkeypatch.setattr(update, "BLOCK", size)
        same(run(sampler, wide, draws=8, chains=2), blocks)


def test_long_vectors_have_the_right_law():
    wide = sg.models.Gaussian(np.zeros(1300), 1.0)
    squares = (run(model=wide, draws=40, thin=40, warmup=400, chains=1, init=0.0).draws[0] ** 2).mean(axis=0)
    assert abs(z_score(squares, 1.0)) < LIMIT  # over the coordinates, which are independent
    assert abs(z_score(squares, 1.05)) > LIMIT


# ---- gradients of all kinds ---------------------------------------------------------------------------------------------


def returning(theta):
    return (theta - MEAN) / VARIANCE


def writing(theta, out):
    out[:] = (theta - MEAN) / VARIANCE


@both
@pytest.mark.parametrize("gradient", [returning, writing])
def test_a_plain_python_gradient_gives_the_draws_of_the_compiled_model(gradient, sampler):
    plain = run(sampler, sg.Potential(gradient, dim=3))
    compiled = run(sampler)
    np.testing.assert_allclose(plain.draws, compiled.draws, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(plain.kinetic_temperature, compiled.kinetic_temperature, rtol=1e-9)
    np.testing.assert_allclose(plain.configurational_temperature, compiled.configurational_temperature, rtol=1e-9)
    assert plain.info["threads"] == 1


def test_noise_and_clipping_are_the_same_for_a_plain_python_gradient():
    options = {"gradient_noise": 0.7, "clip_gradient": 1.5}
    plain, compiled = run(model=sg.Potential(returning, dim=3), **options), run(**options)
    np.testing.assert_allclose(plain.draws, compiled.draws, rtol=0.0, atol=1e-10)
    assert np.abs(run().draws - compiled.draws).max() > 0.1


def logistic(theta, data, rows):
    X, y = data
    total = np.zeros(theta.size)
    for i in rows:
        total += (1.0 / (1.0 + np.exp(-(X[i] * theta).sum())) - y[i]) * X[i]
    return total


def test_your_own_logistic_regression_equals_the_built_in_one():
    options = {"sampler": sg.SGNHT(0.02), "batch_size": 16}
    own = sg.Potential(logistic, dim=3, data=(X, Y), prior=sg.priors.Gaussian(2.0))
    np.testing.assert_allclose(run(model=own, **options).draws, run(model=LOGISTIC, **options).draws, atol=1e-10)


def test_a_compiled_function_of_yours_equals_the_plain_one():
    options = {"sampler": SGLD, "batch_size": 16, "minibatch": "no-replacement", "draws": 20}
    parts = {"dim": 3, "data": (X, Y), "prior": sg.priors.Gaussian(2.0)}
    plain = run(model=sg.Potential(logistic, **parts), **options)
    compiled = run(model=sg.Potential(numba.njit(logistic), **parts), **options)
    np.testing.assert_allclose(compiled.draws, plain.draws, atol=1e-10)


class Banana(NamedTuple):
    """U = θ₀²/2 + (θ₁ − bend·θ₀²)²/2."""

    bend: float
    dim: int = 2


@sg.implements(add_gradient, Banana)
def _(model, theta, rows, out):
    gap = theta[1] - model.bend * theta[0] * theta[0]
    out[0] += theta[0] - 2.0 * model.bend * theta[0] * gap
    out[1] += gap


def test_a_model_of_your_own_is_a_named_tuple_and_its_gradient():
    def gradient(theta):
        gap = theta[1] - 0.5 * theta[0] ** 2
        return np.array([theta[0] - theta[0] * gap, gap])

    own, plain = run(SGLD, Banana(0.5)), run(SGLD, sg.Potential(gradient, dim=2))
    np.testing.assert_allclose(own.draws, plain.draws, atol=1e-10)


class Quartic(NamedTuple):
    """K = p²/2 + p⁴/4."""

    weight: float = 1.0


@sg.implements(energy, Quartic)
def _(kinetics, p):
    return 0.5 * p * p + 0.25 * kinetics.weight * p * p * p * p


@sg.implements(velocity, Quartic)
def _(kinetics, p):
    return p + kinetics.weight * p * p * p


@sg.implements(curvature, Quartic)
def _(kinetics, p):
    return 1.0 + 3.0 * kinetics.weight * p * p


def test_a_kinetics_of_your_own_needs_three_functions():
    sampler = sg.Sampler(0.1, kinetics=Quartic(), sigma_p=1.0, resample_momentum=20)
    trace = run(sampler, draws=3000, warmup=300, chains=32)
    assert np.abs(moments_are_right(trace, VARIANCE)).max() < LIMIT
    assert abs(z_score(trace.kinetic_temperature, 1.0)) < LIMIT
    assert np.abs(moments_are_right(trace, 1.1 * VARIANCE)).max() > LIMIT


def test_the_momentum_law_of_your_own_kinetics_is_tabulated_once_per_sampler(monkeypatch):
    from sgmcmc.samplers import sampler as samplers

    calls, make = [], samplers.with_momentum_law
    monkeypatch.setattr(samplers, "with_momentum_law", lambda *a: calls.append(a) or make(*a))
    sampler = sg.Sampler(0.1, kinetics=Quartic())
    for dtype in (np.float64, np.float32, np.float64):
        sampler.dynamics(3, dtype)
    assert len(calls) == 1


# ---- the size of things -------------------------------------------------------------------------------------------------

FLAT, COLD = sg.models.Gaussian(np.zeros(3), 1e12), sg.SGLD(0.5, temperature=1e-12)  # θ ← θ − h (noise of the gradient)


def test_gradient_noise_has_variance_2b():
    theta = run(COLD, FLAT, draws=4000, chains=2, gradient_noise=3.0).draws
    noise = np.diff(theta, axis=1) / 0.5
    assert stats.kstest(noise.ravel() / np.sqrt(6.0), "norm").pvalue > 1e-6
    assert stats.kstest(noise.ravel() / np.sqrt(7.2), "norm").pvalue < 1e-6
    n = noise[:, :-1].size
    assert abs((noise[:, 1:] * noise[:, :-1]).mean() / 6.0) < LIMIT / np.sqrt(n)  # white
    assert np.abs(np.diff(run(COLD, FLAT, draws=4000, chains=2).draws, axis=1)).max() < 1e-4


def test_clipping_bounds_every_coordinate_of_the_gradient_noise_included():
    steps = np.diff(run(COLD, FLAT, draws=500, gradient_noise=3.0, clip_gradient=0.25).draws, axis=1) / 0.5
    assert np.abs(steps).max() < 0.25 + 1e-4
    assert (np.abs(steps) > 0.25 - 1e-4).mean() > 0.8


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_both_temperatures_of_a_trace_are_the_one_asked_for(temperature):
    trace = run(sg.SGMGTD(0.05, temperature=temperature), draws=6000, warmup=1000, chains=48)
    for measured in (trace.kinetic_temperature, trace.configurational_temperature):
        assert abs(z_score(measured, temperature)) < LIMIT
        assert abs(z_score(measured, 1.2 * temperature)) > LIMIT
    assert np.abs(moments_are_right(trace, temperature * VARIANCE)).max() < LIMIT


def test_the_temperatures_show_noise_that_is_left_out():
    # A fifth less noise than the friction asks for, as if gradient noise made up for it: T = 0.8 in place of 1.
    trace = run(sg.SGHMC(0.1, friction=1.0, noise_estimate=0.2), draws=4000, warmup=500, chains=32)
    for measured in (trace.kinetic_temperature, trace.configurational_temperature):
        assert z_score(measured, 1.0) < -LIMIT
        assert abs(z_score(measured, 0.8)) < LIMIT


def test_without_momentum_there_is_no_kinetic_temperature():
    trace = run(SGLD, draws=4000, warmup=500, chains=32)
    assert np.isnan(trace.kinetic_temperature).all()
    assert abs(z_score(trace.configurational_temperature, 1.0)) < LIMIT


# ---- divergence ---------------------------------------------------------------------------------------------------------

WILD = sg.SGNHT(30.0)


def test_divergence_is_an_error_that_names_chain_and_step_and_a_remedy():
    with pytest.raises(sg.DivergenceError, match=r"try a step size of 7\.5") as caught:
        run(WILD, draws=1000, chains=1)
    error = caught.value
    assert error.chain == 0
    assert f"chain 0 left the finite numbers in step {error.step}, with step size 30;" in str(error)
    assert "\n" not in str(error)
    assert np.isfinite(run(WILD, draws=error.step, warmup=0, chains=1).draws).all()
    with pytest.raises(sg.DivergenceError):
        run(WILD, draws=error.step + 1, warmup=0, chains=1)


def test_a_plain_python_gradient_diverges_in_the_same_step():
    steps = []
    for model in (GAUSS, sg.Potential(returning, dim=3)):
        with np.errstate(all="ignore"), pytest.raises(sg.DivergenceError) as caught:
            run(WILD, model, draws=1000, chains=1)
        steps.append(caught.value.step)
    assert steps[0] == steps[1]


def test_a_chain_that_diverges_can_be_dropped_and_the_others_do_not_notice():
    good = np.tile(MEAN, (3, 1))
    bad = good.copy()
    bad[1] = 1e200
    trace, clean = run(init=bad, on_divergence="drop"), run(init=good)
    np.testing.assert_array_equal(trace.draws, clean.draws[[0, 2]])
    assert trace.info["chains"] == [0, 2]
    assert list(trace.info["diverged"]) == ["1"]
    assert trace.info["steps"] == 2 * 60 + trace.info["diverged"]["1"]
    rest = run(init=trace, chains=2, warmup=0, draws=20)
    np.testing.assert_array_equal(rest.draws, run(init=good, draws=70).draws[[0, 2], 50:])
    with pytest.raises(sg.DivergenceError, match="chain 1 left"):
        run(init=bad)


def test_an_infinite_friction_counts_as_divergence_although_it_holds_theta_still():
    with pytest.raises(sg.DivergenceError, match="in step 0,"):
        run(init={"theta": MEAN, "p": 1e200})


def test_if_every_chain_diverges_dropping_does_not_help():
    with pytest.raises(sg.DivergenceError, match="left the finite numbers"):
        run(WILD, draws=1000, on_divergence="drop")


# ---- Ctrl-C -------------------------------------------------------------------------------------------------------------


def is_a_prefix(trace, **options):
    """Whether an interrupted trace is the beginning of the run, and can be gone on from."""
    assert trace.info["interrupted"]
    whole = run(draws=400, **options)
    np.testing.assert_array_equal(trace.draws, whole.draws[:, : trace.n_draws])
    assert trace.final["step"].min() == 10 + trace.n_draws
    rest = run(draws=20, warmup=0, init=trace, **options)
    begin = trace.final["step"].max() - 10
    np.testing.assert_array_equal(rest.draws, whole.draws[:, begin : begin + 20])
    assert rest.info["steps"] == (rest.final["step"] - trace.final["step"]).sum()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("least", [11, 25])
def test_an_interruption_between_chunks_gives_back_the_draws_so_far(least, threads, monkeypatch):
    tasks, real, make = [], scheduler.wait, scheduler.Task.__init__

    def seen(task, *args):
        make(task, *args)
        tasks.append(task)

    def wait(*args, **options):
        # A thread may get no time for long: count the steps of the chain that is furthest behind.
        if min(chain.step for task in tasks for chain in task.chains) >= least:
            monkeypatch.undo()
            raise KeyboardInterrupt
        return real(*args, **options)

    monkeypatch.setattr("sgmcmc.run.job.CHUNK_SECONDS", 1e-12)  # chunks of one step
    monkeypatch.setattr(scheduler.Task, "__init__", seen)
    monkeypatch.setattr(scheduler, "wait", wait)
    trace = run(draws=400, threads=threads)
    assert least - 10 <= trace.n_draws <= least - 8
    is_a_prefix(trace)


def test_an_interruption_in_the_warmup_gives_back_no_draws(monkeypatch):
    def wait(*args, **options):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr("sgmcmc.run.job.CHUNK_SECONDS", 1e-12)  # one step, and a report
    monkeypatch.setattr(scheduler, "wait", wait)
    trace = run(warmup=1000)
    assert trace.info["interrupted"]
    assert trace.draws.shape == (3, 0, 3)
    assert np.isnan(trace.kinetic_temperature).all()


@pytest.mark.parametrize("stop", [_thread.interrupt_main, lambda: (_ for _ in ()).throw(KeyboardInterrupt)])
def test_an_interruption_within_a_python_gradient_gives_back_the_draws_so_far(stop, monkeypatch):
    calls = []

    def gradient(theta):
        calls.append(None)
        if len(calls) == 601:  # even if chunks grow as fast as they can, every chain is past its warmup by then
            stop()
        return returning(theta)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr("sgmcmc.run.job.CHUNK_SECONDS", 1e-3)
    try:
        trace = run(model=sg.Potential(gradient, dim=3), draws=400)
    finally:
        signal.signal(signal.SIGINT, handler)
    is_a_prefix(trace, model=sg.Potential(returning, dim=3))


def test_ctrl_c_waits_for_the_chunk_at_work_and_drops_those_that_wait_for_a_thread():
    ran = []

    class Slow(scheduler.Task):
        steps_left = 1

        def __init__(self, number):
            super().__init__(None, [])
            self.number = number

        def chunk(self):
            time.sleep(0.2)
            ran.append(self.number)
            return 1

        stretch = lambda self, end: self.chunk()  # noqa: E731

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        assert scheduler.run(1, lambda done: None, lambda chain: None, [Slow(0), Slow(1), Slow(2)])
    finally:
        signal.signal(signal.SIGINT, handler)
    time.sleep(0.3)
    assert ran == [0]


def test_ctrl_c_ends_a_real_run_with_the_draws_so_far():
    script = """
import signal, numpy as np, sgmcmc as sg
signal.signal(signal.SIGINT, signal.default_int_handler)
model = sg.models.Gaussian(np.array([1.0, -2.0, 0.5]), np.array([1.0, 4.0, 0.25]))
options = dict(warmup=10, thin=500, chains=3, seed=11, progress=False)
sg.sample(model, sg.SGNHT(0.2), draws=1, **options)
print("go", flush=True)
trace = sg.sample(model, sg.SGNHT(0.2), draws=10**6, **options)
print(trace.info["interrupted"], trace.n_draws, flush=True)
again = sg.sample(model, sg.SGNHT(0.2), draws=trace.n_draws, **options)
print(np.array_equal(again.draws, trace.draws))
"""
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "go\n"
    time.sleep(0.7)
    begin = time.perf_counter()
    os.kill(child.pid, signal.SIGINT)
    interrupted, draws = child.stdout.readline().split()
    assert time.perf_counter() - begin < 10.0
    assert interrupted == "True"
    assert int(draws) > 0
    out, _ = child.communicate(timeout=60)
    assert out == "True\n"
    assert child.returncode == 0


def test_an_error_in_the_gradient_is_passed_on():
    def gradient(theta):
        if theta[0] != 0.0:
            raise RuntimeError("no such file")
        return theta

    with pytest.raises(RuntimeError, match="no such file"):
        run(model=sg.Potential(gradient, dim=3))


def test_more_draws_than_a_plan_can_hold_are_refused_before_memory_is_taken():
    with pytest.raises(ValueError, match=r"draws=2147483648000 need .* GiB for the numbers of their steps alone"):
        sg.sample(sg.models.Gaussian(np.zeros(2), 1.0), sg.SGLD(0.1), 2**31 * 1000, keep="moments", progress=False)
