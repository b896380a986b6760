"""Importance-weighted rows: those that matter more come more often, and count for less each time.

A row i fills m_i ≥ 1 of M slots, in proportion to its weight, and a slot stands for 1/m_i of its row. Σ_slots ∇ℓ/m = Σ_i ∇ℓ_i, so
the minibatch rules, which choose slots with equal chances, choose row i with chance m_i/M and leave the gradient unbiased.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sgmcmc.bias.gradients import gradient_at
from sgmcmc.checks import finite_array, integer
from sgmcmc.compiler.field_docs import documented
from sgmcmc.compiler.open_functions import implements
from sgmcmc.estimators.wrapper import Around
from sgmcmc.potentials import (
    PythonPotential,
    add_energy,
    add_gradient,
    add_prior_gradient,
    check_model,
    prior_of,
    rows_of,
)

__all__ = ["ImportanceRows", "importance_rows"]


class _Fields(NamedTuple):
    inner: Any
    prior: Any
    row: NDArray[np.int64]  # of each slot
    share: NDArray[np.float64]  # 1/m of its row


@documented
class ImportanceRows(_Fields, Around):
    """A model with the same posterior as the one inside, whose rows are slots; made by `importance_rows`.

    Parameters
    ----------
    inner : any compiled model
    prior : NamedTuple, that of `inner`
    row : array (slots,)
        The row of each slot.
    share : array (slots,)
        1/m of its row, m the slots that the row fills.

    Examples
    --------
    >>> model = sg.models.LinearRegression([[1.0], [1.0]], [1.0, 3.0])
    >>> sg.estimators.importance_rows(model, weights=[1.0, 3.0], slots=2).row
    array([0, 1, 1, 1])
    """

    __slots__ = ()

    @property
    def n_rows(self) -> int:
        """How many slots there are."""
        return self.row.size

    def gradient(self, theta: ArrayLike, rows: ArrayLike | None = None) -> NDArray[np.float64]:
        """∇U(θ), that of the model inside; with `rows`, the estimate from these slots."""
        return gradient_at(self.inner, np.asarray(theta, float)) if rows is None else super().gradient(theta, rows)

    def __repr__(self) -> str:
        return f"ImportanceRows({self.inner!r}, {self.n_rows} slots)"


def importance_rows(
    model: Any, weights: ArrayLike | None = None, slots: int = 4, center: ArrayLike | None = None
) -> Any:
    """Returns the model with rows chosen in proportion to `weights`, as nearly as `slots` per row on the average allow.

    Parameters
    ----------
    model : any compiled model with data
    weights : array (rows,), above 0, optional
        None is the length of each row's gradient at `center`, the best for the trace of the noise there, mixed half and
        half with equal weights so that no row is forgotten elsewhere.
    slots : int
        How many per row, on the average.
    center : array (dim,), optional
        None is a mode.

    Returns
    -------
    ImportanceRows

    Examples
    --------
    >>> model = sg.models.LinearRegression([[1.0], [1.0]], [1.0, 3.0])
    >>> sg.estimators.importance_rows(model, weights=[1.0, 3.0], slots=2).n_rows
    4
    """
    if isinstance(model, PythonPotential):
        raise TypeError(f"{model!r} has a gradient in Python; importance weights are for compiled models")
    check_model(model)
    n = rows_of(model)
    if n == 0:
        raise ValueError(f"{model!r} has no data, so there are no rows to choose from; use it as it is")
    w = _lengths(model, center) if weights is None else finite_array("weights", weights, 1)
    if w.shape != (n,) or not (w > 0.0).all():
        raise ValueError(
            f"weights has shape {w.shape} and goes down to {w.min(initial=1.0):g}; give {n} numbers above 0"
        )
    counts = np.maximum(1, np.round(integer("slots", slots, 1, 1000) * n * w / w.sum())).astype(np.int64)
    row = np.repeat(np.arange(n), counts)
    return ImportanceRows._make((model, prior_of(model), row, 1.0 / counts[row]))


def _lengths(model: Any, center: ArrayLike | None) -> NDArray[np.float64]:
    from sgmcmc.estimators.control import find_mode

    c = find_mode(model) if center is None else finite_array("center", center, 1)
    slope = np.zeros(c.size)
    add_prior_gradient(model, c, slope)
    single = [gradient_at(model, c, np.array([i])) - slope for i in range(rows_of(model))]  # N∇ℓ_i
    lengths = np.linalg.norm(single, axis=1)
    return np.asarray(lengths + max(float(lengths.mean()), 1e-300))


@implements(add_gradient, ImportanceRows)
def _(model: Any, theta: Any, rows: Any, out: Any) -> None:
    for k in range(rows.size):
        slot = rows[k]
        share = model.share[slot]
        for j in range(out.size):
            out[j] /= share
        rows[k] = model.row[slot]
        add_gradient(model.inner, theta, rows[k : k + 1], out)
        rows[k] = slot
        for j in range(out.size):
            out[j] *= share


@implements(add_energy, ImportanceRows)
def _(model: Any, theta: Any, rows: Any) -> Any:
    total = 0.0
    for k in range(rows.size):
        slot = rows[k]
        rows[k] = model.row[slot]
        total += model.share[slot] * add_energy(model.inner, theta, rows[k : k + 1])
        rows[k] = slot
    return total
