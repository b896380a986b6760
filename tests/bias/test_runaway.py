"""A θ that runs away is named, whatever the sampler, the precision and the length of the run; one that relaxes is not."""

from __future__ import annotations

import warnings

import numba
import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.bias.runaway import falls_for_ever

SAMPLERS = {
    "SGLD": sg.SGLD(0.1),
    "SGHMC": sg.SGHMC(0.1),
    "SGNHT": sg.SGNHT(0.1),
    "SGMGT": sg.SGMGT(0.1),
    "SGMGTD": sg.SGMGTD(0.1),
}
WRONG = sg.Potential(lambda theta: -theta, dim=3)


def heard(model, sampler, **run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trace = sg.sample(model, sampler, **({"progress": False, "seed": 1, "draws": 60, "warmup": 60} | run))
    return trace, [str(w.message) for w in caught if issubclass(w.category, sg.RunWarning)]


def is_named(words):
    return len(words) == 1 and words[0].startswith("this run is running away") and "wrong sign" in words[0]


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("draws", [60, 300])
def test_a_gradient_with_the_wrong_sign_is_named(name, dtype, draws):
    trace, words = heard(WRONG, SAMPLERS[name], draws=draws, dtype=dtype)
    assert is_named(words), words
    assert trace.bias_report().problems[0].verdict == "running away"


@pytest.mark.parametrize("keep", ["moments", lambda theta: theta[:1]], ids=["moments", "function"])
def test_it_is_named_whatever_is_kept_and_by_a_compiled_gradient_with_data(keep):
    assert is_named(heard(WRONG, sg.SGLD(0.1), keep=keep)[1])

    @numba.njit
    def wrong(theta, data, rows, out):  # of log p
        for i in rows:
            for j in range(theta.size):
                out[j] += data[0][i, j] - theta[j]

    X = np.random.default_rng(0).normal(size=(100, 3))
    model = sg.Potential(wrong, dim=3, data=(X,))
    words = heard(model, sg.SGLD(1e-3), batch_size=10, draws=200, warmup=200, keep=keep)[1]
    assert is_named(words), words


def test_theta_that_has_come_very_far_is_named():
    trace, words = heard(WRONG, sg.SGLD(0.1), draws=1000, warmup=1000)
    assert np.abs(trace.draws).max() > 1e70
    assert is_named(words)
    assert "|theta| up to 1.0e+" not in words[0]


def test_a_chain_that_leaves_the_finite_numbers_hears_of_the_sign_only_if_that_is_it():
    with pytest.raises(sg.DivergenceError, match="may have the wrong sign"):
        sg.sample(WRONG, sg.SGLD(0.1), 10_000, progress=False, seed=1, chains=1)
    with pytest.raises(sg.DivergenceError, match="try a step size of") as error:
        sg.sample(sg.models.Gaussian(np.zeros(3), 1.0), sg.SGLD(3.0), 10_000, progress=False, seed=1, chains=1)
    assert "sign" not in str(error.value)


def student(nu, d=2, center=0.0):
    def gradient(theta):
        x = theta - center
        return (nu + d) * x / (nu + x @ x)

    return sg.Potential(gradient, dim=d)


RIGHT = {
    "far start": (sg.models.Gaussian(np.zeros(3), 1.0), {"init": np.full(3, 1e4)}),
    "far mode": (sg.models.Gaussian(np.full(3, 1e6), 1.0), {}),
    "far start, wide": (sg.models.Gaussian(np.zeros(3), 1e8), {"init": np.full(3, 1e6)}),
    "wide": (sg.models.Gaussian(np.zeros(3), 1e12), {}),
    "flat": (sg.Potential(lambda theta: np.zeros(3), dim=3), {}),
    "Cauchy": (student(1.0), {}),
    "Cauchy, far start": (student(1.0), {"init": np.full(2, 1e3)}),
    "Student": (student(3.0), {"init": np.full(2, -50.0)}),
    "Cauchy, far mode": (student(1.0, 1, 1e4), {}),
    "Laplace, far start": (sg.Potential(np.sign, dim=2), {"init": np.full(2, 1e4)}),
    "Laplace, far mode": (sg.Potential(lambda theta: np.sign(theta - 1e5), dim=2), {}),
    "two modes": (sg.models.GaussianMixture(np.array([[-60.0], [60.0]]), 1.0, np.array([0.5, 0.5])), {}),
}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("sampler", ["SGLD", "SGHMC", "SGNHT"])
def test_no_chain_that_relaxes_or_wanders_is_said_to_run_away(name, sampler):
    model, run = RIGHT[name]
    for seed in range(5):
        for draws in (20, 250):
            words = heard(model, SAMPLERS[sampler], draws=draws, warmup=20, seed=seed, chains=1 + seed % 3, **run)[1]
            assert not any("runs away" in w for w in words), (seed, draws, words)


def test_the_line_downhill_tells_a_proper_posterior_from_one_that_is_not():
    for name, (model, _) in RIGHT.items():
        assert not falls_for_ever(model, np.full(model.dim, 3.0)), name
    assert falls_for_ever(WRONG, np.full(3, 1e-8))
    assert falls_for_ever(WRONG, np.full(3, 1e200))
    assert falls_for_ever(sg.Potential(lambda theta: -2 * theta / (1 + theta @ theta), dim=2), np.ones(2))
    assert falls_for_ever(sg.Potential(lambda theta: -(theta**3), dim=2), np.ones(2))
    assert falls_for_ever(sg.Potential(lambda theta: np.ones(2), dim=2), np.ones(2))

    def refuses(theta):
        raise ArithmeticError("too far")

    assert not falls_for_ever(sg.Potential(refuses, dim=2), np.ones(2))
