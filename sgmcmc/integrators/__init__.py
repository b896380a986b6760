"""Integrators: how one step advances (θ, p, ξ), written as words of the letters in flows.py.

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

import sgmcmc.thermostats as thermostats
from sgmcmc.compiler.open_functions import LOOP, implements, leaf, loop, open_function
from sgmcmc.compiler.precision import like, zero
from sgmcmc.integrators.flows import (
    begin_diffusion,
    compensate,
    count_drift,
    drift,
    drift_compensated,
    end_diffusion,
    is_exact,
    kick,
    rub,
    thermalise,
)
from sgmcmc.integrators.fused import glide, glides
from sgmcmc.integrators.fused_drift import swing
from sgmcmc.integrators.resampling import refresh
from sgmcmc.integrators.units import at
from sgmcmc.kinetics import Overdamped, velocity_and_excess

__all__ = ["BAOAB", "Dynamics", "Euler", "SymmetricSplitting"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


class Euler(NamedTuple):
    """Explicit Euler–Maruyama, as in the paper: first order, one gradient per step. For comparison; it runs hot.

    With fresh momenta every n steps the last kick of each stretch is lost: θ's variance on a Gaussian target is too large by
    1/(n − 1) however small the step. The splittings have no such error.
    """


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
    scale: Any  # a number, letters.Units, or frames.Frame
    sigma_theta: float
    sigma_p: float
    sigma_xi: float
    temperature: float
    noise_estimate: float
    resample_momentum: int  # period in steps; 0 is never
    resample_thermostat: int
    noise: Any  # thermostats.KnownNoise or InferredNoise: where the variance of the gradient noise comes from


class State(NamedTuple):
    """One chain between two steps. Arrays that a sampler does not use are empty."""

    theta: Any  # where the next gradient is to be taken; also the draw
    p: Any
    xi: Any
    variance: Any  # V of the gradient noise, in the chain's units: where ξ is pulled to depends on it
    loss: Any  # running mean of the energy per step that friction takes out beyond the injected noise, if V is inferred
    bend: Any  # running mean of ½w²K'', w the time of the kick, if V is inferred
    span: Any  # running mean of h K'', if V is inferred
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


@open_function(on=2, fastmath=LOOP)
def advance(integrator, kinetics, scale, dynamics, state, gradient, noise, stream, moment):
    """One step of a block of coordinates, in place. Gives back Σ p K'(p) at a point of symmetry (0 without momentum).

    `kinetics` and `scale` are those of `dynamics`, in the form and for the coordinates of this block.
    """


@loop(inline=True)
def move_thermostat(dynamics, state, noise, moment, tau):
    """X: an Ornstein–Uhlenbeck step of ξ, or a fresh draw of it when its turn has come."""
    thermostat, xi, v, dim = dynamics.thermostat, state.xi, state.variance, state.theta.size
    center = center_now(dynamics, moment)
    if is_turn(dynamics.resample_thermostat, moment.step):
        thermostats.resample(thermostat, xi, center, v, noise.xi, dim, dynamics.temperature)
    elif dynamics.sigma_xi > 0.0:
        thermostats.relax(thermostat, xi, center, v, noise.xi, dim, dynamics.sigma_xi, dynamics.temperature, tau)


@leaf
def center_now(dynamics, moment):
    """Where ξ is pulled to in this step."""
    d = dynamics
    return thermostats.center_of(d.thermostat, d.sigma_p, d.noise_estimate, d.temperature, moment.h)


@leaf
def is_turn(period, step):
    """Whether something that happens every `period` steps (0: never) happens in this one."""
    return period > 0 and (step + 1) % max(period, 1) == 0


@leaf
def injected(dynamics):
    """D = σ_p T − B̂: the diffusion that is left to inject when gradient noise already brings B̂."""
    return dynamics.sigma_p * dynamics.temperature - dynamics.noise_estimate


@loop(inline=True)
def before_flow(scale, dynamics, state, gradient, noise, moment, diffusion):
    """What goes with the gradient: (G N X L)(w)."""
    w = 0.5 * (moment.before + moment.h)
    if dynamics.sigma_theta > 0.0:
        end_diffusion(scale, dynamics.sigma_theta, state.theta, state.pending, gradient, w)
    move_thermostat(dynamics, state, noise, moment, w)
    kick(state.p, gradient, noise.p, scale, w, diffusion)


@loop(inline=True)
def after_flow(scale, dynamics, state, noise, moment):
    """The first half of the θ-noise of the next step."""
    if dynamics.sigma_theta > 0.0:
        sigma_theta, temperature = dynamics.sigma_theta, dynamics.temperature
        begin_diffusion(dynamics.thermostat, scale, sigma_theta, temperature, state, noise.theta, moment.h)


@implements(advance, SymmetricSplitting)
def _(integrator, kinetics, scale, dynamics, state, gradient, noise, stream, moment):
    thermostat, sigma_p, temperature = dynamics.thermostat, dynamics.sigma_p, dynamics.temperature
    theta, p, xi, h = state.theta, state.p, state.xi, moment.h
    diffusion, center = injected(dynamics), center_now(dynamics, moment)
    before_flow(scale, dynamics, state, gradient, noise, moment, diffusion)
    learning = thermostats.is_learning(dynamics.noise, thermostat, moment.step)
    resampling = is_turn(dynamics.resample_momentum, moment.step)
    if glides(thermostat, kinetics) and not resampling:
        # G and X have used their normals up: there is room for what it wants to put there.
        virial = glide(
            thermostat, kinetics, scale, dynamics, state, moment, learning, diffusion, center, noise.p, noise.xi
        )
        after_flow(scale, dynamics, state, noise, moment)
        return virial
    rub(kinetics, thermostat, sigma_p, p, xi, 0.5 * h, noise.p)  # the kick has used the normals up
    virial = zero(h)
    if not (learning or resampling):
        virial = drift_compensated(thermostat, kinetics, scale, dynamics.sigma_theta, temperature, state, h)
    for half in range(2 if learning or resampling else 0):  # both need the middle of A: half of it before, half after
        if half == 1 and learning:
            thermostats.learn(
                dynamics.noise, thermostat, kinetics, temperature, diffusion, center, state, 0.5 * h, 0.5 * h, moment
            )
        if half == 1 and resampling:
            refresh(kinetics, dynamics.noise, thermostat, temperature, p, state.loss, stream, moment)
        count_drift(thermostat, zero(h), like(h, 1))
        virial = drift(thermostat, kinetics, scale, temperature, theta, p, xi, 0.5 * h)
    if (learning or resampling) and dynamics.sigma_theta > 0.0:
        compensate(kinetics, thermostat, scale, dynamics.sigma_theta, temperature, state, h)
    rub(kinetics, thermostat, sigma_p, p, xi, 0.5 * h, noise.p)
    after_flow(scale, dynamics, state, noise, moment)
    return virial


@implements(advance, BAOAB)
def _(integrator, kinetics, scale, dynamics, state, gradient, noise, stream, moment):
    thermostat, sigma_p, temperature = dynamics.thermostat, dynamics.sigma_p, dynamics.temperature
    theta, p, xi, h = state.theta, state.p, state.xi, moment.h
    diffusion, center = injected(dynamics), center_now(dynamics, moment)
    flow = zero(h) if is_exact(kinetics) else 0.5 * h  # the friction flow on either side of the noise within O
    before_flow(scale, dynamics, state, gradient, noise, moment, zero(h))
    learning = thermostats.is_learning(dynamics.noise, thermostat, moment.step)
    resampling = is_turn(dynamics.resample_momentum, moment.step)
    virial = zero(h)
    if not (learning or resampling):
        virial = swing(thermostat, scale, kinetics, sigma_p, temperature, state, noise.p, h, diffusion)
    for half in range(2 if learning or resampling else 0):
        if half == 1:
            if resampling:
                refresh(kinetics, dynamics.noise, thermostat, temperature, p, state.loss, stream, moment)
            else:
                thermalise(kinetics, thermostat, sigma_p, p, xi, noise.p, h, diffusion)
        if learning and half == 1:  # after O and, below, before it: the mean of the two is the middle
            thermostats.learn(
                dynamics.noise, thermostat, kinetics, temperature, diffusion, center, state, flow, zero(h), moment
            )
        count_drift(thermostat, like(h, half), like(h, 0.5))
        virial += 0.5 * drift(thermostat, kinetics, scale, temperature, theta, p, xi, 0.5 * h)
        if learning and half == 0:
            thermostats.learn(
                dynamics.noise, thermostat, kinetics, temperature, diffusion, center, state, zero(h), flow, moment
            )
    if dynamics.sigma_theta > 0.0:
        compensate(kinetics, thermostat, scale, dynamics.sigma_theta, temperature, state, h)
    after_flow(scale, dynamics, state, noise, moment)
    return virial


@loop(inline=True)
def overdamped_step(scale, dynamics, state, gradient, noise, moment):
    """L alone, with the gradient at the halfway point of the noise: second order (Leimkuhler and Matthews 2013)."""
    w = 0.5 * (moment.before + moment.h)
    end_diffusion(scale, dynamics.sigma_theta, state.theta, state.pending, gradient, w)
    after_flow(scale, dynamics, state, noise, moment)
    return zero(w)


@implements(advance, SymmetricSplitting, Overdamped)
def _(integrator, kinetics, scale, dynamics, state, gradient, noise, stream, moment):
    return overdamped_step(scale, dynamics, state, gradient, noise, moment)


@implements(advance, BAOAB, Overdamped)
def _(integrator, kinetics, scale, dynamics, state, gradient, noise, stream, moment):
    return overdamped_step(scale, dynamics, state, gradient, noise, moment)


@implements(advance, Euler, Overdamped)
def _(integrator, kinetics, scale, dynamics, state, gradient, noise, stream, moment):
    h = moment.h
    amplitude = math.sqrt(2.0 * dynamics.sigma_theta * dynamics.temperature * h)
    for i in range(state.theta.size):
        s = at(scale, i)
        state.theta[i] += s * (amplitude * noise.theta[i] - h * dynamics.sigma_theta * s * gradient[i])
    return zero(h)


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
    virial, heat = zero(h), zero(h)
    for i in range(p.size):
        s = at(scale, i)
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
        thermostats.resample(
            thermostat, xi, center_now(dynamics, moment), state.variance, noise.xi, theta.size, temperature
        )
    if is_turn(dynamics.resample_momentum, moment.step):
        refresh(kinetics, dynamics.noise, thermostat, temperature, p, state.loss, stream, moment)
    return virial
