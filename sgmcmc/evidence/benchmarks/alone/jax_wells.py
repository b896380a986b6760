"""The wells by BlackJAX and SGMCMCJax: chains by vmap, steps by scan, everything in one jit.

`blackjax+tuned` is what a patient user makes of BlackJAX: the gradient by hand, chains spread over two host devices by pmap.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from .checking import wells_check
from .clock import timed
from .jax_kernels import kernel, load_jax, versions
from .problems import WELLS, wells_start

__all__ = ["measure"]


def _slope(jax: Any, dtype: str, by_hand: bool) -> Any:
    """∇ log p(θ) + √(2B) z."""
    import jax.numpy as jnp

    means, levels = jnp.asarray(WELLS.means, dtype), jnp.log(jnp.asarray(WELLS.weights, dtype))
    precision, spread = WELLS.scale**-2, (2.0 * WELLS.B) ** 0.5

    def log_density(x: Any) -> Any:
        return jax.scipy.special.logsumexp(levels - 0.5 * precision * jnp.sum((x - means) ** 2, axis=-1))

    def written_out(x: Any) -> Any:
        apart = x - means
        share = jax.nn.softmax(levels - 0.5 * precision * jnp.sum(apart * apart, axis=-1))
        return -precision * (share @ apart)

    gradient = written_out if by_hand else jax.grad(log_density)
    return lambda z: lambda x: gradient(x) + spread * z


def _program(jax: Any, config: dict[str, Any], chains: int, by_hand: bool) -> Any:
    """run(key, start) → kept states (record, chain, 2), without the chain's axis if there is one chain."""
    who, method, dtype = config["who"].partition("+")[0], config["method"], config["dtype"]
    sampler = kernel(who, method, WELLS.h, WELLS.friction, 2.0 * WELLS.B, dtype)
    slope, records, thin = _slope(jax, dtype, by_hand), config["steps"] // WELLS.thin, WELLS.thin

    def step(key: Any, state: Any, z: Any) -> Any:
        return sampler.step(key, state, slope(z))

    alone = chains == 1
    init, position = sampler.init, sampler.position
    if not alone:
        init, step, position = jax.vmap(init), jax.vmap(step), jax.vmap(position)

    def keys_of(key: Any, count: int) -> Any:
        if alone:
            return jax.random.split(key, count)
        return jax.random.split(key, count * chains).reshape(count, chains, -1)  # JAX of 2024 splits into one axis only

    def run(key: Any, start: Any) -> Any:
        first, rest = jax.random.split(key)

        def record(state: Any, own: Any) -> Any:
            for_steps, for_noise = jax.random.split(own)
            noise = jax.random.normal(for_noise, (thin, *start.shape), start.dtype)
            inputs = keys_of(for_steps, thin), noise
            state, _ = jax.lax.scan(lambda s, kz: (step(kz[0], s, kz[1]), None), state, inputs)
            return state, position(state)

        state = init(first if alone else jax.random.split(first, chains), start)
        return jax.lax.scan(record, state, jax.random.split(rest, records))[1]

    return run


def measure(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    jax = load_jax(config["dtype"])
    chains, tuned = config["chains"], config["who"].endswith("+tuned")
    devices = 2 if tuned else 1
    run = _program(jax, config, chains // devices, by_hand=tuned)
    compiled = jax.pmap(run) if tuned else jax.jit(run)

    def inputs(seed: int) -> tuple[Any, Any]:
        key, start = jax.random.PRNGKey(seed), jax.numpy.asarray(wells_start(chains, seed, config["dtype"]))
        if tuned:
            return jax.random.split(key, devices), start.reshape(devices, -1, 2)
        return key, start[0] if chains == 1 else start

    def call(given: tuple[Any, Any]) -> Any:
        return compiled(*given).block_until_ready()

    begin = time.perf_counter()
    call(inputs(0))
    first = time.perf_counter() - begin
    record, outputs = timed(call, [inputs(seed) for seed in range(1, config["runs"] + 1)], config["budget"])
    records = config["steps"] // WELLS.thin
    draws = [np.asarray(x) for x in outputs]
    draws = [x.swapaxes(0, 1) if tuned else x for x in draws]
    check = wells_check([x.reshape(records, chains, 2) for x in draws])
    work = chains * config["steps"]
    return record | {"version": versions(config["who"]), "first": first, "work": work, "check": check}
