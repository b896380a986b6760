"""Minibatches: which rows of the data a step looks at.

An open function of (seed, chain, step) alone: no state is carried from step to step, so a run that is cut into chunks, or
resumed, chooses the same rows. `memory` is scratch space that lives as long as a chunk.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc import checks
from sgmcmc.compiler.field_docs import documented
from sgmcmc.compiler.open_functions import LOOP, implements, open_function
from sgmcmc.rng import MINIBATCH, fill_integers, fill_integers_of_steps, integer_below

__all__ = [
    "Blocks",
    "EpochShuffle",
    "FullData",
    "WithReplacement",
    "WithoutReplacement",
    "as_minibatch",
    "choose",
    "coming",
]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


class FullData(NamedTuple):
    """Every row, every step: the exact gradient."""


class WithReplacement(NamedTuple):
    """`size` rows drawn independently; a row may come twice. The cheapest."""

    size: int


class WithoutReplacement(NamedTuple):
    """`size` different rows, every set equally likely (Floyd's algorithm)."""

    size: int


class EpochShuffle(NamedTuple):
    """The data in random order, `size` rows at a time; every floor(N/size) steps a new order. Rows left over wait for it."""

    size: int


@documented
class Blocks(NamedTuple):
    """Rows for data larger than memory: shuffled rows of a window of a few blocks, until it is used up.

    A window is `window` blocks of `block` consecutive rows each. Every block begins at a row chosen independently and
    uniformly from all N (the data are a circle: after the last row comes the first), so every row has the same chance
    in every step, and the gradient is unbiased. The rows of a window are put in random order and dealt out, `size` per
    step; what does not fill a last batch is dropped. A step reads rows that lie in few places, and of a window every
    row that is read is read once.

    The noise of one step is that of drawing without replacement. Steps of one window share their blocks: if
    neighbouring rows are alike (a sorted file), their noises are correlated, and the chain sees up to `block` times the
    variance over a window. In rows whose order says nothing the noise over a window is that of "replacement". Shuffle a
    sorted file once.

    Parameters
    ----------
    block, window : int
        Rows of a block, blocks of a window.
    size : int
        The batch size; `sample` fills it in.

    Examples
    --------
    >>> sg.minibatch.as_minibatch(32, sg.minibatch.Blocks(block=100, window=4), n_rows=1000)
    Blocks(block=100, window=4, size=32)
    """

    block: int = 1024
    window: int = 64
    size: int = 0  # the batch size; `sample` fills it in


AHEAD = 1024  # rows that are chosen at once, if a step has few

Minibatch = FullData | WithReplacement | WithoutReplacement | EpochShuffle | Blocks
_KINDS: dict[str, Any] = {
    "replacement": WithReplacement,
    "no-replacement": WithoutReplacement,
    "shuffle": EpochShuffle,
    "blocks": Blocks,
}


def as_minibatch(batch_size: int | None, kind: str | Blocks, n_rows: int) -> Minibatch:
    """Returns the minibatch rule for `batch_size` of `n_rows` rows.

    Parameters
    ----------
    batch_size : int or None, for the full gradient
    kind : "replacement", "no-replacement", "shuffle", "blocks" or Blocks
    n_rows : int

    Returns
    -------
    FullData, WithReplacement, WithoutReplacement, EpochShuffle or Blocks

    Examples
    --------
    >>> sg.minibatch.as_minibatch(32, "shuffle", n_rows=1000)
    EpochShuffle(size=32)
    """
    if not isinstance(kind, Blocks):
        checks.one_of("minibatch", kind, tuple(_KINDS))
    if batch_size is None:
        return FullData()
    if n_rows == 0:
        raise ValueError(
            f"batch_size={checks.show(batch_size)} was given, but the model has no data rows; leave batch_size out"
        )
    size = checks.integer("batch_size", batch_size, 1)
    if size > n_rows:
        raise ValueError(
            f"batch_size={size} is larger than the data set of {n_rows} rows; "
            f"choose 1 to {n_rows}, or None for the full gradient"
        )
    if isinstance(kind, Blocks) or kind == "blocks":
        return _blocks(kind if isinstance(kind, Blocks) else None, size, n_rows)
    return _KINDS[kind](size)  # type: ignore[no-any-return]


def _blocks(given: Blocks | None, size: int, n_rows: int) -> Blocks:
    """Blocks that fit the data; the default ones shrink with a small data set, given ones are refused."""
    if given is None:
        block = min(Blocks().block, n_rows)
        return Blocks(block, max(Blocks().window, -(-size // block)), size)
    block = checks.integer("Blocks.block", given.block, 1, n_rows)
    window = checks.integer("Blocks.window", given.window, 1)
    if block * window < size:
        raise ValueError(f"batch_size={size} does not fit into {given!r}; give block·window of at least batch_size")
    return Blocks(block, window, size)


def rows_per_step(minibatch: Any, n_rows: int) -> int:
    """How many rows a step looks at; 0 without data."""
    return n_rows if isinstance(minibatch, FullData) else int(minibatch.size)


def variance_share(minibatch: Any, n_rows: int, relaxation: float) -> float:
    """The variance that a slow variable sees of a batch's gradient, by that of as many independent rows; 0 for all rows.

    `relaxation` is the rate of that variable per step. Different rows have 1 − n/N of it (of the scatter between two halves
    of the batch, which estimates that of the data with N − 1). The noises of an epoch add up to 0, so a variable that is slow
    beside the epoch of E steps sees less: with R = E·relaxation, 1 − (2/R)(1 − (1 − e^(−R))/R) of it, about R/3 where R is
    small. (The spectrum of a noise whose mean over epochs is taken out, weighted with the variable's own.)
    """
    if isinstance(minibatch, FullData):
        return 0.0
    if isinstance(minibatch, WithReplacement | Blocks):
        return 1.0
    different = 1.0 - minibatch.size / n_rows if minibatch.size > 1 else 1.0
    if isinstance(minibatch, WithoutReplacement):
        return different
    R = max(1e-4, (n_rows // minibatch.size) * relaxation)  # below, the formula is round-off
    return float(different * (1.0 - 2.0 / R * (1.0 + math.expm1(-R) / R)))


def row_buffer(minibatch: Any, n_rows: int) -> NDArray[np.int64]:
    """Where the chosen rows go; for the full data set it holds them all already."""
    return np.arange(n_rows) if isinstance(minibatch, FullData) else np.empty(minibatch.size, np.int64)


def memory(minibatch: Any, n_rows: int) -> NDArray[np.int64]:
    """Scratch space: the last step a row was chosen in, or the order of the epoch or window (its number stands at the end)."""
    if isinstance(minibatch, Blocks):
        return np.full(minibatch.block * minibatch.window + 1, -1, np.int64)
    needed = n_rows if isinstance(minibatch, WithoutReplacement) else n_rows + 1
    kept = isinstance(minibatch, WithoutReplacement | EpochShuffle)
    return np.full(needed if kept else 0, -1, np.int64)


def lookahead(minibatch: Any, n_rows: int) -> NDArray[np.int64]:
    """`memory`, or room for the rows of many steps to come: those of one step are too few to fill a processor's vectors."""
    if not isinstance(minibatch, WithReplacement) or minibatch.size > AHEAD // 8 or n_rows > 2**32:
        return memory(minibatch, n_rows)
    return np.full(AHEAD // minibatch.size * minibatch.size + 1, -1, np.int64)


def forget(minibatch: Any, memory: NDArray[np.int64]) -> None:
    """Nothing in `memory` holds any more, be it of this chain or of another."""
    if isinstance(minibatch, WithoutReplacement):
        memory.fill(-1)
    elif memory.size > 0:
        memory[-1] = -1  # the number of what is there


@open_function(inline=True, fastmath=LOOP)
def choose(minibatch, n_rows, stream, step, memory, rows):
    """Write the rows of this step into `rows`."""


@implements(choose, FullData)
def _(minibatch, n_rows, stream, step, memory, rows):
    return None


@implements(choose, WithReplacement)
def _(minibatch, n_rows, stream, step, memory, rows):
    last = memory.size - 1
    if last < rows.size:
        fill_integers(rows, n_rows, stream, step, MINIBATCH)
        return
    ahead = step - memory[last]  # at the end stands the first step whose rows are there, or −1
    if memory[last] < 0 or ahead < 0 or (ahead + 1) * rows.size > last:
        fill_integers_of_steps(memory[:last], rows.size, n_rows, stream, step, MINIBATCH)
        memory[last], ahead = step, step - step
    for i in range(rows.size):
        rows[i] = memory[ahead * rows.size + i]


@open_function(inline=True, fastmath=LOOP)
def coming(minibatch, step, memory, count):
    """Where in `memory` the `count` rows of the next step stand, from … to; 0, 0 if they are not known yet."""


@implements(coming)
def _(minibatch, step, memory, count):
    return 0, 0


@implements(coming, WithReplacement)
def _(minibatch, step, memory, count):
    last = memory.size - 1
    if last < count:
        return 0, 0
    first = (step + 1 - memory[last]) * count
    return min(first, last), min(first + count, last)


@implements(choose, WithReplacement, device=True)
def _(minibatch, n_rows, stream, step, memory, rows):
    fill_integers(rows, n_rows, stream, step, MINIBATCH)


@implements(choose, WithoutReplacement)
def _(minibatch, n_rows, stream, step, memory, rows):
    # Floyd: for j = N−n … N−1 take a row from 0 … j, or j itself if that row is in the set already.
    for i in range(rows.size):
        j = n_rows - rows.size + i
        row = integer_below(j + 1, stream, step, i, MINIBATCH)
        if (
            i > 0 and memory[row] == step
        ):  # the first is in no set yet, though the one row of a step may be chosen again
            row = j
        memory[row] = step
        rows[i] = row


@implements(choose, EpochShuffle)
def _(minibatch, n_rows, stream, step, memory, rows):
    per_epoch = n_rows // rows.size
    epoch = step // per_epoch
    if memory[n_rows] != epoch:
        for i in range(n_rows):
            memory[i] = i
        for i in range(n_rows - 1):  # Fisher and Yates
            j = i + integer_below(n_rows - i, stream, epoch, i, MINIBATCH)
            memory[i], memory[j] = memory[j], memory[i]
        memory[n_rows] = epoch
    first = (step - epoch * per_epoch) * rows.size
    for i in range(rows.size):
        rows[i] = memory[first + i]


@implements(choose, Blocks)
def _(minibatch, n_rows, stream, step, memory, rows):
    pool = minibatch.block * minibatch.window
    per_window = pool // rows.size
    number = step // per_window
    if memory[pool] != number:
        # Blocks first, in the addresses 0 … window − 1 of this number; then Fisher and Yates, in the ones behind them.
        for b in range(minibatch.window):
            first = integer_below(n_rows, stream, number, b, MINIBATCH)
            for i in range(minibatch.block):
                row = first + i
                memory[b * minibatch.block + i] = row - n_rows if row >= n_rows else row
        for i in range(pool - 1):
            j = i + integer_below(pool - i, stream, number, minibatch.window + i, MINIBATCH)
            memory[i], memory[j] = memory[j], memory[i]
        memory[pool] = number
    first = (step - number * per_window) * rows.size
    for i in range(rows.size):
        rows[i] = memory[first + i]
