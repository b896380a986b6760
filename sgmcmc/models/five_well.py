"""The five-well potential in one dimension, with the answers that quadrature gives.

    U(θ) = ¾ θ² + (3/2) exp(−S(θ)),    S(θ) = Σ_{i=1..10} c_i sin(i φ),    φ = π (θ + 4)/4

The formula in print (Zhang et al. 2017) is misprinted; this one reproduces the printed curve of the density. Everything
else follows from it by quadrature (mpmath, 30 digits) and is right to the digits given: `Z` = ∫ e^{−U}, the moments, the
wells, the barriers between them, and the mass between the barriers.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.compiler.open_functions import implements, leaf
from sgmcmc.elementary import exp, sin_cos_turns
from sgmcmc.potentials import Model, add_energy, add_gradient, fill_gradients

__all__ = ["FiveWell"]

_QUARTER_PI = 0.25 * math.pi


class _Fields(NamedTuple):
    pass


class FiveWell(_Fields, Model):
    """Five wells in one dimension, and a sixth of mass 0.006: U(θ) = ¾ θ² + (3/2) exp(−S(θ)).

    Examples
    --------
    >>> model = sg.models.FiveWell()
    >>> model.dim, model.mean
    (1, array([-0.01948505]))
    """

    __slots__ = ()
    __repr__ = Model._repr

    Z: ClassVar[float] = 0.62790173576
    MEAN: ClassVar[float] = -0.01948504732
    SECOND_MOMENT: ClassVar[float] = 0.60389557717
    BELOW_ZERO: ClassVar[float] = 0.61214067750  # P(θ < 0)
    SQUARED_GRADIENT: ClassVar[float] = 69.0842365739  # E[U'²]
    WELLS: ClassVar[tuple[float, ...]] = (
        -1.850657195,
        -1.083963305,
        -0.2117549388,
        0.6420632721,
        1.488428136,
        2.333665603,
    )
    BARRIERS: ClassVar[tuple[float, ...]] = (-1.557180655, -0.6864382016, 0.227638381, 1.142586752, 1.974180441)
    MASSES: ClassVar[tuple[float, ...]] = (0.02753018, 0.14624848, 0.45095278, 0.32921449, 0.03970899, 0.00634507)

    @property
    def dim(self) -> int:
        """One coordinate."""
        return 1

    @property
    def mean(self) -> NDArray[np.float64]:
        """E[θ]."""
        return np.array([self.MEAN])

    @property
    def cov(self) -> NDArray[np.float64]:
        """The variance of θ, as a matrix."""
        return np.array([[self.SECOND_MOMENT - self.MEAN**2]])


@leaf
def _series(theta: Any) -> Any:
    """(S, dS/dφ) from one sine and one cosine: the angles iφ by addition, odd and even ones in steps of 2φ."""
    s1, c1 = sin_cos_turns(0.125 * (theta + 4.0))
    s2, c2 = 2.0 * s1 * c1, c1 * c1 - s1 * s1
    s3, c3 = s1 * c2 + c1 * s2, c1 * c2 - s1 * s2
    s4, c4 = 2.0 * s2 * c2, c2 * c2 - s2 * s2
    s5, c5 = s3 * c2 + c3 * s2, c3 * c2 - s3 * s2
    s6, c6 = s4 * c2 + c4 * s2, c4 * c2 - s4 * s2
    s7, c7 = s3 * c4 + c3 * s4, c3 * c4 - s3 * s4
    s8, c8 = 2.0 * s4 * c4, c4 * c4 - s4 * s4
    s9, c9 = s5 * c4 + c5 * s4, c5 * c4 - s5 * s4
    s10, c10 = s6 * c4 + c6 * s4, c6 * c4 - s6 * s4
    odd = -0.47 * s1 - 0.71 * s3 + 0.24 * s5 + 0.27 * s7 + 0.87 * s9
    even = -0.83 * s2 - 0.02 * s4 + 0.01 * s6 - 0.37 * s8 - 0.37 * s10
    slope_odd = -0.47 * c1 - 2.13 * c3 + 1.20 * c5 + 1.89 * c7 + 7.83 * c9  # i c_i
    slope_even = -1.66 * c2 - 0.08 * c4 + 0.06 * c6 - 2.96 * c8 - 3.70 * c10
    return odd + even, slope_odd + slope_even


@leaf
def _slope(theta: Any) -> Any:
    """U' = (3/2) θ − (3/2) exp(−S) S' with S' = (π/4) dS/dφ."""
    s, slope = _series(theta)
    return 1.5 * (theta - exp(-s) * (_QUARTER_PI * slope))


@implements(add_gradient, FiveWell)
def _(model: Any, theta: Any, rows: Any, out: Any) -> None:
    out[0] += _slope(theta[0])


@implements(fill_gradients, FiveWell)
def _(model: Any, theta: Any, scratch: Any, out: Any) -> None:
    chains, slopes = theta[0], out[0]
    for i in range(chains.size):
        slopes[i] = _slope(chains[i])


@implements(add_energy, FiveWell)
def _(model: Any, theta: Any, rows: Any) -> Any:
    s, _ = _series(theta[0])
    return 0.75 * theta[0] * theta[0] + 1.5 * exp(-s)
