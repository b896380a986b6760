"""The wells by posteriors: an update per step as its documentation has it, chains side by side by vmap."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from .checking import wells_check
from .clock import timed
from .problems import WELLS, wells_start
from .torch_samplers import build, versions

__all__ = ["measure"]


def measure(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    import torch

    torch.manual_seed(0)
    kind, chains = getattr(torch, config["dtype"]), config["chains"]
    means, levels = torch.tensor(WELLS.means, dtype=kind), torch.tensor(WELLS.weights, dtype=kind).log()
    spread = (2.0 * WELLS.B) ** 0.5

    def log_posterior(x: Any, z: Any) -> Any:
        level = levels - 0.5 / WELLS.scale**2 * ((x - means) ** 2).sum(-1)
        return torch.logsumexp(level, -1) + spread * (z * x).sum(), torch.zeros(())

    init, update = build(log_posterior, config["method"], WELLS.h, WELLS.friction, 2.0 * WELLS.B, chains, kind)

    def run(start: Any) -> Any:
        theta = torch.from_numpy(start)
        theta = theta[0] if chains == 1 else theta
        state, out = init(theta), torch.empty((config["steps"] // WELLS.thin, *theta.shape), dtype=kind)
        for record in out:
            for z in torch.randn((WELLS.thin, *theta.shape), dtype=kind):
                state, _ = update(state, z)
            record.copy_(state.params)
        return out.numpy()

    starts = [wells_start(chains, seed, config["dtype"]) for seed in range(config["runs"] + 1)]
    begin = time.perf_counter()
    state = init(torch.from_numpy(starts[0])[0] if chains == 1 else torch.from_numpy(starts[0]))
    update(state, torch.zeros_like(state.params))
    first = time.perf_counter() - begin
    record, outputs = timed(run, starts[1:], config["budget"], least=3)
    check = wells_check([np.asarray(x).reshape(-1, chains, 2) for x in outputs])
    return record | {"version": versions(), "first": first, "work": chains * config["steps"], "check": check}
