"""Where CUDA stands: every state has a reason and a remedy, and no broken installation reaches the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.gpu import availability
from sgmcmc.gpu.availability import CudaState, choose_device, find_state

STATES = ("ready", "simulator", "no driver", "no device", "broken install", "not installed")
GAUSS = sg.models.Gaussian([0.0, 1.0])

BREAK = """
import sys
class Broken:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[:2] == ["numba", "cuda"]:
            raise {error}("libcudart.so.13 was not found. Neither was another.")
sys.meta_path.insert(0, Broken())
"""


def run(source: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", source],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("error", "state"), [("RuntimeError", "broken install"), ("ModuleNotFoundError", "not installed")]
)
def test_a_broken_installation_breaks_neither_the_import_nor_runs_on_the_cpu(error, state):
    source = (
        BREAK.format(error=error)
        + """
import sgmcmc as sg
from sgmcmc.gpu.availability import find_state
print(find_state().state)
trace = sg.sample(sg.models.Gaussian([0.0]), sg.SGLD(0.1), draws=2, warmup=0, seed=1, progress=False, device="auto")
print(trace.info["device"], "|", trace.info["device_reason"])
try:
    sg.sample(sg.models.Gaussian([0.0]), sg.SGLD(0.1), draws=2, seed=1, progress=False, device="cuda")
except RuntimeError as error:
    print(error)
"""
    )
    first, second, third = run(source, NUMBA_ENABLE_CUDASIM="0").splitlines()
    assert first == state
    assert second.startswith(f"cpu | no usable GPU: {state}, libcudart.so.13 was not found")
    assert third.startswith("device='cuda' is not usable here: ")
    assert "pip install" in third


def test_the_simulator_is_a_state_that_auto_does_not_take():
    source = "from sgmcmc.gpu.availability import *; print(find_state().state, choose_device('auto')[0], choose_device('cuda'))"
    assert run(source, NUMBA_ENABLE_CUDASIM="1").strip() == "simulator cpu ('cuda', 'asked for, in the simulator')"


def test_what_is_found_here_is_one_of_six_states_in_one_line():
    found = find_state()
    assert found.state in STATES
    assert "\n" not in str(found)
    assert str(found).startswith(found.state)
    assert found.usable == (found.state in ("ready", "simulator"))
    assert found.usable or (found.reason != "" and found.remedy != "")


def fake(available: bool, devices: object, compiler: bool = True) -> tuple[ModuleType, SimpleNamespace]:
    driver = SimpleNamespace(is_available=available, initialization_error=OSError("no libcuda. Really."))
    return SimpleNamespace(gpus=devices, is_available=lambda: compiler), driver


class Unreachable:
    def __iter__(self):
        raise OSError("CUDA_ERROR_NO_DEVICE")


GPU = SimpleNamespace(name=b"A100", compute_capability=(8, 0))


@pytest.mark.parametrize(
    ("available", "devices", "compiler", "state", "shown"),
    [
        (False, [], True, "no driver", "no libcuda"),
        (True, [], True, "no device", "the driver sees no GPU"),
        (True, Unreachable(), True, "no device", "CUDA_ERROR_NO_DEVICE"),
        (True, [GPU], False, "broken install", "no compiler for it"),
        (True, [GPU], True, "ready", "A100, compute capability 8.0"),
    ],
)
def test_what_the_driver_says_decides(monkeypatch, available, devices, compiler, state, shown):
    module, driver = fake(available, devices, compiler)
    monkeypatch.setitem(sys.modules, "numba.cuda.cudadrv.driver", SimpleNamespace(driver=driver))
    found = availability._of_driver(module, "a stand-in")
    assert found.state == state
    assert shown in str(found)


def test_auto_takes_a_gpu_that_is_ready_and_cuda_without_one_is_one_sentence(monkeypatch):
    monkeypatch.setattr(availability, "find_state", lambda: CudaState("ready", "", "a stand-in"))
    assert choose_device("auto") == ("cuda", "usable")
    monkeypatch.setattr(availability, "find_state", lambda: CudaState("no driver", "no libcuda", "a stand-in"))
    assert choose_device("auto") == ("cpu", "no usable GPU: no driver, no libcuda")
    with pytest.raises(
        RuntimeError, match=r"^device='cuda' is not usable here: no driver \(no libcuda\); install NVIDIA's"
    ):
        choose_device("cuda")


def test_the_trace_says_where_it_ran():
    trace = sg.sample(GAUSS, sg.SGLD(0.1), draws=2, warmup=0, seed=1, progress=False)
    assert (trace.info["device"], trace.info["device_reason"]) == ("cpu", "asked for")


def test_a_python_gradient_stays_on_the_cpu():
    model = sg.Potential(lambda theta: np.asarray(theta), dim=2)
    trace = sg.sample(model, sg.SGLD(0.1), draws=2, warmup=0, seed=1, progress=False, device="auto")
    assert trace.info["device_reason"] == "the gradient is computed by Python"
    with pytest.raises(TypeError, match=r"is computed by Python and cannot run on a GPU; use device='cpu'"):
        sg.sample(model, sg.SGLD(0.1), draws=2, seed=1, progress=False, device="cuda")
