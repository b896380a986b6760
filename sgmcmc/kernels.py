"""Kernels: compiled functions whose disk cache can never be stale.

`kernel` is ``numba.njit`` with the package's compile options, and with a cache key that is the *content* of what is
compiled in. Numba's own key sees the file of the kernel only, so an edit in another file, or a changed ``@implements``
in a user's module, would silently run the old machine code. Ours holds

* a fingerprint of the package's sources,
* for every type in the signature, a fingerprint of each implementation that is not in the package: its bytecode and
  constants, and, recursively, the functions and values it reads from its module.

Each key has a file of its own, so that processes that compile at the same time cannot get into each other's way.
"""

from __future__ import annotations

import contextlib
import enum
import hashlib
import logging
import os
import pickle
import types as pytypes
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import config
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import rtsys
from numba.core.typing import signature

from sgmcmc.dispatch import LOOP, OpenFunction, open_functions
from sgmcmc.interrupts import with_late_interrupts
from sgmcmc.linking import KernelCompiler
from sgmcmc.loading import LeanCache
from sgmcmc.remembering import without_collecting
from sgmcmc.type_errors import with_plain_errors

__all__ = ["ContentCache", "fingerprint", "implementations_fingerprint", "kernel"]

_log = logging.getLogger(__name__)
ROOT = os.path.dirname(os.path.abspath(__file__))
INSTALLED = Path(ROOT) / "compiled"  # made by ready.py; not there in a working copy


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a module-level function for the CPU: no GIL, NumPy's division rules, cached by content."""
    options = {"nogil": True, "error_model": "numpy", "fastmath": set(LOOP)}
    # Nothing calls a kernel from C: an entry for that is a hundred arguments, copied, in a tenth of the machine code.
    compiled = numba.njit(**options, no_cfunc_wrapper=True, pipeline_class=KernelCompiler)(function)
    if not config.DISABLE_JIT:
        with keeps_going():
            compiled._cache = _KernelCache(function)
        compiled._compiler.compile = with_plain_errors(compiled._compiler)
        compiled.compile = with_late_interrupts(without_collecting(compiled.compile), compiled)
    return compiled


_told: set[str] = set()


@contextlib.contextmanager
def keeps_going() -> Iterator[None]:
    """Where nothing can be written, as in a read-only home, kernels are compiled in every process; said once."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # RuntimeError: Numba found no folder
        if "cache" not in _told:
            _told.add("cache")
            _log.warning("compiled code is not kept: %s; set NUMBA_CACHE_DIR to a folder that can be written to", error)


class FilePerKey(IndexDataCacheFile):  # type: ignore[misc]
    """A file for each key, named after it.

    Numba numbers its files in an index. Two processes that save at once can be given the same number, and then the machine
    code of one signature may answer to the key of the other: a crash at best. Here nothing is shared but the folder.
    """

    def save(self, key: str, data: Any) -> None:
        self._save_data(self._name_of(key), data)

    def load(self, key: str) -> Any:
        """From the user's cache, or from what came with the installation."""
        name = self._name_of(key)
        for load in (self._load_data, _load_installed):
            try:
                return load(name)
            except (
                OSError,
                EOFError,
                pickle.UnpicklingError,
                zlib.error,
            ):  # not there, or half of it: it is compiled again
                continue
        return None

    def flush(self) -> None:
        for path in Path(self._cache_path).glob(self._name_of("*")):
            path.unlink(missing_ok=True)

    def _name_of(self, key: str) -> str:
        return f"{self._index_name.removesuffix('.nbi')}.{key[:32]}.nbc"


def _load_installed(name: str) -> Any:
    """Compressed, to a fifth of its size."""
    return pickle.loads(zlib.decompress((INSTALLED / name).read_bytes()))


class ContentCache:
    """For a cache of Numba's to inherit from first: what it looks for is the content of all that is compiled in."""

    _py_func: Callable[..., Any]

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[call-arg]
        stamp = self._impl.locator.get_source_stamp()  # type: ignore[attr-defined]
        self._cache_file = FilePerKey(self._cache_path, self._impl.filename_base, stamp)  # type: ignore[attr-defined]

    def _index_key(self, sig: Any, codegen: Any) -> str:
        """A digest in place of the signature itself: it must be equal in another process, where types are other objects."""
        digest = hashlib.sha256(_loaded_sources())
        arguments = getattr(sig, "args", sig)  # Numba hands over a tuple of types, or a signature
        for part in (_describe(arguments), codegen.magic_tuple(), self._py_func.__qualname__):
            digest.update(repr(part).encode())
        for cls in sorted({c for t in arguments for c in _classes(t)}, key=_name):
            digest.update(implementations_fingerprint(cls))
        return digest.hexdigest()


class _KernelCache(ContentCache, FunctionCache):  # type: ignore[misc]
    _impl_class = LeanCache

    def save_overload(self, sig: Any, data: Any) -> None:
        """A full disk, or a folder that has become read-only, is no reason to stop."""
        with keeps_going():
            super().save_overload(sig, data)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for these very types, by their content.

        A class that a script defines is kept by value, and comes back as another class of the same content. Under the types of
        that class no call would find the kernel: each would load it again, until the memory is full.
        """
        # All that machine code needs; Numba's own also loads what only its compiler does.
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            found = self._load_overload(sig, target_context)
        return None if found is None else found._replace(signature=signature(found.signature.return_type, *sig))


def package_fingerprint() -> bytes:
    """A digest of the package's sources that are compiled, and of the versions that shape the machine code.

    Only what is made by the decorators of dispatch.py, of this file and of device/kernel.py is ever compiled, so a file that
    names none of them, such as one with plots, does not count.
    """
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__}".encode())
    makers = (b"sgmcmc.dispatch", b"sgmcmc.kernels", b"sgmcmc.linking", b"sgmcmc.device.kernel")
    always = [os.path.join(ROOT, name) for name in ("linking.py", "lowering.py", "remembering.py")]
    for path in _sources():
        with open(path, "rb") as file:
            source = file.read()
        if path in always or any(name in source for name in makers):
            digest.update(os.path.relpath(path, ROOT).encode())
            digest.update(source)
    return digest.digest()


def _sources() -> list[str]:
    """The package's Python files, in an order that is the same everywhere; a third of the time that pathlib takes."""
    found = []
    for folder, _, names in os.walk(ROOT):
        found += [os.path.join(folder, name) for name in names if name.endswith(".py")]
    return sorted(found)


_known: dict[tuple[Any, ...], bytes] = {}  # the fingerprint of files with these sizes and times


def _fingerprint_now() -> bytes:
    state = tuple((path, (status := os.stat(path)).st_size, status.st_mtime_ns) for path in _sources())
    found = _known.get(state)
    if found is None:
        found = package_fingerprint()
        _known.clear()
        _known[state] = found
    return found


_AT_IMPORT = _fingerprint_now()


def _loaded_sources() -> bytes:
    """The fingerprint of the sources that this process has loaded.

    If they were edited since, what it compiles belongs to neither version: a key that is never found again keeps it from
    being taken for the new one by other processes.
    """
    now = _fingerprint_now()
    return now if now == _AT_IMPORT else now + os.urandom(16)


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _describe(arguments: Any) -> str:
    """The types with full class names: two classes of one name in two modules must not share machine code."""
    classes = sorted({_name(c) for t in arguments for c in _classes(t)})
    return f"{arguments} {classes}"


def _classes(numba_type: Any) -> Iterator[type]:
    """The NamedTuple classes inside a Numba type."""
    if isinstance(numba_type, types.BaseNamedTuple):
        yield numba_type.instance_class
    if isinstance(numba_type, types.BaseTuple):
        for member in set(numba_type.types):
            yield from _classes(member)


def implementations_fingerprint(cls: type) -> bytes:
    """A digest of what a class means to every open function, as far as that is not said in this package."""
    digest = hashlib.sha256(_name(cls).encode())
    digest.update(repr(getattr(cls, "_fields", ())).encode())
    for name, kind, key, implementation in _foreign():
        if any(base in cls.__mro__ for base in key):
            digest.update(f"{name} {kind} {[_name(c) for c in key]}".encode())
            digest.update(fingerprint(implementation))
    return digest.digest()


def _foreign() -> Iterator[tuple[str, str, tuple[type, ...], Callable[..., Any]]]:
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
    return _top(function) == __package__


_VERSIONED = {__package__, "numpy", "numba", "math"}  # their content is in the package fingerprint


def fingerprint(value: Any) -> bytes:
    """A digest of what a function does: its bytecode, constants, and what it reads from its module and its closure."""
    digest = hashlib.sha256()
    _absorb(value, digest, set())
    return digest.digest()


def _absorb(value: Any, digest: Any, seen: set[int]) -> None:
    if isinstance(value, Dispatcher):
        digest.update(repr(sorted(value.targetoptions.items(), key=repr)).encode())
        value = value.py_func
    if isinstance(value, pytypes.FunctionType):
        digest.update(f"{value.__module__}.{value.__qualname__}".encode())
        if id(value) not in seen and _top(value) not in _VERSIONED:
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
    elif isinstance(value, int | float | complex | str | bytes | bool | None | np.generic | enum.Enum):
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
        if isinstance(value, Dispatcher | pytypes.FunctionType | int | float | np.ndarray | OpenFunction):
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
