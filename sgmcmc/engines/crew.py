"""The crew: chains in chunks on a few threads, always the one that is furthest behind.

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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.engines.cpu import Buffers, Gradient
from sgmcmc.engines.plan import Plan
from sgmcmc.engines.python import is_finite
from sgmcmc.integrators import Dynamics, State
from sgmcmc.minibatch import memory, row_buffer
from sgmcmc.rng import Stream
from sgmcmc.update import noise_buffers

__all__ = ["Chain", "Group", "Job", "Task", "groups", "run", "split"]

CHUNK_SECONDS = 0.15


@dataclass
class Chain:
    """One chain on its way."""

    number: int
    stream: Stream
    state: State
    step: int  # the number of the next step
    before: float
    out: NDArray[Any]  # (draws, dim)
    origin: NDArray[Any]
    sums: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    fresh: bool = False  # momenta are drawn with the first chunk
    diverged: int | None = None  # the step in which it left the finite numbers


@dataclass(frozen=True)
class Job:
    """What all chains have in common."""

    run_chunk: Callable[..., int]
    dynamics: Dynamics
    model: Any
    gradient: Gradient
    plan: Plan
    dtype: Any

    @property
    def end(self) -> int:
        return self.plan.first + self.plan.steps

    def buffers(self, chain: Chain) -> Buffers:
        dim, g = chain.state.theta.size, self.gradient
        return Buffers(
            noise_buffers(self.dynamics, dim, self.dtype),
            np.zeros(dim, self.dtype),
            np.zeros((1, dim if g.noise > 0.0 else 0), self.dtype),
            row_buffer(g.minibatch, g.n_rows),
            memory(g.minibatch, g.n_rows),
            chain.origin,
            chain.sums,
        )

    def advance(self, chain: Chain, buffers: Buffers, count: int) -> int:
        """Run up to `count` steps of a chain; gives back how many."""
        count = min(count, self.end - chain.step)
        if buffers.memory.size:
            buffers.memory.fill(-1)  # it may hold what another chain remembered
        low, high = (self.plan.recorded_before(s) for s in (chain.step, chain.step + count))
        step_sizes = self.plan.step_sizes(chain.step, count, self.dtype)
        done = self.run_chunk(
            self.dynamics,
            self.model,
            self.gradient,
            chain.state,
            buffers._replace(origin=chain.origin, sums=chain.sums),
            chain.stream,
            np.int64(chain.step),
            self.dtype(chain.before),
            step_sizes,
            self.plan.kept[low:high],
            np.int64(self.plan.first_measured),
            chain.fresh and count > 0,
            chain.out[low:high],
        )
        chain.step += done
        chain.fresh = chain.fresh and count == 0
        chain.before = float(step_sizes[done - 1]) if done else chain.before
        if done < count:
            if is_finite(chain.state):
                raise KeyboardInterrupt
            chain.diverged = chain.step
        return int(done)


def groups(job: Job, chains: list[Chain], threads: int) -> list[Group]:
    """The chains in a few groups for each thread."""
    return [Group(job, group) for group in split(chains, 4 * threads)]


def run(
    threads: int,
    progress: Callable[[int], None],
    diverged: Callable[[Chain], None],
    tasks: Sequence[Task],
) -> bool:
    """Bring the chains of all tasks to the end of the plan. Gives back whether it was interrupted by Ctrl-C.

    `progress` is told how many steps were done, `diverged` of every chain that diverges (and may raise); both on this thread.
    """
    queue = [(0, i) for i in range(len(tasks))]
    running: dict[Future[int], int] = {}
    with ThreadPoolExecutor(threads) as pool:
        try:
            while queue or running:
                while queue and len(running) < threads:
                    _, i = heapq.heappop(queue)
                    running[pool.submit(tasks[i].chunk)] = i
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    i = running.pop(future)
                    progress(future.result())
                    for chain in tasks[i].newly_diverged():
                        diverged(chain)
                    if tasks[i].steps_left:
                        heapq.heappush(queue, (tasks[i].steps_done, i))
        except KeyboardInterrupt:
            wait(running)  # a few tenths of a second; a second Ctrl-C gets out of here at once
            return True
    return False


def split(chains: list[Any], parts: int) -> list[list[Any]]:
    """A list in at most `parts` groups of nearly equal size."""
    bounds = np.linspace(0, len(chains), min(parts, len(chains)) + 1).astype(int)
    return [chains[a:b] for a, b in itertools.pairwise(bounds)]


class Task:
    """Chains that one thread takes a chunk further at a time."""

    growth = 8  # a chunk may be so many times as long as the one before

    def __init__(self, job: Job, chains: list[Chain]) -> None:
        self.job = job
        self.chains = chains
        self.count = 1  # steps in the next chunk; a first gradient may take seconds
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

    def next_count(self, count: int, seconds: float) -> None:
        """The length of the next chunk follows from the time that `count` steps took."""
        self.steps_done += count
        self.count = max(1, min(int(count * CHUNK_SECONDS / max(seconds, 1e-9)), self.growth * self.count, 1 << 20))

    def finish(self) -> None:
        """Hand over to the chains what is still elsewhere."""

    def newly_diverged(self) -> list[Chain]:
        found = [c for c in self.chains if c.diverged is not None and c.number not in self._reported]
        self._reported.update(c.number for c in found)
        return found


class Group(Task):
    """Chains that take turns in the same scratch space."""

    def __init__(self, job: Job, chains: list[Chain]) -> None:
        super().__init__(job, chains)
        self.buffers = job.buffers(chains[0])

    def prepare(self) -> None:
        self.job.advance(self.chains[0], self.buffers, 0)

    def chunk(self) -> int:
        begin = time.perf_counter()
        done = sum(self.job.advance(c, self.buffers, self.count) for c in self.chains if c.diverged is None)
        self.next_count(self.count, time.perf_counter() - begin)
        return done
