"""Gaussian kinetics: the kinetic energy of classical mechanics, and the absence of any."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sgmcmc import checks
from sgmcmc.compiler.field_docs import documented
from sgmcmc.compiler.open_functions import implements
from sgmcmc.compiler.precision import zero
from sgmcmc.elementary import exp
from sgmcmc.kinetics.functions import (
    curvature,
    draw,
    energy,
    fill_momenta,
    fill_one_by_one,
    friction_flow,
    inverse_mass,
    log_normaliser,
    velocity,
    velocity_and_excess,
)
from sgmcmc.rng import MOMENTUM, fill_single_normals, normal_pair, words

__all__ = ["Gaussian", "Overdamped"]

LARGEST = 1e30  # masses and the like must be numbers in single precision too


class _GaussianFields(NamedTuple):
    mass: float


@documented
class Gaussian(_GaussianFields):
    """Gaussian kinetics K(p) = p²/(2m): momenta are N(0, mT).

    Parameters
    ----------
    mass : float, above 0
        m.

    Examples
    --------
    >>> sg.kinetics.velocity(sg.kinetics.Gaussian(mass=4.0), 2.0)
    0.5
    """

    __slots__ = ()

    def __new__(cls, mass: float = 1.0) -> Gaussian:
        return super().__new__(cls, checks.number("mass", mass, 0.0, LARGEST, open_low=True))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._make, (tuple(self),)


class Overdamped(NamedTuple):
    """No momentum at all: the dynamics is that of θ alone, as in Langevin dynamics without inertia.

    Examples
    --------
    >>> sg.Sampler(0.1, kinetics=None, sigma_theta=1.0).kinetics
    Overdamped()
    """


@implements(draw, Overdamped)
def _(kinetics: Any, temperature: Any, stream: Any, step: Any, index: Any) -> Any:
    return zero(temperature)  # there is no momentum to draw


@implements(energy, Gaussian)
def _(kinetics: Any, p: Any) -> Any:
    return p * (0.5 * p / kinetics.mass)


@implements(velocity, Gaussian)
def _(kinetics: Any, p: Any) -> Any:
    return p * (1.0 / kinetics.mass)  # loops compute the reciprocal once


@implements(curvature, Gaussian)
def _(kinetics: Any, p: Any) -> Any:
    return 1.0 / kinetics.mass


@implements(inverse_mass, Gaussian)
def _(kinetics: Any, p: Any) -> Any:
    return 1.0 / kinetics.mass


@implements(velocity_and_excess, Gaussian)
def _(kinetics: Any, p: Any, temperature: Any) -> Any:
    inverse = 1.0 / kinetics.mass
    v = p * inverse
    return v, v * v - temperature * inverse


@implements(friction_flow, Gaussian)
def _(kinetics: Any, p: Any, rate_time: Any) -> Any:
    return p * exp(-rate_time * (1.0 / kinetics.mass))


@implements(draw, Gaussian)
def _(kinetics: Any, temperature: Any, stream: Any, step: Any, index: Any) -> Any:
    w0, w1, w2, w3 = words(stream, step, index, MOMENTUM, 0)
    z, _unused = normal_pair(w0, w1, w2, w3, kinetics.mass)
    return np.sqrt(kinetics.mass * temperature) * z


@implements(fill_momenta, Gaussian)
def _(kinetics: Any, temperature: Any, p: Any, stream: Any, step: Any, first: Any) -> None:
    # Many at a time: 2 ns a number in place of 22.
    fill_single_normals(p, stream, step, MOMENTUM, first)
    unit = np.sqrt(kinetics.mass * temperature)
    for i in range(p.size):
        p[i] = unit * p[i]


implements(fill_momenta, Gaussian, device=True)(fill_one_by_one)


@implements(log_normaliser, Gaussian)
def _(kinetics: Any, temperature: Any) -> Any:
    return 0.5 * math.log(2.0 * math.pi * kinetics.mass * temperature)
