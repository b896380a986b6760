"""The result of a run: draws and what was measured beside them, their files, averages, pictures, and traces put together."""

from sgmcmc.trace.measurements import CoordinateTemperatures, KeptMoments
from sgmcmc.trace.trace import Trace

__all__ = ["CoordinateTemperatures", "KeptMoments", "Trace"]
