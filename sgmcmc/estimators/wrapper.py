"""A model around another one, with the same posterior and other gradients."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from sgmcmc.parameters import Parameters, layout_of_model
from sgmcmc.potentials import Model, dim_of, energy_of

__all__ = ["Around"]


class Around(Model):
    """To be mixed into a NamedTuple with the field `inner`: what is as in the model inside."""

    __slots__ = ()
    inner: Any

    @property
    def dim(self) -> int:
        """How many coordinates θ has."""
        return dim_of(self.inner)

    @property
    def parameters(self) -> Parameters:
        """As those of the model inside."""
        return layout_of_model(self.inner, self.dim).axes

    def energy(self, theta: ArrayLike) -> float:
        """U(θ), that of the model inside."""
        return energy_of(self.inner, theta)
