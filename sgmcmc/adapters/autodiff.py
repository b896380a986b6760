"""A model around a log density that another library differentiates: what JAX and PyTorch have in common.

With N rows of data, n in the batch, the estimate is

    Ũ(θ) = −(N/n) Σ_{i in batch} log p(y_i | θ) − log prior(θ)

and for a function that is the whole of it, N/n and prior inside, Ũ(θ) = −log_density(θ, batch).
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from sgmcmc.checks import any_array, one_of, show
from sgmcmc.parameters import Layout
from sgmcmc.parameters.names import Names
from sgmcmc.potentials import PythonPotential
from sgmcmc.potentials.contract import point, selection
from sgmcmc.potentials.wrapped import _Prior, _prior_energy, _weigh
from sgmcmc.priors import Flat, require_prior

__all__ = ["AutodiffPotential", "Density", "arrange", "build", "check_arguments", "computing_dtype", "count_rows"]


class Density(Protocol):
    """Ũ of a function without the prior of sgmcmc.priors, and its gradient; and how parameters become a vector."""

    library: str
    layout: Layout

    def value(self, theta: NDArray[Any], rows: NDArray[np.int64], weight: float) -> float:
        """Ũ(θ)."""

    def gradient(self, theta: NDArray[Any], rows: NDArray[np.int64], weight: float) -> NDArray[Any]:
        """∇Ũ(θ)."""

    def flatten(self, parameters: Any) -> NDArray[np.float64]:
        """The vector of parameters."""

    def unflatten(self, vector: NDArray[Any]) -> Any:
        """The parameters of a vector; leading axes stay."""

    def facts(self) -> dict[str, Any]:
        """All that it depends on, by name: functions, NumPy arrays, texts."""


class AutodiffPotential(PythonPotential):
    """A model whose log density JAX or PyTorch differentiates; made by `sgmcmc.from_jax` and `sgmcmc.from_torch`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> model = sg.from_jax(lambda p: -jnp.sum(p["w"] ** 2), {"w": np.zeros(2)})
    >>> list(model.labels), model.unflatten(np.array([1.0, 2.0]))
    (['w[0]', 'w[1]'], {'w': array([1., 2.])})
    """

    density: Density

    @property
    def layout(self) -> Layout:
        """Names and shapes of the parameters, in the order of θ."""
        return self.density.layout

    @property
    def labels(self) -> Names:
        """A name for every coordinate of θ, such as ``w[0,1]``; a trace has the same."""
        return self.layout.names

    def flatten(self, parameters: Any) -> NDArray[np.float64]:
        """θ of parameters, to start from: ``init=model.flatten(parameters)``."""
        return self.density.flatten(parameters)

    def unflatten(self, theta: ArrayLike) -> Any:
        """The parameters of θ, or of draws of shape (chain, draw, dim): then every array has these axes in front."""
        return self.density.unflatten(_vectors(theta, self.dim))

    def estimate(self, theta: NDArray[Any], rows: NDArray[np.int64], weight: Any, out: NDArray[Any]) -> None:
        """out = ∇Ũ(θ), the prior included."""
        out[:] = self.density.gradient(theta, rows, float(weight))
        if not isinstance(self.prior, Flat):
            _weigh(_Prior(self.prior), theta, theta.dtype.type(1.0), out)

    def gradient_sum(self, theta: NDArray[Any], rows: NDArray[np.int64], out: NDArray[Any]) -> None:
        """out = ∇Ũ(θ) with weight 1 and without the prior of sgmcmc.priors."""
        out[:] = self.density.gradient(theta, rows, 1.0)

    def energy_by(self, function: Any, theta: ArrayLike, rows: ArrayLike | None = None) -> float:
        """Ũ(θ) by the model's own function, or by another for the sum of −log p(y_i | θ)."""
        if function is not None:
            return super().energy_by(function, theta, rows)
        at, (chosen, weight) = point(self, theta), selection(self, rows)
        return float(self.density.value(at, chosen, weight) + _prior_energy(_Prior(self.prior), at))

    def facts(self) -> dict[str, Any]:
        """All that its draws depend on, by name: what a checkpoint knows it by."""
        own = {"dim": self.dim, "n_rows": self.n_rows, "prior": self.prior, "parameters": repr(self.layout.axes)}
        return own | self.density.facts()

    def __repr__(self) -> str:
        counted = f"{self.n_rows} rows, " if self.n_rows else ""
        return f"<model by {self.density.library}: {counted}{self.dim} parameters, prior={self.prior!r}, not compiled>"

    def __reduce__(self) -> Any:
        return _restore, (self.density, self.prior, self.n_rows)


def _restore(density: Density, prior: Any, n_rows: int) -> AutodiffPotential:
    self = object.__new__(AutodiffPotential)
    self.density, self.prior, self.n_rows, self.dim = density, prior, n_rows, density.layout.dim
    self._layout = density.layout
    self.gradient_function, self.energy_function, self._fills, self.data = self.gradient_sum, None, True, ()
    return self


def build(density: Density, parameters: Any, prior: Any, n_rows: int, whole: bool, exact: bool) -> AutodiffPotential:
    """The model, after a look at what its function does with two rows and with each of them."""
    start = density.flatten(parameters)
    model = _restore(density, Flat() if prior is None else require_prior(prior), n_rows)
    shaken = start + np.random.default_rng(0).normal(0.0, 0.1, start.size)
    for theta in (shaken, start):
        if _adds_up(density, theta, n_rows, whole, 1e-6 if exact else 1e-3):
            break
    return model


def _adds_up(density: Density, theta: NDArray[np.float64], n_rows: int, whole: bool, tolerance: float) -> bool:
    """Refuse a mean in place of a sum, or a prior inside; False if θ is no place to tell."""
    if n_rows < 2:
        return bool(np.isfinite(density.value(theta, np.zeros(n_rows, np.int64), 1.0)))
    batches = [np.array(rows, np.int64) for rows in ([0, n_rows - 1], [0], [n_rows - 1])]
    both, first, last = (_part(density, theta, rows, whole) for rows in batches)
    if not np.isfinite([both, first, last]).all():
        return False
    expected = 0.5 * (first + last) if whole else first + last
    if abs(both - expected) <= tolerance * (1e-3 + max(abs(both), abs(first), abs(last))):
        return True
    told = f"for rows 0 and {n_rows - 1} the function gives {both:.6g}, for each alone {first:.6g} and {last:.6g}; "
    if whole:
        raise ValueError(
            told + "whole=True wants (N/n) Σ log p(y_i | θ) + log prior(θ), for which the first is the mean of the "
            "others; multiply the sum by N/n, or say whole=False"
        )
    raise ValueError(
        told + "the first must be the sum of the others: return the sum of log p(y_i | θ) or one number per row, not "
        "the mean, and leave the prior to prior= or log_prior=; or say whole=True"
    )


def _part(density: Density, theta: NDArray[np.float64], rows: NDArray[np.int64], whole: bool) -> float:
    """What the function itself gives, log_prior apart."""
    if whole:
        return -density.value(theta, rows, 1.0)
    return density.value(theta, rows, 0.0) - density.value(theta, rows, 1.0)


def check_arguments(log_density: Any, log_prior: Any, prior: Any, data: Any, whole: Any) -> None:
    """What can be told without calling anything."""
    check_function("log_density", log_density)
    check_function("log_prior", log_prior, optional=True)
    if not isinstance(whole, bool):
        raise TypeError(f"whole={show(whole)} is neither True nor False")
    if whole and not (prior is None and log_prior is None and data is not None):
        raise ValueError(
            "whole=True says that the function takes a batch and has the prior inside; leave prior and log_prior out and "
            "give data, or whole=False"
        )


def arrange(names: list[str], shapes: list[tuple[int, ...]]) -> Layout:
    """The layout of arrays with at least one number to sample."""
    if sum(math.prod(shape) for shape in shapes) == 0:
        raise ValueError("parameters holds no number; give at least one array of floats")
    if len(set(names)) < len(names):
        raise ValueError(f"parameters gives two arrays the same name: {', '.join(names)}; rename one")
    return Layout.read(dict(zip(names, shapes, strict=True)), least=0)


def check_function(name: str, function: Any, optional: bool = False) -> None:
    """A function, or None where that may be."""
    if not (callable(function) or (optional and function is None)):
        raise TypeError(f"{name}={show(function)} is not a function; give a function of the parameters")


def computing_dtype(dtype: DTypeLike | None) -> Any:
    """None, or np.float32 or np.float64."""
    if dtype is None:
        return None
    try:
        kind = np.dtype(dtype)
    except Exception:  # NumPy has several for what is no dtype
        kind = None
    return np.dtype(one_of("dtype", None if kind is None else kind.name, ("float32", "float64")))


def count_rows(shapes: list[tuple[str, tuple[int, ...]]]) -> int:
    """The length that all arrays of the data share."""
    for name, shape in shapes:
        if len(shape) == 0 or shape[0] == 0:
            raise ValueError(f"{name} has shape {shape}; give arrays with at least one row")
        if shape[0] != shapes[0][1][0]:
            raise ValueError(f"{name} has {shape[0]} rows, {shapes[0][0]} has {shapes[0][1][0]}; give as many in each")
    if not shapes:
        raise ValueError("data holds no array; give arrays with a row per observation, or data=None")
    return shapes[0][1][0]


def _vectors(theta: ArrayLike, dim: int) -> NDArray[Any]:
    array = any_array("theta", theta)
    if array.dtype.kind != "f" or array.ndim == 0 or array.shape[-1] != dim:
        raise ValueError(f"theta is {array.dtype} of shape {array.shape}; give floats with a last axis of {dim}")
    return array
