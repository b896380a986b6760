"""Kernels of a device: kept on disk by content, launched in blocks that fill it. Imported inside functions only.

A compiled kernel is stored with its PTX and machine code by Numba's own cache; the key is that of `sgmcmc.kernels`, so that
an edit anywhere in the package, or in an implementation of somebody's own, is never answered with old code.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from importlib import metadata
from typing import Any

from numba import cuda

from sgmcmc.device.setup import simulated
from sgmcmc.kernels import ContentCache

__all__ = ["block_size", "device_kernel"]

BLOCKS = (32, 64, 128, 256, 512)


def device_kernel(function: Callable[..., Any]) -> Any:
    """Compile a module-level function for GPUs, cached by content."""
    compiled = cuda.jit(function)
    if not simulated:
        compiled._cache = _device_cache(function)
    return compiled


def _device_cache(function: Callable[..., Any]) -> Any:
    from numba.cuda.dispatcher import CUDACache

    class DeviceCache(ContentCache, CUDACache):  # type: ignore[misc]
        """Whatever goes wrong with the disk, the kernel is compiled and runs."""

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            with contextlib.suppress(Exception):
                return super().load_overload(sig, target_context)

        def save_overload(self, sig: Any, data: Any) -> None:
            with contextlib.suppress(Exception):
                super().save_overload(sig, data)

        def _index_key(self, sig: Any, codegen: Any) -> str:
            """The launch shape counts where the package numba-cuda says that it has shaped the code."""
            shape = getattr(self, "_launch_config_key", None)
            key = f"{super()._index_key(sig, codegen)} {compiler_version()} {shape}"
            return hashlib.sha256(key.encode()).hexdigest()

    return DeviceCache(function)


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
        function = compiled._codelibrary.get_cufunc()
        resident = {b: b * int(context.get_active_blocks_per_multiprocessor(function, b, 0)) for b in BLOCKS}
    except Exception:  # an older driver, the simulator, another binding: whatever it is, the default is right too
        return default
    best = max(resident.values())
    return default if resident.get(default, 0) == best else max(resident, key=resident.__getitem__)
