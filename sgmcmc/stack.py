"""Room on the stack: a short array that a loop made by `sgmcmc.dispatch` may have for itself, for nothing.

An array of NumPy's would cost an allocation, which loops without reference counts cannot make at all. LLVM also knows that no
other array overlaps this one, so it vectorises what it otherwise must not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.extending import _Intrinsic
from numpy.typing import NDArray

__all__ = ["ROOM", "room"]

ROOM = 64  # numbers


class _Room(_Intrinsic):  # type: ignore[misc]
    """An intrinsic of Numba's that can be called from Python, too."""

    def __call__(self, exemplar: Any) -> NDArray[Any]:  # type: ignore[override]
        return np.empty(ROOM, np.asarray(exemplar).dtype)


def _typed(_context: Any, exemplar: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, _arguments: Any) -> Any:
        from numba.np.arrayobj import populate_array  # 20 ms, for who compiles

        number = context.get_data_type(signature.args[0])
        with builder.goto_entry_block():
            place = builder.alloca(ir.ArrayType(number, ROOM))
            place.align = 64
        word, size = ir.IntType(64), context.get_abi_sizeof(number)
        array = context.make_array(signature.return_type)(context, builder)
        data = builder.bitcast(place, number.as_pointer())
        populate_array(array, data, [word(ROOM)], [word(size)], word(size), meminfo=None)
        return array._getvalue()

    return types.Array(exemplar, 1, "C")(exemplar), generate


room = _Room("room", _typed)  # room(x): ROOM numbers of the precision of x; what is in them is not known
room._register()
