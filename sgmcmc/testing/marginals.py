"""Marginals: the momenta that the kernel draws, and θ, p and ξ after many steps, against their laws by quadrature.

Draws of momenta are independent, and so are copies of a chain at a given time: plain tests of Kolmogorov and Smirnov, χ² and
z hold, each at the level that keeps false alarms of the whole family below 1e-4. Moments are taken of normal scores
t = Φ⁻¹(P(X ≤ x)), which are N(0, 1) whatever the law is, however long its tails.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators import Euler, is_explicit
from sgmcmc.integrators.state import State
from sgmcmc.kinetics import (
    Gaussian,
    LinearMonomial,
    MonomialGamma,
    Relativistic,
    acceptance,
    log_normaliser,
    specialise,
)
from sgmcmc.samplers import Sampler
from sgmcmc.testing.laws import Law, kinetic, momentum_law
from sgmcmc.testing.report import Finding, Report, within
from sgmcmc.testing.statistics import chi_square, kolmogorov, p_bound, z_bound, z_of_mean
from sgmcmc.testing.targets import MIXTURE, QUARTIC, Target
from sgmcmc.testing.under_test import Kernel, Subject, laws_of, standard_subjects
from sgmcmc.thermostats import NoseHoover

__all__ = ["after_steps", "check_marginals", "check_momentum_law", "findings", "first_attempts"]

Array = NDArray[np.float64]
FAMILY = 1000  # tests in the whole of this module's evidence, at most: |z| < 5.33, p > 1e-7


def _compare(what: str, subject: str, x: Array, law: Law, detail: str) -> Iterator[Finding]:
    """Five tests of values (copies, coordinates) against a law; coordinates of a copy may depend on each other."""
    from scipy.special import ndtri

    t = ndtri(np.clip(law.cdf(x), 1e-300, 1.0 - 1e-16))
    bound = z_bound(FAMILY)
    for name, score in (("mean", t), ("variance", t**2 - 1.0), ("skewness", t**3)):
        yield within(f"{what}: z of the {name} of normal scores", subject, z_of_mean(score.mean(axis=1)), bound, detail)
    for name, p in (
        ("Kolmogorov–Smirnov", kolmogorov(x[:, 0], law.cdf)),
        ("χ², 100 bins", chi_square(x[:, 0], law.quantile)),
    ):
        level = p_bound(FAMILY)
        yield Finding(f"{what}: p-value, {name}", subject, p, f"> {level:.1g}", bool(p > level), detail)


# ---- momenta -------------------------------------------------------------------------------------------------------------


def drawn_momenta(kinetics: Any, temperature: float, n: int, seed: int, dim: int = 4) -> Array:
    """Momenta (n/dim, dim) as a run with this seed draws them at its start."""
    sampler = Sampler(1e-12, kinetics=kinetics, temperature=temperature, integrator=Euler())
    subject = Kernel(sampler)
    return subject.draw_momenta(subject.start(np.zeros((n // dim, dim))), seed)


def check_momentum_law(kinetics: Any, temperature: float = 1.0, n: int = 200_000, seed: int = 0) -> Report:
    """Checks normaliser, derivatives, draws and rejection rate of a kinetics, by quadrature of exp(−K/T) alone.

    Parameters
    ----------
    kinetics : NamedTuple
    temperature : float
    n : int
        How many draws.
    seed : int

    Returns
    -------
    Report

    Examples
    --------
    >>> sg.testing.check_momentum_law(sg.kinetics.Gaussian(), n=2000)
    Momentum law of Gaussian(mass=1.0) at T = 1: 12 checks, passed
    """
    title = f"Momentum law of {kinetics!r} at T = {temperature:g}"
    return Report(title, _momentum_law(kinetics, temperature, n, seed))


def _momentum_law(kinetics: Any, T: float, n: int, seed: int) -> Iterator[Finding]:
    law, what = momentum_law(kinetics, T), f"{kinetics!r}, T = {T:g}"
    detail = f"n = {n}, seed {seed}"
    total, virial, square, bend = _even_integrals(kinetics, T)
    error = float(log_normaliser(kinetics, T)) - float(np.log(total))
    yield within("momentum: log normaliser − quadrature", what, error, 1e-9)
    yield within("momentum: E[p K']/T − 1 by quadrature", what, virial / (T * total) - 1.0, 1e-9)
    if getattr(kinetics, "softening", 1.0) < np.inf:  # the stiff law may have neither mean
        yield within("momentum: E[K'²]/E[T K''] − 1 by quadrature", what, square / (T * bend) - 1.0, 1e-9)

    p = drawn_momenta(kinetics, T, n, seed)
    yield from _compare("momentum draws", what, p.reshape(-1, 1), law, detail)
    energy, v, _ = kinetic(kinetics, p)
    mean_energy = law.mean(lambda q: kinetic(kinetics, q)[0])
    bound = z_bound(FAMILY)
    yield within("momentum draws: z of E[K]", what, z_of_mean(energy, mean_energy), bound, detail)
    yield within("momentum draws: z of E[p K']/T", what, z_of_mean(p * v / T, 1.0), bound, detail)
    yield within("momentum draws: z of E[sign p]", what, z_of_mean(np.sign(p)), bound, detail)
    together = p - law.mean(lambda q: q)
    z = z_of_mean(np.tanh(together[:, 0]) * np.tanh(together[:, 1]))
    yield within("momentum draws: z of the product of two coordinates", what, z, bound, detail)
    if isinstance(kinetics, MonomialGamma) and not isinstance(specialise(kinetics), LinearMonomial):
        yield from _rejection(kinetics, T, p.ravel(), p.shape[1], seed, what)


def _even_integrals(kinetics: Any, T: float) -> Array:
    """∫ f exp(−K/T) dp for f = 1, pK', K'² and K'', by Gauss's rule in log p, which no power of |p| at 0 disturbs."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    far = float(np.log(momentum_law(kinetics, T).x[-1]))
    edges = np.linspace(far - 150.0, far, 1001)
    half = 0.5 * np.diff(edges)[:, None]
    p = np.exp(edges[:-1, None] + half * (1.0 + nodes))
    energy, v, bend = kinetic(kinetics, p)
    mass = 2.0 * half * weights * p * np.exp(-energy / T)
    return np.array([float((mass * f).sum()) for f in (np.ones_like(p), p * v, v**2, bend)])


def first_attempts(kinetics: MonomialGamma, temperature: float, seed: int, n: int, dim: int) -> Array:
    """|p| of the first proposal for each of the first n momenta (copies of `dim` coordinates), before any rejection."""
    from sgmcmc.integrators.step import BEFORE_THE_FIRST_STEP
    from sgmcmc.kinetics.momentum_law import _gamma_attempt, tangent
    from sgmcmc.rng import MOMENTUM, normal_pair, stream, uniform, words

    _s0, slope = (float(x) for x in tangent(specialise(kinetics), temperature))
    p = np.empty(n)
    for i in range(n):
        own = stream(seed, i // dim)
        n_, _side = normal_pair(*words(own, BEFORE_THE_FIRST_STEP, i % dim, MOMENTUM, 0), 1.0)
        w = words(own, BEFORE_THE_FIRST_STEP, i % dim, MOMENTUM, 1)
        gamma, _log_accept = _gamma_attempt(kinetics.a, float(n_), float(uniform(w[0], w[1], 1.0)))
        p[i] = (gamma * temperature / slope * kinetics.mass) ** kinetics.a
    return p


def _rejection(k: MonomialGamma, T: float, p: Array, dim: int, seed: int, what: str) -> Iterator[Finding]:
    """The predicted acceptance against quadrature, and against the share of draws that are their own first proposal."""
    predicted = float(acceptance(k, T))
    best, gammas = _best_tangent(k, T)
    yield within("rejection: predicted acceptance − quadrature at the best tangent", what, predicted - best, 1e-6)
    tried = min(p.size // 100, 4000)
    same = np.abs(first_attempts(k, T, seed, tried, dim) / np.abs(p[:tried]) - 1.0) < 1e-9
    rate = predicted * gammas
    z = float((same.mean() - rate) / np.sqrt(max(rate * (1.0 - rate), 1e-12) / tried))
    detail = f"accepted at once: {same.mean():.4f}, predicted {rate:.4f} of {tried}"
    yield within("rejection: z of the measured acceptance", what, z, z_bound(FAMILY), detail)


def _best_tangent(k: MonomialGamma, T: float) -> tuple[float, float]:
    """(acceptance of proposals from the best tangent, acceptance of the gamma proposals of Marsaglia and Tsang)."""
    from scipy.optimize import brentq, minimize_scalar
    from scipy.special import gammaln

    def energy(s: float) -> float:
        return float(kinetic(k, np.array([(s * k.mass) ** k.a]))[0, 0])

    def slope(s: float) -> float:
        return float(np.tanh(0.5 * k.softening * s) ** k.order) if k.order > 0.0 else 1.0

    log_z = momentum_law(k, T).log_normaliser

    def loss(log_s: float) -> float:
        s = float(np.exp(log_s))
        envelope = np.log(2.0) + k.a * np.log(k.mass * T / slope(s)) + gammaln(k.a + 1.0)
        return float(envelope - (energy(s) - slope(s) * s) / T - log_z)

    top = np.log(brentq(lambda s: s * slope(s) - k.a * T, 1e-9, 1e9 * k.a * T)) if k.softening < np.inf else 0.0
    found = minimize_scalar(loss, bounds=(top - 3.0, top + 3.0), method="bounded", options={"xatol": 1e-10})
    shape = k.a + 1.0 if k.a < 1.0 else k.a
    d = shape - 1.0 / 3.0
    # E over n of exp(n²/2 + d(1 − v + log v)), v = (1 + n/√(9d))³, is a gamma integral in v.
    tried = np.sqrt(d / (2.0 * np.pi)) * np.exp(d + gammaln(shape) - shape * np.log(d))
    return float(np.exp(-found.fun)), float(tried)


# ---- θ, p and ξ of copies ------------------------------------------------------------------------------------------------


class After(NamedTuple):
    """Copies of a chain after some steps: θ where a draw is recorded, p and ξ at the step's point of symmetry."""

    theta: Array
    p: Array
    xi: Array


def after_steps(subject: Subject, target: Target, state: State, h: float, steps: int, seed: int) -> After:
    """Advance copies on the normals that a run with this seed would use."""
    before = 0.0
    for step in range(steps):
        noise = subject.draw_noise(state, seed, step)
        state = subject.move(state, target.gradient(state.theta), noise, before, h, step, seed)
        before = h
    if is_explicit(subject.sampler.integrator):
        return After(state.theta, state.p, state.xi)
    noise = subject.draw_noise(state, seed, steps)
    closed = subject.move(state, target.gradient(state.theta), noise, h, 0.0, steps, seed)
    return After(state.theta, closed.p, closed.xi)


def check_marginals(
    subject: Subject | Sampler,
    target: Target = MIXTURE,
    h: float = 0.02,
    steps: int = 200,
    copies: int = 20_000,
    dim: int = 1,
    seed: int = 0,
    xi: float | None = None,
) -> Report:
    """θ, p and ξ of independent copies after `steps` steps from an exact start; with `xi` all start with that thermostat.

    Small h: what the integrator adds, of order h², must be small beside 1/√copies.
    """
    subject = Kernel(subject) if isinstance(subject, Sampler) else subject
    return Report(f"Marginals of {subject.name}", _marginals(subject, target, h, steps, copies, dim, seed, xi))


def _marginals(
    subject: Subject, target: Target, h: float, steps: int, copies: int, dim: int, seed: int, xi: float | None
) -> Iterator[Finding]:
    laws, sizes = laws_of(subject.sampler, target, dim), subject.sampler.sizes(dim)
    rng = np.random.default_rng(seed)
    theta, p, thermostat = (
        None if law is None else law.draw(copies * n, rng).reshape(copies, n)
        for law, n in zip(laws, (dim, sizes.p, sizes.xi), strict=True)
    )
    if thermostat is not None and xi is not None:
        thermostat = np.full_like(thermostat, xi)
    assert theta is not None
    after = after_steps(subject, target, subject.start(theta, p, thermostat), h, steps, seed)
    what = f"{subject.name}; {target.name}, d = {dim}, T = {subject.sampler.temperature:g}"
    detail = f"{copies} copies, {steps} steps of {h:g}, seed {seed}" + ("" if xi is None else f", all from ξ = {xi:g}")
    for name, x, law in zip(("θ", "p", "ξ"), after, laws, strict=True):
        if law is not None:
            yield from _compare(f"law of {name}", what, x, law, detail)


# ---- the standard evidence -----------------------------------------------------------------------------------------------


def kinetics_for(profile: str) -> list[Any]:
    few = [Gaussian(2.0), MonomialGamma(1.0), MonomialGamma(2.0), MonomialGamma(1.5, 2.0, mass=0.7)]
    if profile == "quick":
        return few
    more = [MonomialGamma(a, c, r) for a, c, r in ((0.5, None, None), (1, 5, 2), (2, 5, 2), (3, None, None), (3, 2, 3))]
    return [*few, *more, MonomialGamma(2.0, np.inf), Relativistic(1.5, 2.0), Relativistic(0.3, 0.5)]


def findings(profile: str = "quick", seed: int = 0) -> Iterator[Finding]:
    """Momentum laws of all kinetics, then θ, p and ξ of the standard samplers, from exact starts and from one ξ."""
    full = profile == "full"
    for T in (1.0, 0.3, 2.5) if full else (1.0, 2.5):
        for kinetics in kinetics_for(profile):
            yield from _momentum_law(kinetics, T, 300_000 if full else 100_000, seed)
    copies = 20_000 if full else 5_000
    for T in (1.0, 2.5) if full else (2.5,):
        for name, subject in standard_subjects(0.02, T).items():
            target = QUARTIC if "a = 1" in name else MIXTURE
            yield from _marginals(subject, target, 0.02, 100 if full else 50, copies, 1, seed, None)
    for per, dim in (("coordinate", 2), ("chain", 3)) if full else (("coordinate", 1),):
        yield from _from_one_xi(per, dim, copies // 2, seed)


def _from_one_xi(per: str, dim: int, copies: int, seed: int) -> Iterator[Finding]:
    """All copies start three standard deviations off in ξ; noise on ξ, or fresh draws of it, must spread them over its law."""
    common: dict[str, Any] = {"kinetics": MonomialGamma(1.0), "temperature": 1.5, "sigma_p": 1.2}
    thermostat = NoseHoover(0.7, per, "fixed")
    far = 1.2 + 3.0 * float(np.sqrt(0.7 * 1.5 / (dim if per == "chain" else 1)))
    for name, settings in (("noise on ξ", {"sigma_xi": 0.8}), ("ξ resampled", {"resample_thermostat": 50})):
        subject = Kernel(Sampler(0.05, thermostat=thermostat, **common, **settings), f"{name}, thermostat per {per}")
        yield from _marginals(subject, QUARTIC, 0.05, 500, copies, dim, seed, far)
