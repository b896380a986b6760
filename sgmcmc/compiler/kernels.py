"""Kernels: compiled functions that are kept on disk, and never stale.

`kernel` is ``numba.njit`` with the package's compile options. Numba's own files are found by the file of the kernel alone, so an
edit in another one, or a changed ``@implements`` in a user's module, would silently run the old machine code; ours are found by
the content of what is compiled in (`fingerprints`), in files that no other user can change (`store`).
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from numba import config

from sgmcmc.compiler import backend, waiting
from sgmcmc.compiler.fingerprints import key_of
from sgmcmc.compiler.interrupts import with_late_interrupts
from sgmcmc.compiler.literals import with_intrinsics
from sgmcmc.compiler.open_functions import LOOP
from sgmcmc.compiler.store import Store

__all__ = ["Kept", "kernel"]

OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": set(LOOP)}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a module-level function for the CPU: no GIL, NumPy's division rules, cached by content."""
    if config.DISABLE_JIT:
        return function
    return backend.kernel(with_intrinsics(function), OPTIONS, Kept(function), _around)


class Kept(Store):
    """The files of a kernel; `extra` is what its code depends on beside its types and the processor."""

    def __init__(self, function: Callable[..., Any], extra: str = "") -> None:
        super().__init__(function.__qualname__, backend.dumps)
        self._function, self._extra = function, extra

    def key_of(self, arguments: Any, target: tuple[Any, ...]) -> str:
        return key_of(self._function, arguments, (*target, self._extra))

    def load(self, key: str) -> Any:
        """As of any store; where there is nothing, what is compiled now is named to who waits."""
        found = super().load(key)
        if found is None:
            waiting.compiles(self._function.__name__)
        return found


def _around(compile_for: Callable[..., Any], engine: Any) -> Callable[..., Any]:
    """A dispatcher's `compile` that answers Ctrl-C at its end, says that it is at work, and looks for no garbage.

    To compile makes a million objects that stay; to search them for garbage again and again takes a tenth of the time.
    """
    late = with_late_interrupts(compile_for, engine)

    def wrapped(sig: Any) -> Any:
        collecting = gc.isenabled()
        gc.disable()
        try:
            with waiting.said():
                return late(sig)
        finally:
            if collecting:
                _grow_old()
                gc.enable()

    return wrapped


def _grow_old() -> None:
    """What is there now counts as old: the next little collection would search all of it (0.2 s)."""
    if gc.get_freeze_count() == 0:  # else the program has frozen objects itself
        gc.freeze()
        gc.unfreeze()


class _Parts(Store):
    """The files of parts."""

    def key_of(self, function: Callable[..., Any], arguments: Any, target: tuple[Any, ...]) -> str:
        return key_of(function, arguments, (*target, function.__code__.co_firstlineno))


backend.keep_parts(_Parts("part", backend.dumps))
