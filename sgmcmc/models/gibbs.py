"""Gibbs sampling of topics: the kernels of latent Dirichlet allocation. Random numbers are addressed by sweep and token."""

from __future__ import annotations

import numpy as np

from sgmcmc.compiler.kernels import kernel
from sgmcmc.compiler.precision import zero
from sgmcmc.elementary import exp
from sgmcmc.rng import USER, Stream, words

__all__ = ["add_gradient", "collapsed_sweep", "evidence", "predict", "softmax"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

_UNIT = 2.0**-32


@kernel
def softmax(theta, phi):
    """φ_k = softmax(θ_k), row by row."""
    for k in range(theta.shape[0]):
        top = theta[k, 0]
        for w in range(theta.shape[1]):
            top = max(top, theta[k, w])
        total = zero(top)
        for w in range(theta.shape[1]):
            phi[k, w] = exp(theta[k, w] - top)
            total += phi[k, w]
        for w in range(theta.shape[1]):
            phi[k, w] /= total


@kernel
def pick(weights, own, step, n):
    """A topic with probability ∝ weights, by the random number of token n in this sweep."""
    total = 0.0
    for k in range(weights.size):
        total += weights[k]
    w0, _w1, _w2, _w3 = words(own, step, n, USER, 0)
    left = (w0 + 0.5) * _UNIT * total
    k = 0
    while k < weights.size - 1 and left > weights[k]:
        left -= weights[k]
        k += 1
    return k


@kernel
def sweep(columns, tokens, topics, in_topic, weights, alpha, own, step, begin):
    """One Gibbs sweep over the topics of a document's tokens; begin: the tokens have no topics yet."""
    K = in_topic.size
    for n in range(tokens.size):
        if not begin:
            in_topic[topics[n]] -= 1.0
        word = columns[tokens[n]]
        for k in range(K):
            weights[k] = (in_topic[k] + alpha) * word[k]
        k = pick(weights, own, step, n)
        topics[n] = k
        in_topic[k] += 1.0


@kernel
def sweep_document(phi, indices, counts, alpha, burn, sweeps, own, buffers, expected):
    """Sweeps over one document: `expected` (words × topics) becomes the mean number of tokens of each word in each topic."""
    columns, tokens, topics, in_topic, weights = buffers
    size = 0
    for u in range(indices.size):
        for k in range(phi.shape[0]):
            columns[u, k] = phi[k, indices[u]]
            expected[u, k] = 0.0
        for _ in range(counts[u]):
            tokens[size] = u
            size += 1
    in_topic[:] = 0.0
    used = tokens[:size]
    for s in range(burn + sweeps):
        sweep(columns, used, topics, in_topic, weights, alpha, own, s, s == 0)
        if s >= burn:
            for n in range(size):
                expected[used[n], topics[n]] += 1.0 / sweeps


@kernel
def add_gradient(phi, indptr, indices, counts, rows, alpha, burn, sweeps, own, buffers, expected, totals, out):
    """out[k, w] += Σ_d E[n_dk] φ_kw − E[n_dkw]."""
    totals[:] = 0.0
    for i in range(rows.size):
        low, high = indptr[rows[i]], indptr[rows[i] + 1]
        mine = Stream(own.key0, own.key1, np.uint32(i))
        sweep_document(phi, indices[low:high], counts[low:high], alpha, burn, sweeps, mine, buffers, expected)
        for u in range(high - low):
            for k in range(totals.size):
                out[k, indices[low + u]] -= expected[u, k]
                totals[k] += expected[u, k]
    for k in range(totals.size):
        for w in range(phi.shape[1]):
            out[k, w] += totals[k] * phi[k, w]


@kernel
def evidence(phi, indptr, indices, counts, rows, alpha, particles, own, in_topic, weights, logs):
    """Σ_d log p̂(w_d), by particles that see one token after the other: p(w_n | w_<n, z_<n) in turn, then z_n is drawn."""
    K, result = phi.shape[0], 0.0
    for i in range(rows.size):
        low, high = indptr[rows[i]], indptr[rows[i] + 1]
        for q in range(particles):
            mine = Stream(own.key0, own.key1, np.uint32(i))
            in_topic[:] = 0.0
            logs[q], n = 0.0, 0
            for u in range(low, high):
                for _ in range(counts[u]):
                    total = 0.0
                    for k in range(K):
                        weights[k] = (in_topic[k] + alpha) * phi[k, indices[u]]
                        total += weights[k]
                    logs[q] += np.log(total / (n + K * alpha))
                    in_topic[pick(weights, mine, q, n)] += 1.0
                    n += 1
        top = logs[:particles].max()
        result += top + np.log(np.exp(logs[:particles] - top).mean())
    return result


@kernel
def predict(phi, indptr, indices, seen, held, rows, alpha, burn, sweeps, own, buffers, expected, out):
    """out[i] = p(word i) for the held-out words of the rows, the topics being inferred from the words seen."""
    K = phi.shape[0]
    for i in range(rows.size):
        low, high = indptr[rows[i]], indptr[rows[i] + 1]
        mine = Stream(own.key0, own.key1, np.uint32(i))
        sweep_document(phi, indices[low:high], seen[low:high], alpha, burn, sweeps, mine, buffers, expected)
        shares = buffers[4]
        total = 0.0
        for k in range(K):
            shares[k] = alpha
            for u in range(high - low):
                shares[k] += expected[u, k]
            total += shares[k]
        for u in range(low, high):
            if held[u] > 0:
                value = 0.0
                for k in range(K):
                    value += shares[k] / total * phi[k, indices[u]]
                out[u] += value


@kernel
def collapsed_sweep(document, word, topic, of_document, of_word, totals, weights, alpha, beta, own, step):
    """One sweep of collapsed Gibbs sampling over all tokens."""
    K, smooth = totals.size, beta * of_word.shape[0]
    for n in range(word.size):
        mine, its = of_document[document[n]], of_word[word[n]]
        old = topic[n]
        mine[old] -= 1.0
        its[old] -= 1.0
        totals[old] -= 1.0
        for k in range(K):
            weights[k] = (mine[k] + alpha) * (its[k] + beta) / (totals[k] + smooth)
        k = pick(weights, own, step, n)
        topic[n] = k
        mine[k] += 1.0
        its[k] += 1.0
        totals[k] += 1.0
