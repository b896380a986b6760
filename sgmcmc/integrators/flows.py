"""Flows, the letters of the splittings: exact over a block of coordinates. Every integrator is a word of them.

    G  gradient kick          dp = −∇U dt                      kick
    N  momentum noise         dp = √(2 D) dW                   (fused with the kick, or in O)
    B  friction flow          dp = −f K'(p) dt                 rub
    R  resampling             p from exp(−K/T)                 resampling.refresh
    O  friction and noise     dp = −f K'(p) dt + √(2 D) dW     thermalise
    A  drift                  dθ = K'(p) dt,  dξ = γ (K'² − T K'') dt     drift
    X  thermostat noise       thermostats.relax
    L  overdamped Langevin    dθ = −σ_θ ∇U dt + √(2 σ_θ T) dW  begin_diffusion, end_diffusion

f is the friction (σ_p, or ξ), D = σ_p T − B̂ the injected noise. Each is a loop of few arrays, small enough for LLVM to check
their overlap and vectorise; a block stays in the L1 cache from letter to letter. `scale` s is a diagonal preconditioner: the
chain runs in φ = θ/s, whose gradient is s·∇U.
"""

from __future__ import annotations

import math

from sgmcmc.compiler.open_functions import LOOP, implements, loop, open_function
from sgmcmc.compiler.precision import like, zero
from sgmcmc.elementary import expm1
from sgmcmc.integrators.units import at
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
from sgmcmc.thermostats import (
    FixedFriction,
    PerChain,
    PerCoordinate,
    crosstalk,
    crosstalk_rate,
    friction,
)

__all__ = [
    "begin_diffusion",
    "compensate",
    "count_drift",
    "drift",
    "drift_compensated",
    "end_diffusion",
    "is_exact",
    "kick",
    "rub",
    "thermalise",
]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@loop(apart=True, inline=True)
def kick(p, gradient, normals, scale, tau, diffusion):
    """G and N together: p ← p − τ s ∇U + √(2 D τ) n."""
    amplitude = math.sqrt(2.0 * diffusion * tau)
    for i in range(p.size):
        p[i] += amplitude * normals[i] - tau * at(scale, i) * gradient[i]


@open_function(fastmath=LOOP, apart=True)
def rub(kinetics, thermostat, sigma_p, p, xi, tau, spare):
    """B: the friction flow over a time tau. `spare` is as long as p, for whatever the formula wants to put there.

    A long formula that is one chain of dependent operations takes several short loops: a processor looks some 250
    instructions ahead, less than two turns of one long loop but many of a short one (a = 2: 3.9 ns in four loops, 9.0 in one;
    a = 1: 3.2 in two, 5.3 in one). On a GPU, where other threads fill the gaps, it is one loop.
    """


@implements(rub)
def _(kinetics, thermostat, sigma_p, p, xi, tau, spare):
    for i in range(p.size):
        p[i] = friction_flow(kinetics, p[i], tau * friction(thermostat, sigma_p, xi, i))


@implements(rub, LinearMonomial)
def _(kinetics, thermostat, sigma_p, p, xi, tau, spare):
    for i in range(p.size):
        spare[i] = sinh_flow(kinetics, p[i], tau * friction(thermostat, sigma_p, xi, i))
    for i in range(p.size):
        p[i] = asinh_flow(kinetics, p[i], tau * friction(thermostat, sigma_p, xi, i), spare[i])


@implements(rub, RootMonomial)
def _(kinetics, thermostat, sigma_p, p, xi, tau, spare):
    for i in range(p.size):
        spare[i] = bounded_inverse_mass(kinetics, p[i])
    for i in range(p.size):
        spare[i] = halfway(p[i], tau * friction(thermostat, sigma_p, xi, i), spare[i])
    for i in range(p.size):
        spare[i] = bounded_inverse_mass(kinetics, spare[i])
    for i in range(p.size):
        p[i] = arrival(p[i], tau * friction(thermostat, sigma_p, xi, i), spare[i])


@implements(rub, LinearMonomial, device=True)
@implements(rub, RootMonomial, device=True)
def _(kinetics, thermostat, sigma_p, p, xi, tau, spare):
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


@open_function(fastmath=LOOP, apart=True)
def drift(thermostat, kinetics, scale, temperature, theta, p, xi, tau):
    """A: θ and ξ move while p stands still. Gives back Σ p K'(p), whose mean is T per coordinate."""


@open_function
def count_drift(thermostat, kept, share):
    """Say how much the next drift counts where a step has two: `kept` of what was measured before it, and `share` of its own.

    For thermostats that keep Σ p K'(p) themselves; what `drift` gives back is weighted by who called it.
    """


@implements(count_drift)
def _(thermostat, kept, share):
    return None


@implements(drift, FixedFriction)
def _(thermostat, kinetics, scale, temperature, theta, p, xi, tau):
    virial = zero(tau)
    for i in range(p.size):
        v, _excess = velocity_and_excess(kinetics, p[i], temperature)
        theta[i] += tau * at(scale, i) * v
        virial += p[i] * v
    return virial


@implements(drift, PerCoordinate)
def _(thermostat, kinetics, scale, temperature, theta, p, xi, tau):
    virial = zero(tau)
    rate = tau * thermostat.gamma
    for i in range(p.size):
        v, excess = velocity_and_excess(kinetics, p[i], temperature)
        theta[i] += tau * at(scale, i) * v
        xi[i] += rate * excess
        virial += p[i] * v
    return virial


@implements(drift, PerChain)
def _(thermostat, kinetics, scale, temperature, theta, p, xi, tau):
    virial, heat = zero(tau), zero(tau)
    for i in range(p.size):
        v, excess = velocity_and_excess(kinetics, p[i], temperature)
        theta[i] += tau * at(scale, i) * v
        heat += excess
        virial += p[i] * v
    xi[0] += tau * thermostat.gamma * heat / like(tau, p.size)
    return virial


@open_function(fastmath=LOOP, apart=True)
def drift_compensated(thermostat, kinetics, scale, sigma_theta, temperature, state, tau):
    """`drift`, then `compensate`, with the velocity that they have in common."""


@implements(drift_compensated)
def _(thermostat, kinetics, scale, sigma_theta, temperature, state, tau):
    virial = drift(thermostat, kinetics, scale, temperature, state.theta, state.p, state.xi, tau)
    if sigma_theta > 0.0:
        compensate(kinetics, thermostat, scale, sigma_theta, temperature, state, tau)
    return virial


@implements(drift_compensated, PerCoordinate)
def _(thermostat, kinetics, scale, sigma_theta, temperature, state, tau):
    theta, p, xi = state.theta, state.p, state.xi
    virial, rate, per_variance = zero(tau), tau * thermostat.gamma, crosstalk_rate(sigma_theta, temperature, tau)
    for i in range(p.size):
        v, excess = velocity_and_excess(kinetics, p[i], temperature)
        c = crosstalk(thermostat, per_variance, state.variance, i)
        theta[i] += tau * at(scale, i) * (1.0 - 2.0 * c) * v
        xi[i] += rate * excess
        virial += p[i] * v
    return virial


@loop(apart=True, inline=True)
def begin_diffusion(thermostat, scale, sigma_theta, temperature, state, normals, tau):
    """First half of L: θ moves by half its noise, ½√(2σ_θTτ) n. The gradient is taken there, and there is the draw."""
    theta, pending = state.theta, state.pending
    amplitude = 0.5 * math.sqrt(2.0 * sigma_theta * temperature * tau)
    per_variance = crosstalk_rate(sigma_theta, temperature, tau)
    for i in range(theta.size):
        left = 1.0 - crosstalk(thermostat, per_variance, state.variance, i)
        pending[i] = amplitude * math.sqrt(left) * normals[i]
        theta[i] += at(scale, i) * pending[i]


@loop(apart=True, inline=True)
def end_diffusion(scale, sigma_theta, theta, pending, gradient, tau):
    """Second half of L: the other half of the noise, and the drift −σ_θ τ s² ∇U with the gradient of the halfway point."""
    rate = tau * sigma_theta
    for i in range(theta.size):
        s = at(scale, i)
        theta[i] += s * (pending[i] - rate * s * gradient[i])


@loop(apart=True, inline=True)
def compensate(kinetics, thermostat, scale, sigma_theta, temperature, state, tau):
    """Goes with A where θ has noise of its own: θ ← θ − 2c τ s K'(p), c the crosstalk of the gradient noise."""
    theta, p, per_variance = state.theta, state.p, crosstalk_rate(sigma_theta, temperature, tau)
    for i in range(theta.size):
        v, _excess = velocity_and_excess(kinetics, p[i], temperature)
        c = crosstalk(thermostat, per_variance, state.variance, i)
        theta[i] -= 2.0 * c * tau * at(scale, i) * v
