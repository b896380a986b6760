"""Kept results: what a run of an experiment found, in a file that holds no code, and the name of the run that found it.

A result is made of numbers, texts, lists, tuples, dictionaries and arrays. The name is a digest of what was called with what, the
same in every process: a pickle would not do, since equal values have different ones if their parts are shared differently.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.trace import archive

__all__ = ["digest", "load", "save"]

_FORMAT, _VERSION = "sgmcmc.experiment", 1


def save(path: Path, value: Any) -> None:
    """Write a result; the file appears under its name when it is complete."""
    arrays: dict[str, Any] = {}
    header = {"format": _FORMAT, "version": _VERSION, "value": _outline(value, arrays)}
    path.parent.mkdir(parents=True, exist_ok=True)
    archive.write(path, header, arrays)


def load(path: Path) -> Any:
    """Read what `save` wrote; ValueError for any other file."""
    arrays, header = archive.read(path, _FORMAT, _VERSION, "a complete result of an experiment")
    return _filled(header["value"], arrays)


def _outline(value: Any, arrays: dict[str, Any]) -> Any:
    """The value in JSON, with arrays beside it: [kind, content]."""
    if isinstance(value, np.ndarray):
        arrays[f"array{len(arrays)}"] = value
        return ["array", f"array{len(arrays) - 1}"]
    if isinstance(value, dict):
        return ["dict", [[_outline(k, arrays), _outline(v, arrays)] for k, v in value.items()]]
    if type(value) in (list, tuple):
        return [type(value).__name__, [_outline(v, arrays) for v in value]]
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is None or type(plain) in (bool, int, float, str):
        return ["plain", plain]
    raise TypeError(f"a result holds a {type(value).__name__}; give numbers, texts, lists, dictionaries and arrays")


def _filled(outline: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    kind, content = outline
    if kind == "array":
        return arrays[content]
    if kind == "dict":
        return {_filled(k, arrays): _filled(v, arrays) for k, v in content}
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(_filled(v, arrays) for v in content)
    return content


def digest(*values: Any) -> str:
    """Hexadecimal digits that are equal for equal values, functions being equal by name."""
    found = hashlib.sha256()
    for value in values:
        _add(found, value)
    return found.hexdigest()[:32]


def _add(found: Any, value: Any) -> None:
    found.update(f"{type(value).__module__}.{type(value).__qualname__}(".encode())
    if isinstance(value, np.ndarray):
        found.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, functools.partial):
        _add(found, (value.func, value.args, value.keywords))
    elif isinstance(value, dict):
        for item in sorted(value.items(), key=repr):
            _add(found, item)
    elif isinstance(value, tuple | list):
        for part in value:
            _add(found, part)
    elif callable(value):
        found.update(f"{value.__module__}.{value.__qualname__}".encode())
    elif isinstance(value, bytes | str | int | float | np.generic | Path) or value is None:
        found.update(value if isinstance(value, bytes) else repr(value).encode())
    else:
        _add(found, value.__getstate__())  # a sampler: what it was made with
    found.update(b")")
