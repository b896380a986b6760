"""Samplers of BlackJAX, SGMCMCJax and one by hand behind one door: init(key, θ), step(key, state, gradient) and position(state).

Their parameters in ours: step size h, friction A, and the diffusion B̂ that gradient noise brings (known for the wells only).
SGMCMCJax counts in dt = h², α = Ah, β = hB̂.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any, NamedTuple

__all__ = ["Kernel", "kernel", "load_jax", "versions"]


class Kernel(NamedTuple):
    """One chain: `step(key, state, slope)` takes a function that gives the gradient of log p at a position."""

    init: Callable[[Any, Any], Any]
    step: Callable[[Any, Any, Callable[[Any], Any]], Any]
    position: Callable[[Any], Any]


def load_jax(dtype: str) -> Any:
    import jax

    jax.config.update("jax_enable_x64", dtype == "float64")
    return jax


def versions(who: str) -> str:
    library = who.partition("+")[0]
    return version("jax") if library == "jax" else f"{version(library)}, JAX {version('jax')}"


def kernel(who: str, method: str, h: Any, friction: Any, noise: float, dtype: str) -> Kernel:
    """A sampler of the library `who`; `noise` is the variance of the gradient noise where it is known, else 0."""
    if who == "jax":
        return _sgmgtd(h, friction, dtype)
    make = _sgmcmcjax if who == "sgmcmcjax" else _blackjax
    return make(method, h, friction, noise, dtype)


def _in(dtype: str, state: Any) -> Any:
    """Python numbers in a state would change its type in the first step of a scan."""
    import jax
    import jax.numpy as jnp

    return jax.tree_util.tree_map(lambda leaf: jnp.asarray(leaf, dtype), state)


def _blackjax(method: str, h: Any, friction: Any, noise: float, dtype: str) -> Kernel:
    import blackjax
    import jax.numpy as jnp

    def handed(position: Any, slope: Any) -> Any:  # the minibatch is the function that gives the gradient
        return slope(position)

    if method == "sgld":
        sgld = blackjax.sgld(handed)
        return Kernel(lambda key, x: x, lambda key, s, slope: sgld.step(key, s, slope, h), lambda s: s)
    if method == "sghmc":  # with a momentum that is kept from step to step, as ours; their top level draws it anew
        move = blackjax.sgmcmc.diffusions.sghmc(alpha=friction, beta=noise)
        return Kernel(
            lambda key, x: (x, jnp.zeros_like(x)),
            lambda key, s, slope: move(key, s[0], s[1], slope(s[0]), h),
            lambda s: s[0],
        )
    sgnht = blackjax.sgnht(handed, alpha=friction)

    def init(key: Any, x: Any) -> Any:
        return _in(dtype, blackjax.sgmcmc.sgnht.init(x, key, friction))

    return Kernel(init, lambda key, s, slope: sgnht.step(key, s, slope, h), lambda s: s.position)


def _sgmcmcjax(method: str, h: Any, friction: Any, noise: float, dtype: str) -> Kernel:
    import sgmcmcjax.diffusions as their

    if method == "sgld":
        start, move, position = their.sgld(h)
    elif method == "sghmc":
        start, move, position, _ = their.sghmc(h * h, alpha=friction * h, beta=0.5 * h * h * noise)
    else:
        start, move, position = their.sgnht(h * h, a=friction * h)
    return Kernel(
        lambda key, x: _in(dtype, start(x)),
        lambda key, s, slope: move(1, key, slope(position(s)), s),
        position,
    )


SOFTENING, SIGMA_THETA, SIGMA_XI, GAMMA = 3.0, 0.1, 0.1, 1.0  # those of our preset, with a = 1


def _velocity_and_bend(p: Any) -> Any:
    """K'(p) = tanh(cp/2) and K''(p) = (c/2)(1 − tanh²(cp/2))."""
    import jax.numpy as jnp

    v = jnp.tanh(0.5 * SOFTENING * p)
    return v, 0.5 * SOFTENING * (1.0 - v * v)


def _sgmgtd(h: Any, friction: Any, dtype: str) -> Kernel:
    """SGMGT-D as in the paper, by explicit Euler, a thermostat per coordinate: what its formulas cost in JAX.

    Ours does more: two friction flows, a learnt centre, momenta and thermostats drawn afresh every hundred steps.
    """
    import jax
    import jax.numpy as jnp

    def init(key: Any, x: Any) -> Any:
        keys = jax.random.split(key, 3)  # e^{cp} is a ratio of two Gamma(1/c) variables
        up, down = (jax.random.loggamma(own, 1.0 / SOFTENING, x.shape, dtype) for own in keys[:2])
        xi = friction + GAMMA**0.5 * jax.random.normal(keys[2], x.shape, dtype)
        return x, (up - down) / SOFTENING, xi

    def step(key: Any, state: Any, slope: Any) -> Any:
        (x, p, xi), g = state, -slope(state[0])
        n = [jax.random.normal(own, x.shape, dtype) for own in jax.random.split(key, 3)]
        v, bend = _velocity_and_bend(p)
        pull = SIGMA_XI * (xi - friction) / GAMMA
        return (
            x + h * (v - SIGMA_THETA * g) + jnp.sqrt(2.0 * SIGMA_THETA * h) * n[0],
            p - h * (g + xi * v) + jnp.sqrt(2.0 * friction * h) * n[1],
            xi + h * (GAMMA * (v * v - bend) - pull) + jnp.sqrt(2.0 * SIGMA_XI * h) * n[2],
        )

    return Kernel(init, step, lambda s: s[0])
