"""Compile CUDA kernels on a machine without a GPU: to PTX by Numba and NVVM, to machine code by ptxas, and run the PTX here.

`PtxKernels` stands in for `sgmcmc.run.gpu.kernels`: memory is the host's, a launch runs PTX on the CPU. With it
``sg.sample(..., device="cuda")`` goes all its way, but for the hardware.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from ptx_cpu import Module

REQUIRED = os.environ.get("SGMCMC_REQUIRE", "").split(",")


def unavailable(tier: str, reason: str) -> None:
    """Skip; or fail, where the environment says that this tier must be there."""
    if tier in REQUIRED:
        pytest.fail(f"SGMCMC_REQUIRE has {tier}, but {reason}")
    pytest.skip(reason)


def need_ptx() -> None:
    """Skip, unless tests of PTX were asked for: they take minutes, and their compiler is in the extras cuda12 and cuda13."""
    if "ptx" not in REQUIRED:
        pytest.skip("tests of PTX run where SGMCMC_REQUIRE=ptx,ptxas is set, see docs/gpu.md")
    trouble = prepare()
    if trouble is not None:
        pytest.fail(f"SGMCMC_REQUIRE has ptx, but {trouble}")


def prepare() -> str | None:
    """Make Numba compile device functions without a device; returns the error, if any."""
    try:
        import numba.cuda.dispatcher
        from numba import cuda

        # The one private name: a device function asks the current device for its compute capability.
        numba.cuda.dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(8, 0))
        cuda.compile_ptx(lambda: None, (), cc=(8, 0))
    except Exception as error:
        return f"PTX cannot be compiled: {' '.join(str(error).split())[:200]}"
    return None


def ptx_of(kernel: Any, arguments: tuple[Any, ...], capability: tuple[int, int] = (8, 0)) -> str:
    """The PTX of a kernel for arguments of these types."""
    from numba import cuda

    return str(cuda.compile_ptx(kernel, tuple(numba.typeof(a) for a in arguments), cc=capability)[0])


def find_ptxas() -> str | None:
    """The assembler: that of the same installation first, since it must be as new as the PTX."""
    site = Path(numba.__file__).parent.parent
    wheels = sorted(site.glob("nvidia/**/bin/ptxas"))
    return str(wheels[0]) if wheels else shutil.which("ptxas")


class Assembled(NamedTuple):
    """What ptxas says of a kernel."""

    registers: int
    stack: int
    spills: int  # bytes, stored and loaded
    shared: int


def assemble(ptx: str, architecture: str) -> Assembled:
    """Assemble PTX to machine code."""
    if find_ptxas() is None:
        unavailable("ptxas", "there is no ptxas")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(ptx)
        command = [
            str(find_ptxas()),
            f"-arch={architecture}",
            "-v",
            str(source),
            "-o",
            str(Path(folder, "kernel.cubin")),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = done.stderr + done.stdout

    def numbers(pattern: str) -> list[int]:
        return [int(n) for n in re.findall(pattern, text)]

    return Assembled(
        max(numbers(r"Used (\d+) registers")),
        max(numbers(r"(\d+) bytes stack frame")),
        sum(numbers(r"(\d+) bytes spill")),
        max(numbers(r"(\d+) bytes smem"), default=0),
    )


class PtxKernels:
    """Kernels that run as PTX on the CPU, their threads in this order; `change` may tamper with the PTX, `counted` counts."""

    simulated = False

    def __init__(self, change: Any = None, order: str = "ascending", counted: bool = False) -> None:
        from sgmcmc.run.gpu import kernels as gpu_kernels

        self.chain_kernel, self.block_kernel = gpu_kernels.chain_per_thread, gpu_kernels.block_per_chain
        self.change, self.order, self.counted = change, order, counted
        self.modules: dict[Any, Module] = {}
        self.sources: list[str] = []
        self.launches = 0

    def devices(self) -> list[Any]:
        return [None]

    def on(self, device: Any) -> Any:
        return contextlib.nullcontext()

    def upload(self, array: Any) -> Any:
        return np.array(array)

    def download(self, array: Any) -> Any:
        return np.array(array)

    def fill(self, array: Any, value: Any) -> None:
        array.fill(value)

    def block_size(self, kernel: Any, arguments: tuple[Any, ...], threads: int, default: int) -> int:
        return default

    def launch(self, kernel: Any, threads: int, block: int, arguments: tuple[Any, ...]) -> None:
        key = kernel, tuple(numba.typeof(a) for a in arguments)
        if key not in self.modules:
            ptx = ptx_of(kernel, arguments)
            self.sources.append(ptx)
            self.modules[key] = Module(ptx if self.change is None else self.change(ptx), self.counted)
        self.launches += 1
        self.modules[key].launch(-(-threads // block), block, arguments, self.order)


class PtxDevice:
    """Device memory that is the host's, and updates that run as PTX."""

    def __init__(self, kernels: PtxKernels | None = None) -> None:
        from sgmcmc.gpu import runtime, update_kernel

        self.kernels = PtxKernels() if kernels is None else kernels
        self.kernel = update_kernel.four_per_thread
        self.upload = self.download = np.array
        self.adopt, self.duplicate = (
            lambda array, wait=True: runtime.host_view(array),
            lambda array, stream: array.copy(),
        )
        self.holds = lambda array: isinstance(array, np.ndarray)

    def launch(self, threads, arguments, stream):
        self.kernels.launch(self.kernel, threads, 2, arguments)

    def stream_of(self, array):
        return 0

    def place_of(self, array):
        return 0, None


def assert_same_steps(here: Any, there: Any, tolerance: float) -> None:
    """Whether a trace has moved in every step, and its draws and last states are those of another."""
    assert np.abs(np.diff(there.draws, axis=1)).min() > 0.0
    np.testing.assert_allclose(there.draws, here.draws, rtol=tolerance, atol=tolerance)
    for part, value in here.final.items():
        np.testing.assert_allclose(there.final[part], value, rtol=tolerance, atol=tolerance, err_msg=part)


@contextlib.contextmanager
def ptx_in_place_of_a_gpu(kernels: PtxKernels, block: int | None = None) -> Any:
    """Within it, device="cuda" runs PTX on the CPU, in blocks of so many threads."""
    from sgmcmc.run import arguments
    from sgmcmc.run.gpu import chains as gpu_chains

    saved = gpu_chains.device_tasks, arguments.choose_device
    gpu_chains.device_tasks = lambda job, chains, seed: [gpu_chains.DeviceTask(job, chains, seed, kernels, block=block)]
    arguments.choose_device = lambda device: (device, "PTX on the CPU")
    try:
        yield
    finally:
        gpu_chains.device_tasks, arguments.choose_device = saved


class CaughtError(Exception):
    """Holds the arguments of a first launch."""


class Catching(PtxKernels):
    """Goes no further than the first launch."""

    def launch(self, kernel: Any, threads: int, block: int, arguments: tuple[Any, ...]) -> None:
        raise CaughtError(kernel, arguments)


def update_arguments(sampler: Any, gradient: Any) -> tuple[Any, tuple[Any, ...]]:
    """The kernel and the arguments that `sampler.step` would launch it with."""
    sampler.__dict__["_device"] = PtxDevice(Catching())
    with pytest.raises(CaughtError) as caught:
        sampler.step(sampler.init(gradient), gradient)
    kernel, arguments = caught.value.args
    return kernel, arguments


def launch_arguments(model: Any, sampler: Any, options: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """The kernel and the arguments that `sample` would launch it with."""
    import sgmcmc as sg

    with ptx_in_place_of_a_gpu(Catching()), pytest.raises(CaughtError) as caught:
        sg.sample(model, sampler, **options, device="cuda")
    kernel, arguments = caught.value.args
    return kernel, arguments
