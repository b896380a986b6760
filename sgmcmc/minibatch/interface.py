"""What a minibatch scheme can do: which rows of the data a step looks at.

A scheme is an open function of (seed, chain, step) alone: no state is carried from step to step, so a run that is cut into
chunks, or resumed, chooses the same rows. A scheme of your own is a NamedTuple with a field `size`, the rows of a step, and an
implementation of `choose`; the rest has a fallback. `memory` is scratch space that lives as long as a chunk.
"""

from __future__ import annotations

import numpy as np

from sgmcmc.compiler.open_functions import LOOP, implements, open_function

__all__ = ["choose", "coming", "forget", "lookahead", "memory", "rows_per_step", "variance_share"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@open_function(inline=True, fastmath=LOOP)
def choose(minibatch, n_rows, stream, step, memory, rows):
    """Write the rows of this step into `rows`.

    Parameters
    ----------
    minibatch : NamedTuple
    n_rows : int, of the data
    stream : Stream, of `sgmcmc.rng.stream(seed, chain)`
    step : int
    memory : array of int, of `memory(minibatch, n_rows)`
    rows : array of int

    Examples
    --------
    >>> from sgmcmc.rng import stream
    >>> scheme, rows = sg.minibatch.WithReplacement(size=3), np.empty(3, np.int64)
    >>> sg.minibatch.choose(scheme, 1000, stream(1), 0, sg.minibatch.memory(scheme, 1000), rows)
    >>> bool((rows < 1000).all())
    True
    """


@open_function(inline=True, fastmath=LOOP)
def coming(minibatch, step, memory, count):
    """Where in `memory` the `count` rows of the next step stand, from … to; 0, 0 if they are not known yet."""


@open_function
def rows_per_step(minibatch, n_rows):
    """How many rows a step looks at; 0 without data. Called in plain Python."""


@open_function
def variance_share(minibatch, n_rows, relaxation):
    """The variance that a slow variable sees of a batch's gradient, by that of as many independent rows; 0 for all rows.

    `relaxation` is the rate of that variable per step. A scheme of your own is taken for independent rows, unless it says
    otherwise here. Called in plain Python.
    """


@open_function
def memory(minibatch, n_rows):
    """Scratch space that a scheme keeps from step to step of a chunk; none, unless it says so. Called in plain Python."""


@open_function
def lookahead(minibatch, n_rows):
    """`memory`, or room for the rows of many steps to come: those of one step are too few to fill a processor's vectors."""


@open_function
def forget(minibatch, memory):
    """Nothing in `memory` holds any more, be it of this chain or of another. Called in plain Python."""


@implements(rows_per_step)
def _(minibatch, n_rows):
    return int(minibatch.size)


@implements(variance_share)
def _(minibatch, n_rows, relaxation):
    return 1.0


@implements(memory)
def _(minibatch, n_rows):
    return np.full(0, -1, np.int64)


@implements(lookahead)
def _(minibatch, n_rows):
    return memory(minibatch, n_rows)


@implements(forget)
def _(minibatch, memory):
    memory.fill(-1)


@implements(coming)
def _(minibatch, step, memory, count):
    return 0, 0
