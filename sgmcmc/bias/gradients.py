"""Gradients of any model for the report: over all rows, over one row, over a sample of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators.preconditioning import slope_in_units
from sgmcmc.potentials import gradient_of, rows_of

__all__ = ["gradient_at", "noise_variance", "some_rows"]

Array = NDArray[np.float64]


def gradient_at(model: Any, theta: Array, rows: Any = None) -> Array:
    """∇U(θ), or its estimate from rows."""
    found = model.gradient(theta, rows) if hasattr(model, "gradient") else gradient_of(model, theta, rows)
    return np.asarray(found, np.float64)


def some_rows(model: Any, most: int) -> NDArray[np.int64] | None:
    """Rows chosen at random, always the same ones; None, all of them, if there are no more than `most`."""
    n = rows_of(model)
    return None if n <= most else np.random.default_rng(0).choice(n, most, replace=False).astype(np.int64)


def noise_variance(model: Any, theta: Array, batch_size: int, kind: str, most: int = 1000, scale: Any = 1.0) -> Array:
    """Var of the minibatch gradient at θ, per coordinate in units of `scale`, from the gradients of single rows.

    A batch of n rows drawn independently has the variance of N∇(−log p(y_i | θ)) over rows, divided by n; one without
    repetitions has (1 − (n − 1)/(N − 1)) times that.
    """
    n_rows = rows_of(model)
    rows = np.arange(n_rows) if n_rows <= most else some_rows(model, most)
    single = np.stack([gradient_at(model, theta, np.array([i])) for i in rows])  # type: ignore[union-attr]
    variance = slope_in_units(scale, single).var(axis=0, ddof=0 if len(single) == n_rows else 1)
    different = 1.0 if kind == "replacement" or n_rows < 2 else 1.0 - (batch_size - 1) / (n_rows - 1)
    return np.asarray(variance / batch_size * different)
