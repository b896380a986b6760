"""The energy of a softened monomial: s + ∫_s^∞ (1 − tanh^r(cu/2)) du for every real order r >= 0.

With t = tanh(cs/2), three formulas together are right to rounding everywhere:

    I_r = I_{r−2} + (2/c)(1 − t^{r−1})/(r − 1)                          down to an order f in [0, 2)
    I_f = (1/c) ∫₀^Z (1 − ((1−z)/(1+z))^f) dz/z,  Z = e^{−cs}           analytic for t >= 1/2: 8 Gauss nodes
    K   = K(0) + (2/c) Σ_k t^{r+1+2k}/(r+1+2k)                          for t < 1/2, joined to the other at t = 1/2
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sgmcmc.compiler.open_functions import implements, leaf
from sgmcmc.compiler.precision import like, zero
from sgmcmc.elementary import expm1, log, power

__all__ = ["softened"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
NODES = tuple(float(x) for x in 0.5 * (1.0 + _NODES))
WEIGHTS = tuple(float(w) for w in _WEIGHTS / (1.0 + _NODES))  # divided by the node: for ∫ g(z) dz/z
LOG_3 = math.log(3.0)
TERMS = 28  # ¼^28 is 1e-17


@leaf
def _base_integral(f: Any, t: Any) -> Any:
    """c I_f for 0 <= f < 2 and t >= 1/2."""
    end = (1.0 - t) / (1.0 + t)  # Z
    total = zero(t)
    for i in range(len(NODES)):
        z = like(t, NODES[i]) * end
        total -= like(t, WEIGHTS[i]) * expm1(f * log((1.0 - z) / (1.0 + z)))
    return total


@leaf
def _integral(r: Any, t: Any) -> Any:
    """c I_r for t >= 1/2."""
    pairs = int(0.5 * r)
    f = r - 2.0 * like(t, pairs)
    total = _base_integral(f, t)
    k, t_k = f + 1.0, power(t, f + 1.0)
    for _ in range(pairs):
        total += 2.0 * (1.0 - t_k) / k
        k, t_k = k + 2.0, t_k * t * t
    return total


@leaf
def _series(r: Any, t: Any) -> Any:
    """Σ_k t^{r+1+2k}/(r+1+2k) for t <= 1/2."""
    total, k, t_k = zero(t), r + 1.0, power(t, r + 1.0)
    for _ in range(TERMS):
        total += t_k / k
        k, t_k = k + 2.0, t_k * t * t
    return total


@leaf
def softened(r: Any, c: Any, s: Any, t: Any) -> Any:
    """s + ∫_s^∞ (1 − tanh^r(cu/2)) du, given t = tanh(cs/2)."""
    far = t >= 0.5
    upper, lower = (t if far else like(t, 0.5)), (like(t, 0.5) if far else t)
    start = s if far else LOG_3 / c  # where tanh(cs/2) = 1/2
    value = start + _integral(r, upper) / c - 2.0 * (_series(r, like(lower, 0.5)) - _series(r, lower)) / c
    return (value if r > 0.0 else s) if s == s else s  # NaN stays visible


# ---- forms for GPUs --------------------------------------------------------------------------------------------------

# The same value, bit for bit. Where k does not depend on t a compiler computes all of them once, before the first step, and
# a thread holds them in 54 registers for as long as it runs: with one ξ per chain and rows without replacement the kernel of
# the general kinetics in double precision would take all 255 on sm_90 and spill 80 bytes. With this form it takes 243.


@implements(_series, device=True)
def _(r: Any, t: Any) -> Any:
    total, k, t_k = zero(t), like(t, r + 1.0), power(t, r + 1.0)
    for _ in range(TERMS):
        total += t_k / k
        k, t_k = k + 2.0, t_k * t * t
    return total
