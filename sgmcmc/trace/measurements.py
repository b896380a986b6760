"""Measurements of a run beside its draws: moments, temperatures by coordinate, and the weights of draws."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.checks import numbers_in, show, whole_numbers

__all__ = ["CoordinateTemperatures", "KeptMoments", "as_weights"]


class KeptMoments(NamedTuple):
    """Moments of draws that were not kept: how many, `n` (chain,), `mean` and `variance` (chain, dim), as `np.var` has it."""

    n: NDArray[np.int64]
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]


class CoordinateTemperatures(NamedTuple):
    """E[(θ_j − c_j) ∂U/∂θ_j] of single coordinates in segments of a run, the target's temperature if all is well.

    coordinates: which, (k,): all, or of more than 1024 evenly spaced ones. values: (chain, segment, k).
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
