"""A layout: named arrays laid end to end in one vector, and cut out of it again.

It cuts NumPy, JAX and PyTorch arrays alike, and keeps leading axes: draws of shape (chain, draw, size) become one array
(chain, draw, …) per name.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Layout"]


class Layout(NamedTuple):
    """Names and shapes, in the order of the vector."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        """The length of the vector."""
        return sum(self.sizes)

    @property
    def sizes(self) -> list[int]:
        """How many numbers each name has."""
        return [math.prod(shape) for shape in self.shapes]

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for every number: ``w[0,1]``; a scalar has its own name."""
        return tuple(
            f"{name}[{','.join(map(str, place))}]" if shape else name
            for name, shape in zip(self.names, self.shapes, strict=True)
            for place in itertools.product(*map(range, shape))
        )

    def split(self, vector: Any) -> list[Any]:
        """The arrays of a vector, in the order of the names."""
        ends = list(itertools.accumulate(self.sizes))
        lead = tuple(vector.shape[:-1])
        return [
            vector[..., end - size : end].reshape(lead + shape)
            for end, size, shape in zip(ends, self.sizes, self.shapes, strict=True)
        ]

    def join(self, arrays: Sequence[Any]) -> NDArray[Any]:
        """The vector of arrays, which may have leading axes in common; ValueError where a shape differs."""
        if len(arrays) != len(self.names):
            raise ValueError(f"{len(arrays)} arrays were given; give {len(self.names)}: {', '.join(self.names)}")
        parts = []
        for name, shape, value in zip(self.names, self.shapes, arrays, strict=True):
            array = np.asarray(value)
            lead = array.shape[: array.ndim - len(shape)]
            if array.ndim < len(shape) or array.shape[len(lead) :] != shape:
                raise ValueError(f"{name} has shape {array.shape}; give {shape}")
            parts.append(array.reshape((*lead, -1)))
        return np.concatenate(parts, axis=-1)
