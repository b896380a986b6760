"""The problems that everybody is given: their numbers, their data, and starts drawn from the exact law.

A chain that starts in the exact law must stay in it. So a short run is enough to see a wrong temperature, and nothing has to
be thrown away as warm-up.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "GAUSSIAN",
    "LOGISTIC",
    "UPDATE",
    "WELLS",
    "logistic_data",
    "logistic_start",
    "noise_on_theta",
    "reference",
    "step_sizes",
    "wells_start",
]


class Wells(NamedTuple):
    """U(θ) = −log Σ_k weights_k N(θ; means_k, scale² I) in two dimensions, gradients with noise N(0, 2B)."""

    means: tuple[tuple[float, float], ...] = ((0.0, 0.0), (2.0, 2.0), (-2.0, 2.0), (2.0, -2.0), (-2.0, -2.0))
    weights: tuple[float, ...] = (0.2, 0.3, 0.1, 0.25, 0.15)
    scale: float = 0.7
    B: float = 1.0
    h: float = 0.02
    friction: float = 1.0
    thin: int = 10


class Steps(NamedTuple):
    """Step sizes h of SGLD and of the others, and the friction A."""

    h_sgld: float
    h: float
    friction: float


WELLS = Wells()
LOGISTIC = {"small": Steps(1e-5, 3e-4, 20.0), "large": Steps(1e-9, 3e-6, 500.0)}  # prior N(0, 1) on every coefficient
UPDATE = Steps(0.05, 0.05, 1.0)  # θ ~ N(0, 1), its gradient is θ
GAUSSIAN = Steps(0.05, 0.05, 1.0)


def wells_start(chains: int, seed: int, dtype: str) -> Any:
    """Exact draws (chains, 2) of the mixture."""
    rng = np.random.default_rng((17, seed))
    k = rng.choice(len(WELLS.weights), size=chains, p=WELLS.weights)
    return (np.array(WELLS.means)[k] + WELLS.scale * rng.standard_normal((chains, 2))).astype(dtype)


def logistic_data(n: int, d: int, dtype: str = "float32") -> tuple[Any, Any]:
    """X (n, d) of standard normals and labels y from coefficients of size ½."""
    rng = np.random.default_rng(2017)
    X = rng.standard_normal((n, d), dtype=np.float32)
    theta = (0.5 * rng.standard_normal(d)).astype(np.float32)
    y = (rng.random(n, dtype=np.float32) < 1.0 / (1.0 + np.exp(-X @ theta))).astype(np.float32)
    return X.astype(dtype, copy=False), y.astype(dtype, copy=False)


def reference(folder: Path, n: int, d: int) -> Any:
    """mean, sd and draws of the posterior, as `references.prepare` left them."""
    return np.load(folder / f"posterior-{n}-{d}.npz")


def logistic_start(folder: Path, n: int, d: int, chains: int, seed: int, dtype: str) -> Any:
    """Draws (chains, d) of the exact posterior, others for every seed."""
    draws = reference(folder, n, d)["draws"]
    return draws[np.random.default_rng((19, seed)).integers(0, len(draws), chains)].astype(dtype)


def step_sizes(config: dict[str, Any]) -> tuple[float, float]:
    """(h, friction) of an entry on a logistic regression."""
    if "h" in config:
        return float(config["h"]), float(config["friction"])
    steps = LOGISTIC[config["size"]]
    return (steps.h_sgld if config["method"] == "sgld" else steps.h), steps.friction


def noise_on_theta(config: dict[str, Any]) -> float:
    """σ_θ for SGMGT-D on a logistic regression: it takes a step of SGLD of size h σ_θ, which is to be SGLD's own.

    With more, the noise of the gradient comes through this door: with the default, 300 times SGLD's step on 1e6 rows, the sd
    was 3.3 times too large.
    """
    steps = LOGISTIC.get(config.get("size", ""), LOGISTIC["small"])
    return steps.h_sgld / steps.h
