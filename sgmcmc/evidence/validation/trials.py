"""Trials: the checks that every wrong sampler is put to, in a fixed order, each as one figure and its bound.

A trial gives the ratio figure/bound of its worst statistic: above 1 it rejects. Random figures are |z|, bounded for the whole
table over all its seeds by the family's budget; the others are errors that would be zero but for round-off.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators import BAOAB, Euler, is_explicit
from sgmcmc.integrators.state import Noise, State
from sgmcmc.kinetics import Gaussian, Overdamped
from sgmcmc.testing import fokker_planck, under_test
from sgmcmc.testing.invariance import invariance_z
from sgmcmc.testing.lyapunov import LinearStep
from sgmcmc.testing.statistics import kolmogorov, z_bound, z_of_mean
from sgmcmc.testing.streams import crosstalk
from sgmcmc.testing.targets import SKEW
from sgmcmc.testing.under_test import Subject, laws_of

__all__ = ["TRIALS", "Estimator", "Outcome", "Trial"]

Array = NDArray[np.float64]
STATISTICS = 200 * 60 * 21  # statistics of a sampler × samplers × seeds: what the budget is for
Z = z_bound(STATISTICS)
ROUNDING = 1e-9
EXTRAPOLATION = 1e-7  # of a step to h → 0 by polynomials
DIFFERENCE = 1e-8  # of extrapolated differences of a logistic regression; for squares they are exact
COPIES = {"quick": 10_000, "full": 100_000}
# Many scrambles of few points: the tail of Student's t with few degrees of freedom costs more than the points gain.
POINTS = {"quick": {"scrambles": 64, "log2_points": 9}, "full": {"scrambles": 64, "log2_points": 10}}
# As large as the terms of higher order allow: h⁴ for a splitting, h³ for Euler. At 0.1 these rejected a right SGLD by Euler
# for 5 of 40 seeds (1.1e-3 in tanh θ, falling like h³).
STEP, STEP_OF_EULER = 0.1, 0.02


class Estimator(Protocol):
    """A gradient estimated from some rows of the data."""

    name: str
    n_rows: int
    dim: int

    def gradient(self, theta: Array, rows: Any) -> Array:
        """The estimate from these rows; None is all of them."""

    def energy(self, theta: Array) -> float:
        """U, whose derivative the gradient from all rows is."""


class Outcome(NamedTuple):
    """What a trial found; it rejects when figure ≥ bound."""

    figure: float
    bound: float

    @property
    def ratio(self) -> float:
        return self.figure / self.bound if np.isfinite(self.figure) else np.inf

    @property
    def rejects(self) -> bool:
        return not self.ratio < 1.0


class Trial(NamedTuple):
    """A check by its name; `run(candidate, dim, profile, seed)` gives None where it does not apply."""

    name: str
    run: Callable[[Any, int, str, int], Outcome | None]


def _start(subject: Subject, dim: int, profile: str, seed: int) -> Outcome | None:
    """A start that is handed in is the start, be it 0."""
    sizes = subject.sampler.sizes(dim)
    rng = np.random.default_rng(seed)
    worst = 0.0
    for factor in (0.0, 1.0):
        given = [factor * rng.standard_normal((4, n)) for n in (sizes.theta, sizes.p, sizes.xi)]
        state = subject.start(*given)
        for a, b in zip((state.theta, state.p, state.xi), given, strict=True):
            worst = max(worst, float(np.max(np.abs(a - b), initial=0.0)))
    return Outcome(worst, ROUNDING)


def _points(subject: Subject, dim: int, profile: str, seed: int) -> tuple[Subject, Array]:
    plain = under_test.plain(subject)
    return plain, fokker_planck.points_of(plain.sampler, SKEW, dim, 4 if profile == "quick" else 16, seed)


def _stationarity(subject: Subject, dim: int, profile: str, seed: int) -> Outcome | None:
    """The residual of the Fokker–Planck equation."""
    plain, points = _points(subject, dim, profile, seed)
    return Outcome(fokker_planck.residual(plain.with_(integrator=Euler()), SKEW, points, dim).relative, ROUNDING)


def _generator(subject: Subject, dim: int, profile: str, seed: int) -> Outcome | None:
    """Drift and diffusion of a splitting for h → 0 are those of the process."""
    if is_explicit(subject.sampler.integrator):
        return None
    plain, points = _points(subject, dim, profile, seed)
    return Outcome(max(fokker_planck.generator_error(plain, SKEW, points, dim)), EXTRAPOLATION)


def _made_up(subject: Subject, dim: int, profile: str, seed: int) -> Outcome | None:
    """The estimate B̂ of what gradient noise brings is taken off the diffusion of p, once."""
    estimate = subject.sampler.noise_estimate
    if estimate == 0.0:
        return None
    points = _points(subject, dim, profile, seed)[1]
    euler = subject.with_(integrator=Euler())
    less, whole = (fokker_planck._diffusion(e, SKEW, points, dim) for e in (euler, euler.with_(noise_estimate=0.0)))
    gap = (whole - less)[:, dim, dim] - estimate
    return Outcome(float(np.max(np.abs(gap)) / estimate), ROUNDING)


def _linear(subject: Subject, dim: int, profile: str, seed: int) -> Outcome | None:
    """On a Gaussian target the stationary variance of θ is exact for BAOAB with p²/2m, ξ held at its mean, at any step size."""
    sampler, precision = subject.sampler, 1.7
    exact = isinstance(sampler.kinetics, Overdamped) or (
        isinstance(sampler.kinetics, Gaussian) and sampler.sigma_theta == 0.0
    )
    if not (exact and sampler.integrator == BAOAB()):
        return None
    plain = under_test.plain(subject).with_(thermostat=None, sigma_xi=0.0, step_size=0.3)
    variance = float(LinearStep(plain, precision).stationary_covariance()[0, 0])
    return Outcome(abs(variance * precision / sampler.temperature - 1.0), ROUNDING)


class _NoisyGradients:
    """A subject whose gradients have the noise that its `noise_estimate` B̂ is for: variance 2B̂/w, w the time of a kick."""

    def __init__(self, subject: Subject) -> None:
        self.subject, self.name, self.sampler, self.start = subject, subject.name, subject.sampler, subject.start

    def move(self, state: State, gradient: Array, noise: Noise, before: float, h: float, step: int, seed: int) -> State:
        w = h if is_explicit(self.sampler.integrator) else 0.5 * (before + h)
        normals = np.random.default_rng((seed, step, 7)).standard_normal(gradient.shape)
        rough = gradient + np.sqrt(2.0 * self.sampler.noise_estimate / w) / self.sampler.scale * normals
        return self.subject.move(state, rough, noise, before, h, step, seed)


def _invariance(subject: Subject, dim: int, profile: str, seed: int) -> Outcome | None:
    """One step from the exact law leaves it, up to the order that the integrator has."""
    noisy: Any = _NoisyGradients(subject) if subject.sampler.noise_estimate > 0.0 else subject
    h = STEP_OF_EULER if is_explicit(subject.sampler.integrator) else STEP
    z, _ = invariance_z(noisy, SKEW, h, seed, dim=dim, **POINTS[profile])
    return Outcome(z, Z)


def _fresh(subject: Subject, dim: int, profile: str, seed: int) -> Outcome | None:
    """Fresh momenta and frictions, put through their distribution functions, are uniform: Kolmogorov, and two moments."""
    if isinstance(subject.sampler.kinetics, Overdamped):
        return None
    sizes = subject.sampler.sizes(dim)
    fresh = subject.with_(resample_momentum=1, resample_thermostat=1 if sizes.xi else None)
    state = subject.start(np.zeros((COPIES[profile] // dim, dim)))
    noise = fresh.draw_noise(state, seed, 1)
    after = fresh.move(state, np.zeros_like(state.theta), noise, 0.0, 0.0, 1, seed)
    _, p, xi = laws_of(subject.sampler, SKEW, dim)
    laws = [(p, after.p), (p, subject.draw_momenta(state, seed)), (xi, after.xi)]
    return Outcome(max(_uniform(law.cdf(x)) for law, x in laws if law is not None), Z)


def _uniform(u: Array) -> float:
    """The largest |z| of three tests of uniform numbers."""
    from scipy.special import ndtri

    p_value = max(kolmogorov(u, lambda x: np.clip(x, 0.0, 1.0)), 1e-300)
    return max(abs(z_of_mean(u, 0.5)), abs(z_of_mean((u - 0.5) ** 2, 1.0 / 12.0)), float(-ndtri(0.5 * p_value)))


def _independence(subject: Subject, dim: int, profile: str, seed: int) -> Outcome | None:
    """Normals of different variables, coordinates, steps and chains are uncorrelated, and so are their squares."""
    state = subject.start(np.zeros((COPIES[profile], 2)))
    noise = [n for step in (2, 3) for n in subject.draw_noise(state, seed, step) if n.any()]
    return Outcome(crosstalk(np.concatenate(noise, axis=1).T), Z)


def _batches(estimator: Estimator, dim: int, profile: str, seed: int) -> Outcome | None:
    """The mean of the estimates from all minibatches, one by one, is the gradient from all rows."""
    theta = np.random.default_rng(seed).standard_normal(estimator.dim)
    whole = estimator.gradient(theta, None)
    worst = 0.0
    for n in (1, 2, 3):
        all_batches = [np.array(rows) for rows in combinations(range(estimator.n_rows), n)]
        mean = np.mean([estimator.gradient(theta, rows) for rows in all_batches], axis=0)
        worst = max(worst, float(np.max(np.abs(mean - whole)) / np.max(np.abs(whole))))
    return Outcome(worst, ROUNDING)


def _derivative(estimator: Estimator, dim: int, profile: str, seed: int) -> Outcome | None:
    """The gradient from all rows is the derivative of U: a mean for a sum, or rows left out, are consistent with themselves."""
    theta = np.random.default_rng(seed).standard_normal(estimator.dim)
    whole = estimator.gradient(theta, None)

    def difference(width: float) -> Array:
        ends = [[estimator.energy(theta + sign * width * e) for sign in (1.0, -1.0)] for e in np.eye(estimator.dim)]
        return np.array([(up - down) / (2.0 * width) for up, down in ends])

    slope = (4.0 * difference(2.0**-9) - difference(2.0**-8)) / 3.0
    return Outcome(float(np.max(np.abs(slope - whole)) / np.max(np.abs(whole))), DIFFERENCE)


def _of_subjects(run: Callable[[Subject, int, str, int], Outcome | None]) -> Callable[..., Outcome | None]:
    return lambda candidate, *rest: run(candidate, *rest) if hasattr(candidate, "sampler") else None


TRIALS = (
    Trial("start kept", _of_subjects(_start)),
    Trial("all minibatches", lambda c, *rest: None if hasattr(c, "sampler") else _batches(c, *rest)),
    Trial("derivative of U", lambda c, *rest: None if hasattr(c, "sampler") else _derivative(c, *rest)),
    Trial("Fokker–Planck residual", _of_subjects(_stationarity)),
    Trial("splitting, h → 0", _of_subjects(_generator)),
    Trial("injected noise less B̂", _of_subjects(_made_up)),
    Trial("Lyapunov, exact variance", _of_subjects(_linear)),
    Trial("one step from the law", _of_subjects(_invariance)),
    Trial("law of fresh draws", _of_subjects(_fresh)),
    Trial("independent normals", _of_subjects(_independence)),
)
