"""Dynamics without momentum: the letter L alone, whatever the word."""

from __future__ import annotations

import math

from sgmcmc.compiler.open_functions import implements
from sgmcmc.compiler.precision import zero
from sgmcmc.integrators.euler import Euler
from sgmcmc.integrators.flows import begin_langevin, end_langevin
from sgmcmc.integrators.preconditioning import at
from sgmcmc.integrators.splitting import Splitting
from sgmcmc.integrators.state import advance
from sgmcmc.kinetics import Overdamped

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@implements(advance, Splitting, Overdamped)
def _(integrator, kinetics, scale, dynamics, state, gradient, noise, stream, moment):
    # The gradient at the halfway point of the noise: second order (Leimkuhler and Matthews 2013).
    end_langevin(scale, dynamics, state, gradient, 0.5 * (moment.before + moment.h))
    begin_langevin(scale, dynamics, state, noise, moment.h)
    return zero(moment.h)


@implements(advance, Euler, Overdamped)
def _(integrator, kinetics, scale, dynamics, state, gradient, noise, stream, moment):
    h = moment.h
    amplitude = math.sqrt(2.0 * dynamics.sigma_theta * dynamics.temperature * h)
    for i in range(state.theta.size):
        s = at(scale, i)
        state.theta[i] += s * (amplitude * noise.theta[i] - h * dynamics.sigma_theta * s * gradient[i])
    return zero(h)
