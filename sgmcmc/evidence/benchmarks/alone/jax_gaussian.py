"""A standard normal in d dimensions by BlackJAX, one chain, all steps in one scan: how time grows with d."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from .checking import gaussian_check
from .clock import timed
from .jax_kernels import kernel, load_jax, versions
from .problems import GAUSSIAN

__all__ = ["measure"]


def measure(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    jax = load_jax(config["dtype"])
    sampler = kernel(config["who"], config["method"], GAUSSIAN.h, GAUSSIAN.friction, 0.0, config["dtype"])

    def run(state: Any, key: Any) -> Any:
        def step(state: Any, key: Any) -> Any:
            return sampler.step(key, state, lambda x: -x), None

        return jax.lax.scan(step, state, jax.random.split(key, config["steps"]))[0]

    compiled = jax.jit(run, donate_argnums=0)
    rng = np.random.default_rng(1)
    start = jax.numpy.asarray(rng.standard_normal(config["d"]).astype(config["dtype"]))
    state = jax.jit(sampler.init)(jax.random.PRNGKey(0), start)
    begin = time.perf_counter()
    state = jax.block_until_ready(compiled(state, jax.random.PRNGKey(0)))
    first = time.perf_counter() - begin
    kept = []

    def call(seed: int) -> None:
        nonlocal state
        state = jax.block_until_ready(compiled(state, jax.random.PRNGKey(seed)))
        kept.append(np.array(sampler.position(state)))

    record, _ = timed(call, range(1, config["runs"] + 1), config["budget"])
    theta = np.concatenate(kept)
    return record | {
        "version": versions(config["who"]),
        "first": first,
        "work": config["steps"],
        "check": gaussian_check(theta),
    }
