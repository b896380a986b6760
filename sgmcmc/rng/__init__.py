"""Random numbers with an address: the names that the rest of the package uses.

A stream is not advanced, it is addressed: (seed, chain, step, index, purpose) leads to a number, the same whatever the
threads, blocks, devices or interruptions. `philox4x32` has the words; the other modules make normals, integers and gamma
variates of them.
"""

from __future__ import annotations

from sgmcmc.rng.gamma import log_gamma_attempt, log_gamma_variate
from sgmcmc.rng.integers import fill_integers, fill_integers_of_steps, integer_below
from sgmcmc.rng.normal_fills import fill_normals, fill_single_normals
from sgmcmc.rng.normals import normal_pair, uniform
from sgmcmc.rng.philox4x32 import (
    GRADIENT_NOISE,
    INIT,
    MINIBATCH,
    MOMENTUM,
    NOISE_P,
    NOISE_THETA,
    NOISE_XI,
    THERMOSTAT,
    USER,
    Lanes,
    Row,
    Stream,
    philox,
    stream,
    words,
)

__all__ = [
    "GRADIENT_NOISE",
    "INIT",
    "MINIBATCH",
    "MOMENTUM",
    "NOISE_P",
    "NOISE_THETA",
    "NOISE_XI",
    "THERMOSTAT",
    "USER",
    "Lanes",
    "Row",
    "Stream",
    "fill_integers",
    "fill_integers_of_steps",
    "fill_normals",
    "fill_single_normals",
    "integer_below",
    "log_gamma_attempt",
    "log_gamma_variate",
    "normal_pair",
    "philox",
    "stream",
    "uniform",
    "words",
]
