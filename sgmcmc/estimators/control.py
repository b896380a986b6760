"""Control variates: rows are compared with themselves at a fixed centre, whose whole gradient is known.

    ∇Ũ(θ) = (N/n) Σ_rows [∇ℓ_i(θ) − ∇ℓ_i(c)] + Σ_all ∇ℓ_i(c) + ∇(−log prior(θ))

Unbiased for every centre c. The noise is that of the differences, so its variance is of order |θ − c|² and vanishes at c; near
a mode, where |θ − c|² is of order 1/N, it is smaller by a factor of order N than that of plain rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sgmcmc.bias.gradients import gradient_at
from sgmcmc.checks import finite_array
from sgmcmc.compiler.field_docs import documented
from sgmcmc.compiler.open_functions import implements
from sgmcmc.estimators.wrapper import Around
from sgmcmc.potentials import (
    PythonPotential,
    add_energy,
    add_gradient,
    check_model,
    dim_of,
    energy_of,
    prior_of,
    rows_of,
)
from sgmcmc.potentials import add_prior_gradient as prior_slope

__all__ = ["ControlVariate", "control_variate", "find_mode"]

Array = NDArray[np.float64]


class _Fields(NamedTuple):
    inner: Any
    prior: Any
    center: Array
    per_row: Array  # Σ_all ∇ℓ_i(c) / N


@documented
class ControlVariate(_Fields, Around):
    """A model with the same posterior as the one inside, and gradients with less noise; made by `control_variate`.

    Parameters
    ----------
    inner : any compiled model
    prior : NamedTuple, that of `inner`
    center : array (dim,)
    per_row : array (dim,)
        Σ_all ∇ℓ_i(center) / N.

    Examples
    --------
    >>> model = sg.models.LinearRegression([[1.0], [1.0]], [1.0, 3.0])
    >>> sg.estimators.control_variate(model, center=[2.0]).per_row
    array([0.])
    """

    __slots__ = ()

    @property
    def n_rows(self) -> int:
        """How many rows of data there are."""
        return rows_of(self.inner)

    def __repr__(self) -> str:
        return f"ControlVariate({self.inner!r})"


def control_variate(model: Any, center: ArrayLike | None = None) -> ControlVariate:
    """Returns the model with rows compared with themselves at `center`.

    Each row then costs two evaluations; the whole gradient at the centre is computed once, here.

    Parameters
    ----------
    model : any compiled model with data
    center : array (dim,), optional
        None is a mode, by `find_mode`.

    Returns
    -------
    ControlVariate

    Examples
    --------
    >>> model = sg.models.LinearRegression([[1.0], [1.0]], [1.0, 3.0])
    >>> sg.estimators.control_variate(model, center=[2.0]).center
    array([2.])
    """
    if isinstance(model, PythonPotential):
        raise TypeError(f"{model!r} has a gradient in Python; control variates are for compiled models")
    check_model(model)
    if rows_of(model) == 0:
        raise ValueError(f"{model!r} has no data, so its gradient has no noise; use it as it is")
    c = find_mode(model) if center is None else finite_array("center", center, 1)
    if c.shape != (dim_of(model),):
        raise ValueError(f"center has shape {c.shape}; give ({dim_of(model)},)")
    slope = np.zeros(c.size)
    prior_slope(model, c, slope)
    per_row = (gradient_at(model, c) - slope) / rows_of(model)
    return ControlVariate._make((model, prior_of(model), np.array(c), per_row))


def find_mode(model: Any, init: ArrayLike | None = None) -> Array:
    """Returns a mode of the posterior, over all rows, by L-BFGS.

    Parameters
    ----------
    model : any model with an energy
    init : array (dim,), optional
        None is 0.

    Returns
    -------
    array (dim,)

    Examples
    --------
    >>> sg.estimators.find_mode(sg.models.Gaussian([3.0, -1.0])).round(6)
    array([ 3., -1.])
    """
    from scipy.optimize import minimize

    start = np.zeros(dim_of(model)) if init is None else finite_array("init", init, 1)
    scale = max(rows_of(model), 1)

    def both(theta: Array) -> tuple[float, Array]:
        value = model.energy(theta) if hasattr(model, "energy") else energy_of(model, theta)
        return float(value) / scale, gradient_at(model, theta) / scale

    found = minimize(both, start, jac=True, method="L-BFGS-B", options={"maxiter": 1000, "ftol": 1e-15, "gtol": 1e-12})
    return np.asarray(found.x, np.float64)


@implements(add_gradient, ControlVariate)
def _(model: Any, theta: Any, rows: Any, out: Any) -> None:
    add_gradient(model.inner, theta, rows, out)
    for j in range(out.size):
        out[j] = -out[j]
    add_gradient(model.inner, model.center, rows, out)  # −(−S(θ) + S(c)) = S(θ) − S(c), with no array beside `out`
    for j in range(out.size):
        out[j] = rows.size * model.per_row[j] - out[j]


@implements(add_energy, ControlVariate)
def _(model: Any, theta: Any, rows: Any) -> Any:
    return add_energy(model.inner, theta, rows)
