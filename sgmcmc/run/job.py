"""A job: what all chains of a run have in common; and a chain: where one of them is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

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
from sgmcmc.run.plan import Plan
from sgmcmc.run.recording import Recorder, Tally
from sgmcmc.run.row_sharding import RowShards, Unsharded, row_shards_for
from sgmcmc.threads import rows_on_own_lines

__all__ = ["CHUNK_SECONDS", "Chain", "Job"]

CHUNK_SECONDS = 0.15
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
