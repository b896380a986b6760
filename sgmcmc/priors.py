"""Priors: independent laws of the coordinates of θ, each a −log density per coordinate and its slope.

A prior of your own is a NamedTuple of numbers with two implementations::

    class Cauchy(NamedTuple):
        scale: float = 1.0

    @implements(slope, Cauchy)
    def _(prior, x):
        return 2.0 * x / (prior.scale * prior.scale + x * x)

`slope` alone is enough to sample; `energy` is wanted by ``model.energy`` and ``check_gradient``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

from sgmcmc.checks import number, show
from sgmcmc.compiler.field_docs import documented
from sgmcmc.compiler.open_functions import implements, open_function
from sgmcmc.elementary import exp, log

__all__ = ["Flat", "Gaussian", "Laplace", "LogGamma", "energy", "require_prior", "slope"]

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


@open_function(elementwise=True)
def energy(prior: Any, x: Any) -> Any:
    """Returns −log of the normalised density at the coordinate x.

    Parameters
    ----------
    prior : NamedTuple
    x : float or array

    Returns
    -------
    float or array

    Examples
    --------
    >>> sg.priors.energy(sg.priors.Flat(), 2.0)
    0.0
    """


@open_function(elementwise=True)
def slope(prior: Any, x: Any) -> Any:
    """Returns the derivative of `energy` by x.

    Parameters
    ----------
    prior : NamedTuple
    x : float or array

    Returns
    -------
    float or array

    Examples
    --------
    >>> sg.priors.slope(sg.priors.Gaussian(scale=2.0), np.array([0.0, 4.0]))
    array([0., 1.])
    """


class _GaussianFields(NamedTuple):
    scale: float
    mean: float


@documented
class Gaussian(_GaussianFields):
    """Gaussian prior: N(mean, scale²) for every coordinate.

    Parameters
    ----------
    scale : float, above 0
        Standard deviation.
    mean : float

    Examples
    --------
    >>> sg.priors.Gaussian(scale=10.0)
    Gaussian(scale=10.0, mean=0.0)
    """

    __slots__ = ()

    def __new__(cls, scale: float = 1.0, mean: float = 0.0) -> Self:
        if math.isinf(number("mean", mean)):
            raise ValueError(f"mean={show(mean)} is no mean; give a finite number")
        return super().__new__(cls, _scale(scale), float(mean))

    def __reduce__(self) -> Any:
        return type(self)._make, (tuple(self),)  # past the checks, which would widen a float32 copy


@implements(energy, Gaussian)
def _(prior: Any, x: Any) -> Any:
    z = (x - prior.mean) / prior.scale
    return 0.5 * z * z + (log(prior.scale) + _LOG_SQRT_2PI)


@implements(slope, Gaussian)
def _(prior: Any, x: Any) -> Any:
    # The reciprocal leaves the loop over coordinates; a division by scale² would stay in it.
    return (1.0 / (prior.scale * prior.scale)) * (x - prior.mean)


class _LaplaceFields(NamedTuple):
    scale: float


@documented
class Laplace(_LaplaceFields):
    """Laplace prior: the density exp(−|x|/scale) / (2 scale) for every coordinate; the slope at 0 is taken as 0.

    Parameters
    ----------
    scale : float, above 0

    Examples
    --------
    >>> sg.priors.slope(sg.priors.Laplace(scale=2.0), -3.0)
    -0.5
    """

    __slots__ = ()

    def __new__(cls, scale: float = 1.0) -> Self:
        return super().__new__(cls, _scale(scale))

    def __reduce__(self) -> Any:
        return type(self)._make, (tuple(self),)


@implements(energy, Laplace)
def _(prior: Any, x: Any) -> Any:
    return abs(x) / prior.scale + log(2.0 * prior.scale)


@implements(slope, Laplace)
def _(prior: Any, x: Any) -> Any:
    sign = 1.0 if x > 0.0 else (-1.0 if x < 0.0 else x)  # x itself: 0 gives 0, and NaN stays NaN
    return (1.0 / prior.scale) * sign


class _LogGammaFields(NamedTuple):
    shape: float


@documented
class LogGamma(_LogGammaFields):
    """Log-gamma prior: x is the logarithm of a Gamma(shape, 1), so softmax of many such x is Dirichlet(shape).

    Parameters
    ----------
    shape : float, above 0

    Examples
    --------
    >>> float(sg.priors.slope(sg.priors.LogGamma(shape=1.0), 0.0))
    0.0
    """

    __slots__ = ()

    def __new__(cls, shape: float = 1.0) -> Self:
        return super().__new__(cls, number("shape", shape, 0.0, 1e300, open_low=True))

    def __reduce__(self) -> Any:
        return type(self)._make, (tuple(self),)


@implements(energy, LogGamma)
def _(prior: Any, x: Any) -> Any:
    return exp(x) - prior.shape * x + math.lgamma(prior.shape)


@implements(slope, LogGamma)
def _(prior: Any, x: Any) -> Any:
    return exp(x) - prior.shape


class Flat(NamedTuple):
    """No prior: the improper density 1.

    Examples
    --------
    >>> sg.priors.slope(sg.priors.Flat(), 3.0)
    0.0
    """


@implements(energy, Flat)
def _(prior: Any, x: Any) -> Any:
    return 0.0 * x  # of the type of x, and NaN where x is


@implements(slope, Flat)
def _(prior: Any, x: Any) -> Any:
    return 0.0 * x


def _scale(value: Any) -> float:
    scale = number("scale", value, 0.0, open_low=True)
    if math.isinf(scale):
        raise ValueError("scale=inf is no density; give a finite number above 0, or priors.Flat() for no prior")
    return scale


def require_prior(prior: Any) -> Any:
    """Returns the prior itself, if it has a slope; TypeError otherwise.

    Parameters
    ----------
    prior : NamedTuple

    Returns
    -------
    NamedTuple

    Examples
    --------
    >>> sg.priors.require_prior(sg.priors.Laplace(2.0))
    Laplace(scale=2.0)
    """
    if slope.choose((type(prior),)) is None:
        name = type(prior).__name__
        raise TypeError(
            f"prior={show(prior)} is a {name}, not a prior; give one of sgmcmc.priors, "
            "or a NamedTuple of your own with @implements(slope, ...)"
        )
    return prior
