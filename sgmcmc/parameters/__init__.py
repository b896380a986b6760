"""Names and shapes of parameters: how θ, one long vector, is cut into blocks that have a name.

A declaration is ``{"w": (10, 3), "b": (3,)}``: blocks in the order in which they stand in θ, each row by row. A number of its
own has the shape ``()``. An axis may also be a list of names, one for each place on it: ``{"w": (["age", "height"], 3)}``.
What is cut may be an array of NumPy, JAX or PyTorch, and leading axes stay: draws (chain, draw, dim) become (chain, draw, …).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sgmcmc import checks
from sgmcmc.parameters.names import Axis, Names, length

__all__ = ["Layout", "Parameters", "layout_of_model"]

Parameters = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Layout:
    """A declaration of parameters that was checked, and what follows from it.

    Parameters
    ----------
    axes : dict
        For each block its axes, each a length or the names on it.

    Examples
    --------
    >>> layout = sg.parameters.Layout.read({"w": (2, 2), "b": ()})
    >>> layout.dim, list(layout.names), layout.unpack(np.arange(5.0))["b"]
    (5, ['w[0,0]', 'w[0,1]', 'w[1,0]', 'w[1,1]', 'b'], array(4.))
    """

    axes: dict[str, tuple[Axis, ...]]

    @classmethod
    def read(cls, declared: Parameters | Layout, least: int = 1) -> Layout:
        """The layout of a declaration, refused in one sentence where it makes no sense; an axis has at least `least` places."""
        if isinstance(declared, Layout):
            return declared
        if not isinstance(declared, Mapping) or len(declared) == 0:
            raise TypeError(
                f'parameters={checks.show(declared)} is not a declaration; give names and shapes, {{"w": (10, 3)}}'
            )
        layout = cls({_name(name): _axes(name, shape, least) for name, shape in declared.items()})
        if not layout.names.differ:
            raise ValueError(f"parameters={checks.show(dict(declared))} gives two parameters the same name; rename one")
        return layout

    @classmethod
    def of_names(cls, names: Sequence[str]) -> Layout:
        """One vector ``theta`` if that is what the names say, else a number of its own for each name."""
        plain = cls({"theta": (len(names),)})
        return plain if plain.names == tuple(names) else cls(dict.fromkeys(names, ()))

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each block."""
        return {name: tuple(length(axis) for axis in axes) for name, axes in self.axes.items()}

    @cached_property
    def dim(self) -> int:
        """How many numbers there are in all."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    @cached_property
    def names(self) -> Names:
        """A name for each number: ``w[0,2]``, or ``b`` for one of its own."""
        return Names(self.axes)

    @cached_property
    def places(self) -> dict[str, slice]:
        """Where in θ each block is."""
        sizes = [math.prod(shape) for shape in self.shapes.values()]
        ends = list(itertools.accumulate(sizes))
        return {name: slice(end - size, end) for name, size, end in zip(self.axes, sizes, ends, strict=True)}

    def positions(self, key: str, argument: str = "parameters") -> range:
        """Positions in θ of a block, or of one number by its whole name."""
        if isinstance(key, str) and key in self.places:
            return range(self.dim)[self.places[key]]
        i = self.names.find(key)
        if i is None:
            raise ValueError(f"{argument}={checks.show(key)} is unknown; choose one of {self._known()}")
        return range(i, i + 1)

    def _known(self) -> str:
        blocks, single = list(self.axes), [n for n in self.names[:20] if n not in self.axes]
        shown = blocks[:20] + single[: max(20 - len(blocks), 3)]
        alone = sum(len(axes) == 0 for axes in self.axes.values())  # blocks that are a number, too
        return ", ".join(repr(n) for n in shown) + (", …" if len(shown) < len(blocks) + self.dim - alone else "")

    def take(self, draws: Any, key: str) -> Any:
        """The draws (…, dim) of a block, in its shape, or of one number."""
        where = self.positions(key, "name")
        shape = self.shapes[key] if key in self.axes else ()
        return draws[..., where.start : where.stop].reshape((*draws.shape[:-1], *shape))

    def split(self, vector: Any) -> list[Any]:
        """The blocks of a vector, in their order."""
        return [self.take(vector, name) for name in self.axes]

    def join(self, arrays: Sequence[Any]) -> NDArray[Any]:
        """The vector of blocks, which may have leading axes in common; ValueError where a shape differs."""
        if len(arrays) != len(self.axes):
            raise ValueError(f"{len(arrays)} arrays were given; give {len(self.axes)}: {', '.join(self.axes)}")
        parts = []
        for (name, shape), value in zip(self.shapes.items(), arrays, strict=True):
            array = np.asarray(value)
            lead = array.shape[: array.ndim - len(shape)]
            if array.ndim < len(shape) or array.shape[len(lead) :] != shape:
                raise ValueError(f"{name} has shape {array.shape}; give {shape}")
            parts.append(array.reshape((*lead, math.prod(shape))))
        return np.concatenate(parts, axis=-1)

    def unpack(self, theta: ArrayLike) -> dict[str, NDArray[Any]]:
        """Every block of θ, or of draws (…, dim), in its shape."""
        array = np.asarray(theta)
        if array.ndim == 0 or array.shape[-1] != self.dim:
            raise ValueError(f"theta has shape {array.shape}; give ({self.dim},), or draws of shape (..., {self.dim})")
        return {name: self.take(array, name) for name in self.axes}


def _name(name: Any) -> str:
    if not isinstance(name, str) or name.strip() == "":
        raise TypeError(f"parameters has the name {name!r}; give texts that are not empty")
    return name


def _axes(name: str, shape: Any, least: int) -> tuple[Axis, ...]:
    if isinstance(shape, str | Mapping) or not isinstance(shape, Sequence):
        raise TypeError(
            f"parameters[{name!r}]={shape!r} is not a shape; give (), (3,), (10, 3), or lists of names in it"
        )
    return tuple(_axis(name, axis, least) for axis in shape)


def _axis(name: str, axis: Any, least: int) -> Axis:
    if isinstance(axis, Sequence) and not isinstance(axis, str):
        labels = tuple(str(label) for label in axis)
        if len(labels) == 0 or len(set(labels)) < len(labels):
            raise ValueError(f"parameters[{name!r}] has the axis {list(axis)!r}; give names that differ, at least one")
        return labels
    return checks.integer(f"parameters[{name!r}]", axis, least)


def layout_of_model(model: Any, dim: int) -> Layout:
    """Returns what a model says of its parameters, in an attribute `parameters` that is no field of it.

    Parameters
    ----------
    model : any model
    dim : int
        The length of θ.

    Returns
    -------
    Layout
        One vector theta if the model says nothing.

    Examples
    --------
    >>> sg.parameters.layout_of_model(sg.models.FiveWell(), 1).shapes
    {'theta': (1,)}
    """
    fields = getattr(model, "_fields", ())
    declared = None if "parameters" in fields else getattr(model, "parameters", None)
    declared = None if callable(declared) else declared  # a method of that name means something else
    layout = Layout({"theta": (dim,)}) if declared is None else Layout.read(declared, least=0)
    if layout.dim != dim:
        raise ValueError(f"parameters of {type(model).__name__} are {layout.dim} numbers; its dim is {dim}")
    return layout
