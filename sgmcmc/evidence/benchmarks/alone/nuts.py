"""NUTS with all the data, by BlackJAX and NumPyro: the exact samplers that stochastic gradients have to beat on small data.

Only sampling is timed; warm-up, which finds the step size and the mass matrix, is not counted against them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from .clock import timed
from .efficiency import MEAN_ERROR, SD_ERROR, score
from .jax_kernels import load_jax
from .problems import logistic_data, reference

__all__ = ["measure"]


def measure(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    jax = load_jax(config["dtype"])
    n, d = config["n"], config["d"]
    X, y = (jax.numpy.asarray(a) for a in logistic_data(n, d, config["dtype"]))
    begin = time.perf_counter()
    make = _numpyro if config["who"] == "numpyro" else _blackjax
    sample, warmup_seconds = make(jax, X, y, config)
    sample(0)
    first = time.perf_counter() - begin
    record, outputs = timed(sample, range(1, config["runs"] + 1), config["budget"], least=3)
    draws = np.stack([np.asarray(x) for x in outputs])  # (run, chain, draw, d)
    np.save(folder / config["draws"], draws.astype(np.float32))
    exact = reference(folder, n, d)
    final = score(draws.reshape(-1, *draws.shape[2:]), exact["mean"], exact["sd"])
    text = f"mean error {final.mean_error:.3f} sd (≤ {MEAN_ERROR:g}), sd ratio {final.sd_ratio:.3f} (1 ± {SD_ERROR:g})"
    check = {"right": final.accurate, "text": text, "figures": final._asdict()}
    versions = f"{version(config['who'])}, JAX {version('jax')}"
    work = config["chains"] * config["steps"]
    return record | {
        "version": versions,
        "first": first,
        "work": work,
        "check": check,
        "warmup_seconds": warmup_seconds,
    }


def _blackjax(jax: Any, X: Any, y: Any, config: dict[str, Any]) -> tuple[Callable[[int], Any], float]:
    import blackjax
    import jax.numpy as jnp

    chains, d = config["chains"], config["d"]

    def log_density(theta: Any) -> Any:
        z = X @ theta
        return jnp.sum(y * z - jnp.logaddexp(0.0, z)) - 0.5 * jnp.sum(theta * theta)

    def adapt(key: Any) -> Any:
        found, _ = blackjax.window_adaptation(blackjax.nuts, log_density).run(key, jnp.zeros(d), config["warmup"])
        return found.state, found.parameters

    def chain(key: Any, state: Any, parameters: Any) -> Any:
        step = blackjax.nuts(log_density, **parameters).step

        def one(state: Any, key: Any) -> Any:
            state, _ = step(key, state)
            return state, state.position

        return jax.lax.scan(one, state, jax.random.split(key, config["steps"]))[1]

    def keys(seed: int) -> Any:
        return jax.random.split(jax.random.PRNGKey(seed), chains)

    warm, run = jax.jit(jax.vmap(adapt)), jax.jit(jax.vmap(chain))
    jax.block_until_ready(warm(keys(1000)))
    begin = time.perf_counter()
    state, parameters = jax.block_until_ready(warm(keys(1001)))
    seconds = time.perf_counter() - begin
    return lambda seed: run(keys(seed), state, parameters).block_until_ready(), seconds


def _numpyro(jax: Any, X: Any, y: Any, config: dict[str, Any]) -> tuple[Callable[[int], Any], float]:
    import jax.numpy as jnp
    from numpyro.infer import NUTS

    def energy(theta: Any) -> Any:
        z = X @ theta
        return jnp.sum(jnp.logaddexp(0.0, z) - y * z) + 0.5 * jnp.sum(theta * theta)

    nuts = NUTS(potential_fn=energy)

    def step(state: Any) -> Any:
        return nuts.sample(state, (), {})

    def warm(key: Any) -> Any:
        state = nuts.init(key, config["warmup"], jnp.zeros(config["d"]), (), {})
        return jax.lax.fori_loop(0, config["warmup"], lambda i, state: step(state), state)

    def chain(state: Any, key: Any) -> Any:
        def one(state: Any, _: Any) -> Any:
            state = step(state)
            return state, state.z

        return jax.lax.scan(one, state._replace(rng_key=key), None, config["steps"])[1]

    def keys(seed: int) -> Any:
        return jax.random.split(jax.random.PRNGKey(seed), config["chains"])

    # `MCMC.run` compiles its loop anew in every call; one jit around the same steps does not, and is far faster
    prepare, run = jax.jit(jax.vmap(warm)), jax.jit(jax.vmap(chain))
    jax.block_until_ready(prepare(keys(1000)))
    begin = time.perf_counter()
    state = jax.block_until_ready(prepare(keys(1001)))
    seconds = time.perf_counter() - begin
    return lambda seed: jax.block_until_ready(run(state, keys(seed))), seconds
