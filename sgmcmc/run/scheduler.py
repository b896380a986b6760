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
from typing import Any, Protocol

from sgmcmc.run import job as jobs
from sgmcmc.run.job import Chain, Job
from sgmcmc.run.loop_compiled import Buffers
from sgmcmc.run.opening import open_run
from sgmcmc.threads import borrowed_pool

__all__ = ["Chain", "Group", "Job", "Saver", "Task", "groups", "run", "split"]

OPENING = 1 / 2  # of a chunk: the length of the opening
TURN = 1 / 64  # of a chunk: one turn of a task in the opening
FEW = 64  # chains whose first chunks together are short


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
    end = begin + OPENING * jobs.CHUNK_SECONDS
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
        return pool.submit(self.stretch, time.perf_counter() + jobs.CHUNK_SECONDS / 8)

    def receive(self, future: Future[Any]) -> int:
        """A chunk is done. Returns the number of steps."""
        return int(future.result())

    def next_count(self, count: int, seconds: float) -> None:
        """Set the length of the next chunk from the time that `count` steps took."""
        self.steps_done += count
        wanted = jobs.CHUNK_SECONDS
        if self.opens_until is not None:
            wanted = min(wanted, max(TURN * jobs.CHUNK_SECONDS, self.opens_until - time.perf_counter()))
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
