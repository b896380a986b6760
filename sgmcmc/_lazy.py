"""Names that are loaded when they are asked for: a run needs half of the package, and `import sgmcmc` none of it."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

__all__ = ["lazily"]

# Python locks module by module. Two threads that load different names can each hold what the other waits for (modules of Numba's
# import each other); Python then hands out a module that is half loaded. No module here may ask for a lazy name while it is
# loaded itself: its thread would hold the lock of that module and wait for this one.
_LOADING = threading.RLock()


def lazily(package: str, homes: Mapping[str, Iterable[str]]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` of a package, given the modules that define its names; "" is for modules themselves.

    `dir(package)` lists these names alone, and nothing that happens to be loaded.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with _LOADING:
            if home_of[name] == "":
                return importlib.import_module(f"{package}.{name}")
            value = getattr(importlib.import_module(f"{package}.{home_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted(home_of)

    return get, names
