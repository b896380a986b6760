"""Your own model from one function: the gradient of −log p(y_i | θ), summed over the rows it is given."""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import is_jitted
from numpy.typing import ArrayLike, NDArray

from sgmcmc.checks import integer, show
from sgmcmc.compiler.fingerprints import fingerprint
from sgmcmc.compiler.kernels import kernel
from sgmcmc.compiler.open_functions import implements
from sgmcmc.parameters import Layout, Parameters
from sgmcmc.potentials.adapters import ADAPTERS, filled_free_within, filled_within
from sgmcmc.potentials.alone import alone, checking
from sgmcmc.potentials.contract import (
    add_gradient,
    add_gradient_within,
    point,
    prior_energy,
    scratch_size,
    selection,
    weigh,
)
from sgmcmc.potentials.model import Model
from sgmcmc.potentials.probing import as_gradient, check_additivity, check_energy_form, fills_out, probe
from sgmcmc.potentials.user_data import as_arrays, count_rows
from sgmcmc.priors import Flat, require_prior

__all__ = ["Potential", "PythonPotential", "is_ours"]


class Potential(Model):
    """A model made of a function of yours.

    With data, `gradient` has the parameters ``(theta, data, rows)`` and returns Σ_{i in rows} ∇(−log p(y_i | θ)), or
    ``(theta, data, rows, out)`` and writes it into `out`, which comes filled with zeros. Without data it is ``(theta)``
    or ``(theta, out)`` and gives ∇U. The library multiplies by N/n and adds the prior.

    A function made with ``numba.njit`` is compiled into the sampler. A plain Python function works too, at the speed of
    Python, and may use any library inside.

    Parameters
    ----------
    gradient : callable
    dim : int, the length of θ
    data : array, or tuple of arrays and numbers
        Handed to the function as it is, floats in the dtype of the run.
    prior : one of sgmcmc.priors, or your own; None for no prior
    energy : callable, optional
        ``(theta, data, rows)`` or ``(theta)``, returns Σ −log p(y_i | θ); for ``energy`` and ``check_gradient`` only.
    n_rows : int, optional
        How many rows the data have; None for the length of the arrays, which must then be the same.
    parameters : dict, in place of `dim`
        Names and shapes of what θ is made of, ``{"w": (10, 3), "b": (3,)}``, in this order, each row by row;
        ``trace["w"]`` then has the shape (chain, draw, 10, 3), and ``model.unpack(theta)`` gives the pieces.
    additive : bool
        True has the function tried with two rows and with each of them, and refuses one whose sums do not add up (a
        mean in place of the sum, a function that ignores `rows`). False leaves that out, for a gradient that is random
        or, on purpose, no sum over rows; ``(N/n)`` times what it returns is then taken for an estimate of the whole.

    Examples
    --------
    >>> model = sg.Potential(lambda theta: theta, dim=2)
    >>> model.gradient([1.0, 2.0])
    array([1., 2.])
    """

    __slots__ = ()
    compiled = True

    def __new__(
        cls,
        gradient: Callable[..., Any],
        dim: int | None = None,
        data: Any = None,
        prior: Any = None,
        energy: Callable[..., Any] | None = None,
        n_rows: int | None = None,
        parameters: Parameters | None = None,
        additive: bool = True,
    ) -> Any:
        layout = _layout(dim, parameters)
        dim = layout.dim
        fills = fills_out(gradient, data is not None)
        if energy is not None:
            check_energy_form(energy, data is not None)
        compiled = is_jitted(gradient)
        if not isinstance(additive, bool | np.bool_):
            raise TypeError(f"additive={show(additive)} is neither True nor False")
        data = as_arrays(data) if compiled and data is not None else data
        n_rows = count_rows(data, n_rows)
        probe(gradient, fills, dim, data, n_rows)
        if additive:
            check_additivity(gradient, fills, dim, data, n_rows)
        prior = Flat() if prior is None else require_prior(prior)
        if not compiled:
            return PythonPotential._build(gradient, fills, dim, data, prior, energy, n_rows, layout, bool(additive))
        fields = (prior, dim) if data is None else (prior, dim, data, n_rows)
        return _restore(gradient, fills, energy, fields, layout)

    @property
    def parameters(self) -> Parameters:
        """Names and shapes of what θ is made of; a copy made by ``_make`` has one vector theta."""
        layout: Layout | None = getattr(self, "_layout", None)
        return super().parameters if layout is None else layout.axes

    def energy(self, theta: ArrayLike) -> float:
        """U(θ) = −log prior(θ) − Σ log p(y_i | θ), by the function given as ``energy=``."""
        return self.energy_by(self._functions()[1], theta)

    def energy_by(self, function: Callable[..., Any] | None, theta: ArrayLike, rows: ArrayLike | None = None) -> float:
        """U(θ), or its estimate from `rows`, where `function` gives the sum of −log p(y_i | θ)."""
        if function is None:
            raise TypeError(f"{self!r} has no energy; give Potential(..., energy=...), a function like the gradient's")
        check_energy_form(function, self.n_rows > 0)
        at, (chosen, weight) = point(self, theta), selection(self, rows)
        arguments = (at, self.data, chosen) if self.n_rows > 0 else (at,)  # type: ignore[attr-defined]
        with alone("energy", function):
            likelihood = function(*arguments)
        return float(weight * float(likelihood) + _prior_energy(_Prior(self.prior), at))

    def _functions(self) -> tuple[Any, Any]:
        """The gradient and the energy function; a copy made by ``_make`` has no energy."""
        return getattr(self, "gradient_function", None), getattr(self, "energy_function", None)

    def _repr(self) -> str:
        inside = super()._repr().split("(", 1)[1]
        return f"Potential({getattr(self._functions()[0], '__name__', 'gradient')}, {inside}"


def _layout(dim: Any, parameters: Parameters | None) -> Layout:
    """One vector of `dim` numbers, or what was declared; exactly one of the two is given."""
    if (dim is None) == (parameters is None):
        came = "neither dim nor parameters was" if dim is None else f"dim={dim!r} and parameters were both"
        raise TypeError(
            f'{came} given; give the length of θ as dim=, or names and shapes as parameters={{"w": (10, 3)}}'
        )
    return Layout({"theta": (integer("dim", dim, 1),)}) if parameters is None else Layout.read(parameters)


class PythonPotential(Potential):
    """A model whose gradient is a plain Python function: the engine calls `gradient_sum` from a Python loop."""

    compiled = False
    dim: int = 0  # plain attributes in place of Model's properties
    n_rows: int = 0
    prior: Any = Flat()
    data: Any
    gradient_function: Callable[..., Any]
    energy_function: Callable[..., Any] | None
    _fills: bool
    _layout: Layout | None = None
    additive: bool = True  # whether the sum over rows is made of the sums over parts of them

    @classmethod
    def _build(
        cls,
        gradient: Any,
        fills: bool,
        dim: int,
        data: Any,
        prior: Any,
        energy: Any,
        n_rows: int,
        layout: Any = None,
        additive: bool = True,
    ) -> Any:
        self = object.__new__(cls)
        self._layout, self.additive = layout, additive
        self.gradient_function, self.energy_function, self._fills = gradient, energy, fills
        self.dim, self.data, self.prior, self.n_rows = dim, data, prior, n_rows
        return self

    def gradient_sum(self, theta: NDArray[Any], rows: NDArray[np.int64], out: NDArray[Any]) -> None:
        """out = Σ_{i in rows} ∇(−log p(y_i | θ)), without N/n and without the prior."""
        arguments = (theta, self.data, rows) if self.n_rows > 0 else (theta,)
        out[:] = 0.0
        if self._fills:
            self.gradient_function(*arguments, out)
        else:
            out[:] = as_gradient(self.gradient_function(*arguments), out.size)

    def estimate(self, theta: NDArray[Any], rows: NDArray[np.int64], weight: Any, out: NDArray[Any]) -> None:
        """out = weight · Σ_rows ∇(−log p(y_i | θ)) + ∇(−log prior(θ)), as `sgmcmc.potentials.estimate` for compiled models."""
        self.gradient_sum(theta, rows, out)
        _weigh(_Prior(self.prior), theta, weight, out)

    def gradient(self, theta: ArrayLike, rows: ArrayLike | None = None) -> NDArray[np.float64]:
        """∇U(θ) over all rows; with `rows`, the unbiased estimate (N/n) Σ_rows ∇(−log p(y_i | θ)) + ∇(−log prior(θ))."""
        at, (chosen, weight) = point(self, theta), selection(self, rows)
        out = np.zeros(self.dim)
        self.estimate(at, chosen, weight, out)
        return out

    def facts(self) -> dict[str, Any]:
        """All that its draws depend on, by name: what a checkpoint knows it by."""
        return {name: getattr(self, name) for name in ("gradient_function", "dim", "n_rows", "prior", "data")}

    def __repr__(self) -> str:
        return f"{self._repr()[:-1]}, prior={self.prior!r}, not compiled)"

    def __reduce__(self) -> Any:
        state = (
            self.gradient_function,
            self._fills,
            self.dim,
            self.data,
            self.prior,
            self.energy_function,
            self.n_rows,
            self._layout,
            self.additive,
        )
        return PythonPotential._build, state


def has_own_noise(model: Any) -> bool:
    """Whether a gradient in Python fluctuates by itself, called twice with the same arguments, or is no sum over its rows.

    Such noise cannot be measured on halves of a batch, but on two gradients. (A compiled function is taken at its word.)
    """
    if not isinstance(model, PythonPotential):
        return False
    theta, rows = np.full(model.dim, 0.1), np.arange(min(2, model.n_rows))
    twice = []
    for _ in range(2):
        out = np.zeros(model.dim)
        try:
            with np.errstate(all="ignore"):
                model.gradient_sum(theta.copy(), rows, out)
        except Exception:  # it may not be defined here; if it is wrong, the run says so
            return not model.additive
        twice.append(out)
    return not model.additive or not np.array_equal(twice[0], twice[1], equal_nan=True)


def is_ours(model: Any) -> bool:
    """Whether a model and the parts in it are of this package, so that it is known about how long a gradient takes."""
    if isinstance(model, Potential) or type(model).__module__.split(".")[0] != __package__.split(".")[0]:
        return False
    return all(is_ours(part) for part in model if hasattr(part, "_fields"))


# ------------------------------------------------------------------------- one class per compiled function of the user


class _FreeFields(NamedTuple):
    prior: Any
    dim: int


class _DataFields(NamedTuple):
    prior: Any
    dim: int
    data: Any
    n_rows: int


class _Prior(NamedTuple):
    prior: Any


@kernel
def _prior_energy(model: Any, theta: Any) -> Any:
    return prior_energy(model, theta)


@kernel
def _weigh(model: Any, theta: Any, weight: Any, out: Any) -> None:
    weigh(model, theta, weight, out)


def _restore(gradient: Any, fills: bool, energy: Any, fields: tuple[Any, ...], layout: Layout | None = None) -> Any:
    base = _FreeFields if len(fields) == len(_FreeFields._fields) else _DataFields
    self = _class_for(gradient, fills, base)._make(fields)
    self.energy_function, self._layout = energy, layout
    return self


def _class_for(gradient: Any, fills: bool, base: Any) -> Any:
    """The NamedTuple class of this function. Kernels are specialised, and kept on disk, per class.

    Its name is a digest of what the function does, so another process gives an equal function the same class, and an
    edited one another. It is an attribute of this package because Numba's cache pickles classes by reference.
    """
    content = fingerprint(gradient) + repr((sorted(gradient.targetoptions.items()), fills, base._fields)).encode()
    name = f"Potential_{hashlib.sha256(content).hexdigest()[:24]}"
    home = sys.modules[__package__]
    with _MAKING:
        if not hasattr(home, name):
            setattr(home, name, _new_class(name, gradient, fills, base))
    return getattr(home, name)


_MAKING = threading.Lock()  # two threads with equal functions must find the same class: pickles know it by its name


def _new_class(name: str, gradient: Any, fills: bool, base: Any) -> Any:
    scope = {"__module__": __package__, "gradient_function": staticmethod(gradient), "_fills": fills}
    scope |= {"__repr__": Potential._repr, "__reduce__": _reduce}
    cls = type(name, (base, Potential), scope)
    adapter = ADAPTERS[base is _DataFields, fills](gradient)
    adapter.check_types = checking(gradient, fills)
    adapter.__module__ = gradient.py_func.__module__  # the user's code, so kernels fingerprint it as such
    implements(add_gradient, cls, allocates=True)(adapter)
    if fills:
        within = (filled_within if base is _DataFields else filled_free_within)(gradient)
        within.check_types = checking(gradient, fills)
        within.__module__ = gradient.py_func.__module__
        implements(add_gradient_within, cls, allocates=True)(within)
        implements(scratch_size, cls)(_dim_of)
    return cls


def _dim_of(model: Any) -> int:
    return int(model.dim)


def _reduce(self: Any) -> Any:
    gradient, energy = self._functions()
    return _restore, (gradient, self._fills, energy, tuple(self), getattr(self, "_layout", None))
