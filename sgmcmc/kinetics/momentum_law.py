"""The momentum law of monomial gamma kinetics: exact draws, normaliser and acceptance at any temperature.

a = 1, r = 1: p = (m/c)(log G₁ − log G₂) with G ~ Gamma(1/(cT)), as exp(−K/T) ∝ cosh(cp/(2m))^{−2/(cT)}.

Otherwise by rejection. As a function of s = |p|^{1/a}/m, K is convex with slope t^r, so it lies above its tangent at any
s₀, and s^{a−1} exp(−tangent/T) is a gamma law: propose s = (T/t₀^r) Gamma(a), accept with probability

    exp(−(K(s) − K(s₀) − t₀^r (s − s₀))/T).

Acceptance is highest where s₀ t₀^r = aT. For s₀ → ∞ the tangent is the stiff law |p|^{1/a}/m; but from that proposal only
0.8 % would be accepted for a = 2, c = 3 at T = 0.1, against 64 % from the best tangent, and 1e-32 against 58 % at T = 0.01.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sgmcmc.compiler.open_functions import implements, leaf
from sgmcmc.compiler.precision import like
from sgmcmc.elementary import exp, log, power, tanh
from sgmcmc.elementary.coefficients import constants
from sgmcmc.kinetics.functions import (
    acceptance,
    draw,
    fill_momenta,
    fill_one_by_one,
    log_normaliser,
    specialise,
)
from sgmcmc.kinetics.monomial_gamma import MonomialGamma, exponents, radial_energy
from sgmcmc.kinetics.special_forms import LinearMonomial, RootMonomial
from sgmcmc.rng import MOMENTUM, log_gamma_attempt, log_gamma_variate, normal_pair, uniform, words

__all__: list[str] = []

# The two gammas of a = 1 have purposes of their own, beside MOMENTUM in the same byte: no address is used twice.
FIRST_GAMMA, SECOND_GAMMA = MOMENTUM + 16, MOMENTUM + 32
ATTEMPTS = 127  # each takes two addresses of the 256; with acceptance above 0.25 all fail with probability 1e-15


@implements(draw, LinearMonomial)
def _(kinetics: Any, temperature: Any, stream: Any, step: Any, index: Any) -> Any:
    shape = 1.0 / (kinetics.softening * temperature)
    first = log_gamma_variate(shape, stream, step, index, FIRST_GAMMA)
    second = log_gamma_variate(shape, stream, step, index, SECOND_GAMMA)
    return kinetics.mass / kinetics.softening * (first - second)


@implements(fill_momenta, LinearMonomial)
def _(kinetics: Any, temperature: Any, p: Any, stream: Any, step: Any, first: Any) -> None:
    # The first attempts of all, which vectorise; then one by one where it was rejected, some 5 %.
    shape = 1.0 / (kinetics.softening * temperature)
    unit = kinetics.mass / kinetics.softening
    for i in range(p.size):
        one = log_gamma_attempt(shape, stream, step, first + i, FIRST_GAMMA, 0)
        two = log_gamma_attempt(shape, stream, step, first + i, SECOND_GAMMA, 0)
        p[i] = unit * (one - two)
    for i in range(p.size):
        if p[i] != p[i]:
            p[i] = draw(kinetics, temperature, stream, step, first + i)


@leaf
def tangent(kinetics: Any, temperature: Any) -> Any:
    """(s₀, t₀^r) with s₀ t₀^r = aT, nearly: draws are exact from any tangent, the best one is only accepted most often."""
    a, r = exponents(kinetics)
    half = 0.5 * kinetics.softening
    mean = a * temperature
    # As t <= 1 and t <= cs/2, both of these are below s₀; Newton steps for log(s t^r), which is concave, stay below.
    small = power(mean * power(1.0 / half, r), 1.0 / (r + 1.0))
    s = mean if mean > small else small
    for _ in range(3):
        x = half * s
        t = tanh(x)
        x = x if x < 1e4 else like(x, 1e4)
        y = x * (1.0 - t * t) / t
        s = s * exp((log(mean / s) - r * log(t)) / (1.0 + r * y))
    return s, power(tanh(half * s), r)


@leaf
def _gamma_attempt(shape: Any, n: Any, u: Any) -> Any:
    """A proposal for Gamma(shape) from a normal and a uniform, and the log of its acceptance (Marsaglia and Tsang 2000)."""
    boosted = shape < 1.0
    d = (shape + 1.0 if boosted else shape) - like(shape, 1.0 / 3.0)
    root = 1.0 + n / np.sqrt(9.0 * d)
    inside = root if root > 0.0 else like(root, 1)
    v = inside * inside * inside
    log_accept = 0.5 * n * n + d * (1.0 - v + log(v))
    value = d * v * (power(u, 1.0 / shape) if boosted else like(shape, 1))
    return value, (log_accept if root > 0.0 else like(root, -1e30))


@leaf
def _attempt(
    kinetics: Any, temperature: Any, s0: Any, slope: Any, energy0: Any, stream: Any, at: Any, number: Any
) -> Any:
    """A proposal for p from the tangent (s₀, slope), at the address `at` = (step, index); NaN if it is rejected."""
    a, _r = exponents(kinetics)
    w0, w1, w2, w3 = words(stream, at[0], at[1], MOMENTUM, 2 * number)
    n, side = normal_pair(w0, w1, w2, w3, s0)
    w0, w1, w2, w3 = words(stream, at[0], at[1], MOMENTUM, 2 * number + 1)
    gamma, log_accept = _gamma_attempt(a, n, uniform(w0, w1, s0))
    s = gamma * (temperature / slope)
    p = power(s * kinetics.mass, a)
    p = -p if side < 0.0 else p
    log_accept -= (radial_energy(kinetics, s) - energy0 - slope * (s - s0)) / temperature
    return p if log(uniform(w2, w3, s0)) < log_accept else constants(p).nan  # both rejections in one


@implements(draw, RootMonomial)
@implements(draw, MonomialGamma)
def _(kinetics: Any, temperature: Any, stream: Any, step: Any, index: Any) -> Any:
    s0, slope = tangent(kinetics, temperature)
    energy0 = radial_energy(kinetics, s0)
    p, number = constants(s0).nan, 0
    while p != p and number < ATTEMPTS:
        p = _attempt(kinetics, temperature, s0, slope, energy0, stream, (step, index), number)
        number += 1
    return p


@implements(fill_momenta, RootMonomial)
@implements(fill_momenta, MonomialGamma)
def _(kinetics: Any, temperature: Any, p: Any, stream: Any, step: Any, first: Any) -> None:
    # Three attempts for all, which vectorise; then one by one where all three were rejected, some 5 %.
    s0, slope = tangent(kinetics, temperature)
    energy0 = radial_energy(kinetics, s0)
    for i in range(p.size):
        p[i] = _attempt(kinetics, temperature, s0, slope, energy0, stream, (step, first + i), 0)
    for number in range(1, 3):
        for i in range(p.size):
            again = _attempt(kinetics, temperature, s0, slope, energy0, stream, (step, first + i), number)
            p[i] = p[i] if p[i] == p[i] else again
    for i in range(p.size):
        if p[i] != p[i]:
            p[i] = draw(kinetics, temperature, stream, step, first + i)


for _form in (LinearMonomial, RootMonomial, MonomialGamma):
    implements(fill_momenta, _form, device=True)(fill_one_by_one)


@implements(log_normaliser, LinearMonomial)
def _(kinetics: Any, temperature: Any) -> Any:
    shape = 1.0 / (kinetics.softening * temperature)
    from scipy import special

    return math.log(kinetics.mass / kinetics.softening) + float(special.betaln(shape, shape))


@implements(log_normaliser, RootMonomial)
def _(kinetics: Any, temperature: Any) -> Any:
    return log_normaliser(MonomialGamma(2.0, kinetics.softening, 3.0, kinetics.mass), temperature)


@implements(log_normaliser, MonomialGamma)
def _(kinetics: Any, temperature: Any) -> Any:
    a, m, form = kinetics.a, kinetics.mass, specialise(kinetics)
    if isinstance(form, LinearMonomial):
        return log_normaliser(form, temperature)
    if kinetics.softening == math.inf or kinetics.order == 0.0:
        return math.log(2.0) + a * math.log(m * temperature) + math.lgamma(a + 1.0)
    # 2 a m^a ∫ s^{a−1} exp(−K(s)/T) ds with s = e^y: the trapezium rule converges exponentially.
    s0, _slope = tangent(kinetics, temperature)
    y = math.log(s0) + np.arange(-40.0 / a, math.log(60.0 + 60.0 / a) + 1.0, 0.125)
    weights = [
        math.exp(a * v - float(radial_energy(form, math.exp(v)) - radial_energy(form, s0)) / temperature) for v in y
    ]
    total = math.log(2.0 * a * math.fsum(weights) * 0.125)
    return total + a * math.log(m) - float(radial_energy(form, s0)) / temperature


@implements(acceptance, RootMonomial)
def _(kinetics: Any, temperature: Any) -> Any:
    return acceptance(MonomialGamma(2.0, kinetics.softening, 3.0, kinetics.mass), temperature)


@implements(acceptance, MonomialGamma)
def _(kinetics: Any, temperature: Any) -> Any:
    if isinstance(specialise(kinetics), LinearMonomial):
        return 1.0
    a = kinetics.a
    s0, slope = (float(x) for x in tangent(kinetics, temperature))
    # The mass below the tangent's exponential: 2 m^a Γ(a+1) (T/slope)^a exp(−(K(s₀) − slope s₀)/T)
    envelope = math.log(2.0) + a * math.log(kinetics.mass * temperature / slope) + math.lgamma(a + 1.0)
    envelope -= (float(radial_energy(kinetics, s0)) - slope * s0) / temperature
    return math.exp(log_normaliser(kinetics, temperature) - envelope)
