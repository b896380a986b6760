"""Monomial gamma kinetics without powers: a = 1 with order 1, and a = 2 with order 3.

They are the same functions as `MonomialGamma`'s for these values, several times faster. `specialise` chooses them before a
kernel is compiled: the user sees one type, a kernel holds one form.
Notation as in `monomial_gamma`. Softenings are finite here: the stiff law keeps the general form.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sgmcmc.compiler.field_docs import documented
from sgmcmc.compiler.open_functions import implements, leaf
from sgmcmc.compiler.precision import like
from sgmcmc.elementary import asinh_of_ordinary, exp, exp_of_ordinary, expm1, expm1_of_ordinary, softplus, tanh
from sgmcmc.kinetics.functions import (
    curvature,
    energy,
    friction_flow,
    inverse_mass,
    specialise,
    velocity,
    velocity_and_excess,
)
from sgmcmc.kinetics.monomial_gamma import TINY, MonomialGamma, exponents, radial_energy

__all__ = [
    "LinearMonomial",
    "RootMonomial",
    "asinh_flow",
    "end_of_flow",
    "second_flow",
    "sinh_flow",
    "velocity_after_flow",
]


FAINT = -86.0  # e^FAINT is a normal number in every precision


@documented
class LinearMonomial(NamedTuple):
    """Monomial gamma kinetics for a = 1, r = 1: K = |p|/m + (2/c) log(1 + e^{−c|p|/m}).

    Parameters
    ----------
    softening, mass : float
        c and m.

    Examples
    --------
    >>> sg.kinetics.specialise(sg.kinetics.MonomialGamma(a=1))
    LinearMonomial(softening=3.0, mass=1.0)
    """

    softening: float
    mass: float


@documented
class RootMonomial(NamedTuple):
    """Monomial gamma kinetics for a = 2, r = 3: K = s + (2/c) log(1 + e^{−cs}) + (1 − t²)/c with s = √|p|/m.

    Parameters
    ----------
    softening, mass : float
        c and m.

    Examples
    --------
    >>> sg.kinetics.specialise(sg.kinetics.MonomialGamma(a=2))
    RootMonomial(softening=3.0, mass=1.0)
    """

    softening: float
    mass: float


@implements(specialise, MonomialGamma)
def _(kinetics: Any) -> Any:
    finite = kinetics.softening < 1e30
    if finite and kinetics.a == 1.0 and kinetics.order == 1.0:
        return LinearMonomial(kinetics.softening, kinetics.mass)
    if finite and kinetics.a == 2.0 and kinetics.order == 3.0:
        return RootMonomial(kinetics.softening, kinetics.mass)
    return kinetics


@leaf
def _sech_squared(x: Any) -> Any:
    """1 − tanh²x, right to the last digit also where it is tiny."""
    e = exp(-2.0 * abs(x))
    return 4.0 * e / ((1.0 + e) * (1.0 + e))


# --- a = 1: with k = c/(2m), K' = tanh(kp)/m and K'' = (k/m)(1 − tanh²(kp)) ---


@implements(energy, LinearMonomial)
def _(kinetics: Any, p: Any) -> Any:
    s = abs(p) / kinetics.mass
    return s + (2.0 / kinetics.softening) * softplus(-kinetics.softening * s)


@implements(velocity, LinearMonomial)
def _(kinetics: Any, p: Any) -> Any:
    inverse = 1.0 / kinetics.mass
    return tanh(p * (0.5 * kinetics.softening * inverse)) * inverse


@implements(curvature, LinearMonomial)
def _(kinetics: Any, p: Any) -> Any:
    inverse = 1.0 / kinetics.mass
    k = 0.5 * kinetics.softening * inverse
    return k * inverse * _sech_squared(k * p)


@implements(inverse_mass, LinearMonomial)
def _(kinetics: Any, p: Any) -> Any:
    inverse = 1.0 / kinetics.mass
    k = 0.5 * kinetics.softening * inverse
    x = k * abs(p)
    x = x if x > TINY else like(x, TINY)
    e = expm1(-2.0 * x)
    return -e / ((2.0 + e) * x) * (k * inverse)  # (tanh x)/x, with one division


@implements(velocity_and_excess, LinearMonomial)
def _(kinetics: Any, p: Any, temperature: Any) -> Any:
    inverse = 1.0 / kinetics.mass
    k = 0.5 * kinetics.softening * inverse
    t = tanh(k * p)
    v = t * inverse
    return v, v * v - temperature * k * inverse * (1.0 - t * t)


# The friction flow is exact: y = k|p| obeys d sinh(y)/dt = −(fk/m) sinh(y), hence w = sinh(y) e^{−λ} with λ = fτk/m and
# y ← asinh(w). Beyond z = y − λ = 40, asinh(w) = log(2w) is linear in z; so z is cut there and the rest added.


@leaf
def _parts_of_flow(kinetics: Any, p: Any, rate_time: Any) -> Any:
    """(k, y, z cut, the rest of z)."""
    inverse = 1.0 / kinetics.mass
    k = 0.5 * kinetics.softening * inverse
    y = k * abs(p)
    z = y - rate_time * (k * inverse)
    cut = like(z, 40.0) if z > 40.0 else z
    return k, y, cut, z - cut


@leaf
def _decay(x: Any) -> Any:
    """e^x for x <= 40; from where it would be no normal number it falls no further."""
    return exp_of_ordinary(like(x, FAINT) if x < FAINT else x)


@leaf
def sinh_flow(kinetics: Any, p: Any, rate_time: Any) -> Any:
    """w, the first half of the flow's formula."""
    _k, y, cut, _rest = _parts_of_flow(kinetics, p, rate_time)
    near = like(y, 20.0) if y > 20.0 else y
    return -0.5 * _decay(cut) * expm1_of_ordinary(-2.0 * near)


@leaf
def asinh_flow(kinetics: Any, p: Any, rate_time: Any, w: Any) -> Any:
    """p after the flow, the second half of the formula."""
    _k, _y, _cut, rest = _parts_of_flow(kinetics, p, rate_time)
    return end_of_flow(kinetics, p, w, rest)


@leaf
def end_of_flow(kinetics: Any, p: Any, w: Any, rest: Any) -> Any:
    """The p of this sign that belongs to w and the rest of z."""
    k = 0.5 * kinetics.softening * (1.0 / kinetics.mass)
    y = (rest + asinh_of_ordinary(w)) * (1.0 / k)
    return -y if p < 0.0 else y


@leaf
def velocity_after_flow(kinetics: Any, p: Any, rate_time: Any, w: Any, temperature: Any) -> Any:
    """(K', K'² − T K'', p K') after the flow, for what w is then: tanh y = w/√(1 + w²), and 1 − tanh²y = 1/(1 + w²)."""
    k, _y, _cut, rest = _parts_of_flow(kinetics, p, rate_time)
    inverse = 1.0 / kinetics.mass
    root = 1.0 / np.sqrt(1.0 + w * w)
    v = w * root * inverse
    excess = v * v - temperature * k * inverse * (root * root)
    virial = (rest + asinh_of_ordinary(w)) * (1.0 / k) * v
    return -v if p < 0.0 else v, excess, virial


@leaf
def second_flow(kinetics: Any, p: Any, rate_time: Any, more: Any, w: Any) -> Any:
    """(w, the rest of z) after another flow, fτ = more, that goes on where the first from p ended, with w."""
    k, y, cut, _rest = _parts_of_flow(kinetics, p, rate_time)
    z = (y - rate_time * (k * (1.0 / kinetics.mass))) - more * (k * (1.0 / kinetics.mass))
    longer = like(z, 40.0) if z > 40.0 else z
    return w * _decay(longer - cut), z - longer


@implements(friction_flow, LinearMonomial)
def _(kinetics: Any, p: Any, rate_time: Any) -> Any:
    return asinh_flow(kinetics, p, rate_time, sinh_flow(kinetics, p, rate_time))


# --- a = 2: with q = t/s, K' = sign(p) q t²/(2m²), K'/p = q³/(2m⁴), K'' = (K'/p)(−½ + (3/2) 2x/sinh 2x) ---


@leaf
def _ratio(kinetics: Any, p: Any) -> Any:
    """(s, t/s, t) with s = √|p|/m."""
    s = np.sqrt(abs(p)) * (1.0 / kinetics.mass)
    inside = s if s > TINY else like(s, TINY)
    e = expm1(-kinetics.softening * inside)
    q = -e / ((2.0 + e) * inside)  # tanh(cs/2)/s, with one division
    return s, q, q * s


@implements(exponents, RootMonomial)
def _(kinetics: Any) -> Any:
    return like(kinetics.mass, 2.0), like(kinetics.mass, 3.0)


@implements(radial_energy, RootMonomial)
def _(kinetics: Any, s: Any) -> Any:
    c = kinetics.softening
    return s + (2.0 * softplus(-c * s) + _sech_squared(0.5 * c * s)) / c


@implements(energy, RootMonomial)
def _(kinetics: Any, p: Any) -> Any:
    return radial_energy(kinetics, np.sqrt(abs(p)) / kinetics.mass)


@implements(velocity, RootMonomial)
def _(kinetics: Any, p: Any) -> Any:
    inverse = 1.0 / kinetics.mass
    _s, q, t = _ratio(kinetics, p)
    v = (0.5 * inverse * inverse) * q * t * t
    return -v if p < 0.0 else v


@implements(curvature, RootMonomial)
def _(kinetics: Any, p: Any) -> Any:
    inverse = 1.0 / kinetics.mass
    s, q, _t = _ratio(kinetics, p)
    fourth = inverse * inverse * inverse * inverse
    # (K'/p) 2x/sinh 2x = q² (c/2)(1 − t²)/(2m⁴), as 2x/sinh 2x = x(1 − t²)/t
    return 0.25 * fourth * q * q * (1.5 * kinetics.softening * _sech_squared(0.5 * kinetics.softening * s) - q)


@implements(inverse_mass, RootMonomial)
def _(kinetics: Any, p: Any) -> Any:
    inverse = 1.0 / kinetics.mass
    _s, q, _t = _ratio(kinetics, p)
    return (0.5 * inverse * inverse * inverse * inverse) * q * q * q


@implements(velocity_and_excess, RootMonomial)
def _(kinetics: Any, p: Any, temperature: Any) -> Any:
    inverse = 1.0 / kinetics.mass
    _s, q, t = _ratio(kinetics, p)
    half = 0.5 * inverse * inverse
    v = half * q * t * t
    second = half * half * q * q * (1.5 * kinetics.softening * (1.0 - t * t) - q)
    return -v if p < 0.0 else v, v * v - temperature * second
