"""Diagnostics of convergence: how many independent draws a run is worth, and whether its chains agree.

Every function takes the draws of one parameter as an array (chain, draw) and returns float64, NaN where the quantity
is undefined: fewer than four draws per chain, draws that never move, a draw that is not finite. None of them warns.

Effective sample sizes, Monte Carlo errors and intervals are those of ArviZ (Vehtari et al. 2021, Bayesian Analysis 16).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sgmcmc import checks

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["autocorrelation", "ess", "hdi", "mcse", "r_hat", "summary"]

_MIN_DRAWS = 4  # ArviZ's own limit: below it a chain cannot be split in halves that have a variance


def ess(draws: ArrayLike, kind: str = "bulk") -> float:
    """Returns the effective sample size.

    Parameters
    ----------
    draws : array (chain, draw)
    kind : "bulk", "tail" or "mean"
        "bulk" is for the centre, "tail" for the 5 % and 95 % quantiles, "mean" for the mean.

    Returns
    -------
    float

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal(size=(4, 1000))
    >>> round(sg.diagnostics.ess(draws, "mean"), -3)
    4000.0
    """
    checks.one_of("kind", kind, ("bulk", "tail", "mean"))
    x, scale = _scaled(draws)
    if scale == 0.0:
        return np.nan
    from arviz_stats.base import array_stats

    options = {"prob": (0.05, 0.95)} if kind == "tail" else {}
    return float(array_stats.ess(x, method=kind, **options))


def mcse(draws: ArrayLike) -> float:
    """Returns the Monte Carlo standard error of the mean, sd / √ESS.

    Parameters
    ----------
    draws : array (chain, draw)

    Returns
    -------
    float

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal(size=(4, 1000))
    >>> round(sg.diagnostics.mcse(draws), 3)
    0.016
    """
    x, scale = _scaled(draws)
    return np.nan if scale == 0.0 else float(scale * np.std(x, ddof=1) / np.sqrt(ess(x, "mean")))


def r_hat(draws: ArrayLike) -> float:
    """Returns the rank-normalised split R̂, the larger of bulk and tail.

    It is 1 when chains agree, infinite when each is stuck elsewhere. Each chain is cut in halves, so one chain alone is
    compared with itself: ArviZ, equal otherwise, gives NaN there.

    Parameters
    ----------
    draws : array (chain, draw)

    Returns
    -------
    float

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal(size=(4, 1000))
    >>> round(sg.diagnostics.r_hat(draws), 2)
    1.0
    """
    x, scale = _scaled(draws)
    if scale == 0.0:
        return np.nan
    half = x.shape[1] // 2
    halves = np.concatenate((x[:, :half], x[:, -half:]))
    folded = np.abs(halves - np.median(halves))
    values = [_r_hat_of_normal_scores(y) for y in (halves, folded)]
    return float(np.nanmax(values)) if not np.isnan(values).all() else np.nan


def hdi(draws: ArrayLike, prob: float = 0.94) -> tuple[float, float]:
    """Returns the highest density interval: the shortest one that holds the share `prob` of all draws.

    Parameters
    ----------
    draws : array (chain, draw)
    prob : float, above 0 and up to 1

    Returns
    -------
    low, high : float

    Examples
    --------
    >>> sg.diagnostics.hdi([[0.0, 1.0, 2.0, 3.0]], prob=1.0)
    (0.0, 3.0)
    """
    prob = checks.number("prob", prob, 0.0, 1.0, open_low=True)
    x = _draws(draws)
    if x.size == 0 or not np.isfinite(x).all():
        return np.nan, np.nan
    if prob * x.size >= x.size:
        return float(x.min()), float(x.max())
    from arviz_stats.base import array_stats

    low, high = array_stats.hdi(x.ravel(), prob)
    return float(low), float(high)


def autocorrelation(draws: ArrayLike, max_lag: int | None = None) -> NDArray[np.float64]:
    """Returns the autocorrelation of each chain at the lags 0 … max_lag.

    Parameters
    ----------
    draws : array (chain, draw)
    max_lag : int, optional
        None is the largest there is.

    Returns
    -------
    array (chain, lag)

    Examples
    --------
    >>> sg.diagnostics.autocorrelation([[1.0, -1.0, 1.0, -1.0]], max_lag=1)
    array([[ 1.  , -0.75]])
    """
    x = _draws(draws)
    n = x.shape[1]
    last = n - 1 if max_lag is None else checks.integer("max_lag", max_lag, 0, n - 1)
    from scipy.fft import irfft, next_fast_len, rfft

    # ρ(k) = Σ_t y_t y_{t+k} / Σ_t y_t²: the sums over t are a convolution, padded so that it does not wrap around.
    size = next_fast_len(2 * n, real=True)
    rho = np.full((x.shape[0], last + 1), np.nan)
    for chain, row in enumerate(x):
        y, scale = _scaled(row[np.newaxis])
        if scale > 0.0:
            sums = irfft(np.abs(rfft(y[0] - y[0].mean(), size)) ** 2, size)
            rho[chain] = sums[: last + 1] / sums[0]
    return rho


def summary(draws: NDArray[Any], names: Sequence[str], hdi_prob: float = 0.94) -> pd.DataFrame:
    """Returns mean, sd, interval, Monte Carlo error, effective sample sizes and R̂ of each parameter.

    Parameters
    ----------
    draws : array (chain, draw, dim)
    names : list of str
        One for each parameter.
    hdi_prob : float
        The share of draws in the interval.

    Returns
    -------
    pandas.DataFrame

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal(size=(4, 1000, 1))
    >>> float(sg.diagnostics.summary(draws, ["x"]).loc["x", "sd"].round(1))
    1.0
    """
    import pandas as pd

    rows = [_row(draws[:, :, i].astype(np.float64), hdi_prob) for i in range(draws.shape[2])]
    columns = ["mean", "sd", "hdi_low", "hdi_high", "mcse", "ess_bulk", "ess_tail", "r_hat"]
    return pd.DataFrame(rows, index=list(names), columns=columns, dtype=np.float64)


def _row(x: NDArray[np.float64], hdi_prob: float) -> tuple[float, ...]:
    finite = bool(np.isfinite(x).all())
    mean = float(x.mean()) if x.size > 0 and finite else np.nan
    sd = float(np.std(x, ddof=1)) if x.size > 1 and finite else np.nan
    return mean, sd, *hdi(x, hdi_prob), mcse(x), ess(x, "bulk"), ess(x, "tail"), r_hat(x)


def _draws(draws: ArrayLike) -> NDArray[np.float64]:
    x = checks.numbers_in("draws", draws)
    if x.ndim != 2:
        raise ValueError(f"draws has shape {x.shape}; give the draws of one parameter as an array (chain, draw)")
    return x


def _scaled(draws: ArrayLike) -> tuple[NDArray[np.float64], float]:
    """The draws about their median in units of `scale`, a power of two; scale 0 says that nothing can be said.

    ArviZ takes a range below 1e-15 for constant draws; scaled, a parameter in units of 1e-20 is as good as any other.
    """
    x = _draws(draws)
    if x.shape[0] == 0 or x.shape[1] < _MIN_DRAWS or not np.isfinite(x).all() or x.min() == x.max():
        return x, 0.0
    quarter = x / 4.0  # the range of the largest numbers would overflow
    y = quarter - np.median(quarter)
    exponent = int(np.frexp(np.abs(y).max())[1])
    return np.ldexp(y, 2 - exponent), float(np.ldexp(1.0, exponent))


def _r_hat_of_normal_scores(x: NDArray[np.float64]) -> float:
    """R̂ = √((B/W + n − 1)/n) of the normal scores of the ranks, with B/n the variance of the chains' means."""
    if np.ptp(x) == 0.0:
        return np.nan
    z = _normal_scores(x)
    n = z.shape[1]
    within = float(np.var(z, axis=1, ddof=1).mean())
    between = n * float(np.var(z.mean(axis=1), ddof=1))
    # Ranks are averages, so chains that never move have a variance of rounding size rather than exactly 0.
    return float(np.sqrt((between / within + n - 1.0) / n)) if within > 1e-20 else np.inf


def _normal_scores(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Φ⁻¹((rank − 3/8) / (size + 1/4)), Blom's scores, ranks over all chains together."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    ranks: NDArray[Any] = rankdata(x, method="average").reshape(x.shape)
    scores: NDArray[np.float64] = ndtri((ranks - 0.375) / (x.size + 0.25))
    return scores
