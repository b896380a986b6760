"""A(τ/2) O(τ) A(τ/2) in one loop, coordinate by coordinate."""

from __future__ import annotations

import numpy as np

from sgmcmc.compiler.open_functions import LOOP, implements, open_function
from sgmcmc.compiler.precision import like, zero
from sgmcmc.integrators.flows import drift, thermalise, thermalised
from sgmcmc.integrators.preconditioning import at
from sgmcmc.integrators.state import note
from sgmcmc.kinetics import velocity_and_excess
from sgmcmc.thermostats import FixedFriction, NoCrosstalk, PerCoordinate, drive, friction

__all__ = ["fused_aoa"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@open_function(on=3, fastmath=LOOP, apart=True)
def fused_aoa(thermostat, scale, crosstalk, kinetics, dynamics, state, normals, rate, diffusion, tau):
    """A(τ/2) O(τ) A(τ/2). Returns the mean of Σ p K'(p) in the two A.

    In one loop where each coordinate is on its own and has one number as its scale: with a scale per coordinate LLVM would have
    more than eight pairs of arrays to check for overlap, and not vectorise.
    """


@implements(fused_aoa)
def _(thermostat, scale, crosstalk, kinetics, dynamics, state, normals, rate, diffusion, tau):
    half = like(tau, 0.5)
    virial = drift(kinetics, scale, dynamics, state, rate, True, half, 0.5 * tau)
    thermalise(kinetics, thermostat, dynamics.sigma_p, state.p, state.xi, normals, tau, diffusion)
    return 0.5 * (virial + drift(kinetics, scale, dynamics, state, rate, False, half, 0.5 * tau))


@implements(fused_aoa, FixedFriction, np.floating, NoCrosstalk)
@implements(fused_aoa, PerCoordinate, np.floating, NoCrosstalk)
def _(thermostat, scale, crosstalk, kinetics, dynamics, state, normals, rate, diffusion, tau):
    theta, p, xi = state.theta, state.p, state.xi
    virial, variance, half = zero(tau), 2.0 * diffusion * tau, 0.5 * tau
    for i in range(p.size):
        v, excess = velocity_and_excess(kinetics, p[i], dynamics.temperature)
        drive(thermostat, xi, i, half, excess)
        rate_time = tau * friction(thermostat, dynamics.sigma_p, xi, i)
        q = thermalised(kinetics, p[i], rate_time, normals[i], variance)
        w, more = velocity_and_excess(kinetics, q, dynamics.temperature)
        drive(thermostat, xi, i, half, more)
        virial = note(dynamics.layout, i, virial, 0.5 * (p[i] * v + q * w), True, like(tau, 1))
        theta[i] += half * at(scale, i) * (v + w)
        p[i] = q
    return virial
