"""A model from a log density in PyTorch: a tensor, a dictionary of tensors, or a module with its parameters."""

from __future__ import annotations

import inspect
import threading
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

__all__ = ["TorchDensity", "from_torch"]


def from_torch(
    log_density: Callable[..., Any],
    parameters: Any,
    data: Any = None,
    *,
    prior: Any = None,
    log_prior: Callable[[Any], Any] | None = None,
    whole: bool = False,
    dtype: DTypeLike | None = None,
) -> AutodiffPotential:
    """Returns a model from a function that PyTorch can differentiate.

    All is computed on the device of the first parameter. ``model.flatten(parameters)`` is a start for `sample`,
    ``model.unflatten(trace.draws)`` the tensor or the dictionary of the draws (for one draw a state dict).

    Parameters
    ----------
    log_density : callable
        With data ``(parameters, batch)``, which returns log p of the rows of the batch, their sum or one number per
        row; without data ``(parameters)``, which returns the log posterior up to a constant.
    parameters : tensor, dict of tensors or torch.nn.Module
        The function is given the same: the module itself, with the parameters of the moment in place of its own. Those
        with ``requires_grad=False`` stay as they are.
    data : tensor, array, tuple, list or dict, optional
        Tensors or arrays with a row per observation; a batch has the same form.
    prior : NamedTuple, optional
        One of sgmcmc.priors, for every coordinate; None for no prior.
    log_prior : callable, optional
        ``(parameters)``, the log of a prior of your own; added to `prior`, if both are given.
    whole : bool
        The function returns an unbiased estimate of the whole log posterior: its sum times N/n, and the prior.
    dtype : np.float32 or np.float64, optional
        What to compute in; None is the dtype of the run (`sample`'s).

    Returns
    -------
    AutodiffPotential

    Examples
    --------
    >>> import torch
    >>> model = sg.from_torch(lambda w: -(w**2).sum(), torch.zeros(2), prior=sg.priors.Gaussian(1.0))
    >>> model.gradient([1.0, 2.0])
    array([3., 6.])
    """
    torch = _torch()
    check_arguments(log_density, log_prior, prior, data, whole)
    kind = computing_dtype(dtype)
    named = _named(parameters)
    layout = arrange([str(key) for key in named], [tuple(value.shape) for value in named.values()])
    tensors = None if data is None else _map(torch.as_tensor, data)
    n_rows = 0 if data is None else count_rows([(name, tuple(t.shape)) for name, t in _leaves("data", tensors)])
    density = TorchDensity(log_density, log_prior, layout, parameters, tensors, whole, kind)
    return build(density, parameters, prior, n_rows, whole, kind != np.dtype(np.float32))


class TorchDensity:
    """−log density of a function in PyTorch, and its gradient by autograd."""

    library = "PyTorch"

    def __init__(
        self, function: Any, log_prior: Any, layout: Layout, like: Any, data: Any, whole: bool, dtype: Any
    ) -> None:
        self.function, self.log_prior, self.layout, self.like = function, log_prior, layout, like
        self.data, self.whole, self.dtype = data, whole, dtype
        self.keys = tuple(_named(like))
        self.device = next((t.device for t in _named(like).values()), "cpu")
        self._cast: dict[Any, Any] = {}
        self._swapping = threading.RLock()

    def value(self, theta: NDArray[Any], rows: NDArray[np.int64], weight: float) -> float:
        """Ũ(θ)."""
        with _torch().no_grad():
            return float(self._energy(self._tensor(theta), rows, weight))

    def gradient(self, theta: NDArray[Any], rows: NDArray[np.int64], weight: float) -> NDArray[Any]:
        """∇Ũ(θ)."""
        torch = _torch()
        with torch.enable_grad():
            at = self._tensor(theta).requires_grad_()
            energy = self._energy(at, rows, weight)
            if not energy.requires_grad:
                raise TypeError(
                    "log_density does not depend on its parameters in a way that PyTorch can follow; use torch operations, "
                    "without .detach(), .item(), .numpy() or no_grad"
                )
            (slope,) = torch.autograd.grad(energy, at)
        return np.asarray(slope.cpu().numpy())

    def flatten(self, parameters: Any) -> NDArray[np.float64]:
        """The vector of parameters of the same form."""
        named = _named(parameters)
        if tuple(named) != self.keys:
            raise ValueError(f"parameters are {', '.join(map(str, named))}; give {', '.join(self.layout.axes)}")
        return self.layout.join([t.detach().cpu().double().numpy() for t in named.values()])

    def unflatten(self, vector: NDArray[Any]) -> Any:
        """A tensor, or a dictionary of tensors, on the CPU."""
        pieces = self.layout.split(_torch().from_numpy(np.array(vector)))
        return pieces[0] if _is_tensor(self.like) else dict(zip(self.keys, pieces, strict=True))

    def facts(self) -> dict[str, Any]:
        """All that it depends on, by name; of a module its structure and what stays as it is."""
        functions = {"log_density": inspect.unwrap(self.function), "log_prior": inspect.unwrap(self.log_prior)}
        tensors = () if self.data is None else tuple(_numpy(t) for _, t in _leaves("data", self.data))
        known = functions | {"data": tensors, "whole": self.whole, "dtype": str(self.dtype)}
        if not isinstance(self.like, _torch().nn.Module):
            return known
        fixed = _others(self.like, self.keys)
        return known | {"module": repr(self.like), "fixed": tuple(_numpy(t) for t in fixed.values())}

    def _tensor(self, theta: NDArray[Any]) -> Any:
        kind = theta.dtype if self.dtype is None else self.dtype
        return _torch().from_numpy(theta.astype(kind)).to(self.device)

    def _energy(self, theta: Any, rows: NDArray[np.int64], weight: float) -> Any:
        torch, pieces = _torch(), self.layout.split(theta)
        given: tuple[Any, ...] = ()
        if self.data is not None:
            chosen = torch.from_numpy(rows).to(self.device)
            given = (_map(lambda t: t.index_select(0, chosen), self._in("data", theta.dtype)),)
        result, log_prior = self._apply(pieces, given, theta.dtype)
        total = self._sum(torch.as_tensor(result), (rows.size,) if given else ())
        return -total if self.whole else -weight * total - log_prior

    def _apply(self, pieces: list[Any], given: tuple[Any, ...], kind: Any) -> tuple[Any, Any]:
        if _is_tensor(self.like):
            return self._both(pieces[0], given)
        named = dict(zip(self.keys, pieces, strict=True))
        if isinstance(self.like, dict):
            return self._both(named, given)
        others = {f"module.{name}": value for name, value in self._in("others", kind).items()}
        values = {f"module.{name}": value for name, value in named.items()} | others
        # The module holds these values for the time of the call; without a lock two threads would see each other's.
        with self._swapping:
            return _torch().func.functional_call(_caller(self.like, self._both), values, (given,))  # type: ignore[no-any-return]

    def _both(self, parameters: Any, given: tuple[Any, ...]) -> tuple[Any, Any]:
        return self.function(parameters, *given), 0.0 if self.log_prior is None else self.log_prior(parameters)

    def _sum(self, result: Any, per_row: tuple[int, ...]) -> Any:
        shape = tuple(result.shape)
        if shape not in ((), () if self.whole else per_row):
            wanted = "one number" if self.whole or not per_row else "one number, or one per row of the batch"
            raise ValueError(f"log_density returned shape {shape}; return {wanted}")
        return result.sum()

    def _in(self, what: str, kind: Any) -> Any:
        """The data, or what a module has besides the sampled parameters, in this precision and place; copied there once."""
        if (what, kind) not in self._cast:
            source = self.data if what == "data" else _others(self.like, self.keys)
            self._cast[what, kind] = _map(
                lambda t: t.detach().to(self.device, kind if t.is_floating_point() else None), source
            )
        return self._cast[what, kind]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_swapping"} | {"_cast": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _swapping=threading.RLock())


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise ImportError('from_torch needs PyTorch; pip install "sgmcmc[torch]"') from error
    return torch


def _is_tensor(value: Any) -> bool:
    return isinstance(value, _torch().Tensor)


def _named(parameters: Any) -> dict[str, Any]:
    """The tensors to sample, by name."""
    torch = _torch()
    if isinstance(parameters, torch.nn.Module):
        named = {name: value for name, value in parameters.named_parameters() if value.requires_grad}
    else:
        named = dict(parameters) if isinstance(parameters, dict) else {"theta": parameters}
    for name, value in named.items():
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            told = getattr(value, "dtype", type(value).__name__)
            raise TypeError(
                f"parameters: {name} is {told}; give a tensor of floats, a dictionary of them, or a torch.nn.Module"
            )
    return named


def _others(module: Any, sampled: tuple[str, ...]) -> dict[str, Any]:
    """Frozen parameters and buffers of a module."""
    frozen = {name: value for name, value in module.named_parameters() if name not in sampled}
    return frozen | dict(module.named_buffers())


def _caller(module: Any, function: Callable[..., Any]) -> Any:
    """A module whose forward calls the function with the module: what `functional_call` can swap parameters in."""
    torch = _torch()

    class Caller(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, given: tuple[Any, ...]) -> Any:
            return function(self.module, given)

    return Caller()


def _numpy(tensor: Any) -> NDArray[Any]:
    """A copy for NumPy, which has no bfloat16."""
    here = tensor.detach().cpu()
    return np.asarray((here.float() if here.dtype == _torch().bfloat16 else here).numpy())


def _map(function: Callable[[Any], Any], tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: _map(function, part) for name, part in tree.items()}
    if isinstance(tree, tuple | list):
        parts = [_map(function, part) for part in tree]
        return tree._make(parts) if hasattr(tree, "_make") else type(tree)(parts)
    return function(tree)


def _leaves(name: str, tree: Any) -> list[tuple[str, Any]]:
    if isinstance(tree, dict | tuple | list):
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
        return [leaf for key, part in items for leaf in _leaves(f"{name}[{key!r}]", part)]
    return [(name, tree)]
