"""The truth that draws are measured against: means and standard deviations, given, of a long run, or exact."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc import checks
from sgmcmc.models.five_well import FiveWell
from sgmcmc.models.gaussian import Gaussian
from sgmcmc.models.linear import LinearRegression
from sgmcmc.models.mixture import GaussianMixture
from sgmcmc.potentials import add_energy
from sgmcmc.trace import Trace

__all__ = ["Reference", "read_reference", "wells_at"]

Array = NDArray[np.float64]
_WAYS = 'give a Trace, a pair (mean, sd), "exact", or None'


class Reference(NamedTuple):
    """Mean and standard deviation of every parameter."""

    mean: Array
    sd: Array


def read_reference(reference: Any, model: Any, dim: int, temperature: float) -> Reference | None:
    """What `compare` takes as ``reference=``."""
    if reference is None:
        return None
    if isinstance(reference, str):
        checks.one_of("reference", reference, ("exact",))
        return _checked(*_exact(model, temperature), dim)
    if isinstance(reference, Trace):
        flat = reference.draws.reshape(-1, reference.dim).astype(np.float64)
        return _checked(flat.mean(axis=0), flat.std(axis=0, ddof=1), dim)
    if isinstance(reference, tuple | list) and len(reference) == 2:
        return _checked(reference[0], reference[1], dim)
    raise TypeError(f"reference is a {type(reference).__name__}; {_WAYS}")


def _checked(mean: Any, sd: Any, dim: int) -> Reference:
    arrays = []
    for name, value in (("mean", mean), ("sd", sd)):
        array = checks.finite_array(f"reference {name}", value)
        if array.shape not in ((), (dim,)):
            raise ValueError(f"reference {name} has shape {array.shape}; give ({dim},), one number for each parameter")
        arrays.append(np.array(np.broadcast_to(array, (dim,))))
    if not (arrays[1] > 0.0).all():
        raise ValueError(f"reference sd goes down to {arrays[1].min():g}; give standard deviations above 0")
    return Reference(arrays[0], arrays[1])


def _exact(model: Any, temperature: float) -> tuple[Array, Array]:
    """Moments of exp(−U/T) where they are known."""
    if isinstance(model, FiveWell):
        wells = wells_at(temperature)
        return np.array([wells.mean]), np.array([wells.sd])
    if isinstance(model, Gaussian):
        return model.mean, np.sqrt(temperature * np.diag(model.cov))
    if isinstance(model, LinearRegression):
        mean, cov = model.posterior()
        return mean, np.sqrt(temperature * np.diag(cov))
    if isinstance(model, GaussianMixture) and temperature == 1.0:
        return model.mean, np.sqrt(np.diag(model.cov))
    raise ValueError(
        f"reference='exact' is not known for {model!r} at temperature {temperature:g}; give a Trace or a pair (mean, sd)"
    )


class Wells(NamedTuple):
    """The five-well potential at some temperature: moments and the mass between the barriers."""

    mean: float
    sd: float
    masses: Array


def wells_at(temperature: float) -> Wells:
    """By the trapezium rule on 10⁴ points, between which exp(−U/T) is smooth; U as plain Python, so nothing compiles."""
    model, rows = FiveWell(), np.empty(0, np.int64)
    grid = np.linspace(-10.0 * np.sqrt(max(temperature, 1.0)), 10.0 * np.sqrt(max(temperature, 1.0)), 10_001)
    weight = np.exp(
        -np.array([float(add_energy(model, grid[i : i + 1], rows)) for i in range(grid.size)]) / temperature
    )
    weight /= weight.sum()
    mean = float(grid @ weight)
    below = np.concatenate(([0.0], np.cumsum(0.5 * (weight[1:] + weight[:-1]))))
    edges = np.interp(np.array(model.BARRIERS), grid, below)
    masses = np.diff(np.concatenate(([0.0], edges, [1.0])))
    return Wells(mean, float(np.sqrt(((grid - mean) ** 2) @ weight)), masses)
