"""One step of many parameters by posteriors, in place, the gradient through autograd of a quadratic."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from .checking import variance_check
from .clock import timed
from .problems import UPDATE
from .torch_samplers import versions

__all__ = ["measure"]


def measure(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    import posteriors
    import torch

    torch.manual_seed(0)
    steps, dim = config["steps"], config["dim"]

    def log_posterior(theta: Any, batch: Any) -> Any:
        return -0.5 * (theta * theta).sum(), torch.zeros(())

    module = getattr(posteriors.sgmcmc, config["method"])
    transform = module.build(log_posterior, lr=UPDATE.h, alpha=UPDATE.friction)
    state = transform.init(torch.randn(dim))

    def call(count: int) -> None:
        nonlocal state
        for _ in range(count):
            state, _ = transform.update(state, None, inplace=True)

    begin = time.perf_counter()
    call(3)
    first = time.perf_counter() - begin
    record, _ = timed(call, [steps] * config["runs"], config["budget"])
    check = variance_check(theta=state.params.numpy(), p=state.momenta.numpy())
    return record | {"version": versions(), "first": first, "work": steps * dim, "check": check}
