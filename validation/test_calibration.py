"""Simulation-based calibration and Geweke's test: right posteriors pass, wrong weights and temperatures do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

import sgmcmc as sg
from sgmcmc.dispatch import implements
from sgmcmc.models.predictor import LinearPredictor, loss_slope
from sgmcmc.priors import Gaussian
from sgmcmc.testing import calibration
from sgmcmc.testing.problems import linear, logistic, softmax, tamper


class Underweighted(
    NamedTuple("Underweighted", [("X", Any), ("y", Any), ("prior", Any), ("weight", float)]), LinearPredictor
):
    """A logistic regression whose likelihood is weighted: 1 is right, n/N is what a forgotten N/n leaves of it."""

    __slots__ = ()


@implements(loss_slope, Underweighted)
def _(model, z, i):
    return model.weight * (1.0 / (1.0 + np.exp(-z)) - model.y[i])


def weighted(weight):
    return tamper(logistic(), lambda m: Underweighted(m.X, m.y, m.prior, weight), f"weight {weight:g}")


@pytest.mark.parametrize("temperature", [1, 2])
def test_the_problems_posterior_is_that_of_the_model_at_its_temperature(temperature):
    rng = np.random.default_rng(0)
    problem = linear(temperature)
    model = problem.simulate(problem.prior(rng), rng)
    mean, covariance = model.posterior()
    wanted = problem.posterior(model)
    assert np.allclose(mean, wanted[0], rtol=1e-12)
    assert np.allclose(temperature * covariance, wanted[1], rtol=1e-12)


@pytest.mark.parametrize("make", [linear, logistic, softmax])
def test_at_temperature_two_the_energy_is_twice_that_at_one(make):
    cool, hot = (make(t) for t in (1, 2))
    theta = cool.prior(np.random.default_rng(3))
    models = [p.simulate(theta, np.random.default_rng(4)) for p in (cool, hot)]
    assert np.allclose(2.0 * models[0].gradient(theta), models[1].gradient(theta), rtol=1e-12)


def test_the_draws_are_those_of_sample():
    rng = np.random.default_rng(1)
    problem = linear()
    theta = problem.prior(rng)
    model = problem.simulate(theta, rng)
    run = calibration._runner(sg.SGHMC(0.1), 20, 3, 5, 4)
    trace = sg.sample(
        model, sg.SGHMC(0.1), 5, warmup=20, thin=3, chains=3, batch_size=4, seed=9, init=theta, progress=False
    )
    assert np.array_equal(run(model, theta, 9, 2), trace.draws[2])


def test_ranks_and_moments_of_exact_draws_pass(monkeypatch):
    """The arithmetic of ranks, with exact posterior draws in the place of a sampler's."""
    problem = linear()

    def exact(*_):
        def run(model, theta, seed, k):
            mean, covariance = problem.posterior(model)
            return np.random.default_rng((seed, k, 7)).multivariate_normal(mean, covariance, calibration.DRAWS)

        return run

    monkeypatch.setattr(calibration, "_runner", exact)
    result = calibration.sbc(problem, sg.SGHMC(0.1), 1500, seed=2)
    for column in result.ranks[0].T:
        assert chisquare(np.bincount(column, minlength=16)).pvalue > 1e-4
    assert kstest(result.whitened[0].ravel()[::7], "norm").pvalue > 1e-4


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("shared", [False, True])
def test_p_values_of_flat_histograms_are_uniform(order, shared):
    rng, p = np.random.default_rng(0), []
    for _ in range(2000):
        u = rng.random((2, 200)) if not shared else np.broadcast_to(rng.random(200), (2, 200))
        p.append(calibration._uniformity(rng.binomial(15, u)[:, :, None], order))
    assert np.mean(np.array(p) < 0.01) < 0.02
    assert 0.4 < np.mean(p) < 0.6
    assert min(p) > 1e-5


def test_extrapolation_takes_the_error_of_its_order_away():
    for order in (1, 2):
        values = np.array([[[3.0 + 5.0 * h**order]] for h in (0.2, 0.1)])
        assert calibration._extrapolated(values, order)[0, 0] == pytest.approx(3.0, rel=1e-12)


def test_a_minibatch_bias_is_seen_at_h_and_gone_in_the_limit():
    report = calibration.check_calibration(linear(), sg.SGHMC(0.05), datasets=300, batch_size=4, seed=5, time=5.0)
    assert report.passed, report
    exact = next(f for f in report if f.check.startswith("exact"))
    at_h = float(exact.detail.split("z at h ")[1].split(",")[0])
    assert at_h > 8.0


@pytest.mark.parametrize("seed", [11, 12])
def test_the_sampler_at_a_temperature_above_one_is_calibrated(seed):
    report = calibration.check_calibration(linear(2), sg.SGHMC(0.1, temperature=2.0), datasets=200, seed=seed, time=5.0)
    assert report.passed, report


FAULTS = {
    "prior scaled by N/n = 4": (lambda: tamper(linear(), lambda m: m._replace(prior=Gaussian(0.5)), ""), 1.0, "ranks"),
    "N/n = 4 forgotten": (lambda: tamper(linear(), lambda m: m._replace(noise=2.0), ""), 1.0, "exact posterior"),
    "temperature 1.2": (linear, 1.2, "exact posterior"),
    "temperature ignored": (lambda: linear(2), 1.0, "exact posterior"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_posterior_is_rejected_by_name(fault):
    make, temperature, check = FAULTS[fault]
    sampler = replace(sg.SGHMC(0.1), temperature=temperature)
    report = calibration.check_calibration(make(), sampler, datasets=400, seed=21, time=5.0)
    assert any(f.check.startswith(check) for f in report.failures), list(report)


def test_ranks_of_parameters_alone_are_blind_to_a_sampler_that_ignores_the_data_and_the_loss_is_not():
    result = calibration.sbc(weighted(0.0), sg.SGHMC(0.1), 400, seed=6, time=5.0)
    p = [chisquare(np.bincount(column, minlength=16)).pvalue for column in result.ranks[1].T]
    assert min(p[:-1]) > 1e-3
    assert p[-1] < 1e-20


def test_a_forgotten_weight_of_logistic_regression_is_rejected_by_ranks_and_by_gewekes_test():
    right = calibration.check_calibration(weighted(1.0), sg.SGHMC(0.1), datasets=600, seed=4, time=5.0)
    wrong = calibration.check_calibration(weighted(0.25), sg.SGHMC(0.1), datasets=600, seed=4, time=5.0)
    assert right.passed, right
    assert any("ranks" in f.check for f in wrong.failures), list(wrong)
    assert any("Geweke" in f.check for f in wrong.failures), list(wrong)


def test_the_standard_evidence_passes():
    found = list(calibration.findings("quick", 3))
    assert len(found) >= 15
    assert [f for f in found if not f.passed] == []


def test_the_figure_has_one_histogram_per_regression():
    import matplotlib

    matplotlib.use("Agg")
    axes = calibration.figure(datasets=50)
    assert [a.get_title() for a in axes] == ["linear regression", "logistic regression", "softmax regression"]
