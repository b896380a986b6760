"""A model from a log density in JAX: parameters are any pytree, data stay on JAX's device, compiled once."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sgmcmc.adapters.autodiff import (
    AutodiffPotential,
    arrange,
    build,
    check_arguments,
    computing_dtype,
    count_rows,
)
from sgmcmc.parameters import Layout

__all__ = ["JaxDensity", "from_jax"]


def from_jax(
    log_density: Callable[..., Any],
    parameters: Any,
    data: Any = None,
    *,
    prior: Any = None,
    log_prior: Callable[[Any], Any] | None = None,
    whole: bool = False,
    dtype: DTypeLike | None = None,
) -> AutodiffPotential:
    """Returns a model from a function that JAX can differentiate.

    ``model.flatten(parameters)`` is a start for `sample`, ``model.unflatten(trace.draws)`` the pytree of the draws.

    Parameters
    ----------
    log_density : callable
        With data ``(parameters, batch)``, which returns log p of the rows of the batch, their sum or one number per
        row; without data ``(parameters)``, which returns the log posterior up to a constant.
    parameters : pytree
        Arrays of floats: names, shapes, and the point at which the function is first tried.
    data : pytree, optional
        Arrays with a row per observation; a batch has the same form, with fewer rows.
    prior : NamedTuple, optional
        One of sgmcmc.priors, for every coordinate; None for no prior.
    log_prior : callable, optional
        ``(parameters)``, the log of a prior of your own; added to `prior`, if both are given.
    whole : bool
        The function returns an unbiased estimate of the whole log posterior: its sum times N/n, and the prior.
    dtype : np.float32 or np.float64, optional
        What to compute in; None is the dtype of the run (`sample`'s), whatever ``jax_enable_x64`` says.

    Returns
    -------
    AutodiffPotential

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> model = sg.from_jax(lambda w: -jnp.sum(w**2), np.zeros(2), prior=sg.priors.Gaussian(1.0))
    >>> model.gradient([1.0, 2.0])
    array([3., 6.])
    """
    jax = _jax()
    check_arguments(log_density, log_prior, prior, data, whole)
    kind = computing_dtype(dtype)
    leaves, tree = jax.tree_util.tree_flatten_with_path(parameters)
    names = _names([path for path, _ in leaves])
    values = [_floats(name, leaf) for name, (_, leaf) in zip(names, leaves, strict=True)]
    layout = arrange(names, [value.shape for value in values])
    arrays = jax.tree_util.tree_map(np.asarray, data)
    shapes = [(f"data{jax.tree_util.keystr(p)}", a.shape) for p, a in jax.tree_util.tree_flatten_with_path(arrays)[0]]
    n_rows = 0 if data is None else count_rows(shapes)
    density = JaxDensity(log_density, log_prior, layout, tree, arrays, whole, kind)
    return build(density, parameters, prior, n_rows, whole, kind != np.dtype(np.float32))


class JaxDensity:
    """−log density of a function in JAX, and its gradient, compiled at the first call of each precision and batch size."""

    library = "JAX"

    def __init__(
        self, function: Any, log_prior: Any, layout: Layout, tree: Any, data: Any, whole: bool, dtype: Any
    ) -> None:
        self.function, self.log_prior, self.layout, self.tree = function, log_prior, layout, tree
        self.data, self.whole, self.dtype = data, whole, dtype
        self._on_device: dict[Any, Any] = {}
        self._compiled: tuple[Any, Any] | None = None

    def value(self, theta: NDArray[Any], rows: NDArray[np.int64], weight: float) -> float:
        """Ũ(θ)."""
        return float(self._call(0, theta, rows, weight))

    def gradient(self, theta: NDArray[Any], rows: NDArray[np.int64], weight: float) -> NDArray[Any]:
        """∇Ũ(θ)."""
        return np.asarray(self._call(1, theta, rows, weight))

    def flatten(self, parameters: Any) -> NDArray[np.float64]:
        """The vector of a pytree of the same form."""
        leaves, tree = _jax().tree_util.tree_flatten(parameters)
        if tree != self.tree:
            raise ValueError(f"parameters have the form {tree}; give {self.tree}")
        return self.layout.join(leaves).astype(np.float64)

    def unflatten(self, vector: NDArray[Any]) -> Any:
        """The pytree, with NumPy arrays as leaves."""
        return self.tree.unflatten(self.layout.split(vector))

    def facts(self) -> dict[str, Any]:
        """All that it depends on, by name."""
        functions = {"log_density": inspect.unwrap(self.function), "log_prior": inspect.unwrap(self.log_prior)}
        leaves = tuple(_jax().tree_util.tree_leaves(self.data))
        return functions | {"data": leaves, "form": str(self.tree), "whole": self.whole, "dtype": str(self.dtype)}

    def _call(self, which: int, theta: NDArray[Any], rows: NDArray[np.int64], weight: float) -> Any:
        kind = theta.dtype if self.dtype is None else self.dtype
        with self._precision(kind):
            if self._compiled is None:
                jax = _jax()
                self._compiled = jax.jit(self._energy), jax.jit(jax.grad(self._energy))
            return self._compiled[which](theta.astype(kind), self._data(kind), rows, kind.type(weight))

    def _energy(self, theta: Any, data: Any, rows: Any, weight: Any) -> Any:
        import jax
        import jax.numpy as jnp

        parameters = self.tree.unflatten(self.layout.split(theta))
        if data is None:
            return -self._sum(jnp.asarray(self.function(parameters)), ()) - self._prior(parameters)
        batch = jax.tree_util.tree_map(lambda array: array[rows], data)
        total = self._sum(jnp.asarray(self.function(parameters, batch)), (rows.shape[0],))
        return -total if self.whole else -weight * total - self._prior(parameters)

    def _sum(self, result: Any, per_row: tuple[int, ...]) -> Any:
        if result.shape not in ((), () if self.whole else per_row):
            wanted = "one number" if self.whole or not per_row else "one number, or one per row of the batch"
            raise ValueError(f"log_density returned shape {result.shape}; return {wanted}")
        return result.sum()

    def _prior(self, parameters: Any) -> Any:
        return 0.0 if self.log_prior is None else self.log_prior(parameters)

    def _data(self, kind: Any) -> Any:
        """The data on JAX's device, floats in this precision, copied there once."""
        if kind not in self._on_device:
            import jax
            import jax.numpy as jnp

            self._on_device[kind] = jax.tree_util.tree_map(
                lambda a: jnp.asarray(a.astype(kind) if a.dtype.kind == "f" else a), self.data
            )
        return self._on_device[kind]

    @staticmethod
    def _precision(kind: Any) -> contextlib.AbstractContextManager[Any]:
        """JAX has no float64 unless it is told so."""
        if kind != np.dtype(np.float64):
            return contextlib.nullcontext()
        return _jax().enable_x64(True)  # type: ignore[no-any-return]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_on_device": {}, "_compiled": None}  # made again in another process


def _jax() -> Any:
    try:
        import jax
    except ImportError as error:
        raise ImportError('from_jax needs JAX; pip install "sgmcmc[jax]"') from error
    return jax


def _names(paths: list[Any]) -> list[str]:
    """``hidden.w``, or ``['hidden']['w']`` where two would be the same."""
    keystr = _jax().tree_util.keystr
    short = [keystr(path, simple=True, separator=".") if path else "theta" for path in paths]
    clear = len(set(short)) == len(short) and all(name.strip() != "" for name in short)
    return short if clear else [keystr(path) for path in paths]


def _floats(name: str, leaf: Any) -> NDArray[Any]:
    """A leaf as an array; only floats can be sampled. JAX's bfloat16 has a kind of its own, V."""
    array = np.asarray(leaf)
    if array.dtype.kind != "f" and array.dtype.name != "bfloat16":
        raise TypeError(f"parameters: {name} has dtype {array.dtype}; give floats, and keep the rest in the function")
    return array
