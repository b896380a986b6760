"""Pickling: how settings reach another process, with all that their types mean.

Functions and classes of a script or a notebook go by value, those of an installed module by name. What a class of a script
means to the open functions (``@implements``) goes with it. An array in a memory-mapped file goes as the name of the file, which
must be there too.
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

__all__ = ["pack", "unpack"]


class Meaning(NamedTuple):
    """One ``@implements`` of a user."""

    module: str  # of the open function
    name: str
    classes: tuple[type, ...]
    implementation: Any
    allocates: bool
    by_type: bool
    device: bool


def pack(value: Any) -> bytes:
    """A value as bytes; TypeError that names it if it cannot travel."""
    buffer = io.BytesIO()
    try:
        _Pickler(buffer).dump((list(_meanings(value)), value))
    except Exception as error:
        raise TypeError(
            f"the model, the sampler or keep= cannot be sent to another process ({error}); make functions and data of what "
            "pickle can hold: no open files, locks, sockets or generators"
        ) from error
    return buffer.getvalue()


def unpack(data: bytes) -> Any:
    """What `pack` packed; only ever called on bytes that an executor brought, never on a file."""
    meanings, value = cloudpickle.loads(data)
    for meaning in meanings:
        _restore_meaning(meaning)
    return value


class _Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, np.ndarray):
            found = _mapped_place(obj)
            return NotImplemented if found is None else (_open_mapped, found)
        return super().reducer_override(obj)


def _mapped_place(array: NDArray[Any]) -> tuple[Any, ...] | None:
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


# ---- what types mean ----------------------------------------------------------------------------------------------------


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


def _meanings(value: Any) -> Iterator[Meaning]:
    own = {cls for cls in _classes(value) if cls not in (tuple, object) and not _ours(cls)}
    if not own:
        return
    for function in open_functions():
        for forms, device in ((function.implementations, False), (function.device_forms, True)):
            for key, implementation in list(forms.items()):
                if any(cls in own for cls in key) and not _ours(implementation):
                    yield _meaning(function, key, implementation, device)


def _meaning(function: OpenFunction, key: tuple[type, ...], implementation: Any, device: bool) -> Meaning:
    by_type, allocates = key in function.made_by_type, function.allocates.get(key, True)
    return Meaning(function.__module__, function.__qualname__, key, implementation, allocates, by_type, device)


def _restore_meaning(meaning: Meaning) -> None:
    function = getattr(importlib.import_module(meaning.module), meaning.name)
    if meaning.by_type:
        implements_by_type(function, *meaning.classes)(meaning.implementation)
    else:
        register = implements(function, *meaning.classes, allocates=meaning.allocates, device=meaning.device)
        register(meaning.implementation)


def _ours(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).split(".")[0] in (__package__.split(".")[0], "typing", "builtins")
