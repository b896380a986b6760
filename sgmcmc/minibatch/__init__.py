"""Minibatches: which rows of the data a step looks at."""

from sgmcmc.minibatch.arguments import as_minibatch
from sgmcmc.minibatch.interface import choose, coming, forget, lookahead, memory, rows_per_step, variance_share
from sgmcmc.minibatch.schemes import Blocks, EpochShuffle, FullData, WithoutReplacement, WithReplacement, row_buffer

__all__ = [
    "Blocks",
    "EpochShuffle",
    "FullData",
    "WithReplacement",
    "WithoutReplacement",
    "as_minibatch",
    "choose",
    "coming",
    "forget",
    "lookahead",
    "memory",
    "row_buffer",
    "rows_per_step",
    "variance_share",
]
