"""The Lyapunov oracle: stationary covariances of the real kernels against closed forms, orders in h, and long runs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sgmcmc as sg
from sgmcmc.integrators import BAOAB, Euler, SymmetricSplitting
from sgmcmc.kinetics import MonomialGamma
from sgmcmc.testing.lyapunov import (
    LinearStep,
    bias,
    check_lyapunov,
    euler_sghmc_variance,
    euler_sgld_variance,
    findings,
    held,
    run_z,
    splitting_variance,
    stationary_covariance,
    variance_slope,
)

few = settings(max_examples=25, deadline=None, derandomize=True)
numbers = {"h": st.floats(0.01, 0.3), "A": st.floats(0.3, 5.0), "k": st.floats(0.2, 3.0), "T": st.floats(0.1, 5.0)}


def variance(sampler, k):
    return stationary_covariance(sampler, k)[0, 0]


def test_the_standard_findings_pass():
    assert [f for f in findings("quick") if not f.passed] == []


@few
@given(**numbers)
def test_baoab_is_exact_in_theta_also_with_noise_on_theta(h, A, k, T):
    for sigma_theta in (0.0, 0.5):
        sampler = sg.Sampler(h, sigma_p=A, sigma_theta=sigma_theta, temperature=T, integrator=BAOAB())
        assert abs(bias(sampler, k)) < 1e-10


@few
@given(**numbers)
def test_variances_equal_their_closed_forms(h, A, k, T):
    assert variance(sg.SGLD(h, T), k) == pytest.approx(T / k, rel=1e-10)
    assert variance(sg.SGLD(h, T, integrator=Euler()), k) == pytest.approx(euler_sgld_variance(h, k, T), rel=1e-10)
    split = sg.SGHMC(h, A, temperature=T, integrator=SymmetricSplitting())
    assert variance(split, k) == pytest.approx(splitting_variance(h, A, k, T), rel=1e-10)
    if 2.0 * h * k < A:  # else explicit Euler is unstable, or nearly so
        euler = sg.SGHMC(h, A, temperature=T, integrator=Euler())
        assert variance(euler, k) == pytest.approx(euler_sghmc_variance(h, A, k, T), rel=1e-9)


def test_euler_without_a_stationary_law_has_an_infinite_variance():
    assert np.isinf(variance(sg.SGHMC(0.1, 0.05, integrator=Euler()), 1.0))


def test_sgmgtd_is_of_second_order_in_theta_with_one_gradient_per_step():
    sampler = sg.SGMGTD(0.1, a=0.5, mass=2.0, sigma_theta=0.5, sigma_p=1.5, temperature=2.0)
    slope = variance_slope(lambda h: held(sg.SGMGTD(h, a=0.5, mass=2.0, sigma_theta=0.5, sigma_p=1.5, temperature=2.0)))
    assert abs(slope.value - 2.0) < 0.01
    assert LinearStep(held(sampler)).nonlinearity() < 1e-12


def test_a_friction_that_is_off_by_one_per_cent_is_seen_a_hundred_million_times_over():
    wrong = sg.SGHMC(0.1, 1.0, noise_estimate=0.01)  # injects 1 % less than the friction asks for
    assert abs(bias(wrong) + 0.01) < 1e-10
    assert abs(bias(sg.SGHMC(0.1, 1.0))) < 1e-10
    assert not check_lyapunov(wrong).passed
    assert check_lyapunov(sg.SGHMC(0.1, 1.0, temperature=3.0), 2.0).passed


def test_a_long_run_sees_when_it_is_not_the_run_of_the_oracle():
    right = sg.SGHMC(0.2, 1.0, temperature=2.0, integrator=Euler())
    assert abs(run_z(right, steps=400)) < 4.5
    # Against the law of the target, which Euler misses by a quarter at this step, the same run fails.
    assert variance(right, 1.0) > 2.4
    assert abs(run_z(right, steps=400, expected=2.0)) > 20.0


def test_a_kinetics_that_is_not_quadratic_is_found_out():
    step = LinearStep(sg.Sampler(0.1, MonomialGamma(1.0), sigma_p=1.0))
    assert step.nonlinearity() > 1e-3
    with pytest.raises(ValueError, match="held"):
        LinearStep(sg.SGNHT(0.1))
