"""Flows, the letters of the splittings: exact over a block of coordinates. Every splitting is a word of them.

    B  gradient kick          dp = −∇U dt                                     kick
    N  momentum noise         dp = √(2 D) dW                                  kick, add_noise
    F  friction               dp = −f K'(p) dt                                apply_friction
    O  friction and noise     dp = −f K'(p) dt + √(2 D) dW                    thermalise
    A  drift                  dθ = K'(p) dt,  dξ = γ (K'² − T K'') dt         drift
    U  A and O together       Gaussian kinetics with a constant friction      joint.joint_flow
    X  thermostat noise       dξ = −(σ_ξ/γ)(ξ − μ) dt + √(2 σ_ξ T) dW         move_thermostat
    L  overdamped Langevin    dθ = −σ_θ ∇U dt + √(2 σ_θ T) dW                 begin_langevin, end_langevin
    R  resampling             p from exp(−K/T)                                resampling.refresh

f is the friction (σ_p, or ξ), D = σ_p T − B̂ the injected noise. Each is a loop of few arrays, small enough for LLVM to check
their overlap and vectorise; a block stays in the L1 cache from letter to letter. `scale` s is a diagonal preconditioner: the
chain runs in φ = θ/s, whose gradient is s·∇U.
"""

from __future__ import annotations

import math

import sgmcmc.thermostats as thermostats
from sgmcmc.compiler.open_functions import LOOP, implements, loop, open_function
from sgmcmc.compiler.precision import like, zero
from sgmcmc.elementary import expm1
from sgmcmc.integrators.preconditioning import at
from sgmcmc.integrators.state import center_now, is_turn, note
from sgmcmc.kinetics import (
    Gaussian,
    LinearMonomial,
    RootMonomial,
    arrival,
    asinh_flow,
    bounded_inverse_mass,
    friction_flow,
    halfway,
    sinh_flow,
    velocity_and_excess,
)
from sgmcmc.thermostats import crosstalk, crosstalk_rate, drive, drive_shared, friction

__all__ = [
    "add_noise",
    "apply_friction",
    "apply_friction_with_scratch",
    "begin_langevin",
    "drift",
    "end_langevin",
    "is_exact",
    "kick",
    "move_thermostat",
    "thermalise",
    "thermalised",
]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@loop(apart=True, inline=True)
def kick(p, gradient, normals, scale, tau, diffusion):
    """B, and N if the diffusion is above 0: p ← p − τ s ∇U + √(2 D τ) n."""
    amplitude = math.sqrt(2.0 * diffusion * tau)
    for i in range(p.size):
        p[i] += amplitude * normals[i] - tau * at(scale, i) * gradient[i]


@loop(apart=True, inline=True)
def add_noise(p, normals, tau, diffusion):
    """N alone: p ← p + √(2 D τ) n."""
    amplitude = math.sqrt(2.0 * diffusion * tau)
    for i in range(p.size):
        p[i] += amplitude * normals[i]


@loop(apart=True, inline=True)
def apply_friction(kinetics, thermostat, sigma_p, p, xi, tau):
    """F: the friction flow over a time tau."""
    for i in range(p.size):
        p[i] = friction_flow(kinetics, p[i], tau * friction(thermostat, sigma_p, xi, i))


@open_function(fastmath=LOOP, apart=True)
def apply_friction_with_scratch(kinetics, thermostat, sigma_p, p, xi, tau, scratch):
    """`apply_friction`, with an array as long as p for whatever the formula wants to put there.

    A long formula that is one chain of dependent operations takes several short loops: a processor looks some 250
    instructions ahead, less than two turns of one long loop but many of a short one (a = 2: 3.9 ns in four loops, 9.0 in one;
    a = 1: 3.2 in two, 5.3 in one). On a GPU, where other threads fill the gaps, it is one loop.
    """


@implements(apply_friction_with_scratch)
def _(kinetics, thermostat, sigma_p, p, xi, tau, scratch):
    for i in range(p.size):
        p[i] = friction_flow(kinetics, p[i], tau * friction(thermostat, sigma_p, xi, i))


@implements(apply_friction_with_scratch, LinearMonomial)
def _(kinetics, thermostat, sigma_p, p, xi, tau, scratch):
    for i in range(p.size):
        scratch[i] = sinh_flow(kinetics, p[i], tau * friction(thermostat, sigma_p, xi, i))
    for i in range(p.size):
        p[i] = asinh_flow(kinetics, p[i], tau * friction(thermostat, sigma_p, xi, i), scratch[i])


@implements(apply_friction_with_scratch, RootMonomial)
def _(kinetics, thermostat, sigma_p, p, xi, tau, scratch):
    for i in range(p.size):
        scratch[i] = bounded_inverse_mass(kinetics, p[i])
    for i in range(p.size):
        scratch[i] = halfway(p[i], tau * friction(thermostat, sigma_p, xi, i), scratch[i])
    for i in range(p.size):
        scratch[i] = bounded_inverse_mass(kinetics, scratch[i])
    for i in range(p.size):
        p[i] = arrival(p[i], tau * friction(thermostat, sigma_p, xi, i), scratch[i])


@implements(apply_friction_with_scratch, LinearMonomial, device=True)
@implements(apply_friction_with_scratch, RootMonomial, device=True)
def _(kinetics, thermostat, sigma_p, p, xi, tau, scratch):
    for i in range(p.size):
        p[i] = friction_flow(kinetics, p[i], tau * friction(thermostat, sigma_p, xi, i))


@loop(apart=True, inline=True)
def thermalise(kinetics, thermostat, sigma_p, p, xi, normals, tau, diffusion):
    """O: friction and noise over a time tau."""
    variance = 2.0 * diffusion * tau
    for i in range(p.size):
        p[i] = thermalised(kinetics, p[i], tau * friction(thermostat, sigma_p, xi, i), normals[i], variance)


@open_function
def thermalised(kinetics, p, rate_time, normal, variance):
    """Where friction and noise take p within a time τ, with rate_time = f τ and variance = 2 D τ."""


@implements(thermalised)
def _(kinetics, p, rate_time, normal, variance):
    # Half a friction flow on either side of the noise: second order for every kinetics.
    half = 0.5 * rate_time
    return friction_flow(kinetics, friction_flow(kinetics, p, half) + math.sqrt(variance) * normal, half)


@implements(thermalised, Gaussian)
def _(kinetics, p, rate_time, normal, variance):
    # Exact: p ← e^{−z} p + √(2Dτ (1 − e^{−2z})/(2z)) n with z = fτ/m, of either sign and also 0. One e = e^{−z} − 1 gives
    # both: 1 − e^{−2z} = −e (2 + e).
    z = rate_time * (1.0 / kinetics.mass)
    e = expm1(-z)
    share = -0.5 * e * (2.0 + e) / (z if z != 0.0 else like(z, 1.0))
    return (p + e * p) + math.sqrt(variance * (share if z != 0.0 else like(z, 1.0))) * normal


@open_function
def is_exact(kinetics):
    """Whether `thermalise` is exact, rather than a friction flow on either side of the noise."""


@implements(is_exact)
def _(kinetics):
    return False


@implements(is_exact, Gaussian)
def _(kinetics):
    return True


@loop(apart=True, inline=True)
def drift(kinetics, scale, dynamics, state, rate, first, share, tau):
    """A: θ and ξ move over a time tau, while p stands still. Returns Σ p K'(p), whose mean is T per coordinate.

    Where θ has noise of its own, it moves with (1 − 2c) K'(p), c = rate·V the crosstalk of the gradient noise. `first` and
    `share` are for `note`.
    """
    thermostat, theta, p, xi = dynamics.thermostat, state.theta, state.p, state.xi
    virial, total = zero(tau), zero(tau)
    for i in range(p.size):
        v, excess = velocity_and_excess(kinetics, p[i], dynamics.temperature)
        c = crosstalk(dynamics.crosstalk, thermostat, rate, state.variance, i)
        theta[i] += tau * at(scale, i) * (1.0 - 2.0 * c) * v
        total += drive(thermostat, xi, i, tau, excess)
        virial = note(dynamics.layout, i, virial, p[i] * v, first, share)
    drive_shared(thermostat, xi, tau, total, p.size)
    return virial


@loop(inline=True)
def move_thermostat(dynamics, state, noise, moment, tau):
    """X: an Ornstein–Uhlenbeck step of ξ, or a fresh draw of it when its turn has come."""
    d, thermostat, xi, v, dim = dynamics, dynamics.thermostat, state.xi, state.variance, state.theta.size
    center = center_now(d, moment)
    if is_turn(d.resample_thermostat, moment.step):
        thermostats.resample(thermostat, xi, center, v, noise.xi, dim, d.temperature)
    elif d.sigma_xi > 0.0:
        thermostats.relax(thermostat, xi, center, v, noise.xi, dim, d.sigma_xi, d.temperature, tau, d.layout)


@loop(inline=True)
def end_langevin(scale, dynamics, state, gradient, tau):
    """L, its second half, if θ has noise of its own."""
    if dynamics.sigma_theta > 0.0:
        end_diffusion(scale, dynamics.sigma_theta, state.theta, state.pending, gradient, tau)


@loop(inline=True)
def begin_langevin(scale, dynamics, state, noise, tau):
    """L, its first half, if θ has noise of its own: that of the next step."""
    if dynamics.sigma_theta > 0.0:
        begin_diffusion(scale, dynamics, state, noise.theta, tau)


@loop(apart=True, inline=True)
def begin_diffusion(scale, dynamics, state, normals, tau):
    """θ moves by half its noise, ½√(2σ_θTτ) n. The gradient is taken there, and there is the draw."""
    theta, pending = state.theta, state.pending
    amplitude = 0.5 * math.sqrt(2.0 * dynamics.sigma_theta * dynamics.temperature * tau)
    rate = crosstalk_rate(dynamics.sigma_theta, dynamics.temperature, tau)
    for i in range(theta.size):
        left = 1.0 - crosstalk(dynamics.crosstalk, dynamics.thermostat, rate, state.variance, i)
        pending[i] = amplitude * math.sqrt(left) * normals[i]
        theta[i] += at(scale, i) * pending[i]


@loop(apart=True, inline=True)
def end_diffusion(scale, sigma_theta, theta, pending, gradient, tau):
    """The other half of the noise, and the drift −σ_θ τ s² ∇U with the gradient of the halfway point."""
    rate = tau * sigma_theta
    for i in range(theta.size):
        s = at(scale, i)
        theta[i] += s * (pending[i] - rate * s * gradient[i])
