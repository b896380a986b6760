"""The letters of the splittings: short exact flows over a block of coordinates, of which every integrator is a word.

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

from sgmcmc.dispatch import LOOP, implements, leaf, like, loop, open_function
from sgmcmc.elementary import exp, expm1
from sgmcmc.kinetics import Gaussian, energy, fill_momenta, friction_flow, velocity_and_excess
from sgmcmc.thermostats import FixedFriction, PerChain, PerCoordinate, account, crosstalk, friction

__all__ = [
    "Units",
    "begin_diffusion",
    "compensate",
    "drift",
    "end_diffusion",
    "is_exact",
    "kick",
    "part",
    "refresh",
    "resample_momentum",
    "rub",
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


@loop(apart=True)
def kick(p, gradient, normals, scale, tau, diffusion):
    """G and N together: p ← p − τ s ∇U + √(2 D τ) n."""
    amplitude = math.sqrt(2.0 * diffusion * tau)
    for i in range(p.size):
        p[i] += amplitude * normals[i] - tau * at(scale, i) * gradient[i]


@loop(apart=True)
def rub(kinetics, thermostat, sigma_p, p, xi, tau):
    """B: the friction flow over a time tau."""
    for i in range(p.size):
        p[i] = friction_flow(kinetics, p[i], tau * friction(thermostat, sigma_p, xi, i))


@open_function(inline=False, fastmath=LOOP, apart=True)
def thermalise(kinetics, thermostat, sigma_p, p, xi, normals, tau, diffusion):
    """O: friction and noise over a time tau."""


@implements(thermalise)
def _(kinetics, thermostat, sigma_p, p, xi, normals, tau, diffusion):
    # Half a friction flow on either side of the noise: second order for every kinetics.
    amplitude = math.sqrt(2.0 * diffusion * tau)
    for i in range(p.size):
        half = 0.5 * tau * friction(thermostat, sigma_p, xi, i)
        p[i] = friction_flow(kinetics, friction_flow(kinetics, p[i], half) + amplitude * normals[i], half)


@leaf
def relative_expm1(z):
    """(1 − e^{−z})/z, which is 1 at 0."""
    safe = 1.0 if z == 0.0 else z
    return 1.0 if z == 0.0 else -expm1(-z) / safe


@implements(thermalise, Gaussian)
def _(kinetics, thermostat, sigma_p, p, xi, normals, tau, diffusion):
    # Exact: p ← e^{−λτ} p + √((D/λ)(1 − e^{−2λτ})) n with λ = f/m, of either sign and also 0.
    for i in range(p.size):
        z = friction(thermostat, sigma_p, xi, i) * tau / kinetics.mass
        spread = math.sqrt(2.0 * diffusion * tau * relative_expm1(2.0 * z))
        p[i] = exp(-z) * p[i] + spread * normals[i]


@open_function
def is_exact(kinetics):
    """Whether `thermalise` is exact, rather than a friction flow on either side of the noise."""


@implements(is_exact)
def _(kinetics):
    return False


@implements(is_exact, Gaussian)
def _(kinetics):
    return True


@open_function(inline=False, fastmath=LOOP, apart=True)
def drift(thermostat, kinetics, scale, temperature, theta, p, xi, tau):
    """A: θ and ξ move while p stands still. Gives back Σ p K'(p), whose mean is T per coordinate."""


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


@loop(apart=True)
def begin_diffusion(thermostat, scale, sigma_theta, sigma_p, temperature, state, normals, tau):
    """First half of L: θ moves by half its noise, ½√(2σ_θTτ) n. The gradient is taken there, and there is the draw."""
    theta, pending = state.theta, state.pending
    amplitude = 0.5 * math.sqrt(2.0 * sigma_theta * temperature * tau)
    for i in range(theta.size):
        left = 1.0 - crosstalk(thermostat, sigma_theta, sigma_p, state.center, i)
        pending[i] = amplitude * math.sqrt(left) * normals[i]
        theta[i] += at(scale, i) * pending[i]


@loop(apart=True)
def end_diffusion(scale, sigma_theta, theta, pending, gradient, tau):
    """Second half of L: the other half of the noise, and the drift −σ_θ τ s² ∇U with the gradient of the halfway point."""
    rate = tau * sigma_theta
    for i in range(theta.size):
        s = at(scale, i)
        theta[i] += s * (pending[i] - rate * s * gradient[i])


@loop(apart=True)
def compensate(kinetics, thermostat, scale, sigma_theta, sigma_p, temperature, state, tau):
    """Goes with A where θ has noise of its own: θ ← θ − 2c τ s K'(p), c the crosstalk of the gradient noise."""
    theta, p = state.theta, state.p
    for i in range(theta.size):
        v, _excess = velocity_and_excess(kinetics, p[i], temperature)
        c = crosstalk(thermostat, sigma_theta, sigma_p, state.center, i)
        theta[i] -= 2.0 * c * tau * at(scale, i) * v


@loop(apart=True)
def resample_momentum(kinetics, temperature, p, stream, step, first):
    """Draw p afresh from exp(−K/T), coordinate by coordinate."""
    fill_momenta(kinetics, temperature, p, stream, step, first)


@loop(apart=True)
def refresh(kinetics, thermostat, temperature, p, loss, stream, moment):
    """R: fresh momenta; the energy that went with the old ones is entered into the thermostat's balance."""
    for i in range(p.size):
        account(thermostat, loss, i, p.size, energy(kinetics, p[i]), moment.step, moment.h)
    fill_momenta(kinetics, temperature, p, stream, moment.step, moment.first)
    for i in range(p.size):
        account(thermostat, loss, i, p.size, -energy(kinetics, p[i]), moment.step, moment.h)
