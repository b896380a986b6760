"""Chains on GPUs: a fleet of chains per device, chunk by chunk, as on the CPU.

A chain has a thread, or where its gradient is work for many a block of threads. Device memory holds the state of all chains
of a fleet, so that neighbouring threads find neighbouring numbers: shaped (coordinate, chain) for threads, (chain,
coordinate) for blocks. Draws come back with each chunk, the states at the end. What a chain draws depends on its number and
its seed alone, not on the fleets, the chunks or the launch shape.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.gpu.update import uploaded
from sgmcmc.integrators import State
from sgmcmc.kinetics import MonomialGamma
from sgmcmc.minibatch import FullData, memory, row_buffer
from sgmcmc.potentials import PythonPotential, scratch_size
from sgmcmc.run.gpu.block import STRANDS, rows_at_once
from sgmcmc.run.gpu.loop import Chunk, Common, Room
from sgmcmc.run.loop_compiled import Measured
from sgmcmc.run.row_sharding import first_half
from sgmcmc.run.scheduler import Chain, Job, Task, split

__all__ = ["Fleet", "check_model_for_device", "fleets", "takes_a_block"]

BLOCK = 64  # threads with a chain each, if the device knows no better: few, so that blocks reach every multiprocessor
FILLING = 1 << 14  # chains that fill a device with a thread each
DRAWS_AT_ONCE = 1 << 26  # bytes of draws that wait on the device for the end of a chunk


def check_model_for_device(model: Any) -> None:
    """Refuse what only the CPU can run."""
    if isinstance(model, PythonPotential):
        raise TypeError(
            f"{model!r} is computed by Python and cannot run on a GPU; use device='cpu', or give a numba.njit gradient"
        )


def takes_a_block(model: Any, kinetics: Any, dtype: Any, dim: int, rows: int, chains: int) -> bool:
    """Whether a block of threads should run each chain.

    Its gradient must be one that threads can share, of 32 products for each of them; where the chains are too few to fill a
    device with a thread each, two will do. Both numbers are guesses, never timed. Not so with the powers of a
    monomial gamma kinetics other than a = 1 and 2 in double precision: with all that a block holds, registers would spill.
    """
    each = 32 if chains >= FILLING else 2
    if isinstance(kinetics, MonomialGamma) and np.dtype(dtype) == np.float64:
        return False
    return int(rows_at_once(model)) > 0 and dim * rows >= each * STRANDS


def fleets(job: Job, chains: list[Chain], seed: int) -> list[Fleet]:
    """One fleet per device, the chains spread evenly over them."""
    from sgmcmc.run.gpu import kernels as gpu_kernels

    devices = gpu_kernels.devices()
    groups = zip(split(chains, len(devices)), devices, strict=False)
    return [Fleet(job, group, seed, gpu_kernels, device) for group, device in groups]


class Fleet(Task):
    """The chains of one device: what `scheduler.run` sees as one task."""

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
        scratch = int(scratch_size(job.model))
        parts = [uploaded(part, up) for part in (dynamics, job.model, g)]
        half = int(first_half(job.parts(dim), rows.size)) if self.measured else 0
        self.common = Common(parts[0], parts[1], parts[2], sizes, rows.size, half)
        self.state = State(*(up(self._stacked([getattr(c.state, f) for c in self.chains])) for f in State._fields))

        def room(length: int, kind: Any = job.dtype) -> Any:
            return up(np.zeros(self._shape(length), kind))

        self.room = Room(
            room(sizes.p),
            room(dim),
            room(sizes.xi),
            room(dim),
            room(dim if self.measured else 0),
            room(dim if g.noise > 0.0 else 0),
            up(self._stacked([rows])) if isinstance(g.minibatch, FullData) else room(rows.size, np.int64),
            room(order.size, np.int64),
            room(scratch),
            up(self._stacked([c.origin for c in self.chains])),
            room(4),
        )
        self.numbers = up(np.array([c.number for c in self.chains], np.uint32))

    def _stacked(self, arrays: list[NDArray[Any]]) -> NDArray[Any]:
        """Vectors of one length, chain by chain."""
        if arrays[0].size == 0:
            return np.zeros(self._shape(0), arrays[0].dtype)
        return np.ascontiguousarray(np.stack(arrays, axis=self.chain_axis))

    def _shape(self, length: int) -> tuple[int, int]:
        """Of an array with so many numbers for every chain; in a row of a block, none becomes one (see `own_arrays`)."""
        n = len(self.chains)
        return (length, n) if self.chain_axis == -1 else (n, max(length, 1))

    # ---- a chunk ---------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        self.advance([0], 0)

    def chunk(self) -> int:
        """The chains that are furthest behind, together, a chunk further."""
        with self.kernels.on(self.device):
            group, count = self._next()
            done = self.advance(group, count)
        self.next_count(count, self.seconds)
        return done

    def _next(self) -> tuple[list[int], int]:
        """Columns of the chains in the earliest step, and how many steps they may take together."""
        alive = [i for i, c in enumerate(self.chains) if c.diverged is None]
        first = min(self.chains[i].step for i in alive)
        group = [i for i in alive if self.chains[i].step == first]
        later = min((c.step for c in self.chains if c.diverged is None and c.step > first), default=self.job.end)
        room = max(1, DRAWS_AT_ONCE // (self.dim * len(self.chains) * np.dtype(self.job.dtype).itemsize))
        low = self.job.plan.recorded_before(first)
        kept = self.job.plan.kept
        fits = int(kept[low + room]) - first if low + room < kept.size else self.job.end - first
        count = self.job.fitting(self.chains[group[0]], self.count)
        return group, min(count, later - first, max(1, fits))

    def advance(self, group: list[int], count: int) -> int:
        """Launch `count` steps of these chains, and take their draws home."""
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
        self.kernels.fill(self.room.memory, -1)  # what a chain remembers of its epoch lives as long as a chunk
        arguments = (
            self.common,
            self.state,
            self.room,
            chunk,
            *self.key,
            up(np.array(group, np.uint32)),
            self.numbers,
            out,
            done,
        )
        if self.block is None:
            self.block = self.kernels.block_size(self.kernel, arguments, len(group), BLOCK)
        # The length of the next chunk follows from the time of the launch alone: with thousands of chains the rest takes as
        # long, and would make chunks shorter and shorter.
        begin = time.perf_counter()
        self.kernels.launch(self.kernel, len(group) * self.threads_per_chain, self.block, arguments)
        self.seconds = max(time.perf_counter() - begin, 1e-9)
        steps, draws, sums = down(done), down(out), down(self.room.sums)
        self.kernels.fill(self.room.sums, 0)
        draws = np.moveaxis(draws[: high - low], self.chain_axis, 0)
        sums = np.moveaxis(sums, self.chain_axis, 0).astype(np.float64)
        sums = sums[:, :2] - sums[:, 2:]
        for i in group:
            self._account(i, int(steps[i]), count, step_sizes, draws[i], low, sums[i])
        return int(steps[group].sum())

    def _account(self, i: int, done: int, count: int, step_sizes: Any, draws: Any, low: int, sums: Any) -> None:
        chain, plan = self.chains[i], self.job.plan
        chain.out[self.job.place(low, low + len(draws))] = draws
        chain.sums[:2] += sums
        chain.sums[2] += plan.measured_before(chain.step + done) - plan.measured_before(chain.step)
        chain.fresh = chain.fresh and count == 0
        chain.before = float(step_sizes[done - 1]) if done else chain.before
        chain.step += done
        self.job.record(chain, low, draws)
        if done < count:
            chain.diverged = chain.step

    def finish(self) -> None:
        """Take the states home."""
        with self.kernels.on(self.device):
            for name in State._fields:
                values = self.kernels.download(getattr(self.state, name))
                for i, chain in enumerate(self.chains):
                    own = getattr(chain.state, name)
                    own[:] = values.take(i, self.chain_axis)[: own.size]
            origin = self.kernels.download(self.room.origin)
        for i, chain in enumerate(self.chains):
            chain.origin[:] = origin.take(i, self.chain_axis)
