"""LDA and the discriminative RBM: gradients against energies, predictions, reproducibility, bad input."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

import sgmcmc as sg
from sgmcmc.models import DRBM, LDA

# ---- the discriminative RBM ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def machine():
    rng = np.random.default_rng(0)
    return DRBM(rng.random((40, 6)), rng.integers(0, 3, 40), hidden=5, prior=sg.priors.Gaussian(2.0))


def test_the_gradient_of_the_machine_is_that_of_its_energy(machine):
    theta = 0.7 * np.random.default_rng(1).standard_normal(machine.dim)
    slopes = [(machine.energy(theta + 1e-5 * e) - machine.energy(theta - 1e-5 * e)) / 2e-5 for e in np.eye(machine.dim)]
    np.testing.assert_allclose(machine.gradient(theta), slopes, rtol=1e-6, atol=1e-6)


def test_hidden_units_are_summed_out_exactly(machine):
    theta = np.random.default_rng(2).standard_normal(machine.dim)
    W, U, c, d = machine.split(theta)
    x = machine.X[:4]
    hidden = np.array(list(itertools.product((0.0, 1.0), repeat=5)))
    joint = np.stack([d[y] + logsumexp(hidden @ (c + U[y] + W @ x.T.T[0]) * 1.0) for y in range(3)])
    expected = np.exp(joint - logsumexp(joint))
    np.testing.assert_allclose(machine.predict(theta, x[:1])[0], expected, rtol=1e-12)


def test_minibatches_are_unbiased_and_bytes_are_divided_by_255(machine):
    theta = 0.3 * np.random.default_rng(3).standard_normal(machine.dim)
    parts = [machine.gradient(theta, rows) for rows in np.split(np.arange(40), 8)]
    np.testing.assert_allclose(np.mean(parts, axis=0), machine.gradient(theta), rtol=1e-10, atol=1e-10)
    pixels = np.random.default_rng(4).integers(0, 256, (40, 6)).astype(np.uint8)
    as_bytes, as_floats = DRBM(pixels, machine.y, 5), DRBM(pixels / 255.0, machine.y, 5)
    np.testing.assert_allclose(as_bytes.gradient(theta), as_floats.gradient(theta), rtol=1e-12)


def test_float32_stays_float32_and_a_machine_can_be_sent_elsewhere(machine):
    theta = machine.init(5).astype(np.float32)
    out = np.zeros_like(theta)
    machine.gradient_sum(theta, np.arange(40), out)
    assert out.dtype == np.float32
    again = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(again.gradient(theta), machine.gradient(theta))
    trace = sg.sample(machine, sg.SGNHT(0.02), draws=5, warmup=5, chains=1, batch_size=10, seed=1, progress=False)
    assert np.isfinite(trace.draws).all()


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros(3), [0], r"X has shape \(3,\); give \(rows, pixels\)"),
        (np.zeros((3, 2)), [0, 1], r"y has shape \(2,\)"),
        (np.zeros((3, 2)), [0.5, 1, 1], "dtype float64; give one whole number"),
        (np.zeros((3, 2)), [-1, 1, 1], "whole number from 0 on"),
        ([[np.nan, 1.0]], [0], "X"),
    ],
)
def test_bad_input_of_the_machine_is_one_sentence(X, y, message):
    with pytest.raises(ValueError, match=message):
        DRBM(X, y)


# ---- topics --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def corpus():
    """Three documents of at most four tokens over five words: z can be summed over by hand."""
    return {"indptr": [0, 2, 4, 5], "indices": [0, 3, 1, 3, 4], "counts": [2, 1, 1, 2, 3], "words": 5}


def exact_energy(model, theta, documents):
    """−Σ_d log Σ_z p(z | α) Π φ, every z of every document."""
    phi = np.exp(theta.reshape(model.topics, -1))
    phi /= phi.sum(axis=1, keepdims=True)
    K, alpha, total = model.topics, model.alpha, 0.0
    for d in documents:
        low, high = model.indptr[d], model.indptr[d + 1]
        tokens = np.repeat(model.indices[low:high], model.counts[low:high])
        terms = []
        for z in itertools.product(range(K), repeat=tokens.size):
            n = np.bincount(z, minlength=K)
            prior = gammaln(K * alpha) - gammaln(K * alpha + tokens.size) + (gammaln(n + alpha) - gammaln(alpha)).sum()
            terms.append(prior + np.log(phi[list(z), tokens]).sum())
        total -= logsumexp(terms)
    return total


def test_the_gibbs_gradient_is_that_of_the_exact_marginal_likelihood(corpus):
    model = LDA(**corpus, topics=2, alpha=0.4, burn=30, sweeps=20_000)
    theta = np.random.default_rng(1).standard_normal(model.dim)
    out = np.zeros(model.dim)
    rows = np.array([0, 1, 2])
    model.gradient_sum(theta, rows, out)
    step = 1e-5 * np.eye(model.dim)
    slopes = [(exact_energy(model, theta + e, rows) - exact_energy(model, theta - e, rows)) / 2e-5 for e in step]
    np.testing.assert_allclose(out, slopes, atol=0.03)  # 20,000 correlated sweeps of counts up to 3: some 0.007 each
    wrong = LDA(**corpus, topics=2, alpha=1.5, burn=30, sweeps=20_000)
    wrong.gradient_sum(theta, rows, out)
    assert np.abs(out - slopes).max() > 0.06  # and another α is seen


def test_the_energy_of_lda_is_that_of_the_enumeration(corpus):
    model = LDA(**corpus, topics=2, alpha=0.4)
    theta = 3.0 * np.random.default_rng(1).standard_normal(model.dim)  # topics that differ, so that α matters
    from sgmcmc.priors import energy

    exact = exact_energy(model, theta, np.array([0, 1, 2])) + energy(model.prior, theta).sum()
    assert model.energy(theta, particles=200_000) == pytest.approx(exact, abs=0.01)
    wrong = LDA(**corpus, topics=2, alpha=0.1)
    assert abs(wrong.energy(theta, particles=200_000) - exact) > 0.2


def test_the_gradient_is_a_function_of_its_arguments(corpus):
    model = LDA(**corpus, topics=3)
    theta = np.random.default_rng(2).standard_normal(model.dim)
    first, again, other = np.zeros(15), np.zeros(15), np.zeros(15)
    model.gradient_sum(theta, np.array([0, 1]), first)
    pickle.loads(pickle.dumps(model)).gradient_sum(theta, np.array([0, 1]), again)
    model.gradient_sum(theta + 1e-9, np.array([0, 1]), other)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)  # fresh random numbers where anything changed


def test_the_prior_makes_topics_dirichlet():
    # Sampled without any document that matters: φ of three words under Dirichlet(2), by a long SGHMC run on the prior alone.
    prior = sg.priors.LogGamma(2.0)
    from sgmcmc.priors import energy, slope

    x = np.linspace(-3.0, 2.0, 7)
    numeric = (energy(prior, x + 1e-6) - energy(prior, x - 1e-6)) / 2e-6
    np.testing.assert_allclose(slope(prior, x), numeric, rtol=1e-8, atol=1e-8)
    grid = np.linspace(-30.0, 6.0, 20001)
    density = np.exp(-energy(prior, grid))
    assert density.sum() * (grid[1] - grid[0]) == pytest.approx(1.0, rel=1e-9)
    assert (density * np.exp(grid)).sum() * (grid[1] - grid[0]) == pytest.approx(2.0, rel=1e-6)  # a Gamma(2) has mean 2


def test_halves_hold_every_token_once_and_completion_is_a_probability(corpus):
    model = LDA(**corpus, topics=3)
    seen, held = model.halves(seed=4)
    np.testing.assert_array_equal(seen + held, corpus["counts"])
    theta = np.random.default_rng(5).standard_normal(model.dim)
    p = model.completion(theta, [0, 1], seen, held)
    used = (held > 0) & (np.arange(5) < 4)
    assert ((p[used] > 0) & (p[used] < 1)).all()
    assert (p[~used] == 0).all()


def test_collapsed_gibbs_finds_topics_that_are_there():
    rng = np.random.default_rng(0)
    documents = [rng.choice([0, 1, 2] if d % 2 else [3, 4, 5], 30) for d in range(40)]
    counts = np.array([np.bincount(d, minlength=6) for d in documents])
    indptr = np.concatenate(([0], np.cumsum((counts > 0).sum(axis=1))))
    model = LDA(indptr, np.nonzero(counts)[1], counts[counts > 0], words=6, topics=2)
    phi = np.mean(model.collapsed_gibbs(60, seed=1), axis=0)
    split = np.sort(phi[:, :3].sum(axis=1))
    assert split[0] < 0.02
    assert split[1] > 0.98


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indptr": [0, 2, 2, 5]}, "indptr must rise from 0"),
        ({"counts": [2, 1, 1, 2]}, "indices and counts must have"),
        ({"words": 4}, "indices must be words from 0 to 3"),
        ({"documents": [7]}, "documents must be row numbers from 0 to 2"),
        ({"alpha": 0.0}, "alpha"),
        ({"topics": 0}, "topics"),
    ],
)
def test_a_corpus_that_does_not_fit_together_is_refused(corpus, change, message):
    with pytest.raises(ValueError, match=message):
        LDA(**(corpus | change))
