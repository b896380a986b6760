"""Learning curves of a contest: losses of the predictive average and of single draws against epochs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["draw"]


def kind_of(name: str) -> str:
    """What has a colour of its own: a sampler, whatever its a."""
    return name.split(",")[0]


def line_of(name: str) -> str:
    """Solid; dashed for a = 2, dotted for a run that was continued."""
    return ":" if "continued" in name else "--" if "a = 2" in name else "-"


def draw(
    results: list[dict[str, Any]],
    what: str,
    figure: Callable[[float], float],
    static: float,
    static_name: str,
    path: Path,
) -> Path:
    """Left the validation figure of single draws, right the test figure of the predictive average."""
    from sgmcmc.plots.style import blank_figure, colour

    page = blank_figure(11.0, 4.8)
    axes = page.subplots(1, 2, sharey=True)
    seen = []
    kinds = list(dict.fromkeys(kind_of(result["sampler"]) for result in results))
    for result in results:
        curve = np.array(result["curve"])
        curve = curve[np.isfinite(curve).all(axis=1)]
        if not len(curve):
            continue
        for axis, column in zip(axes, (1, 4), strict=True):
            values = [figure(v) for v in curve[:, column]]
            name = result["sampler"]
            style = {"color": colour(kinds.index(kind_of(name))), "ls": line_of(name), "lw": 1.5}
            axis.plot(curve[:, 0], values, label=name, marker="o" if len(curve) < 8 else None, ms=3, **style)
            seen += values
    for axis, title in zip(axes, ("validation, single draws", "test, average over draws"), strict=True):
        axis.axhline(static, color="#333333", ls=":", lw=1, label=static_name)
        axis.set(xlabel="epoch", title=title)
    axes[0].set_ylabel(what)
    if seen:
        low = min(seen)
        axes[0].set_ylim(low - 0.03 * (static - low), max(static * 1.03, low * 1.05))
    page.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncol=5, frameon=False, fontsize=8)
    page.savefig(path, dpi=140)
    return path
