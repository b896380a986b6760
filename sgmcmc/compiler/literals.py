"""What Numba is shown of an implementation: literals in the precision of its arguments, and intrinsics."""

from __future__ import annotations

import types as pytypes
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import errors, types

from sgmcmc.compiler.intrinsics import Intrinsic
from sgmcmc.compiler.type_errors import in_package

if TYPE_CHECKING:
    from sgmcmc.compiler.open_functions import OpenFunction

__all__ = ["class_of", "compiled_form", "with_intrinsics", "with_single_literals"]


def compiled_form(function: OpenFunction, signature: tuple[Any, ...], device: bool) -> Callable[..., Any] | None:
    """The implementation for arguments of these Numba types, as Numba shall see it; None if there is none."""
    found = [class_of(t) for t in signature[: function.on]]
    classes = tuple(c for c in found if c is not None)
    implementation = None if None in found else function.choose(classes, device)
    if implementation is None:
        if any(hasattr(c, "_fields") and not in_package(c) for c in classes):
            raise errors.TypingError(function.missing(classes))  # a part of the user's: said in Numba's message
        return None
    implementation = with_intrinsics(implementation)
    precisions = {p for t in signature for p in _precisions(t)}
    return with_single_literals(implementation) if precisions == {types.float32} else implementation


def class_of(numba_type: Any) -> type | None:
    """The Python class that a Numba type stands for, as far as open functions are concerned."""
    if isinstance(numba_type, types.BaseNamedTuple):
        return numba_type.instance_class  # type: ignore[no-any-return]
    if isinstance(numba_type, types.Array):
        return np.ndarray
    if isinstance(numba_type, types.NoneType):
        return type(None)
    if isinstance(numba_type, types.BaseTuple):
        return tuple
    if isinstance(numba_type, types.Boolean):
        return np.bool_
    if isinstance(numba_type, types.Number):
        return np.dtype(str(types.unliteral(numba_type))).type
    return None


def _precisions(numba_type: Any) -> Iterator[Any]:
    """The floating-point types inside a Numba type."""
    if isinstance(numba_type, types.Float):
        yield numba_type
    elif isinstance(numba_type, types.Array):
        yield from _precisions(numba_type.dtype)
    elif isinstance(numba_type, types.BaseTuple):
        for member in set(numba_type.types):
            yield from _precisions(member)


def with_single_literals(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function with its float literals, and the float globals that it reads, in single precision."""
    code, names = function.__code__, function.__globals__
    single = code.replace(co_consts=tuple(np.float32(c) if type(c) is float else c for c in code.co_consts))
    return _copy(function, single, {n: np.float32(names[n]) for n in code.co_names if type(names.get(n)) is float})


def with_intrinsics(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function with the compiled forms of the intrinsics that it calls."""
    code, names = function.__code__, function.__globals__
    found = {n: names[n].compiled for n in code.co_names if isinstance(names.get(n), Intrinsic)}
    return _copy(function, code, found) if found else function


def _copy(function: Callable[..., Any], code: pytypes.CodeType, names: dict[str, Any]) -> Callable[..., Any]:
    scope = function.__globals__ | names
    made = pytypes.FunctionType(code, scope, function.__name__, function.__defaults__, function.__closure__)
    made.__dict__.update(function.__dict__)
    made.__module__, made.__qualname__ = function.__module__, function.__qualname__
    return made
