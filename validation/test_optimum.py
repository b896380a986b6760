"""The best step size by exact computation: against a chain that can be solved by hand, and wrong claims that are refuted."""

from __future__ import annotations

import numpy as np
import pytest

from sgmcmc.evidence.validation import optimum
from sgmcmc.testing.averages import time_averages
from sgmcmc.testing.report import Report
from sgmcmc.testing.targets import GAUSSIAN, QUARTIC, SKEW
from sgmcmc.testing.under_test import standard_subjects


@pytest.fixture(scope="module")
def first_order():
    return optimum.QUICK[0].measure()


def test_quick_findings_pass():
    report = Report("best step", optimum.findings("quick"))
    assert report.passed, report


@pytest.mark.slow
def test_full_findings_pass():
    report = Report("best step", optimum.findings("full"))
    assert report.passed, report


@pytest.mark.parametrize("start", [0.0, 1.5])
def test_errors_of_an_autoregression(start):
    """Euler on a Gaussian: θ' = (1 − h) θ + √(2h) z, so E cos θ_t and E[cos θ_s cos θ_t] have closed forms."""
    h, steps = 0.1, 16
    subject = standard_subjects(h, 1.0, euler=True)["SGLD, Euler"]
    (found, _) = optimum.errors_of_runs(subject, GAUSSIAN, h, 4, [start], nodes=64)
    a, t = 1.0 - h, np.arange(1, steps + 1)
    mean = start * a**t
    var = 2.0 * h * (1.0 - a ** (2 * t)) / (1.0 - a**2)
    covariance = a ** np.abs(t[:, None] - t) * np.minimum(var[:, None], var)
    truth = np.exp(-0.5)
    bias = (np.cos(mean) * np.exp(-0.5 * var)).mean() - truth
    both = [
        0.5 * np.cos(mean[:, None] + s * mean) * np.exp(-0.5 * (var[:, None] + var) - s * covariance) for s in (1, -1)
    ]
    second = sum(both).mean()
    mse = second - 2.0 * truth * (bias + truth) + truth**2
    assert found.bias[-1, 0] == pytest.approx(bias, rel=1e-8)
    assert found.mse[-1, 0] == pytest.approx(mse, rel=1e-8)


@pytest.mark.parametrize("name", ["SGLD", "SGHMC"])
def test_errors_agree_with_runs(name):
    """Of the real kernel: bias and MSE of 20,000 runs of 64 steps from a fixed start."""
    h, copies = 0.2, 20_000
    subject = standard_subjects()[name]
    law = SKEW.law()
    far = float(max(law.quantile([0.01, 0.99]), key=abs))
    runs = time_averages(subject, SKEW, h, [64], copies, seed=3)[0]
    found, _ = optimum.errors_of_runs(subject, SKEW, h, 6, [far], nodes=24 if name == "SGHMC" else 48)
    # The runs count the start half, have fresh momenta where the computation is at rest, and open with half a kick: all of
    # that moves the mean by a few h/(Th), which the tolerance covers; the scatter is the same.
    spread = found.mse[-1, 0] - found.bias[-1, 0] ** 2
    assert runs.var() == pytest.approx(spread, rel=0.1)
    assert runs.mean() == pytest.approx(found.bias[-1, 0], abs=0.25 * abs(found.bias[-1, 0]))


def test_the_wrong_order_is_refuted(first_order):
    wrong = first_order._replace(order=2)
    for what, (slope, expected) in wrong.exponents().items():
        assert abs(slope - expected) > optimum.TOLERANCE * max(1.0, expected), what


def test_a_biased_sampler_has_no_best_step():
    """Noise that is 5 % too large leaves a bias however small h is: MSE for T → ∞ is no power of h."""

    class Hot(type(standard_subjects()["SGLD"])):
        def move(self, state, gradient, noise, before, h, step=1, seed=0):
            louder = noise._replace(theta=1.05 * noise.theta)
            return super().move(state, gradient, louder, before, h, step, seed)

    subject = Hot(standard_subjects(0.1, 1.0, euler=True)["SGLD, Euler"].sampler, "hot")
    found = optimum.measure_optimum(subject, QUARTIC, 1, list(np.geomspace(0.001, 0.1, 12)), 16)
    assert abs(found.exponents()["MSE in h, T → ∞"][0] - 2.0) > 0.5


def test_a_thermostat_is_refused():
    with pytest.raises(ValueError, match="thermostat"):
        optimum.errors_of_runs(standard_subjects()["SGNHT"], QUARTIC, 0.1, 4, [0.0])
