"""The pilot: where the posterior is, how wide in each coordinate, and how steep at most, before a run or a tuning.

The scale comes from the second moment of the gradient: under exp(−U/T), E[∇U ∇Uᵀ] = T E[∇²U], so √(T/E[(∂ᵢU)²]) is the spread of
coordinate i at T = 1 with the others held. It is measured in rounds, each with the scale of the round before, and is frozen
then: a fixed scale is a change of units and leaves the law as it is, with no correction term.

Where coordinates depend on each other, units do not help: a chain needs of the order of √κ steps for one independent draw, κ the
ratio of the largest eigenvalue of the Hessian to the smallest, its diagonal made 1. If that is more than two products with a
matrix cost, the scale becomes a matrix S, in rounds, too: with M = E[Sᵀ∇U (Sᵀ∇U)ᵀ]/T, drawn towards a multiple of the identity, S
becomes S M^(−1/2). An axis along which next to nothing pulls thus becomes longer by a small factor in each round, and only as
far as the gradient that is met on the way allows: the Hessian at the mode would let it go to where other curvatures are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc import checks
from sgmcmc.bias.gradients import gradient_at, some_rows
from sgmcmc.bias.stability import largest_curvature
from sgmcmc.compiler.field_docs import documented
from sgmcmc.potentials import dim_of
from sgmcmc.samplers import Sampler
from sgmcmc.samplers.presets import SGHMC

__all__ = ["Pilot", "find_scale"]

Array = NDArray[np.float64]
MOST_ROWS = 5000
_ROUNDS, _DRAWS, _DESCENT = 4, 64, 400
_HALVINGS, _HOT = 6, 1.5
_LARGEST, _COST = 256, 32  # coordinates of a matrix; the row of a matrix costs as much as 1/32 of a usual step
_TURNS, _PER_AXIS = 6, 10  # rounds of a matrix; draws of each for every coordinate


@documented
class Pilot(NamedTuple):
    """Where the posterior is, how wide in each coordinate, and how steep at most; made by `find_scale`.

    Parameters
    ----------
    theta : array (chain, dim)
        Places to start from.
    scale : array (dim,) or (dim, dim)
        The units.
    steepest : float
        The largest curvature in these units.

    Examples
    --------
    >>> sg.tuning.find_scale(sg.models.Gaussian(np.zeros(2), [1.0, 100.0]), chains=2).theta.shape
    (2, 2)
    """

    theta: Array
    scale: Array
    steepest: float


def find_scale(
    run: Callable[..., Any],
    model: Any,
    *,
    chains: int = 4,
    init: Any = None,
    scale: Any = None,
    temperature: float = 1.0,
    seed: int = 0,
    matrix: bool = True,
    progress: bool = False,
) -> Pilot:
    """Go downhill from `init`, then run short chains and measure E[(∂U)²] along them, in four rounds.

    Takes some thousand gradients, of at most 5000 rows each. `run` is `sgmcmc.sample`; this module stands below it. The
    other parameters are those of `sgmcmc.tuning.find_scale`.
    """
    from tqdm.auto import tqdm

    chains, dim = checks.integer("chains", chains, 1), dim_of(model)
    start = np.zeros(dim) if init is None else checks.finite_array("init", init)
    with tqdm(total=_ROUNDS, desc="pilot", unit="round", leave=False, disable=not progress) as bar:
        search = _Search(run, model, start, scale, chains, temperature, seed, lambda: bar.update() and None)
        search.find_units(scale is None)
        if scale is None and matrix and search.is_worth_a_matrix():
            bar.total = _ROUNDS + _TURNS
            search.find_axes()
    return Pilot(search.places, search.scale, search.steepest())


class _Search:
    """Chains on their way, and the scale that they have found so far."""

    def __init__(
        self,
        run: Callable[..., Any],
        model: Any,
        start: Array,
        scale: Any,
        chains: int,
        temperature: float,
        seed: int,
        done: Callable[[], None],
    ) -> None:
        self.sample, self.model, self.temperature, self.seed, self.done = run, model, temperature, seed, done
        self.rows, self.dim, self.round = some_rows(model, MOST_ROWS), dim_of(model), 0
        dim = self.dim
        theta = (
            _downhill(self.gradient, np.array(np.broadcast_to(start, (dim,)))) if start.ndim < 2 else start[0].copy()
        )
        self.places: Array = np.tile(theta, (chains, 1))
        self.scale: Array = _first_units(self.gradient, theta) if scale is None else _known(scale, dim)

    def gradient(self, theta: Array) -> Array:
        return gradient_at(self.model, theta, self.rows)

    def steepest(self) -> float:
        """The largest curvature where the chains are."""
        return max([1e-300, *(largest_curvature(self.gradient, x, self.scale) for x in self.places)])

    def find_units(self, unknown: bool) -> None:
        """One number for each coordinate, unless they are known; the chains go on in any case."""
        for _ in range(_ROUNDS):
            draws = self._run(_DRAWS)
            if unknown:
                some = draws[:: max(1, len(draws) // 128)]
                slopes, heat = self._slopes(some)
                self.scale = np.sqrt(heat / np.maximum((slopes**2).mean(axis=0), 1e-300))

    def is_worth_a_matrix(self) -> bool:
        return 1 < self.dim <= _LARGEST and self._dependence() > 1.5 + self.dim / _COST

    def find_axes(self) -> None:
        """A matrix in place of the units."""
        self.scale = np.diag(self.scale)
        for _ in range(_TURNS):
            draws = self._run(-(-_PER_AXIS * self.dim // len(self.places)))
            slopes, heat = self._slopes(draws)
            self.scale = _turned(self.scale, slopes, float(np.mean(heat)))

    def _slopes(self, draws: Array) -> tuple[Array, Array | float]:
        """Gradients at draws, and the temperature that they belong to, one for each coordinate.

        With a part of the rows their mode is elsewhere, by many standard deviations of the posterior where the part is small,
        and the chains are hot by the noise of their batches: then slopes about their mean, and the temperature found.
        """
        slopes = np.array([self.gradient(x) for x in draws])
        if self.rows is None:
            return slopes, self.temperature
        slopes = slopes - slopes.mean(axis=0)
        heat = ((draws - draws.mean(axis=0)) * slopes).mean(axis=0)
        return slopes, np.where(heat > 0.0, heat, self.temperature)

    def _run(self, draws: int) -> Array:
        """Draws (draw, dim) of short chains; if they are hot, as where curvature grows on the way, again with half the step."""
        step, chains = 0.7 / np.sqrt(self.steepest()), len(self.places)
        options: dict[str, Any] = {"batch_size": None if self.rows is None else self.rows.size, "init": self.places}
        options |= {"chains": chains, "warmup": 5 * _DRAWS, "thin": 5, "seed": self.seed + self.round, "threads": 1}
        for k in range(_HALVINGS):
            last, sampler = k == _HALVINGS - 1, self._sampler(0.5**k * step, 0.7 / step)
            try:
                trace = self.sample(self.model, sampler, draws, progress=False, warn=False, **options)
            except checks.DivergenceError:
                if last:
                    raise
                continue
            if trace.info["interrupted"]:
                raise KeyboardInterrupt
            if last or self._heat(trace.draws) < _HOT * self.temperature:
                break
        self.places = np.asarray(trace.final["theta"], np.float64)
        self.round += 1
        self.done()
        return np.asarray(trace.draws, np.float64).reshape(-1, self.dim)

    def _sampler(self, step: float, friction: float) -> Sampler:
        return SGHMC(step, friction, temperature=self.temperature, scale=self.scale)

    def _heat(self, draws: Any) -> float:
        """The configurational temperature of the draws."""
        few = np.asarray(draws[:, ::8], np.float64).reshape(-1, self.dim)
        return float(
            np.mean([x @ self.gradient(y) for x, y in zip(few - few.mean(axis=0), few, strict=True)]) / self.dim
        )

    def _dependence(self) -> float:
        """√κ of the mean Hessian where the chains are, its diagonal made 1; 0 if it is not positive definite: between modes."""
        steps = 1e-4 * np.diag(self.scale)
        slopes = [np.mean([self.gradient(x + e) - self.gradient(x - e) for x in self.places], axis=0) for e in steps]
        H = self.scale * np.array(slopes)
        sizes = np.sqrt(np.maximum(np.diag(H), 0.0))
        if not np.isfinite(H).all() or not (sizes > 0.0).all():
            return 0.0
        widths = np.linalg.eigvalsh(0.5 * (H + H.T) / np.outer(sizes, sizes))
        return float(np.sqrt(widths[-1] / widths[0])) if widths[0] > 1e-12 * widths[-1] else 0.0


def _known(scale: Any, dim: int) -> Array:
    given = np.asarray(scale, np.float64)
    return given if given.ndim == 2 else np.array(np.broadcast_to(given, (dim,)))


def _turned(S: Array, slopes: Array, temperature: float) -> Array:
    """S M^(−1/2), with M from gradients at draws that were made with S."""
    g = slopes @ S
    n, dim = g.shape
    M = g.T @ g / (n * temperature)
    common = max(float(np.trace(M)) / dim, 1e-300)
    widths, Q = np.linalg.eigh((n * M + dim * common * np.eye(dim)) / (n + dim))
    return np.asarray(S @ (Q / np.sqrt(widths)) @ Q.T)


def _downhill(gradient: Any, theta: Array) -> Array:
    """Near a mode, by Adam with a step that shrinks: robust where curvatures differ by orders of magnitude."""
    m, v, best = np.zeros_like(theta), np.zeros_like(theta), theta
    pace = 0.1 * max(1.0, float(np.abs(theta).max()))
    for t in range(1, _DESCENT + 1):
        g = gradient(theta)
        if not np.isfinite(g).all():
            return best
        best = theta
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
        theta = theta - pace * (1.0 - t / (_DESCENT + 1)) * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.99**t)) + 1e-300)
    return theta


def _first_units(gradient: Any, theta: Array) -> Array:
    """1/√ of the curvature along each axis; of many axes, by random directions (Hutchinson)."""
    dim, e = theta.size, 1e-4
    if dim <= 256:
        bends = np.array([(gradient(theta + d) - gradient(theta - d))[i] for i, d in enumerate(e * np.eye(dim))])
    else:
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (64, dim))
        bends = np.mean([z * (gradient(theta + e * z) - gradient(theta - e * z)) for z in signs], axis=0)
    bends = np.abs(bends) / (2.0 * e)
    usual = float(np.median(bends[bends > 0.0])) if (bends > 0.0).any() else 1.0
    return np.asarray(1.0 / np.sqrt(np.maximum(bends, 1e-6 * usual)))
