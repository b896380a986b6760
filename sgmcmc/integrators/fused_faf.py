"""F(τ/2) A(τ) F(τ/2) in one go for a = 1: what the two friction flows and the drift between them have in common is found once.

With y = k|p| and λ = (k/m) f τ/2 the flow is sinh y ← e^{−λ} sinh y. The drift leaves p alone, so the second flow goes on from
the sinh y at which the first one ended, and the velocity is tanh y = sinh y/√(1 + sinh²y), whose root the flow needs anyway:
three exponentials instead of five, and θ need not wait for a logarithm. Every form of a step takes this same way, with nothing in
it that depends on neighbours: a chain has the same bits alone and in lanes, and in blocks of any size.
"""

from __future__ import annotations

from sgmcmc.compiler.open_functions import LOOP, implements, leaf, open_function
from sgmcmc.compiler.precision import like, zero
from sgmcmc.integrators.preconditioning import at
from sgmcmc.integrators.state import note
from sgmcmc.kinetics import LinearMonomial, end_of_flow, second_flow, sinh_flow, velocity_after_flow
from sgmcmc.thermostats import (
    InferredNoise,
    PerCoordinate,
    at_center,
    crosstalk,
    crosstalk_rate,
    follow,
    mean_bend,
    power_and_bend_of_tanh,
)

__all__ = ["fused_faf", "has_fused_faf", "learn_from_sinh"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@open_function(on=2)
def has_fused_faf(thermostat, kinetics):
    """Whether there is a `fused_faf`; where there is none, it is letter by letter."""


@implements(has_fused_faf)
def _(thermostat, kinetics):
    return False


@implements(has_fused_faf, PerCoordinate, LinearMonomial)
def _(thermostat, kinetics):
    return True


@implements(has_fused_faf, PerCoordinate, LinearMonomial, device=True)
def _(thermostat, kinetics):
    return False  # a GPU would keep both forms, and their registers


@open_function(on=2, fastmath=LOOP, apart=True)
def fused_faf(thermostat, kinetics, scale, dynamics, state, moment, learning, diffusion, center, sinh, rest):
    """F(h/2) A(h) F(h/2), with learning in the middle of A. Returns Σ p K'(p) in A.

    `sinh` and `rest` are as long as p, for what the formula wants to put there.
    """


@implements(fused_faf)
def _(thermostat, kinetics, scale, dynamics, state, moment, learning, diffusion, center, sinh, rest):
    return zero(moment.h)


# What is written into loops may be reordered, for the sake of their sums, and in one kernel otherwise than in another. So all
# that moves a coordinate is in leaves, which are not.


@leaf
def drifted(thermostat, kinetics, dynamics, scale, h, theta, p, xi, c, sinh):
    """What A does to a coordinate, from `sinh` after the first flow: θ, ξ, sinh y and the rest for the second, and p K'(p).

    c is the crosstalk. Of numbers, not of arrays: LLVM knows which arrays lie apart for the loop that they were given to.
    """
    half = 0.5 * h
    v, excess, virial = velocity_after_flow(kinetics, p, half * xi, sinh, dynamics.temperature)
    f = xi + h * thermostat.gamma * excess
    longer, rest = second_flow(kinetics, p, half * xi, half * f, sinh)
    return theta + h * scale * (1.0 - 2.0 * c) * v, f, longer, rest, virial


@implements(fused_faf, PerCoordinate, LinearMonomial)
def _(thermostat, kinetics, scale, dynamics, state, moment, learning, diffusion, center, sinh, rest):
    theta, p, xi, h = state.theta, state.p, state.xi, moment.h
    virial = zero(h)
    for i in range(p.size):
        sinh[i] = sinh_flow(kinetics, p[i], 0.5 * h * xi[i])
    if learning:
        learn_from_sinh(
            dynamics.noise, thermostat, kinetics, dynamics.temperature, diffusion, center, state, moment, sinh
        )
    per_variance = crosstalk_rate(dynamics.sigma_theta, dynamics.temperature, h)
    for i in range(p.size):
        c = crosstalk(dynamics.crosstalk, thermostat, per_variance, state.variance, i)
        theta[i], xi[i], sinh[i], rest[i], own = drifted(
            thermostat, kinetics, dynamics, at(scale, i), h, theta[i], p[i], xi[i], c, sinh[i]
        )
        virial = note(dynamics.layout, i, virial, own, True, like(h, 1))
    for i in range(p.size):
        p[i] = end_of_flow(kinetics, p[i], sinh[i], rest[i])
    return virial


@open_function(on=1, inline=True, fastmath=LOOP, apart=True)
def learn_from_sinh(noise, thermostat, kinetics, temperature, diffusion, center, state, moment, sinh):
    """`thermostats.learn` in the middle of A, before A: ξ is taken to where half of A will have brought it."""


@implements(learn_from_sinh)
def _(noise, thermostat, kinetics, temperature, diffusion, center, state, moment, sinh):
    return None


@implements(learn_from_sinh, InferredNoise)
def _(noise, thermostat, kinetics, temperature, diffusion, center, state, moment, sinh):
    h = moment.h
    for i in range(state.p.size):
        friction, before = at_center(center, state.variance[i]), mean_bend(state, i, h)
        power, bend = middle_of_drift(thermostat, kinetics, temperature, h, state.xi[i], friction, before, sinh[i])
        follow(state, i, power, bend, temperature, diffusion, center, like(h, 1), moment)


@leaf
def middle_of_drift(thermostat, kinetics, temperature, h, xi, center, bend, sinh):
    """`power_and_bend` of a coordinate in the middle of A."""
    inverse, half = 1.0 / kinetics.mass, 0.5 * h
    square = sinh * sinh
    complement = 1.0 / (1.0 + square)
    z = square * complement
    excess = z * inverse * inverse - temperature * (0.5 * kinetics.softening * inverse * inverse) * complement
    f = xi + half * thermostat.gamma * excess
    return power_and_bend_of_tanh(kinetics, z, complement, f, center, bend, temperature, half, half)
