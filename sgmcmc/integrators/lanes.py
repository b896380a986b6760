"""Lanes: small chains side by side, so that vectors run across chains.

Coordinate c of the chain in lane l stands at c·width + l. Every letter of a step is a loop over the coordinates of one chain;
over a packed array the same loop takes the same step for all chains of the pack at once. What is left to say is where sums over
coordinates are taken: here element by element, and added up once in a while.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.compiler.open_functions import implements
from sgmcmc.compiler.precision import like, zero
from sgmcmc.integrators import BAOAB, Dynamics, Euler, SymmetricSplitting
from sgmcmc.integrators.flows import count_drift, drift, drift_compensated, thermalised
from sgmcmc.integrators.fused import glide, glided, learn_from_sinh
from sgmcmc.integrators.fused_drift import swing
from sgmcmc.integrators.preconditioning import Frame
from sgmcmc.integrators.units import Units, at
from sgmcmc.kinetics import LinearMonomial, Overdamped, end_of_flow, sinh_flow, velocity_and_excess
from sgmcmc.thermostats import (
    FixedFriction,
    PerCoordinate,
    at_center,
    crosstalk,
    crosstalk_rate,
    relax,
    relaxation,
    relaxed,
    sharers,
)

__all__ = ["LARGEST", "packable", "packed"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

LARGEST = 16  # coordinates; longer chains fill the vectors by themselves


def packable(dynamics: Dynamics, dim: int) -> bool:
    """Whether chains of such a sampler may be packed: nothing in a step but measurements sums over coordinates.

    It must not depend on the number of chains: one chain alone has the same bits as among many.
    """
    elementwise = type(dynamics.thermostat) in (FixedFriction, PerCoordinate)
    by_letters = type(dynamics.integrator) in (SymmetricSplitting, BAOAB)
    overdamped = type(dynamics.integrator) is Euler and isinstance(dynamics.kinetics, Overdamped)
    return dim <= LARGEST and elementwise and not isinstance(dynamics.scale, Frame) and (by_letters or overdamped)


def packed(dynamics: Dynamics, width: int, virial: NDArray[Any]) -> Dynamics:
    """The same dynamics for a pack; `virial` takes up p K'(p) of every step."""
    scale, thermostat = dynamics.scale, dynamics.thermostat
    if isinstance(scale, Units):
        scale = Units(np.repeat(scale.values, width))
    kind: Any = PackedFriction
    own: tuple[Any, ...] = virial, np.ones(2, virial.dtype)
    if isinstance(thermostat, PerCoordinate):
        kind = PackedPerCoordinate
        own = *thermostat, *own, np.full(3, np.nan, virial.dtype)
    return dynamics._replace(scale=scale, thermostat=kind._make(own))


class _PackedFriction(NamedTuple):
    virial: Any
    weights: Any  # how the next drift counts


class PackedFriction(_PackedFriction, FixedFriction):  # type: ignore[misc]
    """A constant friction in a pack."""

    __slots__ = ()


class _PackedPerCoordinate(NamedTuple):
    gamma: float
    adaptive: float
    virial: Any
    weights: Any
    relaxation: Any  # the last time over which ξ relaxed, and the two numbers that belong to it


class PackedPerCoordinate(_PackedPerCoordinate, PerCoordinate):  # type: ignore[misc]
    """A friction for every coordinate of every chain in a pack."""

    __slots__ = ()


def _count_drift(thermostat, kept, share):
    thermostat.weights[0] = kept
    thermostat.weights[1] = share


for _kind in (PackedFriction, PackedPerCoordinate):
    implements(count_drift, _kind)(_count_drift)


@implements(relax, PackedPerCoordinate)
def _(thermostat, xi, center, variance, normals, dim, sigma_xi, temperature, tau):
    # Two exponentials, two divisions and a root for what is mostly the same in every step.
    last = thermostat.relaxation
    if last[0] != tau:
        last[0] = tau
        last[1], last[2] = relaxation(thermostat.gamma / sharers(thermostat, dim), sigma_xi, temperature, tau)
    decay, spread = last[1], last[2]
    for i in range(xi.size):
        xi[i] = relaxed(xi[i], at_center(center, variance[i]), decay, spread, normals[i])


@implements(drift, PackedFriction)
def _(thermostat, kinetics, scale, temperature, theta, p, xi, tau):
    virial, kept, share = thermostat.virial, thermostat.weights[0], thermostat.weights[1]
    for i in range(p.size):
        v, _excess = velocity_and_excess(kinetics, p[i], temperature)
        theta[i] += tau * at(scale, i) * v
        virial[i] = kept * virial[i] + share * (p[i] * v)
    return zero(tau)


@implements(drift, PackedPerCoordinate)
def _(thermostat, kinetics, scale, temperature, theta, p, xi, tau):
    virial, kept, share, rate = thermostat.virial, thermostat.weights[0], thermostat.weights[1], tau * thermostat.gamma
    for i in range(p.size):
        v, excess = velocity_and_excess(kinetics, p[i], temperature)
        theta[i] += tau * at(scale, i) * v
        xi[i] += rate * excess
        virial[i] = kept * virial[i] + share * (p[i] * v)
    return zero(tau)


@implements(drift_compensated, PackedFriction)
def _(thermostat, kinetics, scale, sigma_theta, temperature, state, tau):
    count_drift(thermostat, zero(tau), like(tau, 1))
    drift(thermostat, kinetics, scale, temperature, state.theta, state.p, state.xi, tau)
    return zero(tau)


@implements(drift_compensated, PackedPerCoordinate)
def _(thermostat, kinetics, scale, sigma_theta, temperature, state, tau):
    theta, p, xi = state.theta, state.p, state.xi
    virial, rate, per_variance = (
        thermostat.virial,
        tau * thermostat.gamma,
        crosstalk_rate(sigma_theta, temperature, tau),
    )
    for i in range(p.size):
        v, excess = velocity_and_excess(kinetics, p[i], temperature)
        c = crosstalk(thermostat, per_variance, state.variance, i)
        theta[i] += tau * at(scale, i) * (1.0 - 2.0 * c) * v
        xi[i] += rate * excess
        virial[i] = p[i] * v
    return zero(tau)


@implements(glide, PackedPerCoordinate, LinearMonomial)
def _(thermostat, kinetics, scale, dynamics, state, moment, learning, diffusion, center, sinh, rest):
    theta, p, xi, virial, h = state.theta, state.p, state.xi, thermostat.virial, moment.h
    per_variance = crosstalk_rate(dynamics.sigma_theta, dynamics.temperature, h)
    for i in range(p.size):
        sinh[i] = sinh_flow(kinetics, p[i], 0.5 * h * xi[i])
    if learning:
        learn_from_sinh(
            dynamics.noise, thermostat, kinetics, dynamics.temperature, diffusion, center, state, moment, sinh
        )
    for i in range(p.size):
        c = crosstalk(thermostat, per_variance, state.variance, i)
        theta[i], xi[i], sinh[i], rest[i], virial[i] = glided(
            thermostat, kinetics, dynamics, at(scale, i), h, theta[i], p[i], xi[i], c, sinh[i]
        )
    for i in range(p.size):
        p[i] = end_of_flow(kinetics, p[i], sinh[i], rest[i])
    return zero(h)


@implements(swing, PackedFriction)
def _(thermostat, scale, kinetics, sigma_p, temperature, state, normals, tau, diffusion):
    theta, p, virial, variance = state.theta, state.p, thermostat.virial, 2.0 * diffusion * tau
    for i in range(p.size):
        v, _excess = velocity_and_excess(kinetics, p[i], temperature)
        q = thermalised(kinetics, p[i], tau * sigma_p, normals[i], variance)
        w, _excess = velocity_and_excess(kinetics, q, temperature)
        virial[i] = 0.5 * (p[i] * v + q * w)
        theta[i] += 0.5 * tau * at(scale, i) * (v + w)
        p[i] = q
    return zero(tau)


@implements(swing, PackedPerCoordinate)
def _(thermostat, scale, kinetics, sigma_p, temperature, state, normals, tau, diffusion):
    theta, p, xi, virial = state.theta, state.p, state.xi, thermostat.virial
    variance, rate = 2.0 * diffusion * tau, 0.5 * tau * thermostat.gamma
    for i in range(p.size):
        v, excess = velocity_and_excess(kinetics, p[i], temperature)
        f = xi[i] + rate * excess
        q = thermalised(kinetics, p[i], tau * f, normals[i], variance)
        w, more = velocity_and_excess(kinetics, q, temperature)
        virial[i] = 0.5 * (p[i] * v + q * w)
        theta[i] += 0.5 * tau * at(scale, i) * (v + w)
        p[i] = q
        xi[i] = f + rate * more
    return zero(tau)
