"""What a few rows tell of the gradient noise and of the Hessian at a point, in plain Python.

To compile a gradient for this would take longer than many runs. A gradient in Python is asked for batches of the size that the
run had, as one in JAX is compiled again for every other, and for a second at most.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.bias.gradients import noise_variance
from sgmcmc.bias.linear_law import Surroundings
from sgmcmc.frames import slope_in_units
from sgmcmc.potentials import Potential, PythonPotential, add_gradient, add_prior_gradient, rows_of

__all__ = ["row_variance", "surroundings"]

Array = NDArray[np.float64]
Sum = Callable[[Array, NDArray[np.int64]], Array]

FEW, ROWS, NUMBERS = (
    10,
    100,
    20_000,
)  # rows whose gradients tell the variance: at least, at most, and their numbers in all
LONG = 5000  # coordinates; above, compiled code is faster however long it takes to compile
MOST = 200  # rows that tell a covariance or a Hessian
SMALL = 32  # coordinates up to which the linear law is worked out
SECONDS = 1.0  # of a gradient in Python; any other takes some 50 ms, and what is said must not depend on the clock
STEP = 1e-4  # of a difference of gradients, in the chain's units


def row_variance(model: Any, theta: Array, size: int, kind: str, scale: Any) -> Array:
    """`noise_variance`, from at most 100 rows."""
    if theta.size > LONG:
        return noise_variance(model, theta, size, kind, most=FEW, scale=scale)
    slopes = _slopes(model, theta, size, kind, scale, min(ROWS, NUMBERS // theta.size))
    return np.asarray(slopes.var(axis=0, ddof=1 if len(slopes) > 1 else 0) * _share(model, size, kind))


def surroundings(
    model: Any, theta: Array, size: int, kind: str, scale: Any, added: Array
) -> tuple[Surroundings, tuple[Array, Array]] | None:
    """Hessian and covariance of the noise at θ in the chain's units, and the covariance by either half of the rows.

    `added` is the covariance of noise that is added on purpose. None where it takes too long, or θ is not near a mode.
    """
    begin = time.perf_counter()
    slopes = _slopes(model, theta, size, kind, scale, MOST)
    enough = min(MOST, NUMBERS // (8 * theta.size))
    in_python = isinstance(model, PythonPotential)
    batches = islice(_batches(model, size, kind), -(-enough // size)) if in_python else [_some_rows(model, enough)]
    H = _hessian(model, theta, scale, list(batches), begin + 2.0 * SECONDS if in_python else math.inf)
    if len(slopes) < 2 * FEW or H is None or not (np.isfinite(H).all() and np.linalg.eigvalsh(H)[0] > 0.0):
        return None
    found = [
        np.atleast_2d(np.cov(x.T)) * _share(model, size, kind) + added for x in (slopes, slopes[::2], slopes[1::2])
    ]
    return Surroundings(H, found[0]), (found[1], found[2])


def _share(model: Any, size: int, kind: str) -> float:
    """The variance of a batch's gradient by that of `_slopes`."""
    n = rows_of(model)
    if isinstance(model, PythonPotential):
        return 1.0
    return (1.0 if kind == "replacement" or n < 2 else 1.0 - (size - 1) / (n - 1)) / size


def _some_rows(model: Any, most: int) -> NDArray[np.int64]:
    n = rows_of(model)
    return np.unique(np.linspace(0, n - 1, min(n, max(FEW, most))).astype(np.int64))


def _batches(model: Any, size: int, kind: str) -> Iterator[NDArray[np.int64]]:
    """Rows as a run chooses them."""
    n, rng = rows_of(model), np.random.default_rng(0)
    while True:
        yield rng.integers(0, n, size) if kind == "replacement" else rng.permutation(n)[:size]


def _slopes(model: Any, theta: Array, size: int, kind: str, scale: Any, most: int) -> Array:
    """N times the gradients of some rows, or N/n times those of batches of n, in the chain's units."""
    n, sum_over, found, begin = rows_of(model), _sum_over(model), [], time.perf_counter()
    in_python = isinstance(model, PythonPotential)
    single = (np.array([i]) for i in np.random.default_rng(0).permutation(_some_rows(model, most)))
    of_batches = islice(_batches(model, size, kind), most)
    with np.errstate(all="ignore"):
        for rows in of_batches if in_python else single:
            found.append(n / rows.size * sum_over(theta.copy(), rows))
            if in_python and len(found) >= FEW and time.perf_counter() - begin > SECONDS:
                break
    return np.asarray(slope_in_units(scale, np.stack(found)))


def _hessian(model: Any, theta: Array, scale: Any, batches: list[NDArray[np.int64]], until: float) -> Array | None:
    """Central differences of the gradient that these rows estimate; None if they take too long."""
    sum_over, weight, columns = _sum_over(model), rows_of(model) / sum(rows.size for rows in batches), []
    axes = scale if np.ndim(scale) == 2 else np.diag(np.broadcast_to(scale, theta.size))

    def slope(at: Array) -> Array:
        prior = np.zeros(theta.size)
        add_prior_gradient(model, at, prior)
        return np.asarray(slope_in_units(scale, weight * sum(sum_over(at, rows) for rows in batches) + prior))

    with np.errstate(all="ignore"):
        for j in range(theta.size):
            if time.perf_counter() > until:
                return None
            columns.append((slope(theta + STEP * axes[:, j]) - slope(theta - STEP * axes[:, j])) / (2.0 * STEP))
    H = np.stack(columns, axis=1)
    return np.asarray(0.5 * (H + H.T))


def _sum_over(model: Any) -> Sum:
    """The sum over rows of the gradient of −log p(y_i | θ), not compiled."""
    if isinstance(model, Potential) and not isinstance(model, PythonPotential):
        function, fields = getattr(model._functions()[0], "py_func", None), model
        if function is None:
            raise TypeError("a copy of a Potential knows no function")
        twin = Potential(
            function, model.dim, getattr(fields, "data", None), model.prior, n_rows=model.n_rows, additive=False
        )
        return _sum_over(twin)

    def sum_over(theta: Array, rows: NDArray[np.int64]) -> Array:
        out = np.zeros(theta.size)
        if isinstance(model, PythonPotential):
            model.gradient_sum(theta, rows, out)
        else:
            add_gradient(model, theta, rows, out)
        return out

    return sum_over
