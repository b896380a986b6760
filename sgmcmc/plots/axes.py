"""Which parameters to show, and the axes to draw them into: those given, or those of a new figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc import checks
from sgmcmc.plots.style import COLOURS, INK, colour

__all__ = ["Chosen", "axes_for", "chain_legend", "chosen_ones", "headline", "label_below", "left_out", "truth_of"]

Trace = Any  # a sgmcmc.trace.Trace; that module stands above this one, which it uses
Chosen = Sequence[int | str] | str | None
MOST, LIMIT = 20, 100  # parameters, by default; and at all


def chosen_ones(trace: Trace, parameters: Chosen) -> list[int]:
    """Positions of the parameters to show: by position, by name, by the name of a block; the first twenty for None."""
    if parameters is None:
        return list(range(min(trace.dim, MOST)))
    wanted = [parameters] if isinstance(parameters, str) else list(parameters)
    chosen = [i for p in wanted for i in _positions(trace, p)]
    if not 0 < len(chosen) <= LIMIT:
        raise ValueError(f"parameters chooses {len(chosen)} of {trace.dim} parameters; give 1 to {LIMIT} of them")
    return chosen


def _positions(trace: Trace, parameter: int | str) -> Sequence[int]:
    if isinstance(parameter, str):
        positions: range = trace.layout.positions(parameter)
        return positions
    return [checks.integer("parameters", parameter, 0, trace.dim - 1)]


def truth_of(trace: Trace, truth: Any) -> NDArray[np.float64]:
    """One number for each parameter of the trace, NaN where nothing is known; from an array, or by name."""
    known = np.full(trace.dim, np.nan)
    if truth is None:
        return known
    if isinstance(truth, Mapping):
        for name, value in truth.items():
            known[list(trace.layout.positions(name, "truth"))] = np.ravel(value)
        return known
    given = np.atleast_1d(np.asarray(truth, dtype=np.float64))
    if given.shape != known.shape:
        raise ValueError(f"truth has shape {given.shape}; give {trace.dim} number(s), one for each parameter")
    return given


def axes_for(
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
    headline(figure, title + left_out(trace, chosen))
    axes: NDArray[Any] = grid.ravel()
    for spare in axes[len(chosen) :]:
        spare.set_axis_off()
    for lowest in axes[max(len(chosen) - columns, 0) : len(chosen)]:
        lowest.tick_params(labelbottom=True)  # a shared axis has its numbers in the last row only, which may have gaps
    return axes[: len(chosen)]


def headline(figure: Any, text: str) -> None:
    """What the figure shows."""
    figure.suptitle(text, x=0.01, ha="left", fontsize=11, fontweight="bold", color=INK)


def left_out(trace: Trace, chosen: list[int]) -> str:
    """How many of the parameters are shown, if not all."""
    if len(chosen) == trace.dim:
        return ""
    first = "first " if chosen == list(range(len(chosen))) else ""
    return f", {first}{len(chosen)} of {trace.dim} parameters"


def _grid(count: int, wide: bool) -> tuple[int, int]:
    """Columns and rows: wide pictures stand below each other until there are five, small ones fill even rows."""
    if wide:
        columns = 1 if count < 5 else 2
    else:
        columns = 2 if count == 4 else max(-(-count // max(-(-count // 5), 1)), 1)
    return columns, max(-(-count // columns), 1)


def label_below(axes: NDArray[Any], text: str) -> None:
    """Name the horizontal axis where its numbers are shown."""
    for axis in axes:
        if axis.xaxis.get_tick_params()["labelbottom"]:
            axis.set_xlabel(text, fontsize=8.5, color=INK)


def chain_legend(trace: Trace, axes: NDArray[Any], ax: Any, truth: str | None = None) -> None:
    """Which colour is which chain, once per figure of ours; with more chains than colours a legend would not help."""
    if ax is not None or len(axes) == 0:
        return
    from matplotlib.lines import Line2D

    few = trace.chain_numbers if trace.chains <= len(COLOURS) else []
    entries = [Line2D([], [], color=colour(i), lw=2, label=f"chain {number}") for i, number in enumerate(few)]
    if truth is not None:
        entries.append(Line2D([], [], color="black", lw=1.2, ls=(0, (4, 2)), label=truth))
    if len(entries) > 0:
        figure = axes[0].figure
        columns = min(len(entries), max(int(figure.get_figwidth() / 0.9), 1))
        look: dict[str, Any] = {"fontsize": 8, "frameon": False, "borderpad": 0.0}
        look |= {"handlelength": 1.2, "columnspacing": 1.2}
        figure.legend(handles=entries, loc="outside lower left", ncols=columns, **look)
