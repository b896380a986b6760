"""Steps per second on a GPU beside the CPU, for a range of chain numbers; to be run where there is one.

    python benchmarks/gpu.py

Prints a table; compilation is not counted. It has not yet been run on a GPU.
"""

from __future__ import annotations

import numpy as np

import sgmcmc as sg
from sgmcmc.engines.cuda_state import find_state


def main() -> None:
    found = find_state()
    print(found)
    if found.state != "ready":
        raise SystemExit("no GPU to measure")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 25))
    y = (rng.random(1000) < 0.5).astype(float)
    model = sg.models.LogisticRegression(X, y)
    print("| chains | dtype | CPU, steps/s | GPU, steps/s |\n|---:|---|---:|---:|")
    for chains in (64, 1024, 16384):
        for kind in (np.float64, np.float32):
            options = {"draws": 20, "warmup": 2000, "chains": chains, "batch_size": 16, "seed": 1, "progress": False}
            speeds = [
                sg.sample(model, sg.SGNHT(1e-3), **options, dtype=kind, device=device).info["steps_per_second"]
                for device in ("cpu", "cuda")
            ]
            print(f"| {chains} | {np.dtype(kind).name} | {speeds[0]:.3g} | {speeds[1]:.3g} |", flush=True)


if __name__ == "__main__":
    main()
