"""The content of what is compiled in: what a kept kernel is looked for by.

The key of a kernel holds the package's sources, the kernel itself, the types it is compiled for, and for each of these types
what the open functions mean to it outside of the package: bytecode and constants, and, recursively, the functions and values
that are read from its module. So an edit anywhere is another key, and numbers are none.
"""

from __future__ import annotations

import enum
import hashlib
import os
import platform
import time
import types as pytypes
from collections.abc import Callable, Iterator
from typing import Any

import llvmlite
import numba
import numpy as np
from numba import types
from numba.extending import is_jitted

from sgmcmc.compiler.open_functions import OpenFunction, open_functions

__all__ = ["fingerprint", "has_foreign_implementations", "implementations_fingerprint", "key_of", "package_fingerprint"]

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PACKAGE = os.path.basename(ROOT)
COMPILE_NOTHING = ("adapters", "cli", "comparison", "evidence", "plots")  # folders; a test looks

# Of numba.config.
SETTINGS = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "USING_SVML")


def key_of(function: Callable[..., Any], arguments: Any, target: tuple[Any, ...]) -> str:
    """The key of a kernel for arguments of these Numba types, on a processor that `target` describes.

    A digest in place of the types themselves: it must be equal in another process, where types are other objects.
    """
    classes = sorted({c for t in arguments for c in _classes(t)}, key=_name)
    digest = hashlib.sha256(_loaded_sources())
    for part in (str(arguments), [_name(c) for c in classes], target, platform.python_version_tuple()[:2]):
        digest.update(repr(part).encode())
    digest.update(f"{function.__module__}.{function.__qualname__}".encode())
    if not _in_package(function):
        digest.update(fingerprint(function))
    foreign = list(_foreign())
    for cls in classes:
        digest.update(implementations_fingerprint(cls, foreign))
    return digest.hexdigest()


def package_fingerprint() -> bytes:
    """A digest of the package's sources, and of the versions and settings that shape the machine code."""
    settings = [str(getattr(numba.config, name, None)) for name in SETTINGS]
    digest = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__} {np.__version__} {settings}".encode())
    for path in _sources():
        with open(path, "rb") as file:
            digest.update(os.path.relpath(path, ROOT).encode() + b"\0" + hashlib.sha256(file.read()).digest())
    return digest.digest()


def _sources() -> list[str]:
    """The package's Python files that may hold compiled code, in an order that is the same everywhere."""
    found = []
    for folder, inside, names in os.walk(ROOT):
        inside[:] = [name for name in inside if folder != ROOT or name not in COMPILE_NOTHING]
        found += [os.path.join(folder, name) for name in names if name.endswith(".py")]
    return sorted(found)


_Form = tuple[str, str, tuple[type, ...], Callable[..., Any]]
_known: dict[tuple[Any, ...], bytes] = {}  # the fingerprint of files with these sizes and times


def _fingerprint_now() -> bytes:
    state = tuple((path, (status := os.stat(path)).st_size, status.st_mtime_ns) for path in _sources())
    if state not in _known:
        found = package_fingerprint()
        _known.clear()
        _known[state] = found
    return _known[state]


_AT_IMPORT = _fingerprint_now()


def _loaded_sources() -> bytes:
    """The fingerprint of the sources that this process has loaded.

    If they were edited since, what it compiles belongs to neither version: a key that is never found again keeps it from
    being taken for the new one by other processes.
    """
    if time.monotonic() - _looked[0] > 0.5:  # a kernel has hundreds of parts
        now = _fingerprint_now()
        _looked[:] = time.monotonic(), now if now == _AT_IMPORT else now + os.urandom(16)
    return bytes(_looked[1])


_looked: list[Any] = [-1.0, b""]  # when, and what was found


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _classes(numba_type: Any) -> Iterator[type]:
    """The NamedTuple classes inside a Numba type."""
    if isinstance(numba_type, types.BaseNamedTuple):
        yield numba_type.instance_class
    if isinstance(numba_type, types.BaseTuple):
        for member in set(numba_type.types):
            yield from _classes(member)


def implementations_fingerprint(cls: type, foreign: list[_Form] | None = None) -> bytes:
    """A digest of what a class means to every open function, as far as that is not said in this package."""
    digest = hashlib.sha256(_name(cls).encode())
    digest.update(repr(getattr(cls, "_fields", ())).encode())
    for name, kind, key, implementation in _foreign() if foreign is None else foreign:
        if any(base in cls.__mro__ for base in key):
            digest.update(f"{name} {kind} {[_name(c) for c in key]}".encode())
            digest.update(fingerprint(implementation))
    return digest.digest()


def has_foreign_implementations(cls: type) -> bool:
    """Whether a class means something to an open function that is not said in this package."""
    return any(cls in key for _name, _kind, key, _implementation in _foreign())


def _foreign() -> Iterator[_Form]:
    """All that is implemented outside of this package: function, kind, types and implementation."""
    for function in open_functions():
        if not all(map(_in_package, (*function.implementations.values(), *function.device_forms.values()))):
            for kind, key, implementation in _forms(function):
                if not _in_package(implementation):
                    yield function.__name__, kind, key, implementation


def _forms(function: OpenFunction) -> Iterator[tuple[str, tuple[type, ...], Callable[..., Any]]]:
    """All implementations, and their other forms for GPUs, in an order that is the same in every process."""
    for kind, forms in (("", function.implementations), ("device", function.device_forms)):
        for key, implementation in sorted(forms.items(), key=lambda item: [_name(c) for c in item[0]]):
            yield kind, key, implementation


def _top(function: Any) -> str:
    return str(getattr(function, "__module__", "")).split(".")[0]


def _in_package(function: Any) -> bool:
    """Whether a function is in the sources of the package fingerprint."""
    top, _, inside = str(getattr(function, "__module__", "")).partition(".")
    return top == _PACKAGE and inside.split(".")[0] not in COMPILE_NOTHING


def _is_versioned(function: Any) -> bool:
    """Whether the content of a function is in the package fingerprint, by its source or by a version."""
    return _in_package(function) or _top(function) in ("numpy", "numba", "math")


def fingerprint(value: Any) -> bytes:
    """A digest of what a function does: its bytecode, constants, and what it reads from its module and its closure."""
    digest = hashlib.sha256()
    _absorb(value, digest, set())
    return digest.digest()


def _absorb(value: Any, digest: Any, seen: set[int]) -> None:
    if is_jitted(value):
        digest.update(repr(sorted(value.targetoptions.items(), key=repr)).encode())
        value = value.py_func
    if isinstance(value, pytypes.FunctionType):
        digest.update(f"{value.__module__}.{value.__qualname__}".encode())
        if id(value) not in seen and not _is_versioned(value):
            seen.add(id(value))
            _absorb_function(value, digest, seen)
    elif isinstance(value, pytypes.CodeType):
        _absorb_code(value, digest, seen)
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, tuple | list):
        digest.update(f"{type(value).__name__}{len(value)}".encode())
        for item in value:
            _absorb(item, digest, seen)
    elif isinstance(value, OpenFunction):
        digest.update(value.__name__.encode())
        for kind, key, implementation in _forms(value):
            digest.update(repr((kind, [_name(c) for c in key])).encode())
            _absorb(implementation, digest, seen)
    elif isinstance(value, type | pytypes.ModuleType | pytypes.BuiltinFunctionType | np.ufunc):
        digest.update(str(getattr(value, "__name__", value)).encode())
    elif isinstance(
        value, int | float | complex | str | bytes | bool | None | np.generic | np.dtype | enum.Enum | types.Type
    ):
        digest.update(f"{type(value).__name__}{value!r}".encode())
    else:
        digest.update(f"{type(value).__module__}.{type(value).__qualname__}".encode())


def _absorb_function(function: pytypes.FunctionType, digest: Any, seen: set[int]) -> None:
    _absorb_code(function.__code__, digest, seen)
    _absorb(function.__defaults__ if function.__defaults__ is not None else (), digest, seen)
    for cell in function.__closure__ if function.__closure__ is not None else ():
        _absorb(cell.cell_contents, digest, seen)
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            value = function.__globals__[name]
            digest.update(name.encode())
            _absorb(value, digest, seen)
            if isinstance(value, pytypes.ModuleType):
                _absorb_attributes(value, _names(function.__code__), digest, seen)


def _absorb_attributes(module: pytypes.ModuleType, names: set[str], digest: Any, seen: set[int]) -> None:
    """What a function may read through ``module.name``: the user's own functions and constants."""
    for name in sorted(names):
        value = vars(module).get(name)
        if is_jitted(value) or isinstance(value, pytypes.FunctionType | int | float | np.ndarray | OpenFunction):
            digest.update(name.encode())
            _absorb(value, digest, seen)


def _names(code: pytypes.CodeType) -> set[str]:
    inner = (c for c in code.co_consts if isinstance(c, pytypes.CodeType))
    return set(code.co_names).union(*(_names(c) for c in inner))


def _absorb_code(code: pytypes.CodeType, digest: Any, seen: set[int]) -> None:
    digest.update(code.co_code)
    digest.update(repr((code.co_names, code.co_varnames, code.co_freevars, code.co_argcount)).encode())
    for constant in code.co_consts:
        _absorb(constant, digest, seen)
