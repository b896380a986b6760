"""Samplers of BlackJAX and SGMCMCJax behind one door: init(key, θ), step(key, state, gradient) and position(state).

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
    return f"{version(library)}, JAX {version('jax')}"


def kernel(who: str, method: str, h: Any, friction: Any, noise: float, dtype: str) -> Kernel:
    """A sampler of the library `who`; `noise` is the variance of the gradient noise where it is known, else 0."""
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
