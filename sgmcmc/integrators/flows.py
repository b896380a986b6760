"""Flows, the letters of the splittings: exact over a block of coordinates. Every integrator is a word of them.

    G  gradient kick          dp = −∇U dt                      kick
    N  momentum noise         dp = √(2 D) dW                   (fused with the kick, or in O)
    B  friction flow          dp = −f K'(p) dt                 rub
    R  resampling             p from exp(−K/T)                 refresh
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
from typing import Any, NamedTuple

import numpy as np

from sgmcmc.compiler.open_functions import LOOP, implements, like, loop, open_function
from sgmcmc.elementary import expm1
from sgmcmc.kinetics import (
    Gaussian,
    LinearMonomial,
    RootMonomial,
    arrival,
    asinh_flow,
    bounded_inverse_mass,
    energy,
    fill_momenta,
    friction_flow,
    halfway,
    sinh_flow,
    velocity_and_excess,
)
from sgmcmc.rng import Lanes, Row
from sgmcmc.thermostats import (
    FixedFriction,
    PerChain,
    PerCoordinate,
    account,
    crosstalk,
    crosstalk_rate,
    friction,
    put_in,
)

__all__ = [
    "Units",
    "begin_diffusion",
    "compensate",
    "count_drift",
    "drift",
    "drift_compensated",
    "end_diffusion",
    "is_exact",
    "kick",
    "learn_variance",
    "part",
    "refresh",
    "resample_momentum",
    "rub",
    "swing",
    "thermalise",
]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


class Units(NamedTuple):
    """A scale of its own for every coordinate."""

    values: Any


@open_function
def at(scale, i):
    """The scale of coordinate i: one number for all, or `Units`."""


@implements(at, np.floating)
def _(scale, i):
    return scale


@implements(at, Units)
def _(scale, i):
    return scale.values[i]


@open_function
def part(scale, low, high):
    """The scale of the coordinates low … high."""


@implements(part, np.floating)
def _(scale, low, high):
    return scale


@implements(part, Units)
def _(scale, low, high):
    return Units(scale.values[low:high])


@open_function(fastmath=LOOP)
def learn_variance(scale, thermostat, variance, difference, added, gain):
    """Put a sample of the gradient's noise, `difference`, and the variance `added` on purpose into the running mean of V."""


@implements(learn_variance)
def _(scale, thermostat, variance, difference, added, gain):
    for i in range(difference.size):
        s = at(scale, i)
        put_in(thermostat, variance, i, difference.size, s * s * (difference[i] * difference[i] + added), gain)


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
    virial = tau - tau
    for i in range(p.size):
        v, _excess = velocity_and_excess(kinetics, p[i], temperature)
        theta[i] += tau * at(scale, i) * v
        virial += p[i] * v
    return virial


@implements(drift, PerCoordinate)
def _(thermostat, kinetics, scale, temperature, theta, p, xi, tau):
    virial = tau - tau
    rate = tau * thermostat.gamma
    for i in range(p.size):
        v, excess = velocity_and_excess(kinetics, p[i], temperature)
        theta[i] += tau * at(scale, i) * v
        xi[i] += rate * excess
        virial += p[i] * v
    return virial


@implements(drift, PerChain)
def _(thermostat, kinetics, scale, temperature, theta, p, xi, tau):
    virial, heat = tau - tau, tau - tau
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
    virial, rate, per_variance = tau - tau, tau * thermostat.gamma, crosstalk_rate(sigma_theta, temperature, tau)
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
    virial, variance = tau - tau, 2.0 * diffusion * tau
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
    virial, variance, rate = tau - tau, 2.0 * diffusion * tau, 0.5 * tau * thermostat.gamma
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


@open_function(inline=False, fastmath=LOOP, apart=True)
def resample_momentum(stream, kinetics, temperature, p, step, first):
    """Draw p afresh from exp(−K/T), coordinate by coordinate."""


@implements(resample_momentum)
def _(stream, kinetics, temperature, p, step, first):
    fill_momenta(kinetics, temperature, p, stream, step, first)


@implements(resample_momentum, Lanes)
def _(stream, kinetics, temperature, p, step, first):
    width = stream.chains.size
    for index in range(p.size // width):  # row by row: the chains of a row are next to each other
        row = p[index * width : (index + 1) * width]
        fill_momenta(kinetics, temperature, row, Row(stream, np.int64(index)), step, 0)


@loop(apart=True)
def refresh(kinetics, noise, thermostat, temperature, p, loss, stream, moment):
    """R: fresh momenta; the energy that went with the old ones is entered into the balance of energies, if there is one."""
    for i in range(p.size):
        account(noise, thermostat, loss, i, p.size, energy(kinetics, p[i]), moment.step)
    resample_momentum(stream, kinetics, temperature, p, moment.step, moment.first)
    for i in range(p.size):
        account(noise, thermostat, loss, i, p.size, -energy(kinetics, p[i]), moment.step)
