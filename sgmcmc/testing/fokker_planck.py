"""Fokker–Planck: the drift and the diffusion of the real kernel leave exp(−H/T) invariant, point by point, to round-off.

For ρ = exp(−H/T), a drift V and a constant diffusion D the equation of Fokker and Planck, divided by ρ, asks that

    Σ_i [ −∂_i V_i + V_i ∂_i H/T ] + Σ_ij D_ij ( ∂_i H ∂_j H/T² − ∂_ij H/T ) = 0

everywhere. V and D are read off the kernel: an explicit Euler step is linear in h, so V = (Γ' − Γ)/h without noise, and unit
normals show D. Splittings have the same V and D in the limit h → 0 (`generator_error`). H comes from energies alone: K' and
K'' are differences of K, not the kernel's own velocity and curvature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators import Euler, is_explicit
from sgmcmc.integrators.state import Noise, State
from sgmcmc.kinetics import Gaussian, MonomialGamma, Overdamped, Relativistic
from sgmcmc.samplers import Sampler
from sgmcmc.testing.laws import kinetic, momentum_law
from sgmcmc.testing.report import Finding, Report, within
from sgmcmc.testing.targets import MIXTURE, QUARTIC, Target
from sgmcmc.testing.time_scales import fastest
from sgmcmc.testing.under_test import Kernel, Subject, laws_of, plain
from sgmcmc.thermostats import NoseHoover, sharers

__all__ = ["Residual", "check_stationarity", "findings", "generator_error", "points_of", "residual"]

Array = NDArray[np.float64]
TOLERANCE = 1e-9  # of the sum of the absolute terms: round-off of the differences is some 1e-11
LIMIT = 1e-6  # of what is extrapolated to h = 0: for a other than 1/2 and 1, K is not analytic at p = 0, where kicks may cross
ROUNDING = (
    2.0**10 * 1e3 * 2.2e-16
)  # of the momenta, in a slope extrapolated from steps of 2⁻¹⁰: measured, up to a sixth of it
LEVELS = 11  # widths of the differences, from 1/4 of the variable's size down by halves
FIRST = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0.0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
SECOND = np.array([-1 / 560, 8 / 315, -1 / 5, 8 / 5, -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560])


class Residual(NamedTuple):
    """The left side of the equation at every point, and the sum of the absolute values of its terms."""

    value: Array
    terms: Array

    @property
    def relative(self) -> float:
        """The largest |value|/terms; NaN if any is."""
        return float(np.max(np.abs(self.value) / self.terms))


# ---- derivatives --------------------------------------------------------------------------------------------------------


def _most_settled(estimates: Array) -> Array:
    """Of estimates (level, ...) at halved widths, at each point the one that agrees best with both its neighbours."""
    change = np.abs(np.diff(estimates, axis=0))
    best = np.argmin(np.maximum(change[:-1], change[1:]), axis=0)
    chosen: Array = np.take_along_axis(estimates, best[None] + 1, axis=0)[0]
    return chosen


def derivatives(function: Callable[[Array], Array], x: Array, size: Array) -> tuple[Array, Array]:
    """f' and f'' by central differences of 8th order; of many widths the one where truncation and round-off meet."""
    width = 2.0 ** (np.floor(np.log2(size)) - 2.0 - np.arange(LEVELS).reshape(-1, *([1] * x.ndim)))
    offsets = np.arange(-4.0, 5.0).reshape(-1, 1, *([1] * x.ndim))
    f = function(x + offsets * width)
    first = np.tensordot(FIRST, f, 1) / width
    second = np.tensordot(SECOND, f, 1) / width**2
    return _most_settled(first), _most_settled(second)


# ---- drift and noise of the kernel ---------------------------------------------------------------------------------------


def _cuts(sampler: Sampler, dim: int) -> list[int]:
    sizes = sampler.sizes(dim)
    return [dim, dim + int(sizes.p)]


def _start(subject: Subject, x: Array, dim: int) -> State:
    theta, p, xi = np.split(x, _cuts(subject.sampler, dim), axis=1)
    return subject.start(theta, p, xi)


def _joined(state: State) -> Array:
    return np.concatenate((state.theta, state.p, state.xi), axis=1)


def _step(subject: Subject, target: Target, x: Array, dim: int, h: float, normals: Array) -> Array:
    """Γ after a whole step from Γ = x, closed at its point of symmetry.

    `normals` (2, variables) are those of θ, p and ξ: at the beginning, and at the closing, which splittings have.
    """
    cuts = _cuts(subject.sampler, dim)
    noise = []
    for row in normals:
        theta, p, xi = (np.repeat(part[None], len(x), axis=0) for part in np.split(row, cuts))
        noise.append(Noise(p, theta, xi))
    state = _start(subject, x, dim)
    after = subject.move(state, target.gradient(state.theta), noise[0], 0.0, h, 1, 0)
    if is_explicit(subject.sampler.integrator):
        return _joined(after)
    return _joined(subject.move(after, target.gradient(after.theta), noise[1], h, 0.0, 2, 0))


def _drift(subject: Subject, target: Target, x: Array, dim: int, h: float = 16.0) -> Array:
    return (_step(subject, target, x, dim, h, np.zeros((2, x.shape[1]))) - x) / h


def _diffusion(subject: Subject, target: Target, x: Array, dim: int, h: float = 16.0) -> Array:
    """D (point, variable, variable): half the covariance of a step over h, to an error of order h."""
    n = x.shape[1]
    unit = np.eye(2 * n).reshape(2 * n, 2, n)[: n if is_explicit(subject.sampler.integrator) else 2 * n]
    both = [[_step(subject, target, x, dim, h, sign * e) for sign in (1.0, -1.0)] for e in unit]
    change = np.array([0.5 * (plus - minus) for plus, minus in both])
    covariance: Array = np.einsum("kni,knj->nij", change, change)
    return covariance / (2.0 * h)


def _slopes(sampler: Sampler, target: Target, x: Array, dim: int) -> tuple[Array, Array]:
    """∂_i H and ∂_ii H, from U', U'', differences of K, and F = (ξ − σ_p)²/(2γ/sharers)."""
    theta, p, xi = np.split(x, _cuts(sampler, dim), axis=1)
    k1, k2 = derivatives(lambda q: kinetic(sampler.kinetics, q)[0], p, np.abs(p)) if p.size else (p, p)
    f2 = np.ones_like(xi)
    if xi.size:
        f2 *= float(sharers(sampler.thermostat, dim)) / sampler.thermostat.gamma
    first = np.concatenate((target.gradient(theta), k1, f2 * (xi - sampler.sigma_p)), axis=1)
    return first, np.concatenate((target.hessian(theta), k2, f2), axis=1)


def residual(subject: Subject, target: Target, points: Array, dim: int = 1) -> Residual:
    """The residual at `points` (point, variable): θ, p, ξ in turn, `dim` coordinates each (or one ξ).

    The sampler must step by `Euler()`, with a fixed centre and nothing resampled; `points` stay away from p = 0, where some
    kinetics have only two derivatives. `target` may couple its coordinates; its `hessian` is then the diagonal.
    """
    x, T = np.asarray(points, float), subject.sampler.temperature
    drift = _drift(subject, target, x, dim)
    divergence = np.empty_like(x)
    sizes = np.where(x == 0.0, 1.0, np.abs(x))
    sizes[:, :dim] = target.size
    sizes[:, _cuts(subject.sampler, dim)[1] :] = 1.0

    for i in range(x.shape[1]):

        def of_one(values: Array, i: int = i) -> Array:
            moved = np.broadcast_to(x, (*values.shape, x.shape[1])).copy()
            moved[..., i] = values
            return _drift(subject, target, moved.reshape(-1, x.shape[1]), dim)[:, i].reshape(values.shape)

        divergence[:, i] = derivatives(of_one, x[:, i], sizes[:, i])[0]

    first, second = _slopes(subject.sampler, target, x, dim)
    diffusion = _diffusion(subject, target, x, dim)
    own = np.einsum("nii->ni", diffusion)
    crossed = np.einsum("nij,ni,nj->nij", diffusion, first, first) / T**2
    terms = [-divergence, drift * first / T, -own * second / T, crossed.reshape(len(x), -1)]
    joined = np.concatenate(terms, axis=1)
    return Residual(joined.sum(axis=1), np.abs(joined).sum(axis=1))


def generator_error(subject: Subject, target: Target, points: Array, dim: int = 1) -> tuple[float, float]:
    """How far drift and diffusion of a splitting, for h → 0, are from those of Euler's scheme, relative to their sizes.

    A step without noise is a smooth function of h: polynomials in h (Neville) through steps of h = 2⁻³ … 2⁻¹⁰ give its slope,
    smaller ones where friction or thermostat are fast. A kinetics that has no Taylor series at p = 0 needs kicks that do
    not cross it: at a = 3/4 the steps above leave 2e-3. Momenta of 1e5, as a = 5 has them, need no smaller steps for it: a
    slope of size 1 would be round-off of p.
    """
    x = np.asarray(points, float)
    euler = subject.with_(integrator=Euler())
    steps = 2.0 ** -np.arange(3.0, 11.0) / max(1.0, fastest(subject.sampler))
    if isinstance(subject.sampler.kinetics, MonomialGamma) and subject.sampler.kinetics.a not in (0.5, 1.0):
        steps = steps / min(max(64.0 / _quartile(subject.sampler), 1.0), 64.0)
    drifts = np.array([_drift(subject, target, x, dim, h) for h in steps])
    diffusions = np.array([_diffusion(subject, target, x, dim, h) for h in steps])
    drift, diffusion = _drift(euler, target, x, dim), _diffusion(euler, target, x, dim)
    size = 1.0 + np.abs(drift).max(axis=1, keepdims=True)
    return (
        float(np.max(np.abs(_to_zero(steps, drifts) - drift) / size)),
        float(np.max(np.abs(_to_zero(steps, diffusions) - diffusion)) / np.max(np.abs(diffusion))),
    )


def _to_zero(steps: Array, values: Array) -> Array:
    """The limit for h → 0 of values (h, ...): polynomials of rising degree; the one that changes least from its neighbours."""
    row, ends = list(values), [values[-1]]
    for order in range(1, len(steps)):
        row = [
            (steps[k] * row[k + 1] - steps[k + order] * row[k]) / (steps[k] - steps[k + order])
            for k in range(len(row) - 1)
        ]
        ends.append(row[-1])
    return _most_settled(np.array(ends))


# ---- the check -----------------------------------------------------------------------------------------------------------


def points_of(sampler: Sampler, target: Target, dim: int, n: int, seed: int, away: float = 0.1) -> Array:
    """Random points in the sampler's own laws, with |p| kept `away` times its quartile from 0."""
    rng = np.random.default_rng(seed)
    sizes = sampler.sizes(dim)
    parts: list[Array] = []
    for law, size in zip(laws_of(sampler, target, dim), (sizes.theta, sizes.p, sizes.xi), strict=True):
        if law is None:
            continue
        values = law.quantile(rng.uniform(0.001, 0.999, (n, size)))
        if len(parts) == 1:  # p
            least = away * float(law.quantile(0.75))
            values = np.where(np.abs(values) < least, np.copysign(least, values), values)
        parts.append(values)
    return np.concatenate(parts, axis=1)


def check_stationarity(
    subject: Subject | Sampler, target: Target = MIXTURE, dim: int = 1, points: int = 64, seed: int = 0
) -> Report:
    """Checks the Fokker–Planck residual of a sampler at random points of its law; for a splitting also its limit h → 0.

    Parameters
    ----------
    subject : Sampler or Subject
    target : Target
    dim, points : int
    seed : int

    Returns
    -------
    Report

    Examples
    --------
    >>> sg.testing.check_stationarity(sg.testing.Kernel(sg.SGNHT(0.1), name="SGNHT"), points=4)
    Fokker–Planck, SGNHT: 3 checks, passed
    """
    subject = plain(Kernel(subject) if isinstance(subject, Sampler) else subject)
    title = f"Fokker–Planck, {subject.name}"
    return Report(title, _stationarity(subject, target, dim, points, seed))


def _stationarity(subject: Subject, target: Target, dim: int, points: int, seed: int) -> Iterator[Finding]:
    what = f"{subject.name}; {target.name}, d = {dim}, T = {subject.sampler.temperature:g}"
    x = points_of(subject.sampler, target, dim, points, seed)
    detail = f"{points} points, seed {seed}"
    euler = subject.with_(integrator=Euler())
    found = residual(euler, target, x, dim).relative
    yield within("Fokker–Planck residual, relative", what, found, TOLERANCE, detail)
    if not is_explicit(subject.sampler.integrator):
        drift, diffusion = generator_error(subject, target, x, dim)
        bound = max(LIMIT, ROUNDING * _quartile(subject.sampler))
        yield within("drift of the splitting for h → 0", what, drift, bound, detail)
        yield within("diffusion of the splitting for h → 0", what, diffusion, bound, detail)


def _quartile(sampler: Sampler) -> float:
    """The upper quartile of the momenta; 0 without any."""
    if isinstance(sampler.kinetics, Overdamped):
        return 0.0
    return float(momentum_law(sampler.kinetics, sampler.temperature).quantile(0.75))


def cases(profile: str = "quick") -> Iterator[tuple[Kernel, int]]:
    """The samplers of the standard evidence, with their dimensions; quick ones need few compilations."""
    smooth = [Gaussian(2.0), MonomialGamma(1.0), MonomialGamma(2.0), MonomialGamma(1.5, 2.0, mass=0.7)]
    rough = [MonomialGamma(2.0, 5.0, 2.0), MonomialGamma(3.0, 2.0, 3.0), MonomialGamma(0.5), MonomialGamma(3.0)]
    full = profile == "full"
    for T in (1.0, 0.4, 2.5):
        yield Kernel(Sampler(0.1, kinetics=None, sigma_theta=0.7, sigma_p=0.0, temperature=T, integrator=Euler())), 3
        for kinetics in smooth + rough + ([Relativistic(1.5, 2.0)] if full else []):
            common: dict[str, Any] = {"kinetics": kinetics, "temperature": T, "integrator": Euler(), "sigma_p": 1.3}
            yield Kernel(Sampler(0.1, thermostat=NoseHoover(0.6, "coordinate", "fixed"), **common)), 1
            elliptic: dict[str, Any] = {"sigma_theta": 0.3, "sigma_xi": 0.8, **common}
            yield Kernel(Sampler(0.1, thermostat=NoseHoover(1.7, "coordinate", "fixed"), **elliptic)), 2
            if full:
                yield Kernel(Sampler(0.1, **common)), 5
                yield Kernel(Sampler(0.1, thermostat=NoseHoover(1.7, "chain", "fixed"), **elliptic)), 5
                scale = np.array([0.3, 1.0, 2.0, 0.5, 1.5])
                yield Kernel(Sampler(0.1, thermostat=NoseHoover(1.7, "chain", "fixed"), scale=scale, **elliptic)), 5


def findings(profile: str = "quick", seed: int = 0) -> Iterator[Finding]:
    """The residual of many combinations, on an asymmetric and on a stiff target; then splittings in the limit h → 0."""
    from sgmcmc.testing.under_test import standard_subjects

    for k, (subject, dim) in enumerate(cases(profile)):
        yield from _stationarity(subject, (MIXTURE, QUARTIC)[k % 2], dim, 16, seed + k)
    for T in (1.0, 2.5) if profile == "full" else (2.5,):
        for subject in standard_subjects(temperature=T).values():
            yield from list(_stationarity(plain(subject), MIXTURE, 2, 16, seed))[1:]  # the first is above
