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
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.samplers import Sampler
from sgmcmc.testing.laws import Law
from sgmcmc.testing.report import Finding, Report
from sgmcmc.testing.statistics import p_bound, z_bound
from sgmcmc.testing.subjects import Kernel, laws_of
from sgmcmc.testing.targets import GAUSSIAN, SKEW, Target

__all__ = ["BlackBox", "as_black_box", "check_black_box", "measure"]

Array = NDArray[np.float64]

TOLERANCE = 0.01
FAMILY = 500  # checks that share the false-alarm budget
FIRST = 10  # so many steps are the first draws
COORDINATES = 4096  # chains × dimension of a run, if it goes over all chains at once


def _itself(state: Any) -> Any:
    return state


@dataclass(frozen=True)
class BlackBox:
    """Anything that steps, with the temperature it claims to sample at.

    Parameters
    ----------
    init : (θ, seed) → state; θ has shape (dim,), or (chains, dim) if `vectorised`.
    step : (state, gradient) → state, with the gradient of U at the position of the state, an array like θ.
    position : state → θ; by default the state is θ.
    temperature : T; the law of θ should be exp(−U/T).
    vectorised : one state holds all chains. Else there is a state, and a seed, for every chain.
    calls_gradient : `step` gets the function θ → ∇U(θ) in the place of the array, for samplers that need several per step.
    """

    name: str
    init: Callable[[Array, int], Any]
    step: Callable[[Any, Any], Any]
    position: Callable[[Any], Any] = _itself
    temperature: float = 1.0
    vectorised: bool = False
    calls_gradient: bool = False


def as_black_box(sampler: Sampler, name: str | None = None, vectorised: bool = True) -> BlackBox:
    """A sampler of this package behind the same door: its real kernel for many chains, or its own `init` and `step`.

    Momenta start as in any run. A friction ξ starts in its law, not at its mean, so that the first draws can be judged.
    """
    kernel = Kernel(sampler, name)
    if not vectorised:
        return BlackBox(kernel.name, sampler.init, sampler.step, lambda s: s.theta, sampler.temperature)

    def init(theta: Array, seed: int) -> Any:
        state = kernel.start(theta)
        state.p[:] = kernel.draw_momenta(state, seed)
        friction = laws_of(sampler, GAUSSIAN, theta.shape[1])[2]
        if friction is not None:
            rng = np.random.default_rng([seed, 1])
            state.xi[:] = friction.draw(state.xi.size, rng).reshape(state.xi.shape)
        return state, seed, 0, 0.0

    def step(state: Any, gradient: Array) -> Any:
        arrays, seed, k, before = state
        h = float(sampler.schedule.step_sizes(np.array([k]))[0])
        noise = kernel.draw_noise(arrays, seed, k)
        return kernel.move(arrays, gradient, noise, before, h, k, seed), seed, k + 1, h

    return BlackBox(kernel.name, init, step, lambda s: s[0].theta, sampler.temperature, vectorised=True)


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
    box: BlackBox, target: Target, dim: int, chains: int | None = None, warmup: int = 300, steps: int = 1000, seed: int = 0
) -> Moments:
    """Run chains from exact starts in θ; whatever overflows gives NaN."""
    law = target.law(box.temperature)
    if chains is None:
        chains = max(64, COORDINATES // dim) if box.vectorised else 64
    start = law.draw(chains * dim, np.random.default_rng([seed, dim])).reshape(chains, dim)
    states, advance, where = _all_chains(box, start, seed)
    center, scale = law.mean(lambda x: x), law.variance**0.5
    sums, first = np.zeros((4, chains)), np.zeros((chains, 2))
    begin = _powers((start - center) / scale)
    theta = start
    with np.errstate(all="ignore"):
        for k in range(warmup + steps):
            gradient = target.gradient(theta)
            if not np.isfinite(gradient).all():
                return Moments(*np.full((4, chains), np.nan), np.full((chains, 2), np.nan), theta, law)
            if k >= warmup:
                sums[:3] += _powers((theta - center) / scale)
                sums[3] += (theta * gradient).mean(axis=1) / box.temperature
            states = advance(states, gradient if not box.calls_gradient else target.gradient)
            theta = where(states)
            if k < FIRST:
                first += (_powers((theta - center) / scale) - begin)[:2].T / FIRST
    return Moments(*(sums / steps), first, theta, law)


def _powers(x: Array) -> Array:
    """x, x² and x³, averaged over coordinates."""
    powers: Array = np.stack([x, x**2, x**3]).mean(axis=2)
    return powers


def _all_chains(box: BlackBox, start: Array, seed: int) -> tuple[Any, Callable[[Any, Any], Any], Callable[[Any], Array]]:
    """The states of all chains, how they advance together, and where they are (chains, dim)."""
    base = int(np.random.SeedSequence([seed, start.shape[1]]).generate_state(1)[0] >> 2)  # fits in 31 bits everywhere
    if box.vectorised:
        return box.init(start.copy(), base), box.step, lambda state: _positions(box, box.position(state), start.shape)

    def advance(states: list[Any], gradient: Any) -> list[Any]:
        one_each = [gradient] * len(states) if box.calls_gradient else gradient
        return [box.step(s, g) for s, g in zip(states, one_each, strict=True)]

    def where(states: list[Any]) -> Array:
        return _positions(box, np.stack([np.asarray(box.position(s), float) for s in states]), start.shape)

    return [box.init(row.copy(), base + k) for k, row in enumerate(start)], advance, where


def _positions(box: BlackBox, theta: Any, shape: tuple[int, ...]) -> Array:
    theta = np.array(theta, float)  # a copy: the sampler may go on in place
    if theta.shape != shape:
        raise ValueError(
            f"the position of {box.name} has shape {theta.shape}; give {shape} for all chains (or {shape[1:]} for one)"
        )
    return theta


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
    yield Finding(f"chains are independent; {where}", box.name, p, f"> {p_bound(family):.1g}", p > p_bound(family), detail)


def _independence(last: Array) -> float:
    """p-value of Σ over coordinates of chains·mean²/variance: chains that share their noise have a common mean."""
    from scipy.stats import f as fisher

    chains, dim = last.shape
    spread = float(last.var(axis=0, ddof=1).mean())
    if not spread > 0.0:
        return 0.0
    return float(fisher.sf(chains * (last.mean(axis=0) ** 2).mean() / spread, dim, dim * (chains - 1)))
