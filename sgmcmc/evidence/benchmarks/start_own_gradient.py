"""As start_sgmcmc.py, with a gradient of the script's own, which no installation has compiled in advance."""

import math

import numba
import numpy as np

import sgmcmc as sg


@numba.njit
def gradient(theta, data, rows, out):  # type: ignore[no-untyped-def]
    X, y = data
    for i in rows:
        z = np.float32(0.0)
        for j in range(theta.size):
            z += X[i, j] * theta[j]
        residual = np.float32(1.0) / (np.float32(1.0) + math.exp(-z)) - y[i]
        for j in range(theta.size):
            out[j] += residual * X[i, j]


data = np.load("start-X.npy"), np.load("start-y.npy")
model = sg.Potential(gradient, dim=data[0].shape[1], data=data, prior=sg.priors.Gaussian(1.0))
sampler = sg.SGNHT(3e-4, diffusion=20.0)
trace = sg.sample(
    model, sampler, draws=1000, warmup=0, batch_size=16, seed=1, dtype=np.float32, progress=False, warn=False
)
print(*trace.draws.shape, "finite" if np.isfinite(trace.draws).all() else "diverged")
