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

from sgmcmc.elementary.exponentials import exp, exp_of_ordinary, expm1, expm1_of_ordinary
from sgmcmc.elementary.logarithms import asinh_of_ordinary, log, log1p, log1p_of_ordinary, log_of_ordinary
from sgmcmc.elementary.powers import power
from sgmcmc.elementary.sigmoids import sigmoid, softplus, tanh
from sgmcmc.elementary.trigonometric import sin_cos_eighth, sin_cos_turns

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
