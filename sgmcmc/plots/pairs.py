"""Pairs of parameters: where two of them trade off, and shapes that no marginal shows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.plots.axes import Chosen, Trace, chain_legend, chosen_ones, headline, left_out, truth_of
from sgmcmc.plots.marginals import bins, marginal
from sgmcmc.plots.style import COLOURS, INK, colour, dress, quieten

__all__ = ["plot_pairs"]

_FEW = 400  # draws of all chains that are shown as points
_ROOMY = 7  # parameters, up to which there is room for numbers on the axes and for correlations


def plot_pairs(trace: Trace, parameters: Chosen = None, truth: Any = None, ax: Any = None) -> NDArray[Any]:
    """Axes (parameter, parameter): marginals on the diagonal, below it the joint draws of each pair, above it None.

    Many draws are shown as a density, the darker the more, few as points in the colours of their chains. `ax` is an array of
    so many axes, or one axes if two parameters are chosen, for the pair alone. `truth` is as in `plot_marginals`.
    """
    chosen, known = chosen_ones(trace, parameters), truth_of(trace, truth)
    x = trace.draws[:, :, chosen].astype(np.float64)
    edges = [_edges(x[:, :, j], len(chosen)) for j in range(len(chosen))]
    if ax is not None and np.size(ax) == 1 and len(chosen) == 2:
        return _one_pair(trace, chosen, x, edges, known, np.ravel(np.asarray(ax, dtype=object))[0])
    axes = _triangle(len(chosen), ax)
    for row in range(len(chosen)):
        for column in range(row):
            _joint(axes[row, column], x[:, :, [column, row]], edges[column], edges[row], known[chosen][[column, row]])
        marginal(axes[row, row], x[:, :, row], float(known[chosen[row]]))
        if edges[row].size > 1:
            axes[row, row].set_xlim(edges[row][0], edges[row][-1])
    _label(trace, chosen, axes)
    if ax is None:
        headline(axes[0, 0].figure, f"Pairs of parameters, with marginal densities{left_out(trace, chosen)}")
        some = "truth" if np.isfinite(known[chosen]).any() else None
        chain_legend(trace, axes[:, 0], ax, some)
    return axes


def _one_pair(
    trace: Trace, chosen: list[int], x: NDArray[np.float64], edges: list[NDArray[Any]], known: NDArray[Any], axis: Any
) -> NDArray[Any]:
    _joint(axis, x, edges[0], edges[1], known[chosen])
    first, second = (trace.names[i] for i in chosen)
    dress(axis, f"{first} and {second}", _correlation(x))
    axis.set_xlabel(first, fontsize=8.5, color=INK)
    axis.set_ylabel(second, fontsize=8.5, color=INK)
    return np.array([axis], dtype=object)


def _edges(x: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    finite = x[np.isfinite(x)]
    if finite.size == 0:
        return np.empty(0)
    reach = bins(finite, max(x.shape[1], 1))
    return np.linspace(reach[0], reach[-1], (41 if count <= _ROOMY else 25))


def _triangle(count: int, ax: Any) -> NDArray[Any]:
    """The axes on and below the diagonal; made one by one, as those above it would take half of the time."""
    if ax is not None:
        given = np.asarray(ax, dtype=object)
        if given.size != count * count:
            raise ValueError(f"ax holds {given.size} axes; give {count} × {count}, or one if two parameters are chosen")
        given = given.reshape(count, count)
        for i, j in zip(*np.triu_indices(count, 1), strict=True):
            given[i, j].set_axis_off()
        return given
    import matplotlib.pyplot as plt

    side = max(min(2.0 * count, 14.0), 5.0)
    figure = plt.figure(figsize=(side, side + 0.4))
    inch = 1.0 / side
    gap = 0.12 if count <= _ROOMY else 0.08
    room = {"left": 0.85 * inch, "right": 1 - 0.1 * inch, "top": 1 - 0.75 * inch, "bottom": 0.95 * inch}
    grid = figure.add_gridspec(count, count, wspace=gap, hspace=gap, **room)
    axes = np.full((count, count), None, dtype=object)
    for i, j in zip(*np.tril_indices(count), strict=True):
        axes[i, j] = figure.add_subplot(grid[int(i), int(j)])
    return axes


def _joint(axis: Any, x: NDArray[np.float64], across: NDArray[Any], up: NDArray[Any], truth: NDArray[Any]) -> None:
    if across.size == 0 or up.size == 0:
        return
    if x.shape[0] * x.shape[1] <= _FEW:
        for chain, pair in enumerate(x):
            axis.plot(pair[:, 0], pair[:, 1], ".", ms=3, alpha=0.6, color=colour(chain), mew=0, rasterized=True)
    else:
        from matplotlib.colors import LinearSegmentedColormap

        flat = x.reshape(-1, 2)
        first, second = flat[np.isfinite(flat).all(axis=1)].T
        counts = np.histogram2d(first, second, (across, up))[0]
        shades = LinearSegmentedColormap.from_list("density", ["#FFFFFF", "#9CC7E4", COLOURS[0], "#002B4A"])
        place = (across[0], across[-1], up[0], up[-1])
        look: dict[str, Any] = {"origin": "lower", "aspect": "auto", "interpolation": "nearest"}
        axis.imshow(counts.T, cmap=shades, extent=place, **look)
    axis.set(xlim=(across[0], across[-1]), ylim=(up[0], up[-1]))
    for line, value in ((axis.axvline, truth[0]), (axis.axhline, truth[1])):
        if np.isfinite(value):
            line(value, color="black", lw=0.7, ls=(0, (4, 2)), alpha=0.8)


def _correlation(x: NDArray[np.float64]) -> str:
    flat = x.reshape(-1, 2)
    if len(flat) < 2 or not np.isfinite(flat).all() or (np.ptp(flat, axis=0) == 0.0).any():
        return ""
    return f"r {np.asarray(np.corrcoef(flat.T))[0, 1]:.2f}"


def _label(trace: Trace, chosen: list[int], axes: NDArray[Any]) -> None:
    """Names along the left and the lower edge, with numbers where there is room."""
    count = len(chosen)
    for i, j in zip(*np.tril_indices(count), strict=True):
        axis, roomy = axes[i, j], count <= _ROOMY
        note = _correlation(trace.draws[:, :, [chosen[j], chosen[i]]].astype(np.float64)) if roomy and i != j else ""
        quieten(axis)
        if note != "":
            axis.text(0.97, 0.96, note, transform=axis.transAxes, ha="right", va="top", fontsize=7, color="#555555")
        axis.locator_params(nbins=3)
        axis.tick_params(labelbottom=roomy and i == count - 1, labelleft=roomy and j == 0 and i != j)
        if i == j:
            axis.set_yticks([])
            axis.spines["left"].set_visible(False)
        if not roomy:
            axis.set(xticks=[], yticks=[])
        _name_edges(axis, trace.names[chosen[j]], trace.names[chosen[i]], i == count - 1, j == 0, not roomy)


def _name_edges(axis: Any, below: str, beside: str, lowest: bool, leftmost: bool, tight: bool) -> None:
    if lowest:
        turned: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if tight else {}
        axis.set_xlabel(below, fontsize=8, color=INK, **turned)
    if leftmost:
        straight: dict[str, Any] = {"rotation": 0, "ha": "right", "va": "center"} if tight else {}
        axis.set_ylabel(beside, fontsize=8, color=INK, **straight)
