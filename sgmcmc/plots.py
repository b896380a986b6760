"""Pictures of a trace: chains against time, marginal densities, autocorrelations.

Every function returns a one-dimensional array of matplotlib axes, one per parameter, and draws into `ax` (one axes, or
as many as there are parameters) if that is given. Of pyplot's state only the current figure changes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc import checks, diagnostics

__all__ = ["COLOURS", "blank_figure", "dress", "plot_autocorrelation", "plot_marginals", "plot_trace", "plot_wells"]

Trace = Any  # a sgmcmc.trace.Trace; that module stands above this one, which it uses

# Okabe and Ito's colours, told apart with every kind of colour vision; the pale yellow is left out, it fades on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4D4D4D")
_INK, _PALE, _MOST = "#333333", "#D9D9D9", 20
_POINTS = 1500  # more line segments than pixels across an axes cannot be seen
_WINDOWS = 25  # a moving average looks at this fraction of the chain at a time


def blank_figure(width: float, height: float) -> Any:
    """A figure to be saved to a file, with no part in pyplot's state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def plot_trace(trace: Trace, parameters: Sequence[int | str] | None = None, ax: Any = None) -> NDArray[Any]:
    """Every chain against time (pale), with its moving average (strong), in which a drift or a disagreement shows.

    Long chains are drawn by the least and the largest value of each stretch, so that no spike is lost.
    """
    chosen = _chosen(trace, parameters)
    axes = _axes(trace, chosen, ax, "Chains against time", wide=True)
    for axis, i in zip(axes, chosen, strict=True):
        for chain in range(trace.chains):
            axis.plot(*_envelope(trace.draws[chain, :, i]), color=_colour(chain), lw=0.5, alpha=0.45, rasterized=True)
        for chain in range(trace.chains if trace.n_draws > 10 * _WINDOWS else 0):
            axis.plot(*_moving_average(trace.draws[chain, :, i]), color=_colour(chain), lw=1.5)
        dress(axis, trace.names[i], f"R̂ {diagnostics.r_hat(trace.draws[:, :, i]):.3f}")
        axis.set_xlim(0, max(trace.n_draws - 1, 1))
    _label_below(axes, "draw")
    _chain_legend(trace, axes, ax)
    return axes


def plot_marginals(
    trace: Trace, truth: Any = None, parameters: Sequence[int | str] | None = None, ax: Any = None
) -> NDArray[Any]:
    """Histogram of all draws (filled), of each chain (lines), the mean, the 94 % highest density interval, the truth.

    `truth` is one number for each parameter of the trace; NaN where it is not known.
    """
    chosen = _chosen(trace, parameters)
    known = np.full(trace.dim, np.nan) if truth is None else np.atleast_1d(np.asarray(truth, dtype=np.float64))
    if known.shape != (trace.dim,):
        raise ValueError(f"truth has shape {known.shape}; give {trace.dim} number(s), one for each parameter")
    axes = _axes(trace, chosen, ax, "Marginal densities, with mean and 94 % interval", sharex=False)
    for axis, i in zip(axes, chosen, strict=True):
        _marginal(axis, trace.draws[:, :, i].astype(np.float64), float(known[i]))
        dress(axis, trace.names[i])
        axis.set_yticks([])
        axis.spines["left"].set_visible(False)
    _chain_legend(trace, axes, ax, "truth" if np.isfinite(known[chosen]).any() else None)
    return axes


def plot_autocorrelation(
    trace: Trace, max_lag: int | None = None, parameters: Sequence[int | str] | None = None, ax: Any = None
) -> NDArray[Any]:
    """Autocorrelation of each chain, and the band in which that of independent draws stays 95 % of the time.

    Without `max_lag` the lags go on until every chain shown has forgotten its past, and a little further.
    """
    chosen = _chosen(trace, parameters)
    last = None if max_lag is None else checks.integer("max_lag", max_lag, 1, max(trace.n_draws - 1, 1))
    curves = [diagnostics.autocorrelation(trace.draws[:, :, i]) for i in chosen]
    last = _lags_worth_showing(curves) if last is None else last
    axes = _axes(trace, chosen, ax, "Autocorrelation")
    band = 1.96 / np.sqrt(max(trace.n_draws, 1))
    for axis, i, rho in zip(axes, chosen, curves, strict=True):
        axis.axhspan(-band, band, color=_PALE, alpha=0.6, lw=0)
        axis.axhline(0.0, color=_INK, lw=0.6)
        for chain in range(trace.chains):
            axis.plot(rho[chain, : last + 1], color=_colour(chain), lw=1.1, alpha=0.85)
        dress(axis, trace.names[i], f"ESS {diagnostics.ess(trace.draws[:, :, i], 'mean'):.0f}")
        axis.set(xlim=(0, last), ylim=(min(-0.1, -1.3 * band), 1.03))
    _label_below(axes, "lag")
    _chain_legend(trace, axes, ax)
    return axes


def dress(axis: Any, title: str, note: str = "") -> None:
    """The house look: two spines, small quiet ticks, the title on the left and a figure worth knowing on the right."""
    axis.set_title(title, loc="left", fontsize=9, color=_INK, pad=3)
    axis.set_title(note, loc="right", fontsize=8, color="#777777", pad=3)
    axis.tick_params(labelsize=7.5, length=2.5, width=0.6, colors="#555555")
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axis.spines[side].set(linewidth=0.6, color="#888888")


def _colour(chain: int) -> str:
    return COLOURS[chain % len(COLOURS)]


def _chosen(trace: Trace, parameters: Sequence[int | str] | None) -> list[int]:
    """Positions of the parameters to show; the first twenty if nobody says which."""
    if parameters is None:
        return list(range(min(trace.dim, _MOST)))
    if isinstance(parameters, str) or len(parameters) == 0:
        raise ValueError(f"parameters={parameters!r} is not a list; give names or positions of parameters")
    return [_position(trace, p) for p in parameters]


def _position(trace: Trace, parameter: int | str) -> int:
    names: tuple[str, ...] = trace.names
    if isinstance(parameter, str):
        return names.index(checks.one_of("parameters", parameter, names[:1000]))
    return checks.integer("parameters", parameter, 0, trace.dim - 1)


def _axes(
    trace: Trace, chosen: list[int], ax: Any, title: str, *, wide: bool = False, sharex: bool = True
) -> NDArray[Any]:
    """The axes to draw into: those given, or those of a new figure."""
    if ax is not None:
        given = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(given) != len(chosen):
            raise ValueError(f"ax holds {len(given)} axes; give {len(chosen)}, one for each parameter shown")
        return given
    import matplotlib.pyplot as plt

    columns, rows = _grid(len(chosen), wide)
    width, height = (6.0, 1.5) if wide else (2.9, 1.9)
    size = max(width * columns, 5.0), height * (1.5 if rows == 1 else 1.0) * rows + 0.8
    shape: dict[str, Any] = {"figsize": size, "layout": "constrained"}
    figure, grid = plt.subplots(rows, columns, squeeze=False, sharex=sharex, **shape)
    left_out = f", first {len(chosen)} of {trace.dim} parameters" if len(chosen) < trace.dim else ""
    figure.suptitle(title + left_out, x=0.01, ha="left", fontsize=11, fontweight="bold", color=_INK)
    axes: NDArray[Any] = grid.ravel()
    for spare in axes[len(chosen) :]:
        spare.set_axis_off()
    for lowest in axes[max(len(chosen) - columns, 0) : len(chosen)]:
        lowest.tick_params(labelbottom=True)  # a shared axis has its numbers in the last row only, which may have gaps
    return axes[: len(chosen)]


def _grid(count: int, wide: bool) -> tuple[int, int]:
    """Columns and rows: wide pictures stand below each other until there are five, small ones fill even rows."""
    if wide:
        columns = 1 if count < 5 else 2
    else:
        columns = 2 if count == 4 else max(-(-count // max(-(-count // 5), 1)), 1)
    return columns, max(-(-count // columns), 1)


def _label_below(axes: NDArray[Any], text: str) -> None:
    """Name the horizontal axis where its numbers are shown."""
    for axis in axes:
        if axis.xaxis.get_tick_params()["labelbottom"]:
            axis.set_xlabel(text, fontsize=8.5, color=_INK)


def _chain_legend(trace: Trace, axes: NDArray[Any], ax: Any, truth: str | None = None) -> None:
    """Which colour is which chain, once per figure of ours; with more chains than colours a legend would not help."""
    if ax is not None or len(axes) == 0:
        return
    from matplotlib.lines import Line2D

    few = trace.chain_numbers if trace.chains <= len(COLOURS) else []
    entries = [Line2D([], [], color=_colour(i), lw=2, label=f"chain {number}") for i, number in enumerate(few)]
    if truth is not None:
        entries.append(Line2D([], [], color="black", lw=1.2, ls=(0, (4, 2)), label=truth))
    if len(entries) > 0:
        figure = axes[0].figure
        columns = min(len(entries), max(int(figure.get_figwidth() / 0.9), 1))
        look: dict[str, Any] = {"fontsize": 8, "frameon": False, "borderpad": 0.0}
        look |= {"handlelength": 1.2, "columnspacing": 1.2}
        figure.legend(handles=entries, loc="outside lower left", ncols=columns, **look)


def _envelope(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """At most `_POINTS` points that cover the same ink: the least and the largest value of each stretch, in turn."""
    n = len(values)
    if n <= _POINTS:
        return np.arange(n), values
    edges = np.linspace(0, n, _POINTS // 2 + 1).astype(np.intp)[:-1]
    low, high = np.minimum.reduceat(values, edges), np.maximum.reduceat(values, edges)
    return np.repeat(edges, 2), np.stack((low, high), axis=1).ravel()


def _moving_average(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Means over a window that slides along the chain, at the window's middle."""
    n, width = len(values), len(values) // _WINDOWS
    first = np.linspace(0, n - width, 20 * _WINDOWS).astype(np.intp)
    x = np.where(np.isfinite(values), values, np.nan)  # a line ends where the numbers do
    sums = np.concatenate(([0.0], np.cumsum(x, dtype=np.float64)))
    return first + 0.5 * width, (sums[first + width] - sums[first]) / width


def _marginal(axis: Any, x: NDArray[np.float64], truth: float) -> None:
    finite = x[np.isfinite(x)]
    if finite.size == 0:
        return
    edges = _bins(finite, x.shape[1])
    axis.stairs(np.histogram(finite, edges, density=True)[0], edges, fill=True, color=_PALE)
    for chain, values in enumerate(x if len(x) > 1 else x[:0]):
        if np.isfinite(values).all():
            density = np.histogram(values, edges, density=True)[0]
            axis.stairs(density, edges, color=_colour(chain), lw=0.8, alpha=0.8, baseline=None)
    low, high = diagnostics.hdi(x)
    axis.plot([low, high], [0.0, 0.0], color=_INK, lw=3, solid_capstyle="butt", clip_on=False, zorder=5)
    axis.plot(finite.mean(), 0.0, "o", color="white", mec=_INK, mew=1.2, ms=4.5, clip_on=False, zorder=6)
    if np.isfinite(truth):
        axis.axvline(truth, color="black", lw=1.2, ls=(0, (4, 2)), zorder=4)
    axis.set_ylim(bottom=0.0)


def _bins(x: NDArray[np.float64], n: int) -> NDArray[np.float64]:
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


def _lags_worth_showing(curves: list[NDArray[np.float64]]) -> int:
    """A little beyond the first lag at which every curve has been below 0.05; curves that never are do not count."""
    last = max(curves[0].shape[1] - 1, 1) if len(curves) > 0 else 1
    forgotten = 0
    for rho in (row for curve in curves for row in curve):
        below = np.flatnonzero(rho < 0.05)
        forgotten = max(forgotten, int(below[0]) if len(below) > 0 else 0)
    return int(np.clip(1.5 * forgotten, min(20, last), max(last // 2, min(20, last))))


def plot_wells(traces: dict[str, Trace], exact: Any, title: str) -> NDArray[Any]:
    """Samplers on a one-dimensional target that is known: histogram, mass of each well, the first chain.

    `exact` has the arrays grid, density, edges (the borders of the wells, from −∞ to ∞) and masses. Returns axes
    (sampler, 3) of a figure that pyplot does not know.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 1.75 * len(traces) + 1.0), layout="constrained")
    axes: NDArray[Any] = figure.subplots(len(traces), 3, squeeze=False, sharex="col", width_ratios=(3, 2, 4))
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold", color=_INK)
    seen = exact.grid[exact.density > 2e-3 * exact.density.max()]
    for (left, middle, right), (i, (name, trace)) in zip(axes, enumerate(traces.items()), strict=True):
        x = trace.draws[:, :, 0].astype(np.float64)
        _well_density(left, x, exact, name, _colour(i))
        _well_masses(middle, x, exact, _colour(i))
        _well_chain(right, x, exact, _colour(i))
        left.set_xlim(seen[0], seen[-1])
        right.set_ylim(seen[0], seen[-1])
    below = ("θ (line: exact density)", "well (line: exact mass, thin: ± 2 errors)", "draw of chain 0")
    for axis, text in zip(axes[-1], below, strict=True):
        axis.set_xlabel(text, fontsize=8.5, color=_INK)
    return axes


def _well_density(axis: Any, x: NDArray[np.float64], exact: Any, name: str, colour: str) -> None:
    edges = np.linspace(exact.grid[0], exact.grid[-1], exact.grid.size // 10 + 1)
    found = np.histogram(x, edges)[0] / (x.size * np.diff(edges))
    axis.stairs(found, edges, fill=True, color=colour, alpha=0.5, lw=0)
    axis.plot(exact.grid, exact.density, color="black", lw=1.0)
    axis.set(ylim=(0.0, 1.1 * max(found.max(), exact.density.max())), yticks=[])
    dress(axis, name)
    axis.spines["left"].set_visible(False)


def _well_masses(axis: Any, x: NDArray[np.float64], exact: Any, colour: str) -> None:
    inside = [((x >= low) & (x < high)).astype(np.float64) for low, high in itertools.pairwise(exact.edges)]
    found, wells = np.array([y.mean() for y in inside]), np.arange(1, len(inside) + 1)
    axis.bar(wells, found, width=0.7, color=colour, alpha=0.5)
    axis.errorbar(wells, found, 2.0 * np.array([diagnostics.mcse(y) for y in inside]), fmt="none", ecolor=colour, lw=2)
    axis.hlines(exact.masses, wells - 0.42, wells + 0.42, color="black", lw=1.6)
    axis.set(xticks=wells, ylim=(0.0, 1.15 * max(found.max(), exact.masses.max())))
    dress(axis, "", f"total variation {0.5 * np.abs(found - exact.masses).sum():.3f}")


def _well_chain(axis: Any, x: NDArray[np.float64], exact: Any, colour: str) -> None:
    time = np.arange(0, x.shape[1], max(x.shape[1] // 1000, 1))
    axis.hlines(exact.edges[1:-1], 0, x.shape[1], color=_PALE, lw=0.7, zorder=0)
    axis.plot(time, x[0, time], color=colour, lw=0.4, alpha=0.4, rasterized=True)
    axis.plot(time, x[0, time], ".", ms=2.0, color=colour, rasterized=True)
    axis.set_xlim(0, x.shape[1])
    dress(axis, "", f"ESS {diagnostics.ess(x):,.0f} of {x.size:,}")
