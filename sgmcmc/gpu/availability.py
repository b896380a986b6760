"""Whether CUDA is usable on this machine, why not, and the remedy.

``import sgmcmc`` does not import this module. Numba's CUDA support is imported inside `find_state`, and any error there is part
of the result: a broken installation must not break a run on the CPU.
"""

from __future__ import annotations

import os
from importlib import metadata
from typing import Any, NamedTuple

__all__ = ["CudaState", "choose_device", "find_state"]

READY, SIMULATOR = "ready", "simulator"
NO_DRIVER, NO_DEVICE = "no driver", "no device"
BROKEN, NOT_INSTALLED = "broken install", "not installed"

EXTRA = 'pip install "sgmcmc[cuda12]" or "sgmcmc[cuda13]", whichever the driver supports'
REMEDIES = {
    READY: "",
    SIMULATOR: "unset NUMBA_ENABLE_CUDASIM for a real GPU",
    NO_DRIVER: "install NVIDIA's driver, or use device='cpu'",
    NO_DEVICE: "look at nvidia-smi and CUDA_VISIBLE_DEVICES, or use device='cpu'",
    BROKEN: EXTRA,
    NOT_INSTALLED: EXTRA,
}


class CudaState(NamedTuple):
    """The result of `find_state`."""

    state: str  # one of the six words above
    reason: str
    implementation: str  # which package provides numba.cuda
    devices: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether kernels can be launched, on a GPU or in the simulator."""
        return self.state in (READY, SIMULATOR)

    @property
    def remedy(self) -> str:
        return REMEDIES[self.state]

    def __str__(self) -> str:
        parts = [self.state, self.implementation, self.reason, *self.devices]
        return "; ".join(p for p in [*parts, self.remedy] if p != "")


def find_state() -> CudaState:
    """Look for a usable GPU. Takes about 0.1 s with Numba's own CUDA support, 0.3 s with the package numba-cuda."""
    whose = _implementation()
    try:
        from numba import cuda
    except ImportError as error:
        return CudaState(NOT_INSTALLED, _one_line(error), whose)
    except Exception as error:  # numba-cuda without its libraries raises a RuntimeError of its own kind
        return CudaState(BROKEN, _one_line(error), whose)
    if os.environ.get("NUMBA_ENABLE_CUDASIM", "0") == "1":
        return CudaState(SIMULATOR, "NUMBA_ENABLE_CUDASIM=1: kernels run as Python, for tests", whose)
    try:
        return _of_driver(cuda, whose)
    except Exception as error:
        return CudaState(BROKEN, _one_line(error), whose)


def _implementation() -> str:
    try:
        return f"numba-cuda {metadata.version('numba-cuda')}"
    except metadata.PackageNotFoundError:
        return "Numba's own CUDA support"


def _of_driver(cuda: Any, whose: str) -> CudaState:
    from sgmcmc.compiler.backend import cuda_driver

    driver = cuda_driver()
    if not driver.is_available:
        error = driver.initialization_error
        return CudaState(NO_DRIVER, "no driver library" if error is None else _one_line(error), whose)
    try:
        devices = tuple(_describe(device) for device in cuda.gpus)
    except Exception as error:
        return CudaState(NO_DEVICE, _one_line(error), whose)
    if not devices:
        return CudaState(NO_DEVICE, "the driver sees no GPU", whose)
    if not cuda.is_available():
        return CudaState(BROKEN, "there is a GPU, but no compiler for it (libNVVM)", whose, devices)
    return CudaState(READY, "", whose, devices)


def _describe(device: Any) -> str:
    name = device.name.decode() if isinstance(device.name, bytes) else str(device.name)
    major, minor = device.compute_capability
    return f"{name}, compute capability {major}.{minor}"


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()).split(". ")[0].rstrip(".")
    return text if len(text) <= 160 else f"{text[:157]}..."


def choose_device(device: str) -> tuple[str, str]:
    """("cpu" or "cuda", why), for ``device="cpu" | "cuda" | "auto"``; "auto" never takes the simulator."""
    if device == "cpu":
        return "cpu", "asked for"
    found = find_state()
    if device == "auto":
        return ("cuda", "usable") if found.state == READY else ("cpu", f"no usable GPU: {found.state}, {found.reason}")
    if not found.usable:
        raise RuntimeError(f"device='cuda' is not usable here: {found.state} ({found.reason}); {found.remedy}")
    return "cuda", "asked for" if found.state == READY else "asked for, in the simulator"
