"""What a newcomer waits for: CPU seconds of a first `sample`, from an empty cache and after `sgmcmc compile`, and of the second.

    python benchmarks/first_run.py [--repeats 3] [--write docs/first-run.md] [--only TEXT]

Every case is a fresh process with a cache of its own; CPU seconds of the process and of all it starts, imports included. Run it
on a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

OWN = """
import numpy as np, numba, sgmcmc as sg
@numba.njit
def grad(theta, data, rows):
    X, y = data
    g = np.zeros_like(theta)
    for r in rows:
        p = 1 / (1 + np.exp(-(X[r] * theta).sum()))
        g += (p - y[r]) * X[r]
    return g
rng = np.random.default_rng(0)
X = rng.normal(size=(500, 3)); y = (rng.random(500) < 0.5).astype(float)
model = sg.Potential(grad, dim=3, data=(X, y))
"""
BUILT_IN = """
import numpy as np, sgmcmc as sg
rng = np.random.default_rng(0)
X = rng.normal(size=(500, 3)); y = (rng.random(500) < 0.5).astype(float)
model = sg.models.LogisticRegression(X, y)
"""
RUN = "sg.sample(model, {}, 200, chains=4, seed=1, batch_size=50, progress=False, warn=False)\n"
SAMPLERS = {
    "SGNHT": "sg.SGNHT(0.01)",
    "SGMGT-D, a = 1": "sg.SGMGTD(0.01, 1.0)",
    "SGMGT-D, a = 1.5": "sg.SGMGTD(0.01, 1.5)",
}
CASES = {
    f"{where}: {name}": start + RUN.format(make)
    for where, start in (("own njit gradient", OWN), ("built-in regression", BUILT_IN))
    for name, make in SAMPLERS.items()
}
PAGE = """\
# Waiting for the first draw

Written by `benchmarks/first_run.py`. CPU seconds of a process with 4 chains, imports included, median of {repeats}, without
kernels of the installation; {versions}.

{table}

* first run: from an empty cache.
* first run after `sgmcmc compile`: that command takes {seconds:.0f} s once. It compiles the presets on the models that come with
  the package, and all parts of a kernel that do not depend on a gradient of yours.
* second run: the next process.
"""


def cpu_seconds(cache: Path, *arguments: str) -> float:
    """Of one process of Python with its kernels in `cache`, kernels of the installation aside."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "SGMCMC_INSTALLED_KERNELS": "0"}
    subprocess.run([sys.executable, *arguments], env=environment, check=True, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def measured(script: str, warm: Path, repeats: int) -> tuple[float, float, float]:
    """Medians of a process with an empty cache, of one with a copy of the cache `warm`, and of one after it."""
    found = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            empty, copy = Path(folder, "empty"), Path(folder, "copy")
            shutil.copytree(warm, copy)
            found.append([cpu_seconds(cache, "-c", script) for cache in (empty, copy, copy)])
    first, compiled, second = zip(*found, strict=True)
    return statistics.median(first), statistics.median(compiled), statistics.median(second)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    rows = ["| case | first run | first run after `sgmcmc compile` | second run |", "|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        seconds = cpu_seconds(Path(folder), "-m", "sgmcmc", "compile", "--quiet")
        for name, script in CASES.items():
            if given.only in name:
                rows.append(
                    f"| {name} | "
                    + " | ".join(f"{s:.2f}" for s in measured(script, Path(folder), given.repeats))
                    + " |"
                )
                print(rows[-1], flush=True)
    if given.write is not None:
        versions = ", ".join(f"{name} {version(name)}" for name in ("numba", "llvmlite", "numpy"))
        versions += f", Python {sys.version.split()[0]}"
        page = PAGE.format(repeats=given.repeats, versions=versions, table="\n".join(rows), seconds=seconds)
        given.write.write_text(page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
