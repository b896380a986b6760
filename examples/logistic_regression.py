"""Logistic regression from minibatches: data, model, sampler, summary, and three pictures in the working directory."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np

import sgmcmc as sg

mpl.use("Agg")  # pictures go to files

rng = np.random.default_rng(0)
truth = np.array([1.0, -2.0, 0.5])
X = rng.normal(size=(1000, 3))
y = rng.random(1000) < 1.0 / (1.0 + np.exp(-X @ truth))

model = sg.models.LogisticRegression(X, y, prior=sg.priors.Gaussian(scale=10.0))
sampler = sg.SGMGTD(step_size=1e-3, a=2)
trace = sg.sample(model, sampler, draws=5000, warmup=20_000, thin=20, chains=4, batch_size=16, seed=1)

print(trace)
print(trace.summary().round(3))
print("temperature from θ, right is 1:", trace.configurational_temperature.mean().round(2))
print("P(y = 1) at x = (1, 1, 1):", model.predict(trace.draws, np.ones((1, 3))).round(3))

for name, axes in {
    "trace": trace.plot_trace(),
    "marginals": trace.plot_marginals(truth=truth),
    "autocorrelation": trace.plot_autocorrelation(),
}.items():
    axes[0].figure.savefig(f"logistic_{name}.png", dpi=150)
    print(f"wrote logistic_{name}.png")
