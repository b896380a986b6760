"""The published a = 2 kinetics: its curvature has no bound, and what that does to the thermostat.

Softened with order r = 2, K ≈ (c²/12)|p|^{3/2} near 0, so K'' ≈ (c²/16)|p|^{−1/2} is unbounded. With the density f(0) of p at 0

    E[K''²; |p| > ε] = 2 f(0) (c²/16)² log(1/ε) + …   → ∞,     P(K'' > x) ≈ 2 f(0) (c²/16)² x^{−2},

so the thermostat's increments γ (K'² − T K'') have no variance, and single kicks throw ξ far off. The smooth form, r = 3, has
K'' ≤ K''(0) = (c/2)³/2, and none of this. (Mass 1; MATH: "the published a = 2 form is not smooth".)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.kinetics import MonomialGamma
from sgmcmc.samplers import Sampler
from sgmcmc.testing.laws import kinetic, momentum_law
from sgmcmc.testing.marginals import drawn_momenta
from sgmcmc.testing.report import Finding, within
from sgmcmc.testing.statistics import z_bound
from sgmcmc.testing.targets import GAUSSIAN
from sgmcmc.testing.under_test import Kernel
from sgmcmc.thermostats import NoseHoover

__all__ = ["Run", "curvature_exponent", "figure", "findings", "growth_per_log", "hill", "run"]

Array = NDArray[np.float64]


def published(softening: float = 5.0) -> MonomialGamma:
    return MonomialGamma(2.0, softening, 2.0)


def smooth(softening: float = 5.0) -> MonomialGamma:
    return MonomialGamma(2.0, softening, 3.0)


def curvature_exponent(kinetics: Any) -> float:
    """The exponent of |p| in K''(p) between 1e-12 and 1e-8: −1/2 for the published form, 0 for a smooth one."""
    p = np.geomspace(1e-12, 1e-8, 9)
    return float(np.polyfit(np.log(p), np.log(kinetic(kinetics, p)[2]), 1)[0])


def partial_square(kinetics: Any, temperature: float, epsilon: float) -> float:
    """E[K''²; |p| > ε], by Gauss's rule in log p."""
    law = momentum_law(kinetics, temperature)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    edges = np.linspace(np.log(epsilon), np.log(float(law.quantile(1.0 - 1e-14))), 400)
    half = 0.5 * np.diff(edges)[:, None]
    p = np.exp(edges[:-1, None] + half * (1.0 + nodes))
    return float((2.0 * half * weights * p * law.density(p) * kinetic(kinetics, p)[2] ** 2).sum())


def growth_per_log(kinetics: Any, temperature: float = 1.0, low: float = 1e-16, high: float = 1e-10) -> float:
    """What E[K''²; |p| > ε] gains for every factor e that ε shrinks by; 2 f(0)(c²/16)² if published, 0 if smooth."""
    gain = partial_square(kinetics, temperature, low) - partial_square(kinetics, temperature, high)
    return gain / float(np.log(high / low))


def hill(values: Array) -> tuple[float, float]:
    """Hill's estimate of the tail index, P(X > x) ~ x^{−index}, from the largest values, and its standard error.

    Of n values it takes √(n/10): a share that shrinks with n, so that the bias (further in, K'' is no power of p: 8 % of the
    index at a share of 1e-3 for c = 5, T = 2) stays below the standard error.
    """
    x = np.sort(np.asarray(values, float).ravel())
    k = max(int(np.sqrt(0.1 * x.size)), 10)
    index = 1.0 / float(np.mean(np.log(x[-k:] / x[-k - 1])))
    return index, index / float(np.sqrt(k))


class Run(NamedTuple):
    """What became of copies of a chain on a Gaussian target of variance T."""

    variance: float  # of θ over all copies and the second half of the run, over T
    lost: float  # the share of copies whose ξ was ever more than ten standard deviations off
    mean: Array  # over copies of θ²/T, step by step
    lowest: float  # the lowest ξ


def run(
    kinetics: Any,
    h: float = 0.1,
    steps: int = 2000,
    copies: int = 500,
    temperature: float = 1.0,
    seed: int = 0,
) -> Run:
    """SGMGT with σ_p = γ = 1 and a fixed centre, nothing resampled, from an exact start in all variables."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that this is stiff is the point
        sampler = Sampler(
            h, kinetics=kinetics, thermostat=NoseHoover(1.0, "coordinate", "fixed"), temperature=temperature
        )
    subject = Kernel(sampler)
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(copies, 1)) * np.sqrt(temperature)
    xi = 1.0 + rng.normal(size=(copies, 1)) * np.sqrt(temperature)
    state = subject.start(theta, momentum_law(kinetics, temperature).draw(copies, rng)[:, None], xi)
    mean, lowest, before = np.empty(steps), np.full(copies, np.inf), 0.0
    for step in range(steps):
        noise = subject.draw_noise(state, seed, step)
        state = subject.move(state, GAUSSIAN.gradient(state.theta), noise, before, h, step, seed)
        before = h
        mean[step] = float(np.mean(np.clip(state.theta, -1e9, 1e9) ** 2)) / temperature
        lowest = np.minimum(lowest, state.xi[:, 0])
    lost = float(np.mean(lowest < 1.0 - 10.0 * np.sqrt(temperature)))
    return Run(float(mean[steps // 2 :].mean()), lost, mean, float(lowest.min()))


def findings(profile: str = "quick", seed: int = 0) -> Iterator[Finding]:
    """Curvature, its second moment and the tail of the thermostat's increments, published beside smooth; then short runs."""
    full = profile == "full"
    for c, T in ((5.0, 1.0), (3.0, 2.0), (5.0, 2.0), (3.0, 1.0))[: None if full else 2]:
        yield from _curvature(c, T, 2_000_000 if full else 100_000, seed)
        yield from _runs(c, T, 2000 if full else 300, 4000 if full else 1000, seed)


def _runs(c: float, T: float, copies: int, steps: int, seed: int) -> Iterator[Finding]:
    """What h = 0.1 makes of both forms; the smooth one at c = 5 is stiff for this step, but nothing is thrown off."""
    for form in (published, smooth):
        out, wrong = run(form(c), 0.1, steps, copies, T, seed), form is published
        name, who = f"a = 2, c = {c:g}, T = {T:g}", f"{form.__name__} a = 2"
        detail = f"h = 0.1, {copies} copies, {steps} steps from the exact law, lowest ξ {out.lowest:.2g}, seed {seed}"
        yield Finding(
            f"{who}: share of copies with ξ thrown over 10 standard deviations off",
            name,
            out.lost,
            "≥ 0.03" if wrong else "= 0",
            out.lost >= 0.03 if wrong else out.lost == 0.0,
            detail,
        )
        yield Finding(
            f"{who}: variance of θ over truth",
            name,
            out.variance,
            "≥ 1.2" if wrong else "0.75 to 1.25",
            out.variance >= 1.2 if wrong else 0.75 < out.variance < 1.25,
            detail,
        )


def _curvature(c: float, T: float, n: int, seed: int) -> Iterator[Finding]:
    rough, fine, name = published(c), smooth(c), f"a = 2, c = {c:g}, T = {T:g}"
    yield within("published a = 2: exponent of K'' at 0, + 1/2", name, curvature_exponent(rough) + 0.5, 1e-3)
    yield within("smooth a = 2: exponent of K'' at 0", name, curvature_exponent(fine), 1e-3)
    peak = 2.0 * float(momentum_law(rough, T).density([0.0])[0]) * (c * c / 16.0) ** 2
    gain = growth_per_log(rough, T) / peak - 1.0
    yield within("published a = 2: growth of E[K''²; |p| > ε] per log(1/ε), over theory, − 1", name, gain, 1e-3)
    yield within("smooth a = 2: growth of E[K''²; |p| > ε] per log(1/ε)", name, growth_per_log(fine, T), 1e-6)
    bends = kinetic(rough, drawn_momenta(rough, T, n, seed))[2]
    index, error = hill(bends)
    detail = f"{index:.3f} ± {error:.3f}, n = {n}, seed {seed}; an index of 2 or less has no variance"
    yield within(
        "published a = 2: z of Hill's index of K'' against 2", name, (index - 2.0) / error, z_bound(50), detail
    )
    most = float(np.max(kinetic(fine, drawn_momenta(fine, T, n, seed))[2])) / ((0.5 * c) ** 3 / 2.0)
    yield Finding("smooth a = 2: largest K'' drawn, over K''(0)", name, most, "≤ 1", most <= 1.0 + 1e-12, f"n = {n}")


def figure(axes: Any = None, seed: int = 0) -> Any:
    """K'' of both forms, and θ² over time; `axes` is a pair of matplotlib axes (None makes them). Gives the figure back."""
    import matplotlib.pyplot as plt

    if axes is None:
        _, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    p = np.geomspace(1e-8, 10.0, 400)
    for form, colour in ((published, "C3"), (smooth, "C0")):
        name = f"{form.__name__}, order {form().order:g}"
        axes[0].loglog(p, np.maximum(kinetic(form(), p)[2], 1e-6), colour, label=name)
        mean = run(form(), steps=1500, copies=200, seed=seed).mean
        axes[1].semilogy(0.1 * np.arange(mean.size), mean, colour, label=name)
    axes[0].set(xlabel="p", ylabel="K''(p)", title="a = 2, c = 5: curvature", ylim=(1e-2, None))
    axes[1].set(xlabel="time", ylabel="mean of θ² (truth 1)", title="SGMGT on a Gaussian, h = 0.1")
    for ax in axes:
        ax.legend()
    return axes[0].figure
