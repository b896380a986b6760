"""One step of many parameters in NumPy, without temporary arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .checking import variance_check
from .clock import timed
from .problems import UPDATE

__all__ = ["measure"]


def measure(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    dim, steps, thermostat, f = config["dim"], config["steps"], config["method"] == "sgnht", np.float32
    rng = np.random.default_rng(0)
    x, p, xi, scratch = (
        rng.standard_normal(dim, dtype=f),
        rng.standard_normal(dim, dtype=f),
        f(UPDATE.friction),
        np.empty(dim, f),
    )
    h, kick = f(UPDATE.h), f((2.0 * UPDATE.friction * UPDATE.h) ** 0.5)

    def call(count: int) -> None:
        nonlocal xi
        for _ in range(count):
            np.multiply(x, h, out=scratch)
            np.multiply(p, f(1) - h * xi, out=p)
            np.subtract(p, scratch, out=p)
            rng.standard_normal(dtype=f, out=scratch)
            np.multiply(scratch, kick, out=scratch)
            np.add(p, scratch, out=p)
            np.multiply(p, h, out=scratch)
            np.add(x, scratch, out=x)
            if thermostat:
                xi = f(xi + h * f(p @ p / dim - 1.0))

    call(1)
    record, _ = timed(call, [steps] * config["runs"], config["budget"])
    check = variance_check(theta=x, p=p)
    return record | {"version": np.__version__, "first": 0.0, "work": steps * dim, "check": check}
