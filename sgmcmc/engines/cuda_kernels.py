"""CUDA kernels. Imported only when a GPU (or its simulator) is about to be used: `cuda` must be a name of this module.

Open functions reach the GPU as they are (`sgmcmc.dispatch` compiles them for whoever asks); what Numba lacks there is added
here.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
from typing import Any

import numpy as np
from numba import cuda, types
from numba.extending import overload

from sgmcmc.dispatch import simulate_device
from sgmcmc.engines.cuda_loop import run_thread

__all__ = ["chain_kernel", "chain_per_thread", "devices", "download", "fill", "launch", "on", "simulated", "upload"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

simulated = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") == "1"
simulate_device(simulated)

if not simulated:

    @overload(np.sqrt, target="cuda")
    def _square_root(x):
        """Numba's CUDA target has the square root of `math` alone."""
        return (lambda x: math.sqrt(x)) if isinstance(x, types.Float) else None

    @overload(min, target="cuda")
    def _smaller(x, y):
        """Numba's own for the CPU takes any number of arguments, which its CUDA target cannot compile."""
        return (lambda x, y: y if y < x else x) if isinstance(x, types.Number) else None

    @overload(max, target="cuda")
    def _larger(x, y):
        return (lambda x, y: y if y > x else x) if isinstance(x, types.Number) else None


def chain_per_thread(common, state, room, chunk, key0, key1, which, numbers, out, done):
    """Thread i runs the chain in column which[i]."""
    i = cuda.grid(1)
    if i < which.size:
        chain = which[i]
        done[chain] = run_thread(common, state, room, chunk, key0, key1, numbers[chain], chain, out)


chain_kernel = cuda.jit(chain_per_thread)

# ---- memory and launches: the simulator keeps NumPy arrays, which tuples can hold ----------------------------------------


# The simulator runs one kernel at a time; on GPUs each device has a thread of its own, and nobody waits for another.
_one_at_a_time: Any = threading.Lock() if simulated else contextlib.nullcontext()


def devices() -> list[Any]:
    """The GPUs there are; one stand-in for the simulator."""
    return [None] if simulated else list(cuda.gpus)


def on(device: Any) -> Any:
    """A context in which `device` is the current one."""
    return contextlib.nullcontext() if device is None else device


def upload(array: Any) -> Any:
    """A copy on the device."""
    return np.array(array) if simulated else cuda.to_device(array)


def download(array: Any) -> Any:
    """A copy on the host."""
    return np.array(array) if simulated else array.copy_to_host()


def fill(array: Any, value: Any) -> None:
    """array[:] = value."""
    if simulated:
        array.fill(value)
    else:
        array.copy_to_device(np.full(array.shape, value, array.dtype))


def launch(kernel: Any, threads: int, block: int, arguments: tuple[Any, ...]) -> None:
    """Run a kernel on at least so many threads, and wait for it."""
    with _one_at_a_time:
        kernel[(threads + block - 1) // block, block](*arguments)
        cuda.synchronize()
