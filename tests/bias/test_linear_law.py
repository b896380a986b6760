"""Gradient noise that coordinates share: the linear law beside runs, and what is said; noise that is measured, not inferred."""

from __future__ import annotations

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.bias.foreseen import foreseen
from sgmcmc.bias.linear_law import Surroundings, variance_ratios
from sgmcmc.bias.rows import hessian, row_slopes
from sgmcmc.potentials import has_own_noise
from sgmcmc.testing.laws import kinetic, momentum_law

QUIET = {"progress": False, "warn": False}
RNG = np.random.default_rng(400)
X = RNG.normal(size=(400, 3))
Y = RNG.random(400) < 1 / (1 + np.exp(-(X @ [1.0, -1.0, 0.5] - 3.0)))  # few are True: a skew posterior
SKEW = sg.models.LogisticRegression(X, Y, intercept=True, prior=sg.priors.Gaussian(5.0))


def surroundings(model, theta):
    slopes = row_slopes(model, theta, 50, "replacement", 1.0)
    return Surroundings(hessian(model, theta, 50, "replacement", 1.0), np.cov(slopes.T))


@pytest.fixture(scope="module")
def truth():
    """Mean and variance by all rows."""
    draws = sg.sample(SKEW, sg.SGHMC(0.1, scale="auto"), 4000, warmup=2000, thin=20, chains=8, seed=1, **QUIET).draws
    return draws.mean(axis=(0, 1)), draws.var(axis=(0, 1))


@pytest.mark.parametrize("sampler", [sg.SGNHT(0.1), sg.SGMGT(0.1), sg.SGMGTD(0.1), sg.SGNHT(0.1, per="chain")])
def test_without_noise_or_with_equal_noise_of_every_coordinate_the_law_is_right(sampler):
    H = np.array([[2.0, 0.7, 0.0], [0.7, 1.0, 0.2], [0.0, 0.2, 3.0]])
    for noise in (0.0, 0.3):
        found = variance_ratios(sampler, 0.01, Surroundings(H, noise * np.eye(3)))
        np.testing.assert_allclose(found, 1.0, atol=1e-4 if noise == 0.0 else 2e-3)
    shared = variance_ratios(sampler, 0.1, Surroundings(H, 20.0 * (0.2 * np.eye(3) + 0.8)))
    assert np.abs(shared - 1.0).max() > 0.1  # the control: it would be seen


def test_the_variances_of_a_run_are_those_of_the_linear_law(truth):
    mean, variance = truth
    sampler = sg.SGNHT(0.02)
    trace = sg.sample(SKEW, sampler, 2000, warmup=20_000, thin=20, chains=16, batch_size=50, seed=2, init=mean, **QUIET)
    found = ((trace.draws - mean) ** 2).mean(axis=(0, 1)) / variance
    met = surroundings(SKEW, mean)
    np.testing.assert_allclose(found, variance_ratios(sampler, 0.02, met), atol=0.06)
    assert found.min() < 0.7  # which is far off
    assert abs(trace.configurational_temperature.mean() - 1.0) < 0.03  # and no temperature shows it


def test_it_is_said_with_a_remedy_that_followed_to_the_letter_makes_it_right(truth):
    mean, variance = truth
    options = {"warmup": 5000, "thin": 20, "chains": 8, "seed": 3, "init": mean, "progress": False}
    with pytest.warns(sg.RunWarning, match="coordinates share gradient noise") as caught:
        sg.sample(SKEW, sg.SGNHT(0.02), 300, batch_size=50, **options)
    said = str(caught[0].message)
    size = said.split("batch_size=")[1].split(";")[0]
    better = None if size == "None" else int(size)
    trace = sg.sample(SKEW, sg.SGNHT(0.02), 3000, batch_size=better, **options)  # without a warning
    assert np.abs(((trace.draws - mean) ** 2).mean(axis=(0, 1)) / variance - 1.0).max() < 0.08


def test_nothing_is_said_of_axes_in_which_noise_is_not_shared(truth):
    """With the posterior's axes as scale, noise whose covariance is that of the Hessian is not shared."""
    x = np.random.default_rng(0).normal(size=(1000, 3)) @ np.array([[1.0, 0.9, 0.0], [0.0, 0.5, 0.0], [0.3, 0.0, 1.0]])
    y = x @ [1.0, -1.0, 0.5] + np.random.default_rng(1).normal(size=1000)
    model = sg.models.LinearRegression(x, y, prior=sg.priors.Flat())
    covariance = np.linalg.inv(x.T @ x)
    mean = covariance @ x.T @ y
    options = {"warmup": 10, "chains": 2, "seed": 3, "init": mean, "batch_size": 100, **QUIET}
    own = sg.sample(model, sg.SGNHT(0.05, scale=np.linalg.cholesky(covariance)), 300, **options)
    assert foreseen(own) == []
    other = sg.sample(model, sg.SGNHT(0.05, scale=np.sqrt(np.diag(covariance))), 300, **options)
    assert [f.quantity for f in foreseen(other)] == ["gradient noise that coordinates share"]  # the control


def test_a_gradient_in_python_is_judged_alike_and_asked_for_batches_of_one_size(truth):
    sizes = []

    def gradient(theta, data, rows):
        sizes.append(rows.size)
        x = np.column_stack((np.ones(rows.size), data[0][rows]))
        return x.T @ (1 / (1 + np.exp(-x @ theta)) - data[1][rows])

    model = sg.Potential(gradient, dim=4, data=(X, Y.astype(float)), prior=sg.priors.Gaussian(5.0))
    del sizes[:]
    with pytest.warns(sg.RunWarning, match="coordinates share gradient noise"):
        sg.sample(model, sg.SGNHT(0.015), 20, warmup=20, batch_size=50, init=truth[0], seed=3, progress=False)
    assert set(sizes) == {50}
    compiled, python = (surroundings(m, truth[0]) for m in (SKEW, model))
    np.testing.assert_allclose(np.diag(python.hessian) / np.diag(compiled.hessian), 1.0, atol=0.4)
    ratio = np.diag(python.noise) / np.diag(compiled.noise)  # 30 batches beside 200 rows
    assert (ratio > 0.35).all()
    assert (ratio < 2.2).all()  # 29 degrees of freedom: one of 4000 is above


# ---- a gradient that is random by itself ------------------------------------------------------------------------------------


def random_gradient(variance):
    rng = np.random.default_rng(5)
    return sg.Potential(lambda theta: theta + variance**0.5 * rng.standard_normal(theta.size), dim=20)


def test_the_noise_of_a_function_that_is_random_by_itself_is_measured():
    model = random_gradient(9.0)
    assert has_own_noise(model)
    trace = sg.sample(model, sg.SGMGTD(0.1), 1500, warmup=1500, thin=5, chains=3, seed=2, **QUIET)
    ratio = trace.final["variance"] / 9.0
    assert abs(ratio.mean() - 1.0) < 0.05  # 9000 steps, a seventh of them: 5 % for each of 60
    assert 0.02 < ratio.std() < 0.12
    found = (trace.draws**2).mean(axis=(1, 2))
    assert abs(found.mean() - 1.0) < 0.03 + 4.0 * found.std(ddof=1) / 3**0.5
    fixed = sg.sample(model, sg.SGMGTD(0.1, center="fixed"), 1500, warmup=1500, thin=5, chains=3, seed=2, **QUIET)
    assert (fixed.draws**2).mean() > 1.15  # the control


def test_a_function_that_is_not_random_has_no_noise():
    model = sg.Potential(lambda theta: theta, dim=3)
    assert not has_own_noise(model)
    assert (sg.sample(model, sg.SGMGTD(0.1), 50, seed=1, **QUIET).final["variance"] == 0.0).all()


def test_a_gradient_that_is_no_sum_over_its_rows_is_measured_on_two_batches():
    def mean_of(theta, data, rows):  # whole batches are right, halves of them are not
        return 300.0 * (theta - data[0][rows].mean(axis=0)) / 300.0 * rows.size

    data = np.random.default_rng(1).normal(size=(300, 3))
    model = sg.Potential(mean_of, dim=3, data=(data,), additive=False)
    trace = sg.sample(
        model, sg.SGMGTD(1e-9), 1, warmup=7000, chains=4, batch_size=10, seed=2, init=np.zeros(3), **QUIET
    )
    each = (300.0 * data).var(axis=0) / 10
    np.testing.assert_allclose(trace.final["variance"].mean(axis=0) / each, 1.0, atol=0.2)


# ---- a typical K'' ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("temperature", "mass"), [(1.0, 1.0), (0.1, 0.5), (10.0, 5.0)])
@pytest.mark.parametrize("a", [0.5, 0.75, 1.0, 2.0])
def test_the_mean_of_the_curvature_is_that_by_quadrature(a, temperature, mass):
    sampler = sg.Sampler(1e-6, kinetics=sg.kinetics.MonomialGamma(a, mass=mass), temperature=temperature)
    exact = momentum_law(sampler.kinetics, temperature).mean(lambda p: kinetic(sampler.kinetics, p)[2])
    assert sampler.bend == pytest.approx(exact, rel=0.02)


def test_noise_beside_small_momenta_is_named_and_that_of_an_earlier_longer_step_too():
    model = sg.models.Gaussian(np.zeros(8), 0.1)  # T/Var = 1
    cold = sg.SGMGTD(0.05, 2, temperature=0.1, mass=0.5, sigma_theta=0.01, sigma_p=0.1, gamma=10.0)
    trace = sg.sample(model, cold, 300, warmup=50, thin=3, chains=4, seed=1, gradient_noise=1.0, **QUIET)
    assert any("noise of one step" in f.advice for f in foreseen(trace))
    cycles = sg.SGNHT(sg.schedules.Cyclical(0.05, 500), 0.1, 10.0, temperature=0.1)
    trace = sg.sample(model, cycles, 300, warmup=500, chains=4, seed=1, gradient_noise=20.0, **QUIET)
    assert any("noise of one step" in f.advice for f in foreseen(trace))
