"""Checks of arguments: one sentence that names the argument, what came and what is allowed, before anything compiles."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "DivergenceError",
    "RunWarning",
    "any_array",
    "any_mapped",
    "finite_array",
    "integer",
    "is_mapped",
    "mapped_floats",
    "number",
    "numbers_in",
    "one_of",
    "show",
    "whole_numbers",
]

_LARGEST = 2**63 - 1  # what a kernel can count to


class DivergenceError(ArithmeticError):
    """A chain left the finite numbers. `chain` and `step` say where.

    Parameters
    ----------
    message : str
    chain, step : int

    Examples
    --------
    >>> error = sg.DivergenceError("chain 2 left the finite numbers in step 70", chain=2, step=70)
    >>> error.chain, error.step
    (2, 70)
    """

    def __init__(self, message: str, chain: int, step: int) -> None:
        super().__init__(message)
        self.chain = chain
        self.step = step


class RunWarning(UserWarning):
    """A run is hot, cold, unstable or not mixed: what `sample` says by itself, to be filtered by this name.

    Examples
    --------
    >>> issubclass(sg.RunWarning, UserWarning)
    True
    """


def number(name: str, value: Any, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False) -> float:
    """A real number in [low, high], or (low, high] if `open_low`; NaN is never one. inf passes only if `high` is inf."""
    # What most are comes first here and in `integer`: to ask an abstract class takes half a µs, and a run asks thirty times.
    known = type(value) is float
    if not known and (
        isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real | np.floating | np.integer)
    ):
        raise TypeError(f"{name}={show(value)} is not a number; give {_interval(low, high, open_low)}")
    x: float = value if known else _float(value)
    if math.isnan(x) or x < low or x > high or (open_low and x == low):
        raise ValueError(f"{name}={show(value)} is out of range; give {_interval(low, high, open_low)}")
    return x


def _float(value: Any) -> float:
    """The nearest float; infinity beyond the largest."""
    try:
        with np.errstate(over="ignore"):
            return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def show(value: Any) -> str:
    """What came, in one short line, whatever it is."""
    if isinstance(value, np.ndarray) and value.ndim > 0:
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    try:
        text = repr(value)
    except Exception:  # a repr that fails, or an int of more digits than Python prints
        text = "\n"
    return text if "\n" not in text and len(text) <= 200 else f"a {type(value).__name__}"


def _interval(low: float, high: float, open_low: bool) -> str:
    if low == -math.inf and high == math.inf:
        return "a real number"
    if high == math.inf:
        return f"a number {'above' if open_low else 'of at least'} {low:g}"
    return f"a number {'above' if open_low else 'from'} {low:g} {'and up to' if open_low else 'to'} {high:g}"


def integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """A whole number in [low, high]."""
    if type(value) is not int and (
        isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral | np.integer)
    ):
        raise TypeError(f"{name}={show(value)} is not a whole number; give {_span(low, high)}")
    n = int(value)
    if n > _LARGEST and high is None:
        high = _LARGEST
    if n < low or (high is not None and n > high):
        raise ValueError(f"{name}={show(value)} is out of range; give {_span(low, high)}")
    return n


def _span(low: int, high: int | None) -> str:
    return f"a whole number of at least {low}" if high is None else f"a whole number from {low} to {high}"


def one_of(name: str, value: Any, allowed: Sequence[Any]) -> Any:
    """One of a few names."""
    if not any(type(value) is type(a) and value == a for a in allowed):
        raise ValueError(f"{name}={show(value)} is unknown; choose one of {', '.join(repr(a) for a in allowed)}")
    return value


def finite_array(name: str, value: Any, ndim: int | None = None) -> NDArray[np.float64]:
    """A float64 array without NaN or infinity; complex, text and object arrays are refused, integers are widened."""
    array = any_array(name, value)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {array.dtype}; give real numbers")
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name} has {array.ndim} dimension(s) and shape {array.shape}; give {ndim} dimension(s)")
    with np.errstate(over="ignore"):  # beyond float64 is infinity, and refused as such
        array = np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} has a non-finite value, {array[where]} at index {where}; clean the data first")
    return array


def is_mapped(array: Any) -> bool:
    """Whether an array lies in a file that is mapped into memory."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False


def any_mapped(part: Any) -> bool:
    """Whether some array in a tuple of tuples and arrays is mapped."""
    return any(map(any_mapped, part)) if isinstance(part, tuple) else is_mapped(part)


def mapped_floats(name: str, value: Any) -> NDArray[Any] | None:
    """A memory-mapped array of floats as it is, never copied and not read through; None for an array that is not mapped."""
    if not is_mapped(value):
        return None
    if value.dtype not in (np.float32, np.float64) or not value.flags.c_contiguous:
        raise TypeError(
            f"{name} is a memory-mapped file of {value.dtype}, and to convert it would read it all into memory; write it as "
            "float32 or float64 in C order"
        )
    return np.asarray(value)


def any_array(name: str, value: Any) -> NDArray[Any]:
    """What NumPy makes an array of; ragged lists, masked entries and objects that break are refused."""
    # To load numpy.ma takes 15 ms, and a masked array exists only if it has been loaded. Another thread may be loading it at this
    # moment: the module is then there, without the class.
    masked_array = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    if masked_array is not None and isinstance(value, masked_array) and np.ma.is_masked(value):
        raise ValueError(f"{name} has masked entries; fill them in, or leave these rows out")
    try:
        return np.asarray(value)
    except Exception as error:
        raise TypeError(
            f"{name}={show(value)} cannot be made an array; give numbers, or rows of equal length"
        ) from error


def numbers_in(name: str, value: Any) -> NDArray[np.float64]:
    """A float64 array in which NaN and infinity may be."""
    array = any_array(name, value)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {array.dtype}; give real numbers")
    with np.errstate(over="ignore"):
        return array.astype(np.float64)


def whole_numbers(name: str, value: Any) -> NDArray[np.int64]:
    """A one-dimensional int64 array; floats must be whole."""
    array = any_array(name, value)
    if array.dtype.kind not in "fiu" or array.ndim != 1:
        raise TypeError(f"{name} has dtype {array.dtype} and shape {array.shape}; give a row of whole numbers")
    wide = numbers_in(name, array)
    if not (np.isfinite(wide) & (abs(wide) < 2.0**62) & (wide == np.floor(wide))).all():
        raise ValueError(f"{name} has entries that are not whole, or too large; give a row of whole numbers")
    return np.ascontiguousarray(array, dtype=np.int64)
