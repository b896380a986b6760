"""One-dimensional laws by quadrature: normaliser, distribution function, quantiles and moments of exp(−E(x)/T).

Everything random is compared with these. Nothing here uses the samplers, or their random numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Law", "kinetic", "momentum_law", "thermostat_law"]

Array = NDArray[np.float64]
PANELS, NODES = 4000, 8  # Gauss's rule on equal panels in y, x = scale·sinh(y): fine near 0, long in the tails


class Law:
    """The law with density ∝ exp(−energy(x)/temperature) on the real line.

    Distribution function and quantiles are Hermite splines between y and the normal score t = Φ⁻¹(P(X ≤ x)), a smooth,
    nearly straight line in the tails too: right to about 1e-11 in probability.

    Parameters
    ----------
    energy : callable
        Takes and gives arrays.
    temperature : float
    scale : float
        That of x.

    Examples
    --------
    >>> law = sg.testing.Law(lambda x: x**2 / 2, temperature=4.0)
    >>> round(law.variance, 6)
    4.0
    """

    def __init__(self, energy: Callable[[Array], Array], temperature: float = 1.0, scale: float = 1.0) -> None:
        self.energy, self.temperature, self.scale = energy, temperature, scale
        y = np.linspace(-40.0, 40.0, 2001)
        with np.errstate(all="ignore"):
            weight = -energy(scale * np.sinh(y)) / temperature + np.log(np.cosh(y))
        weight = np.where(np.isfinite(weight), weight, -np.inf)
        self._offset = float(weight.max())
        inside = np.flatnonzero(weight > self._offset - 90.0)
        if inside[0] == 0 or inside[-1] == y.size - 1:
            raise ValueError("the law has no finite integral, or a scale far from `scale`; give the scale of x")
        edges = np.linspace(y[inside[0] - 1], y[inside[-1] + 1], PANELS + 1)
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        half = 0.5 * np.diff(edges)[:, None]
        y = edges[:-1, None] + half * (1.0 + nodes)
        mass = half * weights * np.exp(self._log_weight(y))
        self._total = float(mass.sum())
        self.x, self.mass = (scale * np.sinh(y)).ravel(), (mass / self._total).ravel()  # a rule: mean(f) = Σ mass f(x)
        self._splines = self._make_splines(edges, mass.sum(axis=1) / self._total)

    def _make_splines(self, edges: Array, mass: Array) -> tuple[Any, Any]:
        """t(y) and y(t), with their exact slopes, over all but 1e-30 of the mass."""
        from scipy.interpolate import CubicHermiteSpline
        from scipy.special import ndtri

        below = np.concatenate(([0.0], np.cumsum(mass)))
        above = np.concatenate(
            (np.cumsum(mass[::-1])[::-1], [0.0])
        )  # from the other end: right there to the last digit
        keep = (below > 1e-30) & (above > 1e-30)
        t = np.where(below < 0.5, ndtri(np.maximum(below, 1e-300)), -ndtri(np.maximum(above, 1e-300)))[keep]
        y = edges[keep]
        log_phi = -0.5 * t**2 - 0.5 * np.log(2.0 * np.pi)
        slope = np.exp(self._log_weight(y) - np.log(self._total) - log_phi)  # dt/dy = f(y)/φ(t)
        return CubicHermiteSpline(y, t, slope), CubicHermiteSpline(t, y, 1.0 / slope)

    def _log_weight(self, y: Array) -> Array:
        return -self.energy(self.scale * np.sinh(y)) / self.temperature + np.log(np.cosh(y)) - self._offset

    @property
    def log_normaliser(self) -> float:
        """log ∫ exp(−energy/T) dx."""
        return float(np.log(self._total * self.scale) + self._offset)

    def mean(self, function: Callable[[Array], Array]) -> float:
        return float((self.mass * function(self.x)).sum())

    @cached_property
    def variance(self) -> float:
        center = self.mean(lambda x: x)
        return self.mean(lambda x: (x - center) ** 2)

    def density(self, x: ArrayLike) -> Array:
        values: Array = np.exp(-self.energy(np.asarray(x, float)) / self.temperature - self.log_normaliser)
        return values

    def cdf(self, x: ArrayLike) -> Array:
        """P(X ≤ x)."""
        from scipy.special import ndtr

        spline = self._splines[0]
        values: Array = ndtr(spline(np.clip(np.arcsinh(np.asarray(x, float) / self.scale), spline.x[0], spline.x[-1])))
        return values

    def quantile(self, u: ArrayLike) -> Array:
        """The inverse of `cdf`."""
        from scipy.special import ndtri

        return self.of_normal(ndtri(np.asarray(u, float)))

    def of_normal(self, t: ArrayLike) -> Array:
        """x with P(X ≤ x) = Φ(t): what a standard normal becomes in this law."""
        spline = self._splines[1]
        x: Array = self.scale * np.sinh(spline(np.clip(t, spline.x[0], spline.x[-1])))
        return x

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        return self.quantile(rng.random(n))


def kinetic(kinetics: Any, p: ArrayLike) -> Array:
    """K(p), K'(p) and K''(p), compiled: an array (3, *p.shape)."""
    from sgmcmc.samplers import in_precision
    from sgmcmc.testing import batch_step

    p = np.ascontiguousarray(p, dtype=np.float64)
    values = np.empty((3, p.size))
    batch_step.kinetic(in_precision(kinetics, np.float64), p.ravel(), values)
    return values.reshape(3, *p.shape)


def momentum_law(kinetics: Any, temperature: float = 1.0) -> Law:
    """Returns exp(−K(p)/T), from the kinetics' energy alone.

    Parameters
    ----------
    kinetics : NamedTuple
    temperature : float

    Returns
    -------
    Law

    Examples
    --------
    >>> round(sg.testing.momentum_law(sg.kinetics.Gaussian(mass=2.0)).variance, 6)
    2.0
    """
    try:
        return _momentum_law(kinetics, float(temperature))
    except TypeError:  # a kinetics with arrays has no hash
        return _momentum_law.__wrapped__(kinetics, float(temperature))


@lru_cache(maxsize=64)
def _momentum_law(kinetics: Any, temperature: float) -> Law:
    return Law(lambda p: kinetic(kinetics, p)[0], temperature)


@lru_cache(maxsize=64)
def thermostat_law(center: float, gamma: float, temperature: float, sharers: float = 1.0) -> Law:
    """exp(−F(ξ)/T) with F = (ξ − μ)²/(2γ/sharers)."""
    v = gamma / sharers
    return Law(lambda x: 0.5 * (x - center) ** 2 / v, temperature, float(np.sqrt(v * temperature)))
