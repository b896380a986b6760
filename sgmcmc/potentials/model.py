"""What every built-in model can be asked from Python: its size, its energy and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sgmcmc.parameters import Parameters, layout_of_model
from sgmcmc.potentials.contract import energy_of, gradient_of
from sgmcmc.priors import Flat

__all__ = ["Model"]


class Model:
    """To be mixed into a NamedTuple of numbers and arrays, after it: ``class Mine(Fields, Model)``.

    In that order the fields of the NamedTuple come before the properties here, so a field `prior` is the prior.
    """

    __slots__ = ()

    @property
    def dim(self) -> int:
        """How many coordinates θ has."""
        raise TypeError(f"{type(self).__name__} has no dim; give it a field or a property dim, the length of θ")

    @property
    def n_rows(self) -> int:
        """How many rows of data there are; 0 for a model without data."""
        return 0

    @property
    def prior(self) -> Any:
        """The prior; Flat() for a model whose energy is all there is."""
        return Flat()

    @property
    def parameters(self) -> Parameters:
        """Names and shapes of what θ is made of, ``{"w": (10, 3), "b": (3,)}``; one vector ``theta`` if a model says no more."""
        return {"theta": (self.dim,)}

    def unpack(self, theta: ArrayLike) -> dict[str, NDArray[Any]]:
        """The parameters by name and in their shapes, of one θ or of draws (…, dim)."""
        return layout_of_model(self, self.dim).unpack(theta)

    def energy(self, theta: ArrayLike) -> float:
        """U(θ) = −log prior(θ) − Σ log p(y_i | θ), over all rows."""
        return energy_of(self, theta)

    def gradient(self, theta: ArrayLike, rows: ArrayLike | None = None) -> NDArray[np.float64]:
        """∇U(θ) over all rows; with `rows`, the unbiased estimate (N/n) Σ_rows ∇(−log p(y_i | θ)) + ∇(−log prior(θ))."""
        return gradient_of(self, theta, rows)

    def _repr(self) -> str:
        """One line, without arrays. A NamedTuple's own repr comes first, so a class says ``__repr__ = Model._repr``."""
        n, d = self.n_rows, self.dim
        parts = [f"{n} row{'s' * (n != 1)}"] * (n > 0) + [f"{d} parameter{'s' * (d != 1)}"]
        parts += [f"prior={self.prior!r}"] * ("prior" in getattr(self, "_fields", ()))
        return f"{type(self).__name__}({', '.join(parts)})"

    def __reduce__(self) -> Any:
        own: dict[str, Any] = getattr(self, "__dict__", {})  # what is not for kernels: names of columns
        return type(self)._make, (tuple(self),), own if own else None  # type: ignore[attr-defined, arg-type]
