"""Without compilation: NUMBA_DISABLE_JIT=1 runs every part as plain Python and gives the same numbers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.integrators import State

rng = np.random.default_rng(3)
X = rng.normal(size=(20, 3))
Y = (rng.random(20) < 0.5).astype(float)
GAUSS = sg.models.Gaussian(np.array([1.0, -2.0, 0.5]), np.array([1.0, 4.0, 0.25]))
LOGISTIC = sg.models.LogisticRegression(X, Y, prior=sg.priors.Gaussian(2.0))
SHORT = {"resample_momentum": 3, "resample_thermostat": 4}  # so that six steps see it
RUNS = {
    "SGLD": (GAUSS, sg.SGLD(0.1), {}),
    "SGHMC": (GAUSS, sg.SGHMC(0.1, 2.0, noise_estimate=0.5), {}),
    "SGNHT": (GAUSS, sg.SGNHT(0.1), {"gradient_noise": 0.5, "clip_gradient": 1.0}),
    "SGMGT": (GAUSS, sg.SGMGT(0.1, a=1.0, **SHORT), {}),
    "SGMGTD": (GAUSS, sg.SGMGTD(0.05, a=2.0, temperature=0.5, **SHORT), {}),
    "single": (GAUSS, sg.SGNHT(0.1), {"dtype": np.float32}),
    "logistic": (LOGISTIC, sg.SGNHT(0.02), {"batch_size": 4}),
}
HERE = Path(__file__)


def everything():
    """Draws and last states of all runs, by name."""
    arrays = {"compiled": np.array(hasattr(sg.integrators.step.update_once, "py_func"))}
    for name, (model, sampler, options) in RUNS.items():
        short = {"draws": 6, "warmup": 0, "chains": 2, "seed": 8, "init": 0.5, "threads": 1}
        trace = sg.sample(model, sampler, **short | options, progress=False, warn=False)
        arrays[f"{name}/draws"] = trace.draws
        arrays[f"{name}/temperature"] = np.stack([trace.kinetic_temperature, trace.configurational_temperature])
        arrays |= {f"{name}/{part}": value for part, value in trace.final.items()}
    return arrays


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    path = tmp_path_factory.mktemp("plain") / "arrays.npz"
    command = [sys.executable, "-W", "error", str(HERE), str(path)]
    done = subprocess.run(
        command, env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    with np.load(path) as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def compiled():
    return everything()


def test_single_precision_is_single_in_both(plain, compiled):
    for part in State._fields:
        assert plain[f"single/{part}"].dtype == compiled[f"single/{part}"].dtype == np.float32


def test_the_one_is_compiled_and_the_other_is_not(plain, compiled):
    assert compiled["compiled"]
    assert not plain["compiled"]
    assert plain.keys() == compiled.keys()


@pytest.mark.parametrize("name", list(RUNS))
def test_plain_python_gives_the_numbers_of_the_compiled_run(name, plain, compiled):
    tolerance = 1e-10 if plain[f"{name}/draws"].dtype == np.float64 else 1e-5
    for key in (k for k in plain if k.startswith(f"{name}/")):
        np.testing.assert_allclose(plain[key], compiled[key], rtol=0.0, atol=tolerance, err_msg=key)
        assert plain[key].dtype == compiled[key].dtype
    draws = plain[f"{name}/draws"]
    assert draws.shape == (2, 6, 3)
    assert np.abs(np.diff(draws, axis=1)).min() > 0.0  # it moves


if __name__ == "__main__":
    np.savez(sys.argv[1], **everything())
