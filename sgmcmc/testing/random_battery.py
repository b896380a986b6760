"""A battery for random words: does a sequence of 32-bit words look like coin tosses?

The tests are those of Knuth, Marsaglia and TestU01 (L'Ecuyer and Simard 2007, https://doi.org/10.1145/1268776.1268777), each
a function of an array of uint32 that returns p-values, one per statistic. Both tails count: counts that fit too well are
as wrong as counts that do not fit. They are smoke tests of 10⁶ to 10⁷ words; Philox itself passes all of TestU01.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["BATTERY", "avalanche", "battery"]

Words = NDArray[np.uint32]
BIRTHDAYS = 4096  # per year of 2^32 days: 4 equal spacings expected
_WEIGHTS = np.arange(33)


def _two_sided(sf: float, cdf: float) -> float:
    return float(min(1.0, 2.0 * min(sf, cdf)))


def _chi_square(counts: NDArray[np.int64], expected: NDArray[np.float64]) -> float:
    """p of counts against expected ones, all of them large."""
    from scipy.stats import chi2

    value = float(((counts - expected) ** 2 / expected).sum())
    return _two_sided(chi2.sf(value, counts.size - 1), chi2.cdf(value, counts.size - 1))


def _poisson(count: int, mean: float) -> float:
    from scipy.stats import poisson

    return _two_sided(poisson.sf(count - 1, mean), poisson.cdf(count, mean))


def _coins(heads: NDArray[np.int64], tosses: int) -> float:
    """p of the numbers of heads of some fair coins, all together."""
    from scipy.stats import chi2

    value = float(((heads - 0.5 * tosses) ** 2).sum() / (0.25 * tosses))
    return _two_sided(chi2.sf(value, heads.size), chi2.cdf(value, heads.size))


def _ones(w: Words) -> NDArray[np.int64]:
    """How many words have bit b set, for each b."""
    return np.array([int(((w >> np.uint32(b)) & np.uint32(1)).sum(dtype=np.int64)) for b in range(32)])


def _binomial() -> NDArray[np.float64]:
    from scipy.stats import binom

    law: NDArray[np.float64] = binom.pmf(_WEIGHTS, 32, 0.5)
    return law


def monobit(w: Words) -> list[float]:
    """As many ones as zeros, in all words together."""
    return [_coins(np.array([int(np.bitwise_count(w).sum(dtype=np.int64))]), 32 * w.size)]


def bit_frequency(w: Words) -> list[float]:
    """As many ones as zeros, at each of the 32 positions."""
    return [_coins(_ones(w), w.size)]


def runs(w: Words) -> list[float]:
    """How often a bit differs from the next one in its word, and from its own in the next word."""
    inside = int(np.bitwise_count((w ^ (w >> np.uint32(1))) & np.uint32(0x7FFFFFFF)).sum(dtype=np.int64))
    return [_coins(np.array([inside]), 31 * w.size), _coins(_ones(w[1:] ^ w[:-1]), w.size - 1)]


def serial_pairs(w: Words) -> list[float]:
    """Pairs of neighbouring words, by their first and by their last byte: 65,536 cells."""
    pairs = w[: w.size // 2 * 2].reshape(-1, 2).astype(np.int64)
    expected = np.full(65536, len(pairs) / 65536)
    cells = (256 * (pairs >> 24)[:, 0] + (pairs >> 24)[:, 1], 256 * (pairs & 255)[:, 0] + (pairs & 255)[:, 1])
    return [_chi_square(np.bincount(c, minlength=65536), expected) for c in cells]


def birthday_spacings(w: Words) -> list[float]:
    """Equal distances between birthdays in a year of 2^32 days (Marsaglia): Poisson with mean m³/(4·2^32) a year."""
    years = np.sort(w[: w.size // BIRTHDAYS * BIRTHDAYS].reshape(-1, BIRTHDAYS), axis=1)
    spacings = np.sort(np.diff(years, axis=1), axis=1)
    equal = int((np.diff(spacings, axis=1) == 0).sum())
    return [_poisson(equal, len(years) * BIRTHDAYS**3 / 2.0**34)]


def gap(w: Words) -> list[float]:
    """How long until a word falls again into the lowest sixteenth: a geometric law."""
    visits = np.flatnonzero(w < np.uint32(1 << 28))
    gaps = np.minimum(np.diff(visits) - 1, 80)
    share = (15 / 16) ** np.arange(81)
    share[:80] /= 16
    return [_chi_square(np.bincount(gaps, minlength=81), gaps.size * share)]


def matrix_rank(w: Words) -> list[float]:
    """The rank of 32 × 32 matrices of bits: full with probability 0.289."""
    rows = w[: min(w.size, 1 << 19) // 32 * 32].reshape(-1, 32).copy()  # 16,384 matrices are enough
    n, rank = len(rows), np.zeros(len(rows), np.int64)
    each, position = np.arange(n), np.arange(32)
    for b in range(32):
        bit = np.uint32(1 << b)
        has = ((rows & bit) != 0) & (position >= rank[:, None])
        found, pivot = has.any(axis=1), has.argmax(axis=1)
        top = np.minimum(rank, 31)
        chosen = rows[each, pivot]
        # bring the pivot to the top of what is left, and clear its bit from the rows below
        rows[each, pivot] = np.where(found, rows[each, top], rows[each, pivot])
        rows[each, top] = np.where(found, chosen, rows[each, top])
        clear = found[:, None] & ((rows & bit) != 0) & (position > top[:, None])
        rows ^= np.where(clear, chosen[:, None], np.uint32(0))
        rank += found
    law = np.array([_rank_law(r) for r in range(33)])
    counts = np.bincount(rank, minlength=33)
    pooled = np.array([counts[:30].sum(), *counts[30:]])
    return [_chi_square(pooled, n * np.array([law[:30].sum(), *law[30:]]))]


def _rank_law(r: int) -> float:
    """The probability that a random 32 × 32 matrix of bits has rank r."""
    p = 2.0 ** (r * (64 - r) - 1024)
    for i in range(r):
        p *= (1.0 - 2.0 ** (i - 32)) ** 2 / (1.0 - 2.0 ** (i - r))
    return p


def collision(w: Words) -> list[float]:
    """How many words fall into an urn that is taken, with 2^28 urns by the first and by the last bits."""
    urns = 2.0**28
    mean = w.size + urns * np.expm1(w.size * np.log1p(-1.0 / urns))
    taken = [int((np.diff(np.sort(u)) == 0).sum()) for u in (w >> np.uint32(4), w & np.uint32(2**28 - 1))]
    return [_poisson(count, float(mean)) for count in taken]


def hamming_weight(w: Words) -> list[float]:
    """The numbers of ones in neighbouring words, few, middling or many: independent. And in words four apart."""
    law = _binomial()
    share = np.array([law[:15].sum(), law[15:18].sum(), law[18:].sum()])
    classes = np.digitize(np.bitwise_count(w), (15, 18))
    expected = np.outer(share, share).ravel()
    found = []
    for lag in (1, 4):  # four words make an address
        first = classes[: classes.size // (2 * lag) * 2 * lag].reshape(-1, 2, lag)
        cells = (3 * first[:, 0] + first[:, 1]).ravel()
        found.append(_chi_square(np.bincount(cells, minlength=9), cells.size * expected))
    return found


def avalanche(w: Words) -> list[float]:
    """Words at neighbouring addresses differ in as many bits as two random words do: binomial."""
    first = w[: w.size // 8 * 8].reshape(-1, 2, 4)
    differ = np.bitwise_count(first[:, 0] ^ first[:, 1]).ravel()
    low, high = 5, 27  # what is rarer is pooled
    expected = differ.size * _binomial()
    counts = np.bincount(np.clip(differ, low, high), minlength=high + 1)[low:]
    pooled = np.concatenate(([expected[: low + 1].sum()], expected[low + 1 : high], [expected[high:].sum()]))
    return [_chi_square(counts, pooled)]


BATTERY: dict[str, Callable[[Words], list[float]]] = {
    "monobit": monobit,
    "bit frequency": bit_frequency,
    "runs": runs,
    "serial pairs": serial_pairs,
    "birthday spacings": birthday_spacings,
    "gap": gap,
    "matrix rank": matrix_rank,
    "collision": collision,
    "Hamming weight": hamming_weight,
    "avalanche": avalanche,
}


def battery(words: Words) -> dict[str, list[float]]:
    """The p-values of every test, by its name; at least 2^20 words make every expected count large enough."""
    w = np.ascontiguousarray(words, dtype=np.uint32)
    if w.ndim != 1 or w.size < 1 << 18:
        raise ValueError(f"words has shape {w.shape}; give a row of at least {1 << 18}, better {1 << 20}")
    return {name: test(w) for name, test in BATTERY.items()}
