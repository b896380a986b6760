"""Resampling of momentum and thermostat (Lemmas 1 and 2): it changes neither the law nor the order in h.

The law: what is drawn has the invariant law and does not depend on what was there before (a step of size 0 does nothing but
draw), one step from an exact start keeps the law (`invariance_z`), and runs with periods 1, 10 and 100 have the right means.
The order: with Gaussian kinetics a period of n steps is a linear map, n − 1 of them plain and one with a fresh momentum, so the
variance of θ over the period follows from a discrete Lyapunov equation; its bias in h is of the same order as without.

Explicit Euler is the exception that the lemmas allow for: their period is one of time. With a fresh momentum at the end of
every nth step the last kick is thrown away before it moved anything, so that for n fixed and h → 0 the variance is n/(n − 1)
times too large, and with n = 1 the gradient is never felt at all. The splittings draw p in the middle of the drift.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators import BAOAB, Euler, SymmetricSplitting
from sgmcmc.integrators.state import Noise
from sgmcmc.samplers import Sampler
from sgmcmc.samplers.presets import SGHMC
from sgmcmc.testing.invariance import invariance_z
from sgmcmc.testing.laws import Law
from sgmcmc.testing.lyapunov import LinearStep
from sgmcmc.testing.report import Finding, Report, within
from sgmcmc.testing.statistics import kolmogorov, p_bound, z_bound, z_of_mean
from sgmcmc.testing.targets import QUARTIC, SKEW, Target
from sgmcmc.testing.under_test import Kernel, Subject, exact_start, laws_of, standard_subjects

__all__ = [
    "check_resampling",
    "findings",
    "fresh_draws",
    "mean_variance",
    "resampled_bias",
    "resampled_order",
    "run_means",
]

Array = NDArray[np.float64]
PERIODS = (1, 10, 100)


def fresh_draws(subject: Subject, copies: int = 20_000, seed: int = 0) -> list[tuple[str, Array, Array, Law]]:
    """(variable, before, after, law): what a step of size 0 draws afresh for copies that start anywhere."""
    sampler = subject.sampler
    _, p_law, xi_law = laws_of(sampler, SKEW)
    rng = np.random.default_rng(seed)
    state = subject.start(np.zeros((copies, 1)), 2.0 * rng.standard_normal((copies, 1)), None)
    if xi_law is not None:
        state.xi[:] = sampler.sigma_p + 2.0 * rng.standard_normal(state.xi.shape)
    renewed = subject.with_(resample_momentum=1, resample_thermostat=None if xi_law is None else 1)
    noise = renewed.draw_noise(state, seed, 5)
    after = renewed.move(state, np.zeros((copies, 1)), noise, 0.0, 0.0, 5, seed)
    out = [("p", state.p.ravel(), after.p.ravel(), p_law)]
    if xi_law is not None:
        out.append(("ξ", state.xi.ravel(), after.xi.ravel(), xi_law))
    return [(name, old, new, law) for name, old, new, law in out if law is not None]


def mean_variance(sampler: Sampler, period: int, precision: float = 1.0) -> float:
    """Var θ of the draws, averaged over a period of n steps with one fresh momentum, for a linear sampler."""
    T = sampler.temperature
    step = LinearStep(Kernel(sampler).with_(resample_momentum=period), precision)
    turn = period - 1  # steps are numbered from 0, and (step + 1) % period == 0 is the turn
    drawn = _momentum_drawn(step, turn)
    direction = step(np.zeros((1, step.size)), step=turn)[0] / drawn  # what a fresh momentum of 1 comes to
    fresh = T * np.outer(direction, direction)
    rows = [(step.matrix(turn), _noise(step, turn) + fresh), (step.matrix(turn + 1), _noise(step, turn + 1))]
    order = [rows[0]] + [rows[1]] * (period - 1)
    whole, added = np.eye(step.size), np.zeros((step.size, step.size))
    for matrix, noise in order:
        whole, added = matrix @ whole, matrix @ added @ matrix.T + noise
    from scipy.linalg import solve_discrete_lyapunov

    covariance = solve_discrete_lyapunov(whole, added)
    total = 0.0
    for matrix, noise in order:
        covariance = matrix @ covariance @ matrix.T + noise
        total += float(covariance[0, 0])
    return total / period


def _momentum_drawn(step: LinearStep, turn: int) -> float:
    """The fresh momentum itself, from a step of size 0 with the same random numbers."""
    subject = step.subject
    start = subject.start(np.zeros((1, 1)), np.zeros((1, 1)))
    none = Noise(np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((1, 0)))
    return float(subject.move(start, np.zeros((1, 1)), none, 0.0, 0.0, turn, 0).p[0, 0])


def _noise(step: LinearStep, turn: int) -> Array:
    noise = step.noise_matrix(turn)
    return noise @ noise.T


def resampled_bias(integrator: Any, h: float, period: int, temperature: float = 1.0, precision: float = 1.0) -> float:
    """Var θ of SGHMC with fresh momenta every `period` steps, divided by the truth T/k, minus one."""
    sampler = SGHMC(h, 1.5, temperature=temperature, integrator=integrator)
    return mean_variance(sampler, period, precision) * precision / temperature - 1.0


def resampled_order(
    integrator: Any,
    period: int,
    temperature: float = 1.0,
    precision: float = 1.0,
    fixed_time: bool = False,
) -> tuple[float, float]:
    """The order in h of that bias, from h = 0.02 and 0.01, and the bias at 0.02; infinite where there is none.

    With `fixed_time` the period is one of time, twice as many steps at half the step size; with a fixed number n of steps
    the factor of h² depends on n h, which blurs the order.
    """
    one = resampled_bias(integrator, 0.02, period, temperature, precision)
    two = resampled_bias(integrator, 0.01, 2 * period if fixed_time else period, temperature, precision)
    return (float(np.log2(abs(one / two))) if abs(one) > 1e-11 else float("inf")), one


def run_means(subject: Subject, target: Target, h: float, copies: int, steps: int, seed: int) -> dict[str, float]:
    """z of the means of tanh θ and θ² in a run of many copies from an exact start, against quadrature."""
    sampler = subject.sampler
    law = target.law(sampler.temperature)
    state = exact_start(subject, target, np.random.default_rng(seed).random((copies, 3)))
    functions = {"tanh θ": np.tanh, "θ²": np.square}
    totals = {name: np.zeros(copies) for name in functions}
    for t in range(steps):
        noise = subject.draw_noise(state, seed, t)
        state = subject.move(state, target.gradient(state.theta), noise, h if t else 0.0, h, t, seed)
        for name, f in functions.items():
            totals[name] += f(state.theta[:, 0])
    return {name: z_of_mean(total / steps, law.mean(functions[name])) for name, total in totals.items()}


def _draw_findings(subject: Subject, seed: int, checks: int, copies: int = 20_000) -> Iterator[Finding]:
    T = subject.sampler.temperature
    for name, old, new, law in fresh_draws(subject, copies, seed):
        where, limit = f"{name} of {subject.name}, T = {T:g}", p_bound(checks)
        pvalue = kolmogorov(new, law.cdf)
        yield Finding(
            "resampling, law of the draw", where, pvalue, f"p > {limit:.1e}", pvalue > limit, f"KS, {copies} draws"
        )
        score = np.clip(law.cdf(new), 0.0, 1.0) - 0.5
        yield within("resampling, independence", where, z_of_mean(score * np.sign(old)), z_bound(checks))


def _step_finding(subject: Subject, target: Target, seed: int, checks: int) -> Finding:
    """One step with fresh p and ξ from an exact start."""
    has_xi = bool(subject.sampler.sizes(1).xi)
    renewed = subject.with_(resample_momentum=1, resample_thermostat=1 if has_xi else None)
    z, phi = invariance_z(renewed, target, 0.1, seed)
    where = f"{subject.name}, {target.name}, T = {subject.sampler.temperature:g}"
    return within("resampling, one step", where, z, z_bound(15 * checks), f"largest at φ = {phi}, h = 0.1, period 1")


def check_resampling(sampler: Sampler | Subject, seed: int = 0) -> Report:
    """Checks that a sampler with momentum draws p and ξ afresh from the laws it keeps.

    Parameters
    ----------
    sampler : Sampler or Subject
    seed : int

    Returns
    -------
    Report

    Examples
    --------
    >>> sg.testing.check_resampling(sg.testing.Reference(sg.SGHMC(0.1), name="SGHMC"))
    Resampling of SGHMC: 3 checks, passed
    """
    subject: Subject = Kernel(sampler) if isinstance(sampler, Sampler) else sampler
    found = [*_draw_findings(subject, seed, 4), _step_finding(subject, SKEW, seed, 1)]
    return Report(f"Resampling of {subject.name}", found)


def findings(profile: str = "quick", seed: int = 0) -> Iterator[Finding]:
    """Draws and steps of all samplers with momentum; orders by periods; runs with periods 1, 10, 100."""
    full = profile == "full"
    names = [name for name in standard_subjects() if name != "SGLD"]
    for i, name in enumerate(names):
        for T in (1.0, 2.0) if full else ((1.0, 2.0)[i % 2],):
            subject = standard_subjects(0.1, T)[name]
            yield from _draw_findings(subject, seed, 48, 200_000 if full else 20_000)
            yield _step_finding(subject, (SKEW, QUARTIC)[i % 2], seed, 12)
    cases = [(integrator, n, 2, n > 1) for integrator in (BAOAB(), SymmetricSplitting()) for n in PERIODS]
    for integrator, period, least, in_time in [*cases, (Euler(), 100, 1, True)]:
        order, size = resampled_order(integrator, period, 2.0, 3.0, in_time)
        where = f"SGHMC, {type(integrator).__name__}, period {period}{' at h = 0.02' if in_time else ''}, T = 2"
        detail = f"bias of Var θ {size:.2e} at h = 0.02; no Monte Carlo"
        yield Finding("resampling, order in h", where, order, f"> {least} − 0.1", order > least - 0.1, detail)
    lost = resampled_bias(Euler(), 1e-4, 10, 2.0) - 1.0 / 9.0
    where, detail = (
        "SGHMC, Euler, period 10, bias − 1/(n − 1) as h → 0",
        "the last kick of a period is lost; use a splitting",
    )
    yield within("resampling, Euler's known bias", where, lost, 1e-2, detail)
    copies, steps = (4000, 2000) if full else (500, 200)
    for name in ("SGNHT", "SGMGT, a = 1", "SGMGT-D, a = 2"):
        for period in PERIODS:
            subject = standard_subjects(0.05, 2.0)[name].with_(resample_momentum=period, resample_thermostat=period)
            for phi, z in run_means(subject, SKEW, 0.05, copies, steps, seed + period).items():
                where, detail = (
                    f"{name}, E[{phi}], period {period}, T = 2",
                    f"{copies} copies × {steps} steps, h = 0.05",
                )
                yield within("resampling, run", where, z, z_bound(18), detail)
