"""Samplers of posteriors, with one chain or many by vmap; its parameters are lr = h, alpha = A, beta = the noise's variance."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

__all__ = ["build", "versions"]


def versions() -> str:
    return f"{version('posteriors')}, PyTorch {version('torch')}"


def build(
    log_posterior: Any, method: str, h: float, friction: float, noise: float, chains: int, kind: Any
) -> tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]:
    """init(θ) and update(state, batch); log_posterior(θ, batch) gives the value and something else, as it wants."""
    import posteriors
    import torch

    options: dict[str, Any] = {"lr": h}
    if method != "sgld":
        options["alpha"] = friction
    if method == "sghmc" or (method == "sgld" and noise > 0.0):
        options["beta"] = noise
    transform = getattr(posteriors.sgmcmc, method).build(log_posterior, **options)
    init, update = transform.init, lambda state, batch: transform.update(state, batch)
    if chains > 1:
        init = torch.vmap(init, randomness="different")
        update = torch.vmap(update, randomness="different")

    def begin(theta: Any) -> Any:
        state = init(theta)
        if method == "sgnht":
            state.xi.data = state.xi.data.to(kind)
        return state

    return begin, update
