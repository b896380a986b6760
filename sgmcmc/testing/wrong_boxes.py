"""Wrong samplers that the checks from outside must not let pass: twelve kinds that once did, or could have.

Each is a few lines of NumPy, right but for one thing. `rejection_table` says what became of each: the verdict, the check that
failed, its figure and bound, and the smallest error that it would have seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.testing import textbook
from sgmcmc.testing.adapter import BlackBox

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["KINDS", "Kind", "right_twins"]

Array = NDArray[np.float64]


Normals = Callable[[Array, np.random.Generator], Array]


def langevin(name: str, h: float, noise: Normals | None = None, **more: Any) -> BlackBox:
    """θ ← θ − h∇U + √(2h) n, with `noise(shape like θ, rng)` in the place of n."""

    def step(state: Any, gradient: Array) -> Any:
        theta, rng = state
        n = rng.standard_normal(theta.shape) if noise is None else noise(theta, rng)
        return theta - h * gradient + np.sqrt(2.0 * h) * n, rng

    return _box(name, lambda theta, rng: (theta, rng), step, **more)


def underdamped(
    name: str, h: float, friction: float, wrong: float = 1.0, cold: bool = False, taken: float = 1.0, **more: Any
) -> BlackBox:
    """BAOAB, its friction times `wrong`, momenta starting at 0 (`cold`), steps in fact `taken` times as long."""
    h *= taken
    decay = np.exp(-friction * wrong * h)
    spread = np.sqrt(-np.expm1(-2.0 * friction * h))

    def init(theta: Array, rng: np.random.Generator) -> Any:
        return theta, (0.0 if cold else 1.0) * rng.standard_normal(theta.shape), rng

    def step(state: Any, gradient: Array) -> Any:
        theta, p, rng = state
        p = p - h * gradient
        theta = theta + 0.5 * h * p
        p = decay * p + spread * rng.standard_normal(p.shape)
        return theta + 0.5 * h * p, p, rng

    return _box(name, init, step, **more)


def _box(name: str, init: Any, step: Any, temperature: float = 1.0) -> BlackBox:
    return BlackBox(
        name,
        lambda theta, seed: init(theta, np.random.default_rng(seed)),
        step,
        lambda state: state[0],
        temperature,
        vectorised=True,
    )


def _correlated(theta: Array, rng: np.random.Generator) -> Array:
    common = rng.standard_normal((len(theta), 1))
    n: Array = np.sqrt(0.9) * rng.standard_normal(theta.shape) + np.sqrt(0.1) * common
    return n


def _one_loud(theta: Array, rng: np.random.Generator) -> Array:
    n = rng.standard_normal(theta.shape)
    if theta.shape[1] > 137:
        n[:, 137] *= np.sqrt(2.75)
    return n


def _signs(name: str) -> BlackBox:
    """Leaves a symmetric law as it is, and never comes to it: only the sign of θ changes."""

    def step(state: Any, gradient: Array) -> Any:
        theta, rng = state
        return theta * rng.choice([-1.0, 1.0], theta.shape), rng

    return _box(name, lambda theta, rng: (theta, rng), step)


def _crosstalk(name: str) -> BlackBox:
    """Takes the scatter of exact gradients for noise, and compensates it: right where the target is wide for the step."""
    h, sigma = 0.02, 4.0

    def step(state: Any, gradient: Array) -> Any:
        theta, variance, k, rng = state
        variance = variance + (gradient**2 - variance) / (k + 1)
        c = np.minimum(0.5 * h * sigma * variance, 0.5)
        n = rng.standard_normal(theta.shape)
        return theta - h * gradient + (1.0 - c) * np.sqrt(2.0 * h) * n, variance, k + 1, rng

    return _box(name, lambda theta, rng: (theta, np.zeros_like(theta), 0, rng), step)


def _regression(name: str, weights: Array) -> BlackBox:
    """The gradient of a sum over rows, each with the precision 1/4: `weights` are what is made of them."""
    h = 0.02

    def step(state: Any, gradient: Array) -> Any:
        theta, rng = state
        rows = 0.25 * gradient[..., None] * weights
        return theta - h * rows.sum(axis=-1) + np.sqrt(2.0 * h) * rng.standard_normal(theta.shape), rng

    return _box(name, lambda theta, rng: (theta, rng), step)


class Kind(NamedTuple):
    """A wrong sampler, and its right twin if it has one."""

    name: str
    wrong: Callable[[], BlackBox]
    right: Callable[[], BlackBox] | None = None


KINDS = (
    Kind("stands still", lambda: BlackBox("stands still", lambda theta, seed: theta, lambda s, g: s, vectorised=True)),
    Kind(
        "half the noise at h = 1e-4",
        lambda: langevin("half the noise", 1e-4, lambda t, rng: np.sqrt(0.5) * rng.standard_normal(t.shape)),
        lambda: langevin("SGLD, h = 1e-4", 1e-4),
    ),
    Kind(
        "friction 5 % too strong",
        lambda: underdamped("friction 5 % too strong", 0.1, 1.0, 1.05),
        lambda: underdamped("SGHMC", 0.1, 1.0),
    ),
    Kind(
        "noise correlated by 10 % between coordinates",
        lambda: langevin("correlated noise", 0.01, _correlated),
        lambda: langevin("SGLD, h = 0.01", 0.01),
    ),
    Kind("steps longer than said", lambda: underdamped("steps longer than said", 0.1, 1.0, taken=15.0)),
    Kind("gradient scatter taken for noise", lambda: _crosstalk("gradient scatter taken for noise")),
    Kind(
        "a mean for a sum over rows",
        lambda: _regression("a mean for a sum", np.full(4, 0.25)),
        lambda: _regression("sum over rows", np.ones(4)),
    ),
    Kind("a gradient that leaves rows out", lambda: _regression("rows left out", np.array([1.0, 1.0, 1.0, 0.0]))),
    Kind("one of 200 coordinates wrong", lambda: langevin("one of 200 coordinates wrong", 0.02, _one_loud)),
    Kind("no noise at tiny steps", lambda: langevin("no noise at tiny steps", 1e-4, lambda t, rng: np.zeros_like(t))),
    Kind(
        "fresh momenta without T",
        lambda: textbook.sghmc(0.01, 0.1, 0.1, refresh=100, fault="refresh without T"),
        lambda: textbook.sghmc(0.01, 0.1, 0.1, refresh=100),
    ),
    Kind("right only where it is started", lambda: _signs("right only where it is started")),
)


def right_twins() -> list[BlackBox]:
    """The same samplers without their fault; one whose momenta start at 0."""
    twins = [kind.right() for kind in KINDS if kind.right is not None]
    return [*twins, underdamped("SGHMC, momenta start at 0", 0.05, 0.3, cold=True)]


def rejection_table(seed: int = 0, warmup: int = 200, steps: int = 800) -> pd.DataFrame:
    """One row per wrong sampler: verdict, the check that saw it best, its figure and bound, what it would have seen."""
    import pandas as pd

    from sgmcmc.testing.black_box import check_black_box

    rows = []
    for kind in KINDS:
        report = check_black_box(kind.wrong(), warmup=warmup, steps=steps, seed=seed)
        first = next((f for f in report.failures if f.resolved), report.failures[0] if report.failures else None)
        found = ("NOTHING", np.nan, "", np.nan)
        if first is not None:
            found = (first.check, first.figure, first.bound, first.power)
        rows.append((kind.name, report.verdict, *found))
    return pd.DataFrame(rows, columns=["wrong sampler", "verdict", "caught by", "figure", "bound", "would have seen"])
