"""Temperatures of single coordinates: every chain loop measures the same, and a run names the coordinate that is off."""

from __future__ import annotations

import itertools
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import t as student_law

import sgmcmc as sg
from sgmcmc.bias.coordinates import TOLERANCE, intervals, worst_coordinate
from sgmcmc.bias.quantiles import student_quantile
from sgmcmc.integrators import threaded as spread
from sgmcmc.run.coordinate_temperatures import MEASURED, NOTHING, ORIGIN, tracked_coordinates
from sgmcmc.run.plan import make_plan, segments_for
from sgmcmc.schedules import Constant, Cyclical
from sgmcmc.trace import archive

QUIET = {"progress": False, "seed": 3, "warn": False}


def euler(h):
    return sg.SGLD(h, integrator=sg.integrators.Euler())


def gaussian(d):
    return sg.models.Gaussian(np.linspace(-1.0, 1.0, d), np.linspace(0.5, 2.0, d))


def in_python(d):
    model = gaussian(d)
    return sg.Potential(lambda theta: model.gradient(theta), dim=d)


def by_hand(trace, model, segments=64):
    """Mean of (θ − c) ∂U at the draws, which with thin=1 and no minibatches are where the steps measured."""
    x = np.asarray(trace.draws[:, :-1], np.float64)
    g = np.stack([[model.gradient(theta) for theta in chain] for chain in x])
    bounds = [-(-s * x.shape[1] // segments) for s in range(segments + 1)]
    means = x.mean(axis=1)
    center = (means.sum(axis=0) - means) / (len(x) - 1)
    work = (x - center[:, None]) * g
    return np.stack([work[:, a:b].mean(axis=1) for a, b in itertools.pairwise(bounds)], axis=1)


def same(one, other):
    np.testing.assert_array_equal(one.draws, other.draws)
    np.testing.assert_array_equal(one.configurational_temperature, other.configurational_temperature)
    np.testing.assert_array_equal(one.by_coordinate.values, other.by_coordinate.values)


# ---- measuring -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "d"), [(gaussian, 3), (gaussian, 20), (in_python, 3)], ids=["lanes", "loop", "python"]
)
@pytest.mark.parametrize("sampler", [sg.SGLD(0.1), sg.SGNHT(0.2)], ids=["SGLD", "SGNHT"])
def test_every_engine_measures_what_its_draws_have(make, d, sampler):
    trace = sg.sample(make(d), sampler, 100, warmup=20, chains=3, **QUIET)
    assert trace.by_coordinate.values.shape == (3, 64, d)
    np.testing.assert_allclose(trace.by_coordinate.values, by_hand(trace, gaussian(d), 64), rtol=1e-9, atol=1e-9)
    whole = sg.sample(make(d), sampler, 100, warmup=20, chains=300, **QUIET)
    assert whole.by_coordinate.values.shape == (300, 1, d)
    np.testing.assert_array_equal(whole.draws[:3], trace.draws)


def test_one_chain_has_the_other_half_of_its_run_as_centre():
    model = gaussian(3)
    trace = sg.sample(model, sg.SGLD(0.1), 101, warmup=20, chains=1, **QUIET)
    x = trace.draws[0, :-1]
    center = np.where((np.arange(100) < 50)[:, None], x[50:].mean(axis=0), x[:50].mean(axis=0))
    work = (x - center) * np.array([model.gradient(theta) for theta in x])
    np.testing.assert_allclose(trace.by_coordinate.values[0, 0], work[:2].mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(trace.by_coordinate.values[0, -1], work[99:].mean(axis=0), rtol=1e-9)


@pytest.mark.parametrize("make", [gaussian, in_python], ids=["lanes", "python"])
def test_neither_threads_nor_chunks_nor_executors_nor_checkpoints_change_a_bit(make, monkeypatch, tmp_path):
    run = {"draws": 60, "warmup": 10, "chains": 4} | QUIET
    model, sampler = make(3), sg.SGNHT(0.2)
    one = sg.sample(model, sampler, threads=1, **run)
    same(one, sg.sample(model, sampler, threads=3, **run))
    with ThreadPoolExecutor(2) as executor:
        same(one, sg.sample(model, sampler, executor=executor, **run))
    monkeypatch.setattr("sgmcmc.run.job.CHUNK_SECONDS", 1e-12)  # a step at a time
    same(one, sg.sample(model, sampler, threads=2, **run))
    same(one, _stopped_and_resumed(model, sampler, tmp_path / "run.npz", run))


def _stopped_and_resumed(model, sampler, path, run, change=None):
    steps = []

    def stop(done):
        steps.append(done)
        if sum(steps) > 100:
            raise KeyboardInterrupt

    early = sg.sample(model, sampler, checkpoint=path, **(run | {"progress": stop}))
    assert early.info["interrupted"]
    if change is not None:
        change(path)
    return sg.sample(model, sampler, checkpoint=path, resume=True, **run)


def _without_watch(path):
    arrays, header = archive.read(path, "sgmcmc.checkpoint", 1, "a checkpoint")
    assert "watch" in arrays
    archive.write(path, header, {name: value for name, value in arrays.items() if name not in ("watch", "header")})


@pytest.mark.parametrize("d", [3, 20])
def test_a_checkpoint_of_an_older_version_is_gone_on_from(d, tmp_path, monkeypatch):
    monkeypatch.setattr("sgmcmc.run.job.CHUNK_SECONDS", 1e-12)
    run = {"draws": 60, "warmup": 10, "chains": 4, "threads": 1} | QUIET
    one = sg.sample(gaussian(d), sg.SGNHT(0.2), **run)
    other = _stopped_and_resumed(gaussian(d), sg.SGNHT(0.2), tmp_path / "run.npz", run, _without_watch)
    np.testing.assert_array_equal(one.draws, other.draws)
    np.testing.assert_array_equal(one.configurational_temperature, other.configurational_temperature)
    later = other.by_coordinate.values
    assert 1 <= later.shape[1] < 59  # the segments that all chains still measured
    np.testing.assert_allclose(later[:, -1], one.by_coordinate.values[:, -1], rtol=0.5, atol=2.0)  # another centre


def test_rows_shared_by_a_team_change_no_bit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 4))
    model = sg.models.LogisticRegression(X, rng.random(60_000) < 0.5)
    run = {"draws": 40, "warmup": 5, "chains": 1} | QUIET
    same(sg.sample(model, sg.SGHMC(1e-3), threads=1, **run), sg.sample(model, sg.SGHMC(1e-3), threads=2, **run))


def test_of_a_long_vector_evenly_spaced_coordinates_are_watched_on_any_number_of_threads():
    d = spread.LONG + 777
    model = sg.models.Gaussian(np.zeros(d), np.linspace(0.5, 2.0, d))
    run = {"draws": 5, "warmup": 2, "chains": 2, "init": np.linspace(-1.0, 1.0, d)} | QUIET
    one, two = (sg.sample(model, sg.SGHMC(0.1), threads=n, **run) for n in (2, 4))
    same(one, two)
    where = one.by_coordinate.coordinates
    assert where.size <= 1024
    assert (np.diff(where) == where[1]).all()
    assert d - where[-1] <= where[1]
    x = one.draws[:, :-1]
    center = x.mean(axis=1)[::-1, None]
    work = (x - center) * x / np.linspace(0.5, 2.0, d)
    np.testing.assert_allclose(one.by_coordinate.values.mean(axis=1), work.mean(axis=1)[:, where], rtol=1e-9)


@pytest.mark.parametrize("dim", [1, 3, 16, 17, 1024, 1025, 1030, 2047, 5000, 131_849])
@pytest.mark.parametrize("chains", [1, 4, 10**6])
def test_watched_coordinates_lie_in_the_vector_and_cover_it(dim, chains):
    found = tracked_coordinates(dim, chains, segments_for(chains))
    assert found[0] == 0
    assert found[-1] < dim
    assert found.size == dim if dim <= 16 else found.size >= min(dim, 9)
    assert len(set(np.diff(found))) <= 1


@pytest.mark.parametrize(
    "schedule", [Constant(0.1), Cyclical(0.1, 10, 0.3), Cyclical(0.1, 7, 1.0), Cyclical(0.1, 5, 0.2)]
)
@pytest.mark.parametrize("first", [0, 9])
@pytest.mark.parametrize("warmup", [0, 8])
def test_only_steps_that_may_be_recorded_measure_wherever_chunks_begin(schedule, first, warmup):
    plan = make_plan(schedule, 40, warmup, 2, first, segments=4)
    whole = plan.phases(first, plan.steps)
    numbers = np.arange(first, first + plan.steps)
    may = numbers >= first + warmup
    may &= schedule.is_sampling(numbers) if isinstance(schedule, Cyclical) else True
    assert whole[may][0] == ORIGIN
    assert (whole[may][1:] >= MEASURED).all()
    assert (whole[~may] == NOTHING).all()
    assert (np.diff(whole[may][1:]) >= 0).all()
    assert np.ptp(np.bincount(whole[may][1:])) <= 1
    assert len(np.bincount(whole[may][1:])) == 4
    cut = [plan.phases(first + a, min(7, plan.steps - a)) for a in range(0, plan.steps, 7)]
    np.testing.assert_array_equal(np.concatenate(cut), whole)
    counted = [plan.measured_before(first + k) for k in range(plan.steps + 1)]
    np.testing.assert_array_equal(counted, np.concatenate(([0], np.cumsum(whole >= MEASURED))))


def test_a_long_run_measures_its_coordinates_in_every_eighth_step_only():
    plan = make_plan(Constant(0.1), 1000, 100, 100)
    phases = plan.phases(0, plan.steps)
    assert (phases >= MEASURED).sum() == 99_999
    assert (phases >= 0).sum() == 12_500
    cut = [plan.phases(a, min(1001, plan.steps - a)) for a in range(0, plan.steps, 1001)]
    np.testing.assert_array_equal(np.concatenate(cut), phases)


def test_a_cyclical_schedule_reports_the_temperature_of_its_draws():
    model = sg.models.Gaussian(np.zeros(4), 1.0)
    trace = sg.sample(model, euler(Cyclical(1.0, 50, 0.3)), 6000, chains=4, **QUIET)
    of_draws = np.square(trace.draws).mean(axis=(1, 2))
    np.testing.assert_allclose(trace.configurational_temperature, of_draws, rtol=0.03)
    h = Cyclical(1.0, 50, 0.3).step_sizes(np.arange(50))
    assert np.mean(1 / (1 - h / 2)) > 1.3  # what all steps together would have: large steps are hot


# ---- judging ---------------------------------------------------------------------------------------------------------


def heard(model, sampler, **run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trace = sg.sample(model, sampler, **({"progress": False, "seed": 1, "threads": 1} | run))
    return trace, [str(w.message) for w in caught if issubclass(w.category, sg.RunWarning)]


def with_one_hot(d, which, factor):
    """A gradient whose noise heats one coordinate: its variance is `factor` times that of the posterior, with h = 0.1."""
    rng = np.random.default_rng(0)
    loud = np.sqrt(2.0 / 0.1 * (factor - 1.0) * 0.95)

    def gradient(theta):
        slope = theta.copy()
        slope[which] += loud * rng.standard_normal()
        return slope

    return sg.Potential(gradient, dim=d)


def test_one_hot_coordinate_of_two_hundred_is_named_with_the_mean_that_hides_it():
    model = with_one_hot(200, 17, 2.75)
    trace, words = heard(model, sg.SGLD(0.1), draws=1000, warmup=200, thin=2)
    assert abs(trace.draws[:, :, 17].var() - 2.75) < 0.5
    assert abs(trace.configurational_temperature.mean() - 1.009) < 0.02
    assert len(words) == 1
    assert words[0].startswith("this run is hot: theta[17] is hot: its configurational temperature is 2.")
    assert "while the mean over coordinates is 1.0" in words[0]
    found = trace.bias_report()["configurational temperature, worst"]
    assert (found.verdict, found.advice[:9]) == ("hot", "theta[17]")
    calm, words = heard(with_one_hot(200, 17, 1.0), sg.SGLD(0.1), draws=1000, warmup=200, thin=2)
    assert words == []
    assert calm.bias_report()["configurational temperature, worst"].verdict in ("good", "not resolved")


def test_a_hot_coordinate_is_named_by_the_loop_too_in_single_precision_and_with_moments_alone():
    d = 40
    model = sg.models.Gaussian(np.zeros(d), np.where(np.arange(d) == 7, 0.15, 4.0))  # the step is long for one only
    for more in ({}, {"dtype": np.float32}, {"keep": "moments"}, {"chains": 1}):
        words = heard(model, euler(0.15), draws=1000, warmup=500, thin=10, **more)[1]
        assert any("theta[7] is hot" in w for w in words), (more, words)


@pytest.mark.parametrize(("d", "runs"), [(1, 150), (10, 60), (100, 30), (1000, 6)])
@pytest.mark.parametrize("draws", [200, 1000])
def test_no_right_sampler_has_a_wrong_coordinate(d, runs, draws):
    # The family has about 500 runs of a rate below 1e-3 each, most far below: none may be called wrong.
    model, samplers = sg.models.Gaussian(np.zeros(d), 1.0), (sg.SGHMC(0.3), sg.SGLD(0.02))
    for seed in range(runs):
        sampler, chains = samplers[seed % 2], (1, 2, 4)[seed % 3]
        trace = sg.sample(model, sampler, draws, warmup=300, chains=chains, **(QUIET | {"seed": seed}))
        found = worst_coordinate(trace, 1e-3)
        assert not found.is_problem, (seed, found)


@pytest.mark.parametrize("law", ["normal", "quartic", "Laplace", "Student", "two correlated"])
@pytest.mark.parametrize("tau", [0.1, 10.0, 100.0])
@pytest.mark.parametrize("chains", [1, 4, 40])
def test_intervals_miss_no_more_often_than_stated_whatever_the_law_and_however_slow(law, tau, chains):
    k, n, outside = 2000 if chains < 40 else 500, 200, 1e-2
    rng, rho = np.random.default_rng(1), np.exp(-1.0 / tau)
    x, y = (_slow(rng, rho, n, (chains, k)) for _ in range(2))
    virial = _virial(law, x, y)
    segments = segments_for(chains)
    values = np.stack([part.mean(axis=0) for part in np.array_split(virial, segments)], axis=1)
    found = intervals(values, outside)
    wrong = (found.low > 1.0 + TOLERANCE) | (found.high < 1.0 - TOLERANCE)
    assert wrong.mean() < outside, wrong.mean()


def _slow(rng, rho, n, shape):
    x = np.empty((n, *shape))
    x[0] = rng.standard_normal(shape)
    for i in range(1, n):
        x[i] = rho * x[i - 1] + np.sqrt(1 - rho**2) * rng.standard_normal(shape)
    return x


def _virial(law, x, y):
    """θ U'(θ), whose mean is 1, of a law that is a function of normal variates."""
    from scipy.stats import beta, gamma, norm

    if law == "normal":
        return x**2
    if law == "two correlated":  # θ₁ (Λθ)₁ for a correlation of 0.9
        return x * (x - 0.9 * (0.9 * x + np.sqrt(0.19) * y)) / 0.19
    u = norm.cdf(np.abs(x)) * 2 - 1  # uniform
    grid = np.linspace(0.0, 1.0, 20_001)[1:-1]
    if law == "Student":  # ν = 3: θ U' = 4 θ²/(3 + θ²), and that ratio is Beta(1/2, 3/2)
        return 4 * np.interp(u, grid, beta.ppf(grid, 0.5, 1.5))
    power = {"quartic": 4.0, "Laplace": 1.0}[law]  # U = |θ|^p / p: U ~ Gamma(1/p), θ U' = p U
    return power * np.interp(u, grid, gamma.ppf(grid, 1 / power))


def test_a_coordinate_that_is_off_is_seen_by_the_intervals():
    rng = np.random.default_rng(0)
    values = np.square(rng.standard_normal((4, 16, 50, 30))).mean(axis=2)
    values[:, :, 3] *= 1.6
    values[:, :, 4] *= 0.6
    found = intervals(values, 1e-3 / 30)
    assert np.flatnonzero(found.low > 1 + TOLERANCE).tolist() == [3]
    assert np.flatnonzero(found.high < 1 - TOLERANCE).tolist() == [4]
    assert intervals(values[:1, :4], 1e-3) is None


def test_quantiles_are_those_of_student():
    for n in (1, 2, 3, 5, 10, 15, 63, 1000):
        for outside in (0.05, 1e-3, 1e-6, 1e-9):
            assert abs(student_quantile(outside, n) / student_law.isf(outside / 2, n) - 1) < 1e-3
