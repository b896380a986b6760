"""GPU kernels: cached on disk by content, launched in blocks that fill the device. Imported inside functions only.

Numba's own cache stores a compiled kernel with its PTX and machine code under the key of `sgmcmc.compiler.kernels`, so an edit
in the package or in a user's implementation gives another key.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from importlib import metadata
from typing import Any

from numba import cuda

from sgmcmc.compiler import backend
from sgmcmc.compiler.kernels import Kept
from sgmcmc.gpu.runtime import simulated

__all__ = ["block_size", "device_kernel"]

BLOCKS = (32, 64, 128, 256, 512)


def device_kernel(function: Callable[..., Any]) -> Any:
    """Compile a module-level function for GPUs, cached by content."""
    compiled = cuda.jit(function)
    if not simulated:
        backend.keep_device_kernel(compiled, Kept(function, compiler_version()), lambda: contextlib.suppress(Exception))
    return compiled


def compiler_version() -> str:
    """The package that compiles for GPUs. The compute capability and the version of CUDA's runtime are in Numba's key."""
    try:
        return f"numba-cuda {metadata.version('numba-cuda')}"
    except metadata.PackageNotFoundError:
        return "numba"


def block_size(kernel: Any, arguments: tuple[Any, ...], threads: int, default: int) -> int:
    """Threads per block: the size with which a multiprocessor holds most threads, `default` among equals.

    Also `default` if there are too few threads to fill the device, or if the driver does not tell. Results do not depend on it.
    """
    try:
        context = cuda.current_context()
        if threads <= default * context.device.MULTIPROCESSOR_COUNT:
            return default
        compiled = kernel.compile(tuple(kernel.typeof_pyval(a) for a in arguments))
        function = backend.registers_of(compiled)
        resident = {b: b * int(context.get_active_blocks_per_multiprocessor(function, b, 0)) for b in BLOCKS}
    except Exception:  # an older driver, the simulator, another binding: the default is correct, too
        return default
    best = max(resident.values())
    return default if resident.get(default, 0) == best else max(resident, key=resident.__getitem__)
