"""Samplers on a one-dimensional target that is known: densities, masses of wells, chains."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc import diagnostics
from sgmcmc.plots.axes import Trace
from sgmcmc.plots.style import INK, PALE, colour, dress

__all__ = ["plot_wells"]


def plot_wells(traces: dict[str, Trace], exact: Any, title: str) -> NDArray[Any]:
    """Samplers on a one-dimensional target that is known: histogram, mass of each well, the first chain.

    `exact` has the arrays grid, density, edges (the borders of the wells, from −∞ to ∞) and masses. Returns axes
    (sampler, 3) of a figure that pyplot does not know.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 1.75 * len(traces) + 1.0), layout="constrained")
    axes: NDArray[Any] = figure.subplots(len(traces), 3, squeeze=False, sharex="col", width_ratios=(3, 2, 4))
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold", color=INK)
    seen = exact.grid[exact.density > 2e-3 * exact.density.max()]
    for (left, middle, right), (i, (name, trace)) in zip(axes, enumerate(traces.items()), strict=True):
        x = trace.draws[:, :, 0].astype(np.float64)
        _well_density(left, x, exact, name, colour(i))
        _well_masses(middle, x, exact, colour(i))
        _well_chain(right, x, exact, colour(i))
        left.set_xlim(seen[0], seen[-1])
        right.set_ylim(seen[0], seen[-1])
    below = ("θ (line: exact density)", "well (line: exact mass, thin: ± 2 errors)", "draw of chain 0")
    for axis, text in zip(axes[-1], below, strict=True):
        axis.set_xlabel(text, fontsize=8.5, color=INK)
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
    axis.hlines(exact.edges[1:-1], 0, x.shape[1], color=PALE, lw=0.7, zorder=0)
    axis.plot(time, x[0, time], color=colour, lw=0.4, alpha=0.4, rasterized=True)
    axis.plot(time, x[0, time], ".", ms=2.0, color=colour, rasterized=True)
    axis.set_xlim(0, x.shape[1])
    dress(axis, "", f"ESS {diagnostics.ess(x):,.0f} of {x.size:,}")
