"""Fresh momenta, and fresh momenta at the steps that have them."""

from __future__ import annotations

import numpy as np

from sgmcmc.compiler.open_functions import LOOP, implements, loop, open_function
from sgmcmc.kinetics import (
    energy,
    fill_momenta,
)
from sgmcmc.rng import Lanes, Row
from sgmcmc.thermostats import (
    account,
)

__all__ = ["refresh", "resample_momentum"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@open_function(inline=False, fastmath=LOOP, apart=True)
def resample_momentum(stream, kinetics, temperature, p, step, first):
    """Draw p afresh from exp(−K/T), coordinate by coordinate."""


@implements(resample_momentum)
def _(stream, kinetics, temperature, p, step, first):
    fill_momenta(kinetics, temperature, p, stream, step, first)


@implements(resample_momentum, Lanes)
def _(stream, kinetics, temperature, p, step, first):
    width = stream.chains.size
    for index in range(p.size // width):  # row by row: the chains of a row are next to each other
        row = p[index * width : (index + 1) * width]
        fill_momenta(kinetics, temperature, row, Row(stream, np.int64(index)), step, 0)


@loop(apart=True)
def refresh(kinetics, noise, thermostat, temperature, p, loss, stream, moment):
    """R: fresh momenta; the energy that went with the old ones is entered into the balance of energies, if there is one."""
    for i in range(p.size):
        account(noise, thermostat, loss, i, p.size, energy(kinetics, p[i]), moment.step)
    resample_momentum(stream, kinetics, temperature, p, moment.step, moment.first)
    for i in range(p.size):
        account(noise, thermostat, loss, i, p.size, -energy(kinetics, p[i]), moment.step)
