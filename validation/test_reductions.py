"""Reductions: samplers that are the same, trajectory by trajectory, and limits with the rate at which they are reached."""

from __future__ import annotations

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.evidence.validation.reductions import (
    check_equal,
    equal_pairs,
    findings,
    law_gap,
    overdamped_gap,
    rate,
    trajectory_gap,
)
from sgmcmc.integrators import Euler
from sgmcmc.kinetics import MonomialGamma
from sgmcmc.testing.lyapunov import stationary_covariance


def test_the_standard_findings_pass():
    assert [f for f in findings("quick") if not f.passed] == []


@pytest.mark.parametrize("name", list(equal_pairs()))
def test_a_reduction_with_the_friction_off_by_one_per_cent_is_not_one(name):
    one, two = equal_pairs(off=1.01, T=2.0)[name]
    assert trajectory_gap(one, two) > 1e-4
    assert not check_equal(one, two).passed


def test_the_overdamped_limit_is_not_the_textbook_sgld():
    assert overdamped_gap(150.0) < 1e-11
    # In law too: at h = 0.3 the limit has the exact variance, textbook SGLD with the same step size h²/2 has not.
    limit = stationary_covariance(sg.SGHMC(0.3, 150.0, temperature=2.0))[0, 0]
    textbook = stationary_covariance(sg.SGLD(0.045, 2.0, integrator=Euler()))[0, 0]
    assert abs(limit - 2.0) < 1e-10
    assert textbook - 2.0 > 0.04


def test_the_published_order_does_not_lead_to_the_gaussian():
    # r = ⌈2a − 1⌉, the default for a ≥ 1, is 1 just above a = 1/2: a softened law, which is not near the Gaussian.
    gaussian = MonomialGamma(0.5, mass=2.0)
    jump = law_gap(MonomialGamma(0.5 + 1e-6, mass=2.0), gaussian)
    smooth = law_gap(MonomialGamma(0.5 + 1e-6, order=2e-6, mass=2.0), gaussian)
    assert smooth < 1e-5
    assert jump > 1e-3


def test_the_rate_of_softening_in_law_approaches_two():
    def gap(c):
        return law_gap(MonomialGamma(1.0, c), MonomialGamma(1.0, np.inf), 2.0)

    coarse, fine = rate(gap, 20.0, 10.0), rate(gap, 800.0, 400.0)
    assert abs(fine + 2.0) < abs(coarse + 2.0)
    assert abs(fine + 2.0) < 0.02
