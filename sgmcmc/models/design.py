"""Design matrices: a column of ones, standardised columns, and the checks that data must pass."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.checks import finite_array, show

__all__ = ["Columns", "design", "draws_of", "responses"]


class Columns(NamedTuple):
    """How raw columns become the model's: (x − shift) / scale, after a one if `intercept`."""

    shift: NDArray[np.float64]
    scale: NDArray[np.float64]
    intercept: int

    def apply(self, X: Any) -> NDArray[np.float64]:
        """The design matrix of new rows."""
        raw = _matrix(X)
        if raw.shape[1] != self.shift.size:
            raise ValueError(f"X has {raw.shape[1]} column(s); the model was made with {self.shift.size}")
        scaled = (raw - self.shift) / self.scale
        return np.column_stack((np.ones(len(raw)), scaled)) if self.intercept else scaled


def design(X: Any, intercept: bool, standardise: bool) -> tuple[NDArray[np.float64], Columns]:
    """The design matrix in C order, and how to make it of new rows."""
    raw = _matrix(X)
    for name, flag in (("intercept", intercept), ("standardise", standardise)):
        if not isinstance(flag, bool | np.bool_):
            raise TypeError(f"{name}={show(flag)} is neither True nor False")
    shift, scale = np.zeros(raw.shape[1]), np.ones(raw.shape[1])
    if standardise:
        shift, scale = raw.mean(axis=0), raw.std(axis=0)
        constant = np.flatnonzero(np.ptp(raw, axis=0) == 0.0)
        if constant.size > 0:
            raise ValueError(
                f"X has constant column(s) {constant.tolist()} that cannot be standardised; "
                "leave them out, and use intercept=True for a column of ones"
            )
    columns = Columns(shift, scale, int(intercept))
    return np.ascontiguousarray(columns.apply(raw)), columns


def _matrix(X: Any) -> NDArray[np.float64]:
    raw = finite_array("X", X, ndim=2)
    if raw.size == 0:
        raise ValueError(f"X has shape {raw.shape}; give at least one row and one column")
    return raw


def responses(y: Any, n_rows: int) -> NDArray[np.float64]:
    """One finite number per row."""
    array = finite_array("y", y, ndim=1)
    if array.size != n_rows:
        raise ValueError(f"y has {array.size} value(s) for {n_rows} row(s) of X; give one per row")
    return array


def draws_of(theta: Any, dim: int) -> NDArray[np.float64]:
    """One θ or an array of draws (…, dim), as a matrix with one draw per row."""
    array = finite_array("theta", theta)
    if array.ndim == 0 or array.shape[-1] != dim or array.size == 0:
        raise ValueError(f"theta has shape {array.shape}; give ({dim},), or draws of shape (..., {dim})")
    return array.reshape(-1, dim)
