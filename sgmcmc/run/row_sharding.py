"""Row sharding: the gradient of one chain as sums over shards of the rows, computed by several threads.

Every thread runs the whole chain on a state of its own: rows, noise and update are cheap, and equal bit for bit. Only the sums
over the rows are divided. A thread signals when its shards are summed, waits for the others, and adds all shards in their order;
so the draws do not depend on the number of threads. One thread adds the same shards.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.compiler.intrinsics import give_signal, give_way, read_signal, yield_address
from sgmcmc.compiler.open_functions import LOOP, implements, loop, open_function
from sgmcmc.compiler.precision import like
from sgmcmc.minibatch import rows_per_step
from sgmcmc.potentials import add_gradient, estimate, sums_in_parts, weigh

__all__ = [
    "SIGNAL_STRIDE",
    "RowShards",
    "Unsharded",
    "awaited",
    "contrast",
    "estimate_in_halves",
    "estimate_sharded",
    "first_half",
    "row_shards_for",
    "split_rows",
]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

MOST_SHARDS = 8
MIN_ROWS = 500  # per shard; amortises the cache misses at its start
MIN_NUMBERS = 1 << 15  # in a batch: at least 10 µs, and a signal takes 0.1 µs
SPINS = 2000  # reads of a signal, some microseconds, before the thread yields its core
SIGNAL_STRIDE = 8  # int64 per signal: one cache line


class Unsharded(NamedTuple):
    """One sum over all rows, one range of coordinates."""


class RowShards(NamedTuple):
    """The shards as one thread sees them; the arrays are shared by all threads."""

    sums: NDArray[Any]  # (2, shards, dim): of this step, and of the one before, which another thread may still read
    # Thread i, at i·SIGNAL_STRIDE: the step after the last one it has summed. Last entry: 1 stops all threads.
    signals: NDArray[np.int64]
    thread: int
    threads: int
    yielding: int  # address of `sched_yield`


def row_shards_for(model: Any, dim: int, minibatch: Any, n_rows: int, dtype: Any) -> Unsharded | RowShards:
    """The shards of a model's rows, if sharding pays: it depends on the model and the batch, never on the threads."""
    size = rows_per_step(minibatch, n_rows)
    if size * dim < MIN_NUMBERS or size < 2 or not sums_in_parts(model):
        return Unsharded()
    return split_rows(1, np.zeros((2, min(max(2, size // MIN_ROWS), MOST_SHARDS), dim), dtype))[0]


def split_rows(threads: int, sums: NDArray[Any]) -> list[RowShards]:
    """The same shards for each of `threads` threads."""
    signals = np.zeros((threads + 1) * SIGNAL_STRIDE, np.int64)
    return [RowShards(sums, signals, thread, threads, yield_address()) for thread in range(threads)]


@open_function(on=1, inline=True, fastmath=LOOP)
def estimate_sharded(shards, model, theta, rows, weight, step, out):
    """`estimate`, sharded or not."""


@implements(estimate_sharded, Unsharded)
def _(shards, model, theta, rows, weight, step, out):
    estimate(model, theta, rows, weight, out)


@implements(estimate_sharded, RowShards)
def _(shards, model, theta, rows, weight, step, out):
    add_shards(shards, model, theta, rows, step, out)
    weigh(model, theta, weight, out)


@loop(inline=True)
def add_shards(shards, model, theta, rows, step, out):
    """The sum over all rows, shard by shard."""
    sums, count = shards.sums[step % 2], shards.sums.shape[1]
    for k in range(shards.thread, count, shards.threads):
        own = sums[k]
        for j in range(own.size):
            own[j] = 0.0
        add_gradient(model, theta, rows[k * rows.size // count : (k + 1) * rows.size // count], own)
    together = await_others(shards, step)
    for j in range(out.size):
        out[j] = 0.0 if together else np.nan  # a stopped chain ends like a diverged one
    for k in range(count):
        own = sums[k]
        for j in range(out.size):
            out[j] += own[j]


@open_function
def first_half(shards, n):
    """How many of n rows are in the first of the two halves that a learning step compares: whole shards, if there are any."""


@implements(first_half, Unsharded)
def _(shards, n):
    return n // 2


@implements(first_half, RowShards)
def _(shards, n):
    count = shards.sums.shape[1]
    return (count // 2) * n // count


@open_function(on=1, inline=True, fastmath=LOOP)
def estimate_in_halves(shards, model, theta, rows, weight, factor, step, difference, out):
    """`estimate`, from two halves of the rows, n₁ and n₂ of n, and factor·(n/√(n₁n₂) Σ₁ − √(n₁/n₂) Σ) into `difference`.

    For factor = N/n its mean is 0 and its variance that of the gradient, if the rows are independent.
    """


@implements(estimate_in_halves, Unsharded)
def _(shards, model, theta, rows, weight, factor, step, difference, out):
    half = first_half(shards, rows.size)
    for j in range(out.size):
        out[j] = 0.0
    add_gradient(model, theta, rows[:half], out)
    for j in range(out.size):
        difference[j] = out[j]
    add_gradient(model, theta, rows[half:], out)
    contrast(difference, out, factor, half, rows.size)
    weigh(model, theta, weight, out)


@implements(estimate_in_halves, RowShards)
def _(shards, model, theta, rows, weight, factor, step, difference, out):
    count = shards.sums.shape[1]
    add_shards(shards, model, theta, rows, step, out)
    for j in range(out.size):
        difference[j] = 0.0
    for k in range(count // 2):
        own = shards.sums[step % 2, k]
        for j in range(out.size):
            difference[j] += own[j]
    contrast(difference, out, factor, first_half(shards, rows.size), rows.size)
    weigh(model, theta, weight, out)


@loop(inline=True)
def contrast(first, total, factor, half, n):
    """first ← factor·(n/√(n₁n₂) Σ₁ − √(n₁/n₂) Σ), where `first` is Σ₁, the sum over n₁ = half of n rows, and `total` is Σ."""
    one, all_rows = like(factor, half), like(factor, n)
    two = all_rows - one
    of_first, of_total = factor * all_rows / math.sqrt(one * two), factor * math.sqrt(one / two)
    for j in range(first.size):
        first[j] = of_first * first[j] - of_total * total[j]


@loop
def await_others(shards, step):
    """Signal that this thread is done, and wait for the others. Returns whether all are done; False if one stopped."""
    if shards.threads > 1:
        give_signal(shards.signals, shards.thread * SIGNAL_STRIDE, step + 1)
        for other in range(shards.threads):
            if not awaited(shards, other, step):
                return False
    return True


@loop
def awaited(threads, other, step):
    """Wait until another thread is done with a step. Returns whether it is; False if a thread stopped."""
    reads = 0
    while read_signal(threads.signals, other * SIGNAL_STRIDE) <= step:
        if read_signal(threads.signals, threads.threads * SIGNAL_STRIDE) != 0:
            return False
        reads += 1
        if reads > SPINS:
            give_way(threads.yielding)
    return True
