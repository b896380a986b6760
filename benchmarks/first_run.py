"""What a newcomer waits for: CPU seconds of a first `sample` from an empty cache, and of the second process.

    python benchmarks/first_run.py [--repeats 3] [--write docs/first-run.md] [--only TEXT]

Every case is a fresh process with a cache of its own; CPU seconds of the process and of all it starts, imports included. Run it
on a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import resource
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


def cpu_seconds(script: str, cache: str) -> float:
    """Of one process that runs `script` with its kernels in `cache`, kernels of the installation aside."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"NUMBA_CACHE_DIR": cache, "SGMCMC_INSTALLED_KERNELS": "0"}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def measured(script: str, repeats: int) -> tuple[float, float]:
    """Medians of the first and the second process."""
    first, second = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            first.append(cpu_seconds(script, cache))
            second.append(cpu_seconds(script, cache))
    return statistics.median(first), statistics.median(second)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    rows = ["| case | first run | second run |", "|---|---|---|"]
    for name, script in CASES.items():
        if given.only in name:
            first, second = measured(script, given.repeats)
            rows.append(f"| {name} | {first:.2f} | {second:.2f} |")
            print(rows[-1], flush=True)
    if given.write is not None:
        versions = ", ".join(f"{name} {version(name)}" for name in ("numba", "llvmlite", "numpy"))
        given.write.write_text(
            "# Waiting for the first draw\n\nWritten by `benchmarks/first_run.py`. CPU seconds, imports included, "
            f"median of {given.repeats} processes, each with an empty cache and without kernels of the installation; "
            f"{versions}, Python {sys.version.split()[0]}. The second run is the next process with the same cache.\n\n"
            + "\n".join(rows)
            + "\n"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
