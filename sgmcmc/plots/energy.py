"""The potential energy of the draws: against time, where a drift shows, and as a histogram, where chains that disagree do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc import diagnostics
from sgmcmc.diagnostics.energies import energies
from sgmcmc.plots.axes import Trace, chain_legend, headline
from sgmcmc.plots.chains import draw_chains
from sgmcmc.plots.marginals import bins
from sgmcmc.plots.style import INK, PALE, colour, dress

__all__ = ["plot_energy"]


def plot_energy(trace: Trace, model: Any = None, ax: Any = None, most: int = 2000) -> NDArray[Any]:
    """U of the draws of each chain: [against time, as a histogram], on the same vertical axis.

    At a stationary chain U goes up and down about a level; near a mode that is the least U plus T/2 for each parameter. A
    slope says that the warm-up was too short, chains on different levels that they are in different places.
    """
    taken, U = energies(trace, model, most)
    axes = _two_axes(ax)
    time, law = axes
    every = float(taken[-1] - taken[0]) / max(taken.size - 1, 1) if taken.size > 0 else 1.0
    draw_chains(time, U, every)
    time.set(xlim=(0, max(trace.n_draws - 1, 1)))
    dress(time, "U(θ) against time", f"R̂ {diagnostics.r_hat(U):.3f}, ESS {diagnostics.ess(U, 'mean'):.0f}")
    _histogram(law, U)
    dress(law, "as a histogram")
    time.set_xlabel("draw", fontsize=8.5, color=INK)
    time.set_ylabel("potential energy U", fontsize=8.5, color=INK)
    law.set_xlabel("density", fontsize=8.5, color=INK)
    law.set_xticks([])
    if ax is None:
        some = "" if taken.size == trace.n_draws else f", {taken.size:,} of {trace.n_draws:,} draws of each chain"
        headline(time.figure, f"Potential energy of the draws{some}")
    chain_legend(trace, axes, ax)
    return axes


def _two_axes(ax: Any) -> NDArray[Any]:
    if ax is not None:
        given = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(given) != 2:
            raise ValueError(f"ax holds {len(given)} axes; give two, for the energy against time and its histogram")
        return given
    import matplotlib.pyplot as plt

    shape: dict[str, Any] = {"figsize": (9.0, 3.2), "layout": "constrained", "width_ratios": (3, 1)}
    return np.asarray(plt.subplots(1, 2, sharey=True, **shape)[1])


def _histogram(axis: Any, U: NDArray[np.float64]) -> None:
    finite = U[np.isfinite(U)]
    if finite.size == 0:
        return
    edges = bins(finite, U.shape[1])
    shape: dict[str, Any] = {"orientation": "horizontal"}
    axis.stairs(np.histogram(finite, edges, density=True)[0], edges, fill=True, color=PALE, **shape)
    for chain, values in enumerate(U if len(U) > 1 else U[:0]):
        if np.isfinite(values).all() and ((values >= edges[0]) & (values <= edges[-1])).any():
            density = np.histogram(values, edges, density=True)[0]
            axis.stairs(density, edges, color=colour(chain), lw=0.8, alpha=0.8, baseline=None, **shape)
