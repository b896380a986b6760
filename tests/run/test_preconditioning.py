"""Units from the second moment of the gradient, frozen after the pilot: badly scaled and badly conditioned posteriors."""

from __future__ import annotations

import numpy as np
import pytest

import sgmcmc as sg


def worst_variance(model, best, draws, thin):
    trace = best.sample(draws, thin=thin, warmup=5000, seed=3, progress=False, warn=False)
    return float(abs(trace.draws.var(axis=(0, 1)) / np.diag(model.cov) - 1).max())


def test_a_correlated_gaussian_with_condition_number_ten_thousand_is_within_five_per_cent_everywhere():
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(10, 10)))[0]
    model = sg.models.Gaussian(np.zeros(10), Q @ np.diag(np.geomspace(1e-4, 1.0, 10)) @ Q.T)
    best = sg.tune(sg.SGHMC, model, progress=False)
    assert worst_variance(model, best, 10_000, 100) < 0.05


def test_a_badly_scaled_posterior_wants_the_scale_and_without_it_the_same_budget_fails():
    model = sg.models.Gaussian(np.zeros(4), np.array([1e-6, 1e-2, 1.0, 1e4]))
    options = {"budget": 60_000, "progress": False}
    scaled = sg.tune(sg.SGHMC, model, **options)
    with pytest.warns(sg.RunWarning, match="no setting that passes its check"):
        plain = sg.tune(sg.SGHMC, model, space={"scale": 1.0}, **options)
    assert worst_variance(model, scaled, 4000, 10) < 0.1
    assert worst_variance(model, plain, 4000, 10) > 0.5
