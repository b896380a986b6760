"""The picture that the documentation opens with, from the run that stands below it: `python docs/pictures.py`."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import sgmcmc as sg
from sgmcmc.plots import COLOURS, blank_figure

SHOWN = 2000  # draws of one chain


def main(path: Path, draws: int) -> None:
    """Draws with noisy gradients over the lines of equal exact density; beside them the way of one chain."""
    model = sg.models.GaussianMixture([[-2.0, 0.0], [2.0, 0.0], [0.0, 2.5]], scales=0.8)
    trace = sg.sample(
        model, sg.SGNHT(step_size=0.2), draws=draws, thin=10, chains=4, gradient_noise=1.0, seed=1, progress=False
    )
    figure = blank_figure(10.0, 4.0)
    plane, way = figure.subplots(1, 2, width_ratios=(1, 1.4))
    plane.plot(*trace.draws.reshape(-1, 2)[::4].T, ".", color=COLOURS[5], markersize=1.5, alpha=0.5, rasterized=True)
    x, y = np.linspace(-4.6, 4.6, 150), np.linspace(-2.8, 5.2, 150)
    density = np.exp([[-model.energy(np.array([a, b])) for a in x] for b in y])
    plane.contour(x, y, density, levels=7, colors=COLOURS[1], linewidths=1.0)
    plane.set(xlabel="θ₁", ylabel="θ₂", title="draws, and the exact density", aspect="equal", ylim=(y[0], y[-1]))
    way.plot(trace.draws[0, :SHOWN, 0], color=COLOURS[0], linewidth=0.7)
    way.set(xlabel="draw", ylabel="θ₁", xlim=(0, SHOWN), title="one chain of SGNHT, with noisy gradients")
    for axes in (plane, way):
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"{path}: mean {trace.draws.mean(axis=(0, 1)).round(3)}, exact {model.mean.round(3)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?", type=Path, default=Path(__file__).parent / "pictures" / "opening.png")
    parser.add_argument("--draws", type=int, default=5000)
    arguments = parser.parse_args()
    main(arguments.path, arguments.draws)
