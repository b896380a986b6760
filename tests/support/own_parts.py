"""Parts that a user could write, each with a wrong twin: a thermostat, a flow, a minibatch scheme, a schedule, a scale."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import sgmcmc as sg
from sgmcmc.compiler.precision import like
from sgmcmc.integrators import flow
from sgmcmc.integrators.preconditioning import at
from sgmcmc.minibatch import choose, variance_share
from sgmcmc.rng import MINIBATCH, integer_below
from sgmcmc.thermostats import (
    at_center,
    couples_coordinates,
    drive,
    friction,
    n_variables,
    relax,
    relaxation,
    relaxed,
    resample,
    sharers,
)


class PerGroup(NamedTuple):
    """One ξ for each group of `size` neighbouring coordinates, driven by their mean of K'² − T K''."""

    gamma: float
    size: int


class SummedPerGroup(PerGroup):
    """The wrong twin: driven by the sum over a group, while its law stays that of the mean."""

    __slots__ = ()


@sg.implements(n_variables, PerGroup)
def _(thermostat, dim):
    return -(-dim // thermostat.size)


@sg.implements(sharers, PerGroup)
def _(thermostat, dim):
    return like(thermostat.gamma, thermostat.size)


@sg.implements(friction, PerGroup)
def _(thermostat, sigma_p, xi, i):
    return xi[i // thermostat.size]


@sg.implements(drive, PerGroup)
def _(thermostat, xi, i, tau, excess):
    xi[i // thermostat.size] += tau * thermostat.gamma * excess / thermostat.size
    return 0.0 * tau


@sg.implements(drive, SummedPerGroup)
def _(thermostat, xi, i, tau, excess):
    xi[i // thermostat.size] += tau * thermostat.gamma * excess
    return 0.0 * tau


@sg.implements(relax, PerGroup)
def _(thermostat, xi, center, variance, normals, dim, sigma_xi, temperature, tau, layout):
    decay, spread = relaxation(thermostat.gamma / thermostat.size, sigma_xi, temperature, tau)
    for k in range(xi.size):
        xi[k] = relaxed(xi[k], at_center(center, variance[k]), decay, spread, normals[k])


@sg.implements(resample, PerGroup)
def _(thermostat, xi, center, variance, normals, dim, temperature):
    for k in range(xi.size):
        xi[k] = (
            at_center(center, variance[k]) + math.sqrt(thermostat.gamma / thermostat.size * temperature) * normals[k]
        )


class Cubic(NamedTuple):
    """One ξ per coordinate that is pulled back more: the Nosé–Hoover thermostat once more, under another name."""

    gamma: float


@sg.implements(n_variables, Cubic)
def _(thermostat, dim):
    return dim


@sg.implements(couples_coordinates, Cubic)
def _(part):
    return False


@sg.implements(friction, Cubic)
def _(thermostat, sigma_p, xi, i):
    return xi[i]


@sg.implements(drive, Cubic)
def _(thermostat, xi, i, tau, excess):
    xi[i] += tau * thermostat.gamma * excess
    return 0.0 * tau


@sg.implements(relax, Cubic)
def _(thermostat, xi, center, variance, normals, dim, sigma_xi, temperature, tau, layout):
    decay, spread = relaxation(thermostat.gamma, sigma_xi, temperature, tau)
    for k in range(xi.size):
        xi[k] = relaxed(xi[k], at_center(center, variance[k]), decay, spread, normals[k])


@sg.implements(resample, Cubic)
def _(thermostat, xi, center, variance, normals, dim, temperature):
    for k in range(xi.size):
        xi[k] = at_center(center, variance[k]) + math.sqrt(thermostat.gamma * temperature) * normals[k]


class Mirror(NamedTuple):
    """A flow, or rather a jump: p ← −p where cos(rate·step) is below 0. Momenta have an even law."""

    rate: float


class Brake(NamedTuple):
    """The wrong twin: friction without its noise."""

    rate: float


@sg.implements(couples_coordinates, Mirror)
@sg.implements(couples_coordinates, Brake)
def _(part):
    return False


@sg.implements(flow, Mirror)
def _(own, tau, kinetics, scale, dynamics, state, gradient, noise, stream, moment):
    sign = -1.0 if math.cos(own.rate * moment.step) < 0.0 else 1.0
    for i in range(state.p.size):
        state.p[i] = sign * state.p[i]


@sg.implements(flow, Brake)
def _(own, tau, kinetics, scale, dynamics, state, gradient, noise, stream, moment):
    for i in range(state.p.size):
        state.p[i] = state.p[i] - tau * own.rate * state.p[i]


class Strided(NamedTuple):
    """Rows from a random one on, in strides: each row has the same chance in every step."""

    stride: int
    size: int = 0


class FirstHalf(NamedTuple):
    """The wrong twin: rows of the first half of the data alone."""

    size: int = 0


@sg.implements(choose, Strided)
def _(minibatch, n_rows, stream, step, memory, rows):
    first = integer_below(n_rows, stream, step, 0, MINIBATCH)
    for i in range(rows.size):
        rows[i] = (first + i * minibatch.stride) % n_rows


@sg.implements(choose, FirstHalf)
def _(minibatch, n_rows, stream, step, memory, rows):
    for i in range(rows.size):
        rows[i] = integer_below(n_rows // 2, stream, step, i, MINIBATCH)


@sg.implements(variance_share, Strided)
def _(minibatch, n_rows, relaxation):
    return 1.0


class Sawtooth(NamedTuple):
    """Steps from `peak` down to a tenth of it, and again; the shorter half of them may be recorded."""

    peak: float
    period: int

    @property
    def longest(self) -> float:
        return self.peak

    def step_sizes(self, steps: Any) -> Any:
        return self.peak * (1.0 - 0.9 * (np.asarray(steps) % self.period) / self.period)

    def is_sampling(self, steps: Any) -> Any:
        return 2 * (np.asarray(steps) % self.period) >= self.period


class Geometric(NamedTuple):
    """A scale of its own for every coordinate: first · ratioⁱ."""

    first: float
    ratio: float


@sg.implements(at, Geometric)
def _(scale, i):
    return scale.first * scale.ratio**i
