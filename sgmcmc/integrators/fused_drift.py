"""A(τ/2) O(τ) A(τ/2) in one loop, coordinate by coordinate."""

from __future__ import annotations

import numpy as np

from sgmcmc.compiler.open_functions import LOOP, implements, open_function
from sgmcmc.compiler.precision import zero
from sgmcmc.integrators.flows import drift, thermalise, thermalised
from sgmcmc.kinetics import velocity_and_excess
from sgmcmc.thermostats import FixedFriction, PerCoordinate

__all__ = ["swing"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@open_function(on=2, fastmath=LOOP, apart=True)
def swing(thermostat, scale, kinetics, sigma_p, temperature, state, normals, tau, diffusion):
    """A(τ/2) O(τ) A(τ/2), in one loop where each coordinate is on its own. Gives back the mean of Σ p K'(p) in the two A.

    With `Units` LLVM would have more than eight pairs of arrays to check for overlap, and not vectorise: letter by letter then.
    """


@implements(swing)
def _(thermostat, scale, kinetics, sigma_p, temperature, state, normals, tau, diffusion):
    virial = drift(thermostat, kinetics, scale, temperature, state.theta, state.p, state.xi, 0.5 * tau)
    thermalise(kinetics, thermostat, sigma_p, state.p, state.xi, normals, tau, diffusion)
    return 0.5 * (virial + drift(thermostat, kinetics, scale, temperature, state.theta, state.p, state.xi, 0.5 * tau))


@implements(swing, FixedFriction, np.floating)
def _(thermostat, scale, kinetics, sigma_p, temperature, state, normals, tau, diffusion):
    theta, p = state.theta, state.p
    virial, variance = zero(tau), 2.0 * diffusion * tau
    for i in range(p.size):
        v, _excess = velocity_and_excess(kinetics, p[i], temperature)
        q = thermalised(kinetics, p[i], tau * sigma_p, normals[i], variance)
        w, _excess = velocity_and_excess(kinetics, q, temperature)
        virial += p[i] * v + q * w
        theta[i] += 0.5 * tau * scale * (v + w)
        p[i] = q
    return 0.5 * virial


@implements(swing, PerCoordinate, np.floating)
def _(thermostat, scale, kinetics, sigma_p, temperature, state, normals, tau, diffusion):
    theta, p, xi = state.theta, state.p, state.xi
    virial, variance, rate = zero(tau), 2.0 * diffusion * tau, 0.5 * tau * thermostat.gamma
    for i in range(p.size):
        v, excess = velocity_and_excess(kinetics, p[i], temperature)
        f = xi[i] + rate * excess
        q = thermalised(kinetics, p[i], tau * f, normals[i], variance)
        w, more = velocity_and_excess(kinetics, q, temperature)
        virial += p[i] * v + q * w
        theta[i] += 0.5 * tau * scale * (v + w)
        p[i] = q
        xi[i] = f + rate * more
    return 0.5 * virial
