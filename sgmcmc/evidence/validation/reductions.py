"""Reductions: the samplers contain one another, exactly or as limits.

Equal, trajectory by trajectory on the same random numbers: SGMGT-D(σ_θ = σ_ξ = 0) is SGMGT; with a = 1/2 and m = 2 (K = p²/2)
it is SGNHT, and without thermostat SGHMC; SGNHT whose thermostat is too slow to move is SGHMC.

Limits, with their rate: BAOAB with friction A → ∞ is θ' = θ − (h²/2)U'(θ) + (h/2)√T(n + n'), which is our SGLD with the step
size h²/2, and the gap falls like e^{−Ah}. The monomial kinetics with order r = 2a − 1 goes to the Gaussian like a − 1/2, in
law and in trajectory. Softened kinetics goes to the stiff one: in law like c^{−2} (a = 1: ∫(K_c − K) = π²/(6c²) per side),
in trajectory, where there is no friction, like 1/c: the probability that a momentum meets the softened part.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators import SymmetricSplitting
from sgmcmc.integrators.state import Noise, State
from sgmcmc.kinetics import Gaussian, MonomialGamma
from sgmcmc.samplers import Sampler
from sgmcmc.samplers.presets import SGHMC, SGLD, SGMGT, SGMGTD, SGNHT
from sgmcmc.testing.laws import momentum_law
from sgmcmc.testing.report import Finding, Report, within
from sgmcmc.testing.targets import SKEW, Target
from sgmcmc.testing.under_test import Kernel, Subject

__all__ = [
    "check_equal",
    "equal_pairs",
    "findings",
    "law_gap",
    "overdamped_gap",
    "rate",
    "trajectory_gap",
]

Array = NDArray[np.float64]
ROUND_OFF = 1e-11


def _subject(sampler: Sampler | Subject) -> Subject:
    return Kernel(sampler) if isinstance(sampler, Sampler) else sampler


def _size(subject: Subject) -> float:
    return float(subject.sampler.schedule.step_sizes(np.array([0]))[0])


def trajectories(
    sampler: Sampler | Subject, target: Target, steps: int, theta: Array, p: Array | None, seed: int
) -> Array:
    """θ of copies (steps, copies, dim) on the random numbers of a run with this seed; ξ starts at σ_p."""
    subject = _subject(sampler)
    h, state, out = _size(subject), subject.start(theta, p), []
    for t in range(steps):
        noise = subject.draw_noise(state, seed, t)
        state = subject.move(state, target.gradient(state.theta), noise, h if t else 0.0, h, t, seed)
        out.append(state.theta)
    return np.array(out)


def trajectory_gap(
    one: Sampler | Subject,
    two: Sampler | Subject,
    target: Target = SKEW,
    steps: int = 100,
    copies: int = 50,
    seed: int = 3,
    average: bool = False,
) -> float:
    """The largest (or the mean) distance between two samplers from the same start on the same random numbers."""
    rng = np.random.default_rng(seed)
    theta, p = rng.normal(size=(copies, 2)), rng.normal(size=(copies, 2))
    gap = np.abs(trajectories(one, target, steps, theta, p, seed) - trajectories(two, target, steps, theta, p, seed))
    return float(gap.mean() if average else gap.max())


def equal_pairs(h: float = 0.05, T: float = 1.0, off: float = 1.0) -> dict[str, tuple[Sampler, Sampler]]:
    """Samplers that are one and the same; `off` multiplies the friction of the second one (1 but in negative controls)."""
    split: dict[str, Any] = {"integrator": SymmetricSplitting(), "temperature": T}
    plain: dict[str, Any] = {
        "resample_momentum": None,
        "resample_thermostat": None,
        "temperature": T,
        "center": "fixed",
    }
    half: dict[str, Any] = {"a": 0.5, "mass": 2.0, "sigma_theta": 0.0, "sigma_p": 1.5, "sigma_xi": 0.0, **plain}
    calm: dict[str, Any] = {"sigma_theta": 0.0, "sigma_xi": 0.0, **plain}
    pairs = {
        "SGMGT-D(a = 1/2, no thermostat) = SGHMC": (SGMGTD(h, gamma=0.0, **half), SGHMC(h, 1.5 * off, **split)),
        "SGMGT-D(a = 1/2, σ_θ = σ_ξ = 0) = SGNHT": (SGMGTD(h, gamma=0.7, **half), SGNHT(h, 1.5 * off, 0.7, **split)),
        "SGNHT(γ → 0) = SGHMC": (SGNHT(h, 1.5, 1e-15, temperature=T), SGHMC(h, 1.5 * off, temperature=T)),
    }
    for a in (1, 2):
        name = f"SGMGT-D(a = {a}, σ_θ = σ_ξ = 0) = SGMGT"
        pairs[name] = SGMGTD(h, a=a, **calm), SGMGT(h, a=a, diffusion=off, **plain)
    return pairs


def check_equal(one: Sampler | Subject, two: Sampler | Subject, name: str = "") -> Report:
    """That two samplers are the same, trajectory by trajectory."""
    title = name if name else f"{_subject(one).name} = {_subject(two).name}"
    gap = trajectory_gap(one, two)
    return Report(title, [within("reduction, trajectory", title, gap, ROUND_OFF, "100 steps, 50 copies, skew target")])


def overdamped_gap(friction: float, h: float = 0.3, T: float = 1.0, steps: int = 50, target: Target = SKEW) -> float:
    """The distance of BAOAB at a large friction from SGLD with the step size h²/2, on the same normals."""
    heavy, light = Kernel(SGHMC(h, friction, temperature=T)), Kernel(SGLD(0.5 * h * h, T))
    eta, rng = 0.5 * h * h, np.random.default_rng(5)
    theta, p = rng.normal(size=(20, 2)), np.sqrt(T) * rng.normal(size=(20, 2))
    one, two = heavy.start(theta, p), light.start(theta)
    two = State(*two[:-1], 0.5 * h * p)  # the half of the noise that is still to come is half a drift with the old p
    worst, none = 0.0, np.zeros((20, 0))
    for t in range(steps):
        n = rng.normal(size=theta.shape)
        one = heavy.move(one, target.gradient(one.theta), Noise(n, np.zeros_like(n), none), h, h, t)
        two = light.move(two, target.gradient(two.theta), Noise(none, n, none), eta, eta, t)
        worst = max(worst, float(np.abs(one.theta - two.theta).max()))
    return worst


def law_gap(one: Any, two: Any, temperature: float = 1.0) -> float:
    """The largest distance between the distribution functions of two kinetics' momenta."""
    p = np.linspace(0.0, 8.0, 4001)
    gap = momentum_law(one, temperature).cdf(p) - momentum_law(two, temperature).cdf(p)
    return float(np.abs(gap).max())


def rate(gap: Callable[[float], float], first: float, second: float) -> float:
    """The exponent of a gap in its parameter, between two values."""
    return float(np.log(gap(first) / gap(second)) / np.log(first / second))


def near_half(epsilon: float) -> MonomialGamma:
    """a = 1/2 + ε, with the order 2a − 1 that is smooth at a = 1/2 too."""
    return MonomialGamma(0.5 + epsilon, order=2.0 * epsilon, mass=2.0)


def _limits(T: float) -> Iterator[Finding]:
    split: dict[str, Any] = {"integrator": SymmetricSplitting(), "temperature": T}

    def of(kinetics: Any, sigma_p: float = 1.0) -> Sampler:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that the kinetics is stiff for this step is the point
            return Sampler(0.02, kinetics, sigma_p=sigma_p, **split)

    def a_law(epsilon: float) -> float:
        return law_gap(near_half(epsilon), MonomialGamma(0.5, mass=2.0), T)

    def a_path(epsilon: float) -> float:
        return trajectory_gap(of(near_half(epsilon)), of(Gaussian()), steps=50)

    def c_law(c: float) -> float:
        return law_gap(MonomialGamma(1.0, c), MonomialGamma(1.0, np.inf), T)

    def c_path(c: float) -> float:
        # Hardly any friction: dry friction brings p to rest at 0, where the limit is not uniform.
        pair = of(MonomialGamma(1.0, c), 1e-9), of(MonomialGamma(1.0, np.inf), 1e-9)
        return trajectory_gap(*pair, steps=5, copies=4000, average=True)

    gaps = [overdamped_gap(A, T=T) for A in (15.0, 30.0, 45.0)]
    speed = float(np.log(gaps[0] / gaps[2]) / (30.0 * 0.3))
    detail = f"gaps {gaps[0]:.1e}, {gaps[1]:.1e}, {gaps[2]:.1e} at A = 15, 30, 45, h = 0.3"
    yield within("reduction, rate", f"SGHMC → SGLD(h²/2), e^(−rate·Ah), T = {T:g}", speed - 1.0, 0.1, detail)
    yield within("reduction, limit", f"SGHMC → SGLD(h²/2), A = 150, T = {T:g}", overdamped_gap(150.0, T=T), ROUND_OFF)
    rates = [
        ("a → 1/2, law of p, ∝ a − 1/2", a_law, 1e-3, 1e-4, 1.0, 0.05),
        ("a → 1/2, trajectory, ∝ a − 1/2", a_path, 1e-4, 1e-5, 1.0, 0.1),
        ("softening → ∞, law of p, ∝ c^−2", c_law, 400.0, 100.0, -2.0, 0.05),
        ("softening → ∞, trajectory, ∝ 1/c", c_path, 800.0, 100.0, -1.0, 0.25),
    ]
    for name, gap, first, second, expected, slack in rates:
        found, last = rate(gap, first, second), gap(first if expected < 0 else second)
        detail = f"rate {found:.3f}, smallest gap {last:.1e}"
        yield within("reduction, rate − theory", f"{name}, T = {T:g}", found - expected, slack, detail)


def findings(profile: str = "quick", seed: int = 0) -> Iterator[Finding]:
    """Equal samplers, and limits with their rates, at two temperatures."""
    for T in (1.0, 2.0):
        steps = 2000 if profile == "full" else 100
        for name, (one, two) in equal_pairs(T=T).items():
            gap = trajectory_gap(one, two, steps=steps, seed=seed + 3)
            yield within("reduction, trajectory", f"{name}, T = {T:g}", gap, ROUND_OFF, f"{steps} steps × 50 copies")
        yield from _limits(T)
