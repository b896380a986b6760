"""Runs of a black box: many chains, half of them started in the target and half away from it, with averages in blocks.

A run can be made longer: the chains go on, blocks are joined two by two, and the warm-up that is left out grows with the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sgmcmc.testing.adapter import BlackBox
from sgmcmc.testing.targets import GAUSSIAN, Target, scaled

__all__ = ["Averages", "Run", "natural_scale", "positions_of"]

Array = NDArray[np.float64]
BLOCKS = 16  # of a run; half as many after each joining
EVERY = 4  # steps between two that are measured
FIRST = 10  # so many steps are the first draws
COORDINATES = 8192  # chains × dimension of a run, if it goes over all chains at once
PAIRS = 50  # coordinates up to which every pair is looked at
STRETCH, SHIFT = 1.5, 0.5  # of the starts that lie away from the target, in standard deviations
COARSE, FINE = 0.15, 0.05  # of a standard deviation: what a step should move by, and the least at the scale 1


class Averages(NamedTuple):
    """Time averages per chain over a stretch of a run; θ is in units of its law, x = (θ − mean)/sd."""

    mean: Array  # (chains, dim)
    second: Array  # (chains, dim)
    third: Array  # (chains,), and so are those below
    virial: Array  # θ U'(θ)/T
    pairs: Array  # x_i x_j over all pairs
    neighbours: Array  # x_i x_{i+1}
    moved: Array  # Δ_i², Δ being what one step changes x by
    moved_pairs: Array  # Δ_i Δ_j over all pairs
    products: Array  # (chains, dim, dim): x_i x_j, or nothing where there are too many


class Run:
    """Chains of a black box on a target; `advance` makes the run longer."""

    def __init__(self, box: BlackBox, target: Target, dim: int, chains: int | None, seed: int, away: bool = True):
        self.box, self.target, self.dim, self.law = box, target, dim, target.law(box.temperature)
        if chains is None:
            chains = max(64, min(4096, COORDINATES // dim)) if box.vectorised else 64
        entropy = [seed, dim, crc32(target.name.encode())]  # other runs, other random numbers
        x = self.law.draw(chains * dim, np.random.default_rng([*entropy, 1])).reshape(chains, dim)
        self.center, self.sd = self.law.mean(lambda y: y), self.law.variance**0.5
        self.away = np.arange(chains) >= (chains + 1) // 2 if away else np.zeros(chains, bool)
        x[self.away] = self.center + STRETCH * (x[self.away] - self.center) + SHIFT * self.sd
        self.theta, self.steps, self.lost = x, 0, False
        self.first = np.zeros((chains, 2))  # what the first draws add to the mean and to the second moment of the start
        self.blocks: list[Averages] = []
        self.states, self._advance, self._where = all_chains(box, x, [*entropy, 2])

    def standard(self, theta: Array) -> Array:
        x: Array = (theta - self.center) / self.sd
        return x

    def advance(self, steps: int) -> None:
        """So many steps more, in blocks of equal length with those before; what overflows is lost, and stays so."""
        if steps <= 0:
            return
        while len(self.blocks) > BLOCKS // 2:
            self.blocks = [_mean(self.blocks[i : i + 2]) for i in range(0, len(self.blocks), 2)]
        count = min(BLOCKS - len(self.blocks), steps)
        with np.errstate(all="ignore"):
            for b in range(count):
                if not self.lost:
                    self._block(steps * (b + 1) // count - steps * b // count)

    def _block(self, steps: int) -> None:
        total, count = None, 0
        for k in range(steps):
            gradient = self.target.gradient(self.theta)
            if not np.isfinite(gradient).all():
                self.lost = True
                return
            given = self.target.gradient if self.box.calls_gradient else gradient
            self.states = self._advance(self.states, given)
            before, self.theta = self.theta, self._where(self.states)
            if k % EVERY == 0:
                total, count = _add(total, self._measure(before, gradient)), count + 1
            if self.steps < FIRST:
                start = self.start_powers if self.steps else self._note_start(before)
                self.first += (_powers(self.standard(self.theta)) - start).T / FIRST
            self.steps += 1
        if total is not None:
            self.blocks.append(Averages(*(sums / count for sums in total)))

    def _note_start(self, theta: Array) -> Array:
        self.start_powers = _powers(self.standard(theta))
        return self.start_powers

    def _measure(self, theta: Array, gradient: Array) -> Averages:
        x, d = self.standard(theta), self.dim
        square, moved = x * x, self.standard(self.theta) - x
        products = x[:, :, None] * x[:, None, :] if 1 < d <= PAIRS else np.zeros((len(x), 0, 0))
        virial = (theta * gradient).mean(axis=1) / self.box.temperature
        neighbours = (x[:, 1:] * x[:, :-1]).mean(axis=1) if d > 1 else np.zeros(len(x))
        third = (square * x).mean(axis=1)
        moved_square = (moved * moved).mean(axis=1)
        return Averages(x, square, third, virial, _pairs(x), neighbours, moved_square, _pairs(moved), products)

    @property
    def stands_still(self) -> bool:
        """Whether no chain has moved at all."""
        return not self.lost and all(float(np.max(b.moved)) == 0.0 for b in self.blocks)

    def window(self, begin: float, end: float = 1.0) -> Averages:
        """The averages over the blocks of this part of the run."""
        n = len(self.blocks)
        low = min(round(begin * n), n - 1)
        return _mean(self.blocks[low : max(round(end * n), low + 1)])


def _powers(x: Array) -> Array:
    """x and x², averaged over coordinates: (2, chains)."""
    powers: Array = np.stack([x, x * x]).mean(axis=2)
    return powers


def _pairs(x: Array) -> Array:
    """The mean of x_i x_j over all pairs i ≠ j of coordinates, per chain."""
    d = x.shape[1]
    if d == 1:
        return np.zeros(len(x))
    pairs: Array = (x.sum(axis=1) ** 2 - (x * x).sum(axis=1)) / (d * (d - 1.0))
    return pairs


def _add(total: Averages | None, more: Averages) -> Averages:
    """The sum, in the arrays of the first."""
    if total is None:
        return Averages(*(np.array(a) for a in more))
    for a, b in zip(total, more, strict=True):
        a += b
    return total


def _mean(parts: list[Averages]) -> Averages:
    return Averages(*(sum(values[1:], values[0]) / len(values) for values in zip(*parts, strict=True)))


def all_chains(
    box: BlackBox, start: Array, entropy: list[int]
) -> tuple[Any, Callable[[Any, Any], Any], Callable[[Any], Array]]:
    """The states of all chains, how they advance together, and where they are (chains, dim)."""
    base = int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 2)  # fits in 31 bits everywhere
    if box.vectorised:
        return box.init(start.copy(), base), box.step, lambda state: positions_of(box, box.position(state), start.shape)

    def advance(states: list[Any], gradient: Any) -> list[Any]:
        one_each = [gradient] * len(states) if box.calls_gradient else gradient
        return [box.step(s, g) for s, g in zip(states, one_each, strict=True)]

    def where(states: list[Any]) -> Array:
        return positions_of(box, np.stack([np.asarray(box.position(s), float) for s in states]), start.shape)

    return [box.init(row.copy(), base + k) for k, row in enumerate(start)], advance, where


def positions_of(box: BlackBox, theta: Any, shape: tuple[int, ...]) -> Array:
    array: Array = np.asarray(theta).astype(float)  # a copy: the sampler may go on in place
    if array.shape != shape:
        raise ValueError(
            f"the position of {box.name} has shape {array.shape}; give {shape} for all chains (or {shape[1:]} for one)"
        )
    return array


def natural_scale(box: BlackBox, seed: int = 0) -> float:
    """The scale of target at which a step moves by a seventh of a standard deviation, if at the scale 1 it is far less.

    On a wide target a sampler that diffuses by tiny steps stands as good as still, and nothing can be seen. Its steps are
    as good on a narrow one: at a seventh Euler's scheme is off by 0.6 %. The scale is 1 where a step moves by a twentieth
    or more, or by nothing at all; and for samplers with momentum, which take the time of their friction on any target.
    """
    s = 1.0
    for _ in range(8):
        run = Run(box, scaled(GAUSSIAN, s), 20, 16, seed, away=False)
        run.advance(64)
        if run.lost:
            return min(1.0, 2.0 * s)
        moved = float(np.sqrt(run.window(0.5).moved.mean()))
        if not moved > 0.0 or (s == 1.0 and moved >= FINE) or 0.6 * COARSE <= moved <= 1.1 * COARSE:
            return s
        if not _diffuses(run):
            return s
        s = min(1.0, s * moved / COARSE)
    return s


def _diffuses(run: Run) -> bool:
    """Whether eight steps move by some √8 times as much as one, not by eight times as much."""
    places = [run.theta]
    for _ in range(8):
        run.advance(1)
        places.append(run.theta)
    steps = np.diff(places, axis=0)
    return bool(np.mean((places[-1] - places[0]) ** 2) < 24.0 * np.mean(steps**2))
