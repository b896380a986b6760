"""One chain on several threads at once, if there are more cores than chains and its steps are long."""

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
from sgmcmc.run.coordinate_sharding import Pieces, help_chunk, helpers
from sgmcmc.run.coordinate_temperatures import NOTHING
from sgmcmc.run.loop_compiled import Buffers
from sgmcmc.run.row_sharding import APART, Parts, members
from sgmcmc.run.scheduler import Chain, Group, Job
from sgmcmc.threads import borrowed_pool

__all__ = ["teams"]

ALONE = 16  # steps, to see how fast one is
TOGETHER = 64  # steps, to see whether a team is faster: to call it together takes as long as eight of them
BRIEF = 0.01  # seconds; of steps so long that 64 of them take more, a few are enough to see
EVERY = 32  # chunks, some seconds
WORTH = 1.25  # who is alone must be so many times as fast to be left alone
MOST = 5.0  # seconds alone, until a team is tried again


def teams(job: Job, chains: list[Chain], size: int) -> list[Team] | None:
    """A team of so many threads for every chain; None where threads could not help each other."""
    if size < 2 or config.DISABLE_JIT:
        return None
    dim = chains[0].state.theta.size
    parts, pieces = job.parts(dim), job.pieces(dim)
    if isinstance(parts, Parts):
        return [RowTeam(job, chain, min(size, parts.sums.shape[1])) for chain in chains]
    if isinstance(pieces, Pieces):
        return [CoordinateTeam(job, chain, min(size, pieces.sums.shape[1])) for chain in chains]
    return None


class Team(Group):
    """A chain, a leader who records it, and others who help him.

    Where others use the cores too, those who wait for their turn hold up the leader, who is then faster alone. The draws are
    the same, so now and then a few steps are taken alone, and a team that is slower pauses. It may have been slow by accident,
    so the first pause is short, and each one twice as long as the one before.
    """

    others: list[Any]  # what each of the others has of his own
    seconds = 0.0  # of a step, as it was last

    def __init__(self, job: Job, chain: Chain, size: int) -> None:
        super().__init__(job, [chain], job.buffers(chain.state.theta.size)[0])
        self.number = 0  # of chunks
        self.seconds_alone, self.is_proven = np.inf, False  # of a step; that a team is not slower
        self.pause, self.left = TOGETHER, 0  # steps of the next pause, and of this one those that are left
        self.alone, self.buffers = self.buffers, self.share(size)

    def share(self, size: int) -> Buffers:
        """Make a team of so many; gives back the buffers of the leader."""
        raise NotImplementedError

    def call(self, pool: ThreadPoolExecutor, chain: Chain, count: int) -> list[Future[Any]]:
        """Let the others begin with a chunk of so many steps."""
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
        if self.number > 0:  # the first step of all looks for its code, its threads and its memory
            self._judge(together, count, self.seconds)
        self.next_count(count, seconds)
        self.number += 1
        return done

    def _turn(self) -> tuple[bool, int]:
        """Whether the next chunk is taken together, and its most steps."""
        if self.number % EVERY == 1:
            return False, self._few(ALONE)
        if self.left > 0:
            return False, self.left
        return True, self.count if self.is_proven else self._few(TOGETHER)

    def _few(self, count: int) -> int:
        """So many steps, or less if they are long."""
        return count if count * self.seconds <= BRIEF else max(1, int(BRIEF / self.seconds))

    def _judge(self, together: bool, count: int, seconds: float) -> None:
        """What follows from `count` steps that took so long each."""
        if not together:
            self.seconds_alone, self.left = seconds, max(0, self.left - count)
            return
        self.is_proven = seconds <= WORTH * self.seconds_alone
        if self.is_proven:
            self.pause = TOGETHER
        else:
            self.left = self.pause
            self.pause = min(2 * self.pause, max(TOGETHER, int(MOST / max(self.seconds_alone, 1e-9))))

    def _together(self, chain: Chain, count: int) -> int:
        with borrowed_pool(len(self.others)) as pool:
            futures = self.call(pool, chain, count)
            done = self.or_give_up(lambda: self.job.advance(chain, self.buffers, count))
            wait(futures)
        for future in futures:
            future.result()  # if one failed, the leader seems to have diverged: this is why
        return int(done)

    def place(self, chain: Chain, count: int) -> tuple[Any, ...]:
        """Where a chunk begins: its stream, its first step, the size of the one before, the sizes of its own."""
        sizes = self.job.plan.step_sizes(chain.step, count, self.job.dtype)
        return chain.stream, np.int64(chain.step), self.job.dtype(chain.before), sizes

    def or_give_up(self, run: Callable[[], Any]) -> Any:
        """No thread waits for one that failed."""
        try:
            return run()
        except BaseException:
            self.signals[-APART:] = 1
            raise


class RowTeam(Team):
    """Followers take the same steps on copies, and each sums up the gradient over some of the rows."""

    def share(self, size: int) -> Buffers:
        chain, (leader, *followers) = self.chains[0], members(size, self.buffers.parts.sums)
        self.others = [self._own(chain, parts) for parts in followers]
        return self.buffers._replace(parts=leader)

    def _own(self, chain: Chain, parts: Parts) -> Buffers:
        return self.job.buffers(chain.state.theta.size)[0]._replace(parts=parts)

    @property
    def signals(self) -> Any:
        return self.buffers.parts.signals

    def call(self, pool: ThreadPoolExecutor, chain: Chain, count: int) -> list[Future[Any]]:
        copies = [State(*(a.copy() for a in chain.state)) for _ in self.others]
        step = (
            *self.place(chain, count),
            self.job.plan.kept[:0],
            np.full(count, NOTHING, np.int8),
            chain.fresh and count > 0,
            chain.out[:0],
        )
        return [pool.submit(self._follow, own, state, *step) for own, state in zip(self.others, copies, strict=True)]

    def _follow(self, own: Buffers, state: State, *step: Any) -> Any:
        job = self.job
        forget(job.gradient.minibatch, own.memory)
        return self.or_give_up(lambda: job.run_chunk(job.dynamics, job.model, job.gradient, state, own, *step))


class CoordinateTeam(Team):
    """The leader finds the gradients; he and his helpers go through stretches of the coordinates, on the same arrays."""

    def share(self, size: int) -> Buffers:
        leader, *others = helpers(size, self.buffers.pieces.sums)
        dim = self.chains[0].state.theta.size
        self.others = [(own, noise_buffers(self.job.dynamics, dim, self.job.dtype)) for own in others]
        return self.buffers._replace(pieces=leader)

    @property
    def signals(self) -> Any:
        return self.buffers.pieces.signals

    def call(self, pool: ThreadPoolExecutor, chain: Chain, count: int) -> list[Future[Any]]:
        step = (*self.place(chain, count), self.job.plan.phases(chain.step, count))
        return [pool.submit(self._help, chain, own, noise, *step) for own, noise in self.others]

    def _help(self, chain: Chain, own: Pieces, noise: Any, *step: Any) -> Any:
        arrays = chain.state, self.buffers.gradient, chain.origin, noise
        return self.or_give_up(lambda: help_chunk(own, self.job.dynamics, *arrays, *step))
