"""Rates of Proposition 2, and samplers whose rates are not what they claim."""

from __future__ import annotations

import numpy as np
import pytest

from sgmcmc.integrators import State
from sgmcmc.samplers.presets import SGMGTD, SGNHT
from sgmcmc.testing import rates
from sgmcmc.testing.averages import coupled_averages, time_averages
from sgmcmc.testing.report import Report
from sgmcmc.testing.targets import GAUSSIAN, QUARTIC
from sgmcmc.testing.under_test import Kernel, standard_subjects

TOLERANCE = rates.TOLERANCES["bias in h"]


def test_quick_findings_pass():
    report = Report("rates", rates.findings("quick"))
    assert report.passed, report


@pytest.mark.slow
def test_full_findings_pass():
    report = Report("rates", rates.findings("full"))
    assert report.passed, report


class Frozen(Kernel):
    """The obvious splitting: the gradient is taken, and the draw recorded, before the noise of θ rather than halfway."""

    def move(self, state, gradient, noise, before, h, step=1, seed=0):
        halfway = state._replace(theta=state.theta + state.pending)
        after = super().move(halfway, gradient, noise, before, h, step, seed)
        return after._replace(theta=after.theta - after.pending)


def diffusive(kind, temperature=1.0):
    sampler = SGMGTD(
        0.1,
        sigma_theta=0.5,
        resample_momentum=None,
        resample_thermostat=None,
        center="fixed",
        temperature=temperature,
    )
    return kind(sampler)


def order_finding(subject, h, copies=8192, time=40.0):
    found = coupled_averages(subject, QUARTIC, h, 3, time, copies, seed=5)
    return rates.judge("order", subject.name, found.order(), 2.0, TOLERANCE)


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_a_frozen_gradient_is_seen_to_be_of_first_order(temperature):
    finding = order_finding(diffusive(Frozen, temperature), 0.2)
    assert not finding.passed
    assert finding.figure < 1.5, finding


@pytest.mark.slow
def test_the_gradient_halfway_through_the_noise_is_of_second_order():
    finding = order_finding(diffusive(Kernel, 0.5), 0.35, copies=65536, time=60.0)
    assert finding.passed, finding


def test_an_exponent_that_is_hardly_known_does_not_pass():
    finding = order_finding(standard_subjects()["SGLD"], 0.1, copies=64, time=6.0)
    assert not finding.passed


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_a_wrong_temperature_shows_in_the_limit_of_small_steps(temperature):
    """The order alone would not see it."""
    right = standard_subjects(0.1, temperature)["SGHMC"]

    class Hot(Kernel):
        def move(self, state, gradient, noise, before, h, step=1, seed=0):
            louder = noise._replace(p=1.05 * noise.p)
            return super().move(state, gradient, louder, before, h, step, seed)

    options = {"h": 0.3, "levels": 2, "time": 40.0, "copies": 4096, "seed": 3}
    assert abs(coupled_averages(right, QUARTIC, **options).limit_z(2)) < 4.0
    assert abs(coupled_averages(Hot(right.sampler), QUARTIC, **options).limit_z(2)) > 6.0


def test_euler_with_the_step_sizes_of_a_second_order_scheme_falls_short_of_its_rate():
    best = rates.best_rates(standard_subjects(euler=True)["SGLD, Euler"], QUARTIC, 0.1, 2, copies=4096, seed=2)
    bias, _ = best.exponents()
    assert not rates.judge("", "", bias, -2 / 3, rates.TOLERANCES["bias in T, best h"]).passed
    assert bias.high < 0.0
    assert bias.value > -0.5, bias  # T^{−1/3}, as h falls


def test_coupled_paths_are_the_paths_of_each_step_size():
    """The sums of normals are normals: the coarsest level has the law of a run of its own."""
    subject = standard_subjects()["SGHMC"]
    found = coupled_averages(subject, GAUSSIAN, 0.2, 3, 30.0, 8192, seed=4)
    z = found.errors.mean(axis=1) / (found.errors.std(axis=1) / np.sqrt(8192))
    assert np.abs(z).max() < 4.0  # BAOAB is exact for θ here, at every step size
    scatter = found.differences.std(axis=1) / found.errors[:-1].std(axis=1)
    assert scatter.max() < 0.2


def test_copies_with_one_thermostat_each_stay_apart():
    """A thermostat per chain may not be shared by the copies."""
    shared = Kernel(SGNHT(0.1, per="chain"))
    own = Kernel(SGNHT(0.1))
    one, two = (time_averages(s, GAUSSIAN, 0.1, [50], 64, seed=1) for s in (shared, own))
    assert one.shape == two.shape == (1, 64)
    assert np.isfinite(one).all()
    assert isinstance(shared.start(np.zeros((3, 1))), State)
    assert one.std() == pytest.approx(two.std(), rel=0.5)


def test_the_figure_has_a_curve_for_every_measurement():
    from matplotlib.figure import Figure

    subject = standard_subjects(euler=True)["SGLD, Euler"]
    measured = rates.measure_rates(subject, QUARTIC, 1, h=0.1, time=6.0, copies=128, best_copies=64, run=5.0)
    canvas = Figure()
    axes = canvas.subplots(2, 2)
    rates.figure(axes, [measured])
    assert [len(ax.lines) for ax in axes.flat] == [2, 2, 2, 4]
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in axes.flat)


def test_fresh_frictions_without_noise_of_their_own_are_not_coupled():
    """Their normals are drawn at their turn only: summed over finer steps they gave E cos θ off by 0.01 at h = 0.1."""
    subject = standard_subjects()["SGMGT, a = 1"].with_(resample_thermostat=20)
    with pytest.raises(ValueError, match="cannot be coupled"):
        coupled_averages(subject, QUARTIC, 0.2, 2, 10.0, 64)
