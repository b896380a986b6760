"""Foreseen bias: what follows from the step size, the friction and the variance V of the gradient noise, without any draws.

The temperatures of a run see a few per cent at best, and after many draws. These formulas need none. In the chain's units, with k
the mean of K'' and h the longest step that is recorded, or that recorded draws still remember:

    heating      hVσ_θ/(2T) overdamped, hV/(2σ_pT) with a constant friction or centre: the variance of θ is so much too large
    crosstalk    c = σ_θhV/(2T): its compensation leaves ½ c h σ_θ U'' of the variance, and is not possible for c near 1
    kicks        h²Vk/T: at 0.4 a thermostat leaves 1.5 % too little variance, at 0.8 5 % (SGNHT; docs/every-scale.md)
    thermostat   h²γT: at 0.04 the variance is 0.7 % too small, at 0.1 2.7 % (SGNHT; a quarter of it)
    stiffness    h²U''K'', K'' the largest: the variance is up to a quarter of it too large, 1.3 % at 0.06 (a = 0.75 to 1.5,
                 T = 0.1 to 10, friction 1; less for larger a and with σ_θ > 0)
    sharing      noise that coordinates share: by the Lyapunov equation of `linear_law`, above 5 % of a variance
    reshuffling  h²VEk/(6T), E steps an epoch: the momenta follow the batches of an epoch to and fro, and a thermostat that sees
                 this as heat cools θ, up to so much
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.bias.finding import BiasFinding
from sgmcmc.bias.linear_law import Surroundings, off_by, remedy, shared_part
from sgmcmc.bias.rows import SMALL, hessian, row_slopes
from sgmcmc.integrators import is_explicit
from sgmcmc.integrators.preconditioning import in_units, slope_in_units
from sgmcmc.kinetics import MonomialGamma, Overdamped
from sgmcmc.minibatch import EpochShuffle, as_minibatch, variance_share
from sgmcmc.potentials import rows_of
from sgmcmc.thermostats import has_variables, sharers

__all__ = ["foreseen"]

Array = NDArray[np.float64]

HEATING, CROSSTALK, LEFT, KICKS, FAST, RESHUFFLED, STIFF, SHARED = 0.02, 0.1, 0.005, 0.25, 0.04, 0.02, 0.065, 0.05
LEAST = 20  # gradients that tell a covariance


class Noise(NamedTuple):
    """The gradient noise of a run: its variance, and the batch that it comes from (0: none)."""

    variance: float  # of the noisiest coordinate, in the chain's units, as a slow variable sees it
    of_a_step: float  # the same, of a single step
    batch: int
    rows: int
    epoch: int  # steps until all rows have been seen, of reshuffled batches; else 0
    slopes: Array | None = None  # values whose covariance is that of a batch's gradient, in the chain's units
    added: float = 0.0  # the variance of noise added on purpose, in units of θ


def foreseen(trace: Any) -> list[BiasFinding]:
    """The problems of a run that follow from its settings; those that one warning explains are not named twice."""
    rerun = trace.rerun
    if rerun is None or trace.model is None or "theta" not in trace.final:
        return []
    sampler, h = rerun.sampler, _longest_step(trace, rerun)
    if isinstance(sampler.scale, str) or not h > 0.0:
        return []
    with np.errstate(all="ignore"):  # extreme units: a figure that overflows is one that is too large
        return _found(trace, rerun, sampler, h)


def _found(trace: Any, rerun: Any, sampler: Any, h: float) -> list[BiasFinding]:
    noise = _noise(trace, rerun, h)
    if noise is None:
        return []
    steep = _steepest(trace, sampler)
    h = _longest_remembered(sampler, h, noise, steep)
    found = [_fast_thermostat(sampler, h, trace.final["theta"].shape[-1]), _reshuffled(sampler, h, noise)]
    found += [_stiff(sampler, h, steep), _heating(sampler, h, noise)]
    if noise.variance > 0.0:
        of_noise = [_crosstalk(sampler, h, noise, steep), _kicks(sampler, h, noise)]
        found += of_noise if any(of_noise) else [_shared(trace, sampler, h, noise)]
    return [f for f in found if f is not None]


def _longest_step(trace: Any, rerun: Any) -> float:
    if rerun.step_size is not None:
        return float(rerun.step_size)
    weights = np.asarray(trace.weights, float)
    return float(weights.max(initial=0.0))


def _longest_remembered(sampler: Any, h: float, noise: Noise, steep: float) -> float:
    """The longest step of all, if draws that are recorded after it still have its bias.

    θ forgets at the rate σ_θU'', or within f/U'' + 2/(fk) of momenta under the friction f; a cycle gives it a quarter of its
    sampling steps for that.
    """
    schedule = sampler.schedule
    if not hasattr(schedule, "sampling_steps") or not steep > 0.0:
        return h
    friction, k = (
        max(sampler.sigma_p + 0.5 * h * noise.variance / sampler.temperature, 1e-300),
        max(sampler.bend, 1e-300),
    )
    overdamped = isinstance(sampler.kinetics, Overdamped)
    time = 1.0 / (sampler.sigma_theta * steep) if overdamped else friction / steep + 2.0 / (friction * k)
    return float(schedule.longest) if time > 0.25 * schedule.sampling_steps * 0.5 * h else h


# ---- the noise ------------------------------------------------------------------------------------------------------------


def _noise(trace: Any, rerun: Any, h: float) -> Noise | None:
    """None where the noise cannot be told: the gradient fails there."""
    sampler, options = rerun.sampler, rerun.options
    n_rows, size = rows_of(trace.model), options["batch_size"]
    dim = trace.final["theta"].shape[-1]
    squares = (
        (sampler.scale**2).sum(axis=0) if np.ndim(sampler.scale) == 2 else np.broadcast_to(sampler.scale, dim) ** 2
    )
    added = 2.0 * float(options["gradient_noise"]) * squares
    if size is None:
        return Noise(float(added.max()), float(added.max()), 0, n_rows, 0)
    batch = as_minibatch(size, options["minibatch"], n_rows)
    kind = _kind(options)
    theta = np.asarray(trace.final["theta"], float).mean(axis=0)
    try:
        slopes = row_slopes(trace.model, theta, size, kind, sampler.scale)
    except Exception:  # a user's gradient, at a point of ours
        return None
    each = slopes.var(axis=0, ddof=1 if len(slopes) > 1 else 0) + added
    if not np.isfinite(each).all():
        return None
    epoch = n_rows // size if isinstance(batch, EpochShuffle) else 0
    alone = 1.0 - (size - 1) / (n_rows - 1) if epoch and n_rows > 1 else 1.0
    seen = variance_share(batch, n_rows, h * sampler.relaxation) / max(alone, 1e-300) if epoch else 1.0
    return Noise(
        float((seen * each).max()), float(each.max()), int(size), n_rows, epoch, slopes, 2.0 * options["gradient_noise"]
    )


# ---- what follows from it ---------------------------------------------------------------------------------------------------


def _heating(sampler: Any, h: float, noise: Noise) -> BiasFinding | None:
    """Samplers that do not absorb gradient noise."""
    T, overdamped = sampler.temperature, isinstance(sampler.kinetics, Overdamped)
    fixed = not has_variables(sampler.thermostat)
    pulled = sampler.sigma_xi > 0.0 or sampler.resample_thermostat is not None
    if not fixed and (sampler.wants_variance or not pulled):
        return None
    rate = sampler.sigma_theta if overdamped else 1.0 / max(sampler.sigma_p, 1e-300)
    x = (0.5 * h * noise.variance * rate - (0.0 if overdamped else sampler.noise_estimate * rate)) / T
    if abs(x) <= HEATING:
        return None
    if x < 0.0:
        said = f"noise_estimate={sampler.noise_estimate:g} takes off more than gradients bring, which cools by {-x:.1%}; lower it"
        return BiasFinding("foreseen cooling", x, math.nan, math.nan, "cold", said)
    cure = "SGNHT(...)" if fixed else 'center="adaptive"'
    said = (
        f"gradient noise of variance {noise.variance:.3g} heats it by {x:.1%}, as nothing absorbs it; take {cure}, "
        f"{_smaller(h, noise, HEATING / x, HEATING / x)}"
    )
    return BiasFinding("foreseen heating", x, math.nan, math.nan, "hot", said)


def _crosstalk(sampler: Any, h: float, noise: Noise, steep: float) -> BiasFinding | None:
    """Gradient noise that enters θ by itself."""
    if sampler.sigma_theta == 0.0 or isinstance(sampler.kinetics, Overdamped):
        return None
    c = 0.5 * sampler.sigma_theta * h * noise.variance / sampler.temperature
    least = min(CROSSTALK, LEFT / max(0.5 * h * sampler.sigma_theta * steep, 1e-300))  # what its compensation leaves
    if c <= least * (1.0 + 1e-6):
        return None
    left = "whose compensation leaves some bias" if c < 0.5 else "which cannot be compensated"
    said = (
        f"gradient noise enters θ through sigma_theta, c = σ_θhV/(2T) = {c:.2g}, {left}; take "
        f"sigma_theta={sampler.sigma_theta * 0.8 * least / c:.2g}, "
        f"{_smaller(h, noise, least / c, least / c)}{_in_natural_units(sampler, noise)}"
    )
    return BiasFinding("crosstalk of gradient noise", c, math.nan, math.nan, "biased", said)


def _kicks(sampler: Any, h: float, noise: Noise) -> BiasFinding | None:
    """A single step's noise that is not small beside the momenta."""
    if not has_variables(sampler.thermostat):
        return None
    x = h * h * noise.of_a_step * sampler.bend / sampler.temperature
    if x <= KICKS:
        return None
    said = (
        f"the gradient noise of one step is {math.sqrt(x):.2g} times as large as the momenta, too much for a thermostat; take "
        f"{_smaller(h, noise, math.sqrt(KICKS / x), KICKS / x)}"
    )
    return BiasFinding("noise of a step by momenta", x, math.nan, math.nan, "biased", said)


def _fast_thermostat(sampler: Any, h: float, dim: int) -> BiasFinding | None:
    """A thermostat that the step does not resolve."""
    gamma = getattr(sampler.thermostat, "gamma", None)
    if gamma is None:
        return None  # no thermostat, or one of your own that does not say how strongly ξ is driven
    shared = float(sharers(sampler.thermostat, dim))
    x = h * h * gamma * sampler.temperature / shared
    if x <= FAST * (1.0 + 1e-6) or is_explicit(sampler.integrator):
        return None
    said = (
        f"its thermostat is fast for the step, h²γT = {x:.2g}, which makes variances up to {min(0.25 * x, 1.0):.1%} too small; "
        f"take gamma={FAST * gamma / x:.2g} or step_size={h * math.sqrt(FAST / x):.2g}"
    )
    return BiasFinding("thermostat by step", x, math.nan, math.nan, "biased", said)


def _stiff(sampler: Any, h: float, steep: float) -> BiasFinding | None:
    """A kinetics whose well at p = 0 the posterior's forces cross in one step."""
    if not isinstance(sampler.kinetics, MonomialGamma):
        return None
    x = h * h * sampler.stiffest * steep
    if not x > STIFF:
        return None
    said = (
        f"its step does not resolve the kinetics, h²U''K'' = {x:.2g}, so variances may be {0.25 * x:.1%} too large; take "
        f"step_size={0.8 * h * math.sqrt(STIFF / x):.2g} or a smaller softening"
    )
    return BiasFinding("stiffness of the kinetics", x, math.nan, math.nan, "biased", said)


def _steepest(trace: Any, sampler: Any) -> float:
    """U'' of the narrowest coordinate in the chain's units, about T/Var of its draws; 0 where there are too few to tell."""
    if trace.moments is not None or trace.n_draws * trace.chains < 200:
        return 0.0
    if trace.draws.shape[-1] != trace.final["theta"].shape[-1]:  # a function of θ was kept
        return 0.0
    with np.errstate(all="ignore"):
        phi = in_units(sampler.scale, np.asarray(trace.draws[:, :: max(1, trace.n_draws // 200)], float))
        narrow = float(np.min(phi.reshape(-1, phi.shape[-1]).var(axis=0)))
    return float(sampler.temperature / narrow) if narrow > 0.0 else 0.0


def _kind(options: Any) -> str:
    """The name of the rule for minibatches."""
    return options["minibatch"] if isinstance(options["minibatch"], str) else "blocks"


def _shared(trace: Any, sampler: Any, h: float, noise: Noise) -> BiasFinding | None:
    """Noise that coordinates share, which no friction of their own absorbs."""
    dim = trace.final["theta"].shape[-1]
    if noise.slopes is None or dim > SMALL or noise.epoch or not has_variables(sampler.thermostat):
        return None
    axes = slope_in_units(sampler.scale, np.eye(dim))
    parts = (noise.slopes, noise.slopes[::2], noise.slopes[1::2])
    whole, *halves = (np.atleast_2d(np.cov(x.T)) + noise.added * axes.T @ axes for x in parts)
    if len(noise.slopes) < LEAST or not shared_part(sampler, h, halves) > 0.8 * SHARED:
        return None
    theta = np.asarray(trace.final["theta"], float).mean(axis=0)
    try:
        H = hessian(trace.model, theta, noise.batch, _kind(trace.rerun.options), sampler.scale)
    except Exception:  # a user's gradient, at points of ours
        return None
    if H is None:
        return None
    met = Surroundings(H, whole)
    worst, off = off_by(sampler, h, met, (halves[0], halves[1]))
    if not abs(off) > SHARED:
        return None
    shorter, larger = remedy(sampler, h, met, 0.8 * SHARED)
    batch = math.ceil(min(larger * noise.batch, noise.rows))
    name = f"theta[{worst}]" if np.ndim(sampler.scale) < 2 else f"axis {worst} of its scale"
    step = f"step_size={h / shorter:.2g} or " if math.isfinite(shorter) else ""
    said = (
        f"coordinates share gradient noise, which frictions of their own do not absorb: near the mode the variance of "
        f"{name} would be {abs(off):.0%} too {'large' if off > 0.0 else 'small'}; take {step}"
        f"batch_size={batch if batch < noise.rows else None}"
    )
    return BiasFinding("gradient noise that coordinates share", off, math.nan, math.nan, "biased", said)


def _reshuffled(sampler: Any, h: float, noise: Noise) -> BiasFinding | None:
    """Batches of an epoch whose noises add up to 0."""
    if noise.epoch < 2 or not has_variables(sampler.thermostat):
        return None
    x = h * h * noise.of_a_step * noise.epoch * sampler.bend / (6.0 * sampler.temperature)
    if x <= RESHUFFLED:
        return None
    said = (
        f"momenta follow reshuffled batches to and fro through an epoch of {noise.epoch} steps; the thermostat takes this for "
        f'heat and cools θ by up to {min(x, 1.0):.0%}; take minibatch="replacement"'
    )
    return BiasFinding("cooling by reshuffled batches", x, math.nan, math.nan, "cold", said)


def _smaller(h: float, noise: Noise, step: float, batch: float) -> str:
    """The step, `step` times as long, or the batch, 1/`batch` times as large, that would do."""
    said = f"step_size={0.8 * h * step:.2g}"
    if noise.batch > 0:
        wanted = math.ceil(1.25 * noise.batch / batch)
        said += f" or batch_size={wanted if wanted < noise.rows else None}"
    return said


def _in_natural_units(sampler: Any, noise: Noise) -> str:
    """In natural units σ_θ = 0.1 is small; in units of θ it may be anything."""
    plain = not isinstance(sampler.scale, np.ndarray) and sampler.scale == 1.0
    return '; or scale="auto" with step_size=0.1' if plain and noise.batch > 0 else ""
