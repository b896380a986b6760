"""Quantiles of Student's law for any level, so that a run does not import scipy."""

from __future__ import annotations

import math
from statistics import NormalDist

__all__ = ["normal_quantile", "student_quantile"]


def normal_quantile(level: float) -> float:
    """z with P(|Z| < z) = level."""
    return NormalDist().inv_cdf(0.5 + 0.5 * level)


def student_quantile(outside: float, degrees: float) -> float:
    """t with P(|T| > t) = outside for so many degrees of freedom, at least 1 (Hill 1970, Algorithm 396; error below 1 %)."""
    n = max(1.0, degrees)
    if n < 1.5:
        return 1.0 / math.tan(0.5 * math.pi * outside)
    if n < 2.5:
        return math.sqrt(2.0 / (outside * (2.0 - outside)) - 2.0)
    a = 1.0 / (n - 0.5)
    b = 48.0 / a**2
    c = ((20700.0 * a / b - 98.0) * a - 16.0) * a + 96.36
    d = ((94.5 / (b + c) - 3.0) / b + 1.0) * math.sqrt(a * math.pi / 2.0) * n
    y = (d * outside) ** (2.0 / n)
    if y > 0.05 + a:
        return math.sqrt(n * _near_normal(outside, n, a, b, c, d))
    tail = 1.0 / (((n + 6.0) / (n * y) - 0.089 * d - 0.822) * (n + 2.0) * 3.0) + 0.5 / (n + 4.0)
    return math.sqrt(n * ((tail * y - 1.0) * (n + 1.0) / (n + 2.0) + 1.0 / y))


def _near_normal(outside: float, n: float, a: float, b: float, c: float, d: float) -> float:
    """Where the tails do not matter: an expansion about the normal quantile."""
    x = NormalDist().inv_cdf(0.5 * outside)
    if n < 5.0:
        c += 0.3 * (n - 4.5) * (x + 0.6)
    c += (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b
    y = x * x
    y = (((((0.4 * y + 6.3) * y + 36.0) * y + 94.5) / c - y - 3.0) / b + 1.0) * x
    return math.expm1(a * y * y)
