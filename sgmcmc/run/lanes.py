"""The loop of small models: up to 64 chains in lockstep, one in each lane of the vectors.

What a lane does never reaches another, and a lane takes the same operations whether there are vectors or, for one chain, single
numbers; so one chain alone has the same bits as among many.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators import Noise, State
from sgmcmc.integrators.lanes import packable, packed
from sgmcmc.potentials import PythonPotential, fill_gradients, scratch_rows
from sgmcmc.rng import Lanes
from sgmcmc.run import scheduler
from sgmcmc.run.chains import Herded, herd_of
from sgmcmc.run.loop_lanes import Room, run_pack
from sgmcmc.run.scheduler import Chain, Job, Task
from sgmcmc.threads import rows_on_own_lines

__all__ = ["packs"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

MOST_LANES = 64  # loops over more than that gain nothing
ELEMENTS = 1024  # of a packed array: four of them in double precision fill a whole L1 cache
NORMALS = 2048  # how many normals of each kind are drawn at once


def packs(job: Job, chains: list[Chain], threads: int, out: NDArray[Any]) -> list[Pack] | None:
    """The chains in packs, or None if such chains cannot be packed; that does not depend on how many there are."""
    dim = chains[0].state.theta.size
    if isinstance(job.model, PythonPotential) or fill_gradients.choose((type(job.model),)) is None:
        return None
    if job.gradient.n_rows > 0 or not packable(job.dynamics, dim):
        return None
    most = min(MOST_LANES, ELEMENTS // dim)
    in_lockstep: dict[Any, list[int]] = {}  # chains that go on after Ctrl-C may be in different steps
    for place, chain in enumerate(chains):
        in_lockstep.setdefault((chain.step, chain.before, chain.fresh), []).append(place)
    by_width: dict[int, list[list[int]]] = {}
    for places in in_lockstep.values():
        for part in scheduler.split(places, threads * math.ceil(len(places) / (most * threads))):
            by_width.setdefault(_width(len(part)), []).append(part)
    sizes, result = State(*(a.size for a in chains[0].state)), []
    for width, parts in by_width.items():
        memory = _memory(job, sizes, width, len(parts))
        result += [Pack(job, [chains[i] for i in p], p, out, *m) for p, m in zip(parts, memory, strict=True)]
    return result


def _memory(job: Job, sizes: State, width: int, count: int) -> Iterator[tuple[State, Room]]:
    """States and rooms for so many packs, all zero.

    Laid out at once: with a piece of memory for each pack, to set 10,000 chains up took 53 ms in place of 44.
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
        *normals, gradient_noise, scratch, gradient, origin, virial, sum_p, sum_theta, watch, ended = own[len(sizes) :]
        rows = state.theta.reshape(-1, width), gradient.reshape(-1, width)
        sums = sum_p, sum_theta
        yield state, Room(Noise(*normals), gradient_noise, gradient, rows, scratch, origin, virial, sums, watch, ended)


def _counted(count: Callable[[int], int], steps: list[int]) -> NDArray[np.int64]:
    """count(step) of every chain; most are in the same step."""
    known = {step: count(step) for step in set(steps)}
    return np.array([known[step] for step in steps])


def _width(chains: int) -> int:
    """A power of two with room for so many chains.

    One lane for one chain: vectors of 8, most of them empty, would take twice as long (five wells, SGLD: 206 against 111 ns).
    """
    return 1 << (chains - 1).bit_length()


class Pack(Task):
    """Chains that go forward together: what `scheduler.run` sees as one task."""

    growth = 512  # a first chunk of one step shows how long a step takes

    def __init__(
        self, job: Job, chains: list[Chain], places: list[int], out: NDArray[Any], state: State, room: Room
    ) -> None:
        super().__init__(job, chains)
        self.state, self.room = state, room
        self.width, self.dim = _width(len(chains)), chains[0].state.theta.size
        elements = self.dim * self.width
        self.count, self.is_quick = job.first_count(elements), job.is_quick(elements)
        numbers = [c.number for c in chains] + [chains[0].number] * (self.width - len(chains))
        first = chains[0].stream
        shift, live = np.int64(self.width.bit_length() - 1), np.int64(len(chains))
        self.lanes = Lanes(first.key0, first.key1, np.array(numbers, np.uint32), shift, live)
        self.herd, self.at = herd_of(chains)
        for packed_array, common in zip(self.state, self.herd.states, strict=True):
            rows = self._rows(packed_array)
            rows[:, : len(chains)] = common[self.at].T
            rows[:, len(chains) :] = rows[:, :1]  # lanes without a chain follow the first one
        self._recall()
        self.dynamics = packed(job.dynamics, self.width, self.room.virial)
        self.places, self.out, self.all_alive = np.array(places), out, True

    @property
    def steps_left(self) -> int:
        """Those of any chain that is alive: they are all in the same step."""
        alive = next((c for c in self.chains if c.diverged is None), None)
        return 0 if alive is None else max(0, self.job.end - alive.step)

    def _rows(self, array: NDArray[Any]) -> NDArray[Any]:
        return array.reshape(-1, self.width)

    def _recall(self) -> None:
        """What the chains had measured when they were saved."""
        lanes = len(self.chains)
        self._rows(self.room.origin)[:, :lanes] = self.herd.origins[self.at].T
        if self.herd.terms is not None:
            virial, work = (self._rows(total) for total in self.room.sums)
            terms = self.herd.terms[self.at].T
            virial[:, :lanes], work[:, :lanes] = terms[: len(virial)], terms[len(virial) :]
        if self.herd.watch is not None:
            self._watch()[:, :, :lanes] = self.herd.watch[self.at].transpose(1, 2, 0)
        # How many steps they have measured is known by their numbers; a file of an older version may have counted others.
        steps = _counted(self.job.plan.measured_before, [c.step for c in self.chains])
        self.measured = self.herd.sums[self.at][:, 2] - steps

    def _watch(self) -> NDArray[np.float64]:
        return np.reshape(self.room.watch, (self.job.plan.segments, -1, self.width))

    def prepare(self) -> None:
        self.advance(0)

    def chunk(self) -> int:
        begin = time.perf_counter()
        count = self.job.fitting(next(c for c in self.chains if c.diverged is None), self.count)
        done = self.advance(count)
        self.next_count(count, time.perf_counter() - begin)
        return done

    def advance(self, count: int) -> int:
        """Run `count` steps of all chains; gives back how many those that are still alive took."""
        job, plan = self.job, self.job.plan
        lead = next(c for c in self.chains if c.diverged is None)
        low, high = plan.recorded_before(lead.step), plan.recorded_before(lead.step + count)
        step_sizes = plan.step_sizes(lead.step, count, job.dtype)
        run_pack(
            self.dynamics,
            job.model,
            job.gradient,
            self.state,
            self.room,
            self.lanes,
            np.int64(lead.step),
            job.dtype(lead.before),
            step_sizes,
            plan.kept[low:high],
            plan.phases(lead.step, count),
            lead.fresh and count > 0,
            self.places,
            np.int64(job.place(low, high).start),
            self.out,
        )
        if self.all_alive and (self.room.ended[: len(self.chains)] == count).all():
            return self._note(count, low, step_sizes)
        done = 0
        for chain, place, finite in zip(self.chains, self.places, self.room.ended, strict=False):
            if chain.diverged is None:
                chain.step += int(finite)
                chain.fresh = chain.fresh and count == 0
                chain.before = float(step_sizes[finite - 1]) if finite else chain.before
                chain.diverged = chain.step if finite < count else None
                job.record(chain, low, self.out[place])
                done += int(finite)
        self.all_alive = all(c.diverged is None for c in self.chains)
        return done

    def _note(self, count: int, low: int, step_sizes: NDArray[Any]) -> int:
        """All chains took `count` steps: with thousands of them, every look at each of them tells."""
        lead = self.chains[0]
        step, fresh = lead.step + count, lead.fresh and count == 0
        before = float(step_sizes[-1]) if count else lead.before
        for chain in self.chains:
            chain.step, chain.fresh, chain.before = step, fresh, before
        if self.job.recorder is not None:
            for chain, place in zip(self.chains, self.places, strict=True):
                self.job.record(chain, low, self.out[place])
        return count * len(self.chains)

    def finish(self) -> None:
        """Hand the states and the measurements over to the chains."""
        herd, at, lanes = self.herd, self.at, len(self.chains)
        for common, array in zip((*herd.states, herd.origins), (*self.state, self.room.origin), strict=True):
            common[at] = self._rows(array).T[:lanes]
        terms = np.concatenate([self._rows(total)[:, :lanes] for total in self.room.sums])
        herd.terms_for(len(terms))[at] = terms.T
        watch = self._watch()[:, :, :lanes].transpose(2, 0, 1)
        herd.watch_for(watch.shape[1:])[at] = watch
        steps = self.measured + _counted(self.job.plan.measured_before, [c.step for c in self.chains])
        virial, work = (self._rows(total).sum(axis=0)[:lanes] / self.dim for total in self.room.sums)
        herd.sums[at] = np.stack((virial, work, steps), axis=1)
        if not isinstance(self.chains[0], Herded):
            for chain, own in zip(self.chains, herd.terms_for(len(terms)), strict=True):
                chain.terms = own
            for chain, own in zip(self.chains, herd.watch_for(watch.shape[1:]), strict=True):
                chain.watch = own
