"""What Numba would find out again and again while one kernel is compiled: found once.

Of the time that it takes to type a kernel most goes into repetitions: what ``a + b`` means for two int64 is searched for among
dozens of templates at every plus sign, several times; every part looks whether new declarations have been imported; compile
options are compared field by field thousands of times. None of it changes while a kernel is compiled.
"""

from __future__ import annotations

import contextlib
import gc
import operator
from collections.abc import Callable, Iterator
from typing import Any

from numba import types
from numba.core.compiler import Flags
from numba.core.imputils import builtin_registry

__all__ = ["Remembering", "nothing_new", "shared_flags", "without_collecting"]

_answers: dict[tuple[Any, ...], Any] = {}


@contextlib.contextmanager
def nothing_new(typingctx: Any, targetctx: Any) -> Iterator[None]:
    """While a kernel and its parts are compiled, of new declarations only those are looked for that compiling makes.

    Numba looks into two dozen modules, for every part, for every intrinsic, and whenever it finds no definition.
    """
    if "refresh" in vars(targetctx):  # it is a part, compiled in the midst of a kernel
        yield
        return
    _answers.clear()
    targetctx.load_additional_registries()
    targetctx.install_registry(builtin_registry)
    targetctx.refresh = lambda: [targetctx.install_registry(registry) for registry in targetctx._registries]
    targetctx.get_abi_sizeof = _Sizes(targetctx.get_abi_sizeof)
    typingctx.refresh()
    typingctx.refresh = typingctx._load_builtins
    try:
        yield
    finally:
        del typingctx.refresh, targetctx.refresh, targetctx.get_abi_sizeof
        _answers.clear()


class Remembering:
    """A typing context that answers a question it has answered before from memory.

    Types are unique objects as long as something refers to them, as the answers do; so they are looked up by identity.
    """

    def __init__(self, context: Any) -> None:
        self._context = context

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """The signature of a function for arguments of these types."""
        if kws:
            return self._context.resolve_function_type(func, args, kws)
        if _is_arithmetic(func):  # 2 and 3 are of different types to Numba, and yet a + 2 means what a + 3 does
            args = tuple(types.unliteral(a) if isinstance(a, types.Number) else a for a in args)
        key = id(func), *map(id, args)
        if key not in _answers:
            _answers[key] = self._context.resolve_function_type(func, args, kws), func, args
        return _answers[key][0]

    def resolve_getattr(self, typ: Any, attr: str) -> Any:
        """The type of an attribute."""
        key = attr, id(typ)
        if key not in _answers:
            _answers[key] = self._context.resolve_getattr(typ, attr), typ
        return _answers[key][0]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


def _is_arithmetic(func: Any) -> bool:
    return isinstance(func, types.Function) and func.key[0] in _ARITHMETIC


_ARITHMETIC = {
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
}  # fmt: skip


class _Sizes(dict[str, int]):
    """Sizes of types: to find one, Numba has LLVM parse a module."""

    def __init__(self, measure: Callable[[Any], int]) -> None:
        self._measure = measure

    def __call__(self, kind: Any) -> int:
        name = str(kind)
        if name not in self:
            self[name] = self._measure(kind)
        return self[name]


class _SharedFlags(Flags):  # type: ignore[misc]
    """Compile options that are compared by identity first, and hashed once; nothing changes them."""

    __slots__ = ("_hash",)

    def __hash__(self) -> int:
        if not hasattr(self, "_hash"):
            self._hash = int(super().__hash__())
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or bool(super().__eq__(other))

    def copy(self) -> _SharedFlags:
        """Itself: Numba copies them for every function."""
        return self


_FLAGS: dict[_SharedFlags, _SharedFlags] = {}


def shared_flags(flags: Flags) -> _SharedFlags:
    """The one object that stands for these options."""
    own = _SharedFlags(flags)
    return _FLAGS.setdefault(own, own)


def without_collecting(compile_for: Callable[..., Any]) -> Callable[..., Any]:
    """To compile makes a million objects that stay; to search them for garbage again and again takes a sixth of the time."""

    def wrapped(sig: Any) -> Any:
        collecting = gc.isenabled()
        gc.disable()
        try:
            return compile_for(sig)
        finally:
            if collecting:
                _grow_old()
                gc.enable()

    return wrapped


def _grow_old() -> None:
    """What is there now counts as old: the next little collection would search all of it (0.2 s)."""
    if gc.get_freeze_count() == 0:  # else there are objects that somebody wants to stay frozen
        gc.freeze()
        gc.unfreeze()
