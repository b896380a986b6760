"""Rerun: repeats a run with another step size; `sample` stores it in the trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sgmcmc.samplers import Sampler
from sgmcmc.schedules import Constant

__all__ = ["Rerun"]

_OTHER = 0x9E3779B97F4A7C15  # added to the seed, for independent noise


@dataclass(frozen=True)
class Rerun:
    """The arguments of a run, and `sample`, which is in a layer above this one."""

    sample: Callable[..., Any]
    model: Any
    sampler: Sampler
    options: dict[str, Any]

    @property
    def step_size(self) -> float | None:
        """The step size; None if it follows a schedule."""
        schedule = self.sampler.schedule
        return float(schedule.step_size) if isinstance(schedule, Constant) else None

    def halved(self, init: Any, progress: bool = False) -> Any:
        """The run with half the step size and twice as many steps, so over the same time, with other random numbers."""
        sampler = replace(self.sampler, step_size=0.5 * self.sampler.schedule.step_size)
        given = dict(self.options)
        given |= {"warmup": 2 * given["warmup"], "thin": 2 * given["thin"], "chains": len(init)}
        given |= {"seed": (given["seed"] + _OTHER) % 2**64, "init": init, "progress": progress, "warn": False}
        return self.sample(self.model, sampler, **given)
