"""Integrators: how one step advances (θ, p, ξ), written as words of the letters in letters.py.

A step begins where the last gradient was taken and ends where the next one will be, so that a draw and its gradient belong
together and one gradient is paid per step. Read as a cycle every splitting is a palindrome, hence second order. The part of
a step that goes with the gradient (G, N, L, X) lasts w = (h_before + h)/2, the mean of the step sizes on either side: at the
very beginning h_before = 0, and a step of size 0 at the end closes the cycle at its point of symmetry.

    SymmetricSplitting   (G N X L)(w)  B(h/2) A(h) B(h/2)
    BAOAB                (G X L)(w)    A(h/2) O(h) A(h/2)
    Euler                all drifts at the old state

Momentum is resampled in the middle of the second group (for BAOAB in the place of O), ξ in the place of X.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from sgmcmc import thermostats
from sgmcmc.dispatch import LOOP, implements, like, open_function
from sgmcmc.kinetics import Overdamped, velocity_and_excess
from sgmcmc.letters import (
    at,
    begin_diffusion,
    compensate,
    drift,
    end_diffusion,
    kick,
    plain_kick,
    refresh,
    rub,
    thermalise,
)

__all__ = ["BAOAB", "Dynamics", "Euler", "SymmetricSplitting"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


class Euler(NamedTuple):
    """Explicit Euler–Maruyama, as in the paper: first order, one gradient per step. For comparison; it runs hot."""


class SymmetricSplitting(NamedTuple):
    """B A B around a gradient kick with noise: second order for every kinetics, one gradient per step."""


class BAOAB(NamedTuple):
    """Second order, one gradient per step; the law of θ is exact for Gaussian targets with Gaussian kinetics.

    With a thermostat it is BADODAB (Leimkuhler and Shang 2016): the drift A also drives ξ.
    """


class Dynamics(NamedTuple):
    """What the kernels know of a sampler: its parts and its numbers, in the precision of the run."""

    kinetics: Any
    thermostat: Any
    integrator: Any
    scale: Any  # a number, or letters.Units
    sigma_theta: float
    sigma_p: float
    sigma_xi: float
    temperature: float
    noise_estimate: float
    resample_momentum: int  # period in steps; 0 is never
    resample_thermostat: int


class State(NamedTuple):
    """One chain between two steps. Arrays that a sampler does not use are empty."""

    theta: Any  # where the next gradient is to be taken; also the draw
    p: Any
    xi: Any
    center: Any  # μ, where ξ is pulled to
    loss: Any  # running mean of ξ K'², from which an adaptive centre is learnt
    bend: Any  # running mean of K''
    pending: Any  # the half of the θ-noise that is still to come


class Noise(NamedTuple):
    """Standard normals for one step and one block of coordinates."""

    p: Any
    theta: Any
    xi: Any


class Moment(NamedTuple):
    """Where in the run a step is: its number, the step size before it and its own, and its block's first coordinate."""

    step: Any
    before: float
    h: float
    first: Any


@open_function(on=2, inline=False, fastmath=LOOP)
def advance(integrator, kinetics, dynamics, state, gradient, noise, stream, moment):
    """One step of a block of coordinates, in place. Gives back Σ p K'(p) at a point of symmetry (0 without momentum)."""


@open_function(on=0, inline=False, fastmath=LOOP)
def move_thermostat(dynamics, state, noise, moment, tau):
    """X: an Ornstein–Uhlenbeck step of ξ, or a fresh draw of it when its turn has come."""


@implements(move_thermostat)
def _(dynamics, state, noise, moment, tau):
    thermostat, xi, center = dynamics.thermostat, state.xi, state.center
    if is_turn(dynamics.resample_thermostat, moment.step):
        thermostats.resample(thermostat, xi, center, noise.xi, state.theta.size, dynamics.temperature)
    elif dynamics.sigma_xi > 0.0:
        thermostats.relax(
            thermostat, xi, center, noise.xi, state.theta.size, dynamics.sigma_xi, dynamics.temperature, tau
        )


@open_function(on=0)
def is_turn(period, step):
    """Whether something that happens every `period` steps (0: never) happens in this one."""


@implements(is_turn)
def _(period, step):
    return period > 0 and (step + 1) % max(period, 1) == 0


@open_function(on=0)
def injected(dynamics):
    """D = σ_p T − B̂: the diffusion that is left to inject when gradient noise already brings B̂."""


@implements(injected)
def _(dynamics):
    return dynamics.sigma_p * dynamics.temperature - dynamics.noise_estimate


@implements(advance, SymmetricSplitting)
def _(integrator, kinetics, dynamics, state, gradient, noise, stream, moment):
    theta, p, xi, h = state.theta, state.p, state.xi, moment.h
    w = 0.5 * (moment.before + h)
    if dynamics.sigma_theta > 0.0:
        end_diffusion(dynamics, theta, state.pending, gradient, w)
    move_thermostat(dynamics, state, noise, moment, w)
    kick(dynamics, p, gradient, noise.p, w, injected(dynamics))
    rub(dynamics, p, xi, 0.5 * h)
    learning = thermostats.is_learning(dynamics.thermostat, moment.step)
    resampling = is_turn(dynamics.resample_momentum, moment.step)
    if learning or resampling:
        # Both need the middle of A: half of it before, half after.
        virial = drift(dynamics.thermostat, dynamics, theta, p, xi, 0.5 * h)
        if learning:
            thermostats.learn(dynamics.thermostat, dynamics, state, moment.step)
        if resampling:
            refresh(dynamics, state, stream, moment)
        drift(dynamics.thermostat, dynamics, theta, p, xi, 0.5 * h)
    else:
        virial = drift(dynamics.thermostat, dynamics, theta, p, xi, h)
    if dynamics.sigma_theta > 0.0:
        compensate(dynamics, state, h)
    rub(dynamics, p, xi, 0.5 * h)
    if dynamics.sigma_theta > 0.0:
        begin_diffusion(dynamics, state, noise.theta, h)
    return virial


@implements(advance, BAOAB)
def _(integrator, kinetics, dynamics, state, gradient, noise, stream, moment):
    theta, p, xi, h = state.theta, state.p, state.xi, moment.h
    w = 0.5 * (moment.before + h)
    if dynamics.sigma_theta > 0.0:
        end_diffusion(dynamics, theta, state.pending, gradient, w)
    move_thermostat(dynamics, state, noise, moment, w)
    plain_kick(dynamics, p, gradient, w)
    before = drift(dynamics.thermostat, dynamics, theta, p, xi, 0.5 * h)
    learning = thermostats.is_learning(dynamics.thermostat, moment.step)
    if learning:  # before and after O, because the mean of the two is the middle
        thermostats.learn(dynamics.thermostat, dynamics, state, moment.step)
    if is_turn(dynamics.resample_momentum, moment.step):
        refresh(dynamics, state, stream, moment)
    else:
        thermalise(kinetics, dynamics, p, xi, noise.p, h, injected(dynamics))
    if learning:
        thermostats.learn(dynamics.thermostat, dynamics, state, moment.step)
    after = drift(dynamics.thermostat, dynamics, theta, p, xi, 0.5 * h)
    if dynamics.sigma_theta > 0.0:
        compensate(dynamics, state, h)
    if dynamics.sigma_theta > 0.0:
        begin_diffusion(dynamics, state, noise.theta, h)
    return 0.5 * (before + after)


@open_function(on=0, inline=False, fastmath=LOOP)
def overdamped_step(dynamics, state, gradient, noise, moment):
    """L alone, with the gradient at the halfway point of the noise: second order (Leimkuhler and Matthews 2013)."""


@implements(overdamped_step)
def _(dynamics, state, gradient, noise, moment):
    end_diffusion(dynamics, state.theta, state.pending, gradient, 0.5 * (moment.before + moment.h))
    begin_diffusion(dynamics, state, noise.theta, moment.h)
    return moment.h - moment.h


@implements(advance, SymmetricSplitting, Overdamped)
def _(integrator, kinetics, dynamics, state, gradient, noise, stream, moment):
    return overdamped_step(dynamics, state, gradient, noise, moment)


@implements(advance, BAOAB, Overdamped)
def _(integrator, kinetics, dynamics, state, gradient, noise, stream, moment):
    return overdamped_step(dynamics, state, gradient, noise, moment)


@implements(advance, Euler, Overdamped)
def _(integrator, kinetics, dynamics, state, gradient, noise, stream, moment):
    h = moment.h
    amplitude = math.sqrt(2.0 * dynamics.sigma_theta * dynamics.temperature * h)
    for i in range(state.theta.size):
        s = at(dynamics.scale, i)
        state.theta[i] += s * (amplitude * noise.theta[i] - h * dynamics.sigma_theta * s * gradient[i])
    return h - h


@implements(advance, Euler)
def _(integrator, kinetics, dynamics, state, gradient, noise, stream, moment):
    theta, p, xi, h = state.theta, state.p, state.xi, moment.h
    thermostat, temperature = dynamics.thermostat, dynamics.temperature
    noise_theta = math.sqrt(2.0 * dynamics.sigma_theta * temperature * h)
    noise_p = math.sqrt(2.0 * injected(dynamics) * h)
    if thermostats.is_learning(thermostat, moment.step):
        thermostats.learn(thermostat, dynamics, state, moment.step)
    virial, heat = h - h, h - h
    for i in range(p.size):
        s = at(dynamics.scale, i)
        g = s * gradient[i]
        f = thermostats.friction(thermostat, dynamics.sigma_p, xi, i)
        v, excess = velocity_and_excess(kinetics, p[i], temperature)
        virial += p[i] * v
        heat += excess
        theta[i] += s * (h * v - h * dynamics.sigma_theta * g + noise_theta * noise.theta[i])
        p[i] += -h * g - h * f * v + noise_p * noise.p[i]
        thermostats.euler_own(thermostat, dynamics, state, noise, i, excess, h)
    thermostats.euler_shared(thermostat, dynamics, state, noise, heat / like(h, p.size), h)
    if is_turn(dynamics.resample_thermostat, moment.step):
        thermostats.resample(thermostat, xi, state.center, noise.xi, theta.size, temperature)
    if is_turn(dynamics.resample_momentum, moment.step):
        refresh(dynamics, state, stream, moment)
    return virial
