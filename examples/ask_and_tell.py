"""Ask and tell: your loop, your gradient, our update. The state says where it wants the next gradient."""

from __future__ import annotations

import numpy as np

import sgmcmc as sg

rng = np.random.default_rng(0)
precision = np.array([[2.0, 0.6], [0.6, 1.0]])  # of a Gaussian target


def noisy_gradient(theta):
    """∇U(θ) = precision · θ with noise of variance 4, as a minibatch would have it."""
    return precision @ theta + 2.0 * rng.normal(size=2)


sampler = sg.SGNHT(step_size=0.1)
state = sampler.init(np.zeros(2), seed=1)
draws, frictions = [], []
for step in range(20_000):
    state = sampler.step(state, noisy_gradient(state.theta), inplace=True)
    if step >= 2000:
        draws.append(state.theta.copy())  # with inplace=True the arrays are reused
        frictions.append(state.xi.copy())

print("covariance of the draws\n", np.cov(np.array(draws).T).round(2))
print("covariance of the target\n", np.linalg.inv(precision).round(2))
print("mean friction, which should be 1 + h·4/2:", np.mean(frictions, axis=0).round(2))
