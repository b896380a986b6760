"""Standard normals by NumPy, JAX and PyTorch on one core: a long array, or blocks that stay in the cache."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from .checking import normals_check
from .clock import timed

__all__ = ["measure"]


def measure(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    make = {"numpy": _numpy, "jax": _jax, "torch": _torch}[config["who"]]
    fill, read = make(config)
    begin = time.perf_counter()
    fill(0)
    first = time.perf_counter() - begin
    record, _ = timed(fill, range(1, config["runs"] + 1), config["budget"])
    return record | {
        "version": version(config["who"]),
        "first": first,
        "work": config["count"] * config["blocks"],
        "check": normals_check(read()),
    }


def _numpy(config: dict[str, Any]) -> tuple[Callable[[int], None], Callable[[], Any]]:
    generator = np.random.Generator(getattr(np.random, config["method"])(1))
    out = np.empty(config["count"], config["dtype"])

    def fill(_: int) -> None:
        for _ in range(config["blocks"]):
            generator.standard_normal(dtype=out.dtype.type, out=out)

    return fill, lambda: out


def _jax(config: dict[str, Any]) -> tuple[Callable[[int], None], Callable[[], Any]]:
    from .jax_kernels import load_jax

    jax = load_jax(config["dtype"])
    key = jax.random.key(0, impl={"threefry": "threefry2x32", "rbg": "rbg"}[config["method"]])
    shape, dtype, blocks = (config["count"],), config["dtype"], config["blocks"]

    @jax.jit  # type: ignore[untyped-decorator]
    def draw(key: Any) -> Any:
        if blocks == 1:
            return jax.random.normal(key, shape, dtype)
        zero = jax.numpy.zeros(shape, dtype)  # a sum, so that the compiler leaves none of them out
        add = lambda total, own: (total + jax.random.normal(own, shape, dtype), None)  # noqa: E731
        return jax.lax.scan(add, zero, jax.random.split(key, blocks))[0]

    last = None

    def fill(number: int) -> None:
        nonlocal last
        last = draw(jax.random.fold_in(key, number)).block_until_ready()

    return fill, lambda: np.asarray(last) / blocks**0.5


def _torch(config: dict[str, Any]) -> tuple[Callable[[int], None], Callable[[], Any]]:
    import torch

    torch.set_num_threads(config["threads"])
    out = torch.empty(config["count"], dtype=getattr(torch, config["dtype"]))

    def fill(_: int) -> None:
        for _ in range(config["blocks"]):
            out.normal_()

    return fill, lambda: out.numpy()
