"""One-step invariance: copies that start in the law they should keep are moved by one step, and must still have it.

For a test function φ the defect is E φ(Γ₁) − E φ(Γ₀), Γ₀ exact. A right splitting has a defect of order h³ (a symmetry may
kill more), Euler one of h²; a wrong sampler has h. The expectations are integrals over few dimensions (start and normals),
taken by randomised quasi-Monte Carlo: scrambled Sobol points, the starts by quantiles. So a defect is known to 1e-5 or better,
with a standard error from independent scrambles, where a long run would know it to 1e-3.

Where in a step the law is that of exp(−H/T): at the gradient, with half of the kick done. `one_step` goes from one such point
to the next in two moves, the second of size 0, which closes the kick. With noise on θ of its own (σ_θ > 0) the gradient is
taken halfway through that noise, at x = y + s n, and the noise n comes again after it: what is carried from step to step is
(y, p before the kick). Its law follows from that of x by undoing the noise, y = x − s² U'(x)/(2T), which leaves an error of
h² in the law of the start and so, since one step changes by h what is not stationary, h³ in the defect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators import is_explicit, order
from sgmcmc.integrators.state import Noise
from sgmcmc.samplers import Sampler
from sgmcmc.testing.defects import Defects, fit_power
from sgmcmc.testing.laws import kinetic
from sgmcmc.testing.report import Finding, Report, within
from sgmcmc.testing.statistics import Slope, z_bound
from sgmcmc.testing.targets import GAUSSIAN, QUARTIC, SKEW, Target
from sgmcmc.testing.time_scales import fastest
from sgmcmc.testing.under_test import Kernel, Subject, laws_of, standard_subjects

__all__ = [
    "Point",
    "check_invariance",
    "findings",
    "invariance_z",
    "measure_order",
    "one_step",
    "one_step_defects",
    "test_functions",
]

Array = NDArray[np.float64]


class Point(NamedTuple):
    """Copies of (θ, p, ξ) at a point of symmetry; what a sampler does not have is empty."""

    theta: Array
    p: Array
    xi: Array


@lru_cache(maxsize=8)
def sobol_normals(columns: int, scrambles: int, log2_points: int, seed: int) -> Array:
    """Standard normals from independently scrambled Sobol points, one scramble under the other."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    rngs = np.random.default_rng([seed, columns]).spawn(scrambles)
    u = [qmc.Sobol(columns, scramble=True, rng=rng).random_base2(log2_points) for rng in rngs]
    normals: Array = ndtri(np.clip(np.concatenate(u), 1e-12, 1.0 - 1e-12))
    return normals


def order_of(sampler: Sampler) -> int:
    """The order in h that the defect of a right sampler has at least: one more than that of the integrator."""
    return (order(sampler.integrator) or 1) + 1


def one_step(
    subject: Subject, target: Target, h: float, normals: Array, dim: int = 1, seed: int = 0, step: int = 1
) -> tuple[Point, Point]:
    """The copies at their exact start and one step of size h later. `normals` is (copies, at least 10·dim)."""
    sampler = subject.sampler
    sizes, T = sampler.sizes(dim), sampler.temperature
    _, p_law, xi_law = laws_of(sampler, target, dim)
    kinds = [sizes.theta, sizes.p, sizes.xi, sizes.p, sizes.theta, sizes.xi, sizes.pending, sizes.p, sizes.xi]
    z = np.split(normals[:, : sum(kinds)], np.cumsum(kinds)[:-1], axis=1)
    gradient = target.gradient
    x = target.law(T).of_normal(z[0])
    p = np.zeros_like(z[1]) if p_law is None else p_law.of_normal(z[1])
    xi = np.zeros_like(z[2]) if xi_law is None else xi_law.of_normal(z[2])
    begin = x
    if sizes.pending:
        scale = np.broadcast_to(sampler.scale, (dim,))
        s = scale * np.sqrt(0.5 * sampler.sigma_theta * T * h)
        y = x - 0.5 * s**2 / T * gradient(x)
        x = y + s * z[6]
        begin = x + s * z[6] - 0.5 * h * sampler.sigma_theta * scale**2 * gradient(x)
        if sizes.p:
            p = p + 0.5 * h * scale * (gradient(y) - gradient(x))
    start = subject.start(begin, p if sizes.p else None, xi if sizes.xi else None)
    noise = Noise(*(np.array(n, order="C") for n in z[3:6]))
    after = subject.move(start, gradient(x), noise, 0.0, h, step, seed)
    if is_explicit(sampler.integrator):
        return Point(x, p, xi), Point(after.theta, after.p, after.xi)
    last = Noise(np.array(z[7], order="C"), np.zeros_like(noise.theta), np.array(z[8], order="C"))
    closed = subject.move(after, gradient(after.theta), last, h, 0.0, step + 1, seed)
    return Point(x, p, xi), Point(after.theta, closed.p, closed.xi)


def test_functions(sampler: Sampler, point: Point) -> dict[str, Array]:
    """φ(θ, p, ξ) per copy (means over coordinates): moments of each variable, and products that see crossed signs.

    Functions of p are bounded or grow no faster than K, so that they have small variances for heavy-tailed momenta too.
    """
    theta, p = point.theta, point.p
    out = {"θ": theta, "tanh θ": np.tanh(theta), "θ²": theta**2, "θ⁴": theta**4}
    if p.size:
        _, v, _ = kinetic(sampler.kinetics, p)
        out |= {"tanh p": np.tanh(p), "pK'": p * v, "K'²": v * v, "θK'": theta * v, "θ tanh p": theta * np.tanh(p)}
        out |= {"θ²K'²": theta**2 * v * v}
        if point.xi.size:
            x = point.xi - sampler.sigma_p
            out |= {"ξ": x, "ξ²": x * x, "ξ pK'": x * p * v, "ξθ²": x * theta**2, "ξθK'": x * theta * v}
    return {name: np.broadcast_to(f, theta.shape).mean(axis=1) for name, f in out.items()}


test_functions.__test__ = False  # type: ignore[attr-defined]  # not a test, whatever pytest thinks


def one_step_defects(
    subject: Subject,
    target: Target,
    h: float,
    seed: int = 0,
    scrambles: int = 16,
    log2_points: int = 12,
    dim: int = 1,
) -> Defects:
    """What one step of size h does to the law it should keep, by randomised quasi-Monte Carlo."""
    normals = sobol_normals(10 * dim, scrambles, log2_points, seed)
    begin, end = (test_functions(subject.sampler, q) for q in one_step(subject, target, h, normals, dim, seed))
    rows = [(end[n] - f).reshape(scrambles, -1).mean(axis=1) / f.std() for n, f in begin.items()]
    return Defects(tuple(begin), np.array(rows).T)


def invariance_z(
    subject: Subject,
    target: Target = SKEW,
    h: float = 0.03,
    seed: int = 0,
    scrambles: int = 32,
    log2_points: int = 11,
    dim: int = 1,
) -> tuple[float, str]:
    """The largest |z| over φ of a defect that is not of the order it should be, and the name of that φ.

    D(h) − D(2h)/2^k, with k the order of a right sampler, is free of its leading term; of a defect c·h it leaves three
    quarters (half for Euler). A fifth of D(2h)/2^k is allowed for the higher orders. The error comes from the scrambles by
    Student's t, whose tail is turned into that of a normal. A small h is best: the signal c·h is in noise of size √h, but
    the remainder falls like h⁴.
    """
    return invariance_power(subject, target, h, seed, scrambles, log2_points, dim)[:2]


def invariance_power(
    subject: Subject,
    target: Target = SKEW,
    h: float = 0.03,
    seed: int = 0,
    scrambles: int = 32,
    log2_points: int = 11,
    dim: int = 1,
) -> tuple[float, str, float]:
    """`invariance_z`, and the standard error of a defect c·h as a rate: of c, in standard deviations of φ per unit of time."""
    from scipy.special import ndtri_exp
    from scipy.stats import t as student

    one, two = (one_step_defects(subject, target, s * h, seed, scrambles, log2_points, dim) for s in (1.0, 2.0))
    share = 0.5 ** order_of(subject.sampler)
    rest = one.values - share * two.values
    error = rest.std(axis=0, ddof=1) / np.sqrt(scrambles)
    excess = np.maximum(np.abs(rest.mean(axis=0)) - 0.2 * share * np.abs(two.mean), 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(np.isfinite(excess), excess / np.maximum(error, 1e-300), np.inf)
    worst = int(np.argmax(t))
    tail = float(student.logsf(t[worst], scrambles - 1))
    z = float(-ndtri_exp(tail)) if np.isfinite(tail) else np.inf
    return z, one.names[worst], float(error[worst]) / ((1.0 - 2.0 * share) * h)


STEPS = (0.28, 0.2, 0.14, 0.1)


def defect_slope(
    subject: Subject,
    target: Target,
    steps: Iterable[float] = STEPS,
    seed: int = 0,
    scrambles: int = 16,
    log2_points: int = 12,
) -> Slope:
    """The exponent of the defects in h, with a 95 % interval. Every h has points of its own."""
    h = np.array(list(steps))
    runs = [one_step_defects(subject, target, s, 1000 * seed + i, scrambles, log2_points) for i, s in enumerate(h)]
    return fit_power(h, runs)


def measure_order(sampler: Sampler | Subject, potential: Target = QUARTIC, steps: Iterable[float] = STEPS) -> Slope:
    """Returns the order in h with which a sampler keeps its law, with a 95 % interval: 1 for Euler, 2 for a splitting.

    It is the exponent of the one-step defect minus one, since 1/h steps make a unit of time.

    Parameters
    ----------
    sampler : Sampler or Subject
    potential : Target
    steps : iterable of float

    Returns
    -------
    Slope

    Examples
    --------
    >>> euler = sg.testing.Reference(sg.SGLD(0.1, integrator=sg.integrators.Euler()))
    >>> round(sg.testing.measure_order(euler).value)
    1
    """
    subject = Kernel(sampler) if isinstance(sampler, Sampler) else sampler
    slope = defect_slope(subject, potential, steps)
    return Slope(*(value - 1.0 for value in slope))


def check_slope(subject: Subject, target: Target, seed: int = 0, scrambles: int = 16, log2_points: int = 12) -> Finding:
    """That the defect falls as fast with h as that of a right sampler: a slope whose interval reaches k, to the nearest half.

    At these h the slopes of the sharper kinetics (a = 2, softening 3) are still on their way to 3; see `fit_power`.
    """
    steps = tuple(h / max(1.0, fastest(subject.sampler)) for h in STEPS)
    k, slope = order_of(subject.sampler), defect_slope(subject, target, steps, seed, scrambles, log2_points)
    where = f"{subject.name}, {target.name}, T = {subject.sampler.temperature:g}"
    detail = f"slope in h {slope}, h = {steps[-1]:.3g} … {steps[0]:.3g}"
    power = 0.5 + slope.value - slope.low  # so much less in the exponent would have been seen
    passed = slope.high >= k - 0.5
    return Finding("one-step defect, order", where, slope.value, f"interval above {k} − 0.5", passed, detail, power)


def check_size(subject: Subject, target: Target, seed: int, bound: float) -> Finding:
    """That nothing is left of the defect at a small h but the term of the right order."""
    h = 0.03 / max(1.0, fastest(subject.sampler))
    z, name, error = invariance_power(subject, target, h, seed)
    where = f"{subject.name}, {target.name}, T = {subject.sampler.temperature:g}"
    detail = f"largest at φ = {name}, h = {h:.3g}, seed {seed}; power: change of E φ per unit of time"
    return within("one-step defect, size", where, z, bound, detail)._replace(power=bound * error)


def check_invariance(
    subject: Sampler | Subject, targets: Iterable[Target] = (GAUSSIAN, QUARTIC, SKEW), seed: int = 0
) -> Report:
    """Checks one-step invariance of a sampler: order of the defect in h, and its size at a small h.

    Parameters
    ----------
    subject : Sampler or Subject
    targets : iterable of Target
    seed : int

    Returns
    -------
    Report

    Examples
    --------
    >>> langevin = sg.testing.Reference(sg.SGLD(0.1), name="SGLD")
    >>> sg.testing.check_invariance(langevin, [sg.testing.targets.GAUSSIAN])
    One-step invariance of SGLD: 2 checks, passed
    """
    subject = Kernel(subject) if isinstance(subject, Sampler) else subject
    targets = list(targets)
    bound = z_bound(15 * len(targets))
    found = [check_size(subject, target, seed, bound) for target in targets]
    found += [check_slope(subject, target, seed) for target in targets]
    return Report(f"One-step invariance of {subject.name}", found)


def findings(profile: str = "quick", seed: int = 0) -> Iterator[Finding]:
    """All standard samplers, with both kinds of integrator; targets and temperatures by turns (three of nine in full).

    Orders are read off by quadrature where the variables are few enough, by sampling for SGMGT-D.
    """
    from sgmcmc.testing import quadrature

    places = [(target, T) for T in (1.0, 2.0, 0.5) for target in (SKEW, QUARTIC, GAUSSIAN)]
    subjects = [(euler, name) for euler in (False, True) for name in standard_subjects(euler=euler)]
    bound = z_bound(15 * len(subjects) * len(places))
    for i, (euler, name) in enumerate(subjects):
        mine = [places[(i + j) % len(places)] for j in (0, 4, 8)] if profile == "full" else [places[i % len(places)]]
        for target, T in mine:
            subject = standard_subjects(0.1, T, euler)[name]
            yield check_size(subject, target, seed, bound)
            if name.startswith("SGMGT-D"):
                yield check_slope(subject, target, seed, 16, 13 if profile == "full" else 11)
    yield from quadrature.findings(profile, seed)
