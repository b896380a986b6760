"""Starting is quick: a light import, a second process that compiles nothing.

Times are of the processor, so that a busy machine does not count; the best of a few.
"""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import time, numba
below = time.process_time()
import numpy as np, sgmcmc as sg
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 5)); y = rng.integers(0, 2, 200)
trace = sg.sample(sg.models.LogisticRegression(X, y), sg.SGNHT({h}), draws=10, warmup=10, batch_size=16, seed=1, progress=False)
from sgmcmc.engines.cpu import run_chunk
print(float(trace.draws.sum()), below, sum(run_chunk.stats.cache_misses.values()), time.process_time())
"""


def run(source: str, cache) -> tuple[list[str], float]:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", source], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *words, seconds = done.stdout.split()
    return words, float(seconds)


def test_a_second_process_compiles_nothing_draws_the_same_and_is_quick(tmp_path):
    (first, _, misses), _ = run(SCRIPT.format(h=0.01), tmp_path)
    assert misses == "1"
    seconds, numba = [], []
    for _ in range(3):
        (again, below, misses), elapsed = run(SCRIPT.format(h=0.01), tmp_path)
        assert (again, misses) == (first, "0")
        seconds.append(elapsed)
        numba.append(float(below))
    # On a machine that is slower, or busy with other tests, the yardstick is Numba's own import.
    assert min(seconds) < max(1.5, 4.0 * min(numba)), (seconds, numba)
    (other, _, misses), _ = run(SCRIPT.format(h=0.02), tmp_path)
    assert other != first
    assert misses == "0"  # a new number compiles nothing


def test_the_import_is_light_and_quick(tmp_path):
    source = """
import sys, time
begin = time.process_time()
import numba
middle = time.process_time()
import sgmcmc
end = time.process_time()
heavy = [m for m in ("matplotlib", "numba.cuda", "arviz_stats", "arviz", "pandas", "scipy.stats", "tqdm") if m in sys.modules]
print(*heavy, middle - begin, end - begin)
"""
    own, numba = [], []
    for _ in range(5):
        (*heavy, below), total = run(source, tmp_path)
        assert heavy == []
        own.append(total)
        numba.append(float(below))
    # On a machine that is slower, or busy with other tests, the yardstick is Numba's own import.
    assert min(own) < max(0.6, 1.7 * min(numba)), (own, numba)
