"""Does it sample the right thing? Long runs against exact answers, each beside a wrong sampler that the same check rejects.

Tolerances are those of the promise (0.3 %, 1 %, 5 %), plus three standard errors of the run itself, which are at most a
third of it. The whole
table, to 0.05 %, is benchmarks/stationary_variance.py; what is linear is exact in test_integrators.py.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from exact_logistic import hmc, laplace

import sgmcmc as sg
from sgmcmc import diagnostics


def second_moment(sampler, *, steps, warmup, dim=20, chains=16, seed=3, xi=None, gradient_noise=0.0):
    """E[θ²] ÷ T on a unit Gaussian and its standard error, from chains that start in the target."""
    t = sampler.temperature
    init = {"theta": np.random.default_rng(seed).normal(size=(chains, dim)) * t**0.5}
    if xi is not None:
        init["xi"] = xi
    model = sg.models.Gaussian(np.zeros(dim), np.ones(dim))
    trace = sg.sample(
        model,
        sampler,
        draws=steps // 5,
        thin=5,
        warmup=warmup,
        chains=chains,
        init=init,
        seed=seed,
        gradient_noise=gradient_noise,
        progress=False,
    )
    each = (trace.draws**2).mean(axis=1).ravel() / t
    return each.mean(), each.std(ddof=1) / each.size**0.5


def check(result, bound):
    ratio, error = result
    assert error < bound / 3.0, f"the run is too short: standard error {error:.4f}"
    assert abs(ratio - 1.0) < bound + 3.0 * error, f"variance ÷ truth = {ratio:.4f} ± {error:.4f}, allowed ± {bound}"


@pytest.mark.parametrize(
    ("diffusion", "temperature", "xi"), [(1.0, 0.1, None), (1.0, 4.0, None), (0.1, 1.0, None), (1.0, 1.0, 0.0)]
)
def test_sgnht_has_the_right_variance_at_every_temperature_and_from_a_thermostat_at_zero(diffusion, temperature, xi):
    sampler = sg.SGNHT(0.1, diffusion, temperature=temperature)
    check(second_moment(sampler, steps=50_000, warmup=1000, chains=64, xi=xi), 0.003)


def test_the_variance_check_rejects_a_target_that_is_two_per_cent_too_hot():
    ratio, error = second_moment(sg.SGNHT(0.1, temperature=1.02), steps=60_000, warmup=1000)
    assert abs(1.02 * ratio - 1.0) > 0.003 + 3.0 * error


@pytest.mark.parametrize("make", [sg.SGMGT, sg.SGMGTD])
@pytest.mark.parametrize("a", [1, 2])
def test_monomial_gamma_samplers_have_the_right_variance_at_their_defaults(make, a):
    check(second_moment(make(0.1, a=a), steps=50_000 * a, warmup=20_000, chains=32), 0.01)


def noisy(sampler, h=0.02, b=4.0):
    """Gradient noise that is an extra diffusion B = 4 in p, after a warm-up of 1000 time units."""
    return second_moment(sampler, steps=50_000, warmup=round(1000 / h), dim=100, chains=4, gradient_noise=b / h, seed=4)


@pytest.mark.parametrize("make", [sg.SGNHT, sg.SGMGT, sg.SGMGTD])
def test_strong_gradient_noise_is_absorbed_by_the_defaults(make):
    ratio, error = noisy(make(0.02))
    assert abs(ratio - 1.0) < 0.05, f"{ratio:.3f} ± {error:.3f}"
    assert error < 0.012


def test_the_paper_s_fixed_centre_runs_twice_as_hot_under_the_same_noise():
    ratio, error = noisy(sg.SGMGTD(0.02, center="fixed"))
    assert ratio > 1.9 + 5 * error


# ---- logistic regression --------------------------------------------------------------------------------------------


class Posterior:
    """N = 1000, d = 25, and what is known of the posterior from elsewhere."""

    def __init__(self):
        rng = np.random.default_rng(11)
        self.X = rng.normal(size=(1000, 25))
        self.y = (rng.random(1000) < 1 / (1 + np.exp(-self.X @ (0.5 * rng.normal(size=25))))).astype(int)
        self.mode, covariance = laplace(self.X, self.y, 10.0)
        self.scale = np.sqrt(np.diag(covariance))
        self.reference = hmc(self.X, self.y, 10.0)
        self.mean, self.sd = self.reference.mean((0, 1)), self.reference.std((0, 1))
        self.model = sg.models.LogisticRegression(self.X, self.y, prior=sg.priors.Gaussian(10.0))


@pytest.fixture(scope="module")
def posterior():
    return Posterior()


def z_scores(draws, reference):
    """Differences of means in units of their Monte Carlo standard errors, per coordinate."""
    columns = range(draws.shape[2])
    error = [np.hypot(diagnostics.mcse(draws[..., j]), diagnostics.mcse(reference[..., j])) for j in columns]
    return (draws.mean((0, 1)) - reference.mean((0, 1))) / np.array(error)


def test_full_gradients_agree_with_an_exact_reference(posterior):
    sampler = sg.SGHMC(0.25, friction=2.0, scale=posterior.scale)
    trace = sg.sample(posterior.model, sampler, draws=10_000, chains=4, init=posterior.mode, seed=2, progress=False)
    z_mean = z_scores(trace.draws, posterior.reference)
    z_square = z_scores((trace.draws - posterior.mean) ** 2, (posterior.reference - posterior.mean) ** 2)
    assert np.abs(z_mean).max() < 4.0, z_mean
    assert np.abs(z_square).max() < 4.0, z_square
    shifted = z_scores(trace.draws + 0.15 * posterior.sd, posterior.reference)
    hotter = z_scores(1.1 * (trace.draws - posterior.mean) ** 2, (posterior.reference - posterior.mean) ** 2)
    assert np.abs(shifted).max() > 4.0  # the same check sees a shift of 0.15 sd, and a variance that is 10 % too large
    assert np.abs(hotter).max() > 4.0


def test_minibatches_of_16_leave_the_posterior_nearly_as_it_is_and_are_quick(posterior):
    sampler = sg.SGNHT(0.01, scale=posterior.scale)
    options = {"chains": 4, "init": posterior.mode, "batch_size": 16, "seed": 1, "progress": False}
    trace = sg.sample(posterior.model, sampler, draws=10_000, thin=20, warmup=20_000, **options)
    draws = trace.draws
    assert np.abs((draws.mean((0, 1)) - posterior.mean) / posterior.sd).max() < 0.1
    assert np.abs(draws.std((0, 1)) / posterior.sd - 1.0).max() < 0.1
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        sg.sample(posterior.model, sampler, draws=5000, warmup=1000, **options)
        seconds.append(time.perf_counter() - begin)
    assert min(seconds) < 0.2, seconds
