"""The kernel of chains, beside the memory and launches of `sgmcmc.device.setup`. Imported inside functions only:

`cuda` must be a name of the module that holds a kernel.
"""

from __future__ import annotations

from numba import cuda

from sgmcmc.device.kernel import block_size, device_kernel
from sgmcmc.device.setup import devices, download, fill, launch, on, simulated, upload
from sgmcmc.engines.cuda_loop import run_thread

__all__ = [
    "block_size",
    "chain_kernel",
    "chain_per_thread",
    "devices",
    "download",
    "fill",
    "launch",
    "on",
    "simulated",
    "upload",
]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


def chain_per_thread(common, state, room, chunk, key0, key1, which, numbers, out, done):
    """Thread i runs the chain in column which[i]."""
    i = cuda.grid(1)
    if i < which.size:
        chain = which[i]
        done[chain] = run_thread(common, state, room, chunk, key0, key1, numbers[chain], chain, out)


chain_kernel = device_kernel(chain_per_thread)
