"""Gradient noise of unknown size, and minibatch noise against its exact law."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgmcmc.evidence.validation import gradient_noise, minibatch_noise
from sgmcmc.evidence.validation.minibatch_noise import (
    example,
    linear_map,
    measured_z,
    stationary_law,
    without_weight,
    worst_z,
)
from sgmcmc.integrators import Euler
from sgmcmc.models import LinearRegression
from sgmcmc.priors import Gaussian, Laplace
from sgmcmc.samplers.presets import SGHMC, SGLD, SGNHT
from sgmcmc.testing.report import Report
from sgmcmc.testing.statistics import z_bound
from sgmcmc.testing.under_test import Kernel

BOUND = z_bound(100)


def test_quick_findings_pass():
    report = Report("gradient noise", gradient_noise.findings("quick"))
    assert report.passed, report


@pytest.mark.slow
def test_full_findings_pass():
    report = Report("gradient noise", gradient_noise.findings("full"))
    assert report.passed, report


# ---- the exact law of minibatches ---------------------------------------------------------------------------------------


def test_with_all_rows_and_baoab_the_exact_law_is_the_posterior():
    model = example()
    mean, covariance = model.posterior()
    for T in (1.0, 2.5):
        found_mean, found = stationary_law(model, Kernel(SGHMC(0.1, temperature=T)), model.n_rows, replacement=False)
        assert np.allclose(found_mean, mean, rtol=1e-10)
        assert np.allclose(found, T * covariance, rtol=1e-9)


def test_the_textbook_formula_for_sgld_is_recovered():
    """Σ = E[(I − hA)Σ(I − hA)ᵀ] + h² Cov(g) + 2hT I, iterated over all pairs of rows, each as likely as any other."""
    model, h, T = example(), 0.01, 1.5
    mean, found = stationary_law(model, Kernel(SGLD(h, temperature=T, integrator=Euler())), 2, replacement=True)
    N, eye, tau = model.n_rows, np.eye(2), 1 / model.prior.scale**2
    i, j = (k.ravel() for k in np.meshgrid(np.arange(N), np.arange(N)))
    a = N * model.X[:, :, None] * model.X[:, None, :]
    b = N * model.X * model.y[:, None]
    A, c = (a[i] + a[j]) / 2 + tau * eye, (b[i] + b[j]) / 2
    step, gradient = eye - h * A, A @ mean - c
    after = (
        np.mean(step @ found @ step.transpose(0, 2, 1), axis=0) + h**2 * gradient.T @ gradient / N**2 + 2 * h * T * eye
    )
    assert np.allclose(gradient.mean(axis=0), 0.0, atol=1e-9)
    assert np.allclose(after, found, rtol=1e-10)


def test_distinct_pairs_of_rows_are_recovered_too():
    model, h = example(), 0.01
    mean, found = stationary_law(model, Kernel(SGLD(h, integrator=Euler())), 2, replacement=False)
    N, eye, tau = model.n_rows, np.eye(2), 1 / model.prior.scale**2
    i, j = np.triu_indices(N, 1)
    a = N * model.X[:, :, None] * model.X[:, None, :]
    b = N * model.X * model.y[:, None]
    A, c = (a[i] + a[j]) / 2 + tau * eye, (b[i] + b[j]) / 2
    step, gradient = eye - h * A, A @ mean - c
    after = (
        np.mean(step @ found @ step.transpose(0, 2, 1), axis=0) + h**2 * gradient.T @ gradient / i.size + 2 * h * eye
    )
    assert np.allclose(after, found, rtol=1e-10)


@settings(derandomize=True, max_examples=10, deadline=None)
@given(h=st.floats(0.005, 0.02), friction=st.floats(0.5, 4.0), T=st.floats(0.3, 3.0), batch=st.integers(6, 23))
def test_batches_without_replacement_are_cooler_and_the_covariance_is_one(h, friction, T, batch):
    model = example()
    subject = Kernel(SGHMC(h, friction=friction, temperature=T))
    with_, without = (stationary_law(model, subject, batch, r)[1] for r in (True, False))
    for covariance in (with_, without):
        assert np.allclose(covariance, covariance.T, rtol=1e-9)
    assert np.linalg.eigvalsh(with_ - without).min() > 0.0
    assert np.linalg.eigvalsh(without - T * model.posterior()[1]).min() > 0.0


def test_a_probed_step_is_the_step():
    sampler = SGHMC(0.1, friction=2.0, temperature=0.7)
    M, G, N = linear_map(Kernel(sampler), 2)
    decay = np.exp(-0.2)
    expected = np.array([[1.0, 0.05 * (1 + decay)], [0.0, decay]])
    assert np.allclose(M[np.ix_([0, 2], [0, 2])], expected, rtol=1e-12)
    assert np.allclose(G[[0, 2], 0], -0.1 * expected[:, 1], rtol=1e-12)
    assert np.allclose((N @ N.T)[2, 2], 0.7 * (1 - decay**2), rtol=1e-12)


def test_what_is_not_linear_or_not_stationary_is_refused():
    model = example()
    with pytest.raises(ValueError, match="thermostat"):
        linear_map(Kernel(SGNHT(0.1)), 2)
    with pytest.raises(ValueError, match="grows without bound"):
        stationary_law(model, Kernel(SGLD(0.2)), 4)
    with pytest.raises(TypeError, match="nonlinear"):
        stationary_law(LinearRegression(model.X, model.y, prior=Laplace(1.0)), Kernel(SGLD(0.01)), 4)


# ---- wrong samplers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [1.0, 2.0])
@pytest.mark.parametrize("kind", ["replacement", "no-replacement"])
def test_wrong_uses_of_minibatches_are_rejected(kind, temperature):
    model, batch, sampler = example(), 8, SGLD(0.012, temperature=temperature)
    other = "no-replacement" if kind == "replacement" else "replacement"
    assert worst_z(model, sampler, batch, kind, seed=2) < BOUND
    assert worst_z(model, sampler, batch, kind, seed=2, run=without_weight(model, batch)) > BOUND
    assert worst_z(model, sampler, batch, kind, seed=2, run=without_weight(model, batch, prior_too=True)) > BOUND
    assert worst_z(model, sampler, batch, kind, seed=2, claimed=other) > BOUND


def test_models_that_stand_for_wrong_samplers_have_their_gradients():
    model, batch = example(), 8
    theta, ratio = np.array([0.3, -0.2]), model.n_rows / batch
    data = model.X.T @ (model.X @ theta - model.y)
    prior = theta / model.prior.scale**2
    assert np.allclose(without_weight(model, batch).gradient(theta), data / ratio + prior)
    assert np.allclose(without_weight(model, batch, prior_too=True).gradient(theta), data + ratio * prior)


def test_a_covariance_off_by_five_per_cent_is_rejected():
    model = example()
    rng = np.random.default_rng(1)
    mean, covariance = model.posterior()
    draws = mean + rng.normal(size=(256, 400, 2)) @ np.linalg.cholesky(covariance).T
    assert np.abs(measured_z(draws, mean, covariance)).max() < BOUND
    assert np.abs(measured_z(draws, mean, 1.05 * covariance)).max() > BOUND


# ---- thermostats --------------------------------------------------------------------------------------------------------


def test_constant_friction_runs_as_hot_as_the_noise_makes_it():
    """SGHMC: variance 1 + B/A in the limit of small steps; the measurement itself is right."""
    found = gradient_noise.measure(SGHMC(0.02, friction=2.0), 2.0, copies=500)
    assert abs(found.value - 2.0) < 5 * found.error + 0.02


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_an_estimate_of_the_noise_takes_it_off(temperature):
    estimated = SGHMC(0.02, friction=2.0, noise_estimate=2.0, temperature=temperature)
    found = gradient_noise.measure(estimated, 2.0, copies=500)
    assert abs(found.value - 1.0) < 5 * found.error + 0.01


def test_the_figure_has_four_columns_for_each_centre():
    from matplotlib.figure import Figure

    axes = Figure().subplots(1, 2)
    row = tuple(gradient_noise.Variance(v, 0.01) for v in (1.0, 1.1, 1.2, 1.3))
    gradient_noise.figure(axes, {c: {0.0: row, 1.0: row} for c in ("fixed", "adaptive")})
    assert [len(ax.containers) for ax in axes] == [4, 4]


def test_the_example_has_noise_that_matters():
    model = example()
    covariance = stationary_law(model, Kernel(SGLD(0.012)), 8)[1]
    assert np.trace(covariance) > 1.3 * np.trace(model.posterior()[1])
    assert isinstance(model.prior, Gaussian)
    assert minibatch_noise.__all__
