"""Statistics of the checks: z-scores with honest standard errors, a stated false-alarm budget, slopes with intervals.

A family of m checks that may raise a false alarm with probability `budget` in all tests each of them at the two-sided level
budget/m (Bonferroni): |z| < 5.2 for 500 checks and 1e-4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["BUDGET", "Slope", "chi_square", "fit_slope", "kolmogorov", "z_bound", "z_of_chains", "z_of_mean"]

BUDGET = 1e-4  # the probability that a right sampler fails any of the checks of a family

Array = NDArray[np.float64]


def z_bound(checks: int, budget: float = BUDGET) -> float:
    """The bound on |z| for each of `checks` two-sided tests."""
    from scipy.special import ndtri

    return float(-ndtri(0.5 * budget / checks))


def t_bound(checks: int, samples: int, budget: float = BUDGET) -> float:
    """The bound on |mean/se| for each of `checks` two-sided tests, se being estimated from so many samples."""
    from scipy.stats import t as student

    return float(student.isf(0.5 * budget / checks, samples - 1))


def p_bound(checks: int, budget: float = BUDGET) -> float:
    """The bound on the p-value of each of `checks` tests."""
    return budget / checks


def z_of_mean(values: ArrayLike, truth: float = 0.0) -> float:
    """z of the mean of independent values."""
    x = np.asarray(values, float).ravel()
    error = float(x.std(ddof=1) / np.sqrt(x.size))
    off = float(x.mean() - truth)
    return off / error if error > 0.0 else (0.0 if off == 0.0 else float(np.copysign(np.inf, off)))


def z_of_chains(draws: ArrayLike, truth: float) -> float:
    """z of the mean of (chain, draw): over the chains' means if there are many, else by the effective sample size."""
    from sgmcmc import diagnostics

    x = np.asarray(draws, float)
    if x.shape[0] >= 30:
        return z_of_mean(x.mean(axis=1), truth)
    return float((x.mean() - truth) / diagnostics.mcse(x))


def kolmogorov(draws: ArrayLike, cdf: Any) -> float:
    """The p-value of Kolmogorov and Smirnov's test of independent draws against a distribution function."""
    from scipy.stats import kstest

    return float(kstest(np.asarray(draws, float).ravel(), cdf).pvalue)


def chi_square(draws: ArrayLike, quantile: Any, bins: int = 100) -> float:
    """The p-value of the χ² test of independent draws in bins of equal probability."""
    from scipy.stats import chi2

    x = np.asarray(draws, float).ravel()
    edges = quantile(np.arange(1, bins) / bins)
    counts = np.bincount(np.searchsorted(edges, x), minlength=bins)
    expected = x.size / bins
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), bins - 1))


class Slope(NamedTuple):
    """A fitted exponent with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def fit_slope(x: ArrayLike, samples: ArrayLike) -> Slope:
    """The exponent in |y| ∝ x^slope; `samples` is (replicate, x), and replicates give the interval (t, jackknife)."""
    from scipy.stats import t as student

    y = np.asarray(samples, float)
    design = np.log(np.asarray(x, float))
    weight = np.abs(y.mean(axis=0)) / np.maximum(y.std(axis=0, ddof=1) / np.sqrt(len(y)), 1e-300)
    weight = np.minimum(
        weight, 1e3 * max(1.0, float(weight.min()))
    )  # a point known 1000 times better still counts as one

    def one(rows: Array) -> float:
        return float(np.polyfit(design, np.log(np.abs(rows.mean(axis=0))), 1, w=weight)[0])

    n = len(y)
    whole = one(y)
    left_out = np.array([one(np.delete(y, i, axis=0)) for i in range(n)])
    error = float(np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum()))
    wide = float(student.ppf(0.975, n - 1)) * error
    return Slope(whole, whole - wide, whole + wide)
