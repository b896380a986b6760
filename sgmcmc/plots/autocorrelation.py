"""Autocorrelations: how fast each chain forgets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc import checks, diagnostics
from sgmcmc.plots.axes import Chosen, Trace, axes_for, chain_legend, chosen_ones, label_below
from sgmcmc.plots.style import INK, PALE, colour, dress

__all__ = ["plot_autocorrelation"]


def plot_autocorrelation(
    trace: Trace, max_lag: int | None = None, parameters: Chosen = None, ax: Any = None
) -> NDArray[Any]:
    """Autocorrelation of each chain, and the band in which that of independent draws stays 95 % of the time.

    Without `max_lag` the lags go on until every chain shown has forgotten its past, and a little further.
    """
    chosen = chosen_ones(trace, parameters)
    last = None if max_lag is None else checks.integer("max_lag", max_lag, 1, max(trace.n_draws - 1, 1))
    curves = [diagnostics.autocorrelation(trace.draws[:, :, i]) for i in chosen]
    last = _lags_worth_showing(curves) if last is None else last
    axes = axes_for(trace, chosen, ax, "Autocorrelation")
    band = 1.96 / np.sqrt(max(trace.n_draws, 1))
    for axis, i, rho in zip(axes, chosen, curves, strict=True):
        axis.axhspan(-band, band, color=PALE, alpha=0.6, lw=0)
        axis.axhline(0.0, color=INK, lw=0.6)
        for chain in range(trace.chains):
            axis.plot(rho[chain, : last + 1], color=colour(chain), lw=1.1, alpha=0.85)
        dress(axis, trace.names[i], f"ESS {diagnostics.ess(trace.draws[:, :, i], 'mean'):.0f}")
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.set(xlim=(0, last), ylim=(min(-0.1, -1.3 * band), 1.03))
    label_below(axes, "lag")
    chain_legend(trace, axes, ax)
    return axes


def _lags_worth_showing(curves: list[NDArray[np.float64]]) -> int:
    """A little beyond the first lag at which every curve has been below 0.05; curves that never are do not count."""
    last = max(curves[0].shape[1] - 1, 1) if len(curves) > 0 else 1
    forgotten = 0
    for rho in (row for curve in curves for row in curve):
        below = np.flatnonzero(rho < 0.05)
        forgotten = max(forgotten, int(below[0]) if len(below) > 0 else 0)
    return int(np.clip(1.5 * forgotten, min(20, last), max(last // 2, min(20, last))))
