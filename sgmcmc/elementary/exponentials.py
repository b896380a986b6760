"""e^x and e^x - 1."""

from __future__ import annotations

from typing import Any

from sgmcmc.compiler.open_functions import implements, leaf
from sgmcmc.elementary.coefficients import constants, exp_tail, nearest, two_to

__all__ = ["exp", "exp_of_ordinary", "expm1", "expm1_of_ordinary"]


@leaf
def _reduced(x: Any, rest: Any) -> Any:
    """(k, r) with x + rest = k ln 2 + r and |r| <= ln(2)/2 or so (Cody and Waite: k times the high part is exact)."""
    c = constants(x)
    k = nearest(1.4426950408889634 * x)
    return k, ((x - k * c.ln2_high) - k * c.ln2_low) + rest


@leaf
def exp_of_sum(x: Any, rest: Any) -> Any:
    """e^(x + rest) for a small rest and for x from the smallest to the largest exponent."""
    k, r = _reduced(x, rest)
    half = nearest(0.5 * k)  # 2^k alone may be no normal number, even where e^x is
    return ((1.0 + (r + r * r * exp_tail(r))) * two_to(half)) * two_to(k - half)


@leaf
def exp(x: Any) -> Any:
    """e^x; 0 at -inf, inf above the logarithm of the largest float."""
    c = constants(x)
    y = exp_of_sum(_between(c.smallest, x, c.largest), c.zero)
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
    k, r = _reduced(_between(-40.0 * c.one, x, c.largest), c.zero)
    half = two_to(k - 1.0)  # 2^k may be too large
    y = 2.0 * (half * (r + r * r * exp_tail(r)) + (half - 0.5))  # 2^k (e^r - 1) + (2^k - 1)
    return c.inf if x > c.largest else y


@leaf
def exp_of_ordinary(x: Any) -> Any:
    """e^x where it is a normal number (|x| < 86 in single precision, 707 in double), with nothing said of any other."""
    c = constants(x)
    k, r = _reduced(x, c.zero)
    power = two_to(k)
    return power + power * (r + r * r * exp_tail(r))


@leaf
def expm1_of_ordinary(x: Any) -> Any:
    """e^x - 1 where e^x is a normal number, with nothing said of any other x."""
    c = constants(x)
    k, r = _reduced(x, c.zero)
    power = two_to(k)
    return power * (r + r * r * exp_tail(r)) + (power - 1.0)


# The same values on GPUs, with the bounds said the other way round: with those of the CPU the kernel of the general kinetics in
# double precision, which takes all 255 registers, spills 64 to 72 bytes; with these it spills none.


@implements(exp, device=True)
def _(x: Any) -> Any:
    c = constants(x)
    inside = c.one * ((x if x < c.largest else c.largest) if x > c.smallest else c.smallest)
    y = exp_of_sum(inside, c.zero)
    return (y if x <= c.largest else c.inf) if x == x else x


@implements(expm1, device=True)
def _(x: Any) -> Any:
    c = constants(x)
    inside = c.one * ((x if x < c.largest else c.largest) if x > -40.0 else -40.0)
    k, r = _reduced(inside, c.zero)
    half = two_to(k - 1.0)  # 2^k may be too large
    y = 2.0 * (half * (r + r * r * exp_tail(r)) + (half - 0.5))  # 2^k (e^r - 1) + (2^k - 1)
    return (y if x <= c.largest else c.inf) if x == x else x
