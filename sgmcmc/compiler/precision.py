"""Numbers in the precision of another one."""

from __future__ import annotations

import numpy as np

from sgmcmc.compiler.open_functions import implements, open_function

__all__ = ["like", "zero"]

# mypy: disable-error-code="no-untyped-def"


@open_function
def like(exemplar, value):
    """`value` (an integer, say) in the precision of `exemplar`: a product of int64 and float32 is float64 in Numba."""


@open_function
def zero(exemplar):
    """0 in the precision of `exemplar`: what a sum begins with."""


@implements(like, np.float32)
def _(exemplar, value):
    return np.float32(value)


@implements(like, np.float64)
def _(exemplar, value):
    return np.float64(value)


@implements(zero, np.float32)
def _(exemplar):
    return np.float32(0)


@implements(zero, np.float64)
def _(exemplar):
    return np.float64(0)
