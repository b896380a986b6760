"""Data in shards: each machine samples its own rows, and only the draws meet."""

from __future__ import annotations

import numpy as np

import sgmcmc as sg

SHARDS = 4
rng = np.random.default_rng(0)


def sample(make, rows, shards, scale, seed):
    """A run on some rows. Each shard has a part of the prior, for a Gaussian one √shards times as wide, and a seed of its own."""
    model = make(rows, sg.priors.Gaussian(10.0 * np.sqrt(shards)))
    options = {"draws": 4000, "warmup": 4000, "thin": 5, "chains": 4, "seed": seed, "progress": False}
    return sg.sample(
        model, sg.SGNHT(0.1, scale=scale * np.sqrt(shards)), **options
    )  # all rows: no minibatch noise here


def compare(name, make, n_rows, scale):
    whole = sample(make, slice(None), 1, scale, 99)
    parts = [sample(make, slice(s, None, SHARDS), SHARDS, scale, s) for s in range(SHARDS)]
    joined = sg.consensus(parts)
    mean, sd = whole.draws.mean(axis=(0, 1)), whole.draws.std(axis=(0, 1))
    print(name, "of", n_rows, "rows in", SHARDS, "shards; in standard deviations of the full posterior:")
    print("  means off by", np.round((joined.draws.mean(axis=(0, 1)) - mean) / sd, 3))
    print("  spreads, as a ratio", np.round(joined.draws.std(axis=(0, 1)) / sd, 3))


X = rng.normal(size=(2000, 3))
y = X @ [1.0, -2.0, 0.5] + rng.normal(size=2000)
compare("linear regression (sub-posteriors are Gaussian: exact)", lambda rows, prior: sg.models.LinearRegression(
    X[rows], y[rows], prior=prior), 2000, 0.02)  # fmt: skip

labels = rng.random(2000) < 1 / (1 + np.exp(-X @ [1.0, -2.0, 0.5]))
compare("logistic regression (nearly Gaussian)", lambda rows, prior: sg.models.LogisticRegression(
    X[rows], labels[rows], prior=prior), 2000, 0.06)  # fmt: skip

few = slice(0, 80)
compare("logistic regression with 20 rows a shard (not Gaussian: do not believe it)", lambda rows, prior: (
    sg.models.LogisticRegression(X[few][rows], labels[few][rows], prior=prior)), 80, 0.4)  # fmt: skip
