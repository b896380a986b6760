"""Elementary functions that vectorise: exp, log, tanh and their relatives as short branch-free formulas.

Numba's wheels call libm for ``math.exp`` and the like, and a call in a loop keeps LLVM from vectorising it. Here every
function is a polynomial between two bit operations, with selects in place of branches, the same on every device.

They take ``np.float32`` and ``np.float64`` and give back what they take; single precision never passes through double.
Errors are about 2 units in the last place (ulp) or less, measured against mpmath in the tests. NaN gives NaN in all of
them, also in ``power(nan, 0)``: a divergence must stay visible. Results below the smallest normal number are gradual,
not flushed to zero.

Notation: x = 2^k m with m in [√½, √2); s = (m - 1)/(m + 1), so that log m = 2 artanh s; z is the square of s or of t.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sgmcmc.compiler.open_functions import implements, leaf, like, open_function
from sgmcmc.floats import (
    constants,
    cos_tail,
    exp_tail,
    high_half,
    log1p_tail,
    log_second_tail,
    log_tail,
    nearest,
    sin_tail,
    split_normal,
    split_power,
    two_to,
)

__all__ = [
    "asinh_of_ordinary",
    "exp",
    "exp_of_ordinary",
    "expm1",
    "expm1_of_ordinary",
    "log",
    "log1p",
    "log1p_of_ordinary",
    "log_of_ordinary",
    "power",
    "sigmoid",
    "sin_cos_eighth",
    "sin_cos_turns",
    "softplus",
    "tanh",
]


@leaf
def _reduced(x: Any, rest: Any) -> Any:
    """(k, r) with x + rest = k ln 2 + r and |r| <= ln(2)/2 or so (Cody and Waite: k times the high part is exact)."""
    c = constants(x)
    k = nearest(1.4426950408889634 * x)
    return k, ((x - k * c.ln2_high) - k * c.ln2_low) + rest


@leaf
def _exp_of_sum(x: Any, rest: Any) -> Any:
    """e^(x + rest) for a small rest and for x from the smallest to the largest exponent."""
    k, r = _reduced(x, rest)
    half = nearest(0.5 * k)  # 2^k alone may be no normal number, even where e^x is
    return ((1.0 + (r + r * r * exp_tail(r))) * two_to(half)) * two_to(k - half)


@leaf
def exp(x: Any) -> Any:
    """e^x; 0 at -inf, inf above the logarithm of the largest float."""
    c = constants(x)
    y = _exp_of_sum(_between(c.smallest, x, c.largest), c.one - c.one)
    return c.inf if x > c.largest else y


@leaf
def _between(low: Any, x: Any, high: Any) -> Any:
    """x, or the bound that it is beyond; NaN stays NaN. Said this way round it is two instructions, a minimum and a maximum."""
    below = high if x > high else x
    return low if below < low else below


@leaf
def expm1(x: Any) -> Any:
    """e^x - 1, to full relative accuracy near 0."""
    c = constants(x)
    k, r = _reduced(_between(-40.0 * c.one, x, c.largest), c.one - c.one)
    half = two_to(k - 1.0)  # 2^k may be too large
    y = 2.0 * (half * (r + r * r * exp_tail(r)) + (half - 0.5))  # 2^k (e^r - 1) + (2^k - 1)
    return c.inf if x > c.largest else y


@leaf
def exp_of_ordinary(x: Any) -> Any:
    """e^x where it is a normal number (|x| < 86 in single precision, 707 in double), with nothing said of any other."""
    c = constants(x)
    k, r = _reduced(x, c.one - c.one)
    power = two_to(k)
    return power + power * (r + r * r * exp_tail(r))


@leaf
def expm1_of_ordinary(x: Any) -> Any:
    """e^x - 1 where e^x is a normal number, with nothing said of any other x."""
    c = constants(x)
    k, r = _reduced(x, c.one - c.one)
    power = two_to(k)
    return power * (r + r * r * exp_tail(r)) + (power - 1.0)


@leaf
def _log_of_parts(k: Any, f: Any) -> Any:
    """k ln 2 + log(1 + f) for 1 + f in [√½, √2)."""
    c = constants(f)
    s = f / (2.0 + f)
    z = s * s
    half_square = 0.5 * f * f
    # log(1 + f) = 2 artanh s = f - f²/2 + s (f²/2 + z tail(z)): nearly all of it is f, which is exact.
    return k * c.ln2_high + (f - (half_square - (s * (half_square + z * log_tail(z)) + k * c.ln2_low)))


@leaf
def log_of_ordinary(x: Any) -> Any:
    """log x for a positive finite x, with nothing said of any other."""
    m, k = split_power(x)
    return _log_of_parts(k, m - 1.0)


@leaf
def log(x: Any) -> Any:
    """The natural logarithm; -inf at 0, NaN below."""
    c = constants(x)
    y = log_of_ordinary(c.one * (x if (x > 0.0) & (x < c.inf) else c.one))
    return (y if x < c.inf else x) if x > 0.0 else (-c.inf if x == 0.0 else c.nan)


@leaf
def log1p(x: Any) -> Any:
    """log(1 + x), to full relative accuracy near 0; -inf at -1, NaN below."""
    c = constants(x)
    y = log1p_of_ordinary(c.one * (x if (x > -1.0) & (x < c.inf) else c.one))
    return (y if x < c.inf else x) if x > -1.0 else (-c.inf if x == -1.0 else c.nan)


@leaf
def log1p_of_ordinary(x: Any) -> Any:
    """log(1 + x) for a finite x > -1 (and NaN for NaN), with nothing said of any other."""
    c = constants(x)
    u = 1.0 + x
    x_part = u - 1.0
    lost = (x - x_part) + (1.0 - (u - x_part))  # u + lost = 1 + x exactly
    m, k = split_power(u if u == u else c.one)  # NaN comes back with what was lost
    scale = two_to(-k) if k < 60.0 else c.one - c.one  # beyond, nothing that was lost can matter
    return _log_of_parts(k, (m - 1.0) + lost * scale)


@open_function
def asinh_of_ordinary(w: Any) -> Any:
    """asinh w for 0 <= w < 1e18 (and NaN for NaN), with nothing said of any other.

    It is log u with u = w + √(1 + w²). Below √2 the number u has no power of 2 to be taken off, and what its sum would lose is
    not lost; from there on that is half a unit of something larger than log u.
    """


@implements(asinh_of_ordinary, np.float64)
def _(w: Any) -> Any:
    # One division in place of two: a step of SGMGT-D on short vectors takes 5 % less. log u = k ln 2 + 2 artanh s, and near 0
    # too there is an s with just one, (u − 1)/(u + 1) = w/(1 + √(1 + w²)).
    c = constants(w)
    root = np.sqrt(1.0 + w * w)
    u = w + root
    m, k = split_normal(u)
    is_far = u >= 1.4142135623730951
    s = (m - 1.0 if is_far else w) / (m + 1.0 if is_far else 1.0 + root)
    z = s * s
    return k * c.ln2_high + (2.0 * s + (s * (z * log_tail(z)) + k * c.ln2_low))


@implements(asinh_of_ordinary, np.float32)
def _(w: Any) -> Any:
    c = constants(w)
    square = w * w
    x = w + square / (1.0 + np.sqrt(1.0 + square))  # u − 1
    m, k = split_normal(1.0 + x)
    f = m - 1.0 if x >= 0.41421354 else x  # NaN is x
    return k * c.ln2_high + (f + (f * f * (f * log1p_tail(f) - 0.5) + k * c.ln2_low))


@leaf
def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    size = abs(x)
    e = expm1_of_ordinary(-2.0 * (like(size, 20.0) if size > 20.0 else size))
    y = e / (2.0 + e)
    return y if x < 0.0 else -y


@leaf
def sigmoid(x: Any) -> Any:
    """1 / (1 + e^-x)."""
    c = constants(x)
    e = exp(-abs(x))
    return (c.one if x > 0.0 else e) / (1.0 + e)


@leaf
def softplus(x: Any) -> Any:
    """log(1 + e^x)."""
    c = constants(x)
    return (x if x > 0.0 else c.one - c.one) + log1p_of_ordinary(exp(-abs(x)))


@leaf
def _log_pair(x: Any) -> Any:
    """log x as high + low, with half a float's bits in high, for a positive finite x.

    3/2 log m = s (3 + s² + z² tail(z)), of which s and s² are carried to twice the precision.
    """
    c = constants(x)
    m, k = split_power(x)
    f, g = m - 1.0, m + 1.0
    inverse = 1.0 / g
    s = f * inverse
    s_high, g_high = high_half(s), high_half(g)
    g_low = m - (g_high - 1.0)
    s_low = ((f - s_high * g_high) - s_high * g_low) * inverse  # s_high + s_low = f / g
    z = s * s
    rest = z * z * log_second_tail(z) + s_low * (s_high + s)
    t = high_half(3.0 + s_high * s_high + rest)
    t_low = rest - ((t - 3.0) - s_high * s_high)
    v = s_low * t + t_low * s
    w = high_half(s_high * t + v)  # w + w_low = 3/2 log m
    w_low = v - (w - s_high * t)
    k_part, m_part = k * c.ln2_high, c.two_thirds_high * w
    total = k_part + m_part
    low = (m_part - (total - k_part)) + (k * c.ln2_low + (c.two_thirds_low * w + 0.6666666666666666 * w_low))
    high = high_half(total + low)
    return high, low - (high - total)


@leaf(called=True)
def power(x: Any, y: Any) -> Any:
    """x^y for x >= 0, NaN for x < 0; 0^0 = inf^0 = 1, 0^y = inf for y < 0.

    The logarithm carries twice the precision, so the error does not grow with y log x.
    """
    c = constants(x)
    ordinary = (x > 0.0) & (x < c.inf)
    high, low = _log_pair(c.one * (x if ordinary else c.one))
    y_in = c.one * ((y if y < c.steep else c.steep) if y > -c.steep else -c.steep)
    y_high = high_half(y_in)
    product, rest = y_high * high, (y_in - y_high) * high + y_in * low
    exponent = product + rest
    inside = (exponent < c.largest) & (exponent > c.smallest)
    value = _exp_of_sum(product if inside else c.one - c.one, rest if inside else c.one - c.one)
    over, under = c.inf, c.one - c.one
    value = value if inside else (over if exponent > 0.0 else under)
    at_end = c.one if y == 0.0 else (over if (y > 0.0) == (x > 0.0) else under)
    value = value if ordinary else (at_end if (x == 0.0) | (x > 0.0) else c.nan)
    return value if y == y else y


@leaf
def sin_cos_eighth(t: Any) -> Any:
    """(sin 2πt, cos 2πt) for t in [-1/8, 1/8], an eighth of a turn to either side."""
    c = constants(t)
    z = t * t
    return t * (c.two_pi + (c.two_pi_low + z * sin_tail(z))), 1.0 + z * cos_tail(z)


@leaf
def sin_cos_turns(t: Any) -> Any:
    """(sin 2πt, cos 2πt) for |t| < 2^20 turns: what is left of t after whole quarters is exact, so nothing is lost."""
    quarters = nearest(4.0 * t)
    s, c = sin_cos_eighth(t - 0.25 * quarters)
    odd = quarters - 2.0 * nearest(0.5 * quarters)  # 0, or ±1; then ±1 says which of two quarters it is
    around = quarters - 4.0 * nearest(0.25 * quarters)  # 0, ±1, ±2
    is_odd, sign = odd != 0.0, (around if odd != 0.0 else 1.0 - abs(around))
    return (sign * c if is_odd else sign * s), (-sign * s if is_odd else sign * c)


# ---- forms for GPUs --------------------------------------------------------------------------------------------------

# The same values, with the bounds said the other way round: with those of the CPU the kernel of the general kinetics in double
# precision, which takes all 255 registers, spills 64 to 72 bytes; with these it spills none.


@implements(exp, device=True)
def _(x: Any) -> Any:
    c = constants(x)
    inside = c.one * ((x if x < c.largest else c.largest) if x > c.smallest else c.smallest)
    y = _exp_of_sum(inside, c.one - c.one)
    return (y if x <= c.largest else c.inf) if x == x else x


@implements(expm1, device=True)
def _(x: Any) -> Any:
    c = constants(x)
    inside = c.one * ((x if x < c.largest else c.largest) if x > -40.0 else -40.0)
    k, r = _reduced(inside, c.one - c.one)
    half = two_to(k - 1.0)  # 2^k may be too large
    y = 2.0 * (half * (r + r * r * exp_tail(r)) + (half - 0.5))  # 2^k (e^r - 1) + (2^k - 1)
    return (y if x <= c.largest else c.inf) if x == x else x


@implements(log1p, device=True)
def _(x: Any) -> Any:
    c = constants(x)
    inside = c.one * (x if (x > -1.0) & (x < c.inf) else c.one)
    u = 1.0 + inside
    x_part = u - 1.0
    lost = (inside - x_part) + (1.0 - (u - x_part))  # u + lost = 1 + x exactly
    m, k = split_power(u)
    scale = two_to(-k) if k < 60.0 else c.one - c.one  # beyond, nothing that was lost can matter
    y = _log_of_parts(k, (m - 1.0) + lost * scale)
    return (y if x < c.inf else x) if x > -1.0 else (-c.inf if x == -1.0 else c.nan)


@implements(softplus, device=True)
def _(x: Any) -> Any:
    c = constants(x)
    return (x if x > 0.0 else c.one - c.one) + log1p(exp(-abs(x)))
