"""Tuning: settings of a sampler chosen by successive halving, on a criterion that sees bias as well as mixing."""

from sgmcmc.tuning.criterion import Criterion, discrepancy, mixing, scatter
from sgmcmc.tuning.exponent import adapt_a
from sgmcmc.tuning.pilot import Pilot, find_scale
from sgmcmc.tuning.space import OfEdge
from sgmcmc.tuning.tune import tune
from sgmcmc.tuning.tuned import Tuned

__all__ = ["Criterion", "OfEdge", "Pilot", "Tuned", "adapt_a", "discrepancy", "find_scale", "mixing", "scatter", "tune"]
