"""Forward and back through all layers of a recurrent network, in memory that is taken once and used again.

The large products are BLAS's, over all steps and sequences at a time; only those with the recurrent weights wait for each other,
step by step, and are in `lstm_gates`. A pass is made for one shape of the network and one precision; θ and the gradient come as
the views that `LSTM.split` gives.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.models import lstm_ends as ends
from sgmcmc.models.lstm_gates import FOUR, backward_steps, forward_steps
from sgmcmc.threads import share

__all__ = ["Keys", "Pass", "Words"]

Array = NDArray[Any]


class Keys(NamedTuple):
    """Frames of music, and the keys of each: frame n sounds keys[ends[n]:ends[n + 1]]."""

    frames: NDArray[np.uint8]
    keys: NDArray[np.int64]
    ends: NDArray[np.int64]


class Words(NamedTuple):
    """A text as numbers of words."""

    words: NDArray[np.int64]


class Pass:
    """The memory of a pass, and what is done in it. Not for two threads at once."""

    def __init__(self, dtype: Any, threads: int = 1) -> None:
        self.dtype, self.threads = np.dtype(dtype), threads
        self._flat: dict[str, Array] = {}
        self.steps, self.width = 0, 0

    def take(self, name: str, *shape: int, dtype: Any = None) -> Array:
        """Memory of this name and shape, with whatever it holds; new only if there was never so much of it."""
        size = math.prod(shape)
        flat = self._flat.get(name)
        if flat is None or flat.size < size:
            flat = self._flat[name] = np.zeros(size, self.dtype if dtype is None else dtype)
        return flat[:size].reshape(shape)

    def _rows(self, name: str, columns: int) -> Array:
        """The same memory as a matrix with one row per step and sequence."""
        return self.take(name, self.steps * self.width, columns)

    def _share(self, work: Any, size: int) -> None:
        """work(low, high) for all sequences, by fours."""
        parts = -(-size // FOUR)
        share(lambda low, high: work(FOUR * low, min(FOUR * high, size)), parts, self.threads)

    # ---- forward -------------------------------------------------------------------------------------------------------

    def place(self, begins: Array, stops: Array, fresh: Array) -> None:
        """The steps from begins[b] to stops[b] of each sequence; `fresh` where the first has nothing before it."""
        self.steps, self.width = int((stops - begins).max()), begins.size
        self.now = self.take("now", self.steps, self.width, dtype=np.int64)
        self.before = self.take("before", self.steps, self.width, dtype=np.int64)
        ends.fill_steps(begins, stops, fresh, self.now, self.before)

    def forward(self, parts: dict[str, Array], data: Keys | Words, layers: int, carry: bool = False) -> None:
        """States and logits, from the state zero, or with `carry` from where the last pass (of as many sequences) ended."""
        for layer in range(layers):
            R = parts[f"recurrent_{layer}"]
            units = R.shape[0]
            gates = self.take(f"gates_{layer}", self.steps, self.width, 4 * units)
            self._project(parts, data, layer, gates)
            h, c = (self._states(f"{kind}_{layer}", units, carry) for kind in "hc")
            squashed = self.take(f"squashed_{layer}", self.steps, self.width, units)
            room = self.take("room", self.width, 4 * units)
            self._share(
                lambda low, high, a=(gates, R, h, c, squashed, room): forward_steps(*a, low, high),
                self.width,
            )
        V = parts["output"]
        np.dot(self._into(layers, V.shape[0]), V, out=self._rows("logits", V.shape[1]))

    def _states(self, name: str, units: int, carry: bool) -> Array:
        """Room for the states of all steps, [0] being the one before the first."""
        last = self.take(f"last_{name}", self.width, units)
        if carry:
            last[:] = self.take(name, self._steps_before + 1, self.width, units)[-1]
        else:
            last[:] = 0.0
        states = self.take(name, self.steps + 1, self.width, units)
        states[0] = last
        return states

    _steps_before = 0

    def keep_state(self) -> None:
        """Let the next pass carry on from here."""
        self._steps_before = self.steps

    def _project(self, parts: dict[str, Array], data: Keys | Words, layer: int, gates: Array) -> None:
        """gates = x W + b, x being what goes into the layer."""
        W, b = parts[f"input_{layer}"], parts[f"bias_{layer}"]
        if layer == 0 and isinstance(data, Keys):
            ends.project_keys(data.keys, data.ends, self.before, W, b, gates)
            return
        if layer == 0 and isinstance(data, Words):
            x = self.take("x", self.steps, self.width, W.shape[0])
            ends.pick_words(data.words, self.before, parts["embedding"], x)
        flat = gates.reshape(-1, W.shape[1])
        np.dot(self._into(layer, W.shape[0]), W, out=flat)
        flat += b

    def _into(self, layer: int, columns: int) -> Array:
        """What went into a layer, one row per step and sequence."""
        if layer == 0:
            return self._rows("x", columns)
        return self.take(f"h_{layer - 1}", self.steps + 1, self.width, columns)[1:].reshape(-1, columns)

    def losses(self, parts: dict[str, Array], data: Keys | Words, slopes_too: bool) -> Array:
        """−log p of every step, 0 where there is none; with `slopes_too` the logits become their slopes."""
        bias, found = parts["output_bias"], self.take("losses", self.steps, self.width)
        logits = self.take("logits", self.steps, self.width, bias.size)
        if isinstance(data, Keys):
            room = self.take("frame", bias.size)
            ends.bernoulli(data.frames, self.now, bias, logits, room, found, slopes_too)
            return found
        lanes = self.take("lanes", self.threads, ends.LANES)

        def work(low: int, high: int) -> None:
            own = lanes[low * self.threads // found.size]
            ends.softmax(data.words, self.now, bias, logits, own, found, slopes_too, low, high)

        share(work, found.size, self.threads)
        return found

    # ---- back ----------------------------------------------------------------------------------------------------------

    def backward(self, parts: dict[str, Array], out: dict[str, Array], data: Keys | Words, layers: int) -> None:
        """The gradient of the sum of all losses, into `out`, from the slopes that `losses` left."""
        V = parts["output"]
        units, top = V.shape[0], self._into(layers, V.shape[0])
        logits, slopes = self._rows("logits", V.shape[1]), self._rows("slopes", units)
        np.dot(top.T, logits, out=out["output"])
        ends.column_sums(logits, out["output_bias"])
        np.dot(logits, V.T, out=slopes)
        for layer in range(layers - 1, -1, -1):
            slopes = self._through_time(parts, layer, slopes)
            gates = self._weights(out, layer)
            W = parts[f"input_{layer}"]
            if layer == 0 and isinstance(data, Keys):
                out["input_0"][:] = 0.0
                ends.add_key_slopes(
                    data.keys, data.ends, self.before, gates.reshape(self.steps, self.width, -1), out["input_0"]
                )
                return
            np.dot(self._into(layer, W.shape[0]).T, gates, out=out[f"input_{layer}"])
            slopes = self._rows(f"below_{layer}", W.shape[0])
            np.dot(gates, W.T, out=slopes)
        if isinstance(data, Words):
            out["embedding"][:] = 0.0
            below = slopes.reshape(self.steps, self.width, -1)
            ends.add_word_slopes(data.words, self.before, below, out["embedding"])

    def _through_time(self, parts: dict[str, Array], layer: int, slopes: Array) -> Array:
        """Back through the steps of a layer: the slopes of its pre-activations take the place of its gates."""
        R = parts[f"recurrent_{layer}"]
        units, shape = R.shape[0], (self.steps, self.width)
        gates = self.take(f"gates_{layer}", *shape, 4 * units)
        c = self.take(f"c_{layer}", self.steps + 1, self.width, units)
        squashed = self.take(f"squashed_{layer}", *shape, units)
        cell_slopes, room = self.take("cell_slopes", self.width, units), self.take("room_back", self.width, units)
        cell_slopes[:] = 0.0
        arguments = gates, R, slopes.reshape(*shape, units), c, squashed, cell_slopes, room
        self._share(lambda low, high: backward_steps(*arguments, low, high), self.width)
        return slopes

    def _weights(self, out: dict[str, Array], layer: int) -> Array:
        """The gradient of the recurrent weights and the bias. Returns the slopes of the pre-activations, as rows."""
        units = out[f"recurrent_{layer}"].shape[0]
        gates = self._rows(f"gates_{layer}", 4 * units)
        h = self.take(f"h_{layer}", self.steps + 1, self.width, units)[:-1].reshape(-1, units)
        np.dot(h.T, gates, out=out[f"recurrent_{layer}"])
        ends.column_sums(gates, out[f"bias_{layer}"])
        return gates
