"""The kernels that run chains, and the memory and launches of `sgmcmc.gpu.runtime`. Imported inside functions only.

The simulator wants `cuda` as a global of the module that holds a kernel.
"""

from __future__ import annotations

import numpy as np
from numba import cuda

from sgmcmc.gpu.kernel_cache import block_size, device_kernel
from sgmcmc.gpu.runtime import devices, download, fill, launch, on, simulated, upload
from sgmcmc.run.coordinate_temperatures import MEASURED
from sgmcmc.run.gpu.block import (
    STRANDS,
    SUMS,
    WIDTH,
    add_measured,
    add_partial_sums,
    add_rows,
    advance_strands,
    begin_strands,
    choose_together,
    find_alone,
    find_errors,
    finish_strands,
    own_arrays,
    record,
    rows_at_once,
)
from sgmcmc.run.gpu.loop import run_thread
from sgmcmc.run.gpu.measure import keep, look_of, looks

__all__ = [
    "block_kernel",
    "block_per_chain",
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


def chain_per_thread(common, state, scratch, chunk, key0, key1, which, numbers, out, done):
    """Thread i runs the chain in column which[i]."""
    i = cuda.grid(1)
    if i < which.size:
        chain = which[i]
        done[chain] = run_thread(common, state, scratch, chunk, key0, key1, numbers[chain], chain, out)


def block_per_chain(common, state, scratch, chunk, key0, key1, which, numbers, out, done):
    """Block i runs the chain in row which[i]; `out` is (draw, chain, coordinate).

    The steps of `cuda_loop.run_thread`. A barrier stands where threads are about to read what others wrote, or to write
    what others have read; all threads of a block meet all of them.
    """
    lane, lanes, chain = cuda.threadIdx.x, cuda.blockDim.x, which[cuda.blockIdx.x]
    partial = cuda.shared.array((SUMS, WIDTH), state.theta.dtype)
    errors = cuda.shared.array(SUMS, state.theta.dtype)
    measured = cuda.shared.array((2, STRANDS), state.theta.dtype)
    model, gradient, strip = common.model, common.gradient, rows_at_once(common.model)
    measure = gradient.measure
    own = own_arrays(common, state, scratch, key0, key1, numbers[chain], chain)
    before, recorded, finished = chunk.before, 0, 0
    if chunk.fresh:
        begin_strands(common, own, lane, lanes)
    for t in range(chunk.steps):
        now, h, phase = chunk.step + t, chunk.step_sizes[t], chunk.phases[t]
        for number in range(looks(measure, now)):
            look = look_of(measure, common.half, own.rows, now, number)
            if look.before == 0:
                choose_together(gradient.minibatch, gradient.n_rows, own, look.step, lane, lanes)
            cuda.syncthreads()  # rows; the sum of the last look is kept
            if strip == 0:
                find_alone(model, own, look.rows, look.before, lane)
            else:
                for first in range(0, look.rows.size, strip):
                    rows = look.rows[first : first + strip]
                    add_partial_sums(model, own.state.theta, rows, partial, lane, lanes)
                    cuda.syncthreads()  # partial sums; the errors of the last strip are not read any more
                    find_errors(model, rows, partial, errors, lane, lanes)
                    cuda.syncthreads()  # errors; the partial sums are not read any more
                    add_rows(model, rows, errors, own.slope, look.before + first, lane, lanes)
            cuda.syncthreads()  # the gradient; θ and the rows are not read any more
            keep(measure, own, now, number, lane, lanes)
        finish_strands(common, own, phase, now, measured, lane, lanes)
        fine = advance_strands(common, own, now, before, h, measured, lane, lanes)
        finite = cuda.syncthreads_and(np.int32(fine))  # θ, what was measured, and whether all of it is finite
        if phase >= MEASURED:
            add_measured(own, measured, lane)
        if finite == 0:
            break
        before, finished = h, t + 1
        if recorded < chunk.recorded and chunk.kept[recorded] == now:
            record(own.state.theta, out[recorded, chain], lane, lanes)
            recorded += 1
    if lane == 0:
        done[chain] = finished


chain_kernel = device_kernel(chain_per_thread)
block_kernel = device_kernel(block_per_chain)
