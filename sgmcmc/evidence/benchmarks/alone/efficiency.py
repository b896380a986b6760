"""Effective draws per second at equal accuracy: every contestant searches the same grid, and is timed where it does best.

A setting is accurate if the rms error of the posterior mean is at most 0.1 sd and the sd is right, on average over the
coefficients, to 5 %. Of the accurate settings the one with the most effective draws per step (least coefficient, by batch
means) is taken, and run again on other seeds, timed; those draws are judged again, and counted by ArviZ.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .clock import timed

__all__ = ["GRIDS", "MEAN_ERROR", "SD_ERROR", "THIN", "Score", "compete", "score"]

MEAN_ERROR, SD_ERROR, THIN = 0.1, 0.05, 5
_SECOND = [(h, a) for a in (1.0, 5.0, 20.0) for h in (3e-4, 6e-4, 1e-3, 1.5e-3, 2e-3, 3e-3, 4e-3, 6e-3)]
GRIDS: dict[str, list[tuple[float, float]]] = {
    "sgld": [(h, 0.0) for h in (3e-6, 5e-6, 1e-5, 1.5e-5, 2e-5, 3e-5, 4e-5, 6e-5)],
    "sghmc": _SECOND,
    "sgnht": _SECOND,
    "sgmgtd": _SECOND,
}


class Score(NamedTuple):
    mean_error: float  # rms over coefficients, in sd
    sd_ratio: float  # mean over coefficients
    ess: float  # of the worst coefficient, by batch means

    @property
    def accurate(self) -> bool:
        return bool(self.mean_error <= MEAN_ERROR and abs(self.sd_ratio - 1.0) <= SD_ERROR)


def score(draws: Any, mean: Any, sd: Any) -> Score:
    """Of draws (chain, record, d)."""
    x = np.asarray(draws, np.float64)
    if not np.isfinite(x).all():
        return Score(np.inf, np.inf, 0.0)
    flat = x.reshape(-1, x.shape[-1])
    mean_error = float(np.sqrt((((flat.mean(0) - mean) / sd) ** 2).mean()))
    length = max(1, int(np.sqrt(x.shape[1])))
    count = x.shape[1] // length
    batches = x[:, : count * length].reshape(x.shape[0], count, length, -1).mean(2)
    spread = batches.reshape(-1, x.shape[-1]).var(0, ddof=1)
    ess = flat.var(0) * x.shape[0] * count / np.maximum(spread, 1e-300)
    return Score(mean_error, float((flat.std(0) / sd).mean()), float(ess.min()))


def compete(
    run: Callable[[int, float, float], Any], config: dict[str, Any], exact: Any, folder: Path
) -> dict[str, Any]:
    """run(seed, h, friction) → (chain, record, d), the first tenth of the records is warm-up; draws are saved for ArviZ."""
    mean, sd = exact["mean"], exact["sd"]
    grid = GRIDS[config["method"]]
    grid = grid[:: len(grid) // 2] if config["quick"] else grid

    def kept(draws: Any) -> Any:
        x = np.asarray(draws)
        return x[:, x.shape[1] // 10 :]

    tried = [(setting, score(kept(run(0, *setting)), mean, sd)) for setting in grid]
    accurate = [t for t in tried if t[1].accurate]
    if accurate:
        (h, a), _ = max(accurate, key=lambda t: t[1].ess)
    else:
        (h, a), _ = min(tried, key=lambda t: abs(t[1].sd_ratio - 1.0) + t[1].mean_error)
    record, outputs = timed(lambda seed: run(seed, h, a), range(1, config["runs"] + 1), config["budget"], least=3)
    draws = np.stack([kept(x) for x in outputs])
    np.save(folder / config["draws"], draws.astype(np.float32))
    final = score(draws.reshape(-1, *draws.shape[2:]), mean, sd)
    text = f"mean error {final.mean_error:.3f} sd (≤ {MEAN_ERROR:g}), sd ratio {final.sd_ratio:.3f} (1 ± {SD_ERROR:g})"
    check = {"right": final.accurate, "text": text, "figures": final._asdict()}
    setting = {"h": h, "friction": a, "accurate_settings": len(accurate), "settings": len(grid)}
    return record | setting | {"check": check, "work": config["chains"] * config["steps"]}
