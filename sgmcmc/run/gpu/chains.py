"""Chains on GPUs: one task per device, chunk by chunk, as on the CPU.

A chain has one thread, or a block of threads if its gradient is large. Device memory holds the states of all chains of a task,
laid out so that neighbouring threads read neighbouring numbers: (coordinate, chain) for threads, (chain, coordinate) for
blocks. Draws are downloaded with each chunk, states at the end. The draws of a chain depend on its number and the seed alone,
not on devices, chunks or launch shapes.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.gpu.update import uploaded
from sgmcmc.integrators.state import State
from sgmcmc.integrators.step import in_one_block
from sgmcmc.kinetics import MonomialGamma
from sgmcmc.minibatch import FullData, memory, row_buffer
from sgmcmc.potentials import PythonPotential, scratch_size
from sgmcmc.run.gpu.block import STRANDS, rows_at_once
from sgmcmc.run.gpu.loop import Chunk, Common, Scratch
from sgmcmc.run.job import Chain, Job
from sgmcmc.run.loop_compiled import Measured
from sgmcmc.run.row_sharding import first_half
from sgmcmc.run.scheduler import Task, split

__all__ = ["DeviceTask", "check_model_for_device", "device_tasks", "takes_a_block"]

BLOCK = 64  # threads with a chain each, unless the device prefers another size: few, so that every multiprocessor has a block
FILLING = 1 << 14  # chains with a thread each that fill a device
DRAWS_AT_ONCE = 1 << 26  # bytes of the draws of a chunk on the device


def check_model_for_device(model: Any) -> None:
    """Refuse a model that only the CPU can run."""
    if isinstance(model, PythonPotential):
        raise TypeError(
            f"{model!r} is computed by Python and cannot run on a GPU; use device='cpu', or give a numba.njit gradient"
        )


def takes_a_block(model: Any, kinetics: Any, dtype: Any, dim: int, rows: int, chains: int) -> bool:
    """Whether a block of threads should run each chain.

    Its gradient must be divisible among threads, with at least 32 products per thread; 2 if the chains are too few to fill a
    device with a thread each. Both numbers are guesses, never timed. Excluded: monomial gamma kinetics other than a = 1 and
    a = 2 in double precision, whose powers would make a block spill registers.
    """
    each = 32 if chains >= FILLING else 2
    if isinstance(kinetics, MonomialGamma) and np.dtype(dtype) == np.float64:
        return False
    return int(rows_at_once(model)) > 0 and dim * rows >= each * STRANDS


def device_tasks(job: Job, chains: list[Chain], seed: int) -> list[DeviceTask]:
    """One task per device, with equal shares of the chains."""
    from sgmcmc.run.gpu import kernels as gpu_kernels

    devices = gpu_kernels.devices()
    groups = zip(split(chains, len(devices)), devices, strict=False)
    return [DeviceTask(job, group, seed, gpu_kernels, device) for group, device in groups]


class DeviceTask(Task):
    """The chains of one device: one task of the scheduler."""

    def __init__(
        self, job: Job, chains: list[Chain], seed: int, kernels: Any, device: Any = None, block: int | None = None
    ) -> None:
        self.kernels, self.device = kernels, device
        super().__init__(job, chains)
        self.seconds = 1e-9
        self.key = np.uint32(seed & 0xFFFFFFFF), np.uint32(seed >> 32)
        self.dim = chains[0].state.theta.size
        rows = row_buffer(job.gradient.minibatch, job.gradient.n_rows).size
        shared = takes_a_block(job.model, job.dynamics.kinetics, job.dtype, self.dim, rows, len(chains))
        self.measured = isinstance(job.gradient.measure, Measured)
        self.chain_axis = -2 if shared else -1
        self.kernel = kernels.block_kernel if shared else kernels.chain_kernel
        self.block = STRANDS if block is None and shared else block
        self.threads_per_chain = self.block if shared and self.block is not None else 1
        with kernels.on(device):
            self._upload()

    def _upload(self) -> None:
        job, up = self.job, self.kernels.upload
        dynamics, g, dim = job.dynamics, job.gradient, self.dim
        sizes = State(*(a.size for a in self.chains[0].state))
        rows, order = row_buffer(g.minibatch, g.n_rows), memory(g.minibatch, g.n_rows)
        on_device = [uploaded(value, up) for value in (dynamics, job.model, g)]
        half = int(first_half(job.row_shards(dim), rows.size)) if self.measured else 0
        together = dim if in_one_block(dynamics) else 4
        self.common = Common(on_device[0], on_device[1], on_device[2], sizes, rows.size, half, together)
        self.state = State(*(up(self._stacked([getattr(c.state, f) for c in self.chains])) for f in State._fields))

        def zeros(length: int, kind: Any = job.dtype) -> Any:
            return up(np.zeros(self._shape(length), kind))

        self.scratch = Scratch(
            zeros(sizes.p),
            zeros(dim),
            zeros(sizes.xi),
            zeros(dim),
            zeros(dim if self.measured else 0),
            zeros(dim if g.noise > 0.0 else 0),
            up(self._stacked([rows])) if isinstance(g.minibatch, FullData) else zeros(rows.size, np.int64),
            zeros(order.size, np.int64),
            zeros(int(scratch_size(job.model))),
            up(self._stacked([c.origin for c in self.chains])),
            zeros(4),
        )
        self.numbers = up(np.array([c.number for c in self.chains], np.uint32))

    def _stacked(self, arrays: list[NDArray[Any]]) -> NDArray[Any]:
        """Vectors of equal length as one array, with an axis of chains."""
        if arrays[0].size == 0:
            return np.zeros(self._shape(0), arrays[0].dtype)
        return np.ascontiguousarray(np.stack(arrays, axis=self.chain_axis))

    def _shape(self, length: int) -> tuple[int, int]:
        """The shape of an array with `length` numbers per chain; for blocks, at least one (see `own_arrays`)."""
        n = len(self.chains)
        return (length, n) if self.chain_axis == -1 else (n, max(length, 1))

    # ---- a chunk ---------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        self.advance([0], 0)

    def chunk(self) -> int:
        """Advance the chains that are furthest behind by a chunk."""
        with self.kernels.on(self.device):
            group, count = self._next()
            done = self.advance(group, count)
        self.next_count(count, self.seconds)
        return done

    def _next(self) -> tuple[list[int], int]:
        """The chains in the earliest step, by their index, and how many steps they take together."""
        alive = [i for i, c in enumerate(self.chains) if c.diverged is None]
        first = min(self.chains[i].step for i in alive)
        group = [i for i in alive if self.chains[i].step == first]
        later = min((c.step for c in self.chains if c.diverged is None and c.step > first), default=self.job.end)
        scratch = max(1, DRAWS_AT_ONCE // (self.dim * len(self.chains) * np.dtype(self.job.dtype).itemsize))
        low = self.job.plan.recorded_before(first)
        kept = self.job.plan.kept
        fits = int(kept[low + scratch]) - first if low + scratch < kept.size else self.job.end - first
        count = self.job.fitting(self.chains[group[0]], self.count)
        return group, min(count, later - first, max(1, fits))

    def advance(self, group: list[int], count: int) -> int:
        """Launch `count` steps of these chains, and download their draws."""
        job, up, down, plan = self.job, self.kernels.upload, self.kernels.download, self.job.plan
        lead = self.chains[group[0]]
        low, high = plan.recorded_before(lead.step), plan.recorded_before(lead.step + count)
        step_sizes = plan.step_sizes(lead.step, count, job.dtype)
        out = up(np.zeros((max(high - low, 1), *self._shape(self.dim)), job.dtype))
        done = up(np.zeros(len(self.chains), np.int64))
        chunk = Chunk(
            np.int64(lead.step),
            job.dtype(lead.before),
            up(np.resize(step_sizes, max(count, 1))),
            np.int64(count),
            up(np.resize(plan.kept[low:high], max(high - low, 1))),
            np.int64(high - low),
            up(np.resize(plan.phases(lead.step, count).astype(np.int64), max(count, 1))),
            bool(lead.fresh and count > 0),
        )
        self.kernels.fill(self.scratch.memory, -1)  # rows remembered of an epoch are valid for a chunk
        arguments = (
            self.common,
            self.state,
            self.scratch,
            chunk,
            *self.key,
            up(np.array(group, np.uint32)),
            self.numbers,
            out,
            done,
        )
        if self.block is None:
            self.block = self.kernels.block_size(self.kernel, arguments, len(group), BLOCK)
        # Only the launch is timed for the length of the next chunk: with thousands of chains the rest takes as long, and would
        # shorten each chunk further.
        begin = time.perf_counter()
        self.kernels.launch(self.kernel, len(group) * self.threads_per_chain, self.block, arguments)
        self.seconds = max(time.perf_counter() - begin, 1e-9)
        steps, draws, sums = down(done), down(out), down(self.scratch.sums)
        self.kernels.fill(self.scratch.sums, 0)
        draws = np.moveaxis(draws[: high - low], self.chain_axis, 0)
        sums = np.moveaxis(sums, self.chain_axis, 0).astype(np.float64)
        sums = sums[:, :2] - sums[:, 2:]
        for i in group:
            self._account(i, int(steps[i]), count, step_sizes, draws[i], low, sums[i])
        return int(steps[group].sum())

    def _account(self, i: int, done: int, count: int, step_sizes: Any, draws: Any, low: int, sums: Any) -> None:
        chain, plan = self.chains[i], self.job.plan
        chain.out[self.job.window(low, low + len(draws))] = draws
        chain.sums[:2] += sums
        chain.sums[2] += plan.measured_before(chain.step + done) - plan.measured_before(chain.step)
        chain.fresh = chain.fresh and count == 0
        chain.before = float(step_sizes[done - 1]) if done else chain.before
        chain.step += done
        self.job.record(chain, low, draws)
        if done < count:
            chain.diverged = chain.step

    def finish(self) -> None:
        """Download the states."""
        with self.kernels.on(self.device):
            for name in State._fields:
                values = self.kernels.download(getattr(self.state, name))
                for i, chain in enumerate(self.chains):
                    own = getattr(chain.state, name)
                    own[:] = values.take(i, self.chain_axis)[: own.size]
            origin = self.kernels.download(self.scratch.origin)
        for i, chain in enumerate(self.chains):
            chain.origin[:] = origin.take(i, self.chain_axis)
