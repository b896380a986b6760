"""Logistic regression from minibatches by BlackJAX and SGMCMCJax, with each library's own estimator of the gradient."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from .checking import logistic_check
from .clock import timed
from .jax_kernels import kernel, load_jax, versions
from .problems import logistic_data, logistic_start, reference, step_sizes

__all__ = ["chain_program", "measure"]


def chain_program(jax: Any, config: dict[str, Any], records: int, thin: int) -> Any:
    """chain(key, θ, X, y, h, friction) → kept states (record, d)."""
    return (_sgmcmcjax_chain if config["who"] == "sgmcmcjax" else _blackjax_chain)(jax, config, records, thin)


def _scan(jax: Any, step: Any, position: Any, state: Any, key: Any, records: int, thin: int) -> Any:
    """Every `thin`-th state; step(key, number, state)."""

    def record(state: Any, own: Any) -> Any:
        number, key = own
        inputs = jax.random.split(key, thin), number * thin + jax.numpy.arange(thin)
        state, _ = jax.lax.scan(lambda s, ki: (step(ki[0], ki[1], s), None), state, inputs)
        return state, position(state)

    return jax.lax.scan(record, state, (jax.numpy.arange(records), jax.random.split(key, records)))[1]


def _blackjax_chain(jax: Any, config: dict[str, Any], records: int, thin: int) -> Any:
    import blackjax
    import jax.numpy as jnp

    n, batch = config["n"], config["batch"]

    def log_prior(theta: Any) -> Any:
        return -0.5 * jnp.sum(theta * theta)

    def log_likelihood(theta: Any, row: Any) -> Any:
        z = jnp.dot(row[0], theta)
        return row[1] * z - jnp.logaddexp(0.0, z)

    estimate = blackjax.sgmcmc.gradients.grad_estimator(log_prior, log_likelihood, n)

    def chain(key: Any, theta: Any, X: Any, y: Any, h: Any, friction: Any) -> Any:
        sampler = kernel("blackjax", config["method"], h, friction, 0.0, config["dtype"])
        first, rest = jax.random.split(key)

        def step(key: Any, number: Any, state: Any) -> Any:
            for_rows, for_step = jax.random.split(key)
            rows = jax.random.randint(for_rows, (batch,), 0, n)
            return sampler.step(for_step, state, lambda x: estimate(x, (X[rows], y[rows])))

        return _scan(jax, step, sampler.position, sampler.init(first, theta), rest, records, thin)

    return chain


def _sgmcmcjax_chain(jax: Any, config: dict[str, Any], records: int, thin: int) -> Any:
    import jax.numpy as jnp
    from sgmcmcjax import kernels

    def log_prior(theta: Any) -> Any:
        return -0.5 * jnp.sum(theta * theta)

    def log_likelihood(theta: Any, x: Any, label: Any) -> Any:
        z = jnp.dot(x, theta)
        return label * z - jnp.logaddexp(0.0, z)

    def chain(key: Any, theta: Any, X: Any, y: Any, h: Any, friction: Any) -> Any:
        common = log_likelihood, log_prior, (X, y), config["batch"]
        if config["method"] == "sgld":
            init, move, position = kernels.build_sgld_kernel(h, *common)
        else:
            init, move, position = kernels.build_sgnht_kernel(h * h, *common, a=friction * h)
        first, rest = jax.random.split(key)
        state = jax.tree_util.tree_map(lambda leaf: jnp.asarray(leaf, config["dtype"]), init(first, theta))
        return _scan(jax, lambda k, i, s: move(i, k, s), position, state, rest, records, thin)

    return chain


def measure(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Time of all steps, every state kept."""
    jax = load_jax(config["dtype"])
    n, d, chains = config["n"], config["d"], config["chains"]
    X, y = (jax.numpy.asarray(a) for a in logistic_data(n, d, config["dtype"]))
    h, friction = step_sizes(config)
    chain = chain_program(jax, config, config["steps"], 1)

    def program(key: Any, theta: Any, X: Any, y: Any) -> Any:
        return chain(key, theta, X, y, h, friction)

    compiled = jax.jit(program if chains == 1 else jax.vmap(program, (0, 0, None, None)))

    def inputs(seed: int) -> tuple[Any, Any]:
        key = jax.random.PRNGKey(seed)
        theta = jax.numpy.asarray(logistic_start(folder, n, d, chains, seed, config["dtype"]))
        return (key, theta[0]) if chains == 1 else (jax.random.split(key, chains), theta)

    def call(given: tuple[Any, Any]) -> Any:
        return compiled(*given, X, y).block_until_ready()

    begin = time.perf_counter()
    call(inputs(0))
    first = time.perf_counter() - begin
    record, outputs = timed(call, [inputs(seed) for seed in range(1, config["runs"] + 1)], config["budget"])
    draws = [np.asarray(x).reshape(chains, config["steps"], d).swapaxes(0, 1) for x in outputs]
    exact = reference(folder, n, d)
    check = logistic_check(draws, exact["mean"], exact["sd"])
    work = chains * config["steps"]
    return record | {"version": versions(config["who"]), "first": first, "work": work, "check": check}
