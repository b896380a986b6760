"""Settings: the checked arguments of a run; all that another process needs to run some of its chains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.minibatch import EpochShuffle, FullData, variance_share
from sgmcmc.parameters import Layout
from sgmcmc.potentials import PythonPotential, laid_out
from sgmcmc.run import lanes, loop_compiled, loop_python, scheduler, sharding
from sgmcmc.run.chains import put_on_own_lines
from sgmcmc.run.plan import Plan, make_plan, segments_for
from sgmcmc.run.recording import Recorder
from sgmcmc.samplers import Sampler, in_precision

__all__ = ["Settings", "local_tasks"]


@dataclass(frozen=True)
class Settings:
    """A run, checked."""

    model: Any
    sampler: Sampler
    draws: int
    warmup: int
    thin: int
    chains: int
    dim: int
    n_rows: int
    layout: Layout  # of θ
    dtype: Any  # np.float32 or np.float64
    rows: Any  # the minibatch rule
    noise: float
    clip: float
    first: int  # number of the first step
    device: str
    why: str  # this device
    cores: int
    on_divergence: str
    own_noise: bool = False  # whether the gradient is random beyond its rows, or no sum over them

    @property
    def interpreted(self) -> bool:
        """Whether Python computes the gradient."""
        return isinstance(self.model, PythonPotential)

    @property
    def threads(self) -> int:
        """How many chains run at the same time."""
        return 1 if self.interpreted else min(self.cores, self.chains)

    @cached_property
    def plan(self) -> Plan:
        """The plan of the run, made once; a copy of the settings for another process makes its own."""
        return make_plan(
            self.sampler.schedule, self.draws, self.warmup, self.thin, self.first, segments_for(self.chains)
        )

    @property
    def measure(self) -> loop_compiled.Measured | loop_compiled.Unmeasured:
        """Whether the run measures the variance of the gradient noise: where it has an effect and is not known."""
        if not self.sampler.wants_variance or (isinstance(self.rows, FullData) and not self.own_noise):
            return loop_compiled.Unmeasured()
        if self.own_noise:  # from two gradients, each of a whole batch
            return loop_compiled.Measured(1.0)
        h = float(self.sampler.schedule.step_sizes(np.zeros(1, np.int64))[0])
        rate = (
            h * self.sampler.relaxation if isinstance(self.rows, EpochShuffle) else 0.0
        )  # other rules do not depend on it
        return loop_compiled.Measured(math.sqrt(variance_share(self.rows, self.n_rows, rate)))

    @property
    def known_variance(self) -> float:
        """The variance of the noise that is added to the gradient: the first value of V."""
        return 2.0 * self.noise

    def job(self, recorder: Recorder | None) -> scheduler.Job:
        """All that the chain loops need."""
        kind = self.dtype
        weight = 1.0 if isinstance(self.rows, FullData) else self.n_rows / self.rows.size
        in_python = partial(loop_python.run_chunk, threads=self.cores // self.threads, twice=self.own_noise)
        return scheduler.Job(
            in_python if self.interpreted else loop_compiled.run_chunk,
            self.sampler.dynamics(self.dim, kind),
            self.model if self.interpreted else self._laid_out(in_precision(self.model, kind)),
            in_precision(
                loop_compiled.Gradient(self.rows, self.n_rows, weight, self.noise, self.clip, self.measure), kind
            ),
            self.plan,
            kind,
            recorder,
            self.chains,
        )

    def _laid_out(self, model: Any) -> Any:
        return laid_out(model) if self.device == "cpu" else model

    def window(self, chains: int) -> int:
        """How many draws per chain a chunk may record, if a recorder takes them: 64 MB for all chains, or one draw."""
        size: int = self.dim * np.dtype(self.dtype).itemsize
        return max(1, min(self.draws, (1 << 26) // max(1, size * chains)))


def local_tasks(
    device: str,
    job: scheduler.Job,
    chains: list[scheduler.Chain],
    seed: int,
    threads: int,
    out: NDArray[Any],
    cores: int = 1,
) -> Sequence[scheduler.Task]:
    """Tasks for the chains: on GPUs, in lane groups, sharded over threads, or in groups that run one after the other."""
    if device == "cuda":
        from sgmcmc.run.gpu import chains as gpu_chains

        return gpu_chains.device_tasks(job, chains, seed)
    found: Sequence[scheduler.Task] | None = lanes.lane_groups(job, chains, threads, out)
    if found is None:
        put_on_own_lines(chains)
        found = sharding.sharded_tasks(job, chains, cores // max(1, min(threads, len(chains))))
    return scheduler.groups(job, chains, threads) if found is None else found
