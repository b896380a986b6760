"""Pickling: settings for another process, with the user's implementations of open functions.

Functions and classes of a script or a notebook are pickled by value, those of an installed module by name. The implementations
(``@implements``) of a class of a script are pickled with it. An array in a memory-mapped file is pickled as the name of the
file, which must exist on the other side too.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import cloudpickle
from numpy.typing import NDArray

from sgmcmc.compiler.open_functions import OpenFunction, implements, implements_by_type, open_functions
from sgmcmc.potentials import PythonPotential

__all__ = ["from_bytes", "to_bytes"]


class Implemented(NamedTuple):
    """One ``@implements`` of a user's."""

    module: str  # of the open function
    name: str
    classes: tuple[type, ...]
    implementation: Any
    allocates: bool
    by_type: bool
    device: bool


def to_bytes(value: Any) -> bytes:
    """A value as bytes; TypeError if it cannot be pickled."""
    buffer = io.BytesIO()
    try:
        _Pickler(buffer).dump((list(_implemented(value)), value))
    except Exception as error:
        raise TypeError(
            f"the model, the sampler or keep= cannot be sent to another process ({error}); make functions and data of what "
            "pickle can hold: no open files, locks, sockets or generators"
        ) from error
    return buffer.getvalue()


def from_bytes(data: bytes) -> Any:
    """The value of `to_bytes`; only called on bytes from an executor, never on a file."""
    records, value = cloudpickle.loads(data)
    for record in records:
        _implement_again(record)
    return value


class _Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, np.ndarray):
            found = _mapped_range(obj)
            return NotImplemented if found is None else (_open_mapped, found)
        return super().reducer_override(obj)


def _mapped_range(array: NDArray[Any]) -> tuple[Any, ...] | None:
    """File, dtype, shape and offset of an array that is all of a stretch of a mapped file."""
    base: Any = array
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    if not isinstance(base, np.memmap) or base.filename is None or not array.flags.c_contiguous:
        return None
    while isinstance(base.base, np.memmap):
        base = base.base
    start = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return str(base.filename), array.dtype.str, array.shape, int(base.offset) + start


def _open_mapped(path: str, dtype: str, shape: tuple[int, ...], offset: int) -> NDArray[Any]:
    return np.asarray(np.memmap(path, dtype=dtype, mode="r", shape=shape, offset=offset))


# ---- implementations ----------------------------------------------------------------------------------------------------


def _classes(value: Any) -> Iterator[type]:
    """The NamedTuple classes in a value."""
    if isinstance(value, PythonPotential):
        yield from _classes(value.prior)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _classes(getattr(value, field.name))
    elif isinstance(value, tuple):
        yield from type(value).__mro__
        for part in value:
            yield from _classes(part)


def _implemented(value: Any) -> Iterator[Implemented]:
    own = {cls for cls in _classes(value) if cls not in (tuple, object) and not _ours(cls)}
    if not own:
        return
    for function in open_functions():
        for forms, device in ((function.implementations, False), (function.device_forms, True)):
            for key, implementation in list(forms.items()):
                if any(cls in own for cls in key) and not _ours(implementation):
                    yield _record_of(function, key, implementation, device)


def _record_of(function: OpenFunction, key: tuple[type, ...], implementation: Any, device: bool) -> Implemented:
    by_type, allocates = key in function.made_by_type, function.allocates.get(key, True)
    return Implemented(function.__module__, function.__qualname__, key, implementation, allocates, by_type, device)


def _implement_again(record: Implemented) -> None:
    function = getattr(importlib.import_module(record.module), record.name)
    if record.by_type:
        implements_by_type(function, *record.classes)(record.implementation)
    else:
        register = implements(function, *record.classes, allocates=record.allocates, device=record.device)
        register(record.implementation)


def _ours(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).split(".")[0] in (__package__.split(".")[0], "typing", "builtins")
