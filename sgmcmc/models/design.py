"""Design matrices: a column of ones, standardised columns, and the checks that data must pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.checks import finite_array, mapped_floats, show

__all__ = ["Columns", "Named", "coefficient_names", "design", "draws_of", "responses", "values_of"]


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


class Named:
    """To be mixed into a regression: the names of its coefficients, which kernels need not see."""

    __slots__ = ()
    names: tuple[str, ...] | None = None


def coefficient_names(X: Any, names: Sequence[str] | None, intercept: bool) -> tuple[str, ...] | None:
    """A name for each coefficient: from `names`, else from the columns of a data frame, else None."""
    if names is None:
        columns = getattr(X, "columns", None)
        if columns is None or not all(isinstance(c, str) for c in columns):
            return None
        names = list(columns)
    count = np.shape(X)[1] if np.ndim(X) == 2 else 0
    if isinstance(names, str) or len(names) != count or not all(isinstance(n, str) and n.strip() for n in names):
        raise ValueError(f"names={show(names)} does not name the columns of X; give {count} text(s), one for each")
    found = ("intercept", *names) if intercept else tuple(names)
    if len(set(found)) < len(found):
        twice = next(n for n in found if found.count(n) > 1)
        raise ValueError(
            f"names has {twice!r} twice; give names that differ" + " from 'intercept' too" * bool(intercept)
        )
    return found


def design(X: Any, intercept: bool, standardise: bool) -> tuple[NDArray[np.float64], Columns]:
    """The design matrix in C order, and how to make it of new rows. float32 stays float32, a memory-mapped one in its file."""
    mapped = mapped_floats("X", X)
    raw = _matrix(X) if mapped is None else mapped
    for name, flag in (("intercept", intercept), ("standardise", standardise)):
        if not isinstance(flag, bool | np.bool_):
            raise TypeError(f"{name}={show(flag)} is neither True nor False")
    shift, scale = np.zeros(raw.shape[1]), np.ones(raw.shape[1])
    if mapped is not None:
        if intercept or standardise:
            raise ValueError(
                "X is a memory-mapped file, of which intercept=True and standardise=True would make a copy; leave them "
                "out, and put the column of ones or the standardised columns into the file"
            )
        return mapped, Columns(shift, scale, 0)
    if standardise:
        shift, scale = raw.mean(axis=0), raw.std(axis=0)
        constant = np.flatnonzero(np.ptp(raw, axis=0) == 0.0)
        if constant.size > 0:
            raise ValueError(
                f"X has constant column(s) {constant.tolist()} that cannot be standardised; "
                "leave them out, and use intercept=True for a column of ones"
            )
    columns = Columns(shift, scale, int(intercept))
    return np.ascontiguousarray(columns.apply(raw), dtype=_precision(X)), columns


def _precision(values: Any) -> Any:
    """float32 stays float32: to convert a large data set for every run would take as long as the run."""
    return np.float32 if getattr(values, "dtype", None) == np.float32 else np.float64


def _matrix(X: Any) -> NDArray[np.float64]:
    raw = finite_array("X", X, ndim=2)
    if raw.size == 0:
        raise ValueError(f"X has shape {raw.shape}; give at least one row and one column")
    return raw


def responses(y: Any, n_rows: int) -> NDArray[np.float64]:
    """One finite number per row; float32 stays float32."""
    mapped = mapped_floats("y", y)
    array = finite_array("y", y, ndim=1).astype(_precision(y), copy=False) if mapped is None else mapped
    if array.size != n_rows:
        raise ValueError(f"y has {array.size} value(s) for {n_rows} row(s) of X; give one per row")
    return array


def draws_of(theta: Any, dim: int) -> NDArray[np.float64]:
    """One θ or an array of draws (…, dim), as a matrix with one draw per row."""
    array = finite_array("theta", theta)
    if array.ndim == 0 or array.shape[-1] != dim or array.size == 0:
        raise ValueError(f"theta has shape {array.shape}; give ({dim},), or draws of shape (..., {dim})")
    return array.reshape(-1, dim)


def values_of(labels: NDArray[Any]) -> NDArray[Any]:
    """The different values, found piece by piece: labels may lie in a file larger than memory."""
    pieces = range(0, max(1, labels.size), 1 << 20)
    return _different(np.concatenate([_different(labels[first : first + (1 << 20)]) for first in pieces]))


def _different(values: NDArray[Any]) -> NDArray[Any]:
    """What ``np.unique`` gives for numbers without NaN; that loads NumPy's masked arrays, a fiftieth of a short script."""
    ordered: NDArray[Any] = np.sort(values)
    found: NDArray[Any] = ordered[np.append(np.ones(ordered[:1].size, bool), ordered[1:] != ordered[:-1])]
    return found
