"""Kernels before they are needed: into the user's folder (``sgmcmc compile``), or into a wheel (hatch_build.py).

They are found by their content, as all kernels are: with another processor, another Numba or an edited source none is found, and
what is needed is compiled as ever. The kernel around a gradient of your own holds that gradient; what can be here is its parts.

Imports are inside of functions: a worker chooses its folder before Numba is loaded.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["cases", "compile_all", "compile_into", "sampler_of"]

PRESETS = ("SGMGTD", "SGMGT", "SGNHT", "SGHMC", "SGLD")
KINDS = (
    ("logistic regression", "float64"),
    ("logistic regression", "float32"),
    ("five wells", "float64"),
    ("a gradient", "float64"),
)
OTHER_KINETICS = (2.0, 1.5)  # SGMGTD(h, a) is compiled for a = 1, for a = 2, and once for all others
Case = tuple[str, str, str]  # preset, model, precision


def cases(presets: tuple[str, ...] = PRESETS) -> list[Case]:
    """The longest first: two processes then end together."""
    others = [(f"SGMGTD, a = {a}", "a gradient", "float64") for a in OTHER_KINETICS if "SGMGTD" in presets]
    return others + [(preset, *kind) for preset in presets for kind in KINDS]


def compile_all(chosen: list[Case], cache: str | None = None, processes: int | None = None) -> Iterator[Case]:
    """Compile the cases side by side, and yield each when it is done; into the folder `cache`, or the user's own."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, initializer=_keep_kernels_in, initargs=(cache,)) as pool:
        yield from pool.imap_unordered(compile_case, chosen, chunksize=1)


def compile_into(folder: Path, chosen: list[Case] | None = None) -> int:
    """Compile cases, and put their kernels into a folder, compressed. Returns how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as cache:
        for _ in compile_all(cases() if chosen is None else chosen, cache):
            pass
        kernels = list(Path(cache).rglob("*.nbc"))
        for kernel in kernels:
            (folder / kernel.name).write_bytes(zlib.compress(kernel.read_bytes(), 9))
    return len(kernels)


def _keep_kernels_in(cache: str | None) -> None:
    if cache is not None:
        os.environ["NUMBA_CACHE_DIR"] = cache  # before Numba is imported, which reads it once


def compile_case(case: Case) -> Case:
    """One run that takes no time beside its compilation."""
    from numba import njit

    from sgmcmc.models import FiveWell, LogisticRegression
    from sgmcmc.potentials import Potential
    from sgmcmc.priors import Gaussian
    from sgmcmc.run.sample import sample

    preset, model, dtype = case
    sampler = sampler_of(preset)
    options: dict[str, Any] = {"warmup": 0, "seed": 0, "dtype": dtype, "progress": False, "warn": False}
    if model == "logistic regression":
        X, y = np.eye(4), np.arange(4) % 2
        sample(LogisticRegression(X, y, Gaussian(1.0)), sampler, 1, batch_size=2, **options)
    elif model == "five wells":
        sample(FiveWell(), sampler, 1, **options)
    else:
        data = np.eye(4), np.zeros(4)
        sample(Potential(njit(_gradient), dim=4, data=data), sampler, 1, batch_size=2, **options)
    return case


def sampler_of(preset: str) -> Any:
    """The sampler of a case: "SGNHT", or "SGMGTD, a = 2.0"."""
    from sgmcmc.samplers import presets

    name, _, a = preset.partition(", a = ")
    return getattr(presets, name)(1e-3, *([float(a)] if a else []))


def _gradient(theta: Any, data: Any, rows: Any) -> Any:
    """Of a regression, for the parts around a gradient of a user's."""
    total = np.zeros_like(theta)
    for r in rows:
        total += ((data[0][r] * theta).sum() - data[1][r]) * data[0][r]
    return total


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        print(f"{compile_into(Path(sys.argv[1]))} kernels")
