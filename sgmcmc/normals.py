"""Uniforms and normals: real numbers made of random words, and the fast fill of a block of normals.

Normals are Box and Muller's, with the angle as a fraction of a turn, so nothing needs an argument reduction. Four words
give four normals of single precision (|z| up to 6.66) or two of double (|z| up to 9.49), where the bits of a uniform end.
Coordinate c takes normal c % 4 of index c // 4 in single, normal c % 2 of index c // 2 in double precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sgmcmc.dispatch import LOOP, implements, leaf, loop, open_function
from sgmcmc.elementary import log_of_ordinary, sin_cos_eighth
from sgmcmc.philox import Lanes, Stream, words

__all__ = ["fill_normals", "four_normals", "normal_pair", "uniform", "unit"]

_10, _12, _32 = np.uint64(10), np.uint64(12), np.uint64(32)
_ONE, _TWO_52 = np.uint64(0x3FF0000000000000), np.uint64(0x4330000000000000)  # the bits of 1.0 and of 2^52
_BIT_1, _BIT_30, _BIT_31, _30_BITS = np.uint32(2), np.uint32(1 << 30), np.uint32(1 << 31), np.uint64((1 << 30) - 1)


@open_function
def _unit(like: Any, w0: Any, w1: Any) -> Any:
    """A number in (0, 1], as fine as the words are: good for a logarithm."""


@implements(_unit, np.float32)
def _(like: Any, w0: Any, w1: Any) -> Any:
    return (
        np.float32(np.uint32(w0 >> 1).view(np.int32)) * 4.656612873077393e-10 + 2.3283064365386963e-10
    )  # (n + ½)/2^31


@implements(_unit, np.float64)
def _(like: Any, w0: Any, w1: Any) -> Any:
    # AVX2 cannot turn 64-bit integers into floats; as the last bits of 2^52 + n the integer n is a float already.
    high = np.uint64(np.uint64(w0) | _TWO_52).view(np.float64) - 4503599627370496.0
    low = np.uint64(np.uint64(w1) | _TWO_52).view(np.float64) - 4503599627370495.5
    return high * 2.3283064365386963e-10 + low * 5.421010862427522e-20  # (n + ½)/2^64


@open_function
def _eighth(like: Any, w0: Any, w1: Any) -> Any:
    """A fraction of a turn in (-1/8, 1/8), from all bits but the first two of w0; symmetric about 0."""


@implements(_eighth, np.float32)
def _(like: Any, w0: Any, w1: Any) -> Any:
    return np.float32(np.uint32(np.uint32(w0 << 2) | _BIT_1).view(np.int32)) * 5.820766091346741e-11  # 2^-34


@implements(_eighth, np.float64)
def _(like: Any, w0: Any, w1: Any) -> Any:
    bits = (((np.uint64(w0) & _30_BITS) << _32) | np.uint64(w1)) >> _10
    return 0.25 * (np.uint64(bits | _ONE).view(np.float64) - 1.4999999999999998890)  # 3/2 - 2^-53


@leaf
def _box_muller(like: Any, r0: Any, r1: Any, a0: Any, a1: Any) -> Any:
    """Two normals from words for the radius and words for the angle: a quarter turn, its sign and a swap."""
    radius = np.sqrt(-2.0 * log_of_ordinary(_unit(like, r0, r1)))
    sine, cosine = sin_cos_eighth(_eighth(like, a0, a1))
    small, large = radius * sine, radius * (cosine if a0 & _BIT_30 else -cosine)
    swap = a0 & _BIT_31
    return (large if swap else small), (small if swap else large)


@open_function
def _uniform(like: Any, w0: Any, w1: Any) -> Any:
    """The middle of one of 2^23 or 2^52 equal cells of (0, 1)."""


@implements(_uniform, np.float32)
def _(like: Any, w0: Any, w1: Any) -> Any:
    return np.float32(np.uint32(w0 >> 9).view(np.int32)) * 1.1920928955078125e-07 + 5.960464477539063e-08


@implements(_uniform, np.float64)
def _(like: Any, w0: Any, w1: Any) -> Any:
    bits = ((np.uint64(w0) << _32) | np.uint64(w1)) >> _12
    return np.uint64(bits | _ONE).view(np.float64) - 0.9999999999999998890  # 1 - 2^-53


@open_function
def _pair(like: Any, w0: Any, w1: Any, w2: Any, w3: Any) -> Any:
    """The first two normals of four words."""


@implements(_pair, np.float32)
def _(like: Any, w0: Any, w1: Any, w2: Any, w3: Any) -> Any:
    return _box_muller(like, w0, w0, w1, w1)


@implements(_pair, np.float64)
def _(like: Any, w0: Any, w1: Any, w2: Any, w3: Any) -> Any:
    return _box_muller(like, w0, w1, w2, w3)


@leaf
def unit(w0: Any, w1: Any, like: Any) -> Any:
    """A uniform number in (0, 1], finest near 0: the one to take the logarithm of."""
    return _unit(like, w0, w1)


@leaf
def uniform(w0: Any, w1: Any, like: Any) -> Any:
    """A uniform number in the open interval (0, 1), of the precision of `like`; w1 is for double precision only."""
    return _uniform(like, w0, w1)


@leaf
def normal_pair(w0: Any, w1: Any, w2: Any, w3: Any, like: Any) -> Any:
    """Two normals of the precision of `like`; w2 and w3 are for double precision only."""
    return _pair(like, w0, w1, w2, w3)


# ------------------------------------------------------------------------------------------------------ normals in bulk


@open_function(called=True)
def four_normals(like: Any, stream: Any, step: Any, group: Any, purpose: Any) -> Any:
    """The normals of the coordinates 4 group to 4 group + 3."""


@implements(four_normals, np.float32)
def _(like: Any, stream: Any, step: Any, group: Any, purpose: Any) -> Any:
    w0, w1, w2, w3 = words(stream, step, group, purpose, 0)
    z0, z1 = _pair(like, w0, w1, w2, w3)
    z2, z3 = _pair(like, w2, w3, w0, w1)
    return z0, z1, z2, z3


@implements(four_normals, np.float64)
def _(like: Any, stream: Any, step: Any, group: Any, purpose: Any) -> Any:
    w0, w1, w2, w3 = words(stream, step, 2 * group, purpose, 0)
    z0, z1 = _pair(like, w0, w1, w2, w3)
    w0, w1, w2, w3 = words(stream, step, 2 * group + 1, purpose, 0)
    z2, z3 = _pair(like, w0, w1, w2, w3)
    return z0, z1, z2, z3


@open_function
def _two_normals(like: Any, stream: Any, step: Any, group: Any, purpose: Any) -> Any:
    """The normals of the coordinates 4 group and 4 group + 1."""


@implements(_two_normals, np.float32)
def _(like: Any, stream: Any, step: Any, group: Any, purpose: Any) -> Any:
    w0, w1, w2, w3 = words(stream, step, group, purpose, 0)
    return _pair(like, w0, w1, w2, w3)


@implements(_two_normals, np.float64)
def _(like: Any, stream: Any, step: Any, group: Any, purpose: Any) -> Any:
    w0, w1, w2, w3 = words(stream, step, 2 * group, purpose, 0)
    return _pair(like, w0, w1, w2, w3)


@open_function(on=2, inline=False, fastmath=LOOP)
def fill_normals(out: Any, stream: Any, step: Any, purpose: Any, first: Any) -> Any:
    """out[s, j] = the normal of (step + s, coordinate first + j), for a `first` that is a multiple of 4.

    With `Lanes`, out[s, j] is that of coordinate first + j // width of the chain in lane j % width.
    """


@implements(fill_normals, object, Stream)
def _(out: Any, stream: Any, step: Any, purpose: Any, first: Any) -> None:
    steps, n = out.shape
    start, group = np.uint64(step), np.int64(first) // 4
    # Vectorise along the rows if they are long, else over the steps; so it is, too, for what is left of a row.
    along = n // 4 if n >= 64 or n > 4 * steps else 0
    for s in range(steps if along > 0 else 0):
        _fill_row(out[s, : 4 * along], stream, start + np.uint64(s), purpose, group)
    if 4 * along < n:
        _fill_columns(out[:, 4 * along :], stream, start, purpose, group + along)


@loop(apart=True)
def _fill_row(row: Any, stream: Any, step: Any, purpose: Any, group: Any) -> Any:
    like = row.dtype.type(0)
    for i in range(row.size // 4):
        z0, z1, z2, z3 = four_normals(like, stream, step, group + i, purpose)
        row[4 * i] = z0
        row[4 * i + 1] = z1
        row[4 * i + 2] = z2
        row[4 * i + 3] = z3


@loop(allocates=True)
def _fill_columns(out: Any, stream: Any, step: Any, purpose: Any, group: Any) -> Any:
    """Short rows: vectorise over steps, four columns at a time, through a scratch array that stays in the cache."""
    steps, n = out.shape
    z = np.empty((4, 64), out.dtype)
    for c in range(0, n, 4):
        width = min(4, n - c)
        for s in range(0, steps, 64):
            m = min(64, steps - s)
            if width <= 2:
                _two_of_many_steps(z, m, stream, step + np.uint64(s), purpose, group + c // 4)
            else:
                _four_of_many_steps(z, m, stream, step + np.uint64(s), purpose, group + c // 4)
            for j in range(width):
                for i in range(m):
                    out[s + i, c + j] = z[j, i]


@loop(apart=True)
def _two_of_many_steps(z: Any, count: Any, stream: Any, step: Any, purpose: Any, group: Any) -> Any:
    z0, z1 = z[0], z[1]
    like = z.dtype.type(0)
    for i in range(count):
        z0[i], z1[i] = _two_normals(like, stream, step + np.uint64(i), group, purpose)


@loop(apart=True)
def _four_of_many_steps(z: Any, count: Any, stream: Any, step: Any, purpose: Any, group: Any) -> Any:
    z0, z1, z2, z3 = z[0], z[1], z[2], z[3]
    like = z.dtype.type(0)
    for i in range(count):
        z0[i], z1[i], z2[i], z3[i] = four_normals(like, stream, step + np.uint64(i), group, purpose)


# ------------------------------------------------------------------------------------------ chains packed side by side


@implements(fill_normals, object, Lanes, allocates=True)
def _(out: Any, stream: Any, step: Any, purpose: Any, first: Any) -> None:
    """Vectorised over the lanes, or over the steps if few lanes are wanted; the bits are the same."""
    start, group = np.uint64(step), np.int64(first) // 4
    if stream.live >= 4:
        spare = np.empty(stream.chains.size, out.dtype)
        for s in range(out.shape[0]):
            _fill_packed_row(out[s], spare, stream, start + np.uint64(s), purpose, group)
    else:
        for lane in range(stream.live):
            _fill_lane(out, lane, stream, start, purpose, group)


@loop
def _fill_packed_row(row: Any, spare: Any, lanes: Any, step: Any, purpose: Any, group: Any) -> Any:
    """Four coordinates at a time; what a last group has too many goes into `spare`."""
    width = lanes.chains.size
    for low in range(0, row.size, 4 * width):
        rows, at = (row.size - low) // width, group + low // (4 * width)
        z0 = row[low : low + width]
        z1 = row[low + width : low + 2 * width] if rows > 1 else spare
        if rows <= 2:
            _two_of_many_lanes(z0, z1, lanes, step, at, purpose)
        else:
            z2 = row[low + 2 * width : low + 3 * width]
            z3 = row[low + 3 * width : low + 4 * width] if rows > 3 else spare
            _four_of_many_lanes(z0, z1, z2, z3, lanes, step, at, purpose)


@leaf
def _own(lanes: Any, lane: Any) -> Any:
    """The stream of the chain in a lane."""
    return Stream(lanes.key0, lanes.key1, lanes.chains[lane])


@loop(apart=True)
def _four_of_many_lanes(z0: Any, z1: Any, z2: Any, z3: Any, lanes: Any, step: Any, group: Any, purpose: Any) -> Any:
    like = z0.dtype.type(0)
    for lane in range(z0.size):
        z0[lane], z1[lane], z2[lane], z3[lane] = four_normals(like, _own(lanes, lane), step, group, purpose)


@loop(apart=True)
def _two_of_many_lanes(z0: Any, z1: Any, lanes: Any, step: Any, group: Any, purpose: Any) -> Any:
    like = z0.dtype.type(0)
    for lane in range(z0.size):
        z0[lane], z1[lane] = _two_normals(like, _own(lanes, lane), step, group, purpose)


@loop(allocates=True)
def _fill_lane(out: Any, lane: Any, lanes: Any, step: Any, purpose: Any, group: Any) -> Any:
    """One lane for all steps, four coordinates at a time, through a scratch array that stays in the cache.

    What lane 0 gets, the lanes without a chain get too: they follow it.
    """
    own, width = _own(lanes, lane), lanes.chains.size
    steps, rows = out.shape[0], out.shape[1] // width
    z = np.empty((4, 64), out.dtype)
    for r in range(0, rows, 4):
        for s in range(0, steps, 64):
            count = min(64, steps - s)
            if rows - r <= 2:
                _two_of_many_steps(z, count, own, step + np.uint64(s), purpose, group + r // 4)
            else:
                _four_of_many_steps(z, count, own, step + np.uint64(s), purpose, group + r // 4)
            for j in range(min(4, rows - r)):
                for i in range(count):
                    out[s + i, (r + j) * width + lane] = z[j, i]
                for idle in range(lanes.live if lane == 0 else width, width):
                    for i in range(count):
                        out[s + i, (r + j) * width + idle] = z[j, i]
