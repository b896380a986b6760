"""The scheduler: chains in chunks on a few threads, always the one that is furthest behind.

A chunk lasts a fraction of a second, so that the progress bar moves, Ctrl-C is answered and a divergence is noticed. What a
chain draws depends on its number and its seed alone, never on the chunks or on the thread that ran it.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numba import config
from numpy.typing import NDArray

from sgmcmc.checks import any_mapped
from sgmcmc.integrators import Dynamics, State
from sgmcmc.integrators.step import noise_buffers
from sgmcmc.minibatch import forget, lookahead, row_buffer, rows_per_step
from sgmcmc.potentials import is_ours
from sgmcmc.rng import Stream
from sgmcmc.run.coordinate_sharding import Pieces, pieces_for
from sgmcmc.run.coordinate_temperatures import new_watch, watched
from sgmcmc.run.loop_compiled import Buffers, Gradient, Measured
from sgmcmc.run.loop_python import is_finite
from sgmcmc.run.opening import open_run
from sgmcmc.run.plan import Plan
from sgmcmc.run.recording import Recorder, Tally
from sgmcmc.run.row_sharding import Parts, Whole, parts_for
from sgmcmc.threads import borrowed_pool, rows_on_own_lines

__all__ = ["Chain", "Group", "Job", "Saver", "Task", "groups", "run", "split"]

CHUNK_SECONDS = 0.15
OPENING = 1 / 2  # of a chunk: how long the opening lasts
TURN = 1 / 64  # of a chunk: the turn of a task in it
FEW = 64  # chains, whose first chunks together are still short
NUMBER = 5e-8  # seconds for a number of a batch; ours take one or two ns, and 20 for a coordinate without any rows


@dataclass
class Chain:
    """One chain on its way."""

    number: int
    stream: Stream
    state: State
    step: int  # the number of the next step
    before: float
    out: NDArray[Any]  # (draws, dim); with a recorder, room for the draws of a chunk
    origin: NDArray[Any]
    sums: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    fresh: bool = False  # momenta are drawn with the first chunk
    diverged: int | None = None  # the step in which it left the finite numbers
    tally: Tally | None = None  # moments of its draws, if they are all that is kept
    terms: NDArray[np.float64] | None = None  # a pack's sums, coordinate by coordinate
    watch: NDArray[np.float64] | None = (
        None  # sums by segment and coordinate (sgmcmc.run.coordinate_temperatures), once there are any
    )


@dataclass(frozen=True)
class Job:
    """What all chains have in common."""

    run_chunk: Callable[..., int]
    dynamics: Dynamics
    model: Any
    gradient: Gradient
    plan: Plan
    dtype: Any
    recorder: Recorder | None = None  # None: draws stay in the `out` of their chains
    chains: int = 1  # of the whole run: of many, fewer coordinates are watched

    @property
    def end(self) -> int:
        return self.plan.first + self.plan.steps

    def buffers(self, dim: int, count: int = 1) -> list[Buffers]:
        """Scratch space, so many times over; `advance` puts in what belongs to its chain."""
        g, noise = self.gradient, noise_buffers(self.dynamics, dim, self.dtype)
        gradient, normals = np.zeros(dim, self.dtype), np.zeros((1, dim if g.noise > 0.0 else 0), self.dtype)
        difference = np.zeros(dim if isinstance(g.measure, Measured) else 0, self.dtype)
        rows, memory = row_buffer(g.minibatch, g.n_rows), lookahead(g.minibatch, g.n_rows)
        rooms = rows_on_own_lines((a[None] for a in (*noise, gradient, difference, normals, rows, memory)), count)
        watch = self.watch(dim)
        shared = np.zeros(dim, self.dtype), np.zeros(3), watch  # in place of a chain's origin and sums
        found = []
        for i in range(count):
            *normals_of_noise, gradient, difference, normals, rows, memory = (room[i] for room in rooms)
            own = type(noise)(*normals_of_noise), gradient, difference, normals, rows, memory
            found.append(Buffers(*own, *shared, self.parts(dim), self.pieces(dim)))
        return found

    def watch(self, dim: int) -> NDArray[np.float64]:
        """Sums by segment and coordinate for a chain that has measured nothing."""
        return new_watch(self.plan.segments, watched(dim, self.chains, self.plan.segments).size)

    def parts(self, dim: int) -> Whole | Parts:
        """How a chain takes the sum over its rows."""
        g = self.gradient
        return parts_for(self.model, dim, g.minibatch, g.n_rows, self.dtype)

    def pieces(self, dim: int) -> Whole | Pieces:
        """How a chain goes through its coordinates."""
        return pieces_for(self.dynamics, self.model, dim, self.dtype)

    def first_count(self, dim: int) -> int:
        """Steps in a first chunk: one, as a user's gradient may take seconds."""
        return max(1, min(self._foreseen(dim), 1 << 13))

    def is_quick(self, dim: int) -> bool:
        """Whether it is known before the first step that one does not take longer than a chunk should.

        A file may be on a slow disk, and without its compiler Numba's loops run as Python.
        """
        return self._foreseen(dim) > 0 and not self._is_mapped and not config.DISABLE_JIT

    def _foreseen(self, dim: int) -> int:
        """How many steps a chunk has room for, as far as is known."""
        if not self._is_ours:
            return 0
        rows = rows_per_step(self.gradient.minibatch, self.gradient.n_rows)
        return int(CHUNK_SECONDS / (NUMBER * dim * max(1, rows)))

    @cached_property
    def _is_ours(self) -> bool:
        return is_ours(self.model)

    @cached_property
    def _is_mapped(self) -> bool:
        return any_mapped(self.model)

    def fitting(self, chain: Chain, count: int) -> int:
        """So many of `count` steps as are left, and as the chain has room for their draws."""
        count = min(count, self.end - chain.step)
        return count if self.recorder is None else min(count, self.plan.fitting(chain.step, len(chain.out)))

    def place(self, low: int, high: int) -> slice:
        """Where in `out` the draws low … high − 1 go."""
        return slice(low, high) if self.recorder is None else slice(0, high - low)

    def record(self, chain: Chain, low: int, draws: NDArray[Any]) -> None:
        """Pass on what a chain recorded up to its step, if there is a recorder; `draws` may hold more than that."""
        if self.recorder is not None:
            self.recorder.take(chain, low, draws[: self.plan.recorded_before(chain.step) - low])

    def advance(self, chain: Chain, buffers: Buffers, count: int) -> int:
        """Run up to `count` steps of a chain; gives back how many."""
        count = self.fitting(chain, count)
        if chain.watch is None:
            chain.watch = self.watch(chain.state.theta.size)
        forget(self.gradient.minibatch, buffers.memory)  # it may hold what another chain remembered
        low, high = (self.plan.recorded_before(s) for s in (chain.step, chain.step + count))
        step_sizes, out = self.plan.step_sizes(chain.step, count, self.dtype), chain.out[self.place(low, high)]
        done = self.run_chunk(
            self.dynamics,
            self.model,
            self.gradient,
            chain.state,
            buffers._replace(origin=chain.origin, sums=chain.sums, watch=chain.watch),
            chain.stream,
            np.int64(chain.step),
            self.dtype(chain.before),
            step_sizes,
            self.plan.kept[low:high],
            self.plan.phases(chain.step, count),
            chain.fresh and count > 0,
            out,
        )
        chain.step += done
        chain.fresh = chain.fresh and count == 0
        chain.before = float(step_sizes[done - 1]) if done else chain.before
        self.record(chain, low, out)
        if done < count:
            if is_finite(chain.state):
                raise KeyboardInterrupt
            chain.diverged = chain.step
        return int(done)


def groups(job: Job, chains: list[Chain], threads: int) -> list[Group]:
    """The chains in a few groups for each thread."""
    found = split(chains, 4 * threads)
    rooms = job.buffers(chains[0].state.theta.size, len(found))
    return [Group(job, group, own) for group, own in zip(found, rooms, strict=True)]


def run(
    threads: int,
    progress: Callable[[int], None],
    diverged: Callable[[Chain], None],
    tasks: Sequence[Task],
    saver: Saver | None = None,
) -> bool:
    """Bring the chains of all tasks to the end of the plan. Gives back whether it was interrupted by Ctrl-C.

    `progress` is told how many steps were done, `diverged` of every chain that diverges (and may raise), `saver` when it may
    look at the chains; all on this thread.
    """
    running: dict[Future[Any], int] = {}
    with borrowed_pool(threads) as pool:
        try:
            _open(threads, progress, diverged, tasks)
            _bring_to_the_end(pool, threads, progress, diverged, tasks, saver, running)
        except KeyboardInterrupt:
            _settle(running, tasks)  # a few tenths of a second; a second Ctrl-C gets out of here at once
            return True
        except BaseException:
            _settle(running, tasks)
            raise
    return False


def _open(
    threads: int, progress: Callable[[int], None], diverged: Callable[[Chain], None], tasks: Sequence[Task]
) -> None:
    """The first moment, with the help of this thread; all of a short run."""
    if not all(task.is_quick for task in tasks):
        return
    begin = time.perf_counter()
    end = begin + OPENING * CHUNK_SECONDS
    for task in tasks:  # more of them than threads take turns: a chunk is over as soon as can be
        task.opens_until = begin if len(tasks) > threads > 1 else end
    steps = open_run(tasks, threads, end)
    for task in tasks:
        task.opens_until = None
    if sum(steps) > 0:
        progress(sum(steps))
    for chain in itertools.chain.from_iterable(task.newly_diverged() for task in tasks):
        diverged(chain)


def _bring_to_the_end(
    pool: ThreadPoolExecutor,
    threads: int,
    progress: Callable[[int], None],
    diverged: Callable[[Chain], None],
    tasks: Sequence[Task],
    saver: Saver | None,
    running: dict[Future[Any], int],
) -> None:
    queue = [(task.steps_done, i) for i, task in enumerate(tasks) if task.steps_left]
    heapq.heapify(queue)
    while queue or running:
        due = saver is not None and saver.due()
        if due and saver is not None and (not running or all(task.apart for task in tasks)):
            _save(saver, tasks)
            due = False
        # Twice as many as there are threads: one that is done finds its next chunk without waiting for us.
        while queue and len(running) < 2 * threads and not due:
            _, i = heapq.heappop(queue)
            running[tasks[i].launch(pool)] = i
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            i = running.pop(future)
            progress(tasks[i].receive(future))
            for chain in tasks[i].newly_diverged():
                diverged(chain)
            if tasks[i].steps_left:
                heapq.heappush(queue, (tasks[i].steps_done, i))


def _save(saver: Saver, tasks: Sequence[Task]) -> None:
    for task in tasks:
        task.finish()
    saver.save()


def _settle(running: dict[Future[Any], int], tasks: Sequence[Task]) -> None:
    """Drop the chunks that have not begun. Wait for those that change their chains where we see it, and for no others."""
    begun = [(future, i) for future, i in running.items() if not future.cancel()]
    wait([future for future, i in begun if not tasks[i].apart])


def split(chains: list[Any], parts: int) -> list[list[Any]]:
    """A list in at most `parts` groups of nearly equal size."""
    count = min(parts, len(chains))
    return [chains[i * len(chains) // count : (i + 1) * len(chains) // count] for i in range(count)]


class Saver(Protocol):
    """What looks at the chains now and then, while none of them moves."""

    def due(self) -> bool: ...

    def save(self) -> None: ...


class Task:
    """Chains that one thread takes a chunk further at a time."""

    growth = 64  # a chunk may be so many times as long as the one before
    is_quick = False  # whether its first chunks are short for sure
    opens_until: float | None = None  # when a chunk should be over, be it very short; None: no hurry
    apart = False  # whether a chunk works on copies, and its chains stay as they are until `receive`

    def __init__(self, job: Job, chains: list[Chain]) -> None:
        self.job = job
        self.chains = chains
        self.count = 1  # steps in the next chunk
        self.steps_done = 0
        self._reported: set[int] = set()

    @property
    def steps_left(self) -> int:
        return max((self.job.end - c.step for c in self.chains if c.diverged is None), default=0)

    def prepare(self) -> None:
        """Compile, or load from the disk cache, what `chunk` runs."""
        raise NotImplementedError

    def chunk(self) -> int:
        """Every chain a chunk further; gives back how many steps that were."""
        raise NotImplementedError

    def stretch(self, end: float) -> int:
        """Chunks until a moment: the first are so short that to report each would take longer than to run it."""
        done = self.chunk()
        while self.steps_left and time.perf_counter() < end:
            done += self.chunk()
        return done

    def launch(self, pool: ThreadPoolExecutor) -> Future[Any]:
        """Set a chunk going, or a few."""
        return pool.submit(self.stretch, time.perf_counter() + CHUNK_SECONDS / 8)

    def receive(self, future: Future[Any]) -> int:
        """A chunk is done; gives back how many steps that were."""
        return int(future.result())

    def next_count(self, count: int, seconds: float) -> None:
        """The length of the next chunk follows from the time that `count` steps took."""
        self.steps_done += count
        wanted = CHUNK_SECONDS
        if self.opens_until is not None:
            wanted = min(wanted, max(TURN * CHUNK_SECONDS, self.opens_until - time.perf_counter()))
        self.count = max(1, min(int(count * wanted / max(seconds, 1e-9)), self.growth * self.count, 1 << 20))

    def finish(self) -> None:
        """Hand over to the chains what is still elsewhere; at the end, and whenever they are looked at."""

    def newly_diverged(self) -> list[Chain]:
        found = [c for c in self.chains if c.diverged is not None and c.number not in self._reported]
        self._reported.update(c.number for c in found)
        return found


class Group(Task):
    """Chains that take turns in the same scratch space."""

    def __init__(self, job: Job, chains: list[Chain], buffers: Buffers) -> None:
        super().__init__(job, chains)
        dim = chains[0].state.theta.size
        self.count, self.is_quick = job.first_count(dim), job.is_quick(dim) and len(chains) <= FEW
        self.buffers = buffers
        for chain in chains:  # before there are threads: chains of a herd have one array for all
            if chain.watch is None:
                chain.watch = job.watch(dim)

    def prepare(self) -> None:
        self.job.advance(self.chains[0], self.buffers, 0)

    def chunk(self) -> int:
        begin = time.perf_counter()
        done = sum(self.job.advance(c, self.buffers, self.count) for c in self.chains if c.diverged is None)
        self.next_count(self.count, time.perf_counter() - begin)
        return done
