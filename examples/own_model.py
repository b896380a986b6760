"""A model of your own: Poisson regression from one function, once compiled with Numba and once in plain Python."""

from __future__ import annotations

import math

import numba
import numpy as np

import sgmcmc as sg


@numba.njit
def gradient(theta, data, rows, out):
    """Poisson regression: −log p(y | x, θ) = exp(z) − y z with z = x·θ; `out` comes filled with zeros."""
    X, y = data
    for i in rows:
        z = 0.0
        for j in range(theta.size):
            z += X[i, j] * theta[j]
        for j in range(theta.size):
            out[j] += (math.exp(z) - y[i]) * X[i, j]


def gradient_in_python(theta, data, rows):
    """The same, returned instead of written into `out`, with NumPy; PyTorch or JAX would do as well."""
    X, y = data[0][rows], data[1][rows]
    return X.T @ (np.exp(X @ theta) - y)


def energy(theta, data, rows):
    """Σ over the rows of −log p(y | x, θ), up to a constant; only wanted to check the gradient."""
    X, y = data[0][rows], data[1][rows]
    return np.sum(np.exp(X @ theta) - y * (X @ theta))


rng = np.random.default_rng(0)
X = np.column_stack((np.ones(1000), rng.normal(size=(1000, 2))))
y = rng.poisson(np.exp(X @ [0.5, 0.3, -0.2])).astype(float)

model = sg.Potential(gradient, dim=3, data=(X, y), prior=sg.priors.Gaussian(10.0))
print("largest relative error of the gradient:", sg.check_gradient(model, energy=energy))

sampler = sg.SGNHT(step_size=0.1, scale=0.03)  # scale: about the posterior's standard deviation
trace = sg.sample(model, sampler, draws=5000, warmup=5000, thin=5, batch_size=100, seed=1)
print(trace.summary().round(3))

plain = sg.Potential(gradient_in_python, dim=3, data=(X, y), prior=sg.priors.Gaussian(10.0))
short = sg.sample(plain, sampler, draws=500, warmup=500, chains=2, batch_size=100, seed=1)
print(f"{trace.info['steps_per_second']:.0f} steps/s compiled, {short.info['steps_per_second']:.0f} in plain Python")
