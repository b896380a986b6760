"""Uniforms and normals: real numbers made of random words.

Normals are Box and Muller's, with the angle as a fraction of a turn, so nothing needs an argument reduction. Four words
give four normals of single precision (|z| up to 6.66) or two of double (|z| up to 9.49), where the bits of a uniform end.
Coordinate c takes normal c % 4 of index c // 4 in single, normal c % 2 of index c // 2 in double precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sgmcmc.compiler.open_functions import implements, leaf, open_function
from sgmcmc.elementary import log_of_ordinary, sin_cos_eighth
from sgmcmc.rng.philox4x32 import words

__all__ = ["four_normals", "normal_pair", "uniform", "unit"]

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
