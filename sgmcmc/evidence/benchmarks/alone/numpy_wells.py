"""The wells in plain NumPy, as one writes it by hand: all chains in one array, a Python loop over the steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .checking import wells_check
from .clock import timed
from .problems import WELLS, wells_start

__all__ = ["measure"]


def measure(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    chains, steps, dtype, method = config["chains"], config["steps"], config["dtype"], config["method"]
    kind = np.dtype(dtype).type
    means, levels = np.array(WELLS.means, dtype), np.log(np.array(WELLS.weights, dtype))
    precision, spread = kind(WELLS.scale**-2), kind((2.0 * WELLS.B) ** 0.5)
    h, A = kind(WELLS.h), kind(WELLS.friction)
    injected = {"sgld": 1.0, "sghmc": WELLS.friction - WELLS.h * WELLS.B, "sgnht": WELLS.friction}[method]
    kick = kind((2.0 * injected * WELLS.h) ** 0.5)

    def gradient(x: Any, rng: Any) -> Any:
        apart = x[:, None, :] - means
        level = levels - kind(0.5) * precision * (apart * apart).sum(-1)
        share = np.exp(level - level.max(1, keepdims=True))
        share /= share.sum(1, keepdims=True)
        pull = precision * (share[:, :, None] * apart).sum(1)
        return pull + spread * rng.standard_normal(x.shape, dtype=kind)

    def run(seed: int) -> Any:
        rng, x = np.random.default_rng(seed), wells_start(chains, seed, dtype)
        p, xi = rng.standard_normal(x.shape, dtype=kind), np.full((chains, 1), A)
        out = np.empty((steps // WELLS.thin, chains, 2), dtype)
        for t in range(steps):
            z = kick * rng.standard_normal(x.shape, dtype=kind)
            if method == "sgld":
                x = x - h * gradient(x, rng) + z
            else:
                p = p - h * (gradient(x, rng) + (xi if method == "sgnht" else A) * p) + z
                x = x + h * p
                if method == "sgnht":
                    xi = xi + h * ((p * p).mean(1, keepdims=True) - kind(1))
            if (t + 1) % WELLS.thin == 0:
                out[t // WELLS.thin] = x
        return out

    record, outputs = timed(run, range(config["runs"]), config["budget"], least=3)
    return record | {
        "version": np.__version__,
        "first": 0.0,
        "work": chains * steps,
        "check": wells_check(outputs),
    }
