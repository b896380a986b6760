"""Recording: the draws of a chunk go through `keep` to a sink, unless kernels write them straight into the result.

A chain then holds the draws of one chunk only. `keep` is θ itself, a function of it, or its moments; a sink is an array or a
file. The memory of a run does not grow with its length.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sgmcmc.compiler.kernels import kernel
from sgmcmc.moments import Running, accumulate

__all__ = ["Collected", "InMemory", "Keep", "KeepFunction", "KeepMoments", "Recorder", "Sink", "Tally"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@dataclass
class Tally:
    """Running moments of one chain's draws."""

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    count: int = 0


@kernel
def _count_in(thetas, before, mean, variance):
    for k in range(thetas.shape[0]):
        accumulate(Running(1.0 / (before + k + 1), mean, variance), thetas[k], 0, thetas.shape[1])


class Keep:
    """θ itself."""

    def __init__(self, size: int, dtype: Any) -> None:
        self.size, self.dtype = size, np.dtype(dtype)

    def values(self, chain: Any, thetas: NDArray[Any]) -> NDArray[Any]:
        """The rows to keep of these draws."""
        return thetas


class KeepFunction(Keep):
    """A function of θ, called by one thread at a time."""

    def __init__(self, function: Callable[[Any], Any], size: int, dtype: Any) -> None:
        super().__init__(size, dtype)
        self.function, self._lock = function, threading.Lock()

    def __reduce__(self) -> Any:
        return KeepFunction, (self.function, self.size, self.dtype)

    def values(self, chain: Any, thetas: NDArray[Any]) -> NDArray[Any]:
        rows = np.empty((len(thetas), self.size), self.dtype)
        with self._lock:
            for row, theta in zip(rows, thetas, strict=True):
                found = np.asarray(self.function(theta))
                if found.size != self.size:
                    raise ValueError(
                        f"keep returned {found.size} number(s) after {self.size} at the start; give as many every time"
                    )
                row[:] = found.reshape(-1)
        return rows


class KeepMoments(Keep):
    """Mean and variance of every coordinate, and no draws."""

    def __init__(self) -> None:
        super().__init__(0, np.float64)

    def values(self, chain: Any, thetas: NDArray[Any]) -> NDArray[Any]:
        tally: Tally = chain.tally
        _count_in(thetas, np.int64(tally.count), tally.mean, tally.variance)
        tally.count += len(thetas)
        return np.empty((len(thetas), 0))


class Sink(Protocol):
    """Takes rows, by the number of their chain and the index of the first."""

    def write(self, number: int, first: int, rows: NDArray[Any]) -> None: ...


class InMemory:
    """Rows in an array (chain, draw, size)."""

    def __init__(self, array: NDArray[Any], numbers: list[int]) -> None:
        self.array, self._places = array, {number: place for place, number in enumerate(numbers)}

    def write(self, number: int, first: int, rows: NDArray[Any]) -> None:
        self.array[self._places[number], first : first + len(rows)] = rows


class Collected:
    """Rows in a list, to be sent elsewhere."""

    def __init__(self) -> None:
        self.found: list[tuple[int, int, NDArray[Any]]] = []

    def write(self, number: int, first: int, rows: NDArray[Any]) -> None:
        self.found.append((number, first, rows.copy()))


@dataclass(frozen=True)
class Recorder:
    """What is kept of the draws, and the sink that takes it."""

    keep: Keep
    sink: Sink

    def take(self, chain: Any, first: int, thetas: NDArray[Any]) -> None:
        """Keep the draws first, first + 1, … of a chain."""
        if len(thetas) == 0:
            return
        rows = self.keep.values(chain, thetas)
        if self.keep.size > 0:
            self.sink.write(chain.number, first, rows)
