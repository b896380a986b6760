"""The friction on the momentum: a constant, or a Nosé–Hoover variable ξ per coordinate or per chain.

ξ *is* the friction: dp = −∇U dt − ξ K'(p) dt + …, with dξ = γ (K'² − T K'') dt − (σ_ξ/γ)(ξ − μ) dt + √(2 σ_ξ T) dW. Its
invariant law is N(μ, γT). `gradient_noise.py` says what μ is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from sgmcmc import checks
from sgmcmc.compiler.open_functions import LOOP, implements, leaf, open_function
from sgmcmc.compiler.precision import like, zero
from sgmcmc.elementary import exp, expm1

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
    "friction",
    "relax",
    "relaxation",
    "relaxed",
    "resample",
    "sharers",
    "variables",
]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


class FixedFriction(NamedTuple):
    """No thermostat: the friction is σ_p, a constant (as in SGHMC).

    Examples
    --------
    >>> sg.SGHMC(0.1).thermostat
    FixedFriction()
    """


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
    """Nosé–Hoover thermostat with a friction ξ_j for every coordinate (the paper's); made by `NoseHoover`.

    Parameters
    ----------
    gamma : float, how fast the friction answers
    adaptive : float
        1 for an adaptive centre, 0 for a fixed one, −1 if the sampler decides.

    Examples
    --------
    >>> sg.thermostats.NoseHoover(0.5) == sg.thermostats.PerCoordinate(gamma=0.5, adaptive=-1.0)
    True
    """

    __slots__ = ()
    per = "coordinate"


class PerChain(_NoseHoover):
    """Nosé–Hoover thermostat with one friction ξ per chain, driven by the mean over coordinates; made by `NoseHoover`.

    Parameters
    ----------
    gamma, adaptive : as for PerCoordinate

    References
    ----------
    Ding et al. 2014.

    Examples
    --------
    >>> sg.thermostats.NoseHoover(0.5, per="chain") == sg.thermostats.PerChain(gamma=0.5, adaptive=-1.0)
    True
    """

    __slots__ = ()
    per = "chain"


def NoseHoover(gamma: float = 1.0, per: str = "coordinate", center: str | None = None) -> PerCoordinate | PerChain:
    """Returns a friction that keeps the kinetic temperature right in spite of unknown gradient noise.

    SDE: dξ = γ (K'(p)² − T K''(p)) dt − (σ_ξ/γ)(ξ − μ) dt + √(2 σ_ξ T) dW, per coordinate, or with the mean of the
    first term over coordinates. Invariant law: ξ ~ N(μ, γT) per coordinate, N(μ, γT/d) per chain of d coordinates.

    Parameters
    ----------
    gamma : float, above 0; how fast the friction answers
    per : "coordinate" or "chain"
        One ξ for each coordinate, or one ξ for all.
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


def variables(thermostat: Any, dim: int) -> int:
    """How many thermostat variables a chain of `dim` coordinates has."""
    if isinstance(thermostat, FixedFriction):
        return 0
    return dim if isinstance(thermostat, PerCoordinate) else 1


# ---- compiled ---------------------------------------------------------------------------------------------------------


@open_function
def friction(thermostat, sigma_p, xi, i):
    """The friction that acts on coordinate i."""


@implements(friction, FixedFriction)
def _(thermostat, sigma_p, xi, i):
    return sigma_p


@implements(friction, PerCoordinate)
def _(thermostat, sigma_p, xi, i):
    return xi[i]


@implements(friction, PerChain)
def _(thermostat, sigma_p, xi, i):
    return xi[0]


@open_function
def sharers(thermostat, dim):
    """How many coordinates share one ξ: its law is N(μ, γT/sharers)."""


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


@open_function(fastmath=LOOP, apart=True)
def relax(thermostat, xi, center, variance, normals, dim, sigma_xi, temperature, tau):
    """The exact Ornstein–Uhlenbeck step of ξ over a time tau: rate σ_ξ/v, variance vT, v = γ/sharers."""


@open_function(inline=False, fastmath=LOOP, apart=True)
def resample(thermostat, xi, center, variance, normals, dim, temperature):
    """An exact draw of ξ from its invariant law N(μ, vT)."""


@implements(center_of)
def _(thermostat, sigma_p, noise_estimate, temperature, h):
    return Center(sigma_p, zero(h))


@implements(center_of, _NoseHoover)
def _(thermostat, sigma_p, noise_estimate, temperature, h):
    return Center(sigma_p - thermostat.adaptive * noise_estimate / temperature, 0.5 * h / temperature)


@implements(relax, FixedFriction)
def _(thermostat, xi, center, variance, normals, dim, sigma_xi, temperature, tau):
    return None


@implements(resample, FixedFriction)
def _(thermostat, xi, center, variance, normals, dim, temperature):
    return None


@leaf
def relaxation(v, sigma_xi, temperature, tau):
    """(what is left of ξ − μ after a time tau, the size of the noise that has come in its place)."""
    rate = sigma_xi * tau / v
    return exp(-rate), math.sqrt(-v * temperature * expm1(-2.0 * rate))


@implements(relax, _NoseHoover)
def _(thermostat, xi, center, variance, normals, dim, sigma_xi, temperature, tau):
    decay, spread = relaxation(thermostat.gamma / sharers(thermostat, dim), sigma_xi, temperature, tau)
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
    """Explicit Euler for the ξ of coordinate i, if it has one."""


@open_function
def euler_shared(thermostat, dynamics, state, noise, mean_excess, h):
    """Explicit Euler for the one ξ of a chain, if that is what it has."""


@implements(euler_own)
def _(thermostat, dynamics, state, noise, i, excess, h):
    return None


@implements(euler_own, PerCoordinate)
def _(thermostat, dynamics, state, noise, i, excess, h):
    state.xi[i] = euler_step(thermostat, dynamics, state, noise, i, excess, h)


@implements(euler_shared)
def _(thermostat, dynamics, state, noise, mean_excess, h):
    return None


@implements(euler_shared, PerChain)
def _(thermostat, dynamics, state, noise, mean_excess, h):
    state.xi[0] = euler_step(thermostat, dynamics, state, noise, 0, mean_excess, h)
