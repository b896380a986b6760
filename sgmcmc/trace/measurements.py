"""Measurements of a run beside its draws: moments, temperatures by coordinate, and the weights of draws."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.checks import numbers_in, show, whole_numbers
from sgmcmc.compiler.field_docs import documented

__all__ = ["CoordinateTemperatures", "KeptMoments", "as_weights"]


@documented
class KeptMoments(NamedTuple):
    """Moments of draws that were not kept: with ``keep="moments"``, those of every chain.

    Parameters
    ----------
    n : array (chain,)
        How many draws.
    mean, variance : array (chain, dim)
        The variance is that of `np.var`.

    Examples
    --------
    >>> model, options = sg.models.Gaussian(np.zeros(2)), {"progress": False, "warn": False, "keep": "moments"}
    >>> sg.sample(model, sg.SGNHT(0.5), draws=50, chains=3, **options).moments.mean.shape
    (3, 2)
    """

    n: NDArray[np.int64]
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]


@documented
class CoordinateTemperatures(NamedTuple):
    """E[(θ_j − c_j) ∂U/∂θ_j] of single coordinates in segments of a run, the target's temperature if all is well.

    Parameters
    ----------
    coordinates : array (k,)
        Which: all, or of more than 1024 evenly spaced ones.
    values : array (chain, segment, k)

    Examples
    --------
    >>> trace = sg.sample(sg.models.Gaussian(np.zeros(2)), sg.SGNHT(0.5), 50, progress=False, warn=False)
    >>> trace.by_coordinate.coordinates
    array([0, 1])
    """

    coordinates: NDArray[np.int64]
    values: NDArray[np.float64]

    def checked(self, chains: int) -> CoordinateTemperatures:
        """The same as checked arrays; ValueError if their shapes do not fit."""
        coordinates = whole_numbers("by_coordinate.coordinates", self.coordinates)
        values = numbers_in("by_coordinate.values", self.values)
        if coordinates.ndim != 1 or values.ndim != 3 or values.shape[::2] != (chains, coordinates.size):
            raise ValueError(
                f"by_coordinate.values has shape {values.shape}; give (chain, segment, coordinate) of {chains} chains and "
                f"{coordinates.size} coordinates"
            )
        return CoordinateTemperatures(coordinates, values)


def as_weights(weights: Any, draws: int) -> NDArray[np.float64]:
    """A weight for each draw: those given, or one for all of them; None is 1."""
    found = numbers_in("weights", 1.0 if weights is None else weights)
    if found.shape not in ((), (draws,)) or not (np.isfinite(found).all() and (found >= 0.0).all()):
        raise ValueError(
            f"weights={show(weights)} are no step sizes of {draws} draws; give one, not negative, for each"
        )
    return np.broadcast_to(found, (draws,))
