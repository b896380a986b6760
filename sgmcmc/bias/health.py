"""Warnings of `sample`: a run that is hot, cold, unstable, not mixed, or running away.

Runaway, lost chains, and bias that follows from the settings (`foreseen`) are reported for any length of run. The rest uses
only the measurements of the run and some of its draws, and costs little. A temperature is wrong if all of its 99.9 % interval, by
the scatter between chains, is more than 10 % off; that of a coordinate, if all of its interval (for all coordinates together) is
more than 20 % off. Chains are not mixed if split R̂ of one of the parameters examined is above 1.1.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.bias.coordinates import worst_coordinate
from sgmcmc.bias.finding import BiasFinding, name_of, student
from sgmcmc.bias.foreseen import foreseen
from sgmcmc.bias.runaway import runaway
from sgmcmc.checks import RunWarning

__all__ = ["problems", "split_r_hat", "warn_of"]

Array = NDArray[np.float64]

LEAST_DRAWS = 200  # per chain; shorter runs are not judged
TOLERANCE = 0.1  # of the temperature
LEVEL = 0.999  # of the interval of the worst coordinate, all coordinates together
UNSTABLE = 2.0  # times the temperature: no step size that resolves the forces makes p so hot
MIXED = 1.1  # R̂
USUAL = 3.0  # times 1 or by 1: spreads for which friction, σ_θ and γ of 1 or so are meant
_MOST = {"chains": 64, "draws": 1000, "parameters": 64}
_MOST_MAPPED = 1 << 28  # bytes of a file of draws that are still looked through


def warn_of(trace: Any) -> None:
    """A RunWarning for each problem, attributed to the caller of `sample`."""
    for found in problems(trace):
        warnings.warn(f"this run is {found.verdict}: {found.advice}", RunWarning, stacklevel=3)


def problems(trace: Any) -> list[BiasFinding]:
    """The problems of a run that are seen without further gradients or runs."""
    if trace.info.get("interrupted", False):
        return []
    found, lost = [diverged(trace)], runaway(trace)
    if lost is not None:  # all other problems follow from it
        return [f for f in (*found, lost) if f is not None]
    found += foreseen(trace)
    if _draws_of(trace) >= LEAST_DRAWS:
        whole = temperature(trace)
        judged = coordinate(trace) if whole is None else whole
        boils = boiling(trace)
        explained = judged is not None and (
            judged.verdict in [f.verdict for f in found if f is not None]
            or (boils is not None and judged.value == math.inf)
        )
        found += [boils, mixing(trace), None if explained else judged]
    units = other_units(trace) if any(f is not None and f.is_problem for f in found) else ""
    return [
        f if "scale=" in f.advice else f._replace(advice=f.advice + units)
        for f in found
        if f is not None and f.is_problem
    ]


def other_units(trace: Any) -> str:
    """Advice on the scale if the posterior has standard deviations far from 1, for which the defaults are; else ''."""
    sampler = getattr(trace.rerun, "sampler", None)
    if sampler is None or isinstance(sampler.scale, np.ndarray | str) or sampler.scale != 1.0:
        return ""
    spread = _spread(trace) if _draws_of(trace) >= LEAST_DRAWS else math.nan
    if not math.isfinite(spread) or 1.0 / USUAL < spread / sampler.temperature**0.5 < USUAL:
        return ""
    return (
        f'; or scale="auto" with step_size=0.1: the standard deviations are about {spread:.1g}, the defaults are for 1'
    )


def _spread(trace: Any) -> float:
    """The median of the standard deviations of some coordinates of θ; NaN if something else was kept."""
    if trace.moments is not None or trace.draws.shape[-1] != trace.final["theta"].shape[-1]:
        return math.nan
    x, _ = _some_draws(trace.draws)
    with np.errstate(all="ignore"):
        return float(np.median(x.std(axis=(0, 1)))) if x.size else math.nan


def _some_draws(draws: Any) -> tuple[Array, NDArray[np.intp]]:
    """Some of the draws, and the indices of their parameters; none from a large file."""
    if draws.nbytes > _MOST_MAPPED and isinstance(draws.base if draws.base is not None else draws, np.memmap):
        return np.empty((0, 0, 0)), np.empty(0, np.intp)
    some = [_some(n, _MOST[what]) for n, what in zip(draws.shape, _MOST, strict=True)]
    return np.asarray(draws[np.ix_(*some)], np.float64), some[2]


def _draws_of(trace: Any) -> int:
    return int(trace.n_draws if trace.moments is None else min(trace.moments.n, default=0))


def diverged(trace: Any) -> BiasFinding | None:
    """Chains that were dropped because they diverged."""
    lost = len(trace.info.get("diverged", {}))
    if lost == 0:
        return None
    said = (
        f"{lost} of {lost + trace.chains} chains diverged and were dropped, which also biases those that are left; "
        "take a smaller step, or start nearer to the mode (init=)"
    )
    return BiasFinding("diverged chains", float(lost), math.nan, math.nan, "unstable", said)


def boiling(trace: Any) -> BiasFinding | None:
    """A kinetic temperature far above the target's: the step does not resolve the forces."""
    T = float(trace.info.get("temperature", 1.0))
    value, low, high = _interval(trace.kinetic_temperature)
    if not low > UNSTABLE * T:
        return None
    is_so = "overflows" if value == math.inf else f"is {value:.3g}"
    said = f"its kinetic temperature {is_so} for a target of {T:g}; take a step a quarter as long, or warm up longer"
    return BiasFinding("kinetic temperature", value, low, high, "unstable", said)


def temperature(trace: Any) -> BiasFinding | None:
    """The configurational temperature, if all of its interval is away from the target's."""
    T = float(trace.info.get("temperature", 1.0))
    value, low, high = _interval(trace.configurational_temperature)
    hot = low > (1.0 + TOLERANCE) * T
    if not (hot or high < (1.0 - TOLERANCE) * T):
        return None
    cure = "take a smaller step, a larger batch, or a sampler with a thermostat"
    if not hot:
        cure = "warm up longer, then take a smaller step"
        cure = f"no chain at rest has a negative one: {cure}" if value <= 0.0 else cure
    is_so = "overflows" if value == math.inf else f"is {value:.3g} ({low:.3g} to {high:.3g})"
    said = f"its configurational temperature {is_so} for a target of {T:g}; {cure}"
    return BiasFinding("configurational temperature", value, low, high, "hot" if hot else "cold", said)


def coordinate(trace: Any) -> BiasFinding | None:
    """The worst coordinate, if all of its interval is away from the target's temperature."""
    return worst_coordinate(trace, 1.0 - LEVEL)


def _interval(temperatures: Array) -> tuple[float, float, float]:
    """Mean and 99.9 % interval over chains, of the logarithms if all are above 0: the hotter, the wider they scatter.

    Infinite if one overflowed: its chain was still finite when the run ended, but its energies were not.
    """
    if np.isinf(temperatures).any():
        return math.inf, math.inf, math.inf
    if not (temperatures > 0.0).all():
        value, wide = student(temperatures, 0.999)
        return value, value - wide, value + wide
    center, wide = student(np.log(temperatures), 0.999)
    return math.exp(center), math.exp(center - wide), math.exp(min(center + wide, 700.0))


def mixing(trace: Any) -> BiasFinding | None:
    """The largest split R̂ of some parameters, and of their distances from their means.

    With little friction chains oscillate about the same mean, each with its own energy, which only the distances show.
    """
    values, chosen = _r_hats(trace)
    if values.size == 0:
        return None
    far, worst = (int(i) for i in np.unravel_index(np.argmax(values), values.shape))
    if not values[far, worst] > MIXED:
        return None
    name = name_of(trace, int(chosen[worst])) if trace.dim > 0 else f"theta[{chosen[worst]}]"
    name = f"|{name} - its mean|" if far else name
    said = (
        f"R̂ of {name} is {values[far, worst]:.3g}, its chains or their halves disagree; run longer with larger thin=, warm up "
        "longer, or give the posterior's spread as the scale"
    )
    return BiasFinding("R̂, largest", float(values[far, worst]), math.nan, math.nan, "not mixed", said)


def _r_hats(trace: Any) -> tuple[Array, NDArray[np.intp]]:
    """R̂ of some parameters and, in a second row, of their distances from their means; and their indices."""
    if trace.moments is not None:
        return _r_hat_of_moments(trace.moments)
    x, chosen = _some_draws(trace.draws)
    if x.size == 0:
        return np.empty((1, 0)), chosen
    with np.errstate(all="ignore"):
        return np.stack([split_r_hat(x), split_r_hat(np.abs(x - x.mean(axis=(0, 1))))]), chosen


def _some(n: int, most: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp))


def split_r_hat(draws: Array) -> Array:
    """R̂ = √(1 + (Var of the halves' means)/(mean of their variances)) for each parameter of (chain, draw, dim).

    Without ranks, which `diagnostics.r_hat` has: a tenth of the time. A parameter that never moves is left at 1.
    """
    half = draws.shape[1] // 2
    halves = np.concatenate((draws[:, :half], draws[:, half : 2 * half]))
    with np.errstate(all="ignore"):
        return _ratio(halves.mean(axis=1), halves.var(axis=1, ddof=1), half)


def _ratio(means: Array, variances: Array, n: int) -> Array:
    """√((n − 1)/n + B/W) over chains; B is the variance of the means, W the mean of the variances."""
    between, within = means.var(axis=0, ddof=1), variances.mean(axis=0)
    found = np.where(within > 0.0, np.sqrt((n - 1) / n + between / within), 1.0)
    return np.where(np.isfinite(found), found, 1.0)


def _r_hat_of_moments(moments: Any) -> tuple[Array, NDArray[np.intp]]:
    if len(moments.n) < 2:
        return np.empty((1, 0)), np.empty(0, np.intp)
    chosen = _some(moments.mean.shape[1], _MOST["parameters"])
    with np.errstate(all="ignore"):
        return _ratio(moments.mean[:, chosen], moments.variance[:, chosen], int(moments.n.min()))[np.newaxis], chosen
