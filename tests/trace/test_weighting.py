"""Averages weighted by the step size: right where steps decrease, the same as plain ones where they do not."""

from __future__ import annotations

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.diagnostics import mcse
from sgmcmc.schedules import Cyclical, PolynomialDecay

QUIET = {"progress": False, "warn": False, "seed": 1}
SLOW = sg.models.Gaussian(np.zeros(2), 1.0)


def decaying(**more):
    return sg.sample(SLOW, sg.SGLD(PolynomialDecay(0.2, 1.0, 50.0)), **({"draws": 500, "warmup": 20} | QUIET | more))


@pytest.mark.parametrize("schedule", [PolynomialDecay(0.2), Cyclical(0.2, 20), lambda t: 0.1 / (1 + t)])
def test_weights_are_the_step_sizes_of_the_draws(schedule):
    trace = sg.sample(SLOW, sg.SGLD(schedule), 30, warmup=7, thin=2, **QUIET)
    steps = sg.SGLD(schedule).schedule.step_sizes(np.arange(400))
    kept = np.flatnonzero(np.ones(400, bool))[7:]
    if isinstance(schedule, Cyclical):
        kept = kept[schedule.is_sampling(kept)]
    np.testing.assert_array_equal(trace.weights, steps[kept[1::2][:30]])


def test_a_constant_step_gives_equal_weights_and_the_plain_average():
    trace = sg.sample(SLOW, sg.SGLD(0.1), 50, **QUIET)
    np.testing.assert_array_equal(trace.weights, np.full(50, 0.1))
    np.testing.assert_allclose(trace.expectation(), trace.draws.mean(axis=(0, 1)), rtol=1e-12)
    plain, weighted = trace.summary(), trace.summary(weighted=True)
    np.testing.assert_allclose(weighted["weighted_mean"], plain["mean"], rtol=1e-9)
    np.testing.assert_allclose(weighted["weighted_mcse"], plain["mcse"], rtol=0.02)
    np.testing.assert_allclose(weighted["weighted_sd"], plain["sd"], rtol=0.02)
    np.testing.assert_allclose(weighted["weighted_hdi_low"], plain["hdi_low"], rtol=0.05)


def test_with_decreasing_steps_the_weighted_mean_is_the_average_over_time_and_the_plain_one_is_off():
    # Chains start at 3 and relax: E[θ] = 3 exp(−t) at the time t = Σ h. The average over time is known, and equal weights give
    # another number, as most draws are of short steps at the end.
    h = PolynomialDecay(0.05, 1.0, 20.0).step_sizes(np.arange(1000))
    trace = sg.sample(
        SLOW, sg.SGLD(PolynomialDecay(0.05, 1.0, 20.0)), 1000, warmup=0, chains=400, init=np.full(2, 3.0), **QUIET
    )
    over_time = np.sum(h * 3.0 * np.exp(-np.cumsum(h))) / h.sum()
    error = np.tensordot(h / h.sum(), trace.draws, axes=(0, 1)).std(axis=0) / np.sqrt(400)
    assert (np.abs(trace.expectation() - over_time) < 4.5 * error).all()
    assert (np.abs(trace.expectation(weighted=False) - over_time) > 10.0 * error).all()


def test_of_chains_at_rest_the_weighted_mean_has_the_stated_error_and_the_plain_one_a_larger_one():
    schedule = PolynomialDecay(0.3, 1.0, 100.0)
    trace = sg.sample(SLOW, sg.SGLD(schedule), 20_000, warmup=20, chains=40, **QUIET)
    w = trace.weights / trace.weights.sum()
    weighted, plain = np.tensordot(w, trace.draws, axes=(0, 1)), trace.draws.mean(axis=1)
    assert np.abs(weighted.mean()) < 4.5 * weighted.std() / np.sqrt(weighted.size)
    assert plain.std() > 1.7 * weighted.std()
    stated = trace.summary(weighted=True)["weighted_mcse"].mean()
    assert 0.7 < stated * np.sqrt(40) / weighted.std() < 1.4


def test_a_function_may_give_numbers_or_arrays_and_is_averaged_over_chains_and_draws():
    trace = decaying()
    w = trace.weights / trace.weights.sum()
    by_hand = sum(w[i] * trace.draws[c, i, 0] ** 2 for c in range(4) for i in range(500)) / 4
    assert trace.expectation(lambda theta: theta[0] ** 2) == pytest.approx(by_hand, rel=1e-12)
    assert isinstance(trace.expectation(lambda theta: theta[0]), float)
    assert trace.expectation(lambda theta: np.outer(theta, theta)).shape == (2, 2)
    with pytest.raises(TypeError, match="function=3 is not a function of theta"):
        trace.expectation(3)


def test_the_weighted_interval_is_the_shortest_with_its_share_of_the_weight():
    x = np.linspace(0.0, 1.0, 101)
    draws = np.random.default_rng(0).permutation(x)
    trace = sg.Trace(draws[None, :, None], {}, np.ones(1), np.ones(1), {}, weights=np.where(draws < 0.5, 3.0, 1.0))
    row = trace.summary(hdi_prob=0.6, weighted=True).iloc[0]
    inside = (draws >= row["weighted_hdi_low"]) & (draws <= row["weighted_hdi_high"])
    assert abs(trace.weights[inside].sum() / trace.weights.sum() - 0.6) < 0.02
    assert row["weighted_hdi_high"] < 0.5  # 0.6 of all the weight is in 0.4 of the lower half and more
    assert row["weighted_mean"] < 0.4 < trace.summary().iloc[0]["mean"]


def test_weights_are_saved_cut_and_checked(tmp_path):
    trace = decaying()
    trace.save(tmp_path / "run.npz")
    loaded = sg.Trace.load(tmp_path / "run.npz")
    np.testing.assert_array_equal(loaded.weights, trace.weights)
    np.testing.assert_array_equal(loaded.by_coordinate.values, trace.by_coordinate.values)
    constant = sg.sample(SLOW, sg.SGLD(0.1), 20, **QUIET)
    constant.save(tmp_path / "constant.npz")
    np.testing.assert_array_equal(sg.Trace.load(tmp_path / "constant.npz").weights, constant.weights)
    for bad in (np.ones(3), np.full(500, -1.0), np.full(500, np.nan)):
        with pytest.raises(ValueError, match="are no step sizes of 500 draws"):
            sg.Trace(trace.draws, {}, np.ones(4), np.ones(4), {}, weights=bad)
    nothing = sg.Trace(trace.draws, {}, np.ones(4), np.ones(4), {}, weights=np.zeros(500))
    with pytest.raises(ValueError, match="add up to 0"):
        nothing.expectation()


def test_a_trace_of_an_older_version_has_equal_weights(tmp_path):
    from sgmcmc.trace import archive

    trace = decaying()
    trace.save(tmp_path / "run.npz")
    arrays, header = archive.read(tmp_path / "run.npz", "sgmcmc.trace", 1, "a trace")
    old = {name: a for name, a in arrays.items() if not name.startswith(("weights", "by_coordinate", "header"))}
    archive.write(tmp_path / "old.npz", header, old)
    loaded = sg.Trace.load(tmp_path / "old.npz")
    np.testing.assert_array_equal(loaded.weights, np.ones(500))
    assert loaded.by_coordinate is None
    assert loaded.bias_report()["configurational"].verdict in ("good", "not resolved", "hot", "cold")
    assert mcse(loaded.draws[:, :, 0]) > 0
