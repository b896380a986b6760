"""The arguments of a sampler (precisions, parts, scales): checked, and converted to one form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sgmcmc import checks
from sgmcmc.integrators import Splitting
from sgmcmc.integrators.preconditioning import DiagonalScale, MatrixScale, at

__all__ = [
    "as_word",
    "checked_scale",
    "contiguous_array",
    "in_precision",
    "is_same",
    "part_or_default",
    "precision",
    "seen_by_kernels",
    "show_value",
]


def precision(dtype: Any) -> Any:
    """np.float32 or np.float64, by any of its names."""
    try:
        kind = np.dtype(dtype).type
    except Exception:  # NumPy has several for what is no dtype
        kind = None
    if kind not in (np.float32, np.float64):
        raise ValueError(f"dtype={checks.show(dtype)} is unknown; choose np.float32 or np.float64")
    return kind


def in_precision(value: Any, dtype: DTypeLike) -> Any:
    """A part with its numbers and float arrays in the given precision, recursively; whole numbers stay whole."""
    return _in_kind(value, np.dtype(dtype).type)


def _in_kind(value: Any, kind: Any) -> Any:
    if isinstance(value, tuple):
        inside = [_in_kind(v, kind) for v in value]
        return type(value)._make(inside) if hasattr(value, "_make") else tuple(inside)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return np.ascontiguousarray(value, dtype=kind)
    if isinstance(value, float | np.floating):
        return kind(value)
    return value


def contiguous_array(name: str, value: Any, dtype: Any) -> NDArray[Any]:
    """A contiguous array for the kernels; infinity and NaN are allowed, and make the chain diverge."""
    if isinstance(value, np.ndarray) and value.dtype == dtype:
        return np.ascontiguousarray(value)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(checks.numbers_in(name, value), dtype=dtype)


def part_or_default(name: str, value: Any, default: Any) -> Any:
    if value is None:
        return default
    if not (isinstance(value, tuple) and hasattr(value, "_fields")):
        home = name if name == "kinetics" else f"{name}s"
        raise TypeError(
            f"{name}={checks.show(value)} is not a part; give a value of sgmcmc.{home}, or a NamedTuple of your own"
        )
    return value


def as_word(integrator: Any) -> Any:
    """An integrator that is given as a word of flows, or whatever else was given."""
    if not isinstance(integrator, str):
        return integrator
    try:
        return Splitting(integrator)
    except ValueError as error:
        raise ValueError(str(error).replace("word=", "integrator=", 1)) from None


def checked_scale(value: Any) -> Any:
    if isinstance(value, str):
        return checks.one_of("scale", value, ("auto",))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        at.require(value)
        return value
    array = checks.finite_array("scale", value)
    if array.ndim == 2 and array.shape[0] == array.shape[1] > 0:
        return _matrix(array)
    if array.ndim > 1 or not (array > 0.0).all():
        came = f"={value!r}" if array.ndim == 0 else f" of shape {array.shape} goes down to {array.min(initial=1.0):g}"
        raise ValueError(f"scale{came}; give one number above 0, a 1-D array of them, or a square matrix")
    return float(array) if array.ndim == 0 else array.copy()  # the caller may go on using the array


def _matrix(array: NDArray[Any]) -> NDArray[Any]:
    """A matrix that can be inverted, in float64."""
    widths = np.linalg.svd(array, compute_uv=False)
    if not widths[-1] > 1e-12 * widths[0]:
        raise ValueError(
            f"scale of shape {array.shape} has singular values from {widths[0]:.3g} down to {widths[-1]:.3g}, so that some "
            "directions are not moved in; give a matrix that can be inverted, such as a Cholesky factor of a covariance"
        )
    return array.copy()


def seen_by_kernels(scale: Any) -> Any:
    if not isinstance(scale, np.ndarray):
        return scale
    return DiagonalScale(scale) if scale.ndim == 1 else MatrixScale(scale, np.ascontiguousarray(scale.T))


def is_same(one: Any, two: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(two, np.ndarray):
        return np.array_equal(one, two)
    return type(one) is type(two) and bool(one == two)


def show_value(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size <= 8:
        return f"array({value.tolist()})"
    return str(value) if isinstance(value, tuple) else repr(value)
