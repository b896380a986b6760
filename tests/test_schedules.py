"""Schedules and plans: how long steps are, and which are recorded."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.run.plan import make_plan
from sgmcmc.schedules import Constant, Cyclical, PolynomialDecay, UserFunction, as_schedule

STEPS = np.arange(40)

# ---- formulas -----------------------------------------------------------------------------------------------------------


def test_a_constant_is_constant():
    assert (Constant(0.3).step_sizes(STEPS) == 0.3).all()


def test_polynomial_decay_follows_its_formula():
    expected = [0.5 * (1.0 + t / 10.0) ** -0.6 for t in range(40)]
    np.testing.assert_allclose(PolynomialDecay(0.5, 0.6, 10.0).step_sizes(STEPS), expected, rtol=1e-14)
    assert PolynomialDecay(0.5).step_sizes(np.array([0, 7000])) == pytest.approx([0.5, 0.25])


def test_cyclical_steps_follow_a_cosine_and_never_vanish():
    schedule = Cyclical(0.4, 10, 0.3)
    expected = [0.2 * (1.0 + np.cos(np.pi * (t % 10) / 10)) for t in range(40)]
    np.testing.assert_allclose(schedule.step_sizes(STEPS), expected, rtol=1e-14)
    assert schedule.step_sizes(STEPS).min() > 0.0
    assert STEPS[schedule.is_sampling(STEPS)].tolist() == [7, 8, 9, 17, 18, 19, 27, 28, 29, 37, 38, 39]


@pytest.mark.parametrize("period", [2, 3, 7, 10, 49, 100, 1000])
def test_the_sampling_phase_has_as_many_steps_as_the_fraction_says_in_spite_of_rounding(period):
    for n in range(1, period + 1):
        schedule = Cyclical(0.1, period, n / period)
        assert schedule.sampling_steps == n
        assert schedule.is_sampling(np.arange(period)).sum() == n


def test_a_number_a_schedule_and_a_function_are_step_sizes():
    assert as_schedule(0.1) == Constant(0.1)
    assert as_schedule(1) == Constant(1.0)
    decay = PolynomialDecay(0.1)
    assert as_schedule(decay) is decay
    assert isinstance(as_schedule(lambda t: 0.1), UserFunction)


@pytest.mark.parametrize("value", [Constant(0.1), PolynomialDecay(0.1, 0.5, 7.0), Cyclical(0.1, 9, 0.5)])
def test_schedules_are_values_that_print_and_pickle(value):
    assert pickle.loads(pickle.dumps(value)) == value
    assert eval(repr(value), {type(value).__name__: type(value)}) == value


# ---- functions of yours -------------------------------------------------------------------------------------------------


def branching(t):
    return 0.1 if t < 5 else 0.05


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda t: 0.1 / (1.0 + t), 0.1 / (1.0 + STEPS)),
        (branching, np.where(STEPS < 5, 0.1, 0.05)),
        (lambda t: 0.2, np.full(40, 0.2)),
        (lambda t: 1, np.ones(40)),
        (lambda t: {0: 0.3}.get(t, 0.1), np.where(STEPS == 0, 0.3, 0.1)),
    ],
    ids=["vectorised", "branching", "constant", "whole", "dictionary"],
)
def test_a_function_may_take_all_steps_at_once_or_one_by_one(function, expected):
    schedule = as_schedule(function)
    np.testing.assert_allclose(schedule.step_sizes(STEPS), expected, rtol=1e-15)
    for t in (0, 3, 39):
        np.testing.assert_allclose(schedule.step_sizes(np.array([t])), expected[[t]], rtol=1e-15)
    assert schedule.step_sizes(np.arange(0)).shape == (0,)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda t: 0.1 - 0.01 * t, "gave -0.0099.* at step 11; it must be finite and not negative"),
        (lambda t: np.where(t == 7, np.nan, 0.1), "gave nan at step 7"),
        (lambda t: np.inf, "gave inf at step 0"),
    ],
)
def test_a_function_that_gives_no_step_size_is_refused(function, message):
    with pytest.raises(ValueError, match=message):
        as_schedule(function).step_sizes(STEPS)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constant(0.0), "step_size=0.0 is out of range"),
        (lambda: Constant(np.inf), "step_size=inf is out of range"),
        (lambda: PolynomialDecay(-1.0), "initial=-1.0 is out of range"),
        (lambda: PolynomialDecay(0.1, 1.5), "power=1.5 is out of range"),
        (lambda: PolynomialDecay(0.1, 0.5, 0.0), "offset=0.0 is out of range"),
        (lambda: Cyclical(0.0, 10), "peak=0.0 is out of range"),
        (lambda: Cyclical(0.1, 1), "period=1 is out of range"),
        (lambda: Cyclical(0.1, 10, 0.0), "sampling=0.0 is out of range"),
        (lambda: Cyclical(0.1, 10, 1.1), "sampling=1.1 is out of range"),
        (lambda: Cyclical(0.1, 10, 0.05), "sampling=0.05 is less than one step of the period 10; give at least 0.1"),
    ],
)
def test_schedules_refuse_numbers_that_make_none(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# ---- plans --------------------------------------------------------------------------------------------------------------


def by_looking(schedule, draws, warmup, thin, first):
    """The recorded steps, found one by one."""
    kept, seen, t = [], 0, first + warmup
    while len(kept) < draws:
        if not isinstance(schedule, Cyclical) or schedule.is_sampling(np.array([t]))[0]:
            seen += 1
            if seen % thin == 0:
                kept.append(t)
        t += 1
    return kept


@pytest.mark.parametrize(
    "schedule", [Constant(0.1), Cyclical(0.1, 10, 0.3), Cyclical(0.1, 7, 1.0), Cyclical(0.1, 5, 0.2)]
)
@pytest.mark.parametrize("warmup", [0, 3, 8, 25])
@pytest.mark.parametrize("thin", [1, 4])
@pytest.mark.parametrize("first", [0, 9, 1234])
def test_a_plan_records_every_so_many_steps_of_the_sampling_phase_after_the_warmup(schedule, warmup, thin, first):
    plan = make_plan(schedule, 13, warmup, thin, first)
    assert plan.kept.tolist() == by_looking(schedule, 13, warmup, thin, first)
    assert plan.kept.dtype == np.int64
    assert plan.first + plan.steps == plan.kept[-1] + 1
    assert plan.first_measured == first + warmup
    assert plan.recorded_before(plan.first) == 0
    assert plan.recorded_before(int(plan.kept[4])) == 4
    assert plan.recorded_before(int(plan.kept[4]) + 1) == 5
    assert plan.recorded_before(plan.first + plan.steps) == 13


def test_a_plan_gives_step_sizes_in_the_precision_of_the_run():
    plan = make_plan(PolynomialDecay(0.1), 10, 0, 1)
    assert plan.step_sizes(3, 4, np.float32).dtype == np.float32
    np.testing.assert_allclose(plan.step_sizes(3, 4, np.float64), PolynomialDecay(0.1).step_sizes(np.arange(3, 7)))


def test_a_plan_of_a_billion_steps_takes_room_for_its_draws_only():
    tracemalloc.start()
    plan = make_plan(Constant(0.1), 1000, 10**9, 10**6)
    assert plan.steps == 2 * 10**9
    assert tracemalloc.get_traced_memory()[1] < 1e6
    tracemalloc.stop()


# ---- runs ---------------------------------------------------------------------------------------------------------------


def run(step_size, **options):
    settings = {"draws": 9, "warmup": 4, "chains": 2, "seed": 5, "progress": False} | options
    return sg.sample(sg.models.Gaussian(np.zeros(3), np.array([1.0, 2.0, 3.0])), sg.SGNHT(step_size), **settings)


def test_only_steps_of_the_sampling_phase_are_recorded():
    schedule = Cyclical(0.3, 10, 0.3)
    every = run(lambda t: schedule.step_sizes(np.asarray(t)), draws=60, warmup=0)
    chosen = run(schedule)
    np.testing.assert_array_equal(chosen.draws, every.draws[:, [7, 8, 9, 17, 18, 19, 27, 28, 29]])
    assert chosen.info["steps"] == 2 * 30
    thinned = run(schedule, thin=2, draws=3)
    np.testing.assert_array_equal(thinned.draws, every.draws[:, [8, 17, 19]])


def test_a_cyclical_run_that_goes_on_equals_one_long_run():
    schedule = Cyclical(0.3, 10, 0.3)
    whole, first = run(schedule, draws=14), run(schedule, draws=5)
    second = run(schedule, draws=9, warmup=0, init=first)
    np.testing.assert_array_equal(second.draws, whole.draws[:, 5:])


def test_a_schedule_and_the_function_that_is_its_formula_draw_the_same():
    one = run(PolynomialDecay(0.2, 0.5, 10.0))
    two = run(lambda t: 0.2 * (1.0 + t / 10.0) ** -0.5)
    np.testing.assert_array_equal(one.draws, two.draws)
    assert not np.array_equal(one.draws, run(0.2).draws)


def test_ask_and_tell_follows_the_schedule():
    model, sampler = (
        sg.models.Gaussian(np.zeros(3), np.array([1.0, 2.0, 3.0])),
        sg.SGNHT(PolynomialDecay(0.2, 0.5, 10.0)),
    )
    state = sampler.init(np.ones(3), seed=5)
    for _ in range(13):
        state = sampler.step(state, model.gradient(state.theta))
    trace = run(PolynomialDecay(0.2, 0.5, 10.0), init=1.0)
    np.testing.assert_array_equal(state.theta, trace.draws[0, -1])
    assert state.before == trace.final["before"][0] == pytest.approx(0.2 * (1.0 + 12.0 / 10.0) ** -0.5)


def test_a_function_that_fails_later_ends_the_run_with_its_message():
    with pytest.raises(ValueError, match="gave nan at step 13"):
        run(lambda t: np.where(t == 13, np.nan, 0.1), draws=100)
