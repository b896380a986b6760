"""Logistic regression from minibatches in plain NumPy, one chain after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .checking import logistic_check
from .clock import timed
from .problems import logistic_data, logistic_start, reference, step_sizes

__all__ = ["measure"]


def measure(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    n, d, chains, batch, steps = (config[k] for k in ("n", "d", "chains", "batch", "steps"))
    method, kind = config["method"], np.dtype(config["dtype"]).type
    X, y = logistic_data(n, d, config["dtype"])
    h, A = (kind(v) for v in step_sizes(config))
    weight, kick = kind(n / batch), kind(np.sqrt(2.0 * h * (1.0 if method == "sgld" else A)))

    def chain(rng: Any, theta: Any, out: Any) -> None:
        p, xi = rng.standard_normal(d, dtype=kind), A
        for t in range(steps):
            rows = rng.integers(0, n, batch)
            Xb = X[rows]
            residual = kind(1) / (kind(1) + np.exp(-(Xb @ theta))) - y[rows]
            gradient = weight * (residual @ Xb) + theta
            z = kick * rng.standard_normal(d, dtype=kind)
            if method == "sgld":
                theta = theta - h * gradient + z
            else:
                p = p - h * (gradient + xi * p) + z
                theta = theta + h * p
                if method == "sgnht":
                    xi = xi + h * (p @ p / kind(d) - kind(1))
            out[t] = theta

    def run(seed: int) -> Any:
        out, rng = np.empty((steps, chains, d), config["dtype"]), np.random.default_rng(seed)
        for number, start in enumerate(logistic_start(folder, n, d, chains, seed, config["dtype"])):
            chain(rng, start, out[:, number])
        return out

    record, outputs = timed(run, range(1, config["runs"] + 1), config["budget"], least=3)
    exact = reference(folder, n, d)
    check = logistic_check(outputs, exact["mean"], exact["sd"])
    return record | {"version": np.__version__, "first": 0.0, "work": chains * steps, "check": check}
