"""A momentum law for any kinetics: draws by a table of the inverse distribution function.

With S(x) = P(|p| > x), the number E = −log S(|p|) is exponentially distributed, and x is a smooth function of E: linear
at 0 and, out in the tail, √E for a Gaussian, E for exponential tails, E² for longer ones. So |p| is a cubic Hermite
spline in E on a uniform grid, with the exact slopes dx/dE = S/f for a density f: found without a search, to about 1e-8 in
probability, in the tails too.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc import checks
from sgmcmc.compiler.field_docs import documented
from sgmcmc.compiler.open_functions import implements
from sgmcmc.compiler.precision import like, zero
from sgmcmc.elementary import log
from sgmcmc.kinetics.functions import (
    curvature,
    draw,
    energy,
    friction_flow,
    inverse_mass,
    log_normaliser,
    velocity,
    velocity_and_excess,
)
from sgmcmc.kinetics.gaussian import Overdamped
from sgmcmc.rng import MOMENTUM, words
from sgmcmc.rng.normals import unit

__all__ = ["Tabulated", "with_momentum_law"]

Array = NDArray[np.float64]
TAIL = 46.0  # the table ends at S = e^−46; a uniform of 64 bits is not below e^−44.4
ACCURACY = 1e-8  # largest error in probability between the nodes


@documented
class Tabulated(NamedTuple):
    """A kinetics with a table of its momentum law at one temperature; made by `with_momentum_law`.

    Parameters
    ----------
    kinetics : NamedTuple
    size : array
        |p| at E = 0, 1/density, 2/density, …
    slope : array
        d|p|/dE there, divided by `density`.
    density : float
        Nodes per unit of E.

    Examples
    --------
    >>> table = sg.kinetics.Tabulated(sg.kinetics.Gaussian(), np.zeros(2), np.zeros(2), density=1.0)
    >>> sg.kinetics.energy(table, 2.0)
    2.0
    """

    kinetics: Any
    size: Any  # |p| at E = 0, 1/density, 2/density, …
    slope: Any  # d|p|/dE there, divided by `density`
    density: float  # nodes per unit of E


@implements(energy, Tabulated)
def _(kinetics: Any, p: Any) -> Any:
    return energy(kinetics.kinetics, p)


@implements(velocity, Tabulated)
def _(kinetics: Any, p: Any) -> Any:
    return velocity(kinetics.kinetics, p)


@implements(curvature, Tabulated)
def _(kinetics: Any, p: Any) -> Any:
    return curvature(kinetics.kinetics, p)


@implements(inverse_mass, Tabulated)
def _(kinetics: Any, p: Any) -> Any:
    return inverse_mass(kinetics.kinetics, p)


@implements(velocity_and_excess, Tabulated)
def _(kinetics: Any, p: Any, temperature: Any) -> Any:
    return velocity_and_excess(kinetics.kinetics, p, temperature)


@implements(friction_flow, Tabulated)
def _(kinetics: Any, p: Any, rate_time: Any) -> Any:
    return friction_flow(kinetics.kinetics, p, rate_time)


@implements(log_normaliser, Tabulated)
def _(kinetics: Any, temperature: Any) -> Any:
    return log_normaliser(kinetics.kinetics, temperature)


@implements(draw, Tabulated)
def _(kinetics: Any, temperature: Any, stream: Any, step: Any, index: Any) -> Any:
    size, slope = kinetics.size, kinetics.slope
    w0, w1, w2, _w3 = words(stream, step, index, MOMENTUM, 0)
    place = -log(unit(w0, w1, kinetics.density)) * kinetics.density
    i = min(int(place), size.size - 2)
    u = place - like(kinetics.density, i)
    beyond = u - 1.0 if u > 1.0 else zero(u)
    u = u - beyond
    v = 1.0 - u
    # Hermite's basis: (1 + 2u)v², u²(3 − 2u), uv², −u²v
    x = (1.0 + 2.0 * u) * v * v * size[i] + u * u * (3.0 - 2.0 * u) * size[i + 1]
    x = x + u * v * (v * slope[i] - u * slope[i + 1]) + beyond * slope[i + 1]
    return -x if w2 < np.uint32(0x80000000) else x


def with_momentum_law(kinetics: Any, temperature: float = 1.0) -> Any:
    """Returns the kinetics itself if its type has a `draw`, else the same kinetics with a table of its law.

    Parameters
    ----------
    kinetics : NamedTuple
        Its `energy` must be even, finite, and grow faster than T log|p|.
    temperature : float
        T of the law.

    Returns
    -------
    NamedTuple
        The kinetics, or a `Tabulated` one.

    Examples
    --------
    >>> sg.kinetics.with_momentum_law(sg.kinetics.Gaussian())
    Gaussian(mass=1.0)
    """
    if isinstance(kinetics, Overdamped) or draw.choose((type(kinetics),)) is not None:
        return kinetics
    temperature = checks.number("temperature", temperature, 0.0, 1e30, open_low=True)
    low, high = _support(kinetics, temperature)
    _check_even(kinetics, low, high)
    for panels in (32, 64, 128, 256):
        edges, tail, hazard = _survival(kinetics, temperature, low, high, panels)
        for density in (32, 128, 512):
            table = _table(kinetics, edges, tail, hazard, density)
            if table is not None:
                return table
    raise ValueError(
        f"{_name(kinetics)}: exp(-K/T) is too rough to be tabulated; give its type a draw with @implements"
    )


def _name(kinetics: Any) -> str:
    return f"kinetics={kinetics!r}"


def _log_density(kinetics: Any, temperature: float, x: Array) -> Array:
    """−(K(x) − K(0))/T."""
    with np.errstate(all="ignore"):
        values = np.array([energy(kinetics, v) for v in x.ravel()], dtype=np.float64).reshape(x.shape)
        start = float(energy(kinetics, np.float64(0.0)))
    if not math.isfinite(start) or np.isnan(values).any() or (values == -math.inf).any():
        raise ValueError(f"{_name(kinetics)} has a K(p) that is not a number above -inf everywhere and finite at p = 0")
    with np.errstate(over="ignore"):
        return -(values - start) / temperature


def _support(kinetics: Any, temperature: float) -> tuple[float, float]:
    """log p from where to where |p| has all of its mass but e^−30 below and e^−60 above."""
    y = np.arange(-600.0, 690.0, 0.5)
    weight = y + _log_density(kinetics, temperature, np.exp(y))  # the density of log |p|
    weight -= weight.max()
    if (
        weight[np.isfinite(weight)][-1] > -60.0
    ):  # an energy that overflows far out says nothing; the last that does not, does
        raise ValueError(
            f"{_name(kinetics)} has no momentum law at temperature={temperature:g}: exp(-K/T) has no finite integral; "
            "K must be finite and grow faster than T log|p|"
        )
    inside = np.flatnonzero(weight > -60.0)
    first = np.flatnonzero(weight > -30.0)[0]
    return float(y[first] - 0.5), float(y[inside[-1] + 1])


def _check_even(kinetics: Any, low: float, high: float) -> None:
    for x in np.exp(np.linspace(low, high, 41)):
        with np.errstate(all="ignore"):
            here, there = float(energy(kinetics, x)), float(energy(kinetics, -x))
        if not math.isclose(here, there, rel_tol=1e-9, abs_tol=1e-12):
            raise ValueError(
                f"{_name(kinetics)} is not even: K({x:.6g}) = {here:.9g}, K({-x:.6g}) = {there:.9g}; K(-p) must be K(p)"
            )


def _survival(kinetics: Any, temperature: float, low: float, high: float, panels: int) -> tuple[Array, Array, Array]:
    """Edges x with their E = −log S(x) and dE/dx = f/S, by Gauss's rule on `panels` panels per factor e."""
    edges = np.concatenate(([0.0], np.exp(np.linspace(low, high, int((high - low) * panels) + 2))))
    nodes, weights = np.polynomial.legendre.leggauss(5)
    half = 0.5 * np.diff(edges)[:, None]
    log_f = _log_density(kinetics, temperature, edges[:-1, None] + half * (1.0 + nodes))
    mass = (half * weights * np.exp(log_f)).sum(axis=1)
    survival = np.cumsum(mass[::-1])[::-1]  # from the tail inwards, so that it is right there to the last digit
    f = np.exp(_log_density(kinetics, temperature, edges[:-1]))
    keep = survival > survival[0] * math.exp(-TAIL - 2.0)
    survival, f = survival[keep], f[keep]
    return edges[:-1][keep], np.log(survival[0] / survival), f / survival


def _table(kinetics: Any, edges: Array, tail: Array, hazard: Array, density: int) -> Tabulated | None:
    """The table with `density` nodes per unit of E, or None if it is not accurate between them."""
    from scipy.interpolate import CubicHermiteSpline

    if not ((np.diff(tail) > 0.0).all() and (hazard > 0.0).all() and np.isfinite(1.0 / hazard).all()):
        return None
    inverse = CubicHermiteSpline(tail, edges, 1.0 / hazard)
    places = np.arange(0.0, TAIL + 0.5 / density, 1.0 / density)
    between = places[:-1] + 0.5 / density
    spline = CubicHermiteSpline(places, inverse(places), inverse(places, 1))
    reached = CubicHermiteSpline(edges, tail, hazard)(spline(between))
    if np.abs(np.exp(-reached) - np.exp(-between)).max() > ACCURACY:
        return None
    return Tabulated(kinetics, inverse(places), inverse(places, 1) / density, float(density))
