"""Packing: small chains side by side, so that vectors run across chains.

Coordinate c of the chain in lane l stands at c·width + l. Every letter of a step is a loop over the coordinates of one chain;
over a packed array the same loop takes the same step for all chains of the pack at once. What is left to say is where sums over
coordinates are taken: here element by element, and added up once in a while.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.dispatch import implements
from sgmcmc.integrators import BAOAB, Dynamics, Euler, SymmetricSplitting
from sgmcmc.kinetics import Overdamped, velocity_and_excess
from sgmcmc.letters import Units, at, drift
from sgmcmc.thermostats import FixedFriction, PerCoordinate

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
    return dim <= LARGEST and elementwise and (by_letters or overdamped)


def packed(dynamics: Dynamics, width: int, virial: NDArray[Any]) -> Dynamics:
    """The same dynamics for a pack; `virial` takes up τ p K'(p) of every drift of length τ."""
    scale, thermostat = dynamics.scale, dynamics.thermostat
    if isinstance(scale, Units):
        scale = Units(np.repeat(scale.values, width))
    kind: Any = PackedPerCoordinate if isinstance(thermostat, PerCoordinate) else PackedFriction
    return dynamics._replace(scale=scale, thermostat=kind._make((*thermostat, virial)))


class _PackedFriction(NamedTuple):
    virial: Any


class PackedFriction(_PackedFriction, FixedFriction):  # type: ignore[misc]
    """A constant friction in a pack."""

    __slots__ = ()


class _PackedPerCoordinate(NamedTuple):
    gamma: float
    adaptive: float
    virial: Any


class PackedPerCoordinate(_PackedPerCoordinate, PerCoordinate):  # type: ignore[misc]
    """A friction for every coordinate of every chain in a pack."""

    __slots__ = ()


@implements(drift, PackedFriction)
def _(thermostat, kinetics, scale, temperature, theta, p, xi, tau):
    virial = thermostat.virial
    for i in range(p.size):
        v, _excess = velocity_and_excess(kinetics, p[i], temperature)
        theta[i] += tau * at(scale, i) * v
        virial[i] += tau * p[i] * v
    return tau - tau


@implements(drift, PackedPerCoordinate)
def _(thermostat, kinetics, scale, temperature, theta, p, xi, tau):
    virial, rate = thermostat.virial, tau * thermostat.gamma
    for i in range(p.size):
        v, excess = velocity_and_excess(kinetics, p[i], temperature)
        theta[i] += tau * at(scale, i) * v
        xi[i] += rate * excess
        virial[i] += tau * p[i] * v
    return tau - tau
