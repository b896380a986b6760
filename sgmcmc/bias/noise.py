"""Gradient noise: the diffusion B̂ = hV/2 that minibatches bring by themselves, and the injected noise divided by it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sgmcmc.bias.finding import BiasFinding, name_of
from sgmcmc.bias.gradients import noise_variance
from sgmcmc.bias.rerun import Rerun
from sgmcmc.kinetics import Overdamped
from sgmcmc.thermostats import has_variables

__all__ = ["gradient_noise"]

HEATING = 0.05  # a larger share of the temperature is worth a sentence


def gradient_noise(trace: Any, model: Any, rerun: Rerun | None) -> list[BiasFinding]:
    """B̂ of the noisiest coordinate, and the ratio of injected to gradient noise there."""
    if model is None or rerun is None or rerun.step_size is None or trace.moments is not None:
        why = "The trace does not know its sampler and model, or its step size changes; make it by sample with a constant one."
        return [BiasFinding("gradient noise B̂, largest", math.nan, math.nan, math.nan, "unknown", why)]
    variance, sampler = _variance(trace, model, rerun), rerun.sampler
    B = 0.5 * rerun.step_size * variance
    worst = int(np.argmax(B))
    if B[worst] == 0.0:
        return [BiasFinding("gradient noise B̂, largest", 0.0, 0.0, 0.0, "good", "Gradients are exact.")]
    said = (
        f"At {_named(trace, sampler, worst)} minibatches bring a diffusion of {B[worst]:.3g}; a batch twice as large, or a step "
        "half as long, halves it."
    )
    found = BiasFinding("gradient noise B̂, largest", float(B[worst]), math.nan, math.nan, "good", said)
    return [found, _ratio(float(B[worst]), sampler)]


def _variance(trace: Any, model: Any, rerun: Rerun) -> Any:
    """Of the gradient in the chain's units."""
    theta = np.asarray(trace.draws, np.float64).mean(axis=(0, 1))
    scale = rerun.sampler.scale
    squares = (scale**2).sum(axis=0) if np.ndim(scale) == 2 else np.broadcast_to(scale, theta.shape) ** 2
    added = 2.0 * float(rerun.options["gradient_noise"]) * squares
    size = rerun.options["batch_size"]
    if size is None:
        return added
    kind = rerun.options["minibatch"]
    return added + noise_variance(model, theta, size, kind if isinstance(kind, str) else "blocks", scale=scale)


def _named(trace: Any, sampler: Any, k: int) -> str:
    """The coordinate in whose units the noise is: one of θ, or of S⁻¹θ."""
    return f"column {k} of scale" if np.ndim(sampler.scale) == 2 else name_of(trace, k)


def _ratio(B: float, sampler: Any) -> BiasFinding:
    """Injected noise ÷ gradient noise; without a thermostat the temperature is 1 + (B − B̂)/(σT) times what it should be."""
    name = "injected ÷ gradient noise, smallest"
    overdamped = isinstance(sampler.kinetics, Overdamped)
    all_noise = sampler.temperature * (1.0 / sampler.sigma_theta if overdamped else sampler.sigma_p)
    ratio = (all_noise - sampler.noise_estimate) / B
    if not overdamped and has_variables(sampler.thermostat):
        said = "The thermostat takes up what minibatches bring, and the more exactly the larger this ratio is."
        return BiasFinding(name, ratio, math.nan, math.nan, "good", said)
    heating = (B - sampler.noise_estimate) / all_noise if all_noise > 0.0 else math.inf
    if abs(heating) < HEATING:
        return BiasFinding(
            name, ratio, math.nan, math.nan, "good", f"Minibatches heat by {heating:.1%} here, and less elsewhere."
        )
    if heating < 0.0:
        said = f"noise_estimate takes off more than there is, which cools by {-heating:.0%}: lower it."
        return BiasFinding(name, ratio, math.nan, math.nan, "cold", said)
    said = f"Minibatches make it {1.0 + heating:.3g} times too hot: take larger batches, smaller steps, or SGNHT."
    return BiasFinding(name, ratio, math.nan, math.nan, "hot", said)
