"""The first 1000 draws of the small logistic regression by our SGNHT, as a user's script."""

import numpy as np

import sgmcmc as sg

X, y = np.load("start-X.npy"), np.load("start-y.npy")
model = sg.models.LogisticRegression(X, y, prior=sg.priors.Gaussian(1.0))
sampler = sg.SGNHT(3e-4, diffusion=20.0)
trace = sg.sample(
    model, sampler, draws=1000, warmup=0, batch_size=16, seed=1, dtype=np.float32, progress=False, warn=False
)
print(*trace.draws.shape, "finite" if np.isfinite(trace.draws).all() else "diverged")
