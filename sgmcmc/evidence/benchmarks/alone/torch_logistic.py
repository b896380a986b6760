"""Logistic regression from minibatches by posteriors: time per step, and effective draws per second."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from .checking import logistic_check
from .clock import timed
from .efficiency import THIN, compete
from .problems import logistic_data, logistic_start, reference, step_sizes
from .torch_samplers import build, versions

__all__ = ["measure"]


def measure(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    import torch

    torch.manual_seed(0)
    kind, n, d = getattr(torch, config["dtype"]), config["n"], config["d"]
    chains, batch = config["chains"], config["batch"]
    X, y = (torch.from_numpy(a) for a in logistic_data(n, d, config["dtype"]))

    def log_posterior(theta: Any, rows: Any) -> Any:
        z = rows[0] @ theta
        likelihood = n * (rows[1] * z - torch.nn.functional.softplus(z)).mean()
        return likelihood - 0.5 * (theta * theta).sum(), torch.zeros(())

    def run(seed: int, h: float, friction: float, thin: int, steps: int) -> Any:
        init, update = build(log_posterior, config["method"], h, friction, 0.0, chains, kind)
        theta = torch.from_numpy(logistic_start(folder, n, d, chains, seed, config["dtype"]))
        theta = theta[0] if chains == 1 else theta
        state, out = init(theta), torch.empty((steps // thin, *theta.shape), dtype=kind)
        for record in out:
            for _ in range(thin):
                rows = torch.randint(n, (batch,) if chains == 1 else (chains, batch))
                state, _ = update(state, (X[rows], y[rows]))
            record.copy_(state.params)
        return out.numpy().reshape(-1, chains, d)

    exact = reference(folder, n, d)
    begin = time.perf_counter()
    run(0, 1e-9, 1.0, 1, 3)
    extra = {"version": versions(), "first": time.perf_counter() - begin, "work": chains * config["steps"]}
    if config["case"] == "efficiency":
        settled = lambda seed, h, a: run(seed, h, a, THIN, config["steps"]).swapaxes(0, 1)  # noqa: E731
        return compete(settled, config, exact, folder) | extra
    h, friction = step_sizes(config)
    seeds = range(1, config["runs"] + 1)
    record, outputs = timed(lambda seed: run(seed, h, friction, 1, config["steps"]), seeds, config["budget"], least=3)
    return record | extra | {"check": logistic_check([np.asarray(x) for x in outputs], exact["mean"], exact["sd"])}
