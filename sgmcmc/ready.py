"""Kernels that come with an installation: ``python -m sgmcmc.ready FOLDER`` compiles the presets on the models below.

``pip install`` runs it (hatch_build.py), for the processor it installs on, so that even a first run finds its kernel. They are
found by their content, as all kernels are: with another processor, another Numba or an edited source none is found, and what is
needed is compiled as ever.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["compile_all"]

PRESETS = ("SGMGTD", "SGNHT", "SGHMC", "SGLD")  # SGMGT has the kernel of SGMGT-D: its noise on θ and ξ is a number, 0
Case = tuple[str, str, str]  # preset, model, precision


def cases() -> Iterator[Case]:
    """The longest first: two processes then end together."""
    for preset in PRESETS:
        yield preset, "logistic regression", "float64"
        yield preset, "logistic regression", "float32"
        yield preset, "five wells", "float64"


def compile_all(folder: Path, chosen: list[Case] | None = None) -> int:
    """Compile the cases on all cores, and put their kernels into a folder. Gives back how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as cache:
        context = multiprocessing.get_context("spawn")
        with context.Pool(initializer=_keep_kernels_in, initargs=(cache,)) as pool:
            for _ in pool.imap_unordered(_compile, list(cases()) if chosen is None else chosen, chunksize=1):
                pass
        kernels = list(Path(cache).rglob("*.nbc"))
        for kernel in kernels:
            (folder / kernel.name).write_bytes(zlib.compress(kernel.read_bytes(), 9))
    return len(kernels)


def _keep_kernels_in(cache: str) -> None:
    os.environ["NUMBA_CACHE_DIR"] = cache  # before Numba is imported, which reads it once


def _compile(case: Case) -> None:
    import sgmcmc as sg

    preset, model, dtype = case
    sampler = getattr(sg, preset)(1e-3)
    options: dict[str, Any] = {"warmup": 0, "seed": 0, "dtype": dtype, "progress": False, "warn": False}
    if model == "logistic regression":
        X, y = np.eye(4), np.arange(4) % 2
        sg.sample(sg.models.LogisticRegression(X, y, sg.priors.Gaussian(1.0)), sampler, 1, batch_size=2, **options)
    else:
        sg.sample(sg.models.FiveWell(), sampler, 1, **options)


if __name__ == "__main__":
    print(f"{compile_all(Path(sys.argv[1]))} kernels")
