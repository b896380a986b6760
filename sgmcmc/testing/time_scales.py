"""Time scales of a sampler: how small a step must be for it, and how many steps it takes to forget.

On a target of scale s with T = 1: θ turns with frequency √K''/s, friction takes ξK'' of p in a unit of time, θ's own
diffusion forgets at the rate σ_θ/s², and the thermostat, whose ξ scatters by √(γT), answers at the rate √γ.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators import is_explicit
from sgmcmc.kinetics import Overdamped
from sgmcmc.samplers import Sampler
from sgmcmc.schedules import Constant, Cyclical, PolynomialDecay, Schedule, UserFunction
from sgmcmc.testing.laws import kinetic, momentum_law

__all__ = [
    "bend",
    "fastest",
    "finest_scale",
    "largest_step",
    "narrow_for_friction",
    "relaxation_steps",
    "with_steps_times",
]

RESOLVED = 0.1  # of a time scale: a step that resolves it
EULER = 0.05  # a bias of explicit Euler that can be extrapolated
LOOK = 100_000  # so many steps of a schedule are looked at
TYPICAL = 3.0  # friction σ_p + 2√(γT) of the samplers that the steps of the checks are made for


def bend(sampler: Sampler) -> float:
    """E[K''], an inverse mass."""
    if isinstance(sampler.kinetics, Overdamped):
        return 0.0
    return momentum_law(sampler.kinetics, sampler.temperature).mean(lambda p: kinetic(sampler.kinetics, p)[2])


def _friction(sampler: Sampler) -> float:
    """The friction on p that a step must resolve: its mean and two standard deviations."""
    gamma = getattr(sampler.thermostat, "gamma", 0.0)
    return float(sampler.sigma_p + 2.0 * np.sqrt(gamma * sampler.temperature))


def fastest(sampler: Sampler, s: float = 1.0) -> float:
    """The fastest rate on a target of scale s, in units of what the steps of the checks are made for."""
    diffusion = sampler.sigma_theta / s**2
    if isinstance(sampler.kinetics, Overdamped):
        return float(diffusion)
    k, gamma = bend(sampler), getattr(sampler.thermostat, "gamma", 0.0)
    pull = sampler.sigma_xi / gamma / TYPICAL if gamma > 0.0 else 0.0
    return float(max(_friction(sampler) * k / TYPICAL, np.sqrt(k) / s, np.sqrt(gamma), diffusion, pull))


def _steps(sampler: Sampler) -> NDArray[np.float64]:
    return np.asarray(sampler.schedule.step_sizes(np.arange(LOOK)), float)


def largest_step(sampler: Sampler) -> float:
    """The largest step that the schedule takes."""
    if isinstance(sampler.schedule, Constant):
        return sampler.schedule.step_size
    return float(_steps(sampler).max())


def finest_scale(sampler: Sampler) -> float:
    """The smallest scale of target, in units of the sampler's own `scale`, that its steps resolve.

    Explicit Euler with friction A heats by h/(s²A).
    """
    h = largest_step(sampler)
    found = max(h * float(np.sqrt(bend(sampler))) / RESOLVED, float(np.sqrt(h * sampler.sigma_theta / RESOLVED)))
    if is_explicit(sampler.integrator) and sampler.sigma_p > 0.0:
        found = max(found, float(np.sqrt(h / (sampler.sigma_p * EULER))))
    return found


def narrow_for_friction(sampler: Sampler) -> float:
    """The scale, at most 1, on which friction is no stronger than the checks are made for: s·ξ√K'' ≤ 3."""
    return float(min(1.0, TYPICAL / max(_friction(sampler) * np.sqrt(bend(sampler)), 1e-300)))


def relaxation_steps(sampler: Sampler, s: float) -> float:
    """How many steps it takes to forget a start on a target of scale s, roughly."""
    h = float(_steps(sampler).mean())
    rate = sampler.sigma_theta / s**2
    k = bend(sampler)
    if k > 0.0:
        damping, square = sampler.sigma_p * k, k / s**2
        if sampler.resample_momentum is not None:
            damping += 1.0 / (sampler.resample_momentum * h)
        rate += min(0.5 * damping, square / max(damping, 1e-300))
    return float(1.0 / max(rate * h, 1e-300))


def with_steps_times(sampler: Sampler, factor: float) -> Sampler:
    """The same sampler on the same schedule, every step times a factor."""
    return replace(sampler, step_size=_times(sampler.schedule, factor))


def _times(schedule: Schedule, factor: float) -> Any:
    if isinstance(schedule, Constant):
        return factor * schedule.step_size
    if isinstance(schedule, Cyclical):
        return Cyclical(factor * schedule.peak, schedule.period, schedule.sampling)
    if isinstance(schedule, PolynomialDecay):
        return PolynomialDecay(factor * schedule.initial, schedule.power, schedule.offset)
    return UserFunction(lambda t: factor * schedule.step_sizes(np.atleast_1d(t)).reshape(np.shape(t)))
