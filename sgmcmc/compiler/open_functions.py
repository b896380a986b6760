"""Open functions: behaviour that is given per type, in plain Python, and compiled by Numba.

A part of a sampler (a kinetics, an integrator, a model, …) is a ``NamedTuple`` of numbers and arrays. What it *does* is
an open function, and each type gives its own implementation::

    @open_function
    def velocity(kinetics, p):
        "K'(p), the velocity that belongs to the momentum p."

    @implements(velocity, Gaussian)
    def _(kinetics, p):
        return p / kinetics.mass

Called from Python, an open function runs the plain implementation, so it can be stepped through with a debugger. Called
from compiled code, Numba chooses the implementation while typing, so nothing is left of the choice at run time.

Literals are weak. ``0.5 * p`` with a float32 ``p`` stays float32, as it does in NumPy: before Numba sees an
implementation whose arguments are all of single precision, its float constants are made single too. Without this one
bare literal would quietly turn a float32 kernel into a float64 one.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any
from typing import overload as typing_overload

import numpy as np

from sgmcmc.compiler import backend
from sgmcmc.compiler.type_errors import in_package

__all__ = [
    "LEAF",
    "LOOP",
    "OpenFunction",
    "implements",
    "implements_by_type",
    "leaf",
    "loop",
    "open_function",
    "open_functions",
    "simulate_device",
]

# Fast-math flags never include nnan and ninf: with them LLVM may delete the very checks that notice a divergence.
LEAF = frozenset({"contract", "nsz"})  # scalar formulas: the order of operations is part of the accuracy
LOOP = frozenset({"contract", "nsz", "arcp", "reassoc"})  # array loops: sums may be reordered, so that they vectorise


class OpenFunction:
    """A function whose implementations are chosen by the types of its first `on` arguments."""

    def __init__(
        self,
        stub: Callable[..., Any],
        on: int,
        inline: bool,
        fastmath: frozenset[str],
        elementwise: bool,
        called: bool = False,
        apart: bool = False,
    ) -> None:
        self.__name__ = stub.__name__
        self.__qualname__ = stub.__qualname__
        self.__doc__ = stub.__doc__
        self.__module__ = stub.__module__
        self.__signature__ = inspect.signature(stub)
        self.on = on
        self.inline = inline
        self.fastmath = fastmath
        self.elementwise = elementwise
        self.called = called
        self.apart = apart
        self.implementations: dict[tuple[type, ...], Callable[..., Any]] = {}
        self.device_forms: dict[tuple[type, ...], Callable[..., Any]] = {}
        self.allocates: dict[tuple[type, ...], bool] = {}
        self.made_by_type: set[tuple[type, ...]] = set()
        self.numba_type: Any = None
        self._chosen: dict[tuple[type, ...], Callable[..., Any]] = {}

    def key_for(self, classes: tuple[type, ...]) -> tuple[type, ...] | None:
        """The types whose implementation serves these: exact ones first, then base classes, then ``object``."""
        for key in itertools.product(*(cls.__mro__ for cls in classes)):
            if key in self.implementations:
                return key
        return None

    def choose(self, classes: tuple[type, ...], device: bool = False) -> Callable[..., Any] | None:
        """The implementation for these classes; on a GPU its other form, if it has one."""
        key = self.key_for(classes)
        if key is None:
            return None
        if device and key in self.device_forms:
            return self.device_forms[key]
        found = self.implementations[key]
        return found(*classes) if key in self.made_by_type else found

    def __call__(self, *args: Any) -> Any:
        if self.elementwise and isinstance(args[1], np.ndarray) and args[1].ndim > 0:
            first, values, rest = args[0], args[1], args[2:]
            return np.array([self(first, x, *rest) for x in values.ravel()]).reshape(values.shape)
        classes = tuple(np.float64 if type(a) is float else type(a) for a in args[: self.on])
        found = self._chosen.get(classes)
        if found is None:
            found = self.choose(classes, _Simulated.on)
            if found is None:
                raise TypeError(self.missing(classes))
            self._chosen[classes] = found
        return found(*args)

    def has(self, *parts: Any) -> bool:
        """Whether there is an implementation for parts of these types."""
        return self.key_for(tuple(map(type, parts))) is not None

    def require(self, *parts: Any) -> None:
        """TypeError, in one sentence, if there is no implementation for parts of these types."""
        if not self.has(*parts):
            raise TypeError(self.missing(tuple(map(type, parts))))

    def missing(self, classes: tuple[type, ...]) -> str:
        """That there is no implementation for these classes, and what to do."""
        names = ", ".join(cls.__name__ for cls in classes)
        return f"{self.__name__} has no implementation for {names}; give one with @implements({self.__name__}, {names})"

    def __reduce__(self) -> str:
        return (
            self.__qualname__
        )  # by name, for a pickle that goes to another process: there it has its own implementations

    def __repr__(self) -> str:
        return f"<open function {self.__module__}.{self.__name__}{self.__signature__}>"


class _Simulated:
    """Whether calls from Python stand for calls on a GPU."""

    on = False


def simulate_device(on: bool = True) -> None:
    """Let calls from Python take the forms for GPUs, so that the CUDA simulator runs what a GPU would."""
    _Simulated.on = on
    for function in _OPEN_FUNCTIONS:
        function._chosen.clear()


_OPEN_FUNCTIONS: list[OpenFunction] = []


def open_functions() -> Iterator[OpenFunction]:
    """Every open function defined so far (the CUDA engine and the kernel cache walk through them)."""
    return iter(_OPEN_FUNCTIONS)


Decorator = Callable[[Callable[..., Any]], Any]


@typing_overload
def open_function(
    stub: Callable[..., Any],
    *,
    on: int = ...,
    inline: bool = ...,
    fastmath: Any = ...,
    elementwise: bool = ...,
    called: bool = ...,
    apart: bool = ...,
) -> Any: ...
@typing_overload
def open_function(
    *,
    on: int = ...,
    inline: bool = ...,
    fastmath: Any = ...,
    elementwise: bool = ...,
    called: bool = ...,
    apart: bool = ...,
) -> Decorator: ...
def open_function(
    stub: Callable[..., Any] | None = None,
    *,
    on: int = 1,
    inline: bool = True,
    fastmath: frozenset[str] = LEAF,
    elementwise: bool = False,
    called: bool = False,
    apart: bool = False,
) -> Any:
    """Make an open function of a stub that has a name, arguments and a docstring, and no body.

    `on` is how many of the leading arguments choose the implementation. Scalar formulas are inlined by force (LLVM
    vectorises a loop only if nothing in it is a call); functions that hold loops of their own say ``inline=False``.
    With ``elementwise=True`` a call from Python may have an array as its second argument, and gives one back. With
    ``called=True`` it is called on a GPU, where everything else is inlined: its registers are free again after it.
    ``apart=True`` promises that what it writes to overlaps none of its other arrays: without it LLVM checks that before every
    loop, and takes short loops one number at a time.
    """
    if stub is None:
        return functools.partial(
            open_function, on=on, inline=inline, fastmath=fastmath, elementwise=elementwise, called=called, apart=apart
        )
    function = OpenFunction(stub, on, inline, fastmath, elementwise, called, apart)
    _OPEN_FUNCTIONS.append(function)
    backend.declare(function)
    return function


@typing_overload
def leaf(function: Callable[..., Any], *, called: bool = ...) -> Any: ...
@typing_overload
def leaf(*, called: bool = ...) -> Decorator: ...
def leaf(function: Callable[..., Any] | None = None, *, called: bool = False) -> Any:
    """A scalar formula that serves every type: compiled with weak literals and inlined by force."""
    if function is None:
        return functools.partial(leaf, called=called)
    return _closed(function, open_function(function, on=0, called=called))


@typing_overload
def loop(
    function: Callable[..., Any],
    *,
    allocates: bool = ...,
    called: bool = ...,
    apart: bool = ...,
    inline: bool = ...,
    ordered: bool = ...,
) -> Any: ...
@typing_overload
def loop(
    *, allocates: bool = ..., called: bool = ..., apart: bool = ..., inline: bool = ..., ordered: bool = ...
) -> Decorator: ...
def loop(
    function: Callable[..., Any] | None = None,
    *,
    allocates: bool = False,
    called: bool = False,
    apart: bool = False,
    inline: bool = False,
    ordered: bool = False,
) -> Any:
    """A loop over arrays that serves every type: compiled with weak literals, its sums free to be reordered.

    ``inline=True`` for what every step calls: a NamedTuple of arrays is a hundred arguments, and to copy them from one frame of
    the stack to the next takes longer (0.1 µs) than a short loop. ``ordered=True`` for operations in the order they are written
    in, as in a leaf: where another form must give the same bits.
    """
    if function is None:
        return functools.partial(loop, allocates=allocates, called=called, apart=apart, inline=inline, ordered=ordered)
    fastmath = LEAF if ordered else LOOP
    opened = open_function(function, on=0, inline=inline, fastmath=fastmath, called=called, apart=apart)
    return _closed(function, opened, allocates)


def implements_by_type(function: OpenFunction, *on: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give an open function its meaning through a function of the *classes* of the arguments that returns it."""

    def register(maker: Callable[..., Any]) -> Callable[..., Any]:
        key = tuple(on) + (object,) * (function.on - len(on))
        function.implementations[key] = maker
        function.allocates[key] = False
        function.made_by_type.add(key)
        function._chosen.clear()
        return maker

    return register


def _closed(function: Callable[..., Any], opened: OpenFunction, allocates: bool = False) -> OpenFunction:
    implements(opened, allocates=allocates)(function)
    return opened


def implements(
    function: OpenFunction, *on: type, allocates: bool | None = None, device: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give an open function its meaning for arguments of the types `on`.

    Parameters
    ----------
    function : OpenFunction
    *on : type, of the first arguments
    allocates : bool, optional
        Whether it makes arrays. If not, it is compiled without reference counts, of which a step would otherwise update
        hundreds, each with an atomic instruction. None is yes, except within this package.
    device : bool
        Another form for GPUs, with the same results, of an implementation that there is for these very types.

    Returns
    -------
    callable, the decorator

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class Quartic(NamedTuple):
    ...     size: float = 1.0
    >>> @sg.implements(sg.kinetics.energy, Quartic)
    ... def _(kinetics, p):
    ...     return (p / kinetics.size) ** 4
    >>> sg.kinetics.energy(Quartic(), 2.0)
    16.0
    """
    if not isinstance(function, OpenFunction):
        raise TypeError(f"implements takes an open function, not {function!r}")
    if len(on) > function.on:
        raise TypeError(f"{function.__name__} is open on its first {function.on} argument(s); got {len(on)} types")
    key = tuple(on) + (object,) * (function.on - len(on))

    def register(implementation: Callable[..., Any]) -> Callable[..., Any]:
        wanted, given = len(function.__signature__.parameters), implementation.__code__.co_argcount
        if wanted != given:
            raise TypeError(f"{function.__name__} takes {wanted} arguments; the implementation for {on} takes {given}")
        function._chosen.clear()
        if device:
            if key not in function.implementations:
                raise TypeError(
                    f"{function.__name__} has no implementation for {on} that this could be another form of"
                )
            function.device_forms[key] = implementation
            return implementation
        function.implementations[key] = implementation
        function.allocates[key] = not in_package(implementation) if allocates is None else allocates
        return implementation

    return register
