"""The pilot of a tuning: `sgmcmc.runs.pilot` with runs by `sample`."""

from __future__ import annotations

from functools import partial

from sgmcmc.runs import pilot
from sgmcmc.runs.pilot import Pilot
from sgmcmc.sampling import sample

__all__ = ["Pilot", "find_scale"]

find_scale = partial(pilot.find_scale, sample)
