"""Philox: an address (seed, chain, step, index, purpose, attempt) leads to four words of 32 random bits.

The generator is Philox4x32-10 (Salmon, Moraes, Dror and Shaw 2011, https://doi.org/10.1145/2063384.2063405) with

    key     = (low half of the seed, high half of the seed)
    counter = (index, low half of the step, chain, purpose | attempt << 8 | high part of the step << 16)

where index and chain are below 2^32, the step below 2^48, purpose and attempt below 2^8: no two addresses share a
counter and no two seeds a key. Integers are computed as uint64 and cut back, so that plain Python gives the same bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sgmcmc import checks
from sgmcmc.compiler.open_functions import implements, leaf, open_function

__all__ = [
    "GRADIENT_NOISE",
    "INIT",
    "MINIBATCH",
    "MOMENTUM",
    "NOISE_P",
    "NOISE_THETA",
    "NOISE_XI",
    "THERMOSTAT",
    "USER",
    "Lanes",
    "Row",
    "Stream",
    "philox",
    "stream",
    "words",
]

# What a number is for. Two uses in one step never share a purpose.
NOISE_P, NOISE_THETA, NOISE_XI, GRADIENT_NOISE, MOMENTUM, THERMOSTAT, MINIBATCH, INIT, USER = range(1, 10)

_LOW = np.uint64(0xFFFFFFFF)
_8, _16, _32 = np.uint64(8), np.uint64(16), np.uint64(32)
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)


class Stream(NamedTuple):
    """Where one chain finds its random numbers; `stream` makes one."""

    key0: np.uint32
    key1: np.uint32
    chain: np.uint32


class Lanes(NamedTuple):
    """Where chains that are packed side by side find theirs: lane i % width belongs to one chain, row i // width is an index.

    `chains` has the number of each lane's chain; of these the first `live` are wanted, the rest only fill up the vectors. The
    width is a power of two, 2^shift.
    """

    key0: np.uint32
    key1: np.uint32
    chains: Any
    shift: np.int64
    live: np.int64


class Row(NamedTuple):
    """One row of `Lanes`: where their chains find the numbers of one index, whatever index is asked for; that is the lane."""

    lanes: Lanes
    number: np.int64


def stream(seed: int, chain: int = 0) -> Stream:
    """The random numbers of a chain, for a seed of up to 64 bits."""
    seed = checks.integer("seed", seed, 0, 2**64 - 1)
    chain = checks.integer("chain", chain, 0, 2**32 - 1)
    return Stream(np.uint32(seed & 0xFFFFFFFF), np.uint32(seed >> 32), np.uint32(chain))


@leaf
def philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
    """Philox4x32-10: four 32-bit words of a counter and a key.

    Words live in 64-bit lanes: the product of two is then one AVX2 instruction, without shuffles. That instruction reads the low
    halves of its lanes only, so what stands in the high ones is cut off where words are multiplied, for nothing, and at the end.
    """
    c0, c1, c2, c3 = np.uint64(c0), np.uint64(c1), np.uint64(c2), np.uint64(c3)
    k0, k1 = np.uint64(k0), np.uint64(k1)
    for _ in range(10):
        a, b = _MULTIPLIERS[0] * (c0 & _LOW), _MULTIPLIERS[1] * (c2 & _LOW)
        c0, c1, c2, c3 = (b >> _32) ^ c1 ^ k0, b, (a >> _32) ^ c3 ^ k1, a
        k0, k1 = (k0 + _WEYL[0]) & _LOW, (k1 + _WEYL[1]) & _LOW
    return np.uint32(c0 & _LOW), np.uint32(c1 & _LOW), np.uint32(c2 & _LOW), np.uint32(c3 & _LOW)


@implements(philox, device=True)
def _(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
    # A GPU multiplies words of 32 bits: 20 wide products in all, where 64-bit lanes would take three times as many.
    c0, c1, c2, c3 = np.uint32(c0), np.uint32(c1), np.uint32(c2), np.uint32(c3)
    k0, k1 = np.uint32(k0), np.uint32(k1)
    for _ in range(10):
        a, b = _MULTIPLIERS[0] * np.uint64(c0), _MULTIPLIERS[1] * np.uint64(c2)
        c0, c2 = (
            np.uint32(c1 ^ np.uint32(k0 ^ np.uint32(b >> _32))),
            np.uint32(c3 ^ np.uint32(k1 ^ np.uint32(a >> _32))),
        )
        c1, c3 = np.uint32(b), np.uint32(a)
        k0, k1 = np.uint32((np.uint64(k0) + _WEYL[0]) & _LOW), np.uint32((np.uint64(k1) + _WEYL[1]) & _LOW)
    return c0, c1, c2, c3


@leaf
def _words_at(key0: Any, key1: Any, chain: Any, step: Any, index: Any, purpose: Any, attempt: Any) -> Any:
    t = np.uint64(step)
    kind = np.uint64(purpose) | (np.uint64(attempt) << _8) | ((t >> _32) << _16)
    return philox(np.uint64(index), t & _LOW, chain, kind, key0, key1)


@open_function
def words(stream: Any, step: Any, index: Any, purpose: Any, attempt: Any) -> Any:
    """The four words at an address. With `Lanes` the index is that of an element of a packed array."""


@implements(words, Stream)
def _(stream: Any, step: Any, index: Any, purpose: Any, attempt: Any) -> Any:
    return _words_at(stream.key0, stream.key1, stream.chain, step, index, purpose, attempt)


@implements(words, Lanes)
def _(stream: Any, step: Any, index: Any, purpose: Any, attempt: Any) -> Any:
    i, shift = np.uint64(index), np.uint64(stream.shift)
    lane = i & np.uint64(stream.chains.size - 1)
    return _words_at(stream.key0, stream.key1, stream.chains[lane], step, i >> shift, purpose, attempt)


@implements(words, Row)
def _(stream: Any, step: Any, index: Any, purpose: Any, attempt: Any) -> Any:
    lanes = stream.lanes
    return _words_at(lanes.key0, lanes.key1, lanes.chains[index], step, stream.number, purpose, attempt)
