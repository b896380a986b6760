"""The user's compiled function alone: what is wrong with it for the types that it gets, without all that calls it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numba
from numba import errors, types
from numba.extending import is_jitted

from sgmcmc.compiler.type_errors import PlainError, explain, short

__all__ = ["alone", "checking"]

REMEDY = "run it without @numba.njit to debug it, or give it as a plain Python function"


def checking(gradient: Any, fills: bool) -> Callable[[tuple[Any, ...]], None]:
    """What says, where an adapter did not compile for arguments of these types, what is wrong with `gradient` in it.

    Never before: Numba gives a function the compile options of the one that calls it first. Outside of its adapter it would
    have no reference counts, and corrupt memory, and other rules of arithmetic.
    """

    def check(signature: tuple[Any, ...]) -> None:
        model, theta, rows, out = *signature[:3], signature[-1]
        arguments = [theta]
        if "data" in model.fields:
            arguments += [model.types[model.fields.index("data")], rows]
        if fills:  # an array of the adapter's own, or the scratch space that it was given
            arguments.append(out.copy(layout="C") if len(signature) == 4 else signature[3])
        name = gradient.py_func.__name__
        title = f"{'' if name == 'gradient' else 'gradient '}{name}({', '.join(map(short, arguments))})"
        returned = _return_type(title, gradient, tuple(arguments))
        if not fills:
            _check_returned(title, returned, out)

    return check


def _return_type(title: str, gradient: Any, arguments: tuple[Any, ...]) -> Any:
    """What it returns for arguments of these types; found while the adapter was compiled, as is the error."""
    try:
        found = numba.typeof(gradient).get_call_type(gradient.typingctx, arguments, {})
    except Exception as error:  # Numba has errors of its own, and lets some of Python's through
        raise PlainError(explain(title, gradient.py_func, error, REMEDY)) from None
    if found is None:
        own = "; ".join(f"({', '.join(map(str, each.args))})" for each in gradient.nopython_signatures)
        raise PlainError(
            f"{title} was compiled for other types only: {own or 'none'}; write @numba.njit without a signature"
        )
    return found.return_type


def _check_returned(title: str, returned: Any, out: Any) -> None:
    """An array with one real number for each coordinate; whether it is long enough is seen in the run."""
    plain = returned.type if isinstance(returned, types.Optional) else returned
    if not isinstance(plain, types.Array) or plain.ndim != 1 or isinstance(plain.dtype, types.Complex):
        raise PlainError(f"{title} returns {returned}; return {out}, one real number for each coordinate of theta")


@contextlib.contextmanager
def alone(name: str, function: Any) -> Iterator[None]:
    """In this block a function of the user's is called by itself; that it does not compile is said in a few lines."""
    try:
        yield
        return
    except errors.NumbaError as error:
        if not is_jitted(function):
            raise
        text = explain(f"{name} {function.py_func.__name__}", function.py_func, error, REMEDY)
    raise TypeError(text) from None
