"""Resampling of p and ξ changes neither the law nor the order in h; a resampling that is slightly wrong is seen."""

from __future__ import annotations

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.integrators import BAOAB, Euler, SymmetricSplitting
from sgmcmc.testing.lyapunov import stationary_covariance
from sgmcmc.testing.resampling import check_resampling, findings, mean_variance, resampled_bias, resampled_order
from sgmcmc.testing.under_test import Kernel, standard_subjects


class WrongDraws(Kernel):
    """Every fresh p, or every fresh ξ − μ, is 5 % too large: what a forgotten temperature does, on a small scale."""

    variable = "p"

    def move(self, state, gradient, noise, before, h, step=1, seed=0):
        after = super().move(state, gradient, noise, before, h, step, seed)
        period = getattr(self.sampler, "resample_momentum" if self.variable == "p" else "resample_thermostat")
        if period is not None and (step + 1) % period == 0:
            if self.variable == "p":
                after.p[:] *= 1.05
            else:
                after.xi[:] = self.sampler.sigma_p + 1.05 * (after.xi - self.sampler.sigma_p)
        return after

    def with_(self, **changes):
        return type(self)(super().with_(**changes).sampler, self.name)


class WrongThermostat(WrongDraws):
    variable = "xi"


class Forgetful(Kernel):
    """Keeps a tenth of the old momentum."""

    def move(self, state, gradient, noise, before, h, step=1, seed=0):
        after = super().move(state, gradient, noise, before, h, step, seed)
        after.p[:] = np.sqrt(1.0 - 0.01) * after.p + 0.1 * state.p / 2.0  # the check starts p at twice a normal
        return after

    def with_(self, **changes):
        return Forgetful(super().with_(**changes).sampler, self.name)


def test_the_standard_findings_pass():
    assert [f for f in findings("quick") if not f.passed] == []


@pytest.mark.parametrize("wrong", [WrongDraws, WrongThermostat])
@pytest.mark.parametrize("name", ["SGNHT", "SGMGT, a = 1", "SGMGT-D, a = 2"])
def test_draws_that_are_off_by_five_per_cent_are_rejected(wrong, name):
    right = standard_subjects(0.1, 2.0)[name]
    assert not check_resampling(wrong(right.sampler, right.name)).passed


def test_a_draw_that_remembers_the_old_momentum_is_rejected():
    right = standard_subjects()["SGHMC"]
    report = check_resampling(Forgetful(right.sampler, right.name))
    assert "resampling, independence" in {f.check for f in report.failures}
    assert check_resampling(right).passed


@pytest.mark.parametrize("period", [1, 10, 100])
def test_orders_are_those_without_resampling(period):
    assert resampled_order(SymmetricSplitting(), period, 0.5, fixed_time=period > 1)[0] > 1.95
    assert resampled_order(BAOAB(), period, 0.5, fixed_time=period > 1)[0] > 1.95


def test_euler_keeps_its_order_for_a_period_of_time_but_not_for_one_of_steps():
    assert abs(resampled_order(Euler(), 100, 0.5, fixed_time=True)[0] - 1.0) < 0.1
    for period in (5, 10, 50):
        assert resampled_bias(Euler(), 1e-4, period, 0.5) == pytest.approx(1.0 / (period - 1), rel=0.05)
    # With a fresh momentum in every step the gradient never moves θ.
    subject = Kernel(sg.Sampler(0.1, integrator=Euler(), resample_momentum=1))
    state = subject.start(np.zeros((1, 1)), np.ones((1, 1)))
    zero = subject.draw_noise(state, 0, 0)
    pushed = [subject.move(state, np.full((1, 1), g), zero, 0.1, 0.1, 0, 0) for g in (0.0, 1e6)]
    assert pushed[0].theta == pushed[1].theta
    assert pushed[0].p == pushed[1].p


def test_a_period_that_never_ends_has_the_variance_without_resampling():
    sampler = sg.SGHMC(0.1, 1.5, temperature=2.0, integrator=SymmetricSplitting())
    assert mean_variance(sampler, 20_000) == pytest.approx(stationary_covariance(sampler)[0, 0], rel=1e-5)
