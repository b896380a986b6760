"""Signals between threads inside compiled code: a number that one thread writes and the others see, in order.

A plain store may be kept in a register, or overtaken by the ones before it. These are atomic: whoever has read a signal also sees
all that was written before it was given.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.extending import _Intrinsic
from numpy.typing import NDArray

__all__ = ["give_signal", "give_way", "read_signal", "yield_address"]


def yield_address() -> int:
    """Where the system's function is by which a thread lets others have its core; 0 where there is none."""
    try:
        windows = sys.platform == "win32"
        library = ctypes.CDLL("kernel32" if windows else None)
        function = library.SwitchToThread if windows else library.sched_yield
        return int(ctypes.cast(function, ctypes.c_void_p).value or 0)
    except (AttributeError, OSError, TypeError):
        return 0


class _Read(_Intrinsic):  # type: ignore[misc]
    def __call__(self, signals: NDArray[Any], i: int) -> int:  # type: ignore[override]
        return int(signals[i])


class _Give(_Intrinsic):  # type: ignore[misc]
    def __call__(self, signals: NDArray[Any], i: int, value: int) -> None:  # type: ignore[override]
        signals[i] = value


class _Way(_Intrinsic):  # type: ignore[misc]
    def __call__(self, address: int) -> None:  # type: ignore[override]
        pass


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]])


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


read_signal = _Read("read_signal", _typed_read)  # read_signal(signals, i): an element of an int64 array
give_signal = _Give("give_signal", _typed_give)  # give_signal(signals, i, value)
give_way = _Way("give_way", _typed_way)  # give_way(address): another thread may have this core, if there is one
for _intrinsic in (read_signal, give_signal, give_way):
    _intrinsic._register()
