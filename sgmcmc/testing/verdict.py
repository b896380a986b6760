"""`check`: everything the suite knows about one sampler, kinetics or black box, as a report with a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from sgmcmc.integrators import is_explicit
from sgmcmc.kinetics import Gaussian, MonomialGamma, Overdamped, velocity
from sgmcmc.samplers import Sampler
from sgmcmc.testing.adapter import BlackBox, as_black_box
from sgmcmc.testing.as_it_is import check_as_it_is
from sgmcmc.testing.black_box import check_at_scale, check_black_box
from sgmcmc.testing.fokker_planck import check_stationarity
from sgmcmc.testing.invariance import check_size, check_slope
from sgmcmc.testing.lyapunov import check_lyapunov
from sgmcmc.testing.marginals import check_momentum_law
from sgmcmc.testing.quadrature import check_order, resolvable
from sgmcmc.testing.report import Finding, Report
from sgmcmc.testing.resampling import check_resampling
from sgmcmc.testing.statistics import z_bound
from sgmcmc.testing.targets import GAUSSIAN, QUARTIC, SKEW
from sgmcmc.testing.time_scales import fastest, largest_step, narrow_for_friction, with_steps_times
from sgmcmc.testing.under_test import Kernel, Subject, describe, plain
from sgmcmc.thermostats import has_variables

__all__ = ["check"]

STEP = (
    0.1  # for the look from outside, of the fastest time scale: the step size of the sampler belongs to its posterior
)


def check(thing: Any, seed: int = 0, progress: bool = True) -> Report:
    """Put a sampler to the test, and say what was found.

    `report.verdict` is "right", "wrong" or "not resolved", `report.passed` only true if right, and `report.power` says
    what each check would have seen. Fokker–Planck: is the law of the process right? One-step invariance: does a step
    leave it, to the order of the integrator? Lyapunov: linear problems, exactly. Momentum law and resampling: are fresh
    draws right? From outside: are moments right in a run, near the scale 1, with the steps of its schedule times a
    number? As it is: in runs of `sgmcmc.sample` with its very steps, schedule and scale, on targets of several widths?
    An error of the discretisation that falls as it should is no fault, but is said (`as_it_is`).

    Parameters
    ----------
    thing : Sampler, kinetics, Subject or BlackBox
        SGNHT(...), your own composition, or another library behind a `BlackBox`.
    seed : int
        Of the random checks; the whole report raises a false alarm with a probability of some 1e-4.
    progress : bool

    Returns
    -------
    Report

    Examples
    --------
    >>> def step(theta, gradient):
    ...     return theta - 0.1 * gradient  # no noise
    >>> box = sg.testing.BlackBox("descent", lambda theta, seed: theta, step, vectorised=True)
    >>> sg.testing.check(box).verdict
    'wrong'
    """
    if isinstance(thing, BlackBox):
        return check_black_box(thing, seed=seed)
    if isinstance(thing, Sampler):
        return Report(describe(thing), _run(_of_sampler(thing, seed), progress))
    if hasattr(thing, "move") and hasattr(thing, "sampler"):
        return Report(thing.name, _run(_of_subject(thing, seed), progress))
    if isinstance(thing, tuple) and hasattr(thing, "_fields") and velocity.choose((type(thing),)) is not None:
        found = Report(repr(thing), _run(_of_sampler(Sampler(STEP, kinetics=thing), seed), progress))
        return found
    raise TypeError(
        f"{thing!r} cannot be checked; give a Sampler, a kinetics, or a BlackBox around a step(state, gradient)"
    )


Stage = tuple[str, Callable[[], Report]]


def _of_subject(subject: Subject, seed: int) -> list[Stage]:
    stages: list[Stage] = [
        ("Fokker–Planck", lambda: check_stationarity(subject, seed=seed)),
        ("one-step invariance", lambda: _invariance(subject, seed)),
    ]
    if isinstance(subject.sampler.kinetics, Gaussian | Overdamped):
        stages.append(("Lyapunov", lambda: check_lyapunov(_held(subject))))
    return stages


def _invariance(subject: Subject, seed: int) -> Report:
    """The size of the defect on three targets, and its order in h where that can be read off.

    For a > 1 the order is that of the same sampler with a softening of 1.5: at 3 it shows only at steps too small to resolve.
    """
    targets = (GAUSSIAN, QUARTIC, SKEW)
    found = [check_size(subject, target, seed, z_bound(15 * len(targets))) for target in targets]
    sampler = subject.sampler
    overdamped, monomial = isinstance(sampler.kinetics, Overdamped), isinstance(sampler.kinetics, MonomialGamma)
    heavy = monomial and sampler.kinetics.a > 1.0
    few = overdamped or (sampler.sigma_theta == 0.0 and sampler.sigma_xi == 0.0)
    if few and (overdamped or monomial or isinstance(sampler.kinetics, Gaussian)):
        soft, h = resolvable(subject)
        found.append(check_order(soft, QUARTIC, h))
    elif not heavy:  # with noise on everything and a > 1 nothing is left to resolve; its size has been checked
        found.append(check_slope(subject, SKEW, seed))
    return Report(f"One-step invariance of {subject.name}", found)


def _held(subject: Subject) -> Subject:
    """With the friction held at its mean: a thermostat is not linear."""
    if not has_variables(subject.sampler.thermostat):
        return subject
    return subject.with_(thermostat=None, sigma_xi=0.0, resample_thermostat=None)


def _of_sampler(sampler: Sampler, seed: int) -> list[Stage]:
    stages = _of_subject(plain(Kernel(sampler)).with_(step_size=STEP / max(1.0, fastest(sampler)), scale=1.0), seed)
    if not isinstance(sampler.kinetics, Overdamped):
        stages.append(("momentum law", lambda: check_momentum_law(sampler.kinetics, sampler.temperature, seed=seed)))
    if sampler.resample_momentum is not None or sampler.resample_thermostat is not None:
        stages.append(("resampling", lambda: check_resampling(Kernel(sampler), seed=seed)))
    stages.append(("from outside", lambda: _from_outside(sampler, seed)))
    stages.append(("as it is", lambda: check_as_it_is(sampler, seed)))
    return stages


def _from_outside(sampler: Sampler, seed: int) -> Report:
    """With its schedule times a number, so that its largest step resolves the fastest time scale.

    The scale of the targets is 1, or less where friction is strong, which would take long to forget on a wide one. The bias
    of explicit Euler is of first order: its steps are a tenth of the others, and the bias about the tolerance.
    """
    s = narrow_for_friction(sampler)
    share = 0.1 if is_explicit(sampler.integrator) else 1.0
    factor = share * STEP / max(fastest(sampler, s), 0.1) / largest_step(sampler)
    box = as_black_box(replace(with_steps_times(sampler, factor), scale=1.0, noise_estimate=0.0))
    return check_at_scale(box, s, seed)


def _run(stages: list[Stage], progress: bool) -> Iterator[Finding]:
    from tqdm import tqdm

    with tqdm(stages, unit="check", disable=not progress, leave=False) as bar:
        for name, stage in bar:
            bar.set_postfix_str(name)
            yield from stage()
