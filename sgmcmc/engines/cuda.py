"""Chains on GPUs: a fleet of chains per device, a thread per chain, chunk by chunk like the crew on the CPU.

Device memory holds the state of all chains of a fleet, shaped (coordinate, chain); draws come back with each chunk, the
states at the end. What a chain draws depends on its number and its seed alone, not on the fleets, the chunks or the launch
shape.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.device.step import settled, uploaded
from sgmcmc.engines.cpu import Gradient
from sgmcmc.engines.crew import CHUNK_SECONDS, Chain, Job, Task, split
from sgmcmc.engines.cuda_loop import Chunk, Common, Room
from sgmcmc.integrators import State
from sgmcmc.minibatch import FullData, memory, row_buffer
from sgmcmc.potentials import PythonPotential, scratch_size

__all__ = ["Fleet", "check_model_for_device", "fleets"]

BLOCK = 64  # threads per block, if the device knows no better: few, so that blocks reach every multiprocessor
DRAWS_AT_ONCE = 1 << 26  # bytes of draws that wait on the device for the end of a chunk


def check_model_for_device(model: Any) -> None:
    """Refuse what only the CPU can run."""
    if isinstance(model, PythonPotential):
        raise TypeError(
            f"{model!r} is computed by Python and cannot run on a GPU; use device='cpu', or give a numba.njit gradient"
        )


def fleets(job: Job, chains: list[Chain], seed: int) -> list[Fleet]:
    """One fleet per device, the chains spread evenly over them."""
    from sgmcmc.engines import cuda_kernels

    devices = cuda_kernels.devices()
    groups = zip(split(chains, len(devices)), devices, strict=False)
    return [Fleet(job, group, seed, cuda_kernels, device) for group, device in groups]


class Fleet(Task):
    """The chains of one device: what `crew.run` sees as one task."""

    def __init__(
        self, job: Job, chains: list[Chain], seed: int, kernels: Any, device: Any = None, block: int | None = None
    ) -> None:
        self.kernels, self.device, self.block = kernels, device, block
        self.job, self.chains = job, chains
        self.count, self.steps_done, self._reported = 1, 0, set()
        self.key = np.uint32(seed & 0xFFFFFFFF), np.uint32(seed >> 32)
        self.dim = chains[0].state.theta.size
        with kernels.on(device):
            self._upload()

    def _upload(self) -> None:
        job, up, n = self.job, self.kernels.upload, len(self.chains)
        dynamics, g, dim = settled(job.dynamics), job.gradient, self.dim
        sizes = State(*(a.size for a in self.chains[0].state))
        rows, order = row_buffer(g.minibatch, g.n_rows), memory(g.minibatch, g.n_rows)
        scratch = int(scratch_size(job.model))
        parts = [uploaded(part, up) for part in (dynamics, job.model, g)]
        self.common = Common(parts[0], parts[1], parts[2], sizes, rows.size, order.size, scratch)
        self.state = State(*(up(columns([getattr(c.state, f) for c in self.chains])) for f in State._fields))

        def room(length: int, kind: Any = job.dtype) -> Any:
            return up(np.zeros((max(length, 1), n), kind))

        self.room = Room(
            room(sizes.p),
            room(dim),
            room(sizes.xi),
            room(dim),
            room(dim if g.noise > 0.0 else 0),
            up(_row_columns(g, rows, n)),
            room(order.size, np.int64),
            room(scratch),
            up(columns([c.origin for c in self.chains])),
            room(4),
        )
        self.numbers = up(np.array([c.number for c in self.chains], np.uint32))

    # ---- a chunk ---------------------------------------------------------------------------------------------------

    def chunk(self) -> int:
        """The chains that are furthest behind, together, a chunk further."""
        begin = time.perf_counter()
        with self.kernels.on(self.device):
            group, count = self._next()
            done = self.advance(group, count)
        seconds = max(time.perf_counter() - begin, 1e-9)
        self.steps_done += count
        self.count = max(1, min(int(count * CHUNK_SECONDS / seconds), 8 * self.count, 1 << 20))
        return done

    def _next(self) -> tuple[list[int], int]:
        """Columns of the chains in the earliest step, and how many steps they may take together."""
        alive = [i for i, c in enumerate(self.chains) if c.diverged is None]
        first = min(self.chains[i].step for i in alive)
        group = [i for i in alive if self.chains[i].step == first]
        later = min((self.chains[i].step for i in alive if i not in set(group)), default=self.job.end)
        room = max(1, DRAWS_AT_ONCE // (self.dim * len(self.chains) * np.dtype(self.job.dtype).itemsize))
        low = self.job.plan.recorded_before(first)
        kept = self.job.plan.kept
        fits = int(kept[low + room]) - first if low + room < kept.size else self.job.end - first
        return group, min(self.count, later - first, max(1, fits))

    def advance(self, group: list[int], count: int) -> int:
        """Launch `count` steps of these chains, and take their draws home."""
        job, up, down, plan = self.job, self.kernels.upload, self.kernels.download, self.job.plan
        lead = self.chains[group[0]]
        low, high = plan.recorded_before(lead.step), plan.recorded_before(lead.step + count)
        step_sizes = plan.step_sizes(lead.step, count, job.dtype)
        out = up(np.zeros((max(high - low, 1), self.dim, len(self.chains)), job.dtype))
        done = up(np.zeros(len(self.chains), np.int64))
        chunk = Chunk(
            np.int64(lead.step),
            job.dtype(lead.before),
            up(np.resize(step_sizes, max(count, 1))),
            np.int64(count),
            up(np.resize(plan.kept[low:high], max(high - low, 1))),
            np.int64(high - low),
            np.int64(plan.first_measured),
            bool(lead.fresh and count > 0),
        )
        self.kernels.fill(self.room.memory, -1)  # what a chain remembers of its epoch lives as long as a chunk
        arguments = (self.common, self.state, self.room, chunk, *self.key, up(np.array(group)), self.numbers, out, done)
        if self.block is None:
            self.block = self.kernels.block_size(self.kernels.chain_kernel, arguments, len(group), BLOCK)
        self.kernels.launch(self.kernels.chain_kernel, len(group), self.block, arguments)
        steps, draws, sums = down(done), down(out), down(self.room.sums)
        self.kernels.fill(self.room.sums, 0)
        for i in group:
            self._account(i, int(steps[i]), count, step_sizes, draws[: high - low, :, i], low, sums[:, i])
        return int(steps[group].sum())

    def _account(self, i: int, done: int, count: int, step_sizes: Any, draws: Any, low: int, sums: Any) -> None:
        chain, measured = self.chains[i], self.job.plan.first_measured
        chain.out[low : low + len(draws)] = draws
        chain.sums[:2] += np.asarray(sums[:2], np.float64) - np.asarray(sums[2:], np.float64)
        chain.sums[2] += max(0, chain.step + done - max(chain.step, measured + 1))
        chain.fresh = chain.fresh and count == 0
        chain.before = float(step_sizes[done - 1]) if done else chain.before
        chain.step += done
        if done < count:
            chain.diverged = chain.step

    def finish(self) -> None:
        """Take the states home."""
        with self.kernels.on(self.device):
            for name in State._fields:
                values = self.kernels.download(getattr(self.state, name))
                for i, chain in enumerate(self.chains):
                    own = getattr(chain.state, name)
                    own[:] = values[: own.size, i]
            origin = self.kernels.download(self.room.origin)
        for i, chain in enumerate(self.chains):
            chain.origin[:] = origin[:, i]


def columns(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    """Vectors of one length as columns; a length of 0 becomes 1, since device memory cannot be empty."""
    matrix = np.stack(arrays, axis=1)
    return np.ascontiguousarray(matrix) if len(matrix) > 0 else np.zeros((1, matrix.shape[1]), matrix.dtype)


def _row_columns(gradient: Gradient, rows: NDArray[np.int64], chains: int) -> NDArray[np.int64]:
    """Room for everybody's rows; the full data set is one column for all."""
    if isinstance(gradient.minibatch, FullData):
        return rows[:, None].copy() if rows.size > 0 else np.zeros((1, 1), np.int64)
    return np.zeros((rows.size, chains), np.int64)
