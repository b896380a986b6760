"""Floating-point formats: what single and double precision do differently, bit by bit and coefficient by coefficient.

The formulas of `elementary` are the same for both. They are put together from these open functions.

Notation: x = 2^k m with m in [√½, √2); s = (m - 1)/(m + 1), so that log m = 2 artanh s; z is the square of s or of t.
Polynomials interpolate the named function at the Chebyshev nodes of its interval (mpmath, 60 digits; coefficients
rounded once), nearly the best polynomial of that degree; the degree is the first to cost under 0.12 ulp of a result.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sgmcmc.compiler.open_functions import implements, open_function

__all__ = [
    "constants",
    "cos_tail",
    "exp_tail",
    "high_half",
    "log1p_tail",
    "log_second_tail",
    "log_tail",
    "nearest",
    "sin_tail",
    "split_normal",
    "split_power",
    "two_to",
]

_EXPONENT_64, _FRACTION_64 = np.uint64(52), np.uint64(0x000FFFFFFFFFFFFF)
_SQRT_HALF_64, _TO_SQRT_HALF_64 = np.uint64(0x3FE6A09E667F3BCD), np.uint64(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
_TWO_52 = np.uint64(0x4330000000000000)
_ONE_64, _HIGH_64 = np.int64(0x3FF0000000000000), np.int64(-(1 << 27))
_FRACTION_32, _SQRT_HALF_32, _TO_SQRT_HALF_32 = np.int32(0x007FFFFF), np.int32(0x3F3504F3), np.int32(0x4AFB0D)
_ONE_32, _HIGH_32 = np.int32(0x3F800000), np.int32(-(1 << 12))


class _Constants(NamedTuple):
    """Numbers that differ between the precisions.

    The two parts of ln 2 have so few bits that their products with any exponent k are exact: then it makes no
    difference which of two products and a sum a compiler fuses, and a normal has the same bits in every kernel.
    """

    ln2_high: Any
    ln2_low: Any
    two_thirds_high: Any
    two_thirds_low: Any
    two_pi: Any
    two_pi_low: Any
    largest: Any  # exponents: e^x is finite up to here
    smallest: Any  # and 0 from here down
    steep: Any  # x^±steep is 0, 1 or inf, for every x
    zero: Any
    one: Any
    inf: Any
    nan: Any


_DOUBLE = _Constants._make(
    np.float64(c)
    for c in (
        *(0.6931471805592082, 7.3710025651682e-13, 0.6666666567325592, 9.934107462565104e-09),
        *(6.283185307179586, 2.4492935982947064e-16, 709.782712893384, -745.2, 1e25, 0.0, 1.0, math.inf, math.nan),
    )
)
_SINGLE = _Constants._make(
    np.float32(c)
    for c in (
        *(0.693145751953125, 1.4286197256296873e-06, 0.66650390625, 1.6276042151730508e-04),
        *(6.2831854820251465, -1.748455600074497e-07, 88.72283172607422, -104.0, 1e12, 0.0, 1.0, math.inf, math.nan),
    )
)


@open_function
def split_power(x: Any) -> Any:
    """(m, k) with x = 2^k m, for a positive finite x; k is a float."""


@implements(split_power, np.float64)
def _(x: Any) -> Any:
    small = x < 2.2250738585072014e-308
    m, k = split_normal(x * (18014398509481984.0 if small else 1.0))
    return m, k - (54.0 if small else 0.0)


@implements(split_power, np.float32)
def _(x: Any) -> Any:
    small = x < 1.1754943508222875e-38
    m, k = split_normal(x * (33554432.0 if small else 1.0))
    return m, k - (25.0 if small else 0.0)


@open_function
def split_normal(x: Any) -> Any:
    """`split_power` of a normal number."""


@implements(split_normal, np.float64)
def _(x: Any) -> Any:
    shifted = np.float64(x).view(np.uint64) + _TO_SQRT_HALF_64
    m = np.uint64((shifted & _FRACTION_64) + _SQRT_HALF_64).view(np.float64)
    # AVX2 cannot turn int64 into float64; as the last bits of 2^52 + n the integer n is a float already.
    k = np.uint64((shifted >> _EXPONENT_64) | _TWO_52).view(np.float64) - 4503599627371519.0  # 2^52 + 1023
    return m, k


@implements(split_normal, np.float32)
def _(x: Any) -> Any:
    shifted = np.int32(np.float32(x).view(np.int32) + _TO_SQRT_HALF_32)
    m = np.int32((shifted & _FRACTION_32) + _SQRT_HALF_32).view(np.float32)
    return m, np.float32(np.int32(shifted >> 23)) - 127.0


@open_function
def nearest(x: Any) -> Any:
    """x rounded to a whole number, for |x| < 2^22: the sum with 1.5 times 2^(bits - 1) has no room for a fraction."""


@implements(nearest, np.float64)
def _(x: Any) -> Any:
    return (x + 6755399441055744.0) - 6755399441055744.0


@implements(nearest, np.float32)
def _(x: Any) -> Any:
    return (x + 12582912.0) - 12582912.0


@open_function
def two_to(k: Any) -> Any:
    """2^k for a whole float k, as long as 2^k is a normal number; for k one below that range it is 0."""


@implements(two_to, np.float64)
def _(k: Any) -> Any:
    return np.int64((np.float64(k + 6755399441055744.0).view(np.int64) << 52) + _ONE_64).view(np.float64)


@implements(two_to, np.float32)
def _(k: Any) -> Any:
    return np.int32(np.int32(np.float32(k + 12582912.0).view(np.int32) << 23) + _ONE_32).view(np.float32)


@open_function
def high_half(x: Any) -> Any:
    """x cut to half its significant bits, so that the product of two such numbers is exact."""


@implements(high_half, np.float64)
def _(x: Any) -> Any:
    return np.int64(np.float64(x).view(np.int64) & _HIGH_64).view(np.float64)


@implements(high_half, np.float32)
def _(x: Any) -> Any:
    return np.int32(np.float32(x).view(np.int32) & _HIGH_32).view(np.float32)


@open_function
def constants(x: Any) -> Any:
    """The constants of the precision of x."""


@implements(constants, np.float64)
def _(x: Any) -> Any:
    return _DOUBLE


@implements(constants, np.float32)
def _(x: Any) -> Any:
    return _SINGLE


@open_function
def exp_tail(r: Any) -> Any:
    """(e^r - 1 - r) / r² for |r| <= ln(2)/2."""


@implements(exp_tail, np.float64)
def _(r: Any) -> Any:
    q = 2.510038549551032e-08 * r + 2.7620088445409746e-07
    q = ((q * r + 2.7557268459997064e-06) * r + 2.4801521295954376e-05) * r + 1.9841269863053618e-04
    q = ((q * r + 1.3888888917213717e-03) * r + 8.333333333330062e-03) * r + 4.166666666662413e-02
    return (q * r + 0.16666666666666669) * r + 0.5000000000000001


@implements(exp_tail, np.float32)
def _(r: Any) -> Any:
    return (((1.3926184e-03 * r + 8.363179e-03) * r + 4.1666556e-02) * r + 0.16666576) * r + 0.5


@open_function
def log_tail(z: Any) -> Any:
    """(log((1 + s)/(1 - s)) / s - 2) / z for z = s² <= 0.02944."""


@implements(log_tail, np.float64)
def _(z: Any) -> Any:
    q = (0.14616585424888623 * z + 0.15331710618210773) * z + 0.18182889455674947
    q = (q * z + 0.22222211130259878) * z + 0.2857142862600327
    return (q * z + 0.39999999999899444) * z + 0.666666666666667


@implements(log_tail, np.float32)
def _(z: Any) -> Any:
    return (0.29580054 * z + 0.39988777) * z + 0.66666687


@open_function
def log1p_tail(f: Any) -> Any:
    """(log(1 + f) - f + f²/2) / f³ for 1 + f in [√½, √2)."""


@implements(log1p_tail, np.float32)
def _(f: Any) -> Any:
    q = (0.069716118 * f - 0.11479734) * f + 0.1168542
    q = ((q * f - 0.12425687) * f + 0.14249058) * f - 0.16667803
    return ((q * f + 0.20000716) * f - 0.24999997) * f + 0.3333333


@open_function
def log_second_tail(z: Any) -> Any:
    """(3/2 log((1 + s)/(1 - s)) / s - 3 - z) / z² for z = s² <= 0.02944."""


@implements(log_second_tail, np.float64)
def _(z: Any) -> Any:
    q = (0.17584767935814777 * z + 0.1755935450923681) * z + 0.20002207040770967
    q = ((q * z + 0.23076892443777647) * z + 0.272727275030892) * z + 0.3333333333248383
    return (q * z + 0.4285714285714405) * z + 0.6


@implements(log_second_tail, np.float32)
def _(z: Any) -> Any:
    return (0.34572357 * z + 0.42843354) * z + 0.60000023


@open_function
def sin_tail(z: Any) -> Any:
    """(sin(2πt)/t - 2π) / z for z = t² <= 1/64."""


@implements(sin_tail, np.float64)
def _(z: Any) -> Any:
    q = (3.78643334956545 * z - 15.094054182079999) * z + 42.05868918088512
    return ((q * z - 76.70585973562093) * z + 81.6052492760517) * z - 41.341702240399755


@implements(sin_tail, np.float32)
def _(z: Any) -> Any:
    return (-75.7263 * z + 81.59952) * z - 41.3416977


@open_function
def cos_tail(z: Any) -> Any:
    """(cos(2πt) - 1) / z for z = t² <= 1/64."""


@implements(cos_tail, np.float64)
def _(z: Any) -> Any:
    q = ((-1.6990343940660637 * z + 7.903206911569678) * z - 26.426253275854723) * z + 60.24464135270201
    return ((q * z - 85.4568172066438) * z + 64.93939402266824) * z - 19.739208802178716


@implements(cos_tail, np.float32)
def _(z: Any) -> Any:
    return ((59.4241066 * z - 85.44882) * z + 64.939369) * z - 19.7392082
