"""Chains as arrays: the states of all chains are rows of common arrays, and a chain is a view of its row.

Views are made on first use: eight short arrays per chain, stacked and split again, took 15 µs per chain, and a step of a small
chain takes some ns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators import State
from sgmcmc.rng import Stream
from sgmcmc.run.job import Chain
from sgmcmc.threads import rows_on_own_lines

__all__ = ["ChainArrays", "ChainView", "arrays_of", "put_on_own_lines"]

Array = NDArray[np.float64]


class ChainArrays:
    """States, origins and sums of measurements, a row per chain; sums by coordinate and by segment once there are any."""

    def __init__(self, states: State, origins: NDArray[Any], sums: NDArray[np.float64]) -> None:
        self.states, self.origins, self.sums = states, origins, sums
        self.coordinate_sums: Array | None = None
        self.segment_sums: Array | None = None  # (chain, segment, …): see sgmcmc.run.coordinate_temperatures
        self.holds_states = False  # whether these rows, not copies of them, have the last states

    def put_on_own_lines(self) -> None:
        """Move the rows to memory in which no two rows share a cache line."""
        *states, self.origins, self.sums = rows_on_own_lines((*self.states, self.origins, self.sums), len(self.sums))
        self.states, self.holds_states = State(*states), True

    def coordinate_sums_for(self, coordinates: int) -> Array:
        """`coordinate_sums`; zeros if there were none."""
        if self.coordinate_sums is None:
            self.coordinate_sums = np.zeros((len(self.sums), coordinates))
        return self.coordinate_sums

    def segment_sums_for(self, shape: tuple[int, int]) -> Array:
        """`segment_sums`; zeros if there were none."""
        if self.segment_sums is None:
            self.segment_sums = np.zeros((len(self.sums), *shape))
        return self.segment_sums


class ChainView(Chain):
    """A chain whose arrays are views of row `row` of `arrays`; made before its first step."""

    def __init__(self, arrays: ChainArrays, row: int, keys: Stream, out: NDArray[Any], fresh: bool) -> None:
        self.arrays, self.row, self.keys = arrays, row, keys
        self.number, self.step, self.before, self.out, self.fresh = row, 0, 0.0, out, fresh

    def __getattr__(self, name: str) -> Any:
        """Make a view on first use, and keep it."""
        if name == "state":
            value: Any = State(*(array[self.row] for array in self.arrays.states))
        elif name == "stream":
            value = self.keys._replace(chain=np.uint32(self.number))
        elif name == "origin":
            value = self.arrays.origins[self.row]
        elif name == "sums":
            value = self.arrays.sums[self.row]
        else:
            raise AttributeError(name)  # `arrays` is not read: a copy under construction does not have it yet
        setattr(self, name, value)
        return value

    def drop_views(self) -> None:
        """Drop the views: the arrays have moved."""
        for name in ("state", "origin", "sums"):
            self.__dict__.pop(name, None)

    @property
    def coordinate_sums(self) -> Array | None:
        return None if self.arrays.coordinate_sums is None else self.arrays.coordinate_sums[self.row]

    @coordinate_sums.setter
    def coordinate_sums(self, value: Array | None) -> None:
        if value is not None:
            self.arrays.coordinate_sums_for(value.size)[self.row] = value

    @property
    def segment_sums(self) -> Array | None:
        return None if self.arrays.segment_sums is None else self.arrays.segment_sums[self.row]

    @segment_sums.setter
    def segment_sums(self, value: Array | None) -> None:
        if value is not None:
            self.arrays.segment_sums_for(value.shape)[self.row] = value


def put_on_own_lines(chains: list[Any]) -> None:
    """Move what each chain writes to cache lines of its own, so that no two threads write to one line."""
    if all(isinstance(c, ChainView) for c in chains):
        chains[0].arrays.put_on_own_lines()
        for chain in chains:
            chain.drop_views()
        return
    columns = zip(*((*c.state, c.origin, c.sums) for c in chains), strict=True)
    separate = rows_on_own_lines((np.stack(own) for own in columns), len(chains))
    for i, chain in enumerate(chains):
        *state, chain.origin, chain.sums = (array[i] for array in separate)
        chain.state = State(*state)


def arrays_of(chains: list[Any]) -> tuple[ChainArrays, Any]:
    """The common arrays of chains, and the rows of these chains in them; made if there are none."""
    if isinstance(chains[0], ChainView):
        arrays, rows = chains[0].arrays, [c.row for c in chains]
        arrays.holds_states = True
        in_a_row = rows[-1] - rows[0] == len(rows) - 1
        return arrays, slice(rows[0], rows[-1] + 1) if in_a_row else rows
    states = State(*(np.stack(own) for own in zip(*(c.state for c in chains), strict=True)))
    arrays = ChainArrays(states, np.stack([c.origin for c in chains]), np.stack([c.sums for c in chains]))
    for row, chain in enumerate(chains):
        if chain.coordinate_sums is not None:
            arrays.coordinate_sums_for(chain.coordinate_sums.size)[row] = chain.coordinate_sums
        if chain.segment_sums is not None:
            arrays.segment_sums_for(chain.segment_sums.shape)[row] = chain.segment_sums
        chain.state, chain.origin, chain.sums = (
            State(*(a[row] for a in states)),
            arrays.origins[row],
            arrays.sums[row],
        )
    return arrays, slice(0, len(chains))
