"""Samplers seen from outside: checks of anything that steps, from a state and a gradient to the next state.

Nothing is known of the sampler but its draws of θ and the temperature it claims, so another library's can be put to the
same test. The verdict is on what comes out at the step size it was given: the error of the discretisation is part of it. A
check passes while |figure − truth| < 1 % + z·se, se being the standard error over independent chains (exact starts, time
averages per chain) and z the bound of the whole family of checks.

How to check another sampler, here ten lines of NumPy:

>>> import numpy as np
>>> from sgmcmc.testing.black_box import BlackBox, check_black_box
>>> rng = np.random.default_rng(0)
>>> def step(theta, gradient):  # stochastic gradient Langevin dynamics, with explicit Euler steps of size 0.01
...     return theta - 0.01 * gradient + np.sqrt(0.02) * rng.normal(size=theta.shape)
>>> mine = BlackBox("my SGLD", init=lambda theta, seed: theta, step=step, vectorised=True)
>>> report = check_black_box(mine, steps=2000)
>>> report.passed
True

`report.table` shows the figures. A state with more than θ in it needs `position=lambda state: ...`, and `init` should draw
what is hidden (momenta, frictions) from its own law, since the first draws are looked at as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sgmcmc.testing import textbook
from sgmcmc.testing.adapter import BlackBox, as_black_box
from sgmcmc.testing.laws import Law
from sgmcmc.testing.report import Finding, Report
from sgmcmc.testing.statistics import p_bound, z_bound
from sgmcmc.testing.targets import GAUSSIAN, SKEW, Target

__all__ = ["BlackBox", "as_black_box", "check_black_box", "figure", "findings", "measure"]

Array = NDArray[np.float64]

TOLERANCE = 0.01
FAMILY = 500  # checks that share the false-alarm budget
FIRST = 10  # so many steps are the first draws
COORDINATES = 4096  # chains × dimension of a run, if it goes over all chains at once


class Moments(NamedTuple):
    """What a run leaves: per chain, averages over coordinates and time; θ is in units of its law, (θ − mean)/sd."""

    mean: Array
    second: Array
    third: Array
    virial: Array  # θ U'(θ) / T
    first: Array  # (chains, 2): what the first draws add to the mean and to the second moment of the start
    last: Array  # (chains, dim): where they ended
    law: Law


def measure(
    box: BlackBox,
    target: Target,
    dim: int,
    chains: int | None = None,
    warmup: int = 300,
    steps: int = 1000,
    seed: int = 0,
) -> Moments:
    """Run chains from exact starts in θ; whatever overflows gives NaN."""
    law = target.law(box.temperature)
    if chains is None:
        chains = max(64, min(1024, COORDINATES // dim)) if box.vectorised else 64
    entropy = [seed, dim, crc32(target.name.encode())]  # other runs, other random numbers
    start = law.draw(chains * dim, np.random.default_rng([*entropy, 1])).reshape(chains, dim)
    states, advance, where = _all_chains(box, start, [*entropy, 2])
    center, scale = law.mean(lambda x: x), law.variance**0.5
    sums, first = np.zeros((4, chains)), np.zeros((chains, 2))
    begin = _powers((start - center) / scale)
    theta = start
    with np.errstate(all="ignore"):
        for k in range(warmup + steps):
            gradient = target.gradient(theta)
            if not np.isfinite(gradient).all():
                lost = np.full(chains, np.nan)
                return Moments(lost, lost, lost, lost, np.full((chains, 2), np.nan), theta, law)
            if k >= warmup:
                sums[:3] += _powers((theta - center) / scale)
                sums[3] += (theta * gradient).mean(axis=1) / box.temperature
            states = advance(states, gradient if not box.calls_gradient else target.gradient)
            theta = where(states)
            if k < FIRST:
                first += (_powers((theta - center) / scale) - begin)[:2].T / FIRST
    mean, second, third, virial = sums / steps
    return Moments(mean, second, third, virial, first, theta, law)


def _powers(x: Array) -> Array:
    """x, x² and x³, averaged over coordinates."""
    powers: Array = np.stack([x, x * x, x * x * x]).mean(axis=2)
    return powers


def _all_chains(
    box: BlackBox, start: Array, entropy: list[int]
) -> tuple[Any, Callable[[Any, Any], Any], Callable[[Any], Array]]:
    """The states of all chains, how they advance together, and where they are (chains, dim)."""
    base = int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 2)  # fits in 31 bits everywhere
    if box.vectorised:
        return box.init(start.copy(), base), box.step, lambda state: _positions(box, box.position(state), start.shape)

    def advance(states: list[Any], gradient: Any) -> list[Any]:
        one_each = [gradient] * len(states) if box.calls_gradient else gradient
        return [box.step(s, g) for s, g in zip(states, one_each, strict=True)]

    def where(states: list[Any]) -> Array:
        return _positions(box, np.stack([np.asarray(box.position(s), float) for s in states]), start.shape)

    return [box.init(row.copy(), base + k) for k, row in enumerate(start)], advance, where


def _positions(box: BlackBox, theta: Any, shape: tuple[int, ...]) -> Array:
    array: Array = np.asarray(theta).astype(float)  # a copy: the sampler may go on in place
    if array.shape != shape:
        raise ValueError(
            f"the position of {box.name} has shape {array.shape}; give {shape} for all chains (or {shape[1:]} for one)"
        )
    return array


def check_black_box(
    box: BlackBox,
    target: Target | None = None,
    dim: int | None = None,
    chains: int | None = None,
    warmup: int = 300,
    steps: int = 1000,
    seed: int = 0,
    tolerance: float = TOLERANCE,
    family: int = FAMILY,
) -> Report:
    """Put a black box to the test; by default on a Gaussian in 1 and 20 dimensions and on a skew target in 20.

    Variance, and on a target without symmetry also the mean, the third moment and the virial theorem E[θU'] = T; the first
    draws after an exact start; independence of the chains. `family` checks share a false-alarm probability of 1e-4.
    """
    if target is None:
        runs = [(GAUSSIAN, d) for d in ((1, 20) if dim is None else (dim,))] + [(SKEW, 20 if dim is None else dim)]
    else:
        runs = [(target, 1 if dim is None else dim)]
    found: list[Finding] = []
    for one, d in runs:
        found += _judge(box, one, d, measure(box, one, d, chains, warmup, steps, seed), tolerance, family, steps, seed)
    return Report(f"{box.name}, seen from outside", found)


def _judge(
    box: BlackBox, target: Target, dim: int, run: Moments, tolerance: float, family: int, steps: int, seed: int
) -> Iterator[Finding]:
    chains = len(run.mean)
    where = f"{target.name}, d = {dim}, T = {box.temperature:g}"
    about = f"{chains} chains of {steps} steps, seed {seed}"

    def near(check: str, values: Array, truth: float) -> Finding:
        figure, se = float(values.mean()), float(values.std(ddof=1) / chains**0.5)
        room = tolerance + z_bound(family) * se
        bound = f"{truth:.4g} ± {room:.2g} ({tolerance:g} + {z_bound(family):.2f}·se)"
        passed = bool(abs(figure - truth) < room)
        return Finding(f"{check}; {where}", box.name, figure, bound, passed, f"se {se:.2g}; {about}")

    def standard(x: Array) -> Array:
        scaled: Array = (x - run.law.mean(lambda y: y)) / run.law.variance**0.5
        return scaled

    size = run.law.mean(lambda x: np.abs(standard(x)) ** 3)
    yield near("variance ÷ truth", run.second, 1.0)
    yield near("mean, in standard deviations", run.mean, 0.0)
    if target is not GAUSSIAN:  # there they say nothing new
        yield near("third moment ÷ E|·|³", run.third / size, run.law.mean(lambda x: standard(x) ** 3) / size)
        yield near("virial E[θU'] ÷ T", run.virial, 1.0)
    yield near("first draws: mean, in standard deviations", run.first[:, 0], 0.0)
    yield near("first draws: variance ÷ truth", 1.0 + run.first[:, 1], 1.0)
    p = _independence(standard(run.last) - run.mean.mean())
    detail = f"p-value of the chains' mean in each coordinate at the end; {about}"
    yield Finding(
        f"chains are independent; {where}", box.name, p, f"> {p_bound(family):.1g}", p > p_bound(family), detail
    )


def _independence(last: Array) -> float:
    """p-value of Σ over coordinates of chains·mean²/variance: chains that share their noise have a common mean."""
    from scipy.stats import f as fisher

    chains, dim = last.shape
    spread = float(last.var(axis=0, ddof=1).mean())
    if not spread > 0.0:
        return 0.0
    return float(fisher.sf(chains * (last.mean(axis=0) ** 2).mean() / spread, dim, dim * (chains - 1)))


def own_boxes(profile: str = "quick") -> list[BlackBox]:
    """Samplers of this package at h = 0.1, over temperatures and frictions."""
    from sgmcmc.presets import SGHMC, SGLD, SGMGT, SGMGTD, SGNHT

    h, quick = 0.1, profile == "quick"
    boxes = []
    for T in (0.1, 4.0) if quick else (0.1, 1.0, 4.0):
        boxes += [as_black_box(SGLD(h, T), "SGLD"), as_black_box(SGHMC(h, 1.0, temperature=T), "SGHMC, friction 1")]
        if quick:
            boxes += [as_black_box(SGNHT(h, 1.0, temperature=T), "SGNHT, diffusion 1")]
            continue
        for A in (0.1, 10.0):
            boxes += [as_black_box(SGHMC(h, A, temperature=T), f"SGHMC, friction {A:g}")]
        for A in (0.1, 1.0, 10.0):
            boxes += [as_black_box(SGNHT(h, A, temperature=T), f"SGNHT, diffusion {A:g}")]
        boxes += [as_black_box(SGNHT(h, 1.0, temperature=T, per="chain"), "SGNHT, diffusion 1, one ξ per chain")]
        for a in (1, 2):
            boxes += [as_black_box(SGMGT(h, a, temperature=T), f"SGMGT, a = {a}")]
            boxes += [as_black_box(SGMGTD(h, a, temperature=T), f"SGMGT-D, a = {a}")]
    if quick:
        boxes += [
            as_black_box(SGHMC(h, 0.1), "SGHMC, friction 0.1"),
            as_black_box(SGMGTD(h, temperature=2.0), "SGMGT-D, a = 1"),
        ]
    return boxes


def wrong_boxes(profile: str = "quick") -> list[BlackBox]:
    """Negative controls: each has one fault, and must be rejected."""
    wrong = [
        textbook.sghmc(0.05, 0.1, fault="explicit"),
        textbook.sghmc(0.01, 0.1, 0.1, refresh=100, fault="refresh without T"),
        textbook.sgld(0.02, fault="reversed"),
    ]
    if profile == "quick":
        return wrong
    return [
        *wrong,
        textbook.sgld(0.02, 2.0, fault="lost temperature"),
        textbook.sgld(0.02, fault="shared noise"),
        textbook.sghmc(0.05, 4.0, fault="noise ∝ friction"),
        textbook.sgnht(0.05, 1.0, fault="norm"),
    ]


_FOUND: dict[tuple[str, int], list[Finding]] = {}  # what the figure draws


def findings(profile: str = "quick", seed: int = 0) -> Iterator[Finding]:
    """The evidence of the report: our samplers pass at h = 0.1, wrong ones are rejected."""
    steps = 400 if profile == "quick" else 3000
    found = _FOUND[profile, seed] = []
    for box in own_boxes(profile):
        for finding in check_black_box(box, warmup=steps // 4, steps=steps, seed=seed):
            found.append(finding)
            yield finding
    for box in wrong_boxes(profile):
        report = check_black_box(box, warmup=steps // 4, steps=steps, seed=seed)
        yield rejection(report, box)


def rejection(report: Report, box: BlackBox) -> Finding:
    """A wrong sampler was seen: at least one check failed."""
    failed = report.failures
    detail = "; ".join(f"{f.check}: {f.figure:.3g}" for f in failed[:2])
    return Finding("a wrong sampler is rejected", box.name, len(failed), "≥ 1 failed check", bool(failed), detail)


def figure(figure: Any, profile: str = "quick", seed: int = 0) -> None:
    """Variance ÷ truth of every sampler and target, with its bound, on a matplotlib figure."""
    found = _FOUND[profile, seed] if (profile, seed) in _FOUND else list(findings(profile, seed))
    rows = [f for f in found if f.check.startswith("variance ÷ truth")]
    axes = figure.subplots()
    room = np.array([float(f.bound.split("±")[1].split()[0]) for f in rows])
    axes.errorbar([f.figure for f in rows], np.arange(len(rows)), xerr=room, fmt="none", ecolor="0.8", elinewidth=4)
    axes.plot([f.figure for f in rows], np.arange(len(rows)), "o", ms=4)
    axes.axvline(1.0, color="0.3", lw=0.8)
    axes.set_yticks(np.arange(len(rows)), [f"{f.subject}; {f.check.split('; ')[1]}" for f in rows], fontsize=5)
    axes.set_xlabel("variance of θ ÷ truth; grey: what the check allows")
