"""Minibatch schemes: all rows, independent rows, different rows, epochs in random order, blocks of a large file."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.compiler.field_docs import documented
from sgmcmc.compiler.open_functions import implements
from sgmcmc.minibatch.interface import choose, coming, forget, lookahead, memory, rows_per_step, variance_share
from sgmcmc.rng import MINIBATCH, fill_integers, fill_integers_of_steps, integer_below

__all__ = ["Blocks", "EpochShuffle", "FullData", "WithReplacement", "WithoutReplacement", "row_buffer"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

AHEAD = 1024  # rows that are chosen at once, if a step has few


class FullData(NamedTuple):
    """Every row, every step: the exact gradient.

    Examples
    --------
    >>> sg.minibatch.as_minibatch(None, "replacement", n_rows=1000)
    FullData()
    """


@documented
class WithReplacement(NamedTuple):
    """Rows drawn independently; a row may come twice. The cheapest.

    Parameters
    ----------
    size : int, the rows of a step

    Examples
    --------
    >>> sg.minibatch.as_minibatch(32, "replacement", n_rows=1000)
    WithReplacement(size=32)
    """

    size: int


@documented
class WithoutReplacement(NamedTuple):
    """Different rows, every set equally likely (Floyd's algorithm).

    Parameters
    ----------
    size : int, the rows of a step

    Examples
    --------
    >>> sg.minibatch.as_minibatch(32, "no-replacement", n_rows=1000)
    WithoutReplacement(size=32)
    """

    size: int


@documented
class EpochShuffle(NamedTuple):
    """The data in random order, `size` rows at a time; every floor(N/size) steps a new order.

    Rows left over wait for it.

    Parameters
    ----------
    size : int, the rows of a step

    Examples
    --------
    >>> sg.minibatch.as_minibatch(32, "shuffle", n_rows=1000)
    EpochShuffle(size=32)
    """

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


@implements(rows_per_step, FullData)
def _(minibatch, n_rows):
    return n_rows


@implements(variance_share, FullData)
def _(minibatch, n_rows, relaxation):
    return 0.0


@implements(variance_share, WithoutReplacement)
def _(minibatch, n_rows, relaxation):
    # Of the scatter between two halves of the batch, which estimates that of the data with N − 1.
    return 1.0 - minibatch.size / n_rows if minibatch.size > 1 else 1.0


@implements(variance_share, EpochShuffle)
def _(minibatch, n_rows, relaxation):
    # The noises of an epoch add up to 0, so a variable that is slow beside the epoch of E steps sees less: with R =
    # E·relaxation, 1 − (2/R)(1 − (1 − e^(−R))/R) of it, about R/3 where R is small. (The spectrum of a noise whose mean over
    # epochs is taken out, weighted with the variable's own.)
    different = 1.0 - minibatch.size / n_rows if minibatch.size > 1 else 1.0
    R = max(1e-4, (n_rows // minibatch.size) * relaxation)  # below, the formula is round-off
    return float(different * (1.0 - 2.0 / R * (1.0 + math.expm1(-R) / R)))


def row_buffer(minibatch: Any, n_rows: int) -> NDArray[np.int64]:
    """Returns the array for the chosen rows; for the full data set it holds them all already.

    Parameters
    ----------
    minibatch : NamedTuple
    n_rows : int

    Returns
    -------
    array of int

    Examples
    --------
    >>> sg.minibatch.row_buffer(sg.minibatch.FullData(), 3)
    array([0, 1, 2])
    """
    return (
        np.arange(n_rows) if isinstance(minibatch, FullData) else np.empty(rows_per_step(minibatch, n_rows), np.int64)
    )


@implements(memory, WithoutReplacement)
def _(minibatch, n_rows):
    return np.full(n_rows, -1, np.int64)  # the last step a row was chosen in


@implements(memory, EpochShuffle)
def _(minibatch, n_rows):
    return np.full(n_rows + 1, -1, np.int64)  # the order of the epoch, and its number


@implements(memory, Blocks)
def _(minibatch, n_rows):
    return np.full(minibatch.block * minibatch.window + 1, -1, np.int64)  # the order of the window, and its number


@implements(lookahead, WithReplacement)
def _(minibatch, n_rows):
    if minibatch.size > AHEAD // 8 or n_rows > 2**32:
        return memory(minibatch, n_rows)
    return np.full(AHEAD // minibatch.size * minibatch.size + 1, -1, np.int64)


def _forget_the_number(minibatch, memory):
    if memory.size > 0:
        memory[-1] = -1  # the number of what is there


for _scheme in (WithReplacement, EpochShuffle, Blocks):
    implements(forget, _scheme)(_forget_the_number)


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
