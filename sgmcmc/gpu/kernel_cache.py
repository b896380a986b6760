"""Kernels of a device: kept on disk by content, launched in blocks that fill it. Imported inside functions only.

A compiled kernel is stored with its PTX and machine code by Numba's own cache; the key is that of `sgmcmc.compiler.kernels`, so
that an edit anywhere in the package, or in an implementation of a user's, is never answered with old code.
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
    """Whose compiler for GPUs it is. The compute capability and the version of CUDA's runtime are in Numba's key."""
    try:
        return f"numba-cuda {metadata.version('numba-cuda')}"
    except metadata.PackageNotFoundError:
        return "numba"


def block_size(kernel: Any, arguments: tuple[Any, ...], threads: int, default: int) -> int:
    """How many threads a block shall have: so many that a multiprocessor holds most threads, `default` if that is as good.

    It is also `default` where there are too few threads to fill the device, or where the driver cannot tell. Results do not
    depend on it.
    """
    try:
        context = cuda.current_context()
        if threads <= default * context.device.MULTIPROCESSOR_COUNT:
            return default
        compiled = kernel.compile(tuple(kernel.typeof_pyval(a) for a in arguments))
        function = backend.registers_of(compiled)
        resident = {b: b * int(context.get_active_blocks_per_multiprocessor(function, b, 0)) for b in BLOCKS}
    except Exception:  # an older driver, the simulator, another binding: whatever it is, the default is right too
        return default
    best = max(resident.values())
    return default if resident.get(default, 0) == best else max(resident, key=resident.__getitem__)
