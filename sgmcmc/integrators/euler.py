"""Explicit Euler–Maruyama: all drifts at the old state."""

from __future__ import annotations

import math
from typing import NamedTuple

import sgmcmc.thermostats as thermostats
from sgmcmc.compiler.open_functions import implements, open_function
from sgmcmc.compiler.precision import zero
from sgmcmc.integrators.preconditioning import at
from sgmcmc.integrators.resampling import refresh
from sgmcmc.integrators.state import advance, center_now, injected, is_turn, order
from sgmcmc.kinetics import velocity_and_excess
from sgmcmc.thermostats import couples_coordinates

__all__ = ["Euler", "halves_theta_noise", "is_explicit"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


class Euler(NamedTuple):
    """Explicit Euler–Maruyama, as in the paper: first order, one gradient per step. For comparison; it runs hot.

    With fresh momenta every n steps the last kick of each stretch is lost: θ's variance on a Gaussian target is too large by
    1/(n − 1) however small the step. The splittings have no such error.

    Examples
    --------
    >>> import sgmcmc as sg
    >>> sg.SGLD(0.01, integrator=sg.integrators.Euler()).integrator
    Euler()
    """


@open_function
def halves_theta_noise(integrator):
    """Whether the noise of θ comes in two halves around the gradient, so that a chain keeps one. Called in plain Python."""


@open_function
def is_explicit(integrator):
    """Whether all drifts are taken at the old state, so that a step is linear in h. Called in plain Python."""


@implements(is_explicit)
def _(integrator):
    return False


@implements(is_explicit, Euler)
def _(integrator):
    return True


@implements(halves_theta_noise)
def _(integrator):
    return True


@implements(halves_theta_noise, Euler)
def _(integrator):
    return False


@implements(couples_coordinates, Euler)
def _(part):
    return False


@implements(order, Euler)
def _(integrator):
    return 1


@implements(advance, Euler)
def _(integrator, kinetics, scale, dynamics, state, gradient, noise, stream, moment):
    theta, p, xi, h = state.theta, state.p, state.xi, moment.h
    thermostat, temperature, diffusion = dynamics.thermostat, dynamics.temperature, injected(dynamics)
    noise_theta = math.sqrt(2.0 * dynamics.sigma_theta * temperature * h)
    noise_p = math.sqrt(2.0 * diffusion * h)
    if thermostats.is_learning(dynamics.noise, thermostat, moment.step):
        center = center_now(dynamics, moment)
        thermostats.learn(
            dynamics.noise, thermostat, kinetics, temperature, diffusion, center, state, zero(h), zero(h), moment
        )
    virial, total = zero(h), zero(h)
    for i in range(p.size):
        s = at(scale, i)
        g = s * gradient[i]
        f = thermostats.friction(thermostat, dynamics.sigma_p, xi, i)
        v, excess = velocity_and_excess(kinetics, p[i], temperature)
        virial += p[i] * v
        theta[i] += s * (h * v - h * dynamics.sigma_theta * g + noise_theta * noise.theta[i])
        p[i] += -h * g - h * f * v + noise_p * noise.p[i]
        total += thermostats.euler_own(thermostat, dynamics, state, noise, i, excess, h)
    thermostats.euler_shared(thermostat, dynamics, state, noise, total, h)
    if is_turn(dynamics.resample_thermostat, moment.step):
        thermostats.resample(
            thermostat, xi, center_now(dynamics, moment), state.variance, noise.xi, theta.size, temperature
        )
    if is_turn(dynamics.resample_momentum, moment.step):
        refresh(kinetics, dynamics.noise, thermostat, temperature, p, state.loss, stream, moment)
    return virial
