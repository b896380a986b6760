"""Parts that are kept as text: another kernel types only what is new, and draws what it would have drawn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

pytestmark = pytest.mark.skipif(
    numba.config.DISABLE_JIT or os.environ.get("SGMCMC_PLAIN_NUMBA", "0") == "1", reason="the plain way keeps no parts"
)

SCRIPT = """
import json, sys
import numba, numpy as np, sgmcmc as sg
from sgmcmc.compiler import numba_bridge
from sgmcmc.engines.cpu import run_chunk

compiled, compile_one = [], numba_bridge._PartDispatcher._compiled
numba_bridge._PartDispatcher._compiled = lambda self, arguments, key: (compiled.append(key), compile_one(self, arguments, key))[1]
factor = float(sys.argv[1])

@numba.njit
def grad(theta):
    return factor * theta

options = {"warmup": 5, "chains": 1, "seed": 1, "progress": False, "warn": False}
draws = sg.sample(sg.Potential(grad, dim=2), sg.SGNHT(0.1), 30, init=np.ones(2), **options).draws
hits = sum(run_chunk.stats.cache_hits.values())
print(json.dumps([draws.astype(float).ravel().tolist(), len(compiled), sum(key != "" for key in compiled), hits]))
"""


def run(folder, factor="1.0"):
    """Draws, parts compiled, those of them that can be kept, and kernels found."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, factor], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def files(folder, start):
    return [path for path in Path(folder).rglob("*.nbc") if path.name.startswith(start)]


def test_a_kernel_around_another_gradient_compiles_few_parts_and_draws_the_same(tmp_path):
    draws, first, _, _ = run(tmp_path / "one")
    assert first > 100
    other, new, _, hits = run(tmp_path / "one", "2.0")
    assert (hits, new < 0.15 * first) == (0, True)
    assert run(tmp_path / "two", "2.0")[0] == other != draws  # without parts: the same bits
    for path in files(tmp_path / "one", "run_chunk"):
        path.unlink()
    again, few, _, hits = run(tmp_path / "one")
    assert (again, hits) == (draws, 0)
    assert few <= new


def test_a_part_that_is_missing_or_broken_is_compiled_again(tmp_path):
    draws, first, _, _ = run(tmp_path)
    parts = sorted(files(tmp_path, "part"))
    assert len(parts) > 80
    for path in files(tmp_path, "run_chunk"):
        path.unlink()
    for number, path in enumerate(parts):
        if number % 7 == 0:
            path.unlink()
        elif number % 7 == 1:
            path.write_bytes(path.read_bytes()[:-5])
    again, some, _, hits = run(tmp_path)
    assert (again, hits) == (draws, 0)
    assert 10 < some < first
    assert sorted(files(tmp_path, "part")) == parts  # the same names: what is compiled again is the same part
