"""The picture that the documentation opens with, from a real run: `python docs/pictures.py`."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import sgmcmc as sg
from sgmcmc.plots import COLOURS, blank_figure

SHOWN = 1500


def main(path: Path, draws: int) -> None:
    """One chain among five wells: its way on the left, all draws beside the exact density on the right."""
    model = sg.models.FiveWell()
    trace = sg.sample(
        model, sg.SGNHT(step_size=0.05), draws=draws, thin=20, chains=4, gradient_noise=1.0, seed=1, progress=False
    )
    figure = blank_figure(10.0, 3.6)
    way, law = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1))
    way.plot(trace.draws[0, :SHOWN, 0], color=COLOURS[0], linewidth=0.8)
    way.set(xlabel="draw", ylabel="θ", xlim=(0, SHOWN), title="A chain of SGNHT, with noisy gradients")
    law.hist(trace.draws.ravel(), bins=120, density=True, orientation="horizontal", color=COLOURS[5], label="draws")
    grid = np.linspace(-3.0, 3.2, 1000)
    energy = np.array([model.energy(np.array([x])) for x in grid])
    law.plot(np.exp(-energy) / model.Z, grid, color=COLOURS[1], linewidth=1.5, label="exact")
    law.set(xlabel="density", title=f"{trace.draws.size:,} draws")
    law.legend(frameon=False)
    for axes in (way, law):
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=160)
    print(f"{path}: mean {trace.draws.mean():.3f}, exact {model.MEAN:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?", type=Path, default=Path(__file__).parent / "pictures" / "opening.png")
    parser.add_argument("--draws", type=int, default=50_000)
    arguments = parser.parse_args()
    main(arguments.path, arguments.draws)
