"""Effective draws of BlackJAX and SGMCMCJax on the small logistic regression; settings are arguments of one compiled program."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from .efficiency import THIN, compete
from .jax_kernels import load_jax, versions
from .jax_logistic import chain_program
from .problems import logistic_data, logistic_start, reference

__all__ = ["measure"]


def measure(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    jax = load_jax(config["dtype"])
    n, d, chains = config["n"], config["d"], config["chains"]
    X, y = (jax.numpy.asarray(a) for a in logistic_data(n, d, config["dtype"]))
    chain = chain_program(jax, config, config["steps"] // THIN, THIN)
    compiled = jax.jit(jax.vmap(chain, (0, 0, None, None, None, None)))

    def run(seed: int, h: float, friction: float) -> Any:
        keys = jax.random.split(jax.random.PRNGKey(seed), chains)
        start = jax.numpy.asarray(logistic_start(folder, n, d, chains, seed, config["dtype"]))
        return np.asarray(compiled(keys, start, X, y, h, friction))

    begin = time.perf_counter()
    run(0, 1e-5, 1.0)
    first = time.perf_counter() - begin
    found = compete(run, config, reference(folder, n, d), folder)
    return found | {"version": versions(config["who"]), "first": first}
