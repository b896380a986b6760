"""Models that see a row x only through z = x·θ: two loops, and per model a loss of z and its slope.

A model of this kind is a NamedTuple with a C-ordered matrix `X`, mixed with `LinearPredictor`, and two scalar formulas
(`i` is the row, so that a formula can look up its response)::

    class PoissonRegression(Fields, LinearPredictor): ...          # fields X, y, prior

    @implements(loss, PoissonRegression)
    def _(model, z, i):
        return exp(z) - model.y[i] * z

    @implements(loss_slope, PoissonRegression)
    def _(model, z, i):
        return exp(z) - model.y[i]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sgmcmc.compiler.intrinsics import ROOM, room
from sgmcmc.compiler.open_functions import implements, loop, open_function
from sgmcmc.models.design import Columns, Named, draws_of
from sgmcmc.parameters import Parameters
from sgmcmc.potentials import (
    Model,
    add_energy,
    add_gradient,
    expect,
    laid_out,
    part_of_sum,
    sum_over_rows,
    sums_in_parts,
    sums_per_row,
    to_errors,
)
from sgmcmc.potentials.prefetch import fetch, fetch_row
from sgmcmc.threads import zeros_on_lines

__all__ = ["LinearPredictor", "loss", "loss_slope"]

# Numbers: a megabyte or two, which stays in a second-level cache; to ask for it would cost a quarter more.
IN_CACHE = 1 << 18
VECTOR = 64  # bytes, of the longest vectors there are


@open_function
def loss(model: Any, z: Any, i: Any) -> Any:
    """−log p(y_i | z)."""


@open_function
def loss_slope(model: Any, z: Any, i: Any) -> Any:
    """The derivative of `loss` by z."""


class LinearPredictor(Named, Model):
    """A model with one coefficient per column of its design matrix."""

    __slots__ = ()
    X: NDArray[np.float64]
    columns: Columns

    @property
    def dim(self) -> int:
        """How many coefficients there are."""
        return int(self.X.shape[1])

    @property
    def n_rows(self) -> int:
        """How many rows of data there are."""
        return len(self.X)

    @property
    def parameters(self) -> Parameters:
        """A number for each named column; one vector theta without names."""
        return {"theta": (self.dim,)} if self.names is None else dict.fromkeys(self.names, ())

    def _average(self, theta: ArrayLike, X: ArrayLike, response: Any) -> NDArray[np.float64]:
        """The mean over draws of response(x·θ), one draw at a time so that memory stays that of one."""
        draws, matrix = draws_of(theta, self.dim), self.columns.apply(X)
        total = np.zeros(len(matrix))
        for draw in draws:
            total += response(matrix @ draw)
        return total / len(draws)


@loop
def _dot(x: Any, theta: Any) -> Any:
    z = 0.0
    for j in range(theta.size):
        z += x[j] * theta[j]
    return z


@loop(inline=True)
def _four(rows: Any, k: Any) -> Any:
    """The rows k … k + 3; beyond the last it is the last again."""
    last = rows.size - 1
    i0, i1, i2, i3 = rows[k], rows[min(k + 1, last)], rows[min(k + 2, last)], rows[min(k + 3, last)]
    # A number without a sign is no place counted from the end, which would be looked for each time (4 ns of 144).
    return np.uint64(i0), np.uint64(i1), np.uint64(i2), np.uint64(i3)


@loop(inline=True)
def _dot_four(x0: Any, x1: Any, x2: Any, x3: Any, theta: Any) -> Any:
    z0 = z1 = z2 = z3 = 0.0
    for j in range(theta.size):
        z0 += x0[j] * theta[j]
        z1 += x1[j] * theta[j]
        z2 += x2[j] * theta[j]
        z3 += x3[j] * theta[j]
    return z0, z1, z2, z3


@loop(apart=True, inline=True)
def _predict(X: Any, theta: Any, rows: Any, z: Any) -> Any:
    """z[k] = x_k·θ, four rows at a time: four sums that do not wait for each other."""
    for k in range(0, rows.size, 4):
        i0, i1, i2, i3 = _four(rows, k)
        z[k], z[k + 1], z[k + 2], z[k + 3] = _dot_four(X[i0], X[i1], X[i2], X[i3], theta)


@loop(apart=True, inline=True)
def _add_rows(X: Any, rows: Any, slopes: Any, coming: Any, out: Any) -> Any:
    """out += Σ slopes_k x_k, one pass over `out` for four rows; those beyond the last have slope 0. Meanwhile others come."""
    for k in range(0, rows.size, 4):
        for i in range(k, min(k + 4, coming.size)):
            fetch_row(X[coming[i]])
        i0, i1, i2, i3 = _four(rows, k)
        x0, x1, x2, x3 = X[i0], X[i1], X[i2], X[i3]
        r0, r1, r2, r3 = slopes[k], slopes[k + 1], slopes[k + 2], slopes[k + 3]
        for j in range(out.size):
            out[j] += (r0 * x0[j] + r1 * x1[j]) + (r2 * x2[j] + r3 * x3[j])


@implements(expect, LinearPredictor)
def _(model: Any, rows: Any) -> None:
    # 16 of 1e6 rows of 25 columns in float32: 470 ns a step, 1030 without asking; of 1e5 rows 410, and 550 without.
    if model.X.size > IN_CACHE:
        for i in rows:
            fetch_row(model.X[i])
            fetch(model.y, i)


@implements(laid_out, LinearPredictor)
def _(model: Any) -> Any:
    """Columns of zeros until vectors are full, if all fits in a cache: then no loop over columns has a rest to take one by one.

    A step of SGLD with 16 rows of 25 columns in float32 took 236 ns, and takes 217. No vector lies across two lines of the
    cache: such a gradient takes 110 ns, and 114 to 126 where they do.
    """
    columns, vector = model.X.shape[1], VECTOR // model.X.itemsize
    width = -(-columns // vector) * vector
    if width == columns or width > ROOM or len(model.X) * width > IN_CACHE:
        return model
    wide = zeros_on_lines((len(model.X), width), model.X.dtype)
    wide[:, :columns] = model.X
    return model._replace(X=wide)


@implements(add_gradient, LinearPredictor)
def _(model: Any, theta: Any, rows: Any, out: Any) -> None:
    """out += Σ loss'(x_i·θ) x_i, for as many rows at once as there is room for.

    First all z, then all slopes, then all sums: no row waits for the logistic function of the one before, and many are on
    their way from memory together. The rows after them are asked for during the sums, if they can not all be in a cache (1000 of
    1e6 rows of 100 columns in float32: 54 µs, against 82 without asking; 23 if they stand one behind the other).
    """
    z, wide, sums = room(theta[0]), room(theta[0]), room(theta[0])
    width, dim = model.X.shape[1], theta.size
    point, total = (theta, out) if width == dim else (wide[:width], sums[:width])
    if width > dim:
        for j in range(width):
            wide[j] = 0.0
            sums[j] = 0.0
        for j in range(dim):
            wide[j] = theta[j]
    for first in range(0, rows.size, ROOM):
        some = rows[first : min(first + ROOM, rows.size)]
        _predict(model.X, point, some, z)
        for k in range(some.size):
            z[k] = loss_slope(model, z[k], some[k])
        for k in range(some.size, some.size + (-some.size) % 4):
            z[k] = 0.0
        coming = rows[first + some.size : min(first + 2 * ROOM, rows.size)]
        _add_rows(model.X, some, z, coming if model.X.size > IN_CACHE else coming[:0], total)
    if width > dim:
        for j in range(dim):
            out[j] += sums[j]


@implements(add_gradient, LinearPredictor, device=True)
def _(model: Any, theta: Any, rows: Any, out: Any) -> None:
    # The same without room, which a thread of a GPU would have to take from slow memory: four rows at a time.
    fours = rows.size - rows.size % 4
    for k in range(0, fours, 4):
        i0, i1, i2, i3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        x0, x1, x2, x3 = model.X[i0], model.X[i1], model.X[i2], model.X[i3]
        z0, z1, z2, z3 = _dot_four(x0, x1, x2, x3, theta)
        r0, r1 = loss_slope(model, z0, i0), loss_slope(model, z1, i1)
        r2, r3 = loss_slope(model, z2, i2), loss_slope(model, z3, i3)
        for j in range(out.size):
            out[j] += (r0 * x0[j] + r1 * x1[j]) + (r2 * x2[j] + r3 * x3[j])
    for k in range(fours, rows.size):
        i = rows[k]
        x = model.X[i]
        r = loss_slope(model, _dot(x, theta), i)
        for j in range(out.size):
            out[j] += r * x[j]


@implements(sums_in_parts, LinearPredictor)
def _(model: Any) -> Any:
    return True


@implements(add_energy, LinearPredictor)
def _(model: Any, theta: Any, rows: Any) -> Any:
    total = 0.0
    for i in rows:
        total += loss(model, _dot(model.X[i], theta), i)
    return total


# ---- many threads together: one sum per row, z = x·θ -----------------------------------------------------------------


@implements(sums_per_row, LinearPredictor)
def _(model: Any) -> Any:
    return 1


@implements(part_of_sum, LinearPredictor)
def _(model: Any, theta: Any, i: Any, k: Any, first: Any, stride: Any) -> Any:
    z = 0.0
    for j in range(first, theta.size, stride):
        z += model.X[i, j] * theta[j]
    return z


@implements(to_errors, LinearPredictor)
def _(model: Any, i: Any, z: Any) -> None:
    z[0] = loss_slope(model, z[0], i)


@implements(sum_over_rows, LinearPredictor)
def _(model: Any, rows: Any, errors: Any, j: Any) -> Any:
    total = 0.0
    for r in range(rows.size):
        total += errors[r] * model.X[rows[r], j]
    return total
