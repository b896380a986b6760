"""The CUDA runtime: device memory, launches, and functions that Numba's CUDA target lacks.

Imported only when a GPU or its simulator is used. Open functions need no GPU form: `sgmcmc.compiler` compiles them for the
device on request. In the simulator device memory is NumPy's, which tuples can hold.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import os
import threading
import warnings
from typing import Any

import numpy as np
from numba import cuda, types
from numba.extending import overload

from sgmcmc.compiler.open_functions import simulate_device

__all__ = [
    "adopt",
    "current",
    "devices",
    "download",
    "duplicate",
    "fill",
    "host_view",
    "launch",
    "on",
    "shaped",
    "simulated",
    "stream_of_place",
    "upload",
]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

simulated = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") == "1"
simulate_device(simulated)

if not simulated:

    @overload(np.sqrt, target="cuda")
    def _square_root(x):
        """Numba's CUDA target has `math.sqrt` only."""
        return (lambda x: math.sqrt(x)) if isinstance(x, types.Float) else None

    @overload(min, target="cuda")
    def _smaller(x, y):
        """Numba's own takes any number of arguments, which its CUDA target cannot compile."""
        return (lambda x, y: y if y < x else x) if isinstance(x, types.Number) else None

    @overload(max, target="cuda")
    def _larger(x, y):
        return (lambda x, y: y if y > x else x) if isinstance(x, types.Number) else None


# The simulator runs one kernel at a time; on GPUs each device has a thread of its own.
_one_at_a_time: Any = threading.Lock() if simulated else contextlib.nullcontext()


def devices() -> list[Any]:
    """The GPUs; None stands for the simulator's."""
    return [None] if simulated else list(cuda.gpus)


def current() -> int:
    """The number of the current device."""
    return 0 if simulated else int(cuda.get_current_device().id)


def on(device: Any) -> Any:
    """A context in which `device` is the current one."""
    return contextlib.nullcontext() if device is None else device


def upload(array: Any) -> Any:
    """A copy on the device, complete on return: streams of other libraries do not wait for the default one."""
    if simulated:
        return np.array(array)
    if array.size == 0:  # an empty copy would have strides of 0, hence another type than a full one
        return cuda.device_array(array.shape, array.dtype)
    copy = cuda.to_device(array)
    cuda.synchronize()
    return copy


def duplicate(array: Any, stream: Any) -> Any:
    """A copy from device to device, on a stream."""
    if simulated:
        return np.array(array)
    copy = cuda.device_array_like(array, stream=stream)
    copy.copy_to_device(array, stream=stream)
    return copy


def download(array: Any) -> Any:
    """A copy on the host, after all work on the array's stream."""
    if simulated:
        return np.array(array)
    copy = array.copy_to_host()
    cuda.synchronize()
    return copy


def fill(array: Any, value: Any) -> None:
    """array[:] = value."""
    if simulated:
        array.fill(value)
    else:
        array.copy_to_device(np.full(array.shape, value, array.dtype))


def adopt(array: Any, wait: bool = True) -> Any:
    """A device array of another library, through ``__cuda_array_interface__``: the same memory, not a copy.

    With `wait` the owner's stream is synchronised first, which work on that same stream does not need.
    """
    return host_view(array) if simulated else cuda.as_cuda_array(array, sync=wait)


def host_view(array: Any) -> Any:
    """`adopt` where device memory is host memory."""
    if isinstance(array, np.ndarray):
        return array
    interface = array.__cuda_array_interface__
    dtype, shape = np.dtype(interface["typestr"]), interface["shape"]
    memory = (ctypes.c_char * (dtype.itemsize * math.prod(shape))).from_address(interface["data"][0])
    return np.frombuffer(memory, dtype).reshape(shape)


_shaping = threading.Lock()  # filters of warnings belong to all threads


def _shape(kernel: Any, *shape: Any) -> Any:
    """A kernel with its launch shape, without Numba's warning on small grids: few chains make one."""
    with _shaping, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Grid size")
        return kernel[shape]


# In the simulator a kernel has one shape at a time, the last.
shaped: Any = _shape if simulated else functools.lru_cache(maxsize=128)(_shape)


@functools.lru_cache(maxsize=128)
def stream_of_place(device: int, number: int | None) -> Any:
    """The stream with this number on the current device; 0 is Numba's default stream."""
    return 0 if number is None else cuda.external_stream(number)


def launch(kernel: Any, threads: int, block: int, arguments: tuple[Any, ...], stream: Any = 0) -> None:
    """Run a kernel on at least `threads` threads. On the default stream, wait for it; on another, the caller waits."""
    with _one_at_a_time:
        shaped(kernel, (threads + block - 1) // block, block, stream)(*arguments)
        if stream == 0:
            cuda.synchronize()
