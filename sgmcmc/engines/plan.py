"""The plan of a run: which steps there are, how long each is, and which are recorded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.schedules import Constant, Cyclical, Schedule, recordable

__all__ = ["Plan", "make_plan"]


class Plan(NamedTuple):
    schedule: Schedule
    first: int  # number of the first step; not 0 when a run goes on from another
    steps: int  # how many steps each chain takes
    kept: NDArray[np.int64]  # the numbers of the steps whose end is recorded
    first_measured: int  # temperatures are averaged after this step

    def step_sizes(self, step: int, count: int, dtype: Any) -> NDArray[Any]:
        """The sizes of `count` steps from `step` on."""
        if isinstance(self.schedule, Constant):  # a chunk may have a million: no arrays of their numbers
            return np.full(count, self.schedule.step_size, dtype)
        return self.schedule.step_sizes(np.arange(step, step + count)).astype(dtype)

    def recorded_before(self, step: int) -> int:
        """How many draws are recorded before this step."""
        return int(np.searchsorted(self.kept, step))

    def fitting(self, step: int, room: int) -> int:
        """How many steps from `step` on record at most `room` draws; at least 1, if `room` is."""
        low = self.recorded_before(step)
        return (int(self.kept[low + room]) if low + room < self.kept.size else self.first + self.steps) - step


def make_plan(schedule: Schedule, draws: int, warmup: int, thin: int, first: int = 0) -> Plan:
    """After `warmup` steps every `thin`-th step of a sampling phase is kept, until there are `draws`."""
    begin = first + warmup
    _check_length(schedule, draws, warmup, thin, begin)
    kept = recordable(schedule, begin, thin * np.arange(1, draws + 1))
    return Plan(schedule, first, int(kept[-1]) + 1 - first, kept, begin)


def _check_length(schedule: Schedule, draws: int, warmup: int, thin: int, begin: int) -> None:
    """Steps are counted in 64 bits. With a cyclical schedule there are more of them than are recorded."""
    turns = draws * thin
    if isinstance(schedule, Cyclical):
        turns = (turns // schedule.sampling_steps + 2) * schedule.period
    if begin + turns >= 2**62:
        raise ValueError(
            f"warmup={warmup} and draws={draws} with thin={thin} are more than 2**62 steps; ask for a shorter run"
        )
