"""`Sampler`, the composition of parts with ask and tell, and the five presets."""

from sgmcmc.samplers.sampler import ChainState, Sampler, StepSize, in_precision, precision

__all__ = ["ChainState", "Sampler", "StepSize", "in_precision", "precision"]
