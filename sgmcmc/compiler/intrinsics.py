"""Operations of LLVM's that Numba has no word for, each with a plain form for calls from Python.

    room(x)                           a short array on the stack
    fetch(x, j)                       ask for a line of memory ahead of time
    read_signal, give_signal, give_way    numbers that one thread writes and others see, in order

An array of NumPy's would cost an allocation, which loops without reference counts cannot make at all; and LLVM knows of `room`
that no other array overlaps it, so it vectorises what it otherwise must not. A plain store may be kept in a register, or
overtaken by the ones before it: a thread that has read a signal also sees all that was written before it was given.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

__all__ = ["ROOM", "Intrinsic", "fetch", "give_signal", "give_way", "read_signal", "room", "yield_address"]

ROOM = 64  # numbers


class Intrinsic:
    """A function in Python that compiled code knows by another form (`literals.with_intrinsics` puts it in)."""

    def __init__(self, plain: Callable[..., Any], compiled: Any) -> None:
        self.plain, self.compiled = plain, compiled
        self.__name__, self.__doc__ = plain.__name__, plain.__doc__

    def __call__(self, *arguments: Any) -> Any:
        return self.plain(*arguments)


def _with_compiled_form(typed: Callable[..., Any]) -> Callable[[Callable[..., Any]], Intrinsic]:
    return lambda plain: Intrinsic(plain, intrinsic(typed))


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]])


# ---- room on the stack ----------------------------------------------------------------------------------------------


def _typed_room(_context: Any, exemplar: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, _arguments: Any) -> Any:
        with builder.goto_entry_block():
            place = builder.alloca(ir.ArrayType(context.get_data_type(signature.args[0]), ROOM))
            place.align = 64
        number = context.get_data_type(signature.args[0])
        word, size = ir.IntType(64), context.get_abi_sizeof(number)
        array = context.make_array(signature.return_type)(context, builder)
        array.data = builder.bitcast(place, number.as_pointer())
        array.nitems, array.itemsize = word(ROOM), word(size)
        array.shape, array.strides = (ir.Constant(ir.ArrayType(word, 1), [word(n)]) for n in (ROOM, size))
        array.meminfo, array.parent = (getattr(array, name).type(None) for name in ("meminfo", "parent"))
        return array._getvalue()

    return types.Array(exemplar, 1, "C")(exemplar), generate


@_with_compiled_form(_typed_room)
def room(exemplar: Any) -> NDArray[Any]:
    """ROOM numbers of the precision of `exemplar`; what is in them is not known."""
    return np.empty(ROOM, np.asarray(exemplar).dtype)


# ---- memory ahead of time -------------------------------------------------------------------------------------------


def _typed_fetch(_context: Any, x: Any, j: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        place = builder.bitcast(_place(context, builder, signature, arguments), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte] + 3 * [number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        # To be read, into the second-level cache: the first one is full of the rows that are being worked on.
        builder.call(function, [place, number(0), number(2), number(1)])
        return context.get_dummy_value()

    return types.void(x, types.int64), generate


@_with_compiled_form(_typed_fetch)
def fetch(x: Any, j: int) -> None:
    """Ask for the line of memory with x[j]."""


# ---- signals between threads ----------------------------------------------------------------------------------------


def yield_address() -> int:
    """Where the system's function is by which a thread lets others have its core; 0 where there is none."""
    try:
        windows = sys.platform == "win32"
        library = ctypes.CDLL("kernel32" if windows else None)
        function = library.SwitchToThread if windows else library.sched_yield
        return int(ctypes.cast(function, ctypes.c_void_p).value or 0)
    except (AttributeError, OSError, TypeError):
        return 0


def _typed_read(_context: Any, signals: Any, i: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_place(context, builder, signature, arguments), "acquire", 8)

    return types.int64(signals, types.int64), generate


def _typed_give(_context: Any, signals: Any, i: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[2], _place(context, builder, signature, arguments), "release", 8)
        return context.get_dummy_value()

    return types.void(signals, types.int64, types.int64), generate


def _typed_way(_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        function = ir.FunctionType(ir.IntType(32), [])
        with builder.if_then(builder.icmp_signed("!=", arguments[0], ir.IntType(64)(0))):
            builder.call(builder.inttoptr(arguments[0], function.as_pointer()), [])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@_with_compiled_form(_typed_read)
def read_signal(signals: NDArray[Any], i: int) -> int:
    """An element of an int64 array."""
    return int(signals[i])


@_with_compiled_form(_typed_give)
def give_signal(signals: NDArray[Any], i: int, value: int) -> None:
    """Write an element of an int64 array."""
    signals[i] = value


@_with_compiled_form(_typed_way)
def give_way(address: int) -> None:
    """Another thread may have this core; `address` is `yield_address()`."""
