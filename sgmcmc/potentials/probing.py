"""A first look at a user's gradient function: which form it has, whether one call makes sense, whether its rows add up.

A gradient that is infinite at some θ, or cannot be computed there, is no error.
"""

from __future__ import annotations

import inspect
import types as pytypes
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import is_jitted
from numpy.typing import NDArray

from sgmcmc.checks import any_array, show

__all__ = ["as_gradient", "check_additivity", "check_energy_form", "fills_out", "probe"]

_FORMS = {
    True: ((3, "(theta, data, rows)"), (4, "(theta, data, rows, out)")),
    False: ((1, "(theta)"), (2, "(theta, out)")),
}
_SHAPE_WORDS = ("broadcast", "aligned", "mismatch")  # of NumPy's messages about shapes that do not fit
_PROBE_DIM = 10_000  # beyond this a compiled function's loops would take seconds as plain Python
_PROBE_ROOM = 10**8  # beyond this one look takes gigabytes
_ROUNDING = 1e-3  # of the largest coordinate; a function may compute in single precision, and a mean is off by a half


def fills_out(function: Callable[..., Any], with_data: bool) -> bool:
    """Whether a gradient function fills `out` (True) or returns the gradient (False), by its number of parameters."""
    given = _parameters("gradient", function)
    (returning, returning_form), (filling, filling_form) = _FORMS[with_data]
    if len(given) not in (returning, filling):
        raise TypeError(
            f"gradient has {len(given)} parameter(s), ({', '.join(given)}); {'with' if with_data else 'without'} data "
            f"give {returning_form} and return the gradient, or {filling_form} and fill out"
        )
    return len(given) == filling


def check_energy_form(function: Callable[..., Any], with_data: bool) -> None:
    """An energy function takes what a returning gradient function takes."""
    given = _parameters("energy", function)
    wanted, form = _FORMS[with_data][0]
    if len(given) != wanted:
        raise TypeError(
            f"energy has {len(given)} parameter(s), ({', '.join(given)}); {'with' if with_data else 'without'} data "
            f"give {form} and return one number"
        )


def _parameters(name: str, function: Callable[..., Any]) -> list[str]:
    if not callable(function):
        raise TypeError(f"{name}={show(function)} is not a function; give one")
    target: Any = getattr(function, "py_func", function) if is_jitted(function) else function
    found = inspect.signature(target).parameters.values()
    if any(p.kind is p.VAR_POSITIONAL for p in found):
        raise TypeError(
            f"{name} takes *{next(p.name for p in found if p.kind is p.VAR_POSITIONAL)}; name its parameters"
        )
    return [p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]


def probe(function: Callable[..., Any], fills: bool, dim: int, data: Any, n_rows: int) -> None:
    """Call the function once at θ = 0, on the first and the last row, and refuse what cannot be a gradient."""
    compiled = is_jitted(function)
    if dim > (_PROBE_DIM if compiled else _PROBE_ROOM):
        return
    callee = _plain(function, {}) if compiled else function
    out, rows = np.zeros(dim), np.unique([0, max(n_rows - 1, 0)])
    arguments = (np.zeros(dim), *(() if n_rows == 0 else (data, rows)), *((out,) if fills else ()))
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = callee(*arguments)
    except IndexError as error:
        where = f"dim={dim}" + (f" and rows {rows.tolist()} of {n_rows}" if n_rows else "")
        raise IndexError(
            f"gradient goes out of bounds at theta = 0 with {where} ({error}); check dim and data"
        ) from error
    except Exception as error:
        if isinstance(error, ValueError) and any(word in str(error) for word in _SHAPE_WORDS):
            raise ValueError(
                f"gradient mixes shapes at theta = 0 with dim={dim} ({error}); check dim and data"
            ) from error
        if compiled or isinstance(error, ArithmeticError) or str(error).startswith("math "):
            return  # compiled code may do what plain Python cannot, and θ = 0 may lie outside the support
        raise
    if not fills:
        as_gradient(result, dim)


def check_additivity(function: Callable[..., Any], fills: bool, dim: int, data: Any, n_rows: int) -> None:
    """ValueError for a gradient over two rows that is not the sum of those over each; nothing where that cannot be told.

    A mean in place of the sum makes draws too wide, by √n for a batch of n; a function that ignores `rows` makes them too
    narrow. Neither shows in finite differences, if the energy has the same fault.
    """
    compiled = is_jitted(function)
    if n_rows < 2 or dim > (_PROBE_DIM if compiled else _PROBE_ROOM):
        return
    callee = _plain(function, {}) if compiled else function
    random = np.random.default_rng(0).normal(0.0, 0.5, dim)
    for theta in (0.2 * random, 0.1 + abs(random), np.zeros(dim)):  # the second may be where the first is out of bounds
        try:
            found = [_sum_over(callee, fills, theta, data, rows) for rows in ([0, n_rows - 1], [0], [n_rows - 1])]
        except Exception:  # as above: it may not be defined here
            continue
        largest = max(abs(part).max() for part in found)
        if np.isfinite(largest) and largest > 0.0:
            _refuse_other_sums(found, largest, n_rows)
            return


def _sum_over(callee: Any, fills: bool, theta: NDArray[Any], data: Any, rows: list[int]) -> NDArray[np.float64]:
    out = np.zeros(theta.size)
    arguments = (theta.copy(), data, np.array(rows, np.int64), *((out,) if fills else ()))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = callee(*arguments)
    return out if fills else np.asarray(as_gradient(result, theta.size), np.float64)


def _refuse_other_sums(found: list[NDArray[np.float64]], largest: float, n_rows: int) -> None:
    both, first, last = found
    gap = abs(both - (first + last))
    worst = int(gap.argmax())
    if gap[worst] <= _ROUNDING * largest:
        return
    told = (
        f"gradient[{worst}] over rows 0 and {n_rows - 1} is {both[worst]:.6g}, over each alone {first[worst]:.6g} and "
        f"{last[worst]:.6g}; the first must be the sum of the others: "
    )
    same = np.array_equal(both, first) and np.array_equal(both, last)
    remedy = (
        "it ignores rows, or is a mean; return the sum over rows"
        if same
        else "return the sum over rows, not the mean, and leave the prior to prior="
    )
    raise ValueError(f"{told}{remedy}; or say additive=False")


def as_gradient(result: Any, dim: int) -> NDArray[Any]:
    """What a returning gradient function returned, if it is one real number per coordinate."""
    if result is None:
        raise TypeError("gradient returned None; return the gradient, or take one more parameter, out, and fill it")
    array = any_array("what gradient returned", result)
    if array.dtype.kind not in "fiu":
        raise TypeError(
            f"gradient returned {type(result).__name__} of dtype {array.dtype}; return an array of real numbers"
        )
    if array.shape != (dim,):
        raise ValueError(f"gradient returned shape {array.shape}; return ({dim},), one number per coordinate")
    return array


def _plain(dispatcher: Any, done: dict[int, Any]) -> Any:
    """The Python function under a compiled one, calling other Python functions: one look must not compile anything."""
    if id(dispatcher) in done:
        return done[id(dispatcher)]
    source = dispatcher.py_func
    scope = dict(source.__globals__)
    cells = source.__closure__ if source.__closure__ is not None else ()
    inner = tuple(pytypes.CellType(_plain_value(cell.cell_contents, done)) for cell in cells)
    plain = pytypes.FunctionType(source.__code__, scope, source.__name__, source.__defaults__, inner)
    done[id(dispatcher)] = plain
    for name in source.__code__.co_names:
        if name in scope:
            scope[name] = _plain_value(scope[name], done)
    return plain


def _plain_value(value: Any, done: dict[int, Any]) -> Any:
    return _plain(value, done) if is_jitted(value) else value
