"""Relativistic kinetics: no coordinate ever moves faster than a speed limit (Lu et al. 2016)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sgmcmc import checks
from sgmcmc.compiler.field_docs import documented
from sgmcmc.compiler.open_functions import implements, leaf
from sgmcmc.compiler.precision import like, zero
from sgmcmc.elementary import exp, log
from sgmcmc.kinetics.functions import (
    acceptance,
    curvature,
    draw,
    energy,
    inverse_mass,
    log_normaliser,
    velocity,
    velocity_and_excess,
)
from sgmcmc.kinetics.gaussian import LARGEST
from sgmcmc.rng import MOMENTUM, uniform, words
from sgmcmc.rng.normals import unit

__all__ = ["Relativistic"]

ATTEMPTS = 127  # each takes two addresses of the 256; acceptance is above 0.75, so all fail with probability 1e-76


class _RelativisticFields(NamedTuple):
    mass: float
    speed: float


@documented
class Relativistic(_RelativisticFields):
    """Relativistic kinetics K(p) = m c² √(1 + u²) with u = p/(mc): velocities stay below c.

    It is Gaussian for c → ∞, and monomial gamma with a = 1, stiff, for m → 0.

    Parameters
    ----------
    mass : float, above 0
        m.
    speed : float, above 0
        c.

    References
    ----------
    Lu et al. 2016.

    Examples
    --------
    >>> sg.kinetics.velocity(sg.kinetics.Relativistic(speed=2.0), 1e20)
    2.0
    """

    __slots__ = ()

    def __new__(cls, mass: float = 1.0, speed: float = 1.0) -> Relativistic:
        return super().__new__(
            cls,
            checks.number("mass", mass, 0.0, LARGEST, open_low=True),
            checks.number("speed", speed, 0.0, LARGEST, open_low=True),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._make, (tuple(self),)


@leaf
def _gamma(u: Any) -> Any:
    """The Lorentz factor √(1 + u²); from 1e9 on it is |u|, and u² might be too large."""
    size = abs(u)
    inside = size if size < 1e9 else like(size, 1e9)
    root = np.sqrt(1.0 + inside * inside)
    return root if size < 1e9 else size


@implements(energy, Relativistic)
def _(kinetics: Any, p: Any) -> Any:
    c = kinetics.speed
    return kinetics.mass * c * c * _gamma(p * (1.0 / (kinetics.mass * c)))


@implements(velocity, Relativistic)
def _(kinetics: Any, p: Any) -> Any:
    u = p * (1.0 / (kinetics.mass * kinetics.speed))
    return kinetics.speed * (u / _gamma(u))


@implements(curvature, Relativistic)
def _(kinetics: Any, p: Any) -> Any:
    slowness = 1.0 / _gamma(p * (1.0 / (kinetics.mass * kinetics.speed)))
    return slowness * slowness * slowness * (1.0 / kinetics.mass)


@implements(inverse_mass, Relativistic)
def _(kinetics: Any, p: Any) -> Any:
    return (1.0 / kinetics.mass) / _gamma(p * (1.0 / (kinetics.mass * kinetics.speed)))


@implements(velocity_and_excess, Relativistic)
def _(kinetics: Any, p: Any, temperature: Any) -> Any:
    u = p * (1.0 / (kinetics.mass * kinetics.speed))
    slowness = 1.0 / _gamma(u)
    v = kinetics.speed * (u * slowness)
    return v, v * v - temperature * (1.0 / kinetics.mass) * (slowness * slowness * slowness)


@leaf
def _tangent(beta: Any) -> Any:
    """u₀ with u₀² = (1 + √(1 + 4β²))/(2β²): where the best tangent line touches β √(1 + u²)."""
    # With t = 1/(2β) it is u₀² = 2t (t + √(t² + 1)), which has no β² to overflow.
    t = 0.5 / beta
    return np.sqrt(2.0 * t * (t + np.sqrt(t * t + 1.0)))


@implements(draw, Relativistic)
def _(kinetics: Any, temperature: Any, stream: Any, step: Any, index: Any) -> Any:
    # Rejection from a double exponential, the exponential of a tangent to the convex K, at u₀.
    momentum = kinetics.mass * kinetics.speed
    beta = momentum * kinetics.speed / temperature
    u0 = _tangent(beta)
    g0 = np.sqrt(1.0 + u0 * u0)
    u = zero(beta)
    for attempt in range(ATTEMPTS):
        w0, w1, w2, w3 = words(stream, step, index, MOMENTUM, 2 * attempt)
        side, _w1, _w2, _w3 = words(stream, step, index, MOMENTUM, 2 * attempt + 1)
        size = -log(unit(w0, w1, beta)) * (g0 / (beta * u0))
        u = -size if side < np.uint32(0x80000000) else size
        # β (√(1+u²) − (1 + u₀|u|)/√(1+u₀²)), without the cancellation
        gap = (size - u0) * (size - u0) / (g0 * (g0 * _gamma(u) + 1.0 + u0 * size))
        if uniform(w2, w3, beta) < exp(-beta * gap):
            break
    return momentum * u


@implements(log_normaliser, Relativistic)
def _(kinetics: Any, temperature: Any) -> Any:
    from scipy import special

    momentum = kinetics.mass * kinetics.speed
    beta = momentum * kinetics.speed / temperature
    return math.log(2.0 * momentum * special.k1e(beta)) - beta


@implements(acceptance, Relativistic)
def _(kinetics: Any, temperature: Any) -> Any:
    from scipy import special

    beta = kinetics.mass * kinetics.speed**2 / temperature
    u0 = float(_tangent(beta))
    g0 = math.sqrt(1.0 + u0 * u0)
    # ∫ e^{−β√(1+u²)} du = 2 K₁(β), over the mass 2 g₀/(β u₀) e^{−β/g₀} of the envelope; 1/g₀ − 1 = −u₀²/(g₀(1+g₀))
    return float(special.k1e(beta) * beta * u0 / g0 * math.exp(-beta * u0 * u0 / (g0 * (1.0 + g0))))
