"""The pilot of a tuning: `sgmcmc.run.pilot` with runs by `sample`."""

from __future__ import annotations

from functools import partial

from sgmcmc.run import pilot
from sgmcmc.run.pilot import Pilot
from sgmcmc.run.sample import sample

__all__ = ["Pilot", "find_scale"]

find_scale = partial(pilot.find_scale, sample)
