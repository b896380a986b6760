"""Prefetching: to ask for rows that will be needed soon, while there is still work on those that are here.

Rows that are chosen at random are in no cache, and a processor does not guess them. It can have a few dozen lines of memory on
their way at once, but only if somebody names them in time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.extending import _Intrinsic

from sgmcmc.dispatch import implements, loop, open_function

__all__ = ["fetch", "fetch_row"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


class _Fetch(_Intrinsic):  # type: ignore[misc]
    def __call__(self, x: Any, j: int) -> None:  # type: ignore[override]
        pass


def _typed(_context: Any, x: Any, j: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.bitcast(builder.gep(array.data, [arguments[1]]), byte)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte] + 3 * [number])
        )
        # To be read, into the second-level cache: the first one is full of the rows that are being worked on.
        builder.call(function, [place, number(0), number(2), number(1)])
        return context.get_dummy_value()

    return types.void(x, types.int64), generate


fetch = _Fetch("fetch", _typed)  # fetch(x, j): the line of memory with x[j]
fetch._register()


@open_function
def per_line(number):
    """How many numbers of this kind are in a line of memory: known to the compiler, as an array's `itemsize` is not."""


@implements(per_line, np.float32)
def _(number):
    return 16


@implements(per_line, np.float64)
def _(number):
    return 8


@loop(inline=True)
def fetch_row(x):
    """All of a contiguous row."""
    for j in range(0, x.size, per_line(x[0])):
        fetch(x, j)
    fetch(x, x.size - 1)
