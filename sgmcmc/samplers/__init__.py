"""`Sampler`, the composition of parts with ask and tell, and the five presets."""

from sgmcmc.samplers.arguments import in_precision, precision
from sgmcmc.samplers.sampler import ChainState, Sampler, StepSize

__all__ = ["ChainState", "Sampler", "StepSize", "in_precision", "precision"]
