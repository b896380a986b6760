"""Names of the numbers in θ: ``w[0,2]``, or ``b`` for one of its own; each is made when it is asked for.

θ may have millions of numbers. Their names follow from its blocks and the axes of these, so only those are kept.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, overload

__all__ = ["Axis", "Names", "length"]

Axis = int | tuple[str, ...]


def length(axis: Axis) -> int:
    """How many places there are on an axis."""
    return axis if isinstance(axis, int) else len(axis)


class Names(Sequence[str]):
    """A name for each number. It reads and compares like a tuple of texts, and a slice of it is one.

    axes: for each block its axes, each a length or the names on it.
    """

    def __init__(self, axes: Mapping[str, tuple[Axis, ...]]) -> None:
        self._axes = dict(axes)
        self._blocks = list(self._axes)
        self._ends = list(itertools.accumulate(math.prod(map(length, a)) for a in self._axes.values()))

    def __len__(self) -> int:
        return self._ends[-1] if len(self._ends) > 0 else 0

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...

    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        chosen = range(len(self))[place]
        return tuple(map(self._name, chosen)) if isinstance(chosen, range) else self._name(chosen)

    def __iter__(self) -> Iterator[str]:
        return itertools.chain.from_iterable(_all_names(name, axes) for name, axes in self._axes.items())

    def __contains__(self, name: object) -> bool:
        return self.find(name) is not None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Names) and list(self._axes.items()) == list(other._axes.items()):
            return True
        if not isinstance(other, Names | tuple):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:10]))
        return f"<{len(self)} names: {shown}{', …' if len(self) > 10 else ''}>"

    def index(self, name: Any, start: int = 0, stop: int | None = None) -> int:
        """The position of a name."""
        found = self.find(name)
        if found is None or found not in range(len(self))[start:stop]:
            raise ValueError(f"{name!r} is not the name of a parameter here")
        return found

    def find(self, name: object) -> int | None:
        """The position of a name; None if there is none."""
        if not isinstance(name, str):
            return None
        if not self._readable:
            return self._positions.get(name)
        block = name.partition("[")[0]
        if block not in self._axes:
            return None
        axes = self._axes[block]
        inside = _place(name[len(block) :], axes)
        return None if inside is None else self._ends[self._blocks.index(block)] - math.prod(map(length, axes)) + inside

    @property
    def differ(self) -> bool:
        """Whether no two are the same."""
        return self._readable or len(self._positions) == len(self)

    @cached_property
    def _readable(self) -> bool:
        """Whether block and place can be told from a name: then no two are the same."""
        on_axes = (label for axes in self._axes.values() for axis in axes if isinstance(axis, tuple) for label in axis)
        return not any("[" in block for block in self._blocks) and not any("," in label for label in on_axes)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self)}

    def _name(self, i: int) -> str:
        block = bisect_right(self._ends, i)
        name = self._blocks[block]
        axes, rest = self._axes[name], i - (self._ends[block - 1] if block > 0 else 0)
        parts: list[str] = []
        for axis in reversed(axes):
            rest, k = divmod(rest, length(axis))
            parts.append(str(k) if isinstance(axis, int) else axis[k])
        return f"{name}[{','.join(reversed(parts))}]" if len(axes) > 0 else name


def _all_names(name: str, axes: tuple[Axis, ...]) -> Iterator[str]:
    if len(axes) == 0:
        return iter((name,))
    places = itertools.product(*(map(str, range(a)) if isinstance(a, int) else a for a in axes))
    return (f"{name}[{','.join(place)}]" for place in places)


def _place(text: str, axes: tuple[Axis, ...]) -> int | None:
    """The position in a block that ``[0,2]`` means."""
    if len(axes) == 0:
        return 0 if text == "" else None
    parts = text[1:-1].split(",")
    if text[:1] + text[-1:] != "[]" or len(parts) != len(axes):
        return None
    place = 0
    for part, axis in zip(parts, axes, strict=True):
        k = _on_axis(part, axis)
        if k is None:
            return None
        place = place * length(axis) + k
    return place


def _on_axis(part: str, axis: Axis) -> int | None:
    if isinstance(axis, tuple):
        return axis.index(part) if part in axis else None
    k = int(part) if part.isdecimal() and len(part) < 20 else axis
    return k if k < axis and str(k) == part else None
