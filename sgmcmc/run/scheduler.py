"""The scheduler: chains in chunks on a few threads; the chain that is furthest behind runs next.

A chunk lasts a fraction of a second, so that the progress bar moves, Ctrl-C works and a divergence is seen. The draws of a
chain depend on its number and the seed alone, not on chunks or threads.
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
from sgmcmc.integrators.state import Dynamics, State
from sgmcmc.integrators.step import noise_buffers
from sgmcmc.minibatch import forget, lookahead, row_buffer, rows_per_step
from sgmcmc.potentials import is_ours
from sgmcmc.rng import Stream
from sgmcmc.run.coordinate_sharding import CoordinateShards, coordinate_shards_for
from sgmcmc.run.coordinate_temperatures import new_segment_sums, tracked_coordinates
from sgmcmc.run.loop_compiled import Buffers, Gradient, Measured
from sgmcmc.run.loop_python import is_finite
from sgmcmc.run.opening import open_run
from sgmcmc.run.plan import Plan
from sgmcmc.run.recording import Recorder, Tally
from sgmcmc.run.row_sharding import RowShards, Unsharded, row_shards_for
from sgmcmc.threads import borrowed_pool, rows_on_own_lines

__all__ = ["Chain", "Group", "Job", "Saver", "Task", "groups", "run", "split"]

CHUNK_SECONDS = 0.15
OPENING = 1 / 2  # of a chunk: the length of the opening
TURN = 1 / 64  # of a chunk: one turn of a task in the opening
FEW = 64  # chains whose first chunks together are short
NUMBER = (
    5e-8  # seconds per number of a batch, at most; built-in models: 1 to 2 ns, and 20 ns per coordinate without rows
)


@dataclass
class Chain:
    """A chain: its state, its position in the run, and its measurements."""

    number: int
    stream: Stream
    state: State
    step: int  # the number of the next step
    before: float
    out: NDArray[Any]  # (draws, dim); with a recorder, those of one chunk
    origin: NDArray[Any]
    sums: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    fresh: bool = False  # momenta are still to be drawn
    diverged: int | None = None  # the first step that was not finite
    tally: Tally | None = None  # moments of its draws, with keep="moments"
    coordinate_sums: NDArray[np.float64] | None = None  # of a chain in a lane group: `sums` by coordinate
    segment_sums: NDArray[np.float64] | None = None  # see sgmcmc.run.coordinate_temperatures


@dataclass(frozen=True)
class Job:
    """All that the chains of a run share."""

    run_chunk: Callable[..., int]
    dynamics: Dynamics
    model: Any
    gradient: Gradient
    plan: Plan
    dtype: Any
    recorder: Recorder | None = None  # None: draws stay in the `out` of their chains
    chains: int = 1  # of the whole run: with many, fewer coordinates are tracked

    @property
    def end(self) -> int:
        return self.plan.first + self.plan.steps

    def buffers(self, dim: int, count: int = 1) -> list[Buffers]:
        """Scratch arrays for `count` groups; `advance` puts in those of its chain."""
        g, noise = self.gradient, noise_buffers(self.dynamics, dim, self.dtype)
        gradient, normals = np.zeros(dim, self.dtype), np.zeros((1, dim if g.noise > 0.0 else 0), self.dtype)
        difference = np.zeros(dim if isinstance(g.measure, Measured) else 0, self.dtype)
        rows, memory = row_buffer(g.minibatch, g.n_rows), lookahead(g.minibatch, g.n_rows)
        scratch = rows_on_own_lines((a[None] for a in (*noise, gradient, difference, normals, rows, memory)), count)
        segment_sums = self.segment_sums(dim)
        shared = np.zeros(dim, self.dtype), np.zeros(3), segment_sums  # in place of a chain's origin and sums
        found = []
        for i in range(count):
            *normals_of_noise, gradient, difference, normals, rows, memory = (own[i] for own in scratch)
            own = type(noise)(*normals_of_noise), gradient, difference, normals, rows, memory
            found.append(Buffers(*own, *shared, self.row_shards(dim), self.coordinate_shards(dim)))
        return found

    def segment_sums(self, dim: int) -> NDArray[np.float64]:
        """Zero sums by segment and coordinate."""
        return new_segment_sums(self.plan.segments, tracked_coordinates(dim, self.chains, self.plan.segments).size)

    def row_shards(self, dim: int) -> Unsharded | RowShards:
        """The row shards of a chain."""
        g = self.gradient
        return row_shards_for(self.model, dim, g.minibatch, g.n_rows, self.dtype)

    def coordinate_shards(self, dim: int) -> Unsharded | CoordinateShards:
        """The coordinate shards of a chain."""
        return coordinate_shards_for(self.dynamics, self.model, dim, self.dtype)

    def first_count(self, dim: int) -> int:
        """Steps of the first chunk: one for a user's gradient, which may take seconds."""
        return max(1, min(self._expected_steps(dim), 1 << 13))

    def is_quick(self, dim: int) -> bool:
        """Whether a step is known in advance to take less than a chunk.

        Data in a file may be on a slow disk; without compilation, loops run as Python.
        """
        return self._expected_steps(dim) > 0 and not self._is_mapped and not config.DISABLE_JIT

    def _expected_steps(self, dim: int) -> int:
        """A lower bound on the number of steps that fit in a chunk; 0 if unknown."""
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
        """`count`, or fewer: the steps that are left, and whose draws fit in the chain's `out`."""
        count = min(count, self.end - chain.step)
        return count if self.recorder is None else min(count, self.plan.fitting(chain.step, len(chain.out)))

    def window(self, low: int, high: int) -> slice:
        """The rows of `out` for the draws low … high − 1."""
        return slice(low, high) if self.recorder is None else slice(0, high - low)

    def record(self, chain: Chain, low: int, draws: NDArray[Any]) -> None:
        """Pass the draws up to the chain's step to the recorder, if there is one; `draws` may have more rows."""
        if self.recorder is not None:
            self.recorder.take(chain, low, draws[: self.plan.recorded_before(chain.step) - low])

    def advance(self, chain: Chain, buffers: Buffers, count: int) -> int:
        """Run up to `count` steps of a chain. Returns how many."""
        count = self.fitting(chain, count)
        if chain.segment_sums is None:
            chain.segment_sums = self.segment_sums(chain.state.theta.size)
        forget(self.gradient.minibatch, buffers.memory)  # it may hold the rows of another chain
        low, high = (self.plan.recorded_before(s) for s in (chain.step, chain.step + count))
        step_sizes, out = self.plan.step_sizes(chain.step, count, self.dtype), chain.out[self.window(low, high)]
        done = self.run_chunk(
            self.dynamics,
            self.model,
            self.gradient,
            chain.state,
            buffers._replace(origin=chain.origin, sums=chain.sums, segment_sums=chain.segment_sums),
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
    """The chains in a few groups per thread."""
    found = split(chains, 4 * threads)
    scratch = job.buffers(chains[0].state.theta.size, len(found))
    return [Group(job, group, own) for group, own in zip(found, scratch, strict=True)]


def run(
    threads: int,
    progress: Callable[[int], None],
    diverged: Callable[[Chain], None],
    tasks: Sequence[Task],
    saver: Saver | None = None,
) -> bool:
    """Run the chains of all tasks to the end of the plan. Returns whether Ctrl-C interrupted it.

    On this thread: `progress` gets the number of steps done, `diverged` every chain that diverges (and may raise), and `saver`
    is called while no chain moves.
    """
    running: dict[Future[Any], int] = {}
    with borrowed_pool(threads) as pool:
        try:
            _open(threads, progress, diverged, tasks)
            _bring_to_the_end(pool, threads, progress, diverged, tasks, saver, running)
        except KeyboardInterrupt:
            _settle(running, tasks)  # some tenths of a second; a second Ctrl-C skips it
            return True
        except BaseException:
            _settle(running, tasks)
            raise
    return False


def _open(
    threads: int, progress: Callable[[int], None], diverged: Callable[[Chain], None], tasks: Sequence[Task]
) -> None:
    """The opening, in which this thread works too; a short run ends within it."""
    if not all(task.is_quick for task in tasks):
        return
    begin = time.perf_counter()
    end = begin + OPENING * CHUNK_SECONDS
    for task in tasks:  # more tasks than threads take turns, in the shortest chunks
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
        if due and saver is not None and (not running or all(task.on_copies for task in tasks)):
            _save(saver, tasks)
            due = False
        # Twice as many chunks as threads: a thread that is done takes its next chunk without waiting for this one.
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
    """Drop the chunks that have not begun; wait for those that write to their chains, and for no others."""
    begun = [(future, i) for future, i in running.items() if not future.cancel()]
    wait([future for future, i in begun if not tasks[i].on_copies])


def split(chains: list[Any], most: int) -> list[list[Any]]:
    """A list in at most `most` groups of nearly equal size."""
    count = min(most, len(chains))
    return [chains[i * len(chains) // count : (i + 1) * len(chains) // count] for i in range(count)]


class Saver(Protocol):
    """Saves the chains at times, while none of them moves."""

    def due(self) -> bool: ...

    def save(self) -> None: ...


class Task:
    """Chains that one thread advances by a chunk at a time."""

    growth = 64  # a chunk is at most this many times as long as the one before
    is_quick = False  # whether its first chunks are known to be short
    opens_until: float | None = None  # the end of the opening; None: chunks have their usual length
    on_copies = False  # whether a chunk works on copies of its chains, which change in `receive`

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
        """Compile what `chunk` runs, or load it from the disk cache."""
        raise NotImplementedError

    def chunk(self) -> int:
        """Advance every chain by a chunk. Returns the number of steps."""
        raise NotImplementedError

    def stretch(self, end: float) -> int:
        """Chunks until `end`: the first are so short that reporting each would take longer than running it."""
        done = self.chunk()
        while self.steps_left and time.perf_counter() < end:
            done += self.chunk()
        return done

    def launch(self, pool: ThreadPoolExecutor) -> Future[Any]:
        """Start a chunk, or a few."""
        return pool.submit(self.stretch, time.perf_counter() + CHUNK_SECONDS / 8)

    def receive(self, future: Future[Any]) -> int:
        """A chunk is done. Returns the number of steps."""
        return int(future.result())

    def next_count(self, count: int, seconds: float) -> None:
        """Set the length of the next chunk from the time that `count` steps took."""
        self.steps_done += count
        wanted = CHUNK_SECONDS
        if self.opens_until is not None:
            wanted = min(wanted, max(TURN * CHUNK_SECONDS, self.opens_until - time.perf_counter()))
        self.count = max(1, min(int(count * wanted / max(seconds, 1e-9)), self.growth * self.count, 1 << 20))

    def finish(self) -> None:
        """Copy all results to the chains: at the end, and before they are saved."""

    def newly_diverged(self) -> list[Chain]:
        found = [c for c in self.chains if c.diverged is not None and c.number not in self._reported]
        self._reported.update(c.number for c in found)
        return found


class Group(Task):
    """Chains that share scratch arrays and run one after the other."""

    def __init__(self, job: Job, chains: list[Chain], buffers: Buffers) -> None:
        super().__init__(job, chains)
        dim = chains[0].state.theta.size
        self.count, self.is_quick = job.first_count(dim), job.is_quick(dim) and len(chains) <= FEW
        self.buffers = buffers
        for chain in chains:  # before there are threads: views share one array
            if chain.segment_sums is None:
                chain.segment_sums = job.segment_sums(dim)

    def prepare(self) -> None:
        self.job.advance(self.chains[0], self.buffers, 0)

    def chunk(self) -> int:
        begin = time.perf_counter()
        done = sum(self.job.advance(c, self.buffers, self.count) for c in self.chains if c.diverged is None)
        self.next_count(self.count, time.perf_counter() - begin)
        return done
