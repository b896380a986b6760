"""Samplers beside each other: every number of the table against a computation of its own, and runs that end badly."""

from __future__ import annotations

import pickle
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import timedelta

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from arviz_stats.base import array_stats

import sgmcmc as sg
from sgmcmc.comparison import runs
from sgmcmc.comparison.budget import read_budget
from sgmcmc.comparison.measures import Points, errors, ksd_of_prefixes
from sgmcmc.comparison.modes import read_modes, visits
from sgmcmc.comparison.reference import Reference, read_reference, wells_at

mpl.use("Agg")

GAUSSIAN = sg.models.Gaussian([1.0, -2.0], [[1.0, 0.6], [0.6, 2.0]])
SAMPLERS = {"SGLD": sg.SGLD(0.2), "SGHMC": sg.SGHMC(0.3)}
QUIET = {"progress": False, "threads": 1}


@pytest.fixture(scope="module")
def table():
    return sg.compare(SAMPLERS, GAUSSIAN, budget=40_000, reference="exact", seeds=[3, 5], **QUIET)


# ---- the table -------------------------------------------------------------------------------------------------------


def test_there_is_a_row_per_sampler_and_seed_and_each_spent_the_budget(table):
    assert isinstance(table, pd.DataFrame)
    assert list(zip(table["sampler"], table["seed"], strict=True)) == [(n, s) for n in SAMPLERS for s in (3, 5)]
    assert table["status"].tolist() == ["ok"] * 4
    assert table["gradients"].tolist() == [40_000] * 4
    assert table["draws"].tolist() == [4000] * 4


def test_the_draws_are_those_of_sample(table):
    options = {"draws": 1000, "warmup": 2000, "thin": 8, "chains": 4, "seed": 5, "progress": False}
    expected = sg.sample(GAUSSIAN, SAMPLERS["SGHMC"], **options)
    assert np.array_equal(table.traces["SGHMC", 5].draws, expected.draws)


def test_effective_sample_sizes_and_r_hat_are_those_of_arviz(table):
    for row in table.itertuples():
        x = [table.traces[row.sampler, row.seed].draws[:, :, j] for j in range(2)]
        assert row.ess_bulk == pytest.approx(min(array_stats.ess(y, method="bulk") for y in x), rel=1e-9)
        tails = [array_stats.ess(y, method="tail", prob=(0.05, 0.95)) for y in x]
        assert row.ess_tail == pytest.approx(min(tails), rel=1e-9)
        assert row.r_hat == pytest.approx(max(array_stats.rhat(y, method="rank") for y in x), rel=1e-9)
        assert row.ess_per_second == pytest.approx(row.ess_bulk / row.seconds, rel=1e-12)
        assert row.ess_per_gradient == pytest.approx(row.ess_bulk / 40_000, rel=1e-12)
        assert row.seconds == table.traces[row.sampler, row.seed].info["seconds"]


def test_errors_are_those_of_mean_and_sd_in_units_of_the_true_sd(table):
    sd = np.sqrt([1.0, 2.0])
    for row in table.itertuples():
        x = table.traces[row.sampler, row.seed].draws.reshape(-1, 2)
        mean = np.linalg.norm((x.mean(axis=0) - [1.0, -2.0]) / sd) / np.sqrt(2)
        spread = np.linalg.norm(x.std(axis=0, ddof=1) / sd - 1.0) / np.sqrt(2)
        assert row.error_mean == pytest.approx(mean, rel=1e-9)
        assert row.error_sd == pytest.approx(spread, rel=1e-9)
        assert row.error_mean < 5.2 / np.sqrt(row.ess_bulk)  # z below 5.2, for the worst parameter


def test_a_sampler_at_the_wrong_temperature_is_seen_by_discrepancy_and_errors():
    both = {"right": sg.SGHMC(0.3), "hot": sg.SGHMC(0.3, temperature=1.5)}
    found = sg.compare(both, GAUSSIAN, budget=40_000, reference="exact", seeds=2, **QUIET).groupby("sampler")
    assert found["ksd"].min()["hot"] > 1.5 * found["ksd"].max()["right"]
    assert found["error_sd"].min()["hot"] > 0.15 > 3 * found["error_sd"].max()["right"]
    told = sg.compare({"hot": both["hot"]}, GAUSSIAN, 40_000, reference="exact", temperature=1.5, seeds=2, **QUIET)
    assert told["ksd"].max() < 1.3 * found["ksd"].max()["right"]  # at the temperature it has, it is as good
    assert told["error_sd"].max() < 0.06


# ---- the discrepancy -------------------------------------------------------------------------------------------------


def test_the_discrepancy_is_the_sum_over_pairs_by_finite_differences():
    """Σ u(x, y) with k = (1 + |x − y|²)^(−1/2), its derivatives by differences, for a score that is no gradient of ours."""
    rng = np.random.default_rng(1)
    x, s, scale, eps = rng.normal(size=(6, 2)), rng.normal(size=(6, 2)), np.array([0.5, 2.0]), 1e-4

    def k(a, b):
        return (1.0 + np.sum((a - b) ** 2)) ** -0.5

    total, units = 0.0, np.eye(2) * eps
    for a, sa in zip(x / scale, s * scale, strict=True):
        for b, sb in zip(x / scale, s * scale, strict=True):
            by_a = np.array([(k(a + e, b) - k(a - e, b)) / (2 * eps) for e in units])
            by_b = np.array([(k(a, b + e) - k(a, b - e)) / (2 * eps) for e in units])
            mixed = sum(k(a + e, b + e) - k(a + e, b - e) - k(a - e, b + e) + k(a - e, b - e) for e in units) / (
                4 * eps**2
            )
            total += sa @ sb * k(a, b) + sa @ by_b + sb @ by_a + mixed
    found = ksd_of_prefixes(Points(x, s, np.arange(6) + 1), scale, np.array([6]))
    assert found[0] == pytest.approx(np.sqrt(total) / 6, rel=1e-5)


def test_the_discrepancy_of_the_first_draws_is_that_of_a_shorter_run():
    x = np.random.default_rng(1).normal(size=(50, 2))
    whole = ksd_of_prefixes(Points(x, -x, np.arange(50) + 1), np.ones(2), np.array([20, 50]))
    part = ksd_of_prefixes(Points(x[:20], -x[:20], np.arange(20) + 1), np.ones(2), np.array([20]))
    assert whole[0] == pytest.approx(part[0], rel=1e-10)
    assert whole[1] != pytest.approx(part[0], rel=1e-2)


def test_without_a_reference_the_units_of_the_discrepancy_are_those_of_the_middle_run(table):
    alone = sg.compare(SAMPLERS, GAUSSIAN, budget=4000, seeds=2, metrics=["ksd"], **QUIET)
    sds = [trace.draws.reshape(-1, 2).std(axis=0) for trace in alone.traces.values()]
    assert alone.about["ksd_scale"] == pytest.approx(np.median(sds, axis=0), rel=1e-12)
    assert table.about["ksd_scale"] == pytest.approx(np.sqrt([1.0, 2.0]), rel=1e-12)
    assert list(alone.columns) == ["sampler", "seed", "status", "draws", "gradients", "seconds", "ksd"]


# ---- modes -----------------------------------------------------------------------------------------------------------


def test_masses_of_a_mixture_are_the_weights_and_a_wrong_sampler_is_off():
    model = sg.models.GaussianMixture([[-1.0], [1.0]], 0.8, [0.3, 0.7])  # they overlap
    rng = np.random.default_rng(1)
    right = np.where(rng.random((4, 20_000)) < 0.3, -1.0, 1.0) + 0.8 * rng.normal(size=(4, 20_000))
    modes = read_modes(None, model, 1, 1.0)
    found = visits(modes, right[:, :, None])
    assert found.modes == 2
    assert found.mode_error < 5.2 * 0.5 / np.sqrt(80_000)
    assert visits(modes, -right[:, :, None]).mode_error > 0.1
    assert read_modes(None, model, 1, 2.0).masses is None


def test_visits_count_modes_and_the_moves_between_them():
    x = np.array([[-9.0, -9.0, 9.0, -9.0], [0.0, 0.0, 0.0, 0.0]])[:, :, None]
    modes = read_modes([[-9.0], [0.0], [9.0], [20.0]], sg.models.Gaussian([0.0]), 1, 1.0)
    found = visits(modes, x)
    assert (found.modes, found.mode_changes) == (3, 2)
    assert np.isnan(found.mode_error)
    with pytest.raises(ValueError, match=r"modes has shape \(1, 1\); give at least two centres, \(modes, 1\)"):
        read_modes([[0.0]], sg.models.Gaussian([0.0]), 1, 1.0)


def test_the_wells_have_the_masses_and_moments_that_30_digits_give():
    wells, model = wells_at(1.0), sg.models.FiveWell()
    assert wells.masses == pytest.approx(model.MASSES, abs=1e-5)
    assert wells.mean == pytest.approx(model.MEAN, abs=1e-7)
    assert wells.sd**2 + wells.mean**2 == pytest.approx(model.SECOND_MOMENT, abs=1e-7)
    labels = read_modes(None, model, 1, 1.0).shares(np.array(model.WELLS)[:, None]).argmax(axis=-1)
    assert labels.tolist() == [0, 1, 2, 3, 4, 5]


# ---- the reference ---------------------------------------------------------------------------------------------------


def test_a_reference_is_a_trace_a_pair_or_exact():
    trace = sg.sample(GAUSSIAN, SAMPLERS["SGHMC"], draws=50, warmup=10, chains=2, seed=1, progress=False)
    flat = trace.draws.reshape(-1, 2)
    for given, mean, sd in [
        (trace, flat.mean(axis=0), flat.std(axis=0, ddof=1)),
        (([1.0, 2.0], 3.0), [1.0, 2.0], [3.0, 3.0]),
        ("exact", [1.0, -2.0], np.sqrt([1.0, 2.0])),
    ]:
        found = read_reference(given, GAUSSIAN, 2, 1.0)
        assert found.mean == pytest.approx(mean, rel=1e-12)
        assert found.sd == pytest.approx(sd, rel=1e-12)
    assert read_reference(None, GAUSSIAN, 2, 1.0) is None
    assert read_reference("exact", GAUSSIAN, 2, 4.0).sd == pytest.approx(2.0 * np.sqrt([1.0, 2.0]), rel=1e-12)


def test_exact_references_of_models_are_their_moments():
    X = np.random.default_rng(0).normal(size=(30, 2))
    regression = sg.models.LinearRegression(X, X @ [1.0, 2.0])
    mean, cov = regression.posterior()
    found = read_reference("exact", regression, 2, 1.0)
    assert np.array_equal(found.mean, mean)
    assert found.sd == pytest.approx(np.sqrt(np.diag(cov)), rel=1e-12)
    mixture = sg.models.GaussianMixture([[0.0], [2.0]], 1.0)
    assert read_reference("exact", mixture, 1, 1.0).sd[0] == pytest.approx(np.sqrt(2.0), rel=1e-12)


def test_errors_vanish_at_the_truth_and_are_in_its_units():
    x = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, -4.0], [0.0, 4.0]])[None]
    truth = Reference(np.zeros(2), x[0].std(axis=0, ddof=1))
    assert errors(x, truth) == (0.0, pytest.approx(0.0, abs=1e-15))
    shifted = Reference(np.array([0.0, truth.sd[1]]), truth.sd * np.array([1.0, 2.0]))
    assert errors(x, shifted) == (pytest.approx(0.5 / np.sqrt(2)), pytest.approx(0.5 / np.sqrt(2)))


# ---- the budget ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "gradients", "seconds"),
    [(1000, 1000, None), ("10 s", None, 10.0), ("1.5min", None, 90.0), (timedelta(seconds=2), None, 2.0)],
)
def test_a_budget_is_gradients_or_a_time(given, gradients, seconds):
    assert read_budget(given, 4) == (gradients, seconds)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            10.0,
            TypeError,
            r"budget=10.0 could be either; give a whole number of gradient evaluations \(100_000\), or a time",
        ),
        ("10", ValueError, "budget='10' is not understood"),
        ("ten s", ValueError, "is not understood"),
        ("1e s", ValueError, "is not understood"),
        ("0 s", ValueError, "budget='0 s' is "),
        (39, ValueError, "budget=39 is out of range; give a whole number of at least 40"),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        read_budget(given, 4)


def test_a_run_by_the_clock_takes_draws_until_its_time_is_over():
    found = sg.compare({"SGLD": sg.SGLD(0.1)}, GAUSSIAN, budget="0.3 s", seeds=1, metrics=["ess_bulk"], **QUIET)
    assert found["status"].tolist() == ["ok"]
    assert found["seconds"][0] > 0.2
    trace = found.traces["SGLD", 0]
    assert trace.draws.shape[0] * trace.draws.shape[1] == found["draws"][0] > 400
    assert found.history["seconds"].min() > 0.1 * 0.3  # a fifth of the time is warm-up


@pytest.mark.parametrize("speeds", [(1e5, 1e5), (1e5, 4e4), (4e4, 1e5)], ids=["steady", "slower later", "faster later"])
def test_the_clock_is_kept_whatever_the_speed_turns_out_to_be(monkeypatch, speeds):
    """With a stand-in for `sample` that takes the time it is told to: no machine is as steady."""
    steps_so_far = []

    def stand_in(model, sampler, *, progress, draws, warmup, thin=1, chains, **_):
        steps = chains * (warmup + draws * thin)
        speed = speeds[0] if sum(steps_so_far) < 1e5 else speeds[1]
        steps_so_far.append(steps)
        info = {"gradient_evaluations": steps, "seconds": steps / speed, "interrupted": False}
        final = {"step": np.full(chains, sum(steps_so_far) // chains)}
        return sg.Trace(np.zeros((chains, draws, 1)), info, np.ones(chains), np.ones(chains), final)

    monkeypatch.setattr(runs, "sample", stand_in)
    setting = runs.Setting(GAUSSIAN, read_budget("10 s", 4), 4, 1000, 0.2, {})
    outcome = runs.run_task(runs.Task("SGLD", sg.SGLD(0.1), 0), setting)
    assert outcome.status == "ok"
    assert outcome.seconds == pytest.approx(10.0, rel=0.06)
    assert outcome.gradients == sum(steps_so_far)
    assert 1.5 < outcome.warm_seconds < 5.0
    assert 300 < outcome.trace.n_draws < 2500


def test_a_schedule_with_phases_does_not_overdraw():
    cyclical = sg.SGLD(sg.schedules.Cyclical(0.2, 100))
    found = sg.compare({"cyclical": cyclical}, GAUSSIAN, budget=8000, seeds=1, metrics=["ess_bulk"], **QUIET)
    assert 6000 <= found["gradients"][0] <= 8000


# ---- what goes wrong -------------------------------------------------------------------------------------------------


def test_a_sampler_that_diverges_has_a_row_that_says_so():
    wild = {"wild": sg.SGLD(50.0, integrator=sg.integrators.Euler()), **SAMPLERS}
    found = sg.compare(wild, GAUSSIAN, budget=8000, reference="exact", seeds=2, **QUIET)
    assert found["status"][0].startswith("diverged in step ")
    assert found["status"][2:].tolist() == ["ok"] * 4
    assert np.isnan(found["ksd"][:2]).all()
    assert np.isnan(found["ess_per_second"][:2]).all()
    assert np.isfinite(found["ksd"][2:]).all()
    assert set(found.history["sampler"]) == set(SAMPLERS)


def test_a_gradient_that_fails_in_the_middle_has_a_row_that_says_so():
    calls = []

    def gradient(theta):
        calls.append(1)
        if len(calls) > 500:
            raise RuntimeError("out of paper")
        return theta

    found = sg.compare({"SGLD": sg.SGLD(0.1)}, sg.Potential(gradient, dim=1), budget=4000, seeds=1, **QUIET)
    assert found["status"].tolist() == ["failed: RuntimeError: out of paper"]


def pressing_ctrl_c(call):
    """A gradient during whose so many-th call somebody presses Ctrl-C."""
    main, calls = threading.main_thread().ident, []

    def gradient(theta):
        calls.append(1)
        if len(calls) == call + made:
            signal.pthread_kill(main, signal.SIGINT)
        time.sleep(1e-4)
        return theta

    made = 10**9  # those that the potential makes to look at it do not count
    found = sg.Potential(gradient, dim=1)
    made = len(calls)
    return found


@pytest.fixture
def _heard():
    """Ctrl-C is heard, also where the tests run in the background of a shell, which has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_heard")
def test_ctrl_c_returns_what_there_is():
    options = {"draws": 10**6, "warmup": 0.0, "chains": 1}
    begin = time.perf_counter()
    found = sg.compare({"SGLD": sg.SGLD(0.1)}, pressing_ctrl_c(2000), budget=10_000_000, seeds=3, **options, **QUIET)
    assert time.perf_counter() - begin < 60.0  # the whole would take more than 1000
    assert found.about["interrupted"]
    assert found["status"].tolist() == ["interrupted"]
    assert found["draws"][0] > 100
    assert np.isfinite(found["ksd"][0])


@pytest.mark.usefixtures("_heard")
def test_ctrl_c_before_the_first_run_has_begun_is_not_lost():
    model = pressing_ctrl_c(1)
    with pytest.raises(KeyboardInterrupt):
        sg.compare({"SGLD": sg.SGLD(0.1)}, model, budget=10_000_000, seeds=3, **QUIET)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"samplers": {}}, TypeError, "samplers={} is not a dictionary of samplers"),
        ({"samplers": {"a": 3}}, TypeError, r"samplers\['a'\]=3 is not a Sampler"),
        ({"samplers": {"a": sg.SGLD(0.1, scale=[1.0])}}, ValueError, r"samplers\['a'\]: scale has shape \(1,\)"),
        ({"seeds": 0}, ValueError, "seeds=0 is out of range"),
        ({"seeds": [1, 1]}, ValueError, "must be different numbers"),
        ({"metrics": "ksd"}, TypeError, "metrics='ksd' is not a list"),
        ({"metrics": ["speed"]}, ValueError, "metrics has 'speed', which is unknown; choose from ess_bulk"),
        ({"metrics": ["error_mean"]}, ValueError, "which cannot be computed here; give reference="),
        ({"metrics": ["modes"]}, ValueError, "take a model whose modes are known, or give modes="),
        ({"reference": 3}, TypeError, r"reference is a int; give a Trace, a pair \(mean, sd\)"),
        ({"reference": ([0.0] * 3, 1.0)}, ValueError, r"reference mean has shape \(3,\); give \(2,\)"),
        ({"reference": (0.0, 0.0)}, ValueError, "reference sd goes down to 0"),
        ({"reference": "best"}, ValueError, "reference='best' is unknown"),
        ({"warmup": 1.0}, ValueError, "warmup=1.0 is out of range"),
        ({"temperature": 0.0}, ValueError, "temperature=0.0 is out of range"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_runs(arguments, error, message):
    with pytest.raises(error, match=message):
        sg.compare(**({"samplers": SAMPLERS, "model": GAUSSIAN} | arguments), **QUIET)


def test_exact_moments_that_nobody_knows_are_refused():
    with pytest.raises(ValueError, match="reference='exact' is not known for Potential"):
        sg.compare(SAMPLERS, sg.Potential(lambda theta: theta, dim=2), reference="exact", **QUIET)


# ---- where it runs ---------------------------------------------------------------------------------------------------


def test_threads_and_executors_give_the_same_draws(table):
    short = {"budget": 4000, "seeds": [3, 5], "metrics": ["ess_bulk"], "progress": False}
    expected = sg.compare(SAMPLERS, GAUSSIAN, threads=1, **short)
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(1) as processes:
        for executor in (None, threads, processes):
            found = sg.compare(SAMPLERS, GAUSSIAN, executor=executor, **short)
            assert found["sampler"].tolist() == expected["sampler"].tolist()
            assert all(np.array_equal(found.traces[k].draws, t.draws) for k, t in expected.traces.items())


def test_own_metrics_are_columns():
    def largest(trace):
        return trace.draws.max()

    found = sg.compare(SAMPLERS, GAUSSIAN, budget=800, seeds=1, metrics=["r_hat", largest], **QUIET)
    assert list(found.columns[-2:]) == ["r_hat", "largest"]
    assert found["largest"][0] == found.traces["SGLD", 0].draws.max()


# ---- the picture -----------------------------------------------------------------------------------------------------


def test_the_history_ends_with_the_numbers_of_the_table(table):
    last = table.history.groupby(["sampler", "seed"], sort=False).last().reset_index()
    for name in ("error_mean", "error_sd", "ksd", "gradients", "seconds"):
        assert last[name].to_numpy() == pytest.approx(table[name].to_numpy(), rel=1e-9), name
    one = table.history[(table.history["sampler"] == "SGLD") & (table.history["seed"] == 3)].iloc[10]
    end = round((one["gradients"] - 8000) / 32)
    x = table.traces["SGLD", 3].draws[:, :end].reshape(-1, 2)
    expected = np.linalg.norm((x.mean(axis=0) - [1.0, -2.0]) / np.sqrt([1.0, 2.0])) / np.sqrt(2)
    assert one["error_mean"] == pytest.approx(expected, rel=1e-9)


def test_the_picture_shows_a_strong_line_per_sampler_and_thin_ones_for_seeds(table):
    import matplotlib.pyplot as plt

    axis = table.plot()
    assert [line.get_label() for line in axis.lines if line.get_label() in SAMPLERS] == list(SAMPLERS)
    assert len(axis.lines) == 6
    assert axis.get_title(loc="left") == "Error of the mean against time"
    assert axis.get_xlabel() == "seconds of sampling, warm-up included"
    other = table.plot("ksd", x="gradients", ax=plt.figure().gca())
    assert other.get_title(loc="left") == "Kernel Stein discrepancy against gradients"
    with pytest.raises(ValueError, match="y='speed' is unknown; choose one of 'error_mean', 'error_sd', 'ksd'"):
        table.plot("speed")
    bare = sg.compare(SAMPLERS, GAUSSIAN, budget=800, seeds=1, metrics=["r_hat"], **QUIET)
    with pytest.raises(ValueError, match="there is no accuracy to draw"):
        bare.plot()
    plt.close("all")


def test_what_pandas_makes_of_the_table_is_an_ordinary_frame(table):
    assert type(table[table["seed"] == 3]) is pd.DataFrame
    assert table.groupby("sampler")["ksd"].median().shape == (2,)
    again = pickle.loads(pickle.dumps(table))
    assert again.equals(table)
    assert again.history.equals(table.history)
