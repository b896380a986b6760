"""Criteria: how good the draws of a run are, as one number, smaller is better.

The default estimates the squared error that the run has made, bias and scatter together, in units of the posterior's variance:

    KSD²_U/D + max(1/ESS, (se/2)²) + max(0, |ratio − 1| − q se)²

KSD_U is the kernel Stein discrepancy without its diagonal (0 in the mean for independent draws of the target) and D that
diagonal, so the first term is 0 for right draws and grows with any bias; the kernel is (d + |x − y|²)^(−1/2) in units of the
common scale. The second is the scatter of the worst parameter: of its mean in standard deviations, or of the logarithm of its
standard deviation, se the relative standard error of its variance. The last is the variance over the right one along the worst
axis, or in the mean over all axes (`variances`), beyond what chance explains. All are of runs that cost the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc import diagnostics
from sgmcmc.tuning.variances import errors_of_means, evaluated, excess, in_scale_units, variance_ratios

__all__ = ["Criterion", "discrepancy", "mixing", "scatter"]

Array = NDArray[np.float64]
Criterion = Callable[[Any], float]

POINTS = 600
_SHOWN = 50  # coordinates whose effective sample size is computed


def mixing(trace: Any) -> float:
    """Returns 1/ESS of the worst of up to 50 parameters: sees how fast a chain moves, and not where.

    Parameters
    ----------
    trace : Trace

    Returns
    -------
    float

    Examples
    --------
    >>> trace = sg.sample(sg.models.Gaussian(), sg.SGHMC(1.0), draws=1000, chains=2, seed=1, progress=False)
    >>> 1 / 2000 < sg.tuning.mixing(trace) < 1 / 200
    True
    """
    worst = float(np.min([diagnostics.ess(x) for x in _some(trace)]))
    return 1.0 / worst if worst > 0.0 else math.inf


def scatter(trace: Any) -> float:
    """Returns the squared standard error of mean (in sd) or log sd, the larger, of the worst of up to 50 parameters.

    Chains that jump from side to side have means that are better than independent draws give, and variances that are
    worse.

    Parameters
    ----------
    trace : Trace

    Returns
    -------
    float

    Examples
    --------
    >>> trace = sg.sample(sg.models.Gaussian(), sg.SGHMC(1.0), draws=1000, chains=2, seed=1, progress=False)
    >>> sg.tuning.scatter(trace) >= sg.tuning.mixing(trace)
    True
    """
    x = np.stack(_some(trace), axis=2)
    with np.errstate(all="ignore"):
        squares = (x - x.mean(axis=(0, 1))) ** 2
        worst = float(np.max(0.5 * errors_of_means(squares) / squares.mean(axis=(0, 1))))
    return max(mixing(trace), worst**2) if math.isfinite(worst) else math.inf


def _some(trace: Any) -> list[Array]:
    some = np.unique(np.linspace(0, trace.dim - 1, min(trace.dim, _SHOWN)).astype(int))
    return [np.asarray(trace.draws[:, :, i], np.float64) for i in some]


def discrepancy(scale: Any = 1.0, points: int = POINTS) -> Criterion:
    """Returns the default criterion, in units of `scale`.

    Parameters
    ----------
    scale : float or array
    points : int
        Draws at which it evaluates the gradient, over at most 20,000 rows.

    Returns
    -------
    callable
        From a trace to a number, smaller is better.

    Examples
    --------
    >>> trace = sg.sample(sg.models.Gaussian(), sg.SGHMC(1.0), draws=1000, chains=2, seed=1, progress=False)
    >>> sg.tuning.discrepancy()(trace) < 0.1
    True
    """

    def criterion(trace: Any) -> float:
        y, s = in_scale_units(scale, *evaluated(trace, points))
        with np.errstate(all="ignore"):  # of a run that is about to diverge
            off = excess(variance_ratios(y, s))
            return _stein(y, -s) + scatter(trace) + off * off

    return criterion


def _stein(x: Array, s: Array) -> float:
    """KSD²_U/D of draws (chain, draw, dim) with scores, 0 where it is negative."""
    from sgmcmc.testing.stein import stein

    dim = x.shape[-1]
    flat, score = x.reshape(-1, dim) - x.mean(axis=(0, 1)), s.reshape(-1, dim)
    u = stein(flat, score, flat, score, math.sqrt(dim))
    n, diagonal = len(u), float(np.trace(u))
    off = (float(u.sum()) - diagonal) / (n * (n - 1))
    return max(off, 0.0) / (diagonal / n) if math.isfinite(off) else math.inf
