"""The first 1000 draws of the small logistic regression by SGMCMCJax's SGNHT, as a user's script."""

import jax
import jax.numpy as jnp
import numpy as np
from sgmcmcjax.samplers import build_sgnht_sampler

X, y = jnp.asarray(np.load("start-X.npy")), jnp.asarray(np.load("start-y.npy"))


def log_prior(theta):  # type: ignore[no-untyped-def]
    return -0.5 * jnp.sum(theta * theta)


def log_likelihood(theta, x, label):  # type: ignore[no-untyped-def]
    z = jnp.dot(x, theta)
    return label * z - jnp.logaddexp(0.0, z)


sampler = build_sgnht_sampler(9e-8, log_likelihood, log_prior, (X, y), 16, a=6e-3, pbar=False)
run = jax.jit(jax.vmap(lambda key: sampler(key, 1000, jnp.zeros(X.shape[1]))))
draws = np.asarray(run(jax.random.split(jax.random.PRNGKey(0), 4)))
print(*draws.shape, "finite" if np.isfinite(draws).all() else "diverged")
