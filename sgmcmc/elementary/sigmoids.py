"""tanh, the logistic function and its integral."""

from __future__ import annotations

from typing import Any

from sgmcmc.compiler.open_functions import implements, leaf
from sgmcmc.compiler.precision import like
from sgmcmc.elementary.coefficients import constants
from sgmcmc.elementary.exponentials import exp, expm1_of_ordinary
from sgmcmc.elementary.logarithms import log1p, log1p_of_ordinary

__all__ = ["sigmoid", "softplus", "tanh"]


@leaf
def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    size = abs(x)
    e = expm1_of_ordinary(-2.0 * (like(size, 20.0) if size > 20.0 else size))
    y = e / (2.0 + e)
    return y if x < 0.0 else -y


@leaf
def sigmoid(x: Any) -> Any:
    """1 / (1 + e^-x)."""
    c = constants(x)
    e = exp(-abs(x))
    return (c.one if x > 0.0 else e) / (1.0 + e)


@leaf
def softplus(x: Any) -> Any:
    """log(1 + e^x)."""
    c = constants(x)
    return (x if x > 0.0 else c.zero) + log1p_of_ordinary(exp(-abs(x)))


@implements(softplus, device=True)
def _(x: Any) -> Any:
    c = constants(x)
    return (x if x > 0.0 else c.zero) + log1p(exp(-abs(x)))
