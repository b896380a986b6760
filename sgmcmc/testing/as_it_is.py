"""A sampler as it is: runs by `sgmcmc.sample` with its own steps, schedule, frictions and scale, on targets of several widths.

What is right at unit scale may be wrong elsewhere: friction, σ_θ, γ and σ_ξ are s·σ_p, σ_θ/s, s²γ and s³σ_ξ in the units of
a target of scale s. The first target is as narrow as the steps resolve, the others 3 and 10 times as wide, where a run can
forget its start. A variance that is off by more than the tolerance is measured again with all steps halved: if what is left
falls as the order of the integrator says, extrapolates to the truth, and is no larger than steps of this size explain, the
sampler is right to that order, and the finding says how large the bias is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators import order
from sgmcmc.samplers import Sampler
from sgmcmc.schedules import Constant, Cyclical
from sgmcmc.testing.outside_checks import FRICTION, LOCAL, SURELY
from sgmcmc.testing.report import Finding, Report
from sgmcmc.testing.statistics import t_bound
from sgmcmc.testing.time_scales import EULER, fastest, finest_scale, largest_step, relaxation_steps, with_steps_times
from sgmcmc.testing.under_test import describe

__all__ = ["check_as_it_is", "scales_of"]

Array = NDArray[np.float64]
CHAINS, DIM = 64, 8
WIDTHS = (1.0, 3.0, 10.0)  # times the finest scale
RELAXATIONS = 80.0  # of a first run; the next ones are 4 and 16 times as long
ROUNDS = 3
LEAST, MOST = 4000, 100_000  # steps of a first run
LONGEST = 300_000  # steps of any
PATIENCE = 300.0  # steps: a target on which forgetting takes longer is left out, but for one
SLOWEST = 10.0  # times as long at most
TOLERANCE = 0.01
FAMILY = 3 * 3 * 4  # widths, rounds, figures (those of the halved steps included)


class Figures(NamedTuple):
    """Second moments ÷ truth, (chains, dim), and how long the runs were."""

    second: Array
    steps: int

    @property
    def mean(self) -> float:
        return float(self.second.mean())

    @property
    def se(self) -> float:
        return float(self.second.mean(axis=1).std(ddof=1) / len(self.second) ** 0.5)


def scales_of(sampler: Sampler) -> list[float]:
    """Scales of target, in units of the sampler's own `scale`: those on which it forgets soon enough, or the best of them."""
    first = finest_scale(sampler)
    found = [w * first for w in WIDTHS]
    soon = [s for s in found if relaxation_steps(sampler, s) <= PATIENCE]
    later = sorted(found, key=lambda s: relaxation_steps(sampler, s))[:2]
    later = later[:1] + [s for s in later[1:] if relaxation_steps(sampler, s) <= SLOWEST * PATIENCE]
    return soon if soon else later


def steps_enlarged(sampler: Sampler) -> float:
    """By how much steps must be longer for a run to end: 1, unless it takes more than 3000 steps to forget on any target."""
    slow = min(relaxation_steps(sampler, s) for s in scales_of(sampler))
    return slow / PATIENCE if slow > SLOWEST * PATIENCE else 1.0


def _model(sampler: Sampler, s: float) -> tuple[Any, Array]:
    """A Gaussian of scale s in the frame that the sampler runs in, and a root R of its covariance, θ = R n."""
    from sgmcmc.models import Gaussian

    scale = np.asarray(sampler.scale, float)
    if scale.ndim == 2:
        return Gaussian(np.zeros(len(scale)), s**2 * scale @ scale.T), s * scale
    sd = s * (np.full(DIM, float(scale)) if scale.ndim == 0 else scale)
    return Gaussian(np.zeros(sd.size), sd**2), np.diag(sd)


def _run(sampler: Sampler, s: float, steps: int, seed: int) -> Figures | None:
    """Moments of chains from `sgmcmc.sample`, half of them started away from the target; None if one diverges."""
    from sgmcmc.checks import DivergenceError
    from sgmcmc.run.sample import sample

    model, root = _model(sampler, s)
    dim = len(root)
    normals = np.random.default_rng([seed, 7]).standard_normal((CHAINS, dim))
    normals[CHAINS // 2 :] = 1.5 * normals[CHAINS // 2 :] + 0.5
    init = np.sqrt(sampler.temperature) * normals @ root.T
    share = _share_recorded(sampler)
    common: dict[str, Any] = {"chains": CHAINS, "seed": seed, "init": init, "keep": "moments", "warn": False}
    noise = _gradient_noise(sampler)
    try:
        trace = sample(
            model,
            sampler,
            draws=max(1, int(steps * share)),
            warmup=steps // 3,
            progress=False,
            gradient_noise=noise,
            **common,
        )
    except DivergenceError:
        return None
    assert trace.moments is not None  # what keep="moments" is for
    truth = sampler.temperature * (root**2).sum(axis=1)
    return Figures((trace.moments.variance + trace.moments.mean**2) / truth, steps + steps // 3)


def _share_recorded(sampler: Sampler) -> float:
    schedule = sampler.schedule
    return schedule.sampling_steps / schedule.period if isinstance(schedule, Cyclical) else 1.0


def _gradient_noise(sampler: Sampler) -> float:
    """B of the gradient noise that `noise_estimate` is for: B̂ = hV/2, V = 2B, in the frame of the sampler."""
    scale = np.asarray(sampler.scale, float)
    if sampler.noise_estimate == 0.0 or scale.ndim > 0 or not isinstance(sampler.schedule, Constant):
        return 0.0
    return sampler.noise_estimate / (largest_step(sampler) * float(scale) ** 2)


def check_as_it_is(sampler: Sampler, seed: int = 0, tolerance: float = TOLERANCE) -> Report:
    """Checks the variance of θ, of all coordinates and of each, on Gaussian targets of up to three widths.

    Parameters
    ----------
    sampler : Sampler
    seed : int
    tolerance : float
        The relative error to accept.

    Returns
    -------
    Report

    Examples
    --------
    >>> sg.testing.check_as_it_is(sg.SGHMC(0.5)).verdict
    'right'
    """
    factor = steps_enlarged(sampler)
    longer = sampler if factor == 1.0 else with_steps_times(sampler, factor)
    found = [f for s in scales_of(longer) for f in _at_scale(longer, s, seed, tolerance)]
    if factor != 1.0:
        words = f"steps {factor:.3g} times as long, else no run would end; "
        found = [f._replace(detail=words + f.detail) for f in found]
    return Report(f"As it is: {describe(sampler)}", found)


def _at_scale(sampler: Sampler, s: float, seed: int, tolerance: float) -> Iterator[Finding]:
    first = min(max(LEAST, int(RELAXATIONS * relaxation_steps(sampler, s))), MOST)
    figures: Figures | None = None
    for r in range(ROUNDS):
        figures = _run(sampler, s, min(first * 4**r, LONGEST), seed + r)
        if figures is None or _margin(figures.se, tolerance, 1.0) <= FRICTION:
            break
    if figures is None:
        where = f"Gaussian, scale {s:.3g}, as it is"
        yield Finding(f"variance ÷ truth; {where}", describe(sampler), np.nan, "finite", False, "a chain diverged")
        return
    yield _whole(sampler, s, figures, seed, tolerance)
    yield _each(sampler, s, figures, seed, tolerance)


def _margin(se: float, tolerance: float, surely: float) -> float:
    return tolerance + (t_bound(FAMILY, CHAINS) + surely * SURELY) * se


def _about(sampler: Sampler, figures: Figures, seed: int) -> str:
    h = largest_step(sampler)
    return f"{CHAINS} chains of {figures.steps} steps of at most {h:.3g}, seed {seed}"


def _whole(sampler: Sampler, s: float, figures: Figures, seed: int, tolerance: float) -> Finding:
    off, margin, power = figures.mean - 1.0, _margin(figures.se, tolerance, 0.0), _margin(figures.se, tolerance, 1.0)
    check = f"variance ÷ truth; Gaussian, scale {s:.3g}, as it is"
    bound, about = f"1 ± {margin:.2g}", f"se {figures.se:.2g}; {_about(sampler, figures, seed)}"
    inside, resolved = abs(off) < margin, power <= FRICTION
    least = order(sampler.integrator) or 1
    if inside or abs(off) > margin + explained_bias(sampler, s, least):
        fine = inside and resolved
        return Finding(check, describe(sampler), figures.mean, bound, fine, about, power, resolved or not inside)
    half = _run(with_steps_times(sampler, 0.5), s, 2 * figures.steps, seed + 10)
    if half is None:
        about = f"diverged with half the steps; {about}"
        return Finding(check, describe(sampler), figures.mean, bound, False, about, power)
    weight = 2.0**least
    limit = (weight * half.mean - figures.mean) / (weight - 1.0)
    se = float(np.hypot(weight * half.se, figures.se) / (weight - 1.0))
    margin, power = _margin(se, tolerance, 0.0), _margin(se, tolerance, 1.0)
    right = abs(limit - 1.0) < margin
    words = f"bias {off:+.3f} at this step, {half.mean - 1.0:+.3f} at half of it: "
    words += f"right to order {least}" if right else f"not the h^{least} of its integrator"
    check = f"variance ÷ truth at h → 0; Gaussian, scale {s:.3g}, as it is"
    return Finding(check, describe(sampler), limit, f"1 ± {margin:.2g}", right, f"{words}; {about}", power)


def explained_bias(sampler: Sampler, s: float, least: int) -> float:
    """The bias that steps of this size may have: half of (h · the fastest rate)^least, or what explicit Euler has."""
    h = largest_step(sampler)
    size = 0.5 * (h * fastest(sampler, s)) ** least
    return 4.0 * EULER + size if least == 1 else size


def _each(sampler: Sampler, s: float, figures: Figures, seed: int, tolerance: float) -> Finding:
    """No coordinate is off from the mean of all, whose own error is judged by itself."""
    values = figures.second / figures.mean
    se = values.std(axis=0, ddof=1) / CHAINS**0.5
    t = t_bound(FAMILY * values.shape[1], CHAINS)
    off, margin = values.mean(axis=0) - 1.0, tolerance + t * se
    k = int(np.argmax(np.abs(off) / margin))
    power = float((margin + SURELY * se).max())
    inside, resolved = bool(abs(off[k]) < margin[k]), power <= LOCAL
    check = f"variance ÷ mean, each coordinate; Gaussian, scale {s:.3g}, as it is"
    about = f"coordinate {k} of {values.shape[1]}; {_about(sampler, figures, seed)}"
    figure = float(1.0 + off[k])
    fine = inside and resolved
    return Finding(check, describe(sampler), figure, f"1 ± {margin[k]:.2g}", fine, about, power, resolved or not inside)
