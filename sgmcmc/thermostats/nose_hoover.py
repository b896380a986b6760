"""The friction on the momentum: a constant, or a Nosé–Hoover variable ξ per coordinate or per chain.

ξ *is* the friction: dp = −∇U dt − ξ K'(p) dt + …, with dξ = γ (K'² − T K'') dt − (σ_ξ/γ)(ξ − μ) dt + √(2 σ_ξ T) dW. Its
invariant law is N(μ, γT). `gradient_noise.py` says what μ is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from sgmcmc import checks
from sgmcmc.compiler.open_functions import implements, leaf, open_function
from sgmcmc.compiler.precision import like, zero
from sgmcmc.elementary import exp, expm1
from sgmcmc.thermostats.interface import (
    couples_coordinates,
    drive,
    drive_shared,
    friction,
    n_variables,
    relax,
    resample,
    sharers,
)

__all__ = [
    "Center",
    "FixedFriction",
    "NoseHoover",
    "PerChain",
    "PerCoordinate",
    "at_center",
    "center_of",
    "euler_own",
    "euler_shared",
    "relaxation",
    "relaxation_of",
    "relaxed",
]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


class FixedFriction(NamedTuple):
    """No thermostat: the friction is σ_p, a constant (as in SGHMC)."""


class _Steered(NamedTuple):
    gamma: float
    adaptive: float  # 1 adaptive centre, 0 fixed centre, −1 not decided yet: the sampler decides


class _NoseHoover(_Steered):
    __slots__ = ()
    per = ""

    @property
    def center(self) -> str | None:
        return None if self.adaptive < 0 else ("adaptive" if self.adaptive else "fixed")

    def __repr__(self) -> str:
        return f"NoseHoover(gamma={self.gamma!r}, per={self.per!r}, center={self.center!r})"


class PerCoordinate(_NoseHoover):
    """Nosé–Hoover thermostat with a friction ξ_j for every coordinate (the paper's)."""

    __slots__ = ()
    per = "coordinate"


class PerChain(_NoseHoover):
    """Nosé–Hoover thermostat with one friction ξ per chain, driven by the mean over coordinates (Ding et al. 2014)."""

    __slots__ = ()
    per = "chain"


def NoseHoover(gamma: float = 1.0, per: str = "coordinate", center: str | None = None) -> PerCoordinate | PerChain:
    """Returns a friction that keeps the kinetic temperature right in spite of unknown gradient noise.

    SDE: dξ = γ (K'(p)² − T K''(p)) dt − (σ_ξ/γ)(ξ − μ) dt + √(2 σ_ξ T) dW, per coordinate, or with the mean of the
    first term over coordinates. Invariant law: ξ ~ N(μ, γT) per coordinate, N(μ, γT/d) per chain of d coordinates.

    Parameters
    ----------
    gamma : float, above 0; how fast the friction answers
    per : "coordinate" (one ξ for each) or "chain" (one ξ for all)
    center : "fixed", "adaptive" or None
        "fixed" is μ = σ_p, the paper's; "adaptive" is μ = σ_p + hV/(2T), V the variance of the gradient noise; None is
        adaptive where it matters (σ_ξ > 0, ξ is resampled, or the step size changes), fixed otherwise.

    Returns
    -------
    PerCoordinate or PerChain

    Examples
    --------
    >>> sg.thermostats.NoseHoover(gamma=0.5)
    NoseHoover(gamma=0.5, per='coordinate', center=None)
    """
    checks.number("gamma", gamma, 0.0, open_low=True)
    checks.number("gamma", gamma, 0.0, 1e300)
    checks.one_of("per", per, ("coordinate", "chain"))
    checks.one_of("center", center, ("adaptive", "fixed", None))
    kind = PerCoordinate if per == "coordinate" else PerChain
    return kind._make((float(gamma), {None: -1.0, "fixed": 0.0, "adaptive": 1.0}[center]))


@implements(n_variables, FixedFriction)
def _(thermostat, dim):
    return 0


@implements(n_variables, PerCoordinate)
def _(thermostat, dim):
    return dim


@implements(n_variables, PerChain)
def _(thermostat, dim):
    return 1


@implements(couples_coordinates, FixedFriction)
@implements(couples_coordinates, PerCoordinate)
def _(part):
    return False


# ---- compiled ---------------------------------------------------------------------------------------------------------


@implements(friction, FixedFriction)
def _(thermostat, sigma_p, xi, i):
    return sigma_p


@implements(friction, PerCoordinate)
def _(thermostat, sigma_p, xi, i):
    return xi[i]


@implements(friction, PerChain)
def _(thermostat, sigma_p, xi, i):
    return xi[0]


# A, the drift, as far as it moves ξ: dξ = γ (K'² − T K'') dt, or γ times its mean over the coordinates.


@implements(drive, FixedFriction)
def _(thermostat, xi, i, tau, excess):
    return zero(tau)


@implements(drive, PerCoordinate)
def _(thermostat, xi, i, tau, excess):
    xi[i] += tau * thermostat.gamma * excess
    return zero(tau)


@implements(drive, PerChain)
def _(thermostat, xi, i, tau, excess):
    return excess


@implements(drive_shared, PerChain)
def _(thermostat, xi, tau, total, dim):
    xi[0] += tau * thermostat.gamma * total / like(tau, dim)


@implements(sharers, PerCoordinate)
def _(thermostat, dim):
    return like(thermostat.gamma, 1)


@implements(sharers, PerChain)
def _(thermostat, dim):
    return like(thermostat.gamma, dim)


class Center(NamedTuple):
    """μ_i = base + rate V_i: where ξ is pulled to, and the mean of its invariant law."""

    base: float  # the injected diffusion ÷ T
    rate: float  # h/(2T): gradient noise of variance V brings the diffusion hV/2


@leaf
def at_center(center, variance):
    """μ where the gradient noise has this variance."""
    return center.base + center.rate * variance


@open_function
def center_of(thermostat, sigma_p, noise_estimate, temperature, h):
    """`Center` for a step of size h. A fixed centre is σ_p: it trusts the noise estimate B̂."""


@implements(center_of)
def _(thermostat, sigma_p, noise_estimate, temperature, h):
    return Center(sigma_p, zero(h))


@implements(center_of, _NoseHoover)
def _(thermostat, sigma_p, noise_estimate, temperature, h):
    return Center(sigma_p - thermostat.adaptive * noise_estimate / temperature, 0.5 * h / temperature)


@implements(relax, FixedFriction)
def _(thermostat, xi, center, variance, normals, dim, sigma_xi, temperature, tau, layout):
    return None


@implements(resample, FixedFriction)
def _(thermostat, xi, center, variance, normals, dim, temperature):
    return None


@leaf
def relaxation(v, sigma_xi, temperature, tau):
    """(what is left of ξ − μ after a time tau, the size of the noise that has come in its place)."""
    rate = sigma_xi * tau / v
    return exp(-rate), math.sqrt(-v * temperature * expm1(-2.0 * rate))


@open_function
def relaxation_of(layout, v, sigma_xi, temperature, tau):
    """`relaxation`, or what is kept of the last one."""


@implements(relaxation_of)
def _(layout, v, sigma_xi, temperature, tau):
    return relaxation(v, sigma_xi, temperature, tau)


@implements(relax, _NoseHoover)
def _(thermostat, xi, center, variance, normals, dim, sigma_xi, temperature, tau, layout):
    v = thermostat.gamma / sharers(thermostat, dim)
    decay, spread = relaxation_of(layout, v, sigma_xi, temperature, tau)
    for i in range(xi.size):
        xi[i] = relaxed(xi[i], at_center(center, variance[i]), decay, spread, normals[i])


@leaf
def relaxed(xi, center, decay, spread, normal):
    """μ + decay (ξ − μ) + spread n."""
    return center + decay * (xi - center) + spread * normal


@implements(resample, _NoseHoover)
def _(thermostat, xi, center, variance, normals, dim, temperature):
    spread = math.sqrt(thermostat.gamma * temperature / sharers(thermostat, dim))
    for i in range(xi.size):
        xi[i] = at_center(center, variance[i]) + spread * normals[i]


@leaf
def euler_step(thermostat, dynamics, state, noise, i, excess, h):
    """ξ_i after an explicit Euler step. A fresh draw that falls due replaces it, so its noise is not used twice."""
    v = thermostat.gamma / sharers(thermostat, state.theta.size)
    center = center_of(thermostat, dynamics.sigma_p, dynamics.noise_estimate, dynamics.temperature, h)
    pull = dynamics.sigma_xi * (state.xi[i] - at_center(center, state.variance[i])) / v
    amplitude = math.sqrt(2.0 * dynamics.sigma_xi * dynamics.temperature * h)
    return state.xi[i] + h * (thermostat.gamma * excess - pull) + amplitude * noise.xi[i]


@open_function
def euler_own(thermostat, dynamics, state, noise, i, excess, h):
    """Explicit Euler for the ξ that coordinate i drives. Returns the part that `euler_shared` adds up."""


@open_function
def euler_shared(thermostat, dynamics, state, noise, total, h):
    """Explicit Euler for the ξ that all coordinates share; for others, what is left to do after all coordinates."""


@implements(euler_own)
def _(thermostat, dynamics, state, noise, i, excess, h):
    return drive(thermostat, state.xi, i, h, excess)


@implements(euler_own, PerCoordinate)
def _(thermostat, dynamics, state, noise, i, excess, h):
    state.xi[i] = euler_step(thermostat, dynamics, state, noise, i, excess, h)
    return zero(h)


@implements(euler_own, PerChain)
def _(thermostat, dynamics, state, noise, i, excess, h):
    return excess


@implements(euler_shared)
def _(thermostat, dynamics, state, noise, total, h):
    dim, d = state.theta.size, dynamics
    drive_shared(thermostat, state.xi, h, total, dim)
    if d.sigma_xi > 0.0:
        center = center_of(thermostat, d.sigma_p, d.noise_estimate, d.temperature, h)
        relax(thermostat, state.xi, center, state.variance, noise.xi, dim, d.sigma_xi, d.temperature, h, d.layout)


@implements(euler_shared, PerCoordinate)
def _(thermostat, dynamics, state, noise, total, h):
    return None


@implements(euler_shared, PerChain)
def _(thermostat, dynamics, state, noise, total, h):
    mean_excess = total / like(h, state.theta.size)
    state.xi[0] = euler_step(thermostat, dynamics, state, noise, 0, mean_excess, h)
