"""Lane groups: up to 64 chains of a small model in lockstep, one per vector lane.

Lanes do not interact, and a lane takes the same operations in vectors as in the scalar code for one chain: one chain has the
same bits alone and among many.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators.lanes import fits_lanes, in_lanes
from sgmcmc.integrators.state import Noise, State
from sgmcmc.potentials import PythonPotential, fill_gradients, scratch_rows
from sgmcmc.rng import Lanes
from sgmcmc.run import scheduler
from sgmcmc.run.chains import ChainView, arrays_of
from sgmcmc.run.job import Chain, Job
from sgmcmc.run.loop_lanes import Scratch, run_lanes
from sgmcmc.run.scheduler import Task
from sgmcmc.threads import rows_on_own_lines

__all__ = ["lane_groups"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

MOST_LANES = 64  # loops over more than that gain nothing
ELEMENTS = 1024  # of an array of a lane group: four of them in double precision fill an L1 cache
NORMALS = 2048  # how many normals of each kind are drawn at once


def lane_groups(job: Job, chains: list[Chain], threads: int, out: NDArray[Any]) -> list[LaneGroup] | None:
    """The chains in lane groups; None if the model or the sampler cannot run in lanes, whatever the number of chains."""
    dim = chains[0].state.theta.size
    if isinstance(job.model, PythonPotential) or fill_gradients.choose((type(job.model),)) is None:
        return None
    if job.gradient.n_rows > 0 or not fits_lanes(job.dynamics, dim):
        return None
    most = min(MOST_LANES, ELEMENTS // dim)
    in_lockstep: dict[Any, list[int]] = {}  # chains that go on after Ctrl-C may be in different steps
    for out_row, chain in enumerate(chains):
        in_lockstep.setdefault((chain.step, chain.before, chain.fresh), []).append(out_row)
    by_width: dict[int, list[list[int]]] = {}
    for out_rows in in_lockstep.values():
        for group in scheduler.split(out_rows, threads * math.ceil(len(out_rows) / (most * threads))):
            by_width.setdefault(_width(len(group)), []).append(group)
    sizes, result = State(*(a.size for a in chains[0].state)), []
    for width, groups in by_width.items():
        memory = _memory(job, sizes, width, len(groups))
        result += [LaneGroup(job, [chains[i] for i in p], p, out, *m) for p, m in zip(groups, memory, strict=True)]
    return result


def _memory(job: Job, sizes: State, width: int, count: int) -> Iterator[tuple[State, Scratch]]:
    """States and scratch arrays of `count` lane groups, all zero.

    Allocated at once: with an allocation per group, setting up 10,000 chains took 53 ms in place of 44.
    """
    dim, noise = sizes.theta, sizes.theta if job.gradient.noise > 0.0 else 0
    steps = max(1, min(256, NORMALS // (dim * width)))
    kinds = (
        *((n * width, job.dtype) for n in sizes),
        *(((steps, n * width), job.dtype) for n in (sizes.p, dim, sizes.xi, noise)),
        ((int(scratch_rows(job.model)), width), job.dtype),
        *((n * width, job.dtype) for n in (dim, dim, sizes.p)),
        *((n * width, np.float64) for n in (sizes.p, dim)),
        ((job.plan.segments, (3 * dim + 1) * width), np.float64),
        (width, np.int64),
    )
    arrays = rows_on_own_lines((np.zeros(shape, kind)[None] for shape, kind in kinds), count)
    for own in zip(*arrays, strict=True):
        state = State(*own[: len(sizes)])
        *normals, gradient_noise, scratch, gradient, origin, virial, sum_p, sum_theta, segment_sums, ended = own[
            len(sizes) :
        ]
        rows = state.theta.reshape(-1, width), gradient.reshape(-1, width)
        sums = sum_p, sum_theta
        yield (
            state,
            Scratch(
                Noise(*normals), gradient_noise, gradient, rows, scratch, origin, virial, sums, segment_sums, ended
            ),
        )


def _counted(count: Callable[[int], int], steps: list[int]) -> NDArray[np.int64]:
    """count(step) of every chain; most chains are in the same step."""
    known = {step: count(step) for step in set(steps)}
    return np.array([known[step] for step in steps])


def _width(chains: int) -> int:
    """The smallest power of two that holds these chains.

    One lane for one chain: a vector of 8 lanes, 7 of them idle, takes twice as long (five wells, SGLD: 206 against 111 ns).
    """
    return 1 << (chains - 1).bit_length()


class LaneGroup(Task):
    """Chains that advance together: one task of the scheduler."""

    growth = 512  # a first chunk of one step times a step

    def __init__(
        self, job: Job, chains: list[Chain], out_rows: list[int], out: NDArray[Any], state: State, scratch: Scratch
    ) -> None:
        super().__init__(job, chains)
        self.state, self.scratch = state, scratch
        self.width, self.dim = _width(len(chains)), chains[0].state.theta.size
        elements = self.dim * self.width
        self.count, self.is_quick = job.first_count(elements), job.is_quick(elements)
        numbers = [c.number for c in chains] + [chains[0].number] * (self.width - len(chains))
        first = chains[0].stream
        shift, live = np.int64(self.width.bit_length() - 1), np.int64(len(chains))
        self.lanes = Lanes(first.key0, first.key1, np.array(numbers, np.uint32), shift, live)
        self.arrays, self.at = arrays_of(chains)  # `at`: the rows of these chains
        for packed_array, common in zip(self.state, self.arrays.states, strict=True):
            rows = self._rows(packed_array)
            rows[:, : len(chains)] = common[self.at].T
            rows[:, len(chains) :] = rows[:, :1]  # idle lanes repeat the first chain
        self._restore_sums()
        self.dynamics = in_lanes(job.dynamics, self.width, self.scratch.virial)
        self.out_rows, self.out, self.all_alive = np.array(out_rows), out, True

    @property
    def steps_left(self) -> int:
        """Those of any chain that is alive: all are in the same step."""
        alive = next((c for c in self.chains if c.diverged is None), None)
        return 0 if alive is None else max(0, self.job.end - alive.step)

    def _rows(self, array: NDArray[Any]) -> NDArray[Any]:
        return array.reshape(-1, self.width)

    def _restore_sums(self) -> None:
        """The sums that the chains had when they were saved."""
        lanes = len(self.chains)
        self._rows(self.scratch.origin)[:, :lanes] = self.arrays.origins[self.at].T
        if self.arrays.coordinate_sums is not None:
            virial, work = (self._rows(total) for total in self.scratch.sums)
            coordinate_sums = self.arrays.coordinate_sums[self.at].T
            virial[:, :lanes], work[:, :lanes] = coordinate_sums[: len(virial)], coordinate_sums[len(virial) :]
        if self.arrays.segment_sums is not None:
            self._segment_sums()[:, :, :lanes] = self.arrays.segment_sums[self.at].transpose(1, 2, 0)
        # The number of measured steps follows from the step number; files of older versions may have another count.
        steps = _counted(self.job.plan.measured_before, [c.step for c in self.chains])
        self.measured = self.arrays.sums[self.at][:, 2] - steps

    def _segment_sums(self) -> NDArray[np.float64]:
        return np.reshape(self.scratch.segment_sums, (self.job.plan.segments, -1, self.width))

    def prepare(self) -> None:
        self.advance(0)

    def chunk(self) -> int:
        begin = time.perf_counter()
        count = self.job.fitting(next(c for c in self.chains if c.diverged is None), self.count)
        done = self.advance(count)
        self.next_count(count, time.perf_counter() - begin)
        return done

    def advance(self, count: int) -> int:
        """Run `count` steps of all chains. Returns how many steps the chains that were alive took."""
        job, plan = self.job, self.job.plan
        lead = next(c for c in self.chains if c.diverged is None)
        low, high = plan.recorded_before(lead.step), plan.recorded_before(lead.step + count)
        step_sizes = plan.step_sizes(lead.step, count, job.dtype)
        run_lanes(
            self.dynamics,
            job.model,
            job.gradient,
            self.state,
            self.scratch,
            self.lanes,
            np.int64(lead.step),
            job.dtype(lead.before),
            step_sizes,
            plan.kept[low:high],
            plan.phases(lead.step, count),
            lead.fresh and count > 0,
            self.out_rows,
            np.int64(job.window(low, high).start),
            self.out,
        )
        if self.all_alive and (self.scratch.ended[: len(self.chains)] == count).all():
            return self._advance_all(count, low, step_sizes)
        done = 0
        for chain, out_row, finite in zip(self.chains, self.out_rows, self.scratch.ended, strict=False):
            if chain.diverged is None:
                chain.step += int(finite)
                chain.fresh = chain.fresh and count == 0
                chain.before = float(step_sizes[finite - 1]) if finite else chain.before
                chain.diverged = chain.step if finite < count else None
                job.record(chain, low, self.out[out_row])
                done += int(finite)
        self.all_alive = all(c.diverged is None for c in self.chains)
        return done

    def _advance_all(self, count: int, low: int, step_sizes: NDArray[Any]) -> int:
        """All chains took `count` steps; with thousands of chains, work per chain costs."""
        lead = self.chains[0]
        step, fresh = lead.step + count, lead.fresh and count == 0
        before = float(step_sizes[-1]) if count else lead.before
        for chain in self.chains:
            chain.step, chain.fresh, chain.before = step, fresh, before
        if self.job.recorder is not None:
            for chain, out_row in zip(self.chains, self.out_rows, strict=True):
                self.job.record(chain, low, self.out[out_row])
        return count * len(self.chains)

    def finish(self) -> None:
        """Copy states and sums to the chains."""
        arrays, at, lanes = self.arrays, self.at, len(self.chains)
        for common, array in zip((*arrays.states, arrays.origins), (*self.state, self.scratch.origin), strict=True):
            common[at] = self._rows(array).T[:lanes]
        coordinate_sums = np.concatenate([self._rows(total)[:, :lanes] for total in self.scratch.sums])
        arrays.coordinate_sums_for(len(coordinate_sums))[at] = coordinate_sums.T
        segment_sums = self._segment_sums()[:, :, :lanes].transpose(2, 0, 1)
        arrays.segment_sums_for(segment_sums.shape[1:])[at] = segment_sums
        steps = self.measured + _counted(self.job.plan.measured_before, [c.step for c in self.chains])
        virial, work = (self._rows(total).sum(axis=0)[:lanes] / self.dim for total in self.scratch.sums)
        arrays.sums[at] = np.stack((virial, work, steps), axis=1)
        if not isinstance(self.chains[0], ChainView):
            for chain, own in zip(self.chains, arrays.coordinate_sums_for(len(coordinate_sums)), strict=True):
                chain.coordinate_sums = own
            for chain, own in zip(self.chains, arrays.segment_sums_for(segment_sums.shape[1:]), strict=True):
                chain.segment_sums = own
