"""The first 1000 draws of the small logistic regression by posteriors' SGNHT, as a user's script."""

import numpy as np
import posteriors
import torch

X, y = torch.from_numpy(np.load("start-X.npy")), torch.from_numpy(np.load("start-y.npy"))


def log_posterior(theta, batch):  # type: ignore[no-untyped-def]
    z = batch[0] @ theta
    likelihood = len(X) * (batch[1] * z - torch.nn.functional.softplus(z)).mean()
    return likelihood - 0.5 * (theta * theta).sum(), torch.zeros(())


transform = posteriors.sgmcmc.sgnht.build(log_posterior, lr=3e-4, alpha=20.0)
update = torch.vmap(lambda state, batch: transform.update(state, batch), randomness="different")
state = torch.vmap(transform.init, randomness="different")(torch.zeros(4, X.shape[1]))
draws = torch.empty(4, 1000, X.shape[1])
for t in range(1000):
    rows = torch.randint(len(X), (4, 16))
    state, _ = update(state, (X[rows], y[rows]))
    draws[:, t] = state.params
print(*draws.shape, "finite" if torch.isfinite(draws).all() else "diverged")
