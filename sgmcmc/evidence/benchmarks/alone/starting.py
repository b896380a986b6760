"""From nothing to the first draws: ``python script.py`` with an empty and a filled compile cache, the import, the size on disk.

Runs in the environment of the library it measures, with the standard library alone; each script is a process of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

from .clock import timed

__all__ = ["OWN_GRADIENT", "distributions", "measure", "megabytes"]

HERE = Path(__file__).parent
OWN_GRADIENT = "first run, own gradient"
LIBRARIES = {  # name: (distribution, what is imported, its script)
    "sgmcmc": ("sgmcmc", "sgmcmc", HERE.parent / "start_sgmcmc.py"),
    "blackjax": ("blackjax", "blackjax", HERE / "start_blackjax.py"),
    "sgmcmcjax": ("SGMCMCJax", "sgmcmcjax.samplers", HERE / "start_sgmcmcjax.py"),
    "posteriors": ("posteriors", "posteriors", HERE / "start_posteriors.py"),
}


def measure(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    name, module, script = LIBRARIES[config["who"]]
    if config["method"] == OWN_GRADIENT and config["who"] == "sgmcmc":  # the peers' scripts all write theirs out
        script = HERE.parent / "start_own_gradient.py"
    common = {"version": metadata.version(name), "first": 0.0, "work": 1}
    if config["method"] == "installed":
        size = megabytes(name)
        text = f"{len(distributions(name))} distributions"
        return common | {"seconds": [], "megabytes": size, "others": 0.0, "check": {"right": size > 0.0, "text": text}}
    if config["method"] == "import":
        record, _ = timed(lambda _: _run(["-c", f"import {module}"], folder, {}), range(config["runs"]), 1e9)
        return common | record | {"check": {"right": True, "text": "imported"}}
    cache = Path(tempfile.mkdtemp(dir=folder))
    try:
        return common | _first_draws(config, script, folder, cache)
    finally:
        shutil.rmtree(cache, ignore_errors=True)


def _first_draws(config: dict[str, Any], script: Path, folder: Path, cache: Path) -> dict[str, Any]:
    caches = {
        "NUMBA_CACHE_DIR": str(cache / "numba"),
        "JAX_COMPILATION_CACHE_DIR": str(cache / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "torch"),
    }
    fresh = config["method"] in ("first run", OWN_GRADIENT)
    if not fresh:
        _run([str(script)], folder, caches)
    said = []

    def run(number: int) -> None:
        own = {k: f"{v}-{number}" if v.startswith(str(cache)) else v for k, v in caches.items()} if fresh else caches
        said.append(_run([str(script)], folder, own))

    record, _ = timed(run, range(config["runs"]), 1e9, warm_up=False)
    shape = said[-1].strip()
    return record | {"check": {"right": shape == "4 1000 25 finite", "text": f"drew {shape}"}}


def _run(arguments: list[str], folder: Path, extra: dict[str, str]) -> str:
    command = [sys.executable, "-W", "ignore", *arguments]
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | extra,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-800:])
    return done.stdout


def distributions(name: str) -> dict[str, metadata.Distribution]:
    """A distribution and all it needs that is installed, extras left out."""
    found: dict[str, metadata.Distribution] = {}
    waiting = [name]
    while waiting:
        wanted = waiting.pop()
        key = re.sub(r"[-_.]+", "-", wanted).lower()
        if key in found:
            continue
        try:
            found[key] = metadata.distribution(wanted)
        except metadata.PackageNotFoundError:
            continue  # for another platform
        for line in found[key].requires or ():
            requirement, _, marker = line.partition(";")
            match = re.match(r"[A-Za-z0-9._-]+", requirement.strip())
            if match is not None and "extra" not in marker:
                waiting.append(match.group())
    return found


def megabytes(name: str) -> float:
    """Of all files that pip lists for a distribution and its dependencies; a package in development is measured where it is.

    Without kernels: those were compiled later, when it was used there.
    """
    total = 0
    for key, distribution in distributions(name).items():
        files = [Path(str(distribution.locate_file(f))) for f in distribution.files or ()]
        sizes = [f.stat().st_size for f in files if f.is_file()]
        if key == "sgmcmc" and not any(f.parent.name == "sgmcmc" for f in files):
            files = [f for f in HERE.parents[2].rglob("*") if f.is_file() and f.suffix not in (".nbc", ".nbi")]
            sizes += [f.stat().st_size for f in files]
        total += sum(sizes)
    return total / 1e6
