"""x^y, by a logarithm of twice the precision."""

from __future__ import annotations

from typing import Any

from sgmcmc.compiler.open_functions import leaf
from sgmcmc.elementary.coefficients import constants, high_half, log_second_tail, split_power
from sgmcmc.elementary.exponentials import exp_of_sum

__all__ = ["power"]


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
    value = exp_of_sum(product if inside else c.zero, rest if inside else c.zero)
    over, under = c.inf, c.zero
    value = value if inside else (over if exponent > 0.0 else under)
    at_end = c.one if y == 0.0 else (over if (y > 0.0) == (x > 0.0) else under)
    value = value if ordinary else (at_end if (x == 0.0) | (x > 0.0) else c.nan)
    return value if y == y else y
