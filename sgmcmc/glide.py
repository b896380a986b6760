"""B(τ/2) A(τ) B(τ/2) in one go: what the two friction flows and the drift between them have in common is computed once.

For a = 1, with y = k|p| and λ = (k/m) f τ/2, the flow is sinh y ← e^{−λ} sinh y. The drift leaves p alone, so the second flow
starts from the sinh y at which the first one ended, and the velocity is tanh y = sinh y/√(1 + sinh²y). For a = 2 what they share
is K'(p)/p. In single precision a short flow is a short series in λ: one tanh is left for a = 1 (1.4 ns; 2.9 with sinh y carried
over; 4.6 letter by letter, before), two for a = 2 (2.9, 4.3, 5.4).
"""

from __future__ import annotations

import numpy as np

from sgmcmc.dispatch import LOOP, implements, leaf, like, loop, open_function
from sgmcmc.elementary import expm1_of_ordinary, tanh
from sgmcmc.kinetics import (
    LinearMonomial,
    RootMonomial,
    asinh_flow,
    root_factor,
    root_halfway,
    root_of_momentum,
    sinh_flow,
    sinh_flow_on,
    tanh_over,
    velocity_and_excess_of_root,
    velocity_and_excess_of_sinh,
)
from sgmcmc.letters import at, drift_compensated, rub
from sgmcmc.thermostats import PerCoordinate, crosstalk

__all__ = ["glide"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@open_function(on=2, fastmath=LOOP, apart=True)
def glide(thermostat, kinetics, scale, sigma_theta, sigma_p, temperature, state, tau, spare):
    """B(τ/2) A(τ) B(τ/2), with the compensation that goes with A. Gives back Σ p K'(p) in A. `spare` is as in `rub`."""


@implements(glide)
def _(thermostat, kinetics, scale, sigma_theta, sigma_p, temperature, state, tau, spare):
    rub(kinetics, thermostat, sigma_p, state.p, state.xi, 0.5 * tau, spare)
    virial = drift_compensated(thermostat, kinetics, scale, sigma_theta, sigma_p, temperature, state, tau)
    rub(kinetics, thermostat, sigma_p, state.p, state.xi, 0.5 * tau, spare)
    return virial


# What is written into the loops below may be reordered, for the sake of their sums, and in one kernel otherwise than in another.
# So all that moves a coordinate is in leaves, which are not.


@leaf
def _moved(theta, tau, scale, c, v):
    """θ after the drift, and the compensation that goes with it."""
    return theta + tau * scale * (1.0 - 2.0 * c) * v


@leaf
def _answered(xi, rate, excess):
    """ξ after the drift."""
    return xi + rate * excess


@leaf
def _times_square(p, f):
    """p f²."""
    return p * (f * f)


@leaf
def _product(a, b):
    return a * b


@implements(glide, PerCoordinate, LinearMonomial)
def _(thermostat, kinetics, scale, sigma_theta, sigma_p, temperature, state, tau, spare):
    inverse = 1.0 / kinetics.mass
    steepest = 0.5 * kinetics.softening * inverse * inverse  # K'' is between 0 and this, K'² between 0 and 1/m²
    added = tau * thermostat.gamma * max(inverse * inverse, temperature * steepest)
    if is_short(state.xi, 0.5 * tau * steepest, added):
        return glide_short(thermostat, kinetics, scale, sigma_theta, sigma_p, temperature, state, tau, spare)
    return glide_by_sinh(thermostat, kinetics, scale, sigma_theta, sigma_p, temperature, state, tau, spare)


@loop(apart=True, inline=True)
def glide_by_sinh(thermostat, kinetics, scale, sigma_theta, sigma_p, temperature, state, tau, spare):
    """For flows of any length: the loops of `rub`, but w = sinh y goes on from one flow to the next."""
    theta, p, xi = state.theta, state.p, state.xi
    virial, rate, half = tau - tau, tau * thermostat.gamma, 0.5 * tau
    for i in range(p.size):
        spare[i] = sinh_flow(kinetics, p[i], _product(half, xi[i]))
    for i in range(p.size):
        p[i] = asinh_flow(kinetics, p[i], _product(half, xi[i]), spare[i])
    for i in range(p.size):
        v, excess = velocity_and_excess_of_sinh(kinetics, p[i], spare[i], temperature)
        c = crosstalk(thermostat, sigma_theta, sigma_p, state.center, i)
        theta[i] = _moved(theta[i], tau, at(scale, i), c, v)
        virial += p[i] * v
        f = _answered(xi[i], rate, excess)
        xi[i] = f
        spare[i] = sinh_flow_on(kinetics, p[i], _product(half, f), spare[i])
    for i in range(p.size):
        p[i] = asinh_flow(kinetics, p[i], _product(half, xi[i]), spare[i])
    return virial


# --- short flows ---
#
# dy/dλ = −t with t = tanh y, and dt/dλ = −t (1 − t²). Taylor's series in λ, with z = t²:
#
#     y(λ) = y − λ t [1 − λ/2 (1 − z) (1 − λ/3 (c₂ − λ/4 c₃))]
#     t(λ) = t [1 − λ (1 − z) (1 − λ/2 (c₂ − λ/3 (c₃ − λ/4 c₄)))]
#
# What is left out is below 1.8 λ⁵/120 of y and 3.5 λ⁵/120 of t: half a unit in the last place of a float32 at λ = 1/13.

LONGEST = 0.0625


@open_function
def longest(exemplar):
    """The largest λ for which the series is as good as exact."""


@implements(longest, np.float32)
def _(exemplar):
    return LONGEST


@implements(longest, np.float64)
def _(exemplar):
    return exemplar - exemplar


@loop(apart=True, inline=True)
def is_short(xi, length, added):
    """Whether λ = length ξ is short for all coordinates, before a drift and after it, which adds at most `added` to ξ."""
    beyond, most = length - length, longest(length) - length * added
    for i in range(xi.size):
        beyond += 0.0 if abs(length * xi[i]) <= most else 1.0
    return beyond == 0.0


@leaf
def _bends(t):
    """(1 − z, c₂, c₃)."""
    z = t * t
    return 1.0 - z, 1.0 - 3.0 * z, (15.0 * z - 12.0) * z + 1.0


@leaf
def _y_later(y, t, rate):
    """y(λ)."""
    s, c2, c3 = _bends(t)
    return y - rate * t * (1.0 - 0.5 * rate * s * (1.0 - (1.0 / 3.0) * rate * (c2 - 0.25 * rate * c3)))


@leaf
def _t_later(t, rate):
    """t(λ)."""
    s, c2, c3 = _bends(t)
    z = t * t
    c4 = ((-105.0 * z + 135.0) * z - 39.0) * z + 1.0
    return t - rate * t * s * (1.0 - 0.5 * rate * (c2 - (1.0 / 3.0) * rate * (c3 - 0.25 * rate * c4)))


@leaf
def _excess(t, inverse, bend):
    """K'² − T K'' with K' = t/m and T K'' = bend (1 − t²)."""
    return t * t * inverse * inverse - bend * (1.0 - t * t)


@loop(apart=True, inline=True)
def glide_short(thermostat, kinetics, scale, sigma_theta, sigma_p, temperature, state, tau, spare):
    """For flows with λ at most 1/16 in single precision. y and t have the sign of p here: all formulas are odd.

    The tanh has a loop of its own, for the reason given in `rub`: 1.4 ns, against 1.6 in one loop.
    """
    theta, p, xi = state.theta, state.p, state.xi
    inverse = 1.0 / kinetics.mass
    k = 0.5 * kinetics.softening * inverse
    length, bend, rate = 0.5 * tau * k * inverse, temperature * k * inverse, tau * thermostat.gamma
    virial = tau - tau
    for i in range(p.size):
        spare[i] = tanh(_product(k, p[i]))
    for i in range(p.size):
        before = _product(length, xi[i])
        y, t = _y_later(_product(k, p[i]), spare[i], before), _t_later(spare[i], before)
        c = crosstalk(thermostat, sigma_theta, sigma_p, state.center, i)
        theta[i] = _moved(theta[i], tau, at(scale, i), c, _product(inverse, t))
        virial += y * t
        f = _answered(xi[i], rate, _excess(t, inverse, bend))
        xi[i] = f
        p[i] = _product(_y_later(y, t, _product(length, f)), 1.0 / k)
    return virial * (inverse / k)


# --- a = 2 ---


@implements(glide, PerCoordinate, RootMonomial)
def _(thermostat, kinetics, scale, sigma_theta, sigma_p, temperature, state, tau, spare):
    c, inverse = 0.5 * kinetics.softening, 1.0 / kinetics.mass
    fourth = inverse * inverse * inverse * inverse
    steepest = 0.5 * c * c * c * fourth  # K'' is between −½ and 1 times this, K'² below (c/4)²/m⁴
    added = tau * thermostat.gamma * (0.25 * c * c * fourth + temperature * steepest)
    if is_short(state.xi, 0.5 * tau * steepest, added):
        return glide_root_short(thermostat, kinetics, scale, sigma_theta, sigma_p, temperature, state, tau, spare)
    return glide_root(thermostat, kinetics, scale, sigma_theta, sigma_p, temperature, state, tau, spare)


@loop(apart=True, inline=True)
def glide_root(thermostat, kinetics, scale, sigma_theta, sigma_p, temperature, state, tau, spare):
    """For flows of any length: the loops of `rub`, but M at the end of the first flow is that of the drift and of the second."""
    theta, p, xi = state.theta, state.p, state.xi
    virial, rate, half = tau - tau, tau * thermostat.gamma, 0.5 * tau
    for i in range(p.size):
        s = root_of_momentum(kinetics, p[i])
        spare[i] = root_halfway(kinetics, s, tanh_over(kinetics, s), _product(half, xi[i]))
    for i in range(p.size):
        f = root_factor(kinetics, tanh_over(kinetics, spare[i]), _product(half, xi[i]))
        p[i] = _times_square(p[i], f)
    for i in range(p.size):
        s = root_of_momentum(kinetics, p[i])
        q = tanh_over(kinetics, s)
        v, excess = velocity_and_excess_of_root(kinetics, p[i], s, q, temperature)
        c = crosstalk(thermostat, sigma_theta, sigma_p, state.center, i)
        theta[i] = _moved(theta[i], tau, at(scale, i), c, v)
        virial += p[i] * v
        f = _answered(xi[i], rate, excess)
        xi[i] = f
        spare[i] = root_halfway(kinetics, s, q, _product(half, f))
    for i in range(p.size):
        f = root_factor(kinetics, tanh_over(kinetics, spare[i]), _product(half, xi[i]))
        p[i] = _times_square(p[i], f)
    return virial


# Short flows. The midpoint rule is log p ← log p − λ(q) with λ = fτ K'/p and q half way, log q = log p − λ(p)/2. With dashes for
# derivatives by log p, and Y = 2x/sinh 2x, x = cs/2,
#
#     λ(q) = λ [1 − λ/2 (b₁ − λ/4 b₂)],  b₁ = λ'/λ = 3/2 (Y − 1),  b₂ = λ''/λ = b₁² + 3/4 Y (1 − 2x/tanh 2x)
#
# and the next term is below 1.3e-8 for λ up to 1/16.


@leaf
def root_and_bends(kinetics, s):
    """(q, b₁, b₂) with one division; q = tanh(x)/s."""
    inside = like(s, 1e-15) if s < 1e-15 else s  # below, q is c/2 to the last digit
    double = kinetics.softening * inside
    double = like(s, 40.0) if double > 40.0 else double
    e = expm1_of_ordinary(-double)
    both = -e * (2.0 + e)  # 1 − e^{−4x}
    part = 1.0 / (both * inside)
    a, faint = double * inside * part, 1.0 + e
    y, b = 2.0 * a * faint, a * (1.0 + faint * faint)  # 2x/sinh 2x and 2x/tanh 2x
    b1 = 1.5 * (y - 1.0)
    return e * e * part, b1, b1 * b1 + 0.75 * y * (1.0 - b)


@leaf
def _growth(rate, b1, b2):
    """g with which the flow takes s to (1 + g) s, for a short λ(p)."""
    x = -0.5 * rate * (1.0 - 0.5 * rate * (b1 - 0.25 * rate * b2))
    return x * (1.0 + 0.5 * x * (1.0 + (1.0 / 3.0) * x * (1.0 + 0.25 * x)))


@leaf
def _rate(length, f, q):
    """λ = fτ K'(p)/p."""
    return length * f * (q * q * q)


@leaf
def _grown_twice(p, g):
    """p (1 + g)²."""
    return p + p * (g * (2.0 + g))


@loop(apart=True, inline=True)
def glide_root_short(thermostat, kinetics, scale, sigma_theta, sigma_p, temperature, state, tau, spare):
    """For flows with λ at most 1/16 in single precision."""
    theta, p, xi = state.theta, state.p, state.xi
    inverse = 1.0 / kinetics.mass
    virial, rate, length = tau - tau, tau * thermostat.gamma, 0.25 * tau * inverse * inverse * inverse * inverse
    for i in range(p.size):
        s = root_of_momentum(kinetics, p[i])
        q, b1, b2 = root_and_bends(kinetics, s)
        g = _growth(_rate(length, xi[i], q), b1, b2)
        spare[i] = _answered(s, g, s)
        p[i] = _grown_twice(p[i], g)
    for i in range(p.size):
        q, b1, b2 = root_and_bends(kinetics, spare[i])
        v, excess = velocity_and_excess_of_root(kinetics, p[i], spare[i], q, temperature)
        c = crosstalk(thermostat, sigma_theta, sigma_p, state.center, i)
        theta[i] = _moved(theta[i], tau, at(scale, i), c, v)
        virial += p[i] * v
        f = _answered(xi[i], rate, excess)
        xi[i] = f
        g = _growth(_rate(length, f, q), b1, b2)
        p[i] = _grown_twice(p[i], g)
    return virial


@implements(glide, PerCoordinate, LinearMonomial, device=True)
@implements(glide, PerCoordinate, RootMonomial, device=True)
def _(thermostat, kinetics, scale, sigma_theta, sigma_p, temperature, state, tau, spare):
    rub(kinetics, thermostat, sigma_p, state.p, state.xi, 0.5 * tau, spare)
    virial = drift_compensated(thermostat, kinetics, scale, sigma_theta, sigma_p, temperature, state, tau)
    rub(kinetics, thermostat, sigma_p, state.p, state.xi, 0.5 * tau, spare)
    return virial
