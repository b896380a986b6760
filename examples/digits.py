"""Digits by a discriminative RBM: your loop, our gradient and our update, predictions averaged over the run."""

from __future__ import annotations

import numpy as np

import sgmcmc as sg

rng = np.random.default_rng(0)
prototypes = rng.random((4, 64))  # four kinds of little pictures, with noise; sg.datasets.load("mnist") has real ones
labels = rng.integers(0, 4, 2000)
X = np.clip(prototypes[labels] + 0.4 * rng.normal(size=(2000, 64)), 0.0, 1.0)
model = sg.models.DRBM(X[:1500], labels[:1500], hidden=20)

sampler = sg.SGNHT(step_size=0.003, diffusion=10.0)
state = sampler.init(model.init(seed=0), seed=0)
gradient, draws = np.zeros(model.dim), []
for step in range(1500):
    rows = rng.integers(0, model.n_rows, 50)
    model.estimate(state.theta, rows, model.n_rows / 50, gradient)
    state = sampler.step(state, gradient, inplace=True)
    if step >= 500 and step % 20 == 0:
        draws.append(state.theta.copy())

accuracy = (model.predict(np.array(draws), X[1500:]).argmax(axis=1) == labels[1500:]).mean()
print(f"accuracy of the average over {len(draws)} draws: {accuracy:.3f}")
