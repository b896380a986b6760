"""Consensus: exact for Gaussian sub-posteriors, near for a logistic regression, and wrong without its weights."""

from __future__ import annotations

import numpy as np
import pytest

import sgmcmc as sg

rng = np.random.default_rng(3)


def trace_of(draws):
    chains = len(draws)
    return sg.Trace(draws, {}, np.full(chains, np.nan), np.full(chains, np.nan), {})


def gaussians(shards=3, dim=3, n=20_000):
    """Draws of Gaussian sub-posteriors, and mean and covariance of their product."""
    means = rng.normal(size=(shards, dim))
    roots = rng.normal(size=(shards, dim, dim)) + 2.0 * np.eye(dim)
    covs = roots @ roots.transpose(0, 2, 1)
    draws = [m + rng.normal(size=(4, n // 4, dim)) @ r.T for m, r in zip(means, roots, strict=True)]
    precision = np.linalg.inv(covs)
    total = np.linalg.inv(precision.sum(axis=0))
    return draws, total @ np.einsum("sij,sj->i", precision, means), total


def distance(draws, mean, cov):
    """Errors of mean and variance in units of their standard errors; draws are independent."""
    rows = draws.reshape(-1, draws.shape[-1])
    sd, n = np.sqrt(np.diag(cov)), len(rows)
    z_mean = (rows.mean(axis=0) - mean) / (sd / np.sqrt(n))
    z_variance = (rows.var(axis=0) / sd**2 - 1.0) / np.sqrt(2.0 / n)
    return np.abs([z_mean, z_variance]).max()


def test_the_product_of_gaussians_is_exact_and_a_plain_average_is_not():
    draws, mean, cov = gaussians()
    # The weights are estimated too, from as many draws: errors of up to about twice the standard error.
    assert distance(sg.consensus([trace_of(d) for d in draws]).draws, mean, cov) < 10.0
    assert distance(np.mean(draws, axis=0), mean, cov) > 30.0


def test_diagonal_weights_are_exact_for_independent_parameters():
    spreads = np.array([[1.0, 2.0], [3.0, 0.5]])
    draws = [trace_of(s * rng.normal(size=(4, 5000, 2))) for s in spreads]
    cov = np.diag(1.0 / (1.0 / spreads**2).sum(axis=0))
    assert distance(sg.consensus(draws, weights="diagonal").draws, np.zeros(2), cov) < 10.0


def test_a_logistic_regression_in_shards_is_the_whole_one_and_without_its_share_of_the_prior_it_is_not():
    X = rng.normal(size=(1200, 2))
    y = rng.random(1200) < 1.0 / (1.0 + np.exp(-X @ [1.0, -1.0]))
    options = {"draws": 3000, "warmup": 2000, "thin": 5, "chains": 4, "progress": False}

    def run(rows, shards, scale, seed=9):
        model = sg.models.LogisticRegression(X[rows], y[rows], prior=sg.priors.Gaussian(scale))
        return sg.sample(model, sg.SGNHT(0.1, scale=0.08 * np.sqrt(shards)), seed=seed, **options)

    whole = run(slice(None), 1, 0.1).draws  # a narrow prior: it must be shared out rightly
    mean, sd = whole.mean(axis=(0, 1)), whole.std(axis=(0, 1))
    for scale, right in ((0.1 * 2.0, True), (0.1, False)):
        joined = sg.consensus([run(slice(s, None, 4), 4, scale, s) for s in range(4)]).draws
        off = np.abs((joined.mean(axis=(0, 1)) - mean) / sd).max()
        assert (off < 0.3) == right, off
        assert (np.abs(joined.std(axis=(0, 1)) / sd - 1.0).max() < 0.1) == right


def test_shards_with_one_seed_are_refused_because_their_draws_go_together():
    model = sg.models.Gaussian(np.zeros(2), 1.0)
    options = {"draws": 2000, "warmup": 100, "thin": 10, "progress": False}
    parts = [sg.sample(model, sg.SGNHT(0.2), seed=seed, **options) for seed in (1, 2, 3, 4)]
    assert np.abs(sg.consensus(parts).draws.std(axis=(0, 1)) / 0.5 - 1.0).max() < 0.1  # four precisions add up
    twice = [parts[0]] * 4
    with pytest.raises(ValueError, match="give every shard a seed of its own"):
        sg.consensus(twice)
    alike = [trace_of(t.draws) for t in twice]  # what would come of it
    assert sg.consensus(alike).draws.std(axis=(0, 1)).min() > 0.9


def test_traces_that_do_not_fit_are_refused():
    with pytest.raises(TypeError, match="one trace for each shard"):
        sg.consensus([])
    with pytest.raises(ValueError, match="give traces that are alike"):
        sg.consensus([trace_of(np.zeros((1, 9, 2))), trace_of(np.zeros((1, 9, 3)))])
    with pytest.raises(ValueError, match="too few for a covariance"):
        sg.consensus([trace_of(np.zeros((1, 3, 5)))])
