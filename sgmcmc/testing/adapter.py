"""The adapter: anything that steps, from a state and a gradient to the next state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.samplers import Sampler
from sgmcmc.testing.targets import GAUSSIAN
from sgmcmc.testing.under_test import Kernel, laws_of

__all__ = ["BlackBox", "as_black_box"]

Array = NDArray[np.float64]


def _itself(state: Any) -> Any:
    return state


@dataclass(frozen=True)
class BlackBox:
    """Anything that steps, with the temperature it claims to sample at.

    Parameters
    ----------
    name : str
    init : callable
        (θ, seed) → state; θ has shape (dim,), or (chains, dim) if `vectorised`.
    step : callable
        (state, gradient) → state, with the gradient of U at the position of the state, an array like θ.
    position : callable
        state → θ; by default the state is θ.
    temperature : float
        T; the law of θ should be exp(−U/T).
    vectorised : bool
        One state holds all chains. Else there is a state, and a seed, for every chain.
    calls_gradient : bool
        `step` gets the function θ → ∇U(θ) in the place of the array, for samplers that need several per step.
    draws_hidden : bool, optional
        `init` draws what is hidden (momenta, frictions) from its own law, so that the first draws after an exact start
        in θ are in the target, and are judged. None: only where nothing is hidden, the state being θ itself.

    Examples
    --------
    >>> box = sg.testing.BlackBox("descent", lambda theta, seed: theta, lambda theta, gradient: theta - 0.1 * gradient)
    >>> box.step(np.array([1.0]), np.array([1.0]))
    array([0.9])
    """

    name: str
    init: Callable[[Array, int], Any]
    step: Callable[[Any, Any], Any]
    position: Callable[[Any], Any] = _itself
    temperature: float = 1.0
    vectorised: bool = False
    calls_gradient: bool = False
    draws_hidden: bool | None = None

    @property
    def starts_in_law(self) -> bool:
        """Whether an exact start in θ is an exact start of the whole state."""
        return self.position is _itself if self.draws_hidden is None else self.draws_hidden


def as_black_box(sampler: Sampler, name: str | None = None, vectorised: bool = True) -> BlackBox:
    """Returns a sampler of this package as a black box: its real kernel for many chains, or its own `init` and `step`.

    Momenta start as in any run. A friction ξ starts in its law, not at its mean, so that the first draws can be judged.

    Parameters
    ----------
    sampler : Sampler
    name : str, optional
    vectorised : bool
        One state for many chains.

    Returns
    -------
    BlackBox

    Examples
    --------
    >>> sg.testing.as_black_box(sg.SGNHT(0.1), name="mine").name
    'mine'
    """
    kernel = Kernel(sampler, name)
    if not vectorised:
        return BlackBox(kernel.name, sampler.init, sampler.step, lambda s: s.theta, sampler.temperature)

    def init(theta: Array, seed: int) -> Any:
        state = kernel.start(theta)
        state.p[:] = kernel.draw_momenta(state, seed)
        friction = laws_of(sampler, GAUSSIAN, theta.shape[1])[2]
        if friction is not None:
            rng = np.random.default_rng([seed, 1])
            state.xi[:] = friction.draw(state.xi.size, rng).reshape(state.xi.shape)
        return state, seed, 0, 0.0

    def step(state: Any, gradient: Array) -> Any:
        arrays, seed, k, before = state
        h = float(sampler.schedule.step_sizes(np.array([k]))[0])
        noise = kernel.draw_noise(arrays, seed, k)
        return kernel.move(arrays, gradient, noise, before, h, k, seed), seed, k + 1, h

    return BlackBox(
        kernel.name, init, step, lambda s: s[0].theta, sampler.temperature, vectorised=True, draws_hidden=True
    )
