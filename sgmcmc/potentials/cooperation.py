"""Gradients that many threads find together: those of models that see a row of the data through a few sums over features.

A row i enters through sums z_k = Σ_j x_ij θ_jk, as in every generalised linear model, and the gradient is made of the
derivatives of −log p(y_i | z) by them. Threads share the terms of the sums, then the rows, then the coordinates; each of
these functions is what one thread does in between. A model without them is no error: one thread finds its gradient alone.
"""

from __future__ import annotations

from typing import Any

from sgmcmc.compiler.open_functions import LOOP, implements, open_function

__all__ = ["part_of_sum", "sum_over_rows", "sums_per_row", "to_errors"]


@open_function
def sums_per_row(model: Any) -> Any:
    """How many sums z_k a row enters through; 0 says that the model is not of this kind."""


@open_function(inline=False, fastmath=LOOP)
def part_of_sum(model: Any, theta: Any, i: Any, k: Any, first: Any, stride: Any) -> Any:
    """The terms first, first + stride, first + 2 stride, … of the sum z_k of row i, added up in this order."""


@open_function(inline=False, fastmath=LOOP)
def to_errors(model: Any, i: Any, z: Any) -> Any:
    """Replace the sums z of row i by the derivatives of −log p(y_i | z), in place."""


@open_function(inline=False, fastmath=LOOP)
def sum_over_rows(model: Any, rows: Any, errors: Any, j: Any) -> Any:
    """Σ_r ∂(−log p(y_r | z))/∂θ_j over `rows`, in their order; `errors` are those of all rows, one row after another."""


@implements(sums_per_row)
def _(model: Any) -> Any:
    return 0


@implements(part_of_sum)
def _(model: Any, theta: Any, i: Any, k: Any, first: Any, stride: Any) -> Any:
    return theta[0]  # never called: there are no sums


@implements(to_errors)
def _(model: Any, i: Any, z: Any) -> None:
    return None


@implements(sum_over_rows)
def _(model: Any, rows: Any, errors: Any, j: Any) -> Any:
    return errors[0]
