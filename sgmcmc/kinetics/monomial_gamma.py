"""Monomial gamma kinetics: |p|^{1/a}, softened near 0 so that it has two derivatives.

Notation: s = |p|^{1/a}/m, x = c s/2, t = tanh x; c is the softening, r its order.

    K(p)   = s + ∫_s^∞ (1 − tanh^r(cu/2)) du
    K'(p)  = sign(p) |p|^{1/a−1} t^r / (a m)
    K'(p)/p = (t/s)^r |p|^{(r+1−2a)/a} / (a m^{r+1})
    K''(p) = (K'(p)/p) [1/a − 1 + (r/a) 2x/sinh 2x]

Powers are taken as exponentials of log|p|, so that no s, however large or small, leaves the range of the floats.
`special_forms` has the two cases a = 1, r = 1 and a = 2, r = 3 without any powers.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from sgmcmc import checks
from sgmcmc.compiler.field_docs import documented
from sgmcmc.compiler.open_functions import implements, leaf, open_function
from sgmcmc.compiler.precision import like, zero
from sgmcmc.elementary import exp, expm1, log, log_of_ordinary, tanh
from sgmcmc.kinetics.functions import curvature, energy, inverse_mass, velocity, velocity_and_excess
from sgmcmc.kinetics.gaussian import LARGEST
from sgmcmc.kinetics.softening import softened

__all__ = ["MonomialGamma", "exponents", "radial_energy"]

# The tanh is taken of c s/2 with s at least this. Below, (tanh x)/s is c/2 to the last digit, and the stiff law, whose
# c is infinite, has no ∞·0.
TINY = 1e-30


class _MonomialGammaFields(NamedTuple):
    a: float
    softening: float
    order: float
    mass: float


@documented
class MonomialGamma(_MonomialGammaFields):
    """Monomial gamma kinetics K(p) = |p|^{1/a}/m, softened near 0: the larger a, the longer the tails of p.

    Where a derivative has no finite limit at p = 0 (r < 2a − 1, or the stiff law), it is 0 there by convention.

    Parameters
    ----------
    a : float
        1/2 is Gaussian (p²/m), 1 Laplacian; any real number from 1/2 to 20.
    softening : float, optional
        c, from 1e-6 to 1e6, or inf for the stiff law without softening. None is 3 up to a = 2, and beyond what keeps
        K''(0) at its value for a = 2: the product of K''(0) and the step size must be small.
    order : float, optional
        r. None is ⌈2a − 1⌉, which makes K'' finite; r = a gives the published kinetics. It must be above a − 1, else K'
        has a jump or a pole at 0 and the thermostat no mean to hold on to.
    mass : float, above 0
        m.

    Examples
    --------
    >>> sg.kinetics.MonomialGamma(a=2)
    MonomialGamma(a=2.0, softening=3.0, order=3.0, mass=1.0)
    """

    __slots__ = ()

    def __new__(
        cls, a: float = 1.0, softening: float | None = None, order: float | None = None, mass: float = 1.0
    ) -> MonomialGamma:
        a = checks.number("a", a, 0.5, 20.0)
        c = _default_softening(a) if softening is None else checks.number("softening", softening)
        if not (1e-6 <= c <= 1e6 or c == math.inf):
            raise ValueError(
                f"softening={checks.show(softening)} is out of range; give a number from 1e-6 to 1e6, or inf for none"
            )
        r = float(math.ceil(2.0 * a - 1.0)) if order is None else checks.number("order", order, 0.0, 40.0)
        if r <= a - 1.0:
            raise ValueError(
                f"order={checks.show(order)} is too low for a={a:g}; give a number above a - 1, such as a (the published form) "
                "or None (the smooth one)"
            )
        return super().__new__(cls, a, c, r, checks.number("mass", mass, 0.0, LARGEST, open_low=True))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._make, (tuple(self),)


def _default_softening(a: float) -> float:
    """3 up to a = 2; then the c that keeps (c/2)^{2a−1}/a, which is K''(0), at its value 1.6875 for a = 2, c = 3."""
    return 3.0 if a <= 2.0 else float(2.0 * (1.6875 * a) ** (1.0 / (2.0 * a - 1.0)))


@leaf
def _size_and_log(p: Any) -> Any:
    """|p| and its logarithm; 1 and 0 at p = 0, where every power of |p| that is left is the 0th."""
    size = abs(p)
    size = size if p != 0.0 else size + 1.0
    return size, log(size)


@leaf
def _radius(kinetics: Any, p: Any, log_size: Any) -> Any:
    """s = |p|^{1/a}/m."""
    s = exp(log_size * (1.0 / kinetics.a) - log(kinetics.mass))
    return s if p != 0.0 else zero(s)


@leaf
def _speed(kinetics: Any, p: Any, log_size: Any, divisions: Any) -> Any:
    """(|K'(p)|/|p|^divisions, x, t), and at p = 0 the constant before the power of |p|."""
    a, r, s = kinetics.a, kinetics.order, _radius(kinetics, p, log_size)
    s = s if s > TINY else like(s, TINY)
    x = 0.5 * kinetics.softening * s
    t = tanh(x)
    # t^r |p|^{1/a−1}/(a m), and for small x, (t/s)^r |p|^{(r+1)/a−1}/(a m^{r+1}), so that no power of s underflows
    far = x > 1.0
    base = t if far else t / s
    k = 1.0 if far else r + 1.0
    power = (k - (1.0 + divisions) * a) * (1.0 / a)
    return exp(r * log_of_ordinary(base) + power * log_size - (k * log(kinetics.mass) + log(a))), x, t


@leaf
def _ends(kinetics: Any, p: Any, value: Any) -> Any:
    """A second derivative, but 0 at p = 0 unless the power of |p| in it is the 0th (r = 2a − 1, and softened at all)."""
    smooth = (kinetics.order + 1.0 == 2.0 * kinetics.a) & ((kinetics.softening < 1e30) | (kinetics.order == 0.0))
    return value if (p != 0.0) | smooth else value * 0.0


@leaf
def _bend(kinetics: Any, y: Any) -> Any:
    """p K''(p)/K'(p) = 1/a − 1 + (r/a) y with y = 2x/sinh 2x."""
    inverse = 1.0 / kinetics.a
    return (inverse - 1.0) + (kinetics.order * inverse) * y


@implements(velocity, MonomialGamma)
def _(kinetics: Any, p: Any) -> Any:
    _size, log_size = _size_and_log(p)
    v, _x, _t = _speed(kinetics, p, log_size, 0.0)
    return (-v if p < 0.0 else v) if p != 0.0 else p


@implements(inverse_mass, MonomialGamma)
def _(kinetics: Any, p: Any) -> Any:
    _size, log_size = _size_and_log(p)
    inverse, _x, _t = _speed(kinetics, p, log_size, 1.0)
    return _ends(kinetics, p, inverse)


@implements(curvature, MonomialGamma)
def _(kinetics: Any, p: Any) -> Any:
    _size, log_size = _size_and_log(p)
    inverse, x, _t = _speed(kinetics, p, log_size, 1.0)
    x = x if x < 1e4 else like(x, 1e4)
    y = 4.0 * x * exp(-2.0 * x) / -expm1(-4.0 * x)  # 2x/sinh 2x, right to the last digit also where it is tiny
    return _ends(kinetics, p, inverse * _bend(kinetics, y))


@implements(velocity_and_excess, MonomialGamma)
def _(kinetics: Any, p: Any, temperature: Any) -> Any:
    size, log_size = _size_and_log(p)
    v, x, t = _speed(kinetics, p, log_size, 0.0)
    x = x if x < 1e4 else like(x, 1e4)
    y = x * (1.0 - t * t) / t  # 2x/sinh 2x, to an error that is nothing beside K'²
    second = _ends(kinetics, p, (v / size) * _bend(kinetics, y))
    v = (-v if p < 0.0 else v) if p != 0.0 else p
    return v, v * v - temperature * second


@open_function
def radial_energy(kinetics: Any, s: Any) -> Any:
    """K as a function of s."""


@open_function
def exponents(kinetics: Any) -> Any:
    """(a, r)."""


@implements(exponents, MonomialGamma)
def _(kinetics: Any) -> Any:
    return kinetics.a, kinetics.order


@implements(radial_energy, MonomialGamma)
def _(kinetics: Any, s: Any) -> Any:
    inside = s if s > TINY else like(s, TINY)
    return softened(kinetics.order, kinetics.softening, s, tanh(0.5 * kinetics.softening * inside))


@implements(energy, MonomialGamma)
def _(kinetics: Any, p: Any) -> Any:
    _size, log_size = _size_and_log(p)
    return radial_energy(kinetics, _radius(kinetics, p, log_size))
