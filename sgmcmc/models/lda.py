"""Latent Dirichlet allocation with the topics as free parameters: words from topics, topics of a document by Gibbs sampling.

    w ~ Σ_k π_dk φ_kw,    φ_k = softmax(θ_k),    π_d ~ Dirichlet(α),    φ_k ~ Dirichlet(β)

θ (topics × words) is the expanded form of Patterson and Teh (2013), on the scale of logarithms: φ_k is Dirichlet(β) if e^θ_kw
is Gamma(β, 1), that is −log p(θ) = Σ e^θ − βθ. The gradient of −log p(w_d | θ) is, by Fisher's identity, the posterior mean over
the topics z of the words of n_k φ_kw − n_kw; it is estimated by Gibbs sweeps over z with π_d summed out.

The random numbers of the sweeps have an address too: the key is a digest of θ and of the rows, so that a gradient is a function
of its arguments, and runs are reproducible.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sgmcmc import checks
from sgmcmc.models import gibbs
from sgmcmc.parameters import Parameters
from sgmcmc.potentials import PythonPotential
from sgmcmc.priors import LogGamma
from sgmcmc.rng import stream

__all__ = ["LDA"]


class LDA(PythonPotential):
    """Topics of a corpus, by gradients from minibatches of documents.

    Parameters
    ----------
    indptr, indices, counts : array of int
        Word counts of the documents, as rows of a sparse matrix.
    words : int
        Size of the vocabulary.
    topics : int
        How many topics.
    alpha, beta : float
        Of the Dirichlet priors of a document's topics and of a topic's words.
    burn, sweeps : int
        Gibbs sweeps per gradient that are thrown away, and that are averaged.
    documents : array of int, optional
        Which rows are used; None for all.

    Examples
    --------
    >>> model = sg.models.LDA(indptr=[0, 2, 3], indices=[0, 1, 2], counts=[1, 2, 1], words=3, topics=2)
    >>> model
    LDA(2 documents, 3 words, topics=2, alpha=0.1, beta=0.1)
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    counts: NDArray[np.int64]
    documents: NDArray[np.int64]
    words: int
    topics: int
    alpha: float
    beta: float
    burn: int
    sweeps: int

    def __new__(
        cls,
        indptr: ArrayLike,
        indices: ArrayLike,
        counts: ArrayLike,
        words: int,
        topics: int = 30,
        alpha: float = 0.1,
        beta: float = 0.1,
        burn: int = 5,
        sweeps: int = 5,
        documents: ArrayLike | None = None,
    ) -> Any:
        self = object.__new__(cls)
        self.indptr, self.indices, self.counts = (
            checks.whole_numbers(name, a) for name, a in (("indptr", indptr), ("indices", indices), ("counts", counts))
        )
        self.words = checks.integer("words", words, 1)
        _check_corpus(self.indptr, self.indices, self.counts, self.words)
        self.documents = (
            np.arange(self.indptr.size - 1) if documents is None else checks.whole_numbers("documents", documents)
        )
        if self.documents.size == 0 or self.documents.min() < 0 or self.documents.max() >= self.indptr.size - 1:
            raise ValueError(f"documents must be row numbers from 0 to {self.indptr.size - 2}, at least one")
        self.topics = checks.integer("topics", topics, 1)
        self.alpha = checks.number("alpha", alpha, 0.0, 1e300, open_low=True)
        self.beta = checks.number("beta", beta, 0.0, 1e300, open_low=True)
        self.burn, self.sweeps = checks.integer("burn", burn, 0), checks.integer("sweeps", sweeps, 1)
        self.prior, self.n_rows, self.dim = LogGamma(self.beta), self.documents.size, self.topics * self.words
        self.data, self.energy_function, self.gradient_function, self._fills = (), None, self.gradient_sum, True
        return self

    @property
    def parameters(self) -> Parameters:
        """One row of θ for each topic."""
        return {"theta": (self.topics, self.words)}

    def topic_words(self, theta: ArrayLike) -> NDArray[np.float64]:
        """φ, (topics, words), at one θ."""
        phi = np.empty((self.topics, self.words))
        gibbs.softmax(np.ascontiguousarray(theta, dtype=np.float64).reshape(phi.shape), phi)
        return phi

    def _buffers(self) -> tuple[Any, ...]:
        tokens = int(np.add.reduceat(self.counts, self.indptr[:-1]).max())
        unique = int(np.diff(self.indptr).max())
        K = self.topics
        return (
            np.empty((unique, K)),
            np.empty(tokens, np.int64),
            np.empty(tokens, np.int64),
            np.empty(K),
            np.empty(K),
        ), np.empty((unique, K))

    def gradient_sum(self, theta: NDArray[Any], rows: NDArray[np.int64], out: NDArray[Any]) -> None:
        """out = an unbiased-up-to-burn-in estimate of Σ_{d in rows} ∇(−log p(w_d | θ))."""
        phi = self.topic_words(theta)
        digest = zlib.crc32(np.ascontiguousarray(theta[:: max(1, theta.size // 256)]).tobytes())
        seed = (digest << 32) | zlib.crc32(np.ascontiguousarray(rows).tobytes())
        total = np.zeros((self.topics, self.words))
        buffers, expected = self._buffers()
        gibbs.add_gradient(
            phi,
            self.indptr,
            self.indices,
            self.counts,
            self.documents[rows],
            self.alpha,
            self.burn,
            self.sweeps,
            stream(seed),
            buffers,
            expected,
            np.empty(self.topics),
            total,
        )
        out[:] = total.ravel()

    def energy(self, theta: ArrayLike, particles: int = 64, seed: int = 0) -> float:
        """An estimate of U(θ) = −Σ_d log p(w_d | θ) − log p(θ).

        p(w_d | θ), a sum over all the topics of all tokens, is estimated without bias by particles that see the tokens one
        after the other; its logarithm is low by half the relative variance. The same seed gives the same random numbers at
        every θ, so that differences are known better than the values.
        """
        from sgmcmc.potentials.wrapped import _Prior, _prior_energy

        K, count = self.topics, checks.integer("particles", particles, 1)
        at = np.ascontiguousarray(theta, dtype=np.float64)
        found = gibbs.evidence(
            self.topic_words(at),
            self.indptr,
            self.indices,
            self.counts,
            self.documents,
            self.alpha,
            count,
            stream(seed),
            np.empty(K),
            np.empty(K),
            np.empty(count),
        )
        return float(_prior_energy(_Prior(self.prior), at)) - float(found)

    def completion(
        self, theta: ArrayLike, documents: ArrayLike, seen: NDArray[np.int64], held: NDArray[np.int64], sweeps: int = 20
    ) -> NDArray[np.float64]:
        """p(w) of the held-out words of documents whose words in `seen` are known, at one θ; see `halves`."""
        return self.completion_of(self.topic_words(theta), documents, seen, held, sweeps)

    def completion_of(
        self,
        phi: NDArray[np.float64],
        documents: ArrayLike,
        seen: NDArray[np.int64],
        held: NDArray[np.int64],
        sweeps: int = 20,
    ) -> NDArray[np.float64]:
        """`completion` for topics given by φ instead of θ."""
        out = np.zeros(self.indices.size)
        buffers, expected = self._buffers()
        rows = np.asarray(documents, dtype=np.int64)
        gibbs.predict(
            phi,
            self.indptr,
            self.indices,
            seen,
            held,
            rows,
            self.alpha,
            sweeps,
            sweeps,
            stream(1),
            buffers,
            expected,
            out,
        )
        return out

    def collapsed_gibbs(self, sweeps: int, seed: int = 0, keep: int = 20) -> list[NDArray[np.float64]]:
        """Gibbs sampling of the topics of all tokens with φ summed out too: `keep` values of φ from the second half of it."""
        document = np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr))
        used = np.isin(document, self.documents)
        where, word = (np.repeat(a[used], self.counts[used]) for a in (document, self.indices))
        _, own_document = np.unique(where, return_inverse=True)
        topic = np.random.default_rng(seed).integers(0, self.topics, word.size)
        of_document = np.zeros((self.documents.size, self.topics))
        of_word = np.zeros((self.words, self.topics))
        np.add.at(of_document, (own_document, topic), 1.0)
        np.add.at(of_word, (word, topic), 1.0)
        draws = []
        every = max(1, sweeps // 2 // keep)
        for s in range(sweeps):
            gibbs.collapsed_sweep(
                own_document,
                word,
                topic,
                of_document,
                of_word,
                of_word.sum(axis=0),
                np.empty(self.topics),
                self.alpha,
                self.beta,
                stream(seed),
                s,
            )
            if s >= sweeps // 2 and s % every == 0:
                counts = of_word.T + self.beta
                draws.append(np.ascontiguousarray(counts / counts.sum(axis=1, keepdims=True)))
        return draws

    def halves(self, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Every document's tokens dealt at random into two halves: counts of each word in the one and in the other."""
        rng = np.random.default_rng(seed)
        seen = np.zeros_like(self.counts)
        for low, high in zip(self.indptr[:-1], self.indptr[1:], strict=True):
            tokens = rng.permutation(np.repeat(np.arange(low, high), self.counts[low:high]))
            np.add.at(seen, tokens[: (tokens.size + 1) // 2], 1)
        return seen, self.counts - seen

    def __repr__(self) -> str:
        return f"LDA({self.n_rows} documents, {self.words} words, topics={self.topics}, alpha={self.alpha:g}, beta={self.beta:g})"

    def __reduce__(self) -> Any:
        return LDA, (
            self.indptr,
            self.indices,
            self.counts,
            self.words,
            self.topics,
            self.alpha,
            self.beta,
            self.burn,
            self.sweeps,
            self.documents,
        )


def _check_corpus(indptr: NDArray[np.int64], indices: NDArray[np.int64], counts: NDArray[np.int64], words: int) -> None:
    if indptr.ndim != 1 or indptr.size < 2 or indptr[0] != 0 or (np.diff(indptr) <= 0).any():
        raise ValueError("indptr must rise from 0, one entry more than there are documents, none of them empty")
    if indices.shape != (indptr[-1],) or counts.shape != indices.shape:
        raise ValueError(
            f"indices and counts must have indptr[-1] = {indptr[-1]} entries; they have {indices.size} and {counts.size}"
        )
    if indices.min() < 0 or indices.max() >= words or counts.min() < 1:
        raise ValueError(f"indices must be words from 0 to {words - 1}, and counts at least 1")
