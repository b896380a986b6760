"""One step of many parameters by BlackJAX, SGMCMCJax or by hand in JAX: fused by XLA, the state's memory donated."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from .checking import variance_check
from .clock import timed
from .jax_kernels import kernel, load_jax, versions
from .problems import UPDATE

__all__ = ["measure"]


def measure(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The gradient, θ itself, is worked out in the same fused loop and costs them no memory traffic of its own."""
    jax = load_jax("float32")
    sampler = kernel(config["who"], config["method"], UPDATE.h, UPDATE.friction, 0.0, "float32")
    dim, steps = config["dim"], config["steps"]

    def start(key: Any) -> Any:
        for_theta, for_state = jax.random.split(key)
        return sampler.init(for_state, jax.random.normal(for_theta, (dim,)))

    def run(state: Any, key: Any) -> Any:
        def step(state: Any, key: Any) -> Any:
            return sampler.step(key, state, lambda x: -x), None

        key, own = jax.random.split(key)
        return jax.lax.scan(step, state, jax.random.split(own, steps))[0], key

    compiled = jax.jit(run, donate_argnums=0)
    state, key = jax.jit(start)(jax.random.PRNGKey(0)), jax.random.PRNGKey(1)

    def call(_: int) -> None:  # the chain goes on, with a key of its own: runs may be repeated
        nonlocal state, key
        state, key = jax.block_until_ready(compiled(state, key))

    begin = time.perf_counter()
    call(0)
    first = time.perf_counter() - begin
    record, _ = timed(call, range(config["runs"]), config["budget"])
    check = variance_check(theta=np.asarray(sampler.position(state)))
    return record | {"version": versions(config["who"]), "first": first, "work": steps * dim, "check": check}
