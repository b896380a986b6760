"""Chains against time, with their moving averages."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc import diagnostics
from sgmcmc.plots.axes import Chosen, Trace, axes_for, chain_legend, chosen_ones, label_below
from sgmcmc.plots.style import colour, dress

__all__ = ["draw_chains", "envelope", "moving_average", "plot_trace"]

_POINTS = 1500  # more line segments than pixels across an axes cannot be seen
_WINDOWS = 25  # a moving average looks at this fraction of the chain at a time


def plot_trace(trace: Trace, parameters: Chosen = None, ax: Any = None) -> NDArray[Any]:
    """Every chain against time (pale), with its moving average (strong), in which a drift or a disagreement shows.

    Long chains are drawn by the least and the largest value of each stretch, so that no spike is lost.
    """
    chosen = chosen_ones(trace, parameters)
    axes = axes_for(trace, chosen, ax, "Chains against time", wide=True)
    for axis, i in zip(axes, chosen, strict=True):
        draw_chains(axis, trace.draws[:, :, i])
        dress(axis, trace.names[i], f"R̂ {diagnostics.r_hat(trace.draws[:, :, i]):.3f}")
        axis.set_xlim(0, max(trace.n_draws - 1, 1))
    label_below(axes, "draw")
    chain_legend(trace, axes, ax)
    return axes


def draw_chains(axis: Any, x: NDArray[Any], every: float = 1.0) -> None:
    """Chains (chain, draw), pale, under their moving averages; `every` is how far apart two draws are on the axis."""
    for chain, values in enumerate(x):
        when, where = envelope(values)
        axis.plot(every * when, where, color=colour(chain), lw=0.5, alpha=0.45, rasterized=True)
    for chain, values in enumerate(x if x.shape[1] > 10 * _WINDOWS else x[:0]):
        when, where = moving_average(values)
        axis.plot(every * when, where, color=colour(chain), lw=1.5)


def envelope(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """At most `_POINTS` points that cover the same ink: the least and the largest value of each stretch, in turn."""
    n = len(values)
    if n <= _POINTS:
        return np.arange(n), values
    edges = np.linspace(0, n, _POINTS // 2 + 1).astype(np.intp)[:-1]
    low, high = np.minimum.reduceat(values, edges), np.maximum.reduceat(values, edges)
    return np.repeat(edges, 2), np.stack((low, high), axis=1).ravel()


def moving_average(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Means over a window that slides along the chain, at the window's middle."""
    n, width = len(values), len(values) // _WINDOWS
    first = np.linspace(0, n - width, 20 * _WINDOWS).astype(np.intp)
    x = np.where(np.isfinite(values), values, np.nan)  # a line ends where the numbers do
    sums = np.concatenate(([0.0], np.cumsum(x, dtype=np.float64)))
    return first + 0.5 * width, (sums[first + width] - sums[first]) / width
