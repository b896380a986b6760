"""Machine code on Numba's public API alone: any version of it, several times slower to compile.

An open function is declared by ``numba.extending.overload``. A kernel is one ``numba.njit(cache=True)`` for each content of the
classes that it is called with, under a name that holds this content, so that Numba's own files are never stale. For a class
that a script defines, Numba finds none of its files again: each process compiles.
"""

from __future__ import annotations

import hashlib
import pickle
import types as pytypes
from collections import Counter
from collections.abc import Callable
from typing import Any

from numba import njit
from numba.extending import overload

from sgmcmc.compiler import waiting
from sgmcmc.compiler.literals import compiled_form

__all__ = ["cuda_driver", "declare", "dumps", "keep_device_kernel", "keep_parts", "kernel", "registers_of"]

dumps = pickle.dumps


def declare(function: Any) -> None:
    """Let Numba know of an open function."""
    names = ", ".join(function.__signature__.parameters)
    scope: dict[str, Any] = {"choose": lambda *signature: compiled_form(function, signature, False)}
    exec(
        f"def typing({names}):\n    return choose({names})", scope
    )  # with the very argument names of what it stands for
    options = {"forceinline": function.inline, "fastmath": set(function.fastmath), "error_model": "numpy"}
    overload(function, jit_options=options, strict=False)(scope["typing"])


def kernel(function: Callable[..., Any], options: dict[str, Any], keep: Any, around: Callable[..., Any]) -> Any:
    """Compile a module-level function for whatever it is called with."""
    return _Kernel(function, options)


class _Kernel:
    """A function of Numba's for each content of the classes in the arguments."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.py_func, self._options = function, options
        self._forms: dict[tuple[type, ...], Any] = {}
        self.__name__, self.__doc__, self.__module__ = function.__name__, function.__doc__, function.__module__

    def __call__(self, *arguments: Any) -> Any:
        classes: dict[type, None] = {}
        _collect(arguments, classes)
        key = tuple(classes)
        if key in self._forms:
            return self._forms[key](*arguments)
        self._forms[key] = njit(**self._options, cache=True)(self._named(list(key)))
        with waiting.said():
            waiting.compiles(self.__name__)
            return self._forms[key](*arguments)

    def _named(self, classes: list[type]) -> Callable[..., Any]:
        """The function under a name that holds the content of all that is compiled in."""
        from sgmcmc.compiler.fingerprints import implementations_fingerprint, package_fingerprint

        content = hashlib.sha256(
            package_fingerprint() + b"".join(map(implementations_fingerprint, classes))
        ).hexdigest()[:16]
        f = self.py_func
        copy = pytypes.FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
        copy.__module__, copy.__qualname__ = f.__module__, f"{f.__qualname__}_{content}"
        return copy

    @property
    def overloads(self) -> dict[Any, Any]:
        """What was compiled, by argument types, as a dispatcher of Numba's has it; the same goes for the three below."""
        return {types: found for form in self._forms.values() for types, found in form.overloads.items()}

    @property
    def nopython_signatures(self) -> list[Any]:
        return [signature for form in self._forms.values() for signature in form.nopython_signatures]

    @property
    def stats(self) -> pytypes.SimpleNamespace:
        found = [form.stats for form in self._forms.values()]
        hits: Counter[Any] = sum((each.cache_hits for each in found), Counter())
        misses: Counter[Any] = sum((each.cache_misses for each in found), Counter())
        return pytypes.SimpleNamespace(cache_hits=hits, cache_misses=misses)

    def inspect_llvm(self) -> dict[Any, str]:
        return {types: text for form in self._forms.values() for types, text in form.inspect_llvm().items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.py_func.__module__, self.py_func.__qualname__)


def _again(module: str, name: str) -> Any:
    import importlib

    return getattr(importlib.import_module(module), name)


def _collect(value: Any, classes: dict[type, None]) -> None:
    """The NamedTuple classes in a value."""
    if isinstance(value, tuple):
        if hasattr(value, "_fields"):
            classes[type(value)] = None
        for member in value:
            _collect(member, classes)


def keep_device_kernel(compiled: Any, keep: Any, guard: Callable[[], Any]) -> None:
    """Nothing: without Numba's insides a kernel for GPUs is compiled in every process."""


def keep_parts(files: Any) -> None:
    """Nothing: parts are Numba's here."""


def cuda_driver() -> Any:
    """The handle of the driver is not public."""
    raise RuntimeError("GPUs need the bridge to Numba's insides, which is not in use here (see docs/versions.md)")


registers_of = cuda_driver
