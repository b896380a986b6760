"""Gradient noise and Hessian at a point, from a few rows, in plain Python.

Compiling a gradient for this would take longer than many runs. A gradient in Python gets batches of the size of the run, as JAX
compiles for each size, and at most a second.
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
from sgmcmc.integrators.preconditioning import slope_in_units
from sgmcmc.potentials import Potential, PythonPotential, add_gradient, add_prior_gradient, rows_of

__all__ = ["SMALL", "hessian", "row_slopes"]

Array = NDArray[np.float64]
Sum = Callable[[Array, NDArray[np.int64]], Array]

FEW, ROWS, MOST = 10, 100, 200  # rows, or batches, that tell the noise: at least, usually, at most
NUMBERS, SHORT = 20_000, 2400  # of all their gradients: at most, and so few that there may be 200 of them
LONG = 5000  # coordinates; above, compiled code is faster however long it takes to compile
IN_PYTHON = 30  # batches of a gradient in Python
SMALL = 32  # coordinates up to which the linear law is worked out
SECONDS = 1.0  # of a gradient in Python; any other takes some 0.1 s, and what is said must not depend on the clock
STEP = 1e-4  # of a difference of gradients, in the chain's units


def row_slopes(model: Any, theta: Array, size: int, kind: str, scale: Any) -> Array:
    """Values, in rows, whose variance is that of the gradient of a batch, in the chain's units."""
    if theta.size > LONG:
        return np.asarray(
            np.sqrt(0.5 * noise_variance(model, theta, size, kind, most=FEW, scale=scale)) * [[1.0], [-1.0]]
        )
    wanted = max(ROWS, min(MOST, SHORT // theta.size))
    slopes = _slopes(model, theta, size, kind, scale, min(wanted, NUMBERS // theta.size))
    return slopes * math.sqrt(_share(model, size, kind))


def hessian(model: Any, theta: Array, size: int, kind: str, scale: Any) -> Array | None:
    """The Hessian at θ in the chain's units, from some rows; None where it takes too long, or θ is not near a mode."""
    enough, in_python = min(ROWS, 2 * SHORT // (3 * theta.size)), isinstance(model, PythonPotential)
    batches = islice(_batches(model, size, kind), -(-enough // size)) if in_python else [_some_rows(model, enough)]
    H = _hessian(model, theta, scale, list(batches), time.perf_counter() + SECONDS if in_python else math.inf)
    return H if H is not None and np.isfinite(H).all() and np.linalg.eigvalsh(H)[0] > 0.0 else None


def _share(model: Any, size: int, kind: str) -> float:
    """The variance of a batch's gradient by that of `_slopes`."""
    n = rows_of(model)
    if isinstance(model, PythonPotential):
        return 1.0
    return (1.0 if kind in ("replacement", "blocks") or n < 2 else 1.0 - (size - 1) / (n - 1)) / size


def _some_rows(model: Any, most: int) -> NDArray[np.int64]:
    n = rows_of(model)
    return np.unique(np.linspace(0, n - 1, min(n, max(FEW, most))).astype(np.int64))


def _batches(model: Any, size: int, kind: str) -> Iterator[NDArray[np.int64]]:
    """Rows as a run chooses them, or nearly so: neighbours, where those are cheaper to read."""
    n, rng = rows_of(model), np.random.default_rng(0)
    while True:
        if kind == "blocks":
            yield (rng.integers(n) + np.arange(size)) % n
        else:
            yield rng.integers(0, n, size) if kind == "replacement" else rng.permutation(n)[:size]


def _slopes(model: Any, theta: Array, size: int, kind: str, scale: Any, most: int) -> Array:
    """N times the gradients of some rows, or N/n times those of batches of n, in the chain's units."""
    n, sum_over, found, begin = rows_of(model), _sum_over(model), [], time.perf_counter()
    in_python = isinstance(model, PythonPotential)
    single = (np.array([i]) for i in np.random.default_rng(0).permutation(_some_rows(model, most)))
    of_batches = islice(_batches(model, size, kind), min(most, IN_PYTHON))
    with np.errstate(all="ignore"):
        for rows in of_batches if in_python else single:
            found.append(n / rows.size * sum_over(theta.copy(), rows))
            if in_python and len(found) >= FEW and time.perf_counter() - begin > SECONDS:
                break
    return np.asarray(slope_in_units(scale, np.stack(found)))


def _hessian(model: Any, theta: Array, scale: Any, batches: list[NDArray[np.int64]], until: float) -> Array | None:
    """Differences of the gradient that these rows estimate; None if they take too long."""
    sum_over, weight, columns = _sum_over(model), rows_of(model) / sum(rows.size for rows in batches), []
    axes = slope_in_units(scale, np.eye(theta.size))

    def slope(at: Array) -> Array:
        prior = np.zeros(theta.size)
        add_prior_gradient(model, at, prior)
        return np.asarray(slope_in_units(scale, weight * sum(sum_over(at, rows) for rows in batches) + prior))

    with np.errstate(all="ignore"):
        here = slope(theta)
        for j in range(theta.size):
            if time.perf_counter() > until:
                return None
            columns.append((slope(theta + STEP * axes[:, j]) - here) / STEP)
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
