"""The Lyapunov oracle: the covariance that a sampler leaves stationary on a Gaussian target, with no Monte Carlo.

With a quadratic kinetics, a quadratic potential and a constant friction a step is x' = M x + N n, x the state and n the
normals. M and N are read off the real kernel by moving unit states without noise, and the state 0 with unit normals. The
stationary covariance solves C = M C Mᵀ + N Nᵀ; it is exact, bias of the integrator included, so that bias can be compared
with closed forms to round-off and its order in h read off.

A thermostat is held at its mean: SGNHT with ξ = σ_p is SGHMC, SGMGT-D with ξ = σ_p and a = 1/2, m = 2 (p²/2) is linear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators import BAOAB, Euler, SymmetricSplitting, order
from sgmcmc.integrators.state import Noise, State
from sgmcmc.kinetics import Gaussian, MonomialGamma
from sgmcmc.samplers import Sampler
from sgmcmc.samplers.presets import SGHMC, SGLD
from sgmcmc.testing.report import Finding, Report, within
from sgmcmc.testing.statistics import Slope, z_bound, z_of_mean
from sgmcmc.testing.time_scales import fastest
from sgmcmc.testing.under_test import Kernel, Subject

__all__ = [
    "LinearStep",
    "bias",
    "check_lyapunov",
    "euler_sghmc_variance",
    "euler_sgld_variance",
    "findings",
    "held",
    "run_z",
    "splitting_variance",
    "stationary_covariance",
    "variance_slope",
]

Array = NDArray[np.float64]


class LinearStep:
    """One step of a one-dimensional chain on U = k θ²/2, as a map of x = (θ, p, pending noise), and its noise."""

    def __init__(self, sampler: Sampler | Subject, k: float = 1.0) -> None:
        self.subject: Subject = Kernel(sampler) if isinstance(sampler, Sampler) else sampler
        self.k = k
        sizes = self.subject.sampler.sizes(1)
        if sizes.xi:
            raise ValueError("a thermostat is not linear; hold it at its mean with `held`")
        self.used = [sizes.theta, sizes.p, sizes.pending]
        self.normals = [sizes.p, sizes.theta, sizes.xi]
        self.size = sum(self.used)
        self.h = float(self.subject.sampler.schedule.step_sizes(np.array([0]))[0])

    def __call__(self, x: Any, n: Any = 0.0, step: int = 10) -> Array:
        """States x, one per row, after a step with the normals n, one row each.

        They are moved one at a time: all are the first copy, with the same fresh momentum if the step draws one.
        """
        x = np.atleast_2d(np.asarray(x, float))
        n = np.broadcast_to(n, (len(x), sum(self.normals)))
        return np.concatenate([self._one(x[i : i + 1], n[i : i + 1], step) for i in range(len(x))])

    def _one(self, x: Array, n: Array, step: int) -> Array:
        parts = np.split(x, np.cumsum(self.used)[:-1], axis=1)
        start = self.subject.start(parts[0], parts[1] if self.used[1] else None)
        start = State(*start[:-1], parts[2].copy())
        noise = Noise(*(np.array(a, order="C") for a in np.split(n, np.cumsum(self.normals)[:-1], axis=1)))
        after = self.subject.move(start, self.k * parts[0], noise, self.h, self.h, step, 0)
        return np.concatenate([after.theta, after.p, after.pending], axis=1)

    def matrix(self, step: int = 10) -> Array:
        """M, by moving unit states; whatever else the step adds is the same for all of them."""
        probes = self(np.vstack([np.zeros(self.size), np.eye(self.size)]), step=step)
        columns: Array = (probes[1:] - probes[0]).T
        return columns

    def noise_matrix(self, step: int = 10) -> Array:
        """N, by moving the state 0 with unit normals."""
        count = sum(self.normals)
        normals = np.vstack([np.zeros(count), np.eye(count)])
        probes = self(np.zeros((count + 1, self.size)), normals, step)
        columns: Array = (probes[1:] - probes[0]).T
        return columns

    def nonlinearity(self, seed: int = 0) -> float:
        """How far a step from random states with random normals is from M x + N n; round-off if it is linear."""
        rng = np.random.default_rng(seed)
        x, n = rng.normal(size=(20, self.size)), rng.normal(size=(20, sum(self.normals)))
        return float(np.abs(self(x, n) - x @ self.matrix().T - n @ self.noise_matrix().T).max())

    def noise_covariance(self) -> Array:
        noise = self.noise_matrix()
        return noise @ noise.T

    def stationary_covariance(self) -> Array:
        """C = M C Mᵀ + N Nᵀ; its first entry is the variance of the draws. Infinite where the step is not stable."""
        from scipy.linalg import solve_discrete_lyapunov

        matrix = self.matrix()
        if np.abs(np.linalg.eigvals(matrix)).max() >= 1.0:
            return np.full((self.size, self.size), np.inf)
        covariance: Array = solve_discrete_lyapunov(matrix, self.noise_covariance())
        return covariance


def stationary_covariance(sampler: Sampler | Subject, precision: float = 1.0) -> Array:
    """Returns the covariance of (θ, p, pending noise) of a linear sampler on U = precision·θ²/2, bias of h included.

    Parameters
    ----------
    sampler : Sampler or Subject
    precision : float

    Returns
    -------
    array

    Examples
    --------
    >>> sg.testing.stationary_covariance(sg.SGHMC(0.1)).round(6)
    array([[1.  , 0.05],
           [0.05, 1.  ]])
    """
    return LinearStep(sampler, precision).stationary_covariance()


def held(sampler: Sampler) -> Sampler:
    """The sampler with its thermostat held at its mean σ_p, and without resampling."""
    return replace(sampler, thermostat=None, sigma_xi=0.0, resample_thermostat=None, resample_momentum=None)


# ---- closed forms on U = kθ²/2, K = p²/2, friction A ------------------------------------------------------------------


def euler_sgld_variance(h: float, k: float, temperature: float) -> float:
    """θ' = (1 − hk)θ + √(2Th) n: Var θ = (T/k)/(1 − hk/2)."""
    return temperature / k / (1.0 - 0.5 * h * k)


def euler_sghmc_variance(h: float, friction: float, k: float, temperature: float) -> float:
    """θ' = θ + hp, p' = (1 − hA)p − hkθ + √(2ATh) n: from the three stationary second moments."""
    A, b = friction, h * h * k
    return temperature / k * A * (2.0 - h * A + b) / ((A - h * k) * (2.0 - h * A + 0.5 * b))


def splitting_variance(h: float, friction: float, k: float, temperature: float) -> float:
    """p ← e(p − hkθ + √(2ATh) n), θ ← θ + hp, p ← ep with e = e^{−Ah/2}: θ is an AR(2) process with the variance

    (T/k) · (Ah/2)/sinh(Ah/2) · 1/(1 − h²k/(4 cosh(Ah/2))).
    """
    half = 0.5 * friction * h
    return float(temperature / k * half / np.sinh(half) / (1.0 - 0.25 * h * h * k / np.cosh(half)))


def bias(sampler: Sampler | Subject, precision: float = 1.0) -> float:
    """Var θ divided by the truth T/k, minus one."""
    subject: Subject = Kernel(sampler) if isinstance(sampler, Sampler) else sampler
    return float(stationary_covariance(subject, precision)[0, 0] * precision / subject.sampler.temperature - 1.0)


def variance_slope(make: Callable[[float], Sampler | Subject], precision: float = 1.0, h: float = 0.02) -> Slope:
    """The order in h of the bias of Var θ, from h, h/2 and h/4; the interval is spanned by the two pairs."""
    errors = np.abs([bias(make(step), precision) for step in (h, 0.5 * h, 0.25 * h)])
    first, last = np.log2(errors[:-1] / errors[1:])
    return Slope(float(2.0 * last - first), float(min(first, last)), float(max(first, last)))


def run_z(
    sampler: Sampler | Subject,
    precision: float = 1.0,
    copies: int = 1000,
    steps: int = 200,
    seed: int = 1,
    expected: float | None = None,
) -> float:
    """z of the mean of θ² in a run of many copies that starts in the stationary law, against the oracle (or `expected`)."""
    step = LinearStep(sampler, precision)
    covariance = step.stationary_covariance()
    root = np.linalg.cholesky(covariance + 1e-14 * np.eye(step.size))
    x = np.random.default_rng(seed).normal(size=(copies, step.size)) @ root.T
    parts = np.split(x, np.cumsum(step.used)[:-1], axis=1)
    state = step.subject.start(parts[0], parts[1] if step.used[1] else None)
    state = State(*state[:-1], parts[2].copy())
    total = np.zeros(copies)
    for t in range(steps):
        noise = step.subject.draw_noise(state, seed, t)
        state = step.subject.move(state, precision * state.theta, noise, step.h, step.h, t, seed)
        total += state.theta[:, 0] ** 2
    return z_of_mean(total / steps, float(covariance[0, 0]) if expected is None else expected)


# ---- the checks -------------------------------------------------------------------------------------------------------

EXACT = 1e-10


def check_lyapunov(sampler: Sampler | Subject, precision: float = 1.0) -> Report:
    """Checks a sampler with Gaussian kinetics and constant friction against its linear step.

    The findings: whether the step is linear, the order of its bias, and a run against it.

    Parameters
    ----------
    sampler : Sampler or Subject
    precision : float
        Of the Gaussian target.

    Returns
    -------
    Report

    Examples
    --------
    >>> sg.testing.check_lyapunov(sg.testing.Reference(sg.SGHMC(0.1), name="SGHMC"))
    Lyapunov oracle of SGHMC: 3 checks, passed
    """
    subject: Subject = Kernel(sampler) if isinstance(sampler, Sampler) else sampler
    where = f"{subject.name}, precision {precision:g}, T = {subject.sampler.temperature:g}"
    least = order(subject.sampler.integrator) or 1
    found = [within("Lyapunov, linear", where, LinearStep(subject, precision).nonlinearity(), 1e-12)]
    rate = max(1.0, fastest(subject.sampler))
    found += [_order(where, lambda h: subject.with_(step_size=h / rate), precision, least)]
    found += [within("Lyapunov, run", where, run_z(subject, precision), z_bound(1), "200,000 dependent draws")]
    return Report(f"Lyapunov oracle of {subject.name}", found)


def _order(where: str, make: Callable[[float], Sampler | Subject], precision: float, least: int) -> Finding:
    """That the bias of Var θ is of the given order, or none at all."""
    size = bias(make(0.02), precision)
    if abs(size) < EXACT:
        return within("Lyapunov, exact", where, size, EXACT, "bias of Var θ at h = 0.02")
    slope = variance_slope(make, precision)
    passed, detail = bool(slope.value > least - 0.05), f"bias {size:.2e} at h = 0.02"
    return Finding("Lyapunov, order", where, slope.value, f"> {least} − 0.05", passed, detail, 0.05)


def linear_samplers(h: float, temperature: float, friction: float) -> dict[str, tuple[Sampler, int]]:
    """Integrator × sampler, thermostats held at their mean, each with the order that its bias must have."""
    common: dict[str, Any] = {"temperature": temperature}
    table: dict[str, tuple[Sampler, int]] = {
        "SGLD": (SGLD(h, **common), 2),
        "SGLD, Euler": (SGLD(h, integrator=Euler(), **common), 1),
    }
    kinetics = {"SGHMC = SGNHT held": Gaussian(), "SGMGT held, a = 1/2": MonomialGamma(0.5, mass=2.0)}
    for integrator, expected in ((BAOAB(), 2), (SymmetricSplitting(), 2), (Euler(), 1)):
        for name, K in kinetics.items():
            for sigma_theta, tail in ((0.0, ""), (0.5, " with σ_θ = 1/2 (SGMGT-D held)")):
                parts: dict[str, Any] = {"kinetics": K, "integrator": integrator, "sigma_theta": sigma_theta}
                key = f"{name}{tail}, {type(integrator).__name__}"
                table[key] = Sampler(h, sigma_p=friction, **parts, **common), expected
    return table


def _closed_forms(k: float, temperature: float) -> Iterator[Finding]:
    """Stationary variances against the closed forms, at 1e-10."""
    for h, A in ((0.1, 1.0), (0.3, 5.0)):
        pairs: dict[str, tuple[Sampler, float]] = {
            "SGLD": (SGLD(h, temperature), temperature / k),
            "SGLD, Euler": (SGLD(h, temperature, integrator=Euler()), euler_sgld_variance(h, k, temperature)),
            "SGHMC, BAOAB": (SGHMC(h, A, temperature=temperature), temperature / k),
            "SGHMC, Euler": (
                SGHMC(h, A, temperature=temperature, integrator=Euler()),
                euler_sghmc_variance(h, A, k, temperature),
            ),
            "SGHMC, splitting": (
                SGHMC(h, A, temperature=temperature, integrator=SymmetricSplitting()),
                splitting_variance(h, A, k, temperature),
            ),
        }
        for name, (sampler, expected) in pairs.items():
            off = stationary_covariance(sampler, k)[0, 0] / expected - 1.0
            where = f"{name}, h = {h:g}, A = {A:g}, k = {k:g}, T = {temperature:g}"
            yield within("Lyapunov, closed form of Var θ", where, off, EXACT, f"Var θ = {expected:.6f}")


def findings(profile: str = "quick", seed: int = 0) -> Iterator[Finding]:
    """Closed forms, orders of every integrator × sampler, and long runs against the oracle (or `expected`)."""
    runs = linear_samplers(0.2, 2.0, 1.5)
    if profile == "quick":  # without a kernel of its own for what is not the default
        runs = {n: s for n, s in runs.items() if not (n.startswith("SGMGT held") and n.endswith("BAOAB"))}
    for k, T in ((1.0, 1.0), (3.0, 2.0)):
        yield from _closed_forms(k, T)
        for name, (_, expected_order) in runs.items():
            where = f"{name}, k = {k:g}, T = {T:g}"
            yield _order(where, lambda h, T=T, name=name: linear_samplers(h, T, 1.5)[name][0], k, expected_order)  # type: ignore[misc]
    bound = z_bound(len(runs))
    copies, steps = (4000, 2000) if profile == "full" else (1000, 100)
    for i, (name, (sampler, _)) in enumerate(runs.items()):
        z = run_z(sampler, 1.0, copies, steps, 1000 * seed + i)
        yield within("Lyapunov, long run", f"{name}, h = 0.2, T = 2", z, bound, f"{copies} copies × {steps} steps")
