"""One-step invariance without any randomness: starts and normals on a product of quadrature rules.

A step is a smooth function of its start and of its normals, so E φ after a step from the exact law is an integral over few
variables. In normal scores the trapezium rule converges exponentially for θ and p, and a Gauss–Hermite rule of n nodes is exact
for noise up to order h^n. So the order of the defect in h can be read off at step sizes far below what sampling could resolve.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.kinetics import MonomialGamma
from sgmcmc.samplers import Sampler
from sgmcmc.testing.invariance import one_step, order_of, test_functions
from sgmcmc.testing.report import Finding
from sgmcmc.testing.statistics import Slope
from sgmcmc.testing.targets import QUARTIC, SKEW, Target
from sgmcmc.testing.time_scales import fastest
from sgmcmc.testing.under_test import Kernel, Subject, standard_subjects

__all__ = ["check_order", "defect_size", "quadrature_defects", "quadrature_slope", "resolvable", "subjects"]

Array = NDArray[np.float64]
MOST = 3_000_000  # copies; beyond that sampling is quicker


def _trapezium(spacing: float, reach: float = 7.0) -> tuple[Array, Array]:
    t = np.arange(-reach, reach + 0.5 * spacing, spacing)
    weight = np.exp(-0.5 * t * t)
    return t, weight / weight.sum()


def _graded(core: float, spacing: float, reach: float = 7.0) -> tuple[Array, Array]:
    """The trapezium rule in u, t = core·sinh(u): fine near 0, where a heavy-tailed kinetics bends, coarse far out."""
    u = np.arange(-1.0, 1.0 + 1e-9, spacing / np.arcsinh(reach / core)) * np.arcsinh(reach / core)
    u -= u.mean()
    t = core * np.sinh(u)
    weight = np.exp(-0.5 * t * t) * np.cosh(u)
    return t, weight / weight.sum()


def _hermite(n: int) -> tuple[Array, Array]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    return nodes, weights / weights.sum()


def _rules(sampler: Sampler, nodes: int) -> list[tuple[Array, Array]]:
    """A rule for each of the variables of `one_step` in one dimension; one node where a variable is not used."""
    sizes = sampler.sizes(1)
    nothing = np.zeros(1), np.ones(1)
    sharp = isinstance(sampler.kinetics, MonomialGamma) and sampler.kinetics.a > 0.5
    momentum = _trapezium(0.5)
    if sharp:
        momentum = _graded(0.3, 0.25) if sampler.kinetics.a <= 1.0 else _graded(0.05, 0.14)
    noise = _hermite(nodes)
    euler = order_of(sampler) == 2
    kinds = [
        (sizes.theta, _trapezium(0.35)),
        (sizes.p, momentum),
        (sizes.xi, _hermite(nodes + 1)),
        (sizes.p, noise if sampler.sigma_p > 0.0 else nothing),
        (sizes.theta, noise if sampler.sigma_theta > 0.0 else nothing),
        (sizes.xi, noise if sampler.sigma_xi > 0.0 else nothing),
        (sizes.pending, noise),
        (sizes.p, nothing if euler or sampler.sigma_p == 0.0 or _noise_in_the_middle(sampler) else noise),
        (sizes.xi, nothing if euler or sampler.sigma_xi == 0.0 else noise),
    ]
    return [rule for size, rule in kinds if size]


def _noise_in_the_middle(sampler: Sampler) -> bool:
    """Whether what closes a step brings no noise to p, as with BAOAB, which has it in O."""
    flows = sampler.integrator.cycle.flows
    return not any(f.before > 0.0 and set(f.letters) & set("NO") for f in flows)


def quadrature_defects(subject: Subject, target: Target, h: float, nodes: int = 5) -> dict[str, float]:
    """E φ after one step of size h minus E φ before it, in units of φ's standard deviation, for every test function."""
    rules = _rules(subject.sampler, nodes)
    size = int(np.prod([t.size for t, _ in rules]))
    if size > MOST:
        raise ValueError(
            f"{subject.name} has {len(rules)} variables, too many for a product of rules; use one_step_defects"
        )
    grids = np.meshgrid(*(t for t, _ in rules), indexing="ij")
    weight = np.ones(())
    for _, w in rules:
        weight = np.multiply.outer(weight, w)
    normals = np.zeros((size, 10))
    for column, grid in enumerate(grids):
        normals[:, column] = grid.ravel()
    mass = weight.ravel()
    begin, end = (test_functions(subject.sampler, q) for q in one_step(subject, target, h, normals))
    found = {}
    for name, before in begin.items():
        mean = float(mass @ before)
        spread = float(np.sqrt(mass @ (before - mean) ** 2))
        found[name] = float(mass @ (end[name] - before)) / spread
    return found


FLOOR = 5e-5  # below it a defect may be one of the rules (mass 4: 1.8e-5); a friction 5 % off has 1e-3
_KNOWN: dict[Any, float] = {}


def defect_size(subject: Subject, target: Target, h: float, nodes: int = 5) -> float:
    """The norm of all defects; computed once, so that the picture shows what was judged and costs nothing."""
    key = type(subject), subject.name, repr(subject.sampler), target.name, round(h, 12), nodes
    if key not in _KNOWN:
        _KNOWN[key] = float(np.linalg.norm(list(quadrature_defects(subject, target, h, nodes).values())))
    return _KNOWN[key]


def quadrature_slope(
    subject: Sampler | Subject, target: Target = QUARTIC, h: float = 0.08, nodes: int = 5
) -> tuple[Slope, float]:
    """The exponent of the defect at h, h/2 and h/4 (the interval is spanned by the two pairs), and its size at h/4."""
    subject = Kernel(subject) if isinstance(subject, Sampler) else subject
    sizes = [defect_size(subject, target, step, nodes) for step in (h, 0.5 * h, 0.25 * h)]
    first, last = np.log2(np.array(sizes[:-1]) / np.array(sizes[1:]))
    return Slope(float(last), float(min(first, last)), float(max(first, last))), sizes[-1]


def check_order(subject: Sampler | Subject, target: Target = QUARTIC, h: float = 0.08, slack: float = 0.2) -> Finding:
    """That the defect of one step falls like h² (Euler) or h³ (splittings), or faster, at step sizes that are small enough."""
    subject = Kernel(subject) if isinstance(subject, Sampler) else subject
    k = order_of(subject.sampler)
    slope, size = quadrature_slope(subject, target, h)
    where = f"{subject.name}, {target.name}, T = {subject.sampler.temperature:g}"
    steps = f"h = {h:g}, {h / 2:g}, {h / 4:g}"
    detail = f"slopes {slope.low:.3f} … {slope.high:.3f} at {steps}; defect {size:.1e} at the last; no randomness"
    return Finding(
        "one-step defect by quadrature, order",
        where,
        slope.value,
        f"≥ {k} − {slack:g}",
        slope.value >= k - slack or (size < FLOOR and slope.high >= k - slack),
        detail,
        slack,
    )


def findings(profile: str = "quick", seed: int = 0) -> Iterator[Finding]:
    """The samplers with few enough variables. The kicks of noise must be narrow against the bend of the kinetics at p = 0:

    for a = 2 a softening of 1.5 in place of 3 brings that to step sizes at which the rules still resolve the defect.
    """
    for T, target in ((1.0, QUARTIC), (0.5, SKEW))[: 2 if profile == "full" else 1]:
        for euler in (False, True):
            for subject, h in subjects(T, euler):
                yield check_order(subject, target, h)


def subjects(temperature: float = 1.0, euler: bool = False) -> Iterator[tuple[Subject, float]]:
    """The samplers with few enough variables, and the largest step for each."""
    for name, subject in standard_subjects(0.1, temperature, euler).items():
        if not name.startswith("SGMGT-D"):
            yield resolvable(subject)


def resolvable(subject: Subject) -> tuple[Subject, float]:
    """The sampler with a kinetics whose order shows at steps that the rules resolve (see `findings`), and the largest of them."""
    kinetics = subject.sampler.kinetics
    if isinstance(kinetics, MonomialGamma) and kinetics.a > 1.0:
        subject = subject.with_(kinetics=MonomialGamma(kinetics.a, 1.5))
        return subject, 0.16 / max(1.0, fastest(subject.sampler))
    largest = 0.08 if subject.sampler.sigma_theta == 0.0 else 0.04
    return subject, largest / max(1.0, fastest(subject.sampler), subject.sampler.temperature**0.5)
