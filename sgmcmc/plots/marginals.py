"""Marginal densities, with mean, interval and truth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc import diagnostics
from sgmcmc.plots.axes import Chosen, Trace, axes_for, chain_legend, chosen_ones, truth_of
from sgmcmc.plots.style import INK, PALE, colour, dress

__all__ = ["bins", "marginal", "plot_marginals"]


def plot_marginals(trace: Trace, truth: Any = None, parameters: Chosen = None, ax: Any = None) -> NDArray[Any]:
    """Histogram of all draws (filled), of each chain (lines), the mean, the 94 % highest density interval, the truth.

    `truth` is one number for each parameter of the trace, NaN where it is not known, or values by name, ``{"w": …}``.
    """
    chosen = chosen_ones(trace, parameters)
    known = truth_of(trace, truth)
    axes = axes_for(trace, chosen, ax, "Marginal densities, with mean and 94 % interval", sharex=False)
    for axis, i in zip(axes, chosen, strict=True):
        marginal(axis, trace.draws[:, :, i].astype(np.float64), float(known[i]))
        dress(axis, trace.names[i])
        axis.set_yticks([])
        axis.spines["left"].set_visible(False)
    chain_legend(trace, axes, ax, "truth" if np.isfinite(known[chosen]).any() else None)
    return axes


def marginal(axis: Any, x: NDArray[np.float64], truth: float) -> None:
    """Histogram of all draws (chain, draw) and of each chain, with mean, interval and truth."""
    finite = x[np.isfinite(x)]
    if finite.size == 0:
        return
    edges = bins(finite, x.shape[1])
    axis.stairs(np.histogram(finite, edges, density=True)[0], edges, fill=True, color=PALE)
    for chain, values in enumerate(x if len(x) > 1 else x[:0]):
        if np.isfinite(values).all():
            density = np.histogram(values, edges, density=True)[0]
            axis.stairs(density, edges, color=colour(chain), lw=0.8, alpha=0.8, baseline=None)
    low, high = diagnostics.hdi(x)
    axis.plot([low, high], [0.0, 0.0], color=INK, lw=3, solid_capstyle="butt", clip_on=False, zorder=5)
    axis.plot(finite.mean(), 0.0, "o", color="white", mec=INK, mew=1.2, ms=4.5, clip_on=False, zorder=6)
    if np.isfinite(truth):
        axis.axvline(truth, color="black", lw=1.2, ls=(0, (4, 2)), zorder=4)
    axis.set_ylim(bottom=0.0)


def bins(x: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Edges after Freedman and Diaconis for one chain of `n`, over the draws without the outermost thousandths."""
    low, quarter, three_quarters, high = np.quantile(x, [0.001, 0.25, 0.75, 0.999])
    if low == high:
        low, high = x.min(), x.max()
    if low == high:
        half = max(abs(low), 1.0) * 0.5
        return np.linspace(low - half, high + half, 12)
    width = 2.0 * (three_quarters - quarter) / np.cbrt(n)
    count = 80 if width <= 0.0 else int(np.clip(np.ceil((high - low) / width), 10, 80))
    margin = 0.02 * (high - low)
    return np.linspace(low - margin, high + margin, count + 1)
