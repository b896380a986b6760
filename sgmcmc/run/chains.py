"""Chains that start together: their states are rows of common arrays.

A step of a small chain takes some ns; to make eight short arrays for each of thousands of chains, stack and cut them again took
15 µs per chain. Here a chain is a place in its herd, and its own arrays are views, made when they are asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators import State
from sgmcmc.rng import Stream
from sgmcmc.run.scheduler import Chain
from sgmcmc.threads import rows_on_own_lines

__all__ = ["Herd", "Herded", "herd_of", "set_apart"]

Terms = NDArray[np.float64]


class Herd:
    """A row per chain: states, where recording began, sums of measurements; a pack's sums by coordinate, once there are any."""

    def __init__(self, states: State, origins: NDArray[Any], sums: NDArray[np.float64]) -> None:
        self.states, self.origins, self.sums = states, origins, sums
        self.terms: Terms | None = None
        self.watch: Terms | None = None  # by segment and coordinate
        self.is_home = False  # whether its rows are what its chains write to, or leave behind

    def set_apart(self) -> None:
        """Move the rows to memory where no two share a line."""
        *states, self.origins, self.sums = rows_on_own_lines((*self.states, self.origins, self.sums), len(self.sums))
        self.states, self.is_home = State(*states), True

    def terms_for(self, coordinates: int) -> Terms:
        """Room for `terms`, zeros at first."""
        if self.terms is None:
            self.terms = np.zeros((len(self.sums), coordinates))
        return self.terms

    def watch_for(self, shape: tuple[int, int]) -> Terms:
        """Room for `watch`, zeros at first."""
        if self.watch is None:
            self.watch = np.zeros((len(self.sums), *shape))
        return self.watch


class Herded(Chain):
    """A chain of a herd; made before its first step."""

    def __init__(self, herd: Herd, place: int, keys: Stream, out: NDArray[Any], fresh: bool) -> None:
        self.herd, self.place, self.keys = herd, place, keys
        self.number, self.step, self.before, self.out, self.fresh = place, 0, 0.0, out, fresh

    def __getattr__(self, name: str) -> Any:
        """The chain's own arrays; what is asked for once stays."""
        if name == "state":
            value: Any = State(*(array[self.place] for array in self.herd.states))
        elif name == "stream":
            value = self.keys._replace(chain=np.uint32(self.number))
        elif name == "origin":
            value = self.herd.origins[self.place]
        elif name == "sums":
            value = self.herd.sums[self.place]
        else:
            raise AttributeError(name)  # without a look at `herd`, which a copy in the making does not have yet
        setattr(self, name, value)
        return value

    def look_again(self) -> None:
        """Forget the views: the herd has moved."""
        for name in ("state", "origin", "sums"):
            self.__dict__.pop(name, None)

    @property
    def terms(self) -> Terms | None:
        return None if self.herd.terms is None else self.herd.terms[self.place]

    @terms.setter
    def terms(self, value: Terms | None) -> None:
        if value is not None:
            self.herd.terms_for(value.size)[self.place] = value

    @property
    def watch(self) -> Terms | None:
        return None if self.herd.watch is None else self.herd.watch[self.place]

    @watch.setter
    def watch(self, value: Terms | None) -> None:
        if value is not None:
            self.herd.watch_for(value.shape)[self.place] = value


def set_apart(chains: list[Any]) -> None:
    """Give every chain memory of its own for what it writes, so that no two threads write into one line."""
    if all(isinstance(c, Herded) for c in chains):
        chains[0].herd.set_apart()
        for chain in chains:
            chain.look_again()
        return
    columns = zip(*((*c.state, c.origin, c.sums) for c in chains), strict=True)
    rooms = rows_on_own_lines((np.stack(own) for own in columns), len(chains))
    for i, chain in enumerate(chains):
        *state, chain.origin, chain.sums = (room[i] for room in rooms)
        chain.state = State(*state)


def herd_of(chains: list[Any]) -> tuple[Herd, Any]:
    """The herd of chains that run in a pack, and where they are in it; chains with none become one."""
    if isinstance(chains[0], Herded):
        herd, places = chains[0].herd, [c.place for c in chains]
        herd.is_home = True
        in_a_row = places[-1] - places[0] == len(places) - 1
        return herd, slice(places[0], places[-1] + 1) if in_a_row else places
    states = State(*(np.stack(own) for own in zip(*(c.state for c in chains), strict=True)))
    herd = Herd(states, np.stack([c.origin for c in chains]), np.stack([c.sums for c in chains]))
    for place, chain in enumerate(chains):
        if chain.terms is not None:
            herd.terms_for(chain.terms.size)[place] = chain.terms
        if chain.watch is not None:
            herd.watch_for(chain.watch.shape)[place] = chain.watch
        chain.state, chain.origin, chain.sums = (
            State(*(a[place] for a in states)),
            herd.origins[place],
            herd.sums[place],
        )
    return herd, slice(0, len(chains))
