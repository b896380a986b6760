"""Logarithms of gamma variates, by attempts that each have an address of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgmcmc.compiler.open_functions import implements, leaf, open_function
from sgmcmc.elementary import log, log1p
from sgmcmc.elementary.coefficients import constants
from sgmcmc.rng.normals import normal_pair, uniform, unit
from sgmcmc.rng.philox4x32 import words

__all__ = ["log_gamma_attempt", "log_gamma_variate"]

_LAST = 255  # an attempt has 8 bits; the chance to need more is below 2^-128


@open_function(on=0, inline=False, called=True)
def log_gamma_variate(shape: Any, stream: Any, step: Any, index: Any, purpose: Any) -> Any:
    """The logarithm of a Gamma(shape, 1) draw, in the precision of `shape`; NaN for a shape that is not positive.

    It is right also where the draw itself is below the smallest float, as it mostly is for shape = 1e-3.
    Marsaglia and Tsang (2000, https://doi.org/10.1145/358407.358414): with d = a - 1/3, y = x/√(9 d) and a normal x,
    d (1 + y)³ is Gamma(a, 1) for a >= 1, if accepted. For shape < 1, Gamma(shape) = Gamma(shape + 1) U^(1/shape).
    An attempt takes two counters, an even one for the normal and the odd one after it for the two uniforms.
    """


@implements(log_gamma_variate)
def _(shape: Any, stream: Any, step: Any, index: Any, purpose: Any) -> Any:
    attempt, value = 0, constants(shape).nan
    while value != value and attempt < _LAST:
        value = log_gamma_attempt(shape, stream, step, index, purpose, attempt)
        attempt += 2
    return value


@leaf
def log_gamma_attempt(shape: Any, stream: Any, step: Any, index: Any, purpose: Any, attempt: Any) -> Any:
    """One attempt at `log_gamma_variate`, at the addresses attempt and attempt + 1; NaN if it is rejected."""
    c = constants(shape)
    a = (shape if shape >= 1.0 else shape + 1.0) if shape > 0.0 else c.nan
    d = a - 0.3333333333333333
    w0, w1, w2, w3 = words(stream, step, index, purpose, attempt)
    x, _ = normal_pair(w0, w1, w2, w3, shape)
    y = x / np.sqrt(9.0 * d)
    log_v = log1p(y)
    w0, w1, w2, w3 = words(stream, step, index, purpose, attempt + 1)
    u = unit(w2, w3, shape)
    # log u' < x²/2 + d - d v + d log v with v = (1 + y)³; the right side is -inf or NaN for y <= -1
    accepted = log(uniform(w0, w1, shape)) < 0.5 * x * x + d * (3.0 * (log_v - y) - y * y * (3.0 + y))
    value = log(d) + 3.0 * log_v + (log(u) / shape if (shape > 0.0) & (shape < 1.0) else c.zero)
    return value if accepted else c.nan
