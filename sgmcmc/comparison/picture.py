"""Accuracy against time: a line for each sampler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sgmcmc import checks
from sgmcmc.plots.axes import headline
from sgmcmc.plots.style import INK, colour, dress

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["plot_history"]

_ACROSS = {"seconds": "seconds of sampling, warm-up included", "gradients": "gradient evaluations, warm-up included"}
_UP = {
    "error_mean": ("Error of the mean", "error of the mean, in true sds (RMS over parameters)"),
    "error_sd": ("Error of the sd", "relative error of the sd (RMS over parameters)"),
    "ksd": ("Kernel Stein discrepancy", "kernel Stein discrepancy"),
}
_MARKS = "os^DvPX"  # beside the colours, for who cannot tell them apart


def plot_history(history: pd.DataFrame, y: str | None, x: str, ax: Any) -> Any:
    """One axes, both scales logarithmic."""
    checks.one_of("x", x, tuple(_ACROSS))
    there = [name for name in _UP if name in history.columns]
    if len(there) == 0 or len(history) == 0:
        raise ValueError(
            "there is no accuracy to draw: no run has draws, or neither errors nor ksd were among the metrics"
        )
    y = there[0] if y is None else checks.one_of("y", y, there)
    axis, levels = _axis(ax), []
    for i, (name, runs) in enumerate(history.groupby("sampler", sort=False)):
        lines = [run[[x, y]].to_numpy(dtype=float) for _, run in runs.groupby("seed", sort=False)]
        for line in lines if len(lines) > 1 else []:
            axis.plot(line[:, 0], line[:, 1], color=colour(i), lw=0.6, alpha=0.45)
        across, up = _middle(lines)
        levels.append(up[up > 0.0])
        axis.plot(across, up, color=colour(i), lw=1.8, marker=_MARKS[i % len(_MARKS)], ms=4.5, markevery=4, label=name)
    axis.set(xscale="log", yscale="log")
    if sum(map(len, levels)) > 0:
        axis.set_ylim(bottom=0.3 * np.concatenate(levels).min())  # where an error changes its sign it is 0 for a moment
    seeds = history["seed"].nunique()
    dress(axis, f"{_UP[y][0]} against {'time' if x == 'seconds' else 'gradients'}", f"{seeds} seed{'s' * (seeds != 1)}")
    axis.set_xlabel(_ACROSS[x], fontsize=8.5, color=INK)
    axis.set_ylabel(_UP[y][1], fontsize=8.5, color=INK)
    axis.legend(fontsize=8, frameon=False)
    if ax is None:
        headline(axis.figure, "Samplers with the same budget")
    return axis


def _axis(ax: Any) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(7.0, 4.4), layout="constrained")[1]


def _middle(lines: list[Any]) -> tuple[Any, Any]:
    """The median over seeds at each checkpoint that all of them have reached."""
    n = min(len(line) for line in lines)
    stack = np.stack([line[:n] for line in lines])
    return np.median(stack[:, :, 0], axis=0), np.median(stack[:, :, 1], axis=0)
