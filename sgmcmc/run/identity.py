"""The identity of a run: all facts that its draws depend on, by name, so that an error can name the one that differs.

Arrays are compared by a digest of their bytes. Of a memory-mapped file of more than 64 MB only 256 evenly spaced blocks are
read: enough to tell data sets apart, not to find one changed number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
from numba.extending import is_jitted
from numpy.typing import NDArray

from sgmcmc.checks import is_mapped
from sgmcmc.compiler.fingerprints import fingerprint, has_foreign_implementations, implementations_fingerprint
from sgmcmc.compiler.type_errors import in_package
from sgmcmc.potentials import Potential, PythonPotential
from sgmcmc.run.job import Chain
from sgmcmc.run.old_formats import is_same_fact
from sgmcmc.run.recording import Keep, KeepFunction
from sgmcmc.run.settings import Settings

__all__ = ["difference", "digest_of", "identity"]

BLOCKS, BLOCK = 256, 1 << 18
_SIMPLE = ("draws", "warmup", "thin", "chains", "first", "device", "noise", "clip", "on_divergence")


def identity(settings: Settings, seed: int, keep: Keep, chains: list[Chain]) -> dict[str, str]:
    """The facts, by name; `chains` are those of the start."""
    found = {name: str(getattr(settings, name)) for name in _SIMPLE}
    found |= {"seed": str(seed), "dtype": np.dtype(settings.dtype).name, "minibatch": repr(settings.rows)}
    found |= dict(_facts("model", settings.model))
    for field in fields(settings.sampler):
        found |= dict(_facts(f"sampler.{field.name}", getattr(settings.sampler, field.name)))
    found |= dict(_facts("keep", keep.function if isinstance(keep, KeepFunction) else type(keep).__name__))
    digest = hashlib.sha256()
    for chain in chains:
        digest.update(repr((chain.number, chain.step, chain.before, chain.fresh)).encode())
        for array in chain.state:
            digest.update(np.ascontiguousarray(array).data)
    return found | {"init": digest.hexdigest()}


def difference(there: dict[str, Any], here: dict[str, str]) -> str | None:
    """The first fact that differs, in words; None if all are equal."""
    for name in (*here, *there):
        if not is_same_fact(there.get(name), here.get(name)):
            return f"{name} is {_short(there.get(name))} there and {_short(here.get(name))} here"
    return None


def _short(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _facts(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """The facts of a value and of all that it contains."""
    if isinstance(value, PythonPotential):
        yield name, "Potential"
        for each, part in value.facts().items():
            yield from _facts(f"{name}.{each}", part)
    elif isinstance(value, tuple):
        yield name, _kind(value)
        for each, part in zip(getattr(value, "_fields", range(len(value))), value, strict=True):
            yield from _facts(f"{name}.{each}", part)
    elif isinstance(value, np.ndarray):
        yield name, f"{value.dtype} {value.shape} {digest_of(value)}"
    elif is_jitted(value) or callable(value):
        yield name, f"function {fingerprint(value).hex()[:32]}"
    elif hasattr(value, "shape") and hasattr(value, "__getitem__"):
        yield name, f"{type(value).__name__} {tuple(value.shape)}"
    elif isinstance(value, int | float | str | None | np.generic):
        yield name, repr(value)
    else:
        yield name, type(value).__qualname__


def _kind(value: Any) -> str:
    """The class of a tuple, and its implementations of open functions outside this package."""
    cls = type(value)
    if cls is tuple:
        return "tuple"
    if isinstance(value, Potential):
        return f"Potential {fingerprint(value._functions()[0]).hex()[:32]}"
    return f"{cls.__qualname__} {implementations_fingerprint(cls).hex()[:32]}" if _is_foreign(cls) else cls.__qualname__


def _is_foreign(cls: type) -> bool:
    """Whether a class, or anything that it means to an open function, is not of this package."""
    return not in_package(cls) or has_foreign_implementations(cls)


def digest_of(array: NDArray[Any]) -> str:
    """A digest of the bytes of an array; of blocks of it, if it is long and in a file."""
    digest = hashlib.sha256()
    if not (is_mapped(array) and array.nbytes > BLOCKS * BLOCK and array.flags.c_contiguous):
        digest.update(np.ascontiguousarray(array).data if array.size > 0 else b"")
        return digest.hexdigest()[:32]
    raw = array.reshape(-1).view(np.uint8)
    for first in np.linspace(0, raw.size - BLOCK, BLOCKS).astype(np.int64):
        digest.update(raw[first : first + BLOCK].data)
    return f"{digest.hexdigest()[:32]} (of stretches)"
