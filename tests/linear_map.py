"""The linear map of a step, found by probing the real kernel, and the covariance it leaves stationary.

With Gaussian kinetics, a quadratic potential and a constant friction a step is x' = M x + noise. The random numbers have an
address, so the same step taken from two states differs by M alone; and from the state 0 it gives the noise, which is linear in
the normals of that step. No Monte Carlo is needed for anything.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_discrete_lyapunov

from sgmcmc.integrators import State
from sgmcmc.samplers import ChainState, Sampler


class LinearStep:
    """One step of a one-dimensional chain on U = k θ²/2, as a map of the state (θ, p, pending noise)."""

    def __init__(self, sampler: Sampler, k: float = 1.0) -> None:
        self.sampler, self.k = sampler, k
        self.template = sampler.init(np.zeros(1), seed=1)
        self.size = sum(self._used(self.template.arrays))

    def _used(self, arrays: State) -> list[int]:
        return [a.size for a in (arrays.theta, arrays.p, arrays.pending)]

    def __call__(self, x: np.ndarray, step: int) -> np.ndarray:
        arrays = State(*(a.copy() for a in self.template.arrays))
        theta, p, pending = np.split(np.asarray(x, float), np.cumsum(self._used(arrays))[:-1])
        arrays.theta[:], arrays.p[:], arrays.pending[:] = theta, p, pending
        h = float(self.sampler.schedule.step_sizes(np.array([step]))[0])
        state = ChainState(arrays, self.template.stream, step, h)
        after = self.sampler.step(state, self.k * theta).arrays
        return np.concatenate([after.theta, after.p, after.pending])

    def matrix(self) -> np.ndarray:
        origin = self(np.zeros(self.size), 10)
        return np.stack([self(e, 10) - origin for e in np.eye(self.size)], axis=1)

    def noise_covariance(self, steps: int = 6) -> np.ndarray:
        """N Nᵀ, from x' = N n with the known normals n of a few steps."""
        from sgmcmc.engines.python import draw_normals
        from sgmcmc.rng import NOISE_P, NOISE_THETA

        normals, kicks = [], []
        for step in range(steps):
            n = np.zeros((2, 1, 1))
            for row, purpose in zip(n, (NOISE_P, NOISE_THETA), strict=True):
                draw_normals(row, self.template.stream, np.int64(step), purpose)
            normals.append(n.ravel())
            kicks.append(self(np.zeros(self.size), step))
        solution, *_ = np.linalg.lstsq(np.array(normals), np.array(kicks), rcond=None)
        assert np.allclose(np.array(normals) @ solution, kicks, atol=1e-12), "the step is not linear in its normals"
        return solution.T @ solution

    def stationary_covariance(self) -> np.ndarray:
        return solve_discrete_lyapunov(self.matrix(), self.noise_covariance())
