"""Recurrent networks with LSTM layers: each step of a sequence is predicted from all those before it.

    p(x_1, …, x_T | θ) = Π_t p(x_t | h_t),    h_t = LSTM(x_{t−1}, h_{t−1}),    h_0 = 0

Music: x_t is a frame of 0/1 keys, each a Bernoulli variable with logit h·V + d. Language: x_t is a word, with probabilities
softmax(h·V + d), and goes in as its row of the embedding. The gradient is back-propagation through time, written out
(`lstm_gates`, `lstm_ends`, `lstm_pass`), in the precision of θ. A row of the data is a sequence, or a piece of it of at most
`length` steps.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sgmcmc import checks
from sgmcmc.models.lstm_pass import Keys, Pass, Words
from sgmcmc.parameters import Parameters
from sgmcmc.potentials import PythonPotential
from sgmcmc.priors import Gaussian, require_prior

__all__ = ["LSTM"]

WINDOW = 64  # steps that are predicted at a time, the state being carried on


class LSTM(PythonPotential):
    """A recurrent network with LSTM layers, for music (0/1 keys) or language (words).

    Parameters
    ----------
    x : array (frames, keys) of 0 and 1, or a text as a vector of word numbers from 0 on
    offsets : array of int, optional
        Sequence i is x[offsets[i]:offsets[i + 1]]; None for one sequence. The first word of a text is seen, not
        predicted.
    hidden, layers : int, units per layer, and layers
    length : int, optional
        Sequences are cut into rows of at most so many steps, each of which starts from the state zero; None: whole
        ones.
    words, embedding : int
        Of language, the size of the vocabulary (None: the largest number plus one) and of a word's embedding.
    prior : NamedTuple, of every parameter
    threads : int
        How many threads share the work of a gradient, beside those that BLAS has of its own.

    Examples
    --------
    >>> model = sg.models.LSTM(np.eye(3, dtype=int), hidden=2)
    >>> model.predict(np.zeros(model.dim))
    array([0.125, 0.125, 0.125])
    """

    x: NDArray[Any]
    offsets: NDArray[np.int64]
    hidden: int
    layers: int
    length: int | None
    words: int | None
    embedding: int
    threads: int
    _own: threading.local
    _sequence: Keys | Words
    _begins: NDArray[np.int64]
    _stops: NDArray[np.int64]
    _fresh: NDArray[np.bool_]

    def __new__(
        cls,
        x: ArrayLike,
        offsets: ArrayLike | None = None,
        hidden: int = 200,
        layers: int = 1,
        length: int | None = None,
        words: int | None = None,
        embedding: int = 300,
        prior: Any = Gaussian(1.0),  # noqa: B008  (an immutable value)
        threads: int = 1,
    ) -> Any:
        self = object.__new__(cls)
        self.x = _values(x)
        self.offsets = _offsets(offsets, self.x)
        self.hidden, self.layers = checks.integer("hidden", hidden, 1), checks.integer("layers", layers, 1, 100)
        self.length = None if length is None else checks.integer("length", length, 1)
        self.words, self.embedding = _vocabulary(self.x, words), checks.integer("embedding", embedding, 1)
        self.prior, self.threads = require_prior(prior), checks.integer("threads", threads, 1)
        self._own = threading.local()  # the memory of a pass: chains may run on threads of their own
        self._sequence = Words(self.x) if self.words is not None else _keys(self.x)
        self._cut()
        self.n_rows = self._begins.size
        self.dim = sum(int(np.prod(shape)) for shape in self.parameters.values())
        self.data, self.energy_function, self.gradient_function, self._fills = (), None, self.gradient_sum, True
        return self

    def _cut(self) -> None:
        """The rows: where each begins and stops, and whether nothing is before it. Pieces of a sequence are of equal length."""
        begins, stops, fresh = [], [], []
        first = 0 if self.words is None else 1
        for low, high in zip(self.offsets[:-1] + first, self.offsets[1:], strict=True):
            count = 1 if self.length is None else -(-int(high - low) // self.length)
            bounds = low + np.arange(count + 1) * int(high - low) // count
            if self.words is not None and self.length is not None:  # windows of a text: all full but the last
                bounds = np.minimum(low + np.arange(count + 1) * self.length, high)
            begins.append(bounds[:-1])
            stops.append(bounds[1:])
            fresh.append((np.arange(count) == 0) & (first == 0))
        self._begins, self._stops, self._fresh = (np.concatenate(a) for a in (begins, stops, fresh))

    # ---- the pieces of θ -----------------------------------------------------------------------------------------------

    @property
    def parameters(self) -> Parameters:
        """The embedding of words; of each layer weights and bias (input, forget, cell, output gates); output weights and bias."""
        size = self.x.shape[1] if self.words is None else self.embedding
        outputs = self.x.shape[1] if self.words is None else self.words
        shapes: dict[str, tuple[int, ...]] = {} if self.words is None else {"embedding": (self.words, size)}
        for layer in range(self.layers):
            shapes[f"input_{layer}"] = (size if layer == 0 else self.hidden, 4 * self.hidden)
            shapes[f"recurrent_{layer}"] = (self.hidden, 4 * self.hidden)
            shapes[f"bias_{layer}"] = (4 * self.hidden,)
        return shapes | {"output": (self.hidden, outputs), "output_bias": (outputs,)}

    def split(self, theta: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """The pieces by name, as views of θ."""
        found, first = {}, 0
        for name, shape in self.parameters.items():
            size = int(np.prod(shape))
            found[name] = theta[first : first + size].reshape(shape)
            first += size
        return found

    def init(self, seed: int = 0) -> NDArray[np.float64]:
        """A start: weights of variance one over the units they come from, embeddings of 0.1², forget gates open (bias 1), output
        biases at the frequencies of the data."""
        rng, theta = np.random.default_rng(seed), np.zeros(self.dim)
        for name, part in self.split(theta).items():
            if part.ndim == 2:
                scale = 0.1 if name == "embedding" else 1.0 / np.sqrt(part.shape[0])
                part[:] = scale * rng.standard_normal(part.shape)
            elif name.startswith("bias"):
                part[self.hidden : 2 * self.hidden] = 1.0
            else:
                part[:] = self._frequencies()
        return theta

    def _frequencies(self) -> NDArray[np.float64]:
        """Logits of how often each key or word occurs, smoothed by half an occurrence."""
        if self.words is not None:
            counts = np.bincount(self.x, minlength=self.words) + 0.5
            return np.asarray(np.log(counts / counts.sum()))
        share = (self.x.sum(axis=0) + 0.5) / (len(self.x) + 1.0)
        return np.asarray(np.log(share / (1.0 - share)))

    # ---- what samplers and people ask ----------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """How many frames or words are predicted."""
        return int((self._stops - self._begins).sum())

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The steps of each row."""
        return np.asarray(self._stops - self._begins)

    def _pass(self, dtype: Any) -> Pass:
        """The memory of this thread."""
        kept = getattr(self._own, "kept", None)
        if kept is None or kept.dtype != dtype:
            kept = self._own.kept = Pass(dtype, self.threads)
        return kept

    def loss_and_gradient(self, theta: NDArray[Any], rows: NDArray[np.int64], out: NDArray[Any]) -> float:
        """out = Σ_{rows} ∇(−log p(x | θ)), and that sum itself, which costs nothing more."""
        parts, own = self.split(theta), self._pass(theta.dtype)
        own.place(self._begins[rows], self._stops[rows], self._fresh[rows])
        own.forward(parts, self._sequence, self.layers)
        loss = float(own.losses(parts, self._sequence, True).sum(dtype=np.float64))
        own.backward(parts, self.split(out), self._sequence, self.layers)
        return loss

    def gradient_sum(self, theta: NDArray[Any], rows: NDArray[np.int64], out: NDArray[Any]) -> None:
        """out = Σ_{i in rows} ∇(−log p(x_i | θ))."""
        self.loss_and_gradient(theta, rows, out)

    def losses(self, theta: NDArray[Any], batch: int = 32, keys: NDArray[Any] | None = None) -> NDArray[np.float64]:
        """−log p of every step given those before it, at one θ, in its precision, in the order of the data.

        Whole sequences are predicted from their beginning, rows of at most `length` steps each from the state zero. For music,
        p of each key, (frames, keys), is added to `keys` if that is given.
        """
        parts, own = self.split(np.ascontiguousarray(theta)), self._pass(theta.dtype)
        found = np.zeros(len(self.x))
        for rows in self._batches(batch):
            begins, stops, fresh = self._begins[rows], self._stops[rows], self._fresh[rows]
            for first in range(0, int((stops - begins).max()), WINDOW):
                low = np.minimum(begins + first, stops)
                own.place(low, np.minimum(low + WINDOW, stops), fresh if first == 0 else np.zeros_like(fresh))
                own.forward(parts, self._sequence, self.layers, carry=first > 0)
                own.keep_state()
                there = own.now >= 0
                found[own.now[there]] = own.losses(parts, self._sequence, keys is not None)[there]
                if keys is not None:  # the slopes are p − x
                    keys[own.now[there]] += (
                        own.take("logits", *there.shape, keys.shape[1])[there] + self.x[own.now[there]]
                    )
        return found if self.words is None else np.delete(found, self.offsets[:-1])

    def _batches(self, batch: int) -> Iterator[NDArray[np.int64]]:
        """Rows of like length together."""
        order = np.argsort(-(self._stops - self._begins), kind="stable")
        for first in range(0, order.size, batch):
            yield order[first : first + batch]

    def energy(self, theta: ArrayLike) -> float:
        """U(θ) over all rows."""
        from sgmcmc.potentials.wrapped import _Prior, _prior_energy

        at = np.ascontiguousarray(theta, dtype=np.float64)
        return float(self.losses(at).sum()) + float(_prior_energy(_Prior(self.prior), at))

    def predict(self, theta: ArrayLike) -> NDArray[np.float64]:
        """p(x_t | all before) of every step, at one θ or averaged over draws of shape (…, dim)."""
        draws = np.asarray(theta).reshape(-1, self.dim)
        total = np.zeros(self.steps)
        for draw in draws:
            total += np.exp(-self.losses(np.ascontiguousarray(draw)))
        return total / len(draws)

    def on(self, x: ArrayLike, offsets: ArrayLike | None = None, length: int | None = None) -> Any:
        """The same network on other data: to test it, for instance."""
        return LSTM(x, offsets, self.hidden, self.layers, length, self.words, self.embedding, self.prior, self.threads)

    def facts(self) -> dict[str, Any]:
        """All that its draws depend on, by name: what a checkpoint knows it by."""
        names = ("x", "offsets", "hidden", "layers", "length", "words", "embedding", "prior")
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        kind = f"{self.x.shape[1]} keys" if self.words is None else f"{self.words} words, embedding={self.embedding}"
        shape = f"{self.n_rows} rows, {self.steps} steps, {kind}, hidden={self.hidden}, layers={self.layers}"
        return f"LSTM({shape}, prior={self.prior!r})"

    def __reduce__(self) -> Any:
        given = (self.x, self.offsets, self.hidden, self.layers, self.length, self.words, self.embedding, self.prior)
        return LSTM, (*given, self.threads)


# ------------------------------------------------------------------------------------------------------------ the data


def _values(x: ArrayLike) -> NDArray[Any]:
    values = checks.any_array("x", x)
    if values.ndim == 1 and values.size > 1:
        words = checks.whole_numbers("x", values)
        if words.min() < 0:
            raise ValueError(f"x has the word {words.min()}; give numbers of words from 0 on")
        return np.ascontiguousarray(words)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(
            f"x has shape {values.shape}; give frames as (frames, keys), or a text of at least 2 words as a vector"
        )
    if values.dtype.kind not in "fiub" or not np.isin(values, (0, 1)).all():
        raise ValueError("x holds something other than 0 and 1; give 1 for a key that sounds, 0 for one that does not")
    return np.ascontiguousarray(values, dtype=np.uint8)


def _offsets(offsets: ArrayLike | None, x: NDArray[Any]) -> NDArray[np.int64]:
    if offsets is None:
        return np.array([0, len(x)])
    found, least = checks.whole_numbers("offsets", offsets), 1 if x.ndim == 2 else 2
    if found.ndim != 1 or found.size < 2 or found[0] != 0 or found[-1] != len(x) or (np.diff(found) < least).any():
        raise ValueError(
            f"offsets must rise from 0 to {len(x)}, the length of x, by at least {least}; sequence i is "
            "x[offsets[i]:offsets[i + 1]]"
        )
    return found


def _vocabulary(x: NDArray[Any], words: int | None) -> int | None:
    if x.ndim == 2:
        if words is not None:
            raise ValueError(f"words={checks.show(words)} is for language, and x has frames of keys; leave words=None")
        return None
    return int(x.max()) + 1 if words is None else checks.integer("words", words, int(x.max()) + 1)


def _keys(frames: NDArray[np.uint8]) -> Keys:
    return Keys(frames, np.nonzero(frames)[1], np.concatenate(([0], np.cumsum(frames.sum(axis=1, dtype=np.int64)))))
