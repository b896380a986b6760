"""Textbook samplers as black boxes, in a few lines of NumPy each, right or with one well-known fault.

The negative controls of the checks from outside. Each fault is one that a published library has, or had.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.testing.adapter import BlackBox

__all__ = ["sghmc", "sgld", "sgnht"]

Array = NDArray[np.float64]


def sgld(h: float, temperature: float = 1.0, fault: str = "") -> BlackBox:
    """θ ← θ − h∇U + √(2hT) n.

    Faults: "lost temperature", "shared noise" (by all chains), "reversed" (samples −θ: no Gaussian shows it).
    """

    def step(state: Any, gradient: Any) -> Any:
        theta, rng = state
        g = -gradient(-theta) if fault == "reversed" else gradient
        n = rng.normal(size=theta.shape[1:] if fault == "shared noise" else theta.shape)
        T = 1.0 if fault == "lost temperature" else temperature
        return theta - h * g + np.sqrt(2.0 * h * T) * n, rng

    return _box("SGLD", fault, temperature, lambda theta, rng: (theta, rng), step)


def sghmc(h: float, friction: float, temperature: float = 1.0, refresh: int | None = None, fault: str = "") -> BlackBox:
    """Symplectic Euler: p ← p − h∇U − hAp + √(2AhT) n, θ ← θ + hp, momenta fresh every `refresh` steps.

    Faults: "explicit" (θ moves with the old p), "refresh without T" (fresh momenta have variance 1, whatever T is), "noise ∝
    friction" (A√(2hT) n).
    """

    def init(theta: Array, rng: np.random.Generator) -> Any:
        return theta, np.sqrt(temperature) * rng.normal(size=theta.shape), 0, rng

    def step(state: Any, gradient: Array) -> Any:
        theta, p, k, rng = state
        if refresh is not None and k % refresh == 0:
            p = (1.0 if fault == "refresh without T" else np.sqrt(temperature)) * rng.normal(size=p.shape)
        amplitude = friction if fault == "noise ∝ friction" else np.sqrt(friction)
        new = p - h * (gradient + friction * p) + amplitude * np.sqrt(2.0 * h * temperature) * rng.normal(size=p.shape)
        return theta + h * (p if fault == "explicit" else new), new, k + 1, rng

    return _box("SGHMC", fault, temperature, init, step)


def sgnht(h: float, diffusion: float, temperature: float = 1.0, fault: str = "") -> BlackBox:
    """SGHMC whose friction, one for a chain, follows the kinetic energy: ξ ← ξ + h(‖p‖²/d − T). Fault: "norm" (‖p‖/d)."""

    def init(theta: Array, rng: np.random.Generator) -> Any:
        p = np.sqrt(temperature) * rng.normal(size=theta.shape)
        xi = diffusion + np.sqrt(temperature / theta.shape[1]) * rng.normal(size=(len(theta), 1))
        return theta, p, xi, rng

    def step(state: Any, gradient: Array) -> Any:
        theta, p, xi, rng = state
        p = p - h * (gradient + xi * p) + np.sqrt(2.0 * diffusion * h * temperature) * rng.normal(size=p.shape)
        energy = (p**2).sum(axis=1, keepdims=True)
        mean = (np.sqrt(energy) if fault == "norm" else energy) / p.shape[1]
        return theta + h * p, p, xi + h * (mean - temperature), rng

    return _box("SGNHT", fault, temperature, init, step)


def _box(name: str, fault: str, temperature: float, init: Any, step: Any) -> BlackBox:
    return BlackBox(
        f"textbook {name}" + (f", {fault}" if fault else ""),
        lambda theta, seed: init(theta, np.random.default_rng(seed)),
        step,
        lambda state: state[0],
        temperature,
        vectorised=True,
        calls_gradient=fault == "reversed",
        draws_hidden=False,  # p is half a step off its law: at h = 0.1 the first draws show it
    )
