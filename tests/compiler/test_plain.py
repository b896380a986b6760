"""The plain way: the same draws up to rounding, on Numba's public API alone.

    SGMCMC_PLAIN_NUMBA=1 python -m pytest tests/compiler/test_plain.py

It compiles for minutes, so it is run where it is asked for: with the variable, as .ci/run does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from sgmcmc.compiler import backend

pytestmark = pytest.mark.skipif(
    os.environ.get("SGMCMC_PLAIN_NUMBA", "0") != "1", reason="compiles for minutes; SGMCMC_PLAIN_NUMBA=1 asks for it"
)

# Sums over coordinates and rows may be added up in another order, and a product and a sum be rounded once or twice.
TOLERANCE = {"float64": 1e-9, "float32": 1e-3}  # of the largest draw, after 80 steps

SCRIPT = """
import json, sys
import numba, numpy as np, sgmcmc as sg
from sgmcmc.compiler import backend

@numba.njit
def grad(theta, data, rows):
    X, y = data
    total = np.zeros_like(theta)
    for r in rows:
        total += (np.dot(X[r], theta) - y[r]) * X[r]
    return total

rng = np.random.default_rng(0)
X = rng.normal(size=(100, 3))
own = sg.Potential(grad, dim=3, data=(X, rng.normal(size=100)))
models = {
    "own gradient": (own, {"batch_size": 10}),
    "logistic regression": (sg.models.LogisticRegression(X, rng.integers(0, 2, 100)), {"batch_size": 10}),
    "packed Gaussian": (sg.models.Gaussian(np.zeros(3), 1.0), {"gradient_noise": 0.5}),
    "long Gaussian": (sg.models.Gaussian(np.zeros(600), 1.0), {}),
}
samplers = {
    "SGLD": sg.SGLD(0.005),
    "SGHMC": sg.SGHMC(0.02),
    "SGNHT": sg.SGNHT(0.02),
    "SGMGT, a = 2": sg.SGMGT(0.02, 2.0),
    "SGMGT-D, a = 1": sg.SGMGTD(0.02),
    "SGMGT-D, a = 1.5": sg.SGMGTD(0.02, 1.5),
}
pairs = [
    ("own gradient", "SGNHT"),
    ("own gradient", "SGMGT-D, a = 1"),
    ("logistic regression", "SGMGT, a = 2"),
    ("packed Gaussian", "SGMGT-D, a = 1.5"),
    ("packed Gaussian", "SGHMC"),
    ("long Gaussian", "SGLD"),
    ("long Gaussian", "SGNHT"),
]
found = {}
for model, sampler in pairs:
    for dtype in ("float64", "float32") if sampler == "SGHMC" else ("float64",):
        potential, options = models[model]
        run = {"warmup": 40, "chains": 2, "seed": 3, "dtype": dtype, "progress": False, "warn": False}
        trace = sg.sample(potential, samplers[sampler], 40, **run, **options)
        found[f"{model}; {sampler}; {dtype}"] = trace.draws[:, -1, :5].astype(float).tolist()
state = samplers["SGNHT"].init(np.ones(4), seed=1)
for _ in range(30):
    state = samplers["SGNHT"].step(state, state.theta)
found["ask and tell; SGNHT; float64"] = state.theta.tolist()
print(json.dumps({"way": backend._backend.__name__.rpartition(".")[2], "draws": found}))
"""


def run(plain: bool):
    environment = os.environ | {"SGMCMC_PLAIN_NUMBA": "1" if plain else "0"}
    command = [sys.executable, "-W", "error", "-c", SCRIPT]  # asked for, the plain way warns of nothing
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_both_ways_give_the_same_draws_up_to_rounding():
    plain, bridge = run(True), run(False)
    assert (plain["way"], bridge["way"]) == ("plain", "numba_bridge")
    assert plain["draws"].keys() == bridge["draws"].keys()
    for name, draws in plain["draws"].items():
        theirs = np.array(bridge["draws"][name])
        bound = TOLERANCE[name.rpartition("; ")[2]] * np.abs(theirs).max()
        np.testing.assert_allclose(draws, theirs, rtol=0.0, atol=bound, err_msg=name)


def test_this_process_takes_the_plain_way_and_a_second_one_finds_its_kernels(tmp_path):
    assert backend._backend.__name__.endswith("plain")
    script = (
        "import time, numpy as np, sgmcmc as sg; t = time.process_time();"
        "o = {'warmup': 0, 'chains': 1, 'seed': 1, 'progress': False, 'warn': False};"
        "d = sg.sample(sg.models.Gaussian(np.zeros(2), 1.0), sg.SGLD(0.1), 20, **o).draws;"
        "print(d.sum(), time.process_time() - t)"
    )
    found = []
    for _ in range(2):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        found.append([float(word) for word in done.stdout.split()])
    assert found[0][0] == found[1][0]
    assert found[1][1] < 0.3 * found[0][1]
