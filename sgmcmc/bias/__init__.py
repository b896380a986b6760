"""Bias: how wrong a run is, measured on the run itself, with a sentence on what to do about each part of it."""

from sgmcmc.bias.health import problems, warn_of
from sgmcmc.bias.report import BiasReport, bias_report

__all__ = ["BiasReport", "bias_report", "problems", "warn_of"]
