"""The result of a run: draws and measurements, their files, averages and plots, and traces joined or combined."""

from sgmcmc.trace.measurements import CoordinateTemperatures, KeptMoments
from sgmcmc.trace.trace import Trace

__all__ = ["CoordinateTemperatures", "KeptMoments", "Trace"]
