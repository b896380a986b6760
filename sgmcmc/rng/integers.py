"""Integers below a bound: draws that may need more than one attempt, each attempt at an address of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgmcmc.compiler.intrinsics import ROOM, room
from sgmcmc.compiler.open_functions import leaf, loop
from sgmcmc.rng.philox4x32 import words

__all__ = ["fill_integers", "fill_integers_of_steps", "integer_below"]

_LOW, _32, _ALL = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE, _TWO_32 = np.uint64(1), np.uint64(1 << 32)
_LAST = 255  # attempts have 8 bits; the chance to need more is below 2^-128 in everything here


@loop
def fill_integers(out: Any, n: Any, stream: Any, step: Any, purpose: Any) -> Any:
    """out[i] = a whole number from 0 to n - 1, all equally likely, for n up to 2^62.

    Lemire (2019, https://doi.org/10.1145/3230636): the high word of (random word times n), rejected where the low word
    falls among the few values that would be too many. One word per number if n <= 2^32, else two.
    """
    if n <= 4294967296:
        _fill_narrow(out, np.uint64(n), stream, step, purpose)
    else:
        _fill_wide(out, np.uint64(n), stream, step, purpose)


@loop
def _fill_narrow(out: Any, n: Any, stream: Any, step: Any, purpose: Any) -> Any:
    surplus = (_TWO_32 - n) % n  # 2^32 mod n
    for q in range(out.size // 4):  # vectorises; what is rejected is left as -1
        w0, w1, w2, w3 = words(stream, step, q, purpose, 0)
        out[4 * q] = _narrow(w0, n, surplus)
        out[4 * q + 1] = _narrow(w1, n, surplus)
        out[4 * q + 2] = _narrow(w2, n, surplus)
        out[4 * q + 3] = _narrow(w3, n, surplus)
    for i in range(out.size):
        if out[i] < 0 or i >= 4 * (out.size // 4):
            out[i] = _narrow_at(i, n, surplus, stream, step, purpose)


@loop
def fill_integers_of_steps(out: Any, size: Any, n: Any, stream: Any, step: Any, purpose: Any) -> Any:
    """What `fill_integers` puts into `size` places in each of the steps step, step + 1, …, one after the other; n <= 2^32."""
    m, steps, word = np.uint64(n), out.size // size, np.uint32(0)
    surplus = (_TWO_32 - m) % m
    w0, w1, w2, w3 = room(word), room(word), room(word), room(word)
    for low in range(0, steps, ROOM):
        count, start = min(ROOM, steps - low), np.uint64(step) + np.uint64(low)
        for c in range(0, size, 4):
            _words_of_steps(count, stream, start, c // 4, purpose, w0, w1, w2, w3)
            for i in range(count):
                place = (low + i) * size + c
                out[place] = _narrow(w0[i], m, surplus)
                if c + 1 < size:
                    out[place + 1] = _narrow(w1[i], m, surplus)
                if c + 2 < size:
                    out[place + 2] = _narrow(w2[i], m, surplus)
                if c + 3 < size:
                    out[place + 3] = _narrow(w3[i], m, surplus)
    rejected = np.int64(0)
    for k in range(steps * size):
        rejected += np.int64(out[k] < 0)
    if rejected > 0:
        for k in range(steps * size):
            if out[k] < 0:
                out[k] = _narrow_at(k % size, m, surplus, stream, step + k // size, purpose)


@loop(apart=True, inline=True)
def _words_of_steps(
    count: Any, stream: Any, step: Any, index: Any, purpose: Any, w0: Any, w1: Any, w2: Any, w3: Any
) -> Any:
    for i in range(count):
        w0[i], w1[i], w2[i], w3[i] = words(stream, step + np.uint64(i), index, purpose, 0)


@leaf
def _narrow(word: Any, n: Any, surplus: Any) -> Any:
    product = np.uint64(word) * n
    return np.int64(product >> _32) if (product & _LOW) >= surplus else np.int64(-1)


@loop
def _narrow_at(i: Any, n: Any, surplus: Any, stream: Any, step: Any, purpose: Any) -> Any:
    value, attempt = np.int64(-1), 0
    while value < 0:
        w0, w1, w2, w3 = words(stream, step, i // 4, purpose, attempt)
        word = (w0 if i % 4 == 0 else w1) if i % 4 < 2 else (w2 if i % 4 == 2 else w3)
        value = _narrow(word, n, surplus if attempt < _LAST else _ONE - _ONE)
        attempt += 1
    return value


@loop
def integer_below(n: Any, stream: Any, step: Any, index: Any, purpose: Any) -> Any:
    """One whole number from 0 to n - 1: the one that `fill_integers` puts at `index`."""
    m = np.uint64(n)
    if n <= 4294967296:
        return _narrow_at(index, m, (_TWO_32 - m) % m, stream, step, purpose)
    return _wide_at(index, m, (_ALL - m + _ONE) % m, stream, step, purpose)


@loop
def _fill_wide(out: Any, n: Any, stream: Any, step: Any, purpose: Any) -> Any:
    surplus = (_ALL - n + _ONE) % n  # 2^64 mod n
    for i in range(out.size):
        out[i] = _wide_at(i, n, surplus, stream, step, purpose)


@loop
def _wide_at(i: Any, n: Any, surplus: Any, stream: Any, step: Any, purpose: Any) -> Any:
    value, attempt = np.int64(-1), 0
    while value < 0:
        w0, w1, w2, w3 = words(stream, step, i // 2, purpose, attempt)
        high, low = (w0, w1) if i % 2 == 0 else (w2, w3)
        value = _wide(high, low, n, surplus if attempt < _LAST else _ONE - _ONE)
        attempt += 1
    return value


@leaf
def _wide(high: Any, low: Any, n: Any, surplus: Any) -> Any:
    """The same with 64 random bits: their product with n has 128 bits, made of four products of halves."""
    a1, a0, b1, b0 = np.uint64(high), np.uint64(low), n >> _32, n & _LOW
    middle = ((a0 * b0) >> _32) + ((a0 * b1) & _LOW) + ((a1 * b0) & _LOW)
    top = a1 * b1 + ((a0 * b1) >> _32) + ((a1 * b0) >> _32) + (middle >> _32)
    bottom = ((middle & _LOW) << _32) | ((a0 * b0) & _LOW)
    return np.int64(top) if bottom >= surplus else np.int64(-1)
