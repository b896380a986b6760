"""Kinetic energies written a second time, in NumPy, straight from their definitions.

Nothing here shares code with `sgmcmc.kinetics`: the forms are the textbook ones, on whole arrays, for ordinary momenta. The
compiled ones, which also serve momenta of 1e-300 and 1e300, are compared with them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.kinetics import Gaussian, MonomialGamma, Relativistic
from sgmcmc.testing.laws import Law

__all__ = ["curvature", "energy", "friction_flow", "inverse_mass", "law", "velocity"]

Array = NDArray[np.float64]
SMALLEST = 1e-100  # |p| is not taken below this, so that K'(p)/p has its limit at 0
NODES, WEIGHTS = np.polynomial.legendre.leggauss(48)


def energy(kinetics: Any, p: Array) -> Array:
    """K(p)."""
    if isinstance(kinetics, Gaussian):
        return p**2 / (2.0 * kinetics.mass)
    if isinstance(kinetics, Relativistic):
        m, c = kinetics.mass, kinetics.speed
        return m * c**2 * np.hypot(1.0, p / (m * c))
    assert isinstance(kinetics, MonomialGamma)
    s = np.abs(p) ** (1.0 / kinetics.a) / kinetics.mass
    return s + _softening_integral(kinetics.softening, kinetics.order, s)


def _softening_integral(c: float, r: float, s: Array) -> Array:
    """∫_s^∞ (1 − tanh^r(cu/2)) du = (1/c) ∫₀^Z (1 − ((1−z)/(1+z))^r) dz/z with Z = e^{−cs}.

    By Gauss's rule in y with z = 1 − y⁴, which is smooth at z = 1 for every order r.
    """
    if not np.isfinite(c) or r == 0.0:
        return np.zeros_like(s)
    Z = np.minimum(np.exp(-c * s)[..., None], 1.0 - 1e-16)
    low = np.exp(0.25 * np.log1p(-Z))
    y = low + 0.5 * (1.0 - low) * (1.0 + NODES)
    z = np.maximum(-np.expm1(4.0 * np.log(y)), 1e-300)
    integrand = -np.expm1(r * np.log((1.0 - z) / (1.0 + z))) / z * 4.0 * y**3
    total: Array = (0.5 * (1.0 - low) * WEIGHTS * integrand).sum(axis=-1) / c
    return total


def velocity(kinetics: Any, p: Array) -> Array:
    """K'(p)."""
    if isinstance(kinetics, Gaussian):
        return p / kinetics.mass
    if isinstance(kinetics, Relativistic):
        return p / kinetics.mass / np.hypot(1.0, p / (kinetics.mass * kinetics.speed))
    assert isinstance(kinetics, MonomialGamma)
    a, c, r, m = kinetics
    size = np.maximum(np.abs(p), SMALLEST)
    T = np.tanh(0.5 * c * size ** (1.0 / a) / m)
    return np.sign(p) * size ** (1.0 / a - 1.0) * T**r / (a * m)


def curvature(kinetics: Any, p: Array) -> Array:
    """K''(p)."""
    if isinstance(kinetics, Gaussian):
        return np.full_like(p, 1.0 / kinetics.mass)
    if isinstance(kinetics, Relativistic):
        return np.hypot(1.0, p / (kinetics.mass * kinetics.speed)) ** -3.0 / kinetics.mass
    assert isinstance(kinetics, MonomialGamma)
    a, c, r, m = kinetics
    size = np.maximum(np.abs(p), SMALLEST)
    x = 0.5 * c * size ** (1.0 / a) / m
    T = np.tanh(x)
    outer = (1.0 / a) * (1.0 / a - 1.0) * size ** (1.0 / a - 2.0) * T**r / m
    if not np.isfinite(c) or r == 0.0:
        return outer
    sech_squared = np.cosh(np.minimum(x, 300.0)) ** -2.0
    inner = size ** (2.0 / a - 2.0) * r * T ** (r - 1.0) * (0.5 * c) * sech_squared / (a * m) ** 2
    return outer + inner


def inverse_mass(kinetics: Any, p: Array) -> Array:
    """K'(p)/p."""
    size = np.maximum(np.abs(p), SMALLEST)
    return velocity(kinetics, size) / size


def friction_flow(kinetics: Any, p: Array, rate_time: Array | float) -> Array:
    """dp = −f K'(p) dt over a time τ, with rate_time = fτ: exact for p²/2m and a = 1, else by the rule of second order."""
    if isinstance(kinetics, Gaussian):
        return p * np.exp(-rate_time / kinetics.mass)
    if isinstance(kinetics, MonomialGamma) and kinetics.a == kinetics.order == 1.0 and np.isfinite(kinetics.softening):
        k = 0.5 * kinetics.softening / kinetics.mass
        y: Array = np.arcsinh(np.sinh(k * p) * np.exp(-rate_time * k / kinetics.mass)) / k
        return y
    q = p * np.exp(-0.5 * rate_time * inverse_mass(kinetics, p))
    return p * np.exp(-rate_time * inverse_mass(kinetics, q))


@lru_cache(maxsize=64)
def law(kinetics: Any, temperature: float) -> Law:
    """exp(−K(p)/T)."""
    return Law(lambda p: energy(kinetics, p), temperature)
