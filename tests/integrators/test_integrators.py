"""Integrators against exact algebra: stationary covariances by a discrete Lyapunov equation, orders, symmetries, limits."""

from __future__ import annotations

import numpy as np
import pytest
from linear_map import LinearStep

import sgmcmc as sg
from sgmcmc.integrators import BAOAB, Euler, SymmetricSplitting
from sgmcmc.kinetics import Gaussian, MonomialGamma
from sgmcmc.thermostats import NoseHoover


def theta_variance(sampler, k=1.0):
    return LinearStep(sampler, k).stationary_covariance()[0, 0]


@pytest.mark.parametrize("friction", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("temperature", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("k", [1.0, 3.0])
def test_sghmc_has_the_exact_variance_on_gaussian_targets(friction, temperature, k):
    sampler = sg.SGHMC(0.1, friction=friction, temperature=temperature)
    assert theta_variance(sampler, k) == pytest.approx(temperature / k, rel=1e-9)


def test_the_lyapunov_check_sees_a_friction_that_is_off_by_one_per_cent():
    sampler = sg.SGHMC(
        0.1, friction=1.0, noise_estimate=0.01
    )  # injects 1 % too little where there is no gradient noise
    assert abs(theta_variance(sampler) - 1.0) > 5e-3


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_sgld_has_the_exact_variance_on_gaussian_targets_and_euler_does_not(temperature):
    assert theta_variance(sg.SGLD(0.1, temperature)) == pytest.approx(temperature, rel=1e-9)
    euler = sg.SGLD(0.1, temperature, integrator=Euler())
    assert theta_variance(euler) == pytest.approx(temperature / (1 - 0.05), rel=1e-9)  # 1/(1 − hk/2)


def test_sghmc_with_explicit_euler_has_the_bias_that_other_libraries_have():
    # BlackJAX: step 0.1, friction 0.01 per step in its units; the variance is 1/(1 − h/A) up to order h².
    euler = sg.SGHMC(0.01, friction=0.1, integrator=Euler())
    assert theta_variance(euler) == pytest.approx(1 / (1 - 0.01 / 0.1), rel=0.01)


def slope(make, steps=(0.2, 0.1, 0.05)):
    """The order of the error of Var θ in h, from the two smallest step sizes (NaN if there is none), and the smallest error."""
    errors = [abs(theta_variance(make(h)) - 1.0) for h in steps]
    return (np.log2(errors[-2] / errors[-1]) if errors[-1] > 0.0 else np.nan), errors[-1]


@pytest.mark.parametrize("integrator", [SymmetricSplitting(), BAOAB()])
@pytest.mark.parametrize("sigma_p", [0.5, 2.0])
def test_splittings_are_of_second_order_in_theta_with_noise_on_theta_and_one_gradient(integrator, sigma_p):
    order, error = slope(lambda h: sg.Sampler(h, sigma_theta=0.5, sigma_p=sigma_p, integrator=integrator))
    assert error < 1e-12 or 1.8 < order < 2.4, (order, error)


def test_euler_is_of_first_order():
    order, error = slope(lambda h: sg.Sampler(h, sigma_theta=0.5, sigma_p=1.0, integrator=Euler()))
    assert 0.8 < order < 1.2
    assert error > 1e-3


class Tape:
    """A quadratic potential driven by ask and tell, recording θ."""

    def __init__(self, sampler, steps=200, dim=3, seed=5):
        state = sampler.init(np.linspace(-1.0, 2.0, dim), seed=seed)
        thetas = []
        for _ in range(steps):
            state = sampler.step(state, state.theta**3 + 0.5 * state.theta)
            thetas.append(state.theta)
        self.theta, self.final = np.array(thetas), state


# a = 1/2: |p|²/m is the Gaussian p²/2 for m = 2. The first momentum is drawn differently, so both start from the same p.
def same_start(sampler, other, steps=100):
    one, two = sampler.init(np.array([0.3, -1.2]), seed=2), other.init(np.array([0.3, -1.2]), seed=2)
    two.arrays.p[:] = one.arrays.p
    worst = 0.0
    for _ in range(steps):
        one = sampler.step(one, np.sinh(one.theta))
        two = other.step(two, np.sinh(two.theta))
        worst = max(worst, np.abs(one.theta - two.theta).max())
    return worst


def half(**options):
    return sg.SGMGTD(
        0.05, a=0.5, mass=2.0, sigma_theta=0.0, resample_momentum=None, resample_thermostat=None, **options
    )


def test_sgmgtd_with_a_half_and_no_thermostat_is_sghmc():
    sghmc = sg.SGHMC(0.05, friction=1.5, integrator=SymmetricSplitting())
    assert same_start(half(gamma=0.0, sigma_p=1.5), sghmc) < 1e-11
    assert same_start(half(gamma=0.0, sigma_p=1.6), sghmc) > 1e-3


def test_sgmgtd_with_a_half_and_no_other_noise_is_sgnht():
    sgnht = sg.SGNHT(0.05, diffusion=1.5, gamma=0.7, integrator=SymmetricSplitting())
    assert same_start(half(gamma=0.7, sigma_p=1.5, sigma_xi=0.0), sgnht) < 1e-11
    assert same_start(half(gamma=0.8, sigma_p=1.5, sigma_xi=0.0), sgnht) > 1e-4


def test_both_splittings_agree_to_second_order_on_the_same_random_numbers_in_the_small_step_limit():
    gaps = []
    for h in (0.02, 0.01):
        steps = round(1.0 / h)
        quiet = {"sigma_p": 1e-12, "thermostat": NoseHoover(1.0)}
        one = Tape(sg.Sampler(h, Gaussian(), integrator=BAOAB(), **quiet), steps).theta[-1]
        two = Tape(sg.Sampler(h, Gaussian(), integrator=SymmetricSplitting(), **quiet), steps).theta[-1]
        gaps.append(np.abs(one - two).max())
    assert 3.0 < gaps[0] / gaps[1] < 5.5, gaps


def test_a_step_of_size_zero_moves_nothing_but_closes_the_kick():
    sampler = sg.Sampler(lambda t: 0.1 if t == 0 else 0.0, MonomialGamma(1.0), NoseHoover(1.0), sigma_theta=0.2)
    state = sampler.init(np.array([1.0]), seed=3)
    state = sampler.step(state, state.theta)
    closed = sampler.step(state, state.theta)
    again = sampler.step(closed, closed.theta)
    assert not np.array_equal(closed.p, state.p)
    for one, two in zip(closed.arrays, again.arrays, strict=True):
        if one is not closed.arrays.pending:
            np.testing.assert_allclose(one, two, rtol=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        lambda s: sg.SGLD(0.05, scale=s),
        lambda s: sg.SGNHT(0.1, scale=s),
        lambda s: sg.SGMGTD(0.1, a=2, scale=s),
        lambda s: sg.SGMGTD(0.1, a=1, scale=s, integrator=Euler()),
        lambda s: sg.SGNHT(0.1, scale=s, per="chain"),
    ],
)
def test_scale_is_a_change_of_units(make):
    units = np.array([0.5, 2.0, 64.0])  # powers of two: the change of units is exact
    plain, scaled = make(1.0), make(units)
    one, two = plain.init(np.ones(3), seed=4), scaled.init(units * np.ones(3), seed=4)
    for _ in range(150):
        one = plain.step(one, np.tanh(one.theta))
        two = scaled.step(two, np.tanh(two.theta / units) / units)
    np.testing.assert_allclose(two.theta, units * one.theta, rtol=1e-9)
    assert np.abs(one.theta - 1.0).min() > 1e-3
