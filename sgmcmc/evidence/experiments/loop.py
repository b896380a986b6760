"""A loop for models too large to keep every draw: ask and tell, with something to do every so many steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Optimiser", "run_chain"]


class Optimiser:
    """SGD or RMSprop on U/N, with the interface of a sampler: what the paper compares with where it does."""

    def __init__(self, kind: str, step_size: float, rows: int, decay: float = 0.9) -> None:
        self.kind, self.step_size, self.rows, self.decay = kind, step_size, rows, decay

    def init(self, theta: NDArray[Any], seed: int = 0) -> Any:
        return _Point(theta.copy(), np.zeros_like(theta))

    def step(self, state: Any, gradient: NDArray[Any], inplace: bool = True) -> Any:
        g = gradient / theta_type(gradient)(self.rows)
        if self.kind == "RMSprop":
            state.squares *= self.decay
            state.squares += (1.0 - self.decay) * g * g
            g = g / (np.sqrt(state.squares) + 1e-8)
        state.theta -= theta_type(g)(self.step_size) * g
        return state


def theta_type(array: NDArray[Any]) -> Any:
    return array.dtype.type


class _Point:
    def __init__(self, theta: NDArray[Any], squares: NDArray[Any]) -> None:
        self.theta, self.squares = theta, squares


def run_chain(
    model: Any,
    sampler: Any,
    theta: NDArray[Any],
    steps: int,
    batch_size: int,
    seed: int,
    every: int,
    look: Callable[[int, NDArray[Any]], None],
) -> bool:
    """Take `steps` steps with minibatches drawn with replacement, and look(step, θ) every so many; False if it diverged.

    Rows come from a generator of their own, seeded by `seed`: every sampler sees the same minibatches.
    """
    rng = np.random.default_rng([seed, 17])
    state = sampler.init(theta, seed=seed)
    gradient = np.zeros_like(theta)
    weight = theta.dtype.type(model.n_rows / batch_size)
    for t in range(1, steps + 1):
        rows = rng.integers(0, model.n_rows, batch_size)
        model.estimate(state.theta, rows, weight, gradient)
        state = sampler.step(state, gradient, inplace=True)
        if t % every == 0:
            if not np.isfinite(state.theta).all():
                return False
            look(t, state.theta)
    return True
