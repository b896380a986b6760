"""Weighted averages: draws count by their step size, Σ h_t f(θ_t) / Σ h_t, as decreasing steps ask for.

A chain spends the time h_t in the draw of step t, so that sum is its average over time. With equal weights the many short steps
at the end of a decreasing schedule count for more than the time they cover (Welling and Teh 2011, section 4; Teh, Thiery and
Vollmer 2016, eq. 6). With a constant step both averages are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc import checks, diagnostics

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["expectation", "summary"]

Array = NDArray[np.float64]


def expectation(draws: NDArray[Any], weights: Array, function: Callable[[Any], Any] | None, weighted: bool) -> Any:
    """Σ_t w_t f(θ_t) over all chains of draws (chain, draw, dim); a number if f gives numbers."""
    if function is not None and not callable(function):
        raise TypeError(f"function={checks.show(function)} is not a function of theta; give one, or None for the mean")
    share = _shares(weights if weighted else np.ones(len(weights)))
    x = np.asarray(draws, np.float64)
    if function is not None:
        x = np.array([[function(theta) for theta in chain] for chain in draws], np.float64)
    found = np.tensordot(share, x.mean(axis=0), axes=1)
    return float(found) if found.ndim == 0 else found


def summary(draws: NDArray[Any], names: Sequence[str], weights: Array, hdi_prob: float = 0.94) -> pd.DataFrame:
    """As `diagnostics.summary`, with weighted mean, sd, interval and Monte Carlo error; ESS and R̂ are of the draws alike."""
    import pandas as pd

    checks.number("hdi_prob", hdi_prob, 0.0, 1.0, open_low=True)
    share = _shares(weights)
    rows = [_row(np.asarray(draws[:, :, i], np.float64), share, hdi_prob) for i in range(draws.shape[2])]
    columns = [f"weighted_{name}" for name in ("mean", "sd", "hdi_low", "hdi_high", "mcse")]
    return pd.DataFrame(rows, index=list(names), columns=[*columns, "ess_bulk", "ess_tail", "r_hat"], dtype=np.float64)


def _shares(weights: Array) -> Array:
    total = weights.sum()
    if not total > 0.0:
        raise ValueError(
            f"the weights of {len(weights)} draws add up to {total:g}; give step sizes of which some are above 0"
        )
    return np.asarray(weights / total)


def _row(x: Array, share: Array, hdi_prob: float) -> tuple[float, ...]:
    every = np.tile(share, len(x)) / max(len(x), 1)
    mean = float(every @ x.ravel())
    sd = float(np.sqrt(every @ (x.ravel() - mean) ** 2))
    # Σ w_t (f_t − mean) is the error of the ratio Σ w f / Σ w: the mean of n w_t (f_t − mean), as any mean is judged.
    error = diagnostics.mcse(x.shape[1] * share * (x - mean))
    ess = diagnostics.ess(x, "bulk"), diagnostics.ess(x, "tail")
    return mean, sd, *_hdi(x.ravel(), every, hdi_prob), error, *ess, diagnostics.r_hat(x)


def _hdi(x: Array, share: Array, prob: float) -> tuple[float, float]:
    """The shortest interval that holds the share `prob` of the weight."""
    if x.size == 0 or not np.isfinite(x).all():
        return np.nan, np.nan
    order = np.argsort(x)
    x, mass = x[order], np.concatenate(([0.0], np.cumsum(share[order])))
    # The interval from x_i on reaches up to the first x_k with mass[k + 1] − mass[i] ≥ prob.
    ends = np.searchsorted(mass, mass[:-1] + prob * mass[-1] * (1.0 - 1e-12))
    starts = np.flatnonzero(ends <= x.size)
    widths = x[ends[starts] - 1] - x[starts]
    best = int(np.argmin(widths))
    return float(x[starts[best]]), float(x[ends[starts[best]] - 1])
