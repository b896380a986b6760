"""A number in the precision of another one."""

from __future__ import annotations

import numpy as np

from sgmcmc.compiler.open_functions import implements, open_function

__all__ = ["like"]


@open_function
def like(exemplar, value):  # type: ignore[no-untyped-def]
    """`value` (an integer, say) in the precision of `exemplar`: a product of int64 and float32 is float64 in Numba."""


@implements(like, np.float32)
def _(exemplar, value):  # type: ignore[no-untyped-def]
    return np.float32(value)


@implements(like, np.float64)
def _(exemplar, value):  # type: ignore[no-untyped-def]
    return np.float64(value)
