"""Random numbers with an address: the names the rest of the package uses.

A stream is not advanced, it is addressed: (seed, chain, step, index, purpose) leads to a number, the same whatever the
threads, blocks, devices or interruptions. `philox` has the words, `normals`, `bulk` and `variates` what is made of them.
"""

from __future__ import annotations

from sgmcmc.bulk import fill_normals, fill_single_normals
from sgmcmc.normals import normal_pair, uniform
from sgmcmc.philox import (
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
from sgmcmc.variates import fill_integers, fill_integers_of_steps, integer_below, log_gamma_attempt, log_gamma_variate

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
