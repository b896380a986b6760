"""The first 1000 draws of the small logistic regression by BlackJAX's SGNHT, as a user's script."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np

X, y = jnp.asarray(np.load("start-X.npy")), jnp.asarray(np.load("start-y.npy"))


def log_prior(theta):  # type: ignore[no-untyped-def]
    return -0.5 * jnp.sum(theta * theta)


def log_likelihood(theta, row):  # type: ignore[no-untyped-def]
    z = jnp.dot(row[0], theta)
    return row[1] * z - jnp.logaddexp(0.0, z)


sampler = blackjax.sgnht(blackjax.sgmcmc.gradients.grad_estimator(log_prior, log_likelihood, len(X)), alpha=20.0)


def chain(key):  # type: ignore[no-untyped-def]
    first, rest = jax.random.split(key)
    state = sampler.init(jnp.zeros(X.shape[1]), first)
    state = state._replace(xi=jnp.float32(state.xi))

    def step(state, key):  # type: ignore[no-untyped-def]
        for_rows, for_step = jax.random.split(key)
        rows = jax.random.randint(for_rows, (16,), 0, len(X))
        state = sampler.step(for_step, state, (X[rows], y[rows]), 3e-4)
        return state, state.position

    return jax.lax.scan(step, state, jax.random.split(rest, 1000))[1]


draws = np.asarray(jax.jit(jax.vmap(chain))(jax.random.split(jax.random.PRNGKey(0), 4)))
print(*draws.shape, "finite" if np.isfinite(draws).all() else "diverged")
