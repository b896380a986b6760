"""Teams: one chain run by several threads at once, if there are more cores than chains and its gradient is long."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import wait
from typing import Any

import numpy as np
from numba.core import config

from sgmcmc.engines.cpu import Buffers
from sgmcmc.engines.crew import Chain, Group, Job
from sgmcmc.engines.parts import APART, Parts, members
from sgmcmc.integrators import State
from sgmcmc.threads import borrowed_pool

__all__ = ["teams"]

NEVER = np.int64(2**62)
ALONE = 16  # steps, to see how fast one is
TOGETHER = 64  # steps, to see whether a team is faster: to call it together takes as long as eight of them
EVERY = 32  # chunks, some seconds
WORTH = 1.25  # who is alone must be so many times as fast to be left alone
MOST = 5.0  # seconds alone, until a team is tried again


def teams(job: Job, chains: list[Chain], size: int) -> list[Team] | None:
    """A team of so many threads for every chain; None where threads could not help each other."""
    if size < 2 or config.DISABLE_JIT:
        return None
    parts = job.parts(chains[0].state.theta.size)
    if not isinstance(parts, Parts):
        return None
    return [Team(job, chain, min(size, parts.sums.shape[1])) for chain in chains]


class Team(Group):
    """A chain, a leader who records it, and followers who take the same steps on copies.

    Where others use the cores too, followers that wait for their turn hold up the leader, who is then faster alone. The draws are
    the same, so now and then a few steps are taken alone, and a team that is slower pauses. It may have been slow by accident,
    so the first pause is short, and each one twice as long as the one before.
    """

    def __init__(self, job: Job, chain: Chain, size: int) -> None:
        super().__init__(job, [chain])
        leader, *followers = members(size, self.buffers.parts.sums)
        self.alone, self.buffers = self.buffers, self.buffers._replace(parts=leader)
        self.others = [self._own(chain, parts) for parts in followers]
        self.number = 0  # of chunks
        self.seconds_alone, self.is_proven = np.inf, False  # of a step; that a team is not slower
        self.pause, self.left = TOGETHER, 0  # steps of the next pause, and of this one those that are left

    def _own(self, chain: Chain, parts: Parts) -> Buffers:
        return self.job.buffers(chain)._replace(parts=parts, origin=np.zeros_like(chain.origin), sums=np.zeros(3))

    def chunk(self) -> int:
        begin, chain, (together, most) = time.perf_counter(), self.chains[0], self._turn()
        count = self.job.fitting(chain, min(self.count, most))
        done = self._together(chain, count) if together else self.job.advance(chain, self.alone, count)
        seconds = time.perf_counter() - begin
        if self.number > 0:  # the first step of all looks for its code, its threads and its memory
            self._judge(together, count, seconds / max(count, 1))
        self.next_count(count, seconds)
        self.number += 1
        return done

    def _turn(self) -> tuple[bool, int]:
        """Whether the next chunk is taken together, and its most steps."""
        if self.number % EVERY == 1:
            return False, ALONE
        if self.left > 0:
            return False, self.left
        return True, self.count if self.is_proven else TOGETHER

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
            step = (np.int64(chain.step), self.job.dtype(chain.before), chain.fresh and count > 0)
            copies = [State(*(a.copy() for a in chain.state)) for _ in self.others]
            futures = [
                pool.submit(self._follow, chain, own, state, count, *step)
                for own, state in zip(self.others, copies, strict=True)
            ]
            done = self._or_give_up(self.buffers.parts, lambda: self.job.advance(chain, self.buffers, count))
            wait(futures)
        for future in futures:
            future.result()  # if one failed, the leader seems to have diverged: this is why
        return int(done)

    def _follow(self, chain: Chain, own: Buffers, state: State, count: int, step: Any, before: Any, fresh: bool) -> Any:
        job = self.job
        own.memory.fill(-1)
        sizes = job.plan.step_sizes(int(step), count, job.dtype)
        place = (chain.stream, step, before, sizes, job.plan.kept[:0], NEVER, fresh, chain.out[:0])
        return self._or_give_up(
            own.parts, lambda: job.run_chunk(job.dynamics, job.model, job.gradient, state, own, *place)
        )

    def _or_give_up(self, parts: Parts, run: Callable[[], Any]) -> Any:
        """Nobody waits for a thread that failed."""
        try:
            return run()
        except BaseException:
            parts.signals[-APART:] = 1
            raise
