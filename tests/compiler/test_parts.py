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
from sgmcmc.run.loop_compiled import run_chunk

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
    return json.loads(said(folder, SCRIPT, factor))


def said(folder, script, *arguments):
    """What a process prints that keeps its kernels and parts in a folder."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def files(folder, start):
    return [path for path in Path(folder).rglob("*.nbc") if path.name.startswith(start)]


def test_a_kernel_around_another_gradient_compiles_few_parts_and_draws_the_same(tmp_path):
    draws, first, _, _ = run(tmp_path / "one")
    assert first > 60
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
    assert len(parts) > 60
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


OUTSIDE = """
import numba, numpy as np, sgmcmc as sg
import sgmcmc.run.loop_compiled  # from here on parts are kept
from sgmcmc.elementary import exp, log, power

@numba.njit
def outside(x):
    return power(x, 2.5) + exp(x) + log(x)

print(abs(outside(1.5) / (1.5**2.5 + np.exp(1.5) + np.log(1.5)) - 1) < 1e-14)
"""


def test_a_function_of_a_user_may_call_parts_from_files_outside_of_any_kernel(tmp_path):
    """Several parts bring the same functions of Numba's along. The first process compiles them, the second loads them."""
    for _ in range(2):
        assert said(tmp_path, OUTSIDE) == "True\n"


OWN_CLASS = """
import sys
from typing import NamedTuple
import numba, numpy as np, sgmcmc as sg
from sgmcmc.kinetics import curvature, energy, velocity

class Own(NamedTuple):
    mass: float

sg.implements(energy, Own)(lambda kinetics, p: 0.5 * p * p / kinetics.mass)
sg.implements(curvature, Own)(lambda kinetics, p: 1.0 / kinetics.mass)
sg.implements(velocity, Own)(lambda kinetics, p: p / kinetics.mass)
factor = float(sys.argv[1])

@numba.njit
def grad(theta):
    return factor * theta

model, sampler = sg.Potential(grad, dim=2), sg.Sampler(0.1, kinetics=Own(2.0))
print(sg.sample(model, sampler, 20, seed=1, progress=False, warn=False).draws.sum())
"""


def test_a_class_of_a_script_is_another_one_in_every_process(tmp_path):
    """Parts whose types hold such a class come back with a class of the same content, which no call would find."""
    assert said(tmp_path / "one", OWN_CLASS, "1.0") != said(tmp_path / "one", OWN_CLASS, "2.0")
    assert said(tmp_path / "one", OWN_CLASS, "2.0") == said(tmp_path / "two", OWN_CLASS, "2.0")
