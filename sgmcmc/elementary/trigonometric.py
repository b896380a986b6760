"""Sine and cosine of turns."""

from __future__ import annotations

from typing import Any

from sgmcmc.compiler.open_functions import leaf
from sgmcmc.elementary.coefficients import constants, cos_tail, nearest, sin_tail

__all__ = ["sin_cos_eighth", "sin_cos_turns"]


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
