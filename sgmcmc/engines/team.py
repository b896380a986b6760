"""Teams: one chain run by several threads at once, if there are more cores than chains and its gradient is long."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np
from numba.core import config

from sgmcmc.engines.cpu import Buffers
from sgmcmc.engines.crew import Chain, Group, Job
from sgmcmc.engines.parts import APART, Parts, members
from sgmcmc.integrators import State

__all__ = ["teams"]

NEVER = np.int64(2**62)


def teams(job: Job, chains: list[Chain], size: int) -> list[Team] | None:
    """A team of so many threads for every chain; None where threads could not help each other."""
    if size < 2 or config.DISABLE_JIT or not isinstance(job.buffers(chains[0]).parts, Parts):
        return None
    return [Team(job, chain, size) for chain in chains]


class Team(Group):
    """A chain, a leader who records it, and followers who take the same steps on copies."""

    def __init__(self, job: Job, chain: Chain, size: int) -> None:
        super().__init__(job, [chain])
        leader, *followers = members(size, chain.state.theta.size, job.dtype)
        self.buffers = self.buffers._replace(parts=leader)
        self.others = [self._own(chain, parts) for parts in followers]

    def _own(self, chain: Chain, parts: Parts) -> Buffers:
        return self.job.buffers(chain)._replace(parts=parts, origin=np.zeros_like(chain.origin), sums=np.zeros(3))

    def chunk(self) -> int:
        begin, chain = time.perf_counter(), self.chains[0]
        count = self.job.fitting(chain, self.count)
        with ThreadPoolExecutor(len(self.others)) as pool:
            step = (np.int64(chain.step), self.job.dtype(chain.before), chain.fresh and count > 0)
            copies = [State(*(a.copy() for a in chain.state)) for _ in self.others]
            futures = [
                pool.submit(self._follow, chain, own, state, count, *step)
                for own, state in zip(self.others, copies, strict=True)
            ]
            done = self._unless_failing(self.buffers.parts, lambda: self.job.advance(chain, self.buffers, count))
            wait(futures)
        for future in futures:
            future.result()  # if one failed, the leader seems to have diverged: this is why
        self.next_count(count, time.perf_counter() - begin)
        return done

    def _follow(self, chain: Chain, own: Buffers, state: State, count: int, step: Any, before: Any, fresh: bool) -> Any:
        job = self.job
        own.memory.fill(-1)
        sizes = job.plan.step_sizes(int(step), count, job.dtype)
        place = (chain.stream, step, before, sizes, job.plan.kept[:0], NEVER, fresh, chain.out[:0])
        return self._unless_failing(
            own.parts, lambda: job.run_chunk(job.dynamics, job.model, job.gradient, state, own, *place)
        )

    def _unless_failing(self, parts: Parts, run: Any) -> Any:
        """Nobody waits for a thread that failed."""
        try:
            return run()
        except BaseException:
            parts.signals[-APART:] = 1
            raise
