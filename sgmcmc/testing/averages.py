"""Time averages of many copies of a chain: on the same Brownian paths at several step sizes, and from a fixed start.

Copies are coordinates of one long vector, moved by the real kernel. What halving the step changes is seen on coupled paths
with a hundredth of the scatter that the averages themselves have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators.state import Noise, State
from sgmcmc.testing.statistics import Slope, fit_slope, z_of_mean
from sgmcmc.testing.targets import Target
from sgmcmc.testing.under_test import Subject, exact_start
from sgmcmc.thermostats import couples_coordinates

__all__ = ["BLOCKS", "Coupled", "blocks", "coupled_averages", "exponent", "observable", "time_averages"]

Array = NDArray[np.float64]
BLOCKS = 32  # replicates from which intervals are taken; each is the mean over many copies


class Coupled(NamedTuple):
    """Errors of the mean of φ at step sizes h, h/2, h/4, … on the same Brownian paths."""

    h: Array
    errors: Array  # (step size, copy): time average minus truth

    @property
    def differences(self) -> Array:
        """(step size, copy): what halving the step changes, (1 − 2^{−k}) C h^k in the mean."""
        return self.errors[:-1] - self.errors[1:]

    def order(self) -> Slope:
        return exponent(self.h[:-1], blocks(self.differences))

    def limit_z(self, order: int) -> float:
        """z of the error that is left after extrapolation to h = 0 from the two smallest steps."""
        weight = 2.0**order
        return z_of_mean((weight * self.errors[-1] - self.errors[-2]) / (weight - 1.0))


def observable(theta: Array) -> Array:
    """φ = cos θ: bounded, as the proposition asks, and its scatter on coupled paths is small."""
    values: Array = np.cos(theta)
    return values


def blocks(values: Array) -> Array:
    """(what, copy) to (block of copies, what), for `fit_slope`."""
    what, copies = values.shape
    kept = copies - copies % BLOCKS
    means: Array = values[:, :kept].reshape(what, BLOCKS, -1).mean(axis=2).T
    return means


def exponent(x: Array, samples: Array) -> Slope:
    """`fit_slope`, or NaN for runs that diverged, which passes no check."""
    return fit_slope(x, samples) if np.isfinite(samples).all() else Slope(np.nan, np.nan, np.nan)


def _as_copies(subject: Subject, state: State) -> State:
    """(copies, 1) to (1, copies): coordinates are independent unless they share a thermostat, and much faster than rows."""
    if couples_coordinates(subject.sampler.thermostat):
        return state
    return State(*(np.ascontiguousarray(a.T) for a in state))


def _exact(subject: Subject, target: Target, copies: int, seed: int) -> State:
    sizes = subject.sampler.sizes(1)
    uniforms = np.random.default_rng([seed, 1]).random((copies, sizes.theta + sizes.p + sizes.xi))
    return _as_copies(subject, exact_start(subject, target, uniforms))


def coupled_averages(
    subject: Subject, target: Target, h: float, levels: int, time: float, copies: int, seed: int = 0, burn: float = 5.0
) -> Coupled:
    """Averages of φ over a time, from exact starts, with steps h, h/2, … driven by sums of the same normals.

    Fresh momenta come from the stream at every step size, not from those sums. Fresh frictions need the normals of σ_ξ > 0:
    without that noise they are drawn at their turn only, and sums over other steps would have another law.
    """
    if subject.sampler.resample_thermostat is not None and subject.sampler.sigma_xi == 0.0:
        raise ValueError(
            f"{subject.name} draws ξ afresh and has no noise on it: its steps of different size cannot be coupled"
        )
    start = _exact(subject, target, copies, seed)
    hs: Array = h / 2.0 ** np.arange(levels, dtype=np.float64)
    states, before, sums = [start] * levels, np.zeros(levels), np.zeros((levels, copies))
    counts = np.zeros(levels)
    summed: list[Noise | None] = [None] * levels
    for j in range(1, round(time / hs[-1]) + 1):
        fine = subject.draw_noise(start, seed, j)
        for k in range(levels):
            every = 2 ** (levels - 1 - k)
            old = summed[k]
            total = fine if old is None else Noise(*(a + b for a, b in zip(old, fine, strict=True)))
            summed[k] = None if j % every == 0 else total
            if j % every:
                continue
            noise = Noise(*(a / np.sqrt(every) for a in total))
            gradient = target.gradient(states[k].theta)
            states[k] = subject.move(states[k], gradient, noise, before[k], hs[k], step=j // every, seed=seed)
            before[k] = hs[k]
            if j * hs[-1] > burn:
                sums[k] += observable(states[k].theta.ravel())
                counts[k] += 1
    truth = target.law(subject.sampler.temperature).mean(observable)
    return Coupled(hs, sums / counts[:, None] - truth)


def time_averages(
    subject: Subject, target: Target, h: float, steps: Sequence[int], copies: int, seed: int = 0, exact: bool = False
) -> Array:
    """Errors (run length, copy) of the mean of φ over the first T steps, for each T in `steps`.

    From a fixed θ far out, with fresh momenta, or (`exact`) from the invariant law; the same seed gives the same Brownian
    paths. The start counts half, as in the trapezoidal rule: what it leaves behind is then C/(Th) with C = C₀ + O(h²), and
    exponents can be read at steps of practical size.
    """
    law = target.law(subject.sampler.temperature)
    state = _exact(subject, target, copies, seed)
    if not exact:
        far = max(law.quantile([0.01, 0.99]), key=abs)  # on the gentle side of a skew law
        state = _as_copies(subject, subject.start(np.full((copies, 1), far)))
        state.p[:] = subject.draw_momenta(state, seed)
    truth, total, before, errors = law.mean(observable), 0.5 * observable(state.theta.ravel()), 0.0, []
    for j in range(1, max(steps) + 1):
        noise = subject.draw_noise(state, seed, j)
        state = subject.move(state, target.gradient(state.theta), noise, before, h, step=j, seed=seed)
        before = h
        total += observable(state.theta.ravel())
        if j in steps:
            errors.append(total / (j + 0.5) - truth)
    return np.array(errors)
