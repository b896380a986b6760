"""The house look of pictures: colours that everybody can tell apart, quiet axes, figures outside of pyplot."""

from __future__ import annotations

from typing import Any

__all__ = ["COLOURS", "INK", "PALE", "blank_figure", "colour", "dress", "quieten"]

# Okabe and Ito's colours, told apart with every kind of colour vision; the pale yellow is left out, it fades on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4D4D4D")
INK, PALE = "#333333", "#D9D9D9"


def blank_figure(width: float, height: float) -> Any:
    """A figure to be saved to a file, with no part in pyplot's state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def dress(axis: Any, title: str, note: str = "") -> None:
    """The house look: two spines, small quiet ticks, the title on the left and a figure worth knowing on the right."""
    axis.set_title(title, loc="left", fontsize=9, color=INK, pad=3)
    axis.set_title(note, loc="right", fontsize=8, color="#777777", pad=3)
    quieten(axis)


def quieten(axis: Any) -> None:
    """Two spines and small ticks."""
    axis.tick_params(labelsize=7.5, length=2.5, width=0.6, colors="#555555")
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axis.spines[side].set(linewidth=0.6, color="#888888")


def colour(chain: int) -> str:
    """The colour of a chain, or of anything else that is counted."""
    return COLOURS[chain % len(COLOURS)]
