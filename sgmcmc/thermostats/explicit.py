"""Explicit Euler of ξ, as in the paper: all drifts at the old state."""

from __future__ import annotations

import math

from sgmcmc.compiler.open_functions import implements, leaf, open_function
from sgmcmc.compiler.precision import like, zero
from sgmcmc.thermostats.interface import drive, drive_shared, relax, sharers
from sgmcmc.thermostats.nose_hoover import PerChain, PerCoordinate, at_center, center_of

__all__ = ["euler_own", "euler_shared"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@leaf
def euler_step(thermostat, dynamics, state, noise, i, excess, h):
    """ξ_i after an explicit Euler step. A fresh draw that falls due replaces it, so its noise is not used twice."""
    v = thermostat.gamma / sharers(thermostat, state.theta.size)
    center = center_of(thermostat, dynamics.sigma_p, dynamics.noise_estimate, dynamics.temperature, h)
    pull = dynamics.sigma_xi * (state.xi[i] - at_center(center, state.variance[i])) / v
    amplitude = math.sqrt(2.0 * dynamics.sigma_xi * dynamics.temperature * h)
    return state.xi[i] + h * (thermostat.gamma * excess - pull) + amplitude * noise.xi[i]


@open_function
def euler_own(thermostat, dynamics, state, noise, i, excess, h):
    """Explicit Euler for the ξ that coordinate i drives. Returns the part that `euler_shared` adds up."""


@open_function
def euler_shared(thermostat, dynamics, state, noise, total, h):
    """Explicit Euler for the ξ that all coordinates share; for others, what is left to do after all coordinates."""


@implements(euler_own)
def _(thermostat, dynamics, state, noise, i, excess, h):
    return drive(thermostat, state.xi, i, h, excess)


@implements(euler_own, PerCoordinate)
def _(thermostat, dynamics, state, noise, i, excess, h):
    state.xi[i] = euler_step(thermostat, dynamics, state, noise, i, excess, h)
    return zero(h)


@implements(euler_own, PerChain)
def _(thermostat, dynamics, state, noise, i, excess, h):
    return excess


@implements(euler_shared)
def _(thermostat, dynamics, state, noise, total, h):
    dim, d = state.theta.size, dynamics
    drive_shared(thermostat, state.xi, h, total, dim)
    if d.sigma_xi > 0.0:
        center = center_of(thermostat, d.sigma_p, d.noise_estimate, d.temperature, h)
        relax(thermostat, state.xi, center, state.variance, noise.xi, dim, d.sigma_xi, d.temperature, h, d.layout)


@implements(euler_shared, PerCoordinate)
def _(thermostat, dynamics, state, noise, total, h):
    return None


@implements(euler_shared, PerChain)
def _(thermostat, dynamics, state, noise, total, h):
    mean_excess = total / like(h, state.theta.size)
    state.xi[0] = euler_step(thermostat, dynamics, state, noise, 0, mean_excess, h)
