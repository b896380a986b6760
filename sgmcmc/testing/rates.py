"""Rates of Proposition 2: how bias and mean squared error of a time average fall with the step size and the run.

For the mean of φ(θ) over T steps of size h, from a fixed start, with an integrator of order k:

    |bias| ≤ C (1/(Th) + h^k),        MSE ≤ C (1/(Th) + h^{2k})

so that the best steps are h ∝ T^{−1/(k+1)} for the bias and h ∝ T^{−1/(2k+1)} for the MSE, which then fall like T^{−k/(k+1)}
and T^{−2k/(2k+1)}. Every exponent is measured. The order in h comes from differences between h and h/2 on the same Brownian
path (averages.py); that the limit is the truth is a check of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.testing.averages import BLOCKS, Coupled, blocks, coupled_averages, exponent, time_averages
from sgmcmc.testing.report import Finding, within
from sgmcmc.testing.statistics import Slope, z_bound
from sgmcmc.testing.targets import QUARTIC, SKEW, Target
from sgmcmc.testing.under_test import Kernel, Subject, standard_subjects
from sgmcmc.thermostats import NoseHoover

__all__ = ["Best", "Decay", "Rates", "best_rates", "figure", "findings", "judge", "measure_decay", "measure_rates"]

Array = NDArray[np.float64]


class Decay(NamedTuple):
    """Runs of different length with the same small step, from a fixed start and from the invariant law."""

    times: Array  # Th
    errors: Array  # (Th, copy), from the fixed start
    twins: Array  # the same Brownian paths from the invariant law: their bias is that of h alone

    def exponents(self) -> tuple[Slope, Slope]:
        """Of the bias that the start leaves, and of the MSE, in Th."""
        start = blocks(self.errors - self.twins)
        return exponent(self.times, start), exponent(self.times, blocks(self.errors**2))


def measure_decay(subject: Subject, target: Target, h: float, run: float, copies: int, seed: int = 0) -> Decay:
    lengths = [max(1, round(run / h)) * 2**i for i in range(4)]
    runs = [time_averages(subject, target, h, lengths, copies, seed, exact) for exact in (False, True)]
    return Decay(h * np.array(lengths, float), *runs)


class Best(NamedTuple):
    """Bias and MSE of runs of T steps along the best step sizes h = c T^{−1/(k+1)} and c T^{−1/(2k+1)}."""

    bias_steps: Array
    bias: Array  # (T, block)
    mse_steps: Array
    mse: Array

    def exponents(self) -> tuple[Slope, Slope]:
        return exponent(self.bias_steps, self.bias.T), exponent(self.mse_steps, self.mse.T)


def best_rates(
    subject: Subject, target: Target, h: float, order: int, run: float = 25.0, copies: int = 8192, seed: int = 0
) -> Best:
    """Bias and MSE with the step sizes that are best for this order, for runs of T, 4T and 16T steps.

    h is the step of the shortest run, which lasts the time `run`. For the MSE runs are four times as long, which makes the
    square of what the start leaves, of order 1/(Th)², negligible; against its scatter the bias is seen best in short runs.
    """
    bias, mse = [], []
    steps = [round(run / h) * 4**i for i in range(3)]
    for number, T in enumerate(steps):
        own, ratio = seed + 1000 * (number + 1), T / steps[0]
        for_bias = time_averages(subject, target, h * ratio ** (-1.0 / (order + 1)), [T], copies, own)
        h_mse = h * ratio ** (-1.0 / (2 * order + 1))
        for_mse = time_averages(subject, target, h_mse, [4 * T], min(copies, 2048), own + 1)
        bias.append(blocks(for_bias)[:, 0])
        mse.append(blocks(for_mse**2)[:, 0])
    T_bias = np.array(steps, dtype=np.float64)
    return Best(T_bias, np.array(bias), 4 * T_bias, np.array(mse))


class Rates(NamedTuple):
    """Everything that was measured for one sampler and one target."""

    name: str
    expected_order: int
    coupled: Coupled
    decay: Decay
    best: Best | None

    def exponents(self) -> dict[str, tuple[Slope, float]]:
        """Name: (measured exponent, exponent of the theory)."""
        k = float(self.expected_order)
        bias, mse = self.decay.exponents()
        found = {"bias in h": (self.coupled.order(), k), "bias in Th": (bias, -1.0), "MSE in Th": (mse, -1.0)}
        if self.best is not None:
            bias, mse = self.best.exponents()
            found["bias in T, best h"] = (bias, -k / (k + 1.0))
            found["MSE in T, best h"] = (mse, -2.0 * k / (2.0 * k + 1.0))
        return found


def measure_rates(
    subject: Subject,
    target: Target = QUARTIC,
    order: int = 2,
    *,
    h: float = 0.2,
    levels: int = 3,
    time: float = 60.0,
    copies: int = 8192,
    best_copies: int = 0,
    run: float = 25.0,
    seed: int = 0,
) -> Rates:
    """Measure the rates of a sampler that claims an order.

    Parameters
    ----------
    subject : Subject
    target : Target
    order : int, that the sampler claims
    h, levels : float, int
        `h` is the largest step; `levels` steps are compared, each half the one before.
    time : float
        How long the runs are from which the order in h is read.
    copies, best_copies : int
        Copies of the runs; of those at the best step sizes, which 0 leaves out.
    run : float
        The time of the shortest run from the fixed start; many times that in which the chain forgets it.
    seed : int

    Returns
    -------
    Rates

    Examples
    --------
    >>> rates = sg.testing.measure_rates(sg.testing.Reference(sg.SGHMC(0.1)), copies=64, time=10.0, run=10.0)
    >>> list(rates.exponents())
    ['bias in h', 'bias in Th', 'MSE in Th']
    """
    coupled = coupled_averages(subject, target, h, levels, time, copies, seed)
    decay = measure_decay(subject, target, 0.5 * h, run, max(BLOCKS, copies // 4), seed + 1)
    best = best_rates(subject, target, h, order, run, best_copies, seed) if best_copies else None
    name = f"{subject.name}, {target.name}, T = {subject.sampler.temperature:g}"
    return Rates(name, order, coupled, decay, best)


def judge(check: str, subject: str, slope: Slope, expected: float, tolerance: float) -> Finding:
    """A finding that passes if the exponent is as expected, and is known well enough (two intervals fit the tolerance)."""
    sharp = slope.high - slope.value <= 0.5 * tolerance
    passed = bool(sharp and abs(slope.value - expected) <= tolerance)
    return Finding(check, subject, slope.value, f"{expected:.3g} ± {tolerance:g}", passed, f"95 % interval {slope}")


TOLERANCES = {"bias in h": 0.4, "bias in Th": 0.2, "MSE in Th": 0.2, "bias in T, best h": 0.12, "MSE in T, best h": 0.1}


def rate_findings(rates: Rates, checks: int = 40) -> Iterator[Finding]:
    """One finding per exponent, and one for the limit h → 0."""
    for what, (slope, expected) in rates.exponents().items():
        yield judge(f"rates: exponent of {what}", rates.name, slope, expected, TOLERANCES[what])
    z = rates.coupled.limit_z(rates.expected_order)
    yield within("rates: limit h → 0 is the truth (z)", rates.name, z, z_bound(checks))


class Case(NamedTuple):
    """A standard subject, a target, a temperature, the largest step, and the effort it takes to see the exponents."""

    subject: str
    euler: bool
    target: Target
    temperature: float
    h: float
    effort: dict[str, Any]
    changes: dict[str, Any] = {}  # noqa: RUF012  of the sampler's parameters

    def measure(self, seed: int) -> Rates:
        name = self.subject + (", Euler" if self.euler else "")
        subject = standard_subjects(0.1, self.temperature, self.euler)[name]  # h is given to every move
        if "resample_momentum" in self.changes:
            subject = Kernel(subject.sampler, f"{name}, resampling")
        return measure_rates(
            subject.with_(**self.changes), self.target, 1 if self.euler else 2, h=self.h, seed=seed, **self.effort
        )


def _effort(time: float, copies: int, best_copies: int = 0, run: float = 25.0) -> dict[str, Any]:
    return {"time": time, "copies": copies, "best_copies": best_copies, "run": run}


QUICK = (
    Case("SGLD", True, QUARTIC, 1.0, 0.1, _effort(20, 4096, 8192)),
    Case("SGHMC", True, QUARTIC, 0.5, 0.05, _effort(20, 4096)),
    Case("SGMGT-D, a = 1", False, QUARTIC, 0.5, 0.4, _effort(60, 16384)),
)
# With γ = 1/T the coefficient of h² in SGNHT's error all but vanishes (exponents near 3 are measured); a fast thermostat
# shows the order. Likewise a larger σ_θ shows that of Euler.
FAST = {"thermostat": NoseHoover(4.0, center="fixed")}
NOISY = {"sigma_theta": 0.5}
FRESH = {"resample_momentum": 20, "resample_thermostat": 20}
FULL = (
    Case("SGLD", True, QUARTIC, 1.0, 0.1, _effort(20, 8192, 8192)),
    Case("SGLD", True, SKEW, 2.0, 0.06, _effort(20, 8192, 4096, 60)),
    Case("SGLD", False, QUARTIC, 0.5, 0.14, _effort(120, 65536, 32768)),
    Case("SGLD", False, SKEW, 1.0, 0.3, _effort(140, 131072, 16384, 60)),
    Case("SGHMC", True, QUARTIC, 0.5, 0.05, _effort(20, 4096, 8192)),
    Case("SGHMC", True, SKEW, 1.0, 0.05, _effort(40, 4096, 4096, 60)),
    Case("SGHMC", False, QUARTIC, 1.0, 0.4, _effort(80, 131072, 16384)),
    Case("SGHMC", False, SKEW, 1.0, 0.6, _effort(150, 131072, 16384, 60)),
    Case("SGNHT", True, QUARTIC, 1.0, 0.1, _effort(60, 8192, 16384)),
    Case("SGNHT", True, SKEW, 2.0, 0.05, _effort(60, 8192, 16384, 40)),
    Case("SGNHT", False, QUARTIC, 2.0, 0.2, _effort(80, 131072), FAST),
    Case("SGNHT", False, SKEW, 1.0, 0.3, _effort(40, 131072, 16384, 60), FAST),
    Case("SGMGT-D, a = 1", True, QUARTIC, 2.0, 0.08, _effort(30, 16384, 8192), NOISY),
    Case("SGMGT-D, a = 1", True, SKEW, 1.0, 0.1, _effort(30, 32768, 4096, 60), NOISY),
    Case("SGMGT-D, a = 1", False, QUARTIC, 0.5, 0.4, _effort(60, 32768, 32768)),
    Case("SGMGT-D, a = 1", False, SKEW, 1.0, 0.4, _effort(80, 65536, 16384, 60)),
    # Lemmas 1 and 2: with fresh momenta (and frictions) every 20 steps the rates are the same, though paths are not coupled.
    Case("SGMGT-D, a = 1", False, QUARTIC, 0.5, 0.4, _effort(120, 196608, 32768), FRESH),
    Case("SGMGT, a = 1", False, QUARTIC, 1.0, 0.4, _effort(120, 196608, 32768), {"resample_momentum": 20}),
)


def cases(profile: str = "quick") -> tuple[Case, ...]:
    return FULL if profile == "full" else QUICK


_MEASURED: dict[tuple[str, int], Rates] = {}


def measured(case: Case, seed: int) -> Rates:
    """What a case came to, measured once: the picture shows what was judged."""
    key = repr(case), seed
    if key not in _MEASURED:
        _MEASURED[key] = case.measure(seed)
    return _MEASURED[key]


def findings(profile: str = "quick", seed: int = 0) -> Iterator[Finding]:
    """The exponents of every case, and one wrong claim that must be refuted."""
    chosen = cases(profile)
    for number, case in enumerate(chosen):
        rates = measured(case, seed + number)
        yield from rate_findings(rates, len(chosen))
        if number == 0:  # Euler
            wrong = judge("", rates.name, rates.coupled.order(), 2.0, TOLERANCES["bias in h"])
            detail = f"claimed order 2, {wrong.detail}"
            yield Finding(
                "rates: a wrong claim is refuted", rates.name, wrong.figure, "not 2 ± 0.4", not wrong.passed, detail
            )


def figure(axes: Any, shown: Sequence[Rates] | None = None, seed: int = 0) -> None:
    """Draw bias against h, bias and MSE against Th, and both against T at the best h into four axes, all logarithmic.

    `shown` are results of `measure_rates`; None measures the quick cases. Dashed lines have the slopes of the theory.
    """
    if shown is None:
        shown = [measured(case, seed + number) for number, case in enumerate(QUICK)]
    axes = np.ravel(axes)
    colours = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
    for number, rates in enumerate(shown):
        style: dict[str, Any] = {"color": colours[number % 7], "marker": "os^Dv<>"[number % 7]}
        k, decay, best = float(rates.expected_order), rates.decay, rates.best
        change = np.abs(rates.coupled.differences.mean(axis=1))
        curves = [
            (axes[0], rates.coupled.h[:-1], change, k),
            (axes[1], decay.times, np.abs((decay.errors - decay.twins).mean(axis=1)), -1.0),
            (axes[2], decay.times, (decay.errors**2).mean(axis=1), -1.0),
        ]
        if best is not None:
            curves.append((axes[3], best.bias_steps, np.abs(best.bias.mean(axis=1)), -k / (k + 1.0)))
            curves.append((axes[3], best.mse_steps, best.mse.mean(axis=1), -2.0 * k / (2.0 * k + 1.0)))
        for ax, x, y, slope in curves:
            label = rates.name if ax is not axes[3] else f"{rates.name}: slope {slope:.2f}"
            ax.loglog(x, y, linestyle="", label=label, **style)
            ax.loglog(x, y[-1] * (x / x[-1]) ** slope, linestyle="--", linewidth=1, color=style["color"])
    labels = [
        ("step size h", "|E φ(h) − E φ(h/2)|", "order in h"),
        ("time Th", "|bias| left by the start", "bias against Th"),
        ("time Th", "MSE", "MSE against Th"),
        ("steps T", "|bias| (upper), MSE (lower)", "best step size"),
    ]
    for ax, (x_label, y_label, title) in zip(axes, labels, strict=True):
        ax.set(xlabel=x_label, ylabel=y_label, title=title)
    axes[0].legend(frameon=False, fontsize="small")
