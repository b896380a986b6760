"""The fused update kernel: each thread advances four coordinates, with the normals of one or two Philox calls."""

from __future__ import annotations

from numba import cuda

from sgmcmc.gpu.kernel_cache import device_kernel
from sgmcmc.gpu.update import advance_four
from sgmcmc.moments import accumulate

__all__ = ["four_per_thread", "update_kernel"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


def four_per_thread(dynamics, sizes, state, gradient, noise, moments, stream, step, before, h):
    """Thread i advances the coordinates 4i to 4i + 3."""
    low = 4 * cuda.grid(1)
    if low < sizes.theta:
        advance_four(dynamics, sizes, state, gradient, noise, stream, step, before, h, low)
        accumulate(moments, state.theta, low, min(low + 4, sizes.theta))


update_kernel = device_kernel(four_per_thread)
