"""One chain on several threads, where there are more cores than chains and its steps are long."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np
from numba import config

from sgmcmc.integrators import State
from sgmcmc.integrators.step import noise_buffers
from sgmcmc.minibatch import forget
from sgmcmc.run.coordinate_sharding import CoordinateShards, run_helper, split_coordinates
from sgmcmc.run.coordinate_temperatures import NOTHING
from sgmcmc.run.job import Chain, Job
from sgmcmc.run.loop_compiled import Buffers
from sgmcmc.run.row_sharding import SIGNAL_STRIDE, RowShards, split_rows
from sgmcmc.run.scheduler import Group
from sgmcmc.threads import borrowed_pool

__all__ = ["sharded_tasks"]

ALONE_STEPS = 16  # steps on one thread, to time it
SHARDED_STEPS = 64  # steps on several threads, to time them: starting the helpers takes as long as eight steps
PROBE_SECONDS = 0.01  # the longest probe: of long steps, fewer are timed
PROBE_EVERY = 32  # chunks, some seconds
MIN_GAIN = 1.25  # one thread must be faster by this factor before sharding pauses
MAX_PAUSE = 5.0  # seconds on one thread before sharding is tried again


def sharded_tasks(job: Job, chains: list[Chain], size: int) -> list[ShardedTask] | None:
    """One task per chain, on `size` threads each; None for a chain that cannot be sharded."""
    if size < 2 or config.DISABLE_JIT:
        return None
    dim = chains[0].state.theta.size
    row_shards, coordinate_shards = job.row_shards(dim), job.coordinate_shards(dim)
    if isinstance(row_shards, RowShards):
        return [RowShardedTask(job, chain, min(size, row_shards.sums.shape[1])) for chain in chains]
    if isinstance(coordinate_shards, CoordinateShards):
        return [CoordinateShardedTask(job, chain, min(size, coordinate_shards.sums.shape[1])) for chain in chains]
    return None


class ShardedTask(Group):
    """A chain on several threads: a leader, which records it, and helpers.

    Where other processes use the cores too, a helper without a core holds up the leader, and one thread is faster. The draws
    are the same either way, so every few chunks some steps are timed on one thread, and sharding pauses while it is slower.
    It may have been slow by accident: the first pause is short, and each is twice as long as the one before.
    """

    others: list[Any]  # per helper: its buffers
    seconds = 0.0  # of a step, in the last chunk

    def __init__(self, job: Job, chain: Chain, size: int) -> None:
        super().__init__(job, [chain], job.buffers(chain.state.theta.size)[0])
        self.number = 0  # of chunks
        self.seconds_alone, self.is_proven = np.inf, False  # of a step on one thread; whether sharding is not slower
        self.pause, self.left = SHARDED_STEPS, 0  # steps of the next pause; steps left of this one
        self.alone, self.buffers = self.buffers, self.split(size)

    def split(self, size: int) -> Buffers:
        """Make the buffers of `size` threads. Returns those of the leader."""
        raise NotImplementedError

    def start_others(self, pool: ThreadPoolExecutor, chain: Chain, count: int) -> list[Future[Any]]:
        """Start the helpers on a chunk of `count` steps."""
        raise NotImplementedError

    @property
    def signals(self) -> Any:
        raise NotImplementedError

    def chunk(self) -> int:
        begin, chain, (together, most) = time.perf_counter(), self.chains[0], self._turn()
        count = self.job.fitting(chain, min(self.count, most))
        done = self._together(chain, count) if together else self.job.advance(chain, self.alone, count)
        seconds = time.perf_counter() - begin
        self.seconds = seconds / max(count, 1)
        if self.number > 0:  # the first step also loads code, starts threads and touches memory
            self._judge(together, count, self.seconds)
        self.next_count(count, seconds)
        self.number += 1
        return done

    def _turn(self) -> tuple[bool, int]:
        """Whether the next chunk is sharded, and its largest number of steps."""
        if self.number % PROBE_EVERY == 1:
            return False, self._few(ALONE_STEPS)
        if self.left > 0:
            return False, self.left
        return True, self.count if self.is_proven else self._few(SHARDED_STEPS)

    def _few(self, count: int) -> int:
        """`count` steps, or fewer if they are long."""
        return count if count * self.seconds <= PROBE_SECONDS else max(1, int(PROBE_SECONDS / self.seconds))

    def _judge(self, together: bool, count: int, seconds: float) -> None:
        """Update the timing with `count` steps of `seconds` each."""
        if not together:
            self.seconds_alone, self.left = seconds, max(0, self.left - count)
            return
        self.is_proven = seconds <= MIN_GAIN * self.seconds_alone
        if self.is_proven:
            self.pause = SHARDED_STEPS
        else:
            self.left = self.pause
            self.pause = min(2 * self.pause, max(SHARDED_STEPS, int(MAX_PAUSE / max(self.seconds_alone, 1e-9))))

    def _together(self, chain: Chain, count: int) -> int:
        with borrowed_pool(len(self.others)) as pool:
            futures = self.start_others(pool, chain, count)
            done = self.or_stop_others(lambda: self.job.advance(chain, self.buffers, count))
            wait(futures)
        for future in futures:
            future.result()  # an error of a helper makes the chain look diverged: raise it
        return int(done)

    def position(self, chain: Chain, count: int) -> tuple[Any, ...]:
        """Stream, first step, the step size before it, and the step sizes of a chunk."""
        sizes = self.job.plan.step_sizes(chain.step, count, self.job.dtype)
        return chain.stream, np.int64(chain.step), self.job.dtype(chain.before), sizes

    def or_stop_others(self, run: Callable[[], Any]) -> Any:
        """run(); if it raises, tell the other threads not to wait for this one."""
        try:
            return run()
        except BaseException:
            self.signals[-SIGNAL_STRIDE:] = 1
            raise


class RowShardedTask(ShardedTask):
    """Helpers take the same steps on copies of the state; each thread sums the gradient over some of the rows."""

    def split(self, size: int) -> Buffers:
        chain, (leader, *helpers) = self.chains[0], split_rows(size, self.buffers.row_shards.sums)
        self.others = [self._own(chain, row_shards) for row_shards in helpers]
        return self.buffers._replace(row_shards=leader)

    def _own(self, chain: Chain, row_shards: RowShards) -> Buffers:
        return self.job.buffers(chain.state.theta.size)[0]._replace(row_shards=row_shards)

    @property
    def signals(self) -> Any:
        return self.buffers.row_shards.signals

    def start_others(self, pool: ThreadPoolExecutor, chain: Chain, count: int) -> list[Future[Any]]:
        copies = [State(*(a.copy() for a in chain.state)) for _ in self.others]
        step = (
            *self.position(chain, count),
            self.job.plan.kept[:0],
            np.full(count, NOTHING, np.int8),
            chain.fresh and count > 0,
            chain.out[:0],
        )
        return [pool.submit(self._run_chunk, own, state, *step) for own, state in zip(self.others, copies, strict=True)]

    def _run_chunk(self, own: Buffers, state: State, *step: Any) -> Any:
        job = self.job
        forget(job.gradient.minibatch, own.memory)
        return self.or_stop_others(lambda: job.run_chunk(job.dynamics, job.model, job.gradient, state, own, *step))


class CoordinateShardedTask(ShardedTask):
    """The leader computes the gradient; all threads update ranges of the coordinates of one state."""

    def split(self, size: int) -> Buffers:
        leader, *others = split_coordinates(size, self.buffers.coordinate_shards.sums)
        dim = self.chains[0].state.theta.size
        self.others = [(own, noise_buffers(self.job.dynamics, dim, self.job.dtype)) for own in others]
        return self.buffers._replace(coordinate_shards=leader)

    @property
    def signals(self) -> Any:
        return self.buffers.coordinate_shards.signals

    def start_others(self, pool: ThreadPoolExecutor, chain: Chain, count: int) -> list[Future[Any]]:
        step = (*self.position(chain, count), self.job.plan.phases(chain.step, count))
        return [pool.submit(self._help, chain, own, noise, *step) for own, noise in self.others]

    def _help(self, chain: Chain, own: CoordinateShards, noise: Any, *step: Any) -> Any:
        arrays = chain.state, self.buffers.gradient, chain.origin, noise
        return self.or_stop_others(lambda: run_helper(own, self.job.dynamics, *arrays, *step))
