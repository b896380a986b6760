"""A model of parameters with bounds: its density is written in them, chains move in free numbers, draws come back in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sgmcmc.adapters.autodiff import _vectors
from sgmcmc.checks import show
from sgmcmc.parameters import Layout, layout_of_model
from sgmcmc.parameters.names import Names
from sgmcmc.potentials import Potential, PythonPotential, check_model, dim_of, energy_of, full_gradient, rows_of
from sgmcmc.potentials.contract import point
from sgmcmc.priors import Flat
from sgmcmc.trace import Trace
from sgmcmc.transforms import Real, Transform

__all__ = ["Constrained", "constrained"]

UNCONSTRAINED = "unconstrained"


def constrained(model: Any, transforms: Mapping[str, Transform]) -> Constrained:
    """Returns a model whose parameters have bounds.

    A trace of the model is one of u, with names such as ``unconstrained.scale``. ``model.constrain(trace)`` is the
    trace of x, ``model.unflatten(trace.draws)`` its arrays by name, and ``model.flatten(parameters)`` the u of given
    parameters, to start from.

    Parameters
    ----------
    model : any model
        Of the parameters x as you think of them: positive scales, probabilities, cut points. Its prior is a density of
        x too. What makes u, the free numbers, out of x is taken care of, the Jacobian determinant included.
    transforms : dict
        A transform of sgmcmc.transforms for each name, in the order of the vector x, with its shape. For a model that
        knows its names and shapes, such as one of `from_jax`, `from_torch` or ``Potential(..., parameters=...)``, they
        are those, and what is not named is Real.

    Returns
    -------
    Constrained

    Examples
    --------
    >>> exponential = sg.Potential(lambda x: np.ones(1), parameters={"x": ()})
    >>> model = sg.constrained(exponential, {"x": sg.transforms.Positive()})
    >>> model.dim, model.unflatten(np.zeros(1))
    (1, {'x': array(1.)})
    """
    if not isinstance(model, PythonPotential):
        check_model(model)
    if not isinstance(transforms, Mapping) or not all(isinstance(t, Transform) for t in transforms.values()):
        raise TypeError(f"transforms={show(transforms)}; give a dictionary of names and values of sgmcmc.transforms")
    layout, chosen = _arrange(model, dict(transforms))
    return Constrained._of(model, layout, chosen)


def _arrange(model: Any, given: dict[str, Transform]) -> tuple[Layout, tuple[Transform, ...]]:
    known = layout_of_model(model, dim_of(model))
    if known.axes == {"theta": (known.dim,)} and set(given) != {"theta"}:  # a model that has no names of its own
        layout = Layout({name: () if t.shape is None else t.shape for name, t in given.items()})  # type: ignore[misc]
        if layout.dim != known.dim:
            raise ValueError(f"transforms name {layout.dim} numbers; the model has {known.dim}: give their shapes")
        return layout, tuple(given.values())
    for name, transform in given.items():
        if name not in known.axes:
            raise ValueError(f"transforms has the unknown name {name!r}; the model has {', '.join(known.axes)}")
        shape = known.shapes[name]
        if transform.shape not in (None, shape):
            raise ValueError(f"transforms[{name!r}] has shape {transform.shape}; the model's {name} has {shape}")
    return known, tuple(given.get(name, Real()) for name in known.axes)


class Constrained(PythonPotential):
    """A model in free numbers u around a model in x; made by `sgmcmc.constrained`.

    Examples
    --------
    >>> exponential = sg.Potential(lambda x: np.ones(1), parameters={"x": ()})
    >>> model = sg.constrained(exponential, {"x": sg.transforms.Positive()})
    >>> model.log_jacobian([2.0]), model.constrain([[0.0]])
    (2.0, array([[1.]]))
    """

    inner: Any
    layout: Layout  # of x
    free: Layout  # of u; its names begin with "unconstrained." so that u is not taken for x
    transforms: tuple[Transform, ...]

    @classmethod
    def _of(cls, inner: Any, layout: Layout, transforms: tuple[Transform, ...]) -> Constrained:
        self = object.__new__(cls)
        shapes = zip(layout.shapes.items(), transforms, strict=True)
        self.inner, self.layout, self.transforms = inner, layout, transforms
        self.free = Layout({f"{UNCONSTRAINED}.{name}": t.free_shape(shape) for (name, shape), t in shapes})
        self._layout = self.free
        self.dim, self.n_rows, self.prior, self.data = self.free.dim, rows_of(inner), Flat(), ()
        self.gradient_function, self.energy_function, self._fills = self.gradient_sum, None, True
        return self

    @property
    def labels(self) -> Names:
        """A name for every number of x."""
        return self.layout.names

    def constrain(self, draws: Any) -> Any:
        """x of u: of an array with a last axis of u, or of a trace, which becomes a trace of x with names."""
        if not isinstance(draws, Trace):
            return self._forward(_vectors(draws, self.dim))
        values = self._forward(_vectors(draws.draws, self.dim)).astype(draws.draws.dtype)
        temperatures = draws.kinetic_temperature, draws.configurational_temperature
        facts = values, draws.info | {"constrained": True}, *temperatures, draws.final
        return Trace(*facts, parameters=self.layout, weights=draws.weights)

    def unflatten(self, draws: ArrayLike) -> Any:
        """x by name (or in the form of the model inside), of u with any leading axes."""
        values = self.constrain(draws)
        if hasattr(self.inner, "unflatten"):
            return self.inner.unflatten(values)
        return self.layout.unpack(values)

    def flatten(self, parameters: Any) -> NDArray[np.float64]:
        """u of parameters inside their bounds."""
        if hasattr(self.inner, "flatten"):
            vector = self.inner.flatten(parameters)
        else:
            if set(parameters) != set(self.layout.axes):
                raise ValueError(f"parameters are {', '.join(parameters)}; give {', '.join(self.layout.axes)}")
            vector = self.layout.join([parameters[name] for name in self.layout.axes]).astype(np.float64)
        pieces = zip(self.transforms, self.layout.split(vector), strict=True)
        return self.free.join([t.inverse(x) for t, x in pieces])

    def estimate(self, theta: NDArray[Any], rows: NDArray[np.int64], weight: Any, out: NDArray[Any]) -> None:
        """out = (∂x/∂u)ᵀ ∇U(x) − ∇ log |det ∂x/∂u|; where x overflows, the chain has diverged and the engine says so."""
        with np.errstate(all="ignore"):
            slope = self._inner_gradient(self._forward(theta), rows, weight)
            parts = [
                t.pull_back(u, g) - t.log_jacobian_slope(u)
                for t, u, g in zip(self.transforms, self.free.split(theta), self.layout.split(slope), strict=True)
            ]
            out[:] = self.free.join(parts)

    def gradient_sum(self, theta: NDArray[Any], rows: NDArray[np.int64], out: NDArray[Any]) -> None:
        """`estimate` with weight 1."""
        self.estimate(theta, rows, theta.dtype.type(1.0), out)

    def energy_by(self, function: Any, theta: ArrayLike, rows: ArrayLike | None = None) -> float:
        """U(x(u)) − log |det ∂x/∂u|; `function` is an energy of x."""
        at = point(self, theta)
        x = self._forward(at)
        if isinstance(self.inner, Potential):
            inside = self.inner.energy_by(self.inner._functions()[1] if function is None else function, x, rows)
        elif function is None:
            inside = energy_of(self.inner, x, rows)
        else:
            inside = float(function(x))
        return inside - self.log_jacobian(at)

    def log_jacobian(self, theta: ArrayLike) -> float:
        """log |det ∂x/∂u| at one u."""
        pieces = zip(self.transforms, self.free.split(point(self, theta)), strict=True)
        return float(sum(np.sum(t.log_jacobian(u)) for t, u in pieces))

    def _forward(self, u: NDArray[Any]) -> NDArray[Any]:
        return self.layout.join([t.forward(part) for t, part in zip(self.transforms, self.free.split(u), strict=True)])

    def _inner_gradient(self, x: NDArray[Any], rows: NDArray[np.int64], weight: Any) -> NDArray[Any]:
        slope = np.zeros_like(x)
        if isinstance(self.inner, PythonPotential):
            self.inner.estimate(x, rows, x.dtype.type(weight), slope)
            return slope
        wide = np.zeros(x.size)
        full_gradient(self.inner, x.astype(np.float64), rows, float(weight), wide)
        return wide

    def facts(self) -> dict[str, Any]:
        """All that its draws depend on, by name: what a checkpoint knows it by."""
        return {"transforms": repr(dict(zip(self.layout.axes, self.transforms, strict=True))), "inner": self.inner}

    def __repr__(self) -> str:
        bounds = ", ".join(f"{n}: {type(t).__name__}" for n, t in zip(self.layout.axes, self.transforms, strict=True))
        return f"<constrained ({bounds}): {self.inner!r}>"

    def __reduce__(self) -> Any:
        return Constrained._of, (self.inner, self.layout, self.transforms)
