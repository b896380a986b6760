"""The best step size, without any randomness: bias and MSE of a run of T steps as functions of h and T, exactly.

A sampler with few variables is a Markov chain on the line or in the plane. Its transition operator acts on functions that are
interpolated between Chebyshev nodes, damped towards the ends: (P f)(x) = Σ w f(step(x, z)) over the nodes z of a Gauss–Hermite
rule, the step being that of the real kernel. For the sum S over T steps of φ − E φ the operator C_T f = E[S f(end)], the mean of
S and that of S² follow by doubling: T, 2T, 4T, … So the minimum of |bias| and of the MSE over h is found for runs of a million
steps, and must lie at h ∝ T^{−1/(k+1)} and T^{−1/(2k+1)}; and what is left of the MSE for T → ∞ must be the square of the bias,
of order h^{2k}.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators.state import Noise
from sgmcmc.testing.averages import observable
from sgmcmc.testing.laws import Law
from sgmcmc.testing.report import Finding
from sgmcmc.testing.targets import QUARTIC, SKEW, Target
from sgmcmc.testing.under_test import Subject, laws_of, standard_subjects

__all__ = ["Errors", "Optimum", "errors_of_runs", "findings", "measure_optimum"]

Array = NDArray[np.float64]
SHORT = 50.0  # time: shorter runs are their start and little else
POWERS = {
    1: 0.5,
    2: 0.3,
}  # of the density, by dimension: a half is best, but in the plane the operator is then unstable
TAIL = 1e-13  # of the law that may lie outside of the nodes, on either side


class Axis:
    """Chebyshev nodes for a variable with this law, and interpolation between them by the barycentric formula.

    What is interpolated is f·density^power, which is as good as zero at the ends of the interval and beyond.
    """

    def __init__(self, law: Law, nodes: int, power: float) -> None:
        low, high = (float(q) for q in law.quantile(np.array([TAIL, 1.0 - TAIL])))
        angle = np.pi * np.arange(nodes) / (nodes - 1)
        self.nodes: Array = 0.5 * (low + high) - 0.5 * (high - low) * np.cos(angle)
        self.law, self.power, self.low, self.high = law, power, float(self.nodes[0]), float(self.nodes[-1])
        self.weights = (-1.0) ** np.arange(nodes)
        self.weights[[0, -1]] *= 0.5

    def rows(self, x: Array) -> Array:
        """(point, node): what each node contributes to the value at each point."""
        outside = (x < self.low) | (x > self.high)
        away = np.where(outside, self.low, x)[:, None] - self.nodes
        near = np.abs(away) < 1e-14 * (self.high - self.low)
        hit = near.any(axis=1)
        away[hit] = 1.0
        rows: Array = self.weights / away
        rows[hit] = near[hit]
        rows /= rows.sum(axis=1, keepdims=True)
        rows[outside] = 0.0
        return rows

    def damping(self, x: Array) -> Array:
        """density^power; 1 beyond the ends, where nothing is interpolated."""
        inside = (x >= self.low) & (x <= self.high)
        damped: Array = self.law.density(np.clip(x, self.low, self.high)) ** self.power
        return np.where(inside, damped, 1.0)


def _basis(axes: Sequence[Axis], points: Array) -> tuple[Array, Array]:
    """Of points (point, variable): their rows over all nodes, and their damping."""
    rows, damping = axes[0].rows(points[:, 0]), axes[0].damping(points[:, 0])
    for axis, x in zip(axes[1:], points.T[1:], strict=True):
        rows = (rows[:, :, None] * axis.rows(x)[:, None, :]).reshape(len(points), -1)
        damping = damping * axis.damping(x)
    return rows, damping


class Errors(NamedTuple):
    """Bias and MSE of the mean of φ over T steps, exact: (T, start)."""

    steps: Array
    bias: Array
    mse: Array


def _axes(subject: Subject, target: Target, nodes: int) -> list[Axis]:
    if subject.sampler.sizes(1).xi:
        raise ValueError(f"{subject.name} has a thermostat: its state is not on a line or in a plane")
    laws = [law for law in laws_of(subject.sampler, target)[:2] if law is not None]
    return [Axis(law, nodes, POWERS[len(laws)]) for law in laws]


def _end(subject: Subject, target: Target, h: float, start: Array, normal: float) -> tuple[Array, Array]:
    """Where a step takes every start (copies, variables) with this normal, and θ as it is recorded on the way."""
    sizes = subject.sampler.sizes(1)
    theta = start[:, :1]
    zero = np.zeros_like(theta)
    state = subject.start(theta, start[:, 1:] if sizes.p else None)
    noise = Noise(zero[:, : sizes.p] + normal, zero + normal, np.zeros((len(theta), 0)))
    if not sizes.pending:
        end = subject.move(state, target.gradient(theta), noise, h, h, 1, 0)
        return np.concatenate([end.theta, end.p], axis=1), end.theta[:, 0]
    # With noise on θ a draw is in the middle of a step; the chain on the line is that of what stands between two steps.
    middle = subject.move(state, zero, noise, 0.0, h, 1, 0)
    none = Noise(zero[:, : sizes.p], zero, noise.xi)
    end = subject.move(middle, target.gradient(middle.theta), none, h, h, 2, 0)
    return end.theta, middle.theta[:, 0]


def _operators(subject: Subject, target: Target, h: float, axes: Sequence[Axis]) -> tuple[Array, ...]:
    """P, P with g = φ − E φ of the draw on the way as a weight, E g² by starts, and 1; all acting on damped f."""
    starts = np.stack([x.ravel() for x in np.meshgrid(*(axis.nodes for axis in axes), indexing="ij")], axis=1)
    truth = target.law(subject.sampler.temperature).mean(observable)
    _, own = _basis(axes, starts)
    count = len(starts)
    move, weighted, square = np.zeros((count, count)), np.zeros((count, count)), np.zeros(count)
    normals, weights = np.polynomial.hermite_e.hermegauss(16)
    for normal, weight in zip(normals, weights / weights.sum(), strict=True):
        end, draw = _end(subject, target, h, starts, float(normal))
        rows, damping = _basis(axes, end)
        rows *= (weight * own / damping)[:, None]
        g = observable(draw) - truth
        move += rows
        weighted += g[:, None] * rows
        square += weight * own * g**2
    return move, weighted, square, own


def errors_of_runs(
    subject: Subject, target: Target, h: float, doublings: int, start: Sequence[float], nodes: int = 48
) -> tuple[Errors, float]:
    """Bias and MSE of runs of 1, 2, 4, … 2^doublings steps from each θ in `start` (at rest), and the bias for T → ∞."""
    axes = _axes(subject, target, nodes)
    power, covariance, square, one = _operators(subject, target, h, axes)
    places = np.zeros((len(start), len(axes)))
    places[:, 0] = start
    rows, damping = _basis(axes, places)
    rows /= damping[:, None]
    mean = covariance @ one
    bias, mse = [rows @ mean], [rows @ square]
    for _ in range(doublings):
        square = square + power @ square + 2.0 * (covariance @ mean)
        covariance = covariance @ power + power @ covariance
        mean = mean + power @ mean
        power = power @ power
        total = power @ one
        kept = total > 0.5 * one  # not where all ways lead out, in the corners of the plane
        power[kept] *= (one[kept] / total[kept])[:, None]  # constants stay constants
        bias.append(rows @ mean)
        mse.append(rows @ square)
    steps: Array = 2.0 ** np.arange(doublings + 1, dtype=np.float64)
    limit = float(rows[0] @ (power @ mean)) / steps[-1]
    return Errors(steps, np.array(bias) / steps[:, None], np.array(mse) / steps[:, None] ** 2), limit


class Optimum(NamedTuple):
    """|bias| and MSE over a grid of step sizes and lengths, and where they are least."""

    name: str
    order: int
    h: Array
    steps: Array
    bias: Array  # (h, T), from the start at which both parts of the bias have one sign
    mse: Array
    limits: Array  # (h): the bias for T → ∞

    def best(self, what: str) -> tuple[Array, Array, Array]:
        """(T, h, error) of the minimum over h for every T whose minimum is inside of the grid, by a parabola."""
        values = np.log(np.abs(getattr(self, what)))
        found = []
        for j, T in enumerate(self.steps):
            i = int(np.argmin(values[:, j]))
            if not 0 < i < len(self.h) - 1 or T * self.h[-1] < SHORT:
                continue
            x, y = np.log(self.h[i - 1 : i + 2]), values[i - 1 : i + 2, j]
            a, b, c = np.polyfit(x - x[1], y, 2)
            found.append((T, np.exp(x[1] - 0.5 * b / a), np.exp(c - 0.25 * b * b / a)))
        if len(found) < 3:
            raise ValueError(
                f"{self.name}: the minimum over h lies outside of the grid for all but {len(found)} lengths"
            )
        T_best, h_best, least = np.array(found).T
        return T_best, h_best, least

    def exponents(self) -> dict[str, tuple[float, float]]:
        """Name: (measured over the last octaves of T, theory)."""
        k = float(self.order)
        found = {}
        for what, rate in (("bias", k / (k + 1.0)), ("mse", 2.0 * k / (2.0 * k + 1.0))):
            T, h, least = self.best(what)
            label = "MSE" if what == "mse" else "|bias|"
            found[f"best h for {label}, in T"] = (_slope(T[-4:], h[-4:]), -rate / (k if what == "bias" else 2.0 * k))
            found[f"least {label}, in T"] = (_slope(T[-4:], least[-4:]), -rate)
        found["MSE in h, T → ∞"] = (_slope(self.h[:4], self.limits[:4] ** 2), 2.0 * k)
        return found


def _slope(x: Array, y: Array) -> float:
    return float(np.polyfit(np.log(x), np.log(np.abs(y)), 1)[0])


def measure_optimum(
    subject: Subject,
    target: Target,
    order: int,
    h: Sequence[float],
    doublings: int,
    nodes: int = 48,
) -> Optimum:
    """Bias and MSE for every step size of `h` (rising) and runs of up to 2^doublings steps.

    The start is at a quantile of θ, low or high, from which what the start leaves has the sign of what h leaves: with opposite
    signs the two cancel somewhere, and |bias| has no minimum worth the name.
    """
    law = target.law(subject.sampler.temperature)
    starts = [float(q) for q in law.quantile([0.005, 0.5, 0.995])]
    runs = [errors_of_runs(subject, target, step, doublings, starts, nodes) for step in h]
    limits = np.array([limit for _, limit in runs])
    transient = runs[0][0].bias[-1] - limits[0]
    chosen = int(np.argmax(transient * np.sign(limits[0])))
    name = f"{subject.name}, {target.name}, T = {subject.sampler.temperature:g}"
    bias, mse = (np.array([getattr(e, what)[:, chosen] for e, _ in runs]) for what in ("bias", "mse"))
    return Optimum(name, order, np.asarray(h, dtype=np.float64), runs[0][0].steps, bias, mse, limits)


class Case(NamedTuple):
    """A standard subject, the step sizes and the longest run."""

    subject: str
    euler: bool
    target: Target
    temperature: float
    low: float
    high: float
    grid: int
    doublings: int
    nodes: int

    def measure(self) -> Optimum:
        name = self.subject + (", Euler" if self.euler else "")
        subject = standard_subjects(0.1, self.temperature, self.euler)[name]
        h = np.geomspace(self.low, self.high, self.grid)
        return measure_optimum(subject, self.target, 1 if self.euler else 2, list(h), self.doublings, self.nodes)


QUICK = (
    Case("SGLD", True, QUARTIC, 1.0, 0.001, 0.1, 24, 24, 48),
    Case("SGLD", False, QUARTIC, 1.0, 0.01, 0.2, 24, 34, 48),
)
FULL = (
    *QUICK,
    Case("SGLD", True, SKEW, 0.5, 0.001, 0.1, 24, 24, 64),
    Case("SGLD", False, SKEW, 0.5, 0.02, 0.3, 24, 34, 64),
    Case("SGHMC", True, QUARTIC, 1.0, 0.002, 0.1, 12, 22, 32),
    Case("SGHMC", False, QUARTIC, 1.0, 0.04, 0.4, 12, 30, 32),
)
TOLERANCE = 0.03


@lru_cache(maxsize=8)
def measured(case: Case) -> Optimum:
    """What a case came to, computed once: the picture shows what was judged."""
    return case.measure()


def findings(profile: str = "quick", seed: int = 0) -> Iterator[Finding]:
    """The exponents of the best step size and of the least errors, and a wrong order that is refuted."""
    for number, case in enumerate(FULL if profile == "full" else QUICK):
        optimum = measured(case)
        exponents = optimum.exponents()
        for what, (slope, expected) in exponents.items():
            allowed = TOLERANCE * max(1.0, abs(expected))
            passed = abs(slope - expected) < allowed
            bound = f"{expected:.3g} ± {allowed:.2g}"
            yield Finding(f"best step: exponent of {what}", optimum.name, slope, bound, passed, "no randomness")
        if number == 1:
            wrong = exponents["best h for MSE, in T"][0] + 1.0 / 3.0
            yield Finding(
                "best step: a wrong claim is refuted",
                optimum.name,
                wrong,
                f"|x| > {TOLERANCE:g}",
                abs(wrong) > TOLERANCE,
                "difference from the exponent of order 1",
            )
