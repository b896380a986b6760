"""The data of a user's function: arrays as compiled code wants them, and how many rows they have."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgmcmc.checks import any_array, integer, is_mapped, mapped_floats, show

__all__ = ["as_arrays", "count_rows"]


def as_arrays(data: Any) -> Any:
    """The data with floats in float64 and memory in C order, as the kernels want them; whole numbers stay whole."""
    if not isinstance(data, tuple):
        return _array("data", data)
    parts = [_array(f"data[{i}]", part) for i, part in enumerate(data)]
    return data._make(parts) if hasattr(data, "_make") else tuple(parts)


def _array(name: str, value: Any) -> Any:
    array = any_array(name, None if isinstance(value, list | tuple | dict | str) else value)
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"{name} is a {type(value).__name__}; give an array of numbers, or a tuple of arrays and numbers"
        )
    if array.ndim == 0:
        return array.item()
    if is_mapped(value):
        return mapped_floats(name, value) if array.dtype.kind == "f" else np.asarray(value)
    return np.ascontiguousarray(array, dtype=np.float64 if array.dtype.kind == "f" else array.dtype)


def count_rows(data: Any, n_rows: int | None) -> int:
    """How many rows the data have: as many as is said, or as all arrays in them have."""
    if data is None:
        if n_rows is not None:
            raise ValueError(f"n_rows={show(n_rows)} was given without data; leave n_rows=None")
        return 0
    if n_rows is not None:
        return integer("n_rows", n_rows, 1)
    parts = data if isinstance(data, tuple) else (data,)
    lengths = {f"data[{i}]": int(part.shape[0]) for i, part in enumerate(parts) if _has_rows(part)}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(
            f"data holds arrays of different numbers of rows: {told}; give as many in each, or say how many rows there are "
            "with n_rows="
        )
    for part in parts:
        found = int(part.shape[0]) if _has_rows(part) else len(part) if np.ndim(part) > 0 else 0
        if found > 0:
            return found
    raise ValueError("data holds no array with rows; give at least one, or n_rows")


def _has_rows(part: Any) -> bool:
    """Whether it is an array, of whatever library, with at least one axis."""
    shape = getattr(part, "shape", ())
    return isinstance(shape, tuple) and len(shape) > 0
