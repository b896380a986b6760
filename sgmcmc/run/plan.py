"""The plan of a run: its steps, their sizes, which of them are recorded, and what each measures."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.run.coordinate_temperatures import MEASURED, NOTHING, ORIGIN
from sgmcmc.schedules import Constant, Cyclical, has_phases, recordable, recordable_before, sizes_of

__all__ = ["Plan", "make_plan", "segments_for"]

VALUES = 256  # values of a coordinate's temperature, over all chains and segments
MOST_SEGMENTS = 64
ENOUGH = 4096  # steps of a chain that measure by coordinate; in longer runs every second, third, … step does
RAREST = 8


class Plan(NamedTuple):
    schedule: Any
    first: int  # number of the first step; not 0 when a run continues another
    steps: int  # how many steps each chain takes
    kept: NDArray[np.int64]  # the numbers of the steps whose end is recorded
    first_measured: int  # temperatures are averaged after this step
    segments: int = 1  # of the run, in which coordinates are measured

    def step_sizes(self, step: int, count: int, dtype: Any) -> NDArray[Any]:
        """The sizes of `count` steps from `step` on."""
        if isinstance(self.schedule, Constant):  # a chunk may have a million: no arrays of their numbers
            return np.full(count, self.schedule.step_size, dtype)
        return sizes_of(self.schedule, np.arange(step, step + count)).astype(dtype)

    def recorded_before(self, step: int) -> int:
        """How many draws are recorded before this step."""
        return int(np.searchsorted(self.kept, step))

    def fitting(self, step: int, draws: int) -> int:
        """How many steps from `step` on record at most `draws` draws; at least 1, if `draws` is."""
        low = self.recorded_before(step)
        return (int(self.kept[low + draws]) if low + draws < self.kept.size else self.first + self.steps) - step

    # ---- measuring: only in steps that may be recorded, as these have the law of the draws ----------------------------

    @property
    def origin(self) -> int:
        """The first step that may be recorded: it stores θ as the origin; the steps after it measure."""
        return int(recordable(self.schedule, self.first_measured, np.ones(1, np.int64))[0])

    def measured_before(self, step: int) -> int:
        """How many of the steps before this one measure."""
        first = self.origin + 1
        return max(0, recordable_before(self.schedule, step) - recordable_before(self.schedule, first))

    def phases(self, step: int, count: int) -> NDArray[np.int8]:
        """What each of `count` steps from `step` on measures."""
        found, origin = np.full(count, NOTHING, np.int8), self.origin
        low = min(max(0, origin + 1 - step), count)
        turns = self._of_turns(self.measured_before(step), self.measured_before(step + count))
        if has_phases(self.schedule):
            found[low:][self.schedule.is_sampling(np.arange(step + low, step + count))] = turns
        else:
            found[low:] = turns
        if step <= origin < step + count:
            found[origin - step] = ORIGIN
        return found

    def _of_turns(self, low: int, high: int) -> NDArray[np.int8]:
        """The phases of the measuring steps number low … high − 1."""
        found = np.full(high - low, MEASURED, np.int8)
        total = self.measured_before(self.first + self.steps)
        every = max(1, min(RAREST, total // ENOUGH))
        bounds = [-(-s * total // self.segments) for s in range(self.segments + 1)]
        for segment in range(self.segments):
            begin = -(-max(bounds[segment], low) // every) * every
            found[begin - low : max(bounds[segment + 1], low) - low : every] = segment
        return found


def make_plan(schedule: Any, draws: int, warmup: int, thin: int, first: int = 0, segments: int = MOST_SEGMENTS) -> Plan:
    """After `warmup` steps every `thin`-th step of a sampling phase is kept, until there are `draws`."""
    begin = first + warmup
    _check_length(schedule, draws, warmup, thin, begin)
    kept = recordable(schedule, begin, thin * np.arange(1, draws + 1))
    return Plan(schedule, first, int(kept[-1]) + 1 - first, kept, begin, segments)


def segments_for(chains: int) -> int:
    """In how many segments each of `chains` chains is measured: one for hundreds of chains, which are independent."""
    return max(1, min(MOST_SEGMENTS, VALUES // chains))


def _check_length(schedule: Any, draws: int, warmup: int, thin: int, begin: int) -> None:
    """Steps are counted in 64 bits. With a cyclical schedule there are more of them than are recorded."""
    turns = draws * thin
    if isinstance(schedule, Cyclical):
        turns = (turns // schedule.sampling_steps + 2) * schedule.period
    if begin + turns >= 2**62:
        raise ValueError(
            f"warmup={warmup} and draws={draws} with thin={thin} are more than 2**62 steps; ask for a shorter run"
        )
