"""The picture of the best step size for a budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sgmcmc.evidence.validation.optimum import QUICK, Optimum, measured

__all__ = ["figure"]


def figure(axes: Any, shown: Sequence[Optimum] | None = None) -> None:
    """Draw the MSE against h for several T, and the best h against T, into two axes."""
    if shown is None:
        shown = [measured(case) for case in QUICK]
    colours = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
    left, right = np.ravel(axes)
    for colour, optimum in zip(colours, shown, strict=False):
        T, h, least = optimum.best("mse")
        for j in range(len(optimum.steps) - 1, 7, -4):
            left.loglog(optimum.h, optimum.mse[:, j], color=colour, linewidth=1)
        left.loglog(h, least, "o", color=colour, markersize=3, label=f"{optimum.name}: least")
        right.loglog(T, h, "o", color=colour, markersize=3, label=optimum.name)
        slope = -1.0 / (2.0 * optimum.order + 1.0)
        right.loglog(T, h[-1] * (T / T[-1]) ** slope, "--", color=colour, linewidth=1, label=f"slope {slope:.2f}")
    left.set(xlabel="step size h", ylabel="MSE", title="MSE; runs 16 times as long from curve to curve")
    right.set(xlabel="steps T", ylabel="best step size h", title="where the MSE is least")
    for ax in (left, right):
        ax.legend(frameon=False, fontsize="small")
