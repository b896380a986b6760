"""Starting is quick: a light import, a second process that compiles nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time

SCRIPT = """
import numpy as np, sgmcmc as sg
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 5)); y = rng.integers(0, 2, 200)
trace = sg.sample(sg.models.LogisticRegression(X, y), sg.SGNHT({h}), draws=10, warmup=10, batch_size=16, seed=1, progress=False)
from sgmcmc.engines.cpu import run_chunk
print(float(trace.draws.sum()), len(run_chunk.overloads), sum(run_chunk.stats.cache_misses.values()))
"""


def run(source: str, cache) -> tuple[list[str], float]:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", source], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), time.perf_counter() - begin


def test_a_second_process_compiles_nothing_draws_the_same_and_is_quick(tmp_path):
    (first, _, misses), _ = run(SCRIPT.format(h=0.01), tmp_path)
    assert misses == "1"
    seconds = []
    for _ in range(3):
        (again, _, misses), elapsed = run(SCRIPT.format(h=0.01), tmp_path)
        assert (again, misses) == (first, "0")
        seconds.append(elapsed)
    assert min(seconds) < 1.5, seconds
    (other, _, misses), _ = run(SCRIPT.format(h=0.02), tmp_path)
    assert other != first
    assert misses == "0"  # a new number compiles nothing


def test_the_import_is_light_and_quick(tmp_path):
    source = """
import sys, time
begin = time.perf_counter()
import sgmcmc
seconds = time.perf_counter() - begin
heavy = [m for m in ("matplotlib", "numba.cuda", "arviz_stats", "arviz", "pandas", "tqdm") if m in sys.modules]
print(seconds, *heavy)
"""
    seconds = []
    for _ in range(3):
        (elapsed, *heavy), _ = run(source, tmp_path)
        assert heavy == []
        seconds.append(float(elapsed))
    assert min(seconds) < 0.6, seconds
