"""Samplers beside each other: the same model, the same budget, several seeds, and what came of it as a table."""

from sgmcmc.comparison.compare import compare

__all__ = ["compare"]
