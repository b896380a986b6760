"""Samplers seen from outside: checks of anything that steps, from a state and a gradient to the next state.

Nothing is known of the sampler but its draws of θ and the temperature it claims, so another library's can be put to the
same test. The verdict is on what comes out at the step size it was given: the error of the discretisation is part of it, up
to a tolerance of 1 %. See outside_checks.py for what is judged and outside_runs.py for the runs: half of the chains start
in the target, half away from it, and the target is as narrow as the steps are small.

A run whose checks would not have seen an error of 5 % goes on, four times, to 20,000 steps. What is then still
not seen is "not resolved", which is no pass.

How to check another sampler, here ten lines of NumPy:

>>> import numpy as np
>>> from sgmcmc.testing.black_box import BlackBox, check_black_box
>>> rng = np.random.default_rng(0)
>>> def step(theta, gradient):  # stochastic gradient Langevin dynamics, with explicit Euler steps of size 0.01
...     return theta - 0.01 * gradient + np.sqrt(0.02) * rng.normal(size=theta.shape)
>>> mine = BlackBox("my SGLD", init=lambda theta, seed: theta, step=step, vectorised=True)
>>> report = check_black_box(mine)
>>> report.verdict, report.passed
('right', True)
>>> bool(report.power.max() < 0.25)  # the smallest error that each check would have seen
True

`report.table` shows the figures. A state with more than θ in it needs `position=lambda state: ...`. If `init` draws what is
hidden (momenta, frictions) from its own law, say `draws_hidden=True`: the first draws are then looked at as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.testing import textbook
from sgmcmc.testing.adapter import BlackBox, as_black_box
from sgmcmc.testing.outside_checks import Rules, first_draws, is_settled, judge
from sgmcmc.testing.outside_runs import Run, natural_scale
from sgmcmc.testing.outside_runs import all_chains as _all_chains  # noqa: F401
from sgmcmc.testing.report import RIGHT, WRONG, Finding, Report
from sgmcmc.testing.targets import GAUSSIAN, SKEW, Target, scaled

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BlackBox", "as_black_box", "check_black_box", "figure", "findings", "measure"]

Array = NDArray[np.float64]

TOLERANCE = 0.01
FAMILY = 500  # checks that share the false-alarm budget
ROUNDS = 5  # a run is made longer four times, by equal factors
LONGEST = 20_000  # steps of a run that is asked for no more


class Moments(NamedTuple):
    """What a run leaves, per chain: averages over coordinates and time of x = (θ − mean)/sd, and of the first draws."""

    mean: Array
    second: Array
    first: Array  # (chains, 2): what the first draws add to the mean and to the second moment of the start


def measure(
    box: BlackBox,
    target: Target,
    dim: int,
    chains: int | None = None,
    warmup: int = 300,
    steps: int = 1000,
    seed: int = 0,
) -> Moments:
    """Moments of chains from exact starts in θ; whatever overflows gives NaN."""
    run = Run(box, target, dim, chains, seed, away=False)
    run.advance(warmup + steps)
    if run.lost:
        lost = np.full(len(run.away), np.nan)
        return Moments(lost, lost, np.full((lost.size, 2), np.nan))
    window = run.window(warmup / (warmup + steps))
    return Moments(window.mean.mean(axis=1), window.second.mean(axis=1), run.first)


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
    longest: int | None = None,
) -> Report:
    """Put a black box to the test; by default on Gaussians in 1, 20 and 200 dimensions and on a skew target in 20.

    Chains that step one by one: Gaussians in 50 and 400 dimensions, the skew target in 200. Moments, of all coordinates
    and of each; correlations between coordinates, increments and chains; whether a start away from the target is
    forgotten; the first draws after an exact start, where `box.draws_hidden` allows it. Without a `target` of yours
    they are as narrow as its steps are small (`natural_scale`).

    Parameters
    ----------
    box : BlackBox
    target : Target, optional
    dim, chains : int, optional
    warmup, steps : int
        Of the first round. While a check would not have seen an error of 5 %, the run goes on, four times, up to
        `longest` steps in all (20,000). `report.verdict` is "not resolved" if that is not enough.
    seed : int
    tolerance : float
        The relative error to accept.
    family : int
        So many checks share a false-alarm probability of 1e-4, over all rounds.
    longest : int, optional

    Returns
    -------
    Report

    Examples
    --------
    >>> box, target = sg.testing.as_black_box(sg.SGLD(0.1)), sg.testing.targets.GAUSSIAN
    >>> sg.testing.check_black_box(box, target, dim=1, chains=20, warmup=5, steps=10, longest=20).verdict
    'not resolved'
    """
    problems = _problems(box, target, dim)
    rules = Rules(tolerance, family * ROUNDS, "")
    scale = natural_scale(box, seed) if target is None else 1.0
    here = [(scaled(one, scale), d) for one, d in problems]
    found = _check_problems(box, here, chains, warmup, steps, longest, rules, seed)
    return Report(f"{box.name}, seen from outside", found)


def check_at_scale(box: BlackBox, s: float, seed: int = 0) -> Report:
    """The checks from outside on targets of scale s, in 1 and 20 dimensions: for samplers whose coordinates are all alike."""
    problems = [(scaled(GAUSSIAN, s), 1), (scaled(GAUSSIAN, s), 20), (scaled(SKEW, s), 20)]
    rules = Rules(TOLERANCE, FAMILY * ROUNDS, "")
    return Report(f"{box.name}, seen from outside", _check_problems(box, problems, None, 300, 1000, None, rules, seed))


def _check_problems(
    box: BlackBox,
    problems: list[tuple[Target, int]],
    chains: int | None,
    warmup: int,
    steps: int,
    longest: int | None,
    rules: Rules,
    seed: int,
) -> list[Finding]:
    found: list[Finding] = []
    for problem, d in problems:
        enough = warmup + steps if any(f.verdict == WRONG for f in found) else longest  # that it is wrong is known
        found += _until_resolved(Run(box, problem, d, chains, seed), warmup, steps, enough, rules, seed)
        if box.starts_in_law:
            found += first_draws(box, problem, d, chains, rules, seed)
    return found


def _problems(box: BlackBox, target: Target | None, dim: int | None) -> list[tuple[Target, int]]:
    """In one dimension only where a step moves all chains at once: one by one they would take a minute."""
    if target is not None:
        return [(target, 1 if dim is None else dim)]
    dims = ((1, 20, 200) if box.vectorised else (50, 400)) if dim is None else (dim,)
    last = (20 if box.vectorised else 200) if dim is None else dim
    return [(GAUSSIAN, d) for d in dims] + [(SKEW, last)]


def _until_resolved(run: Run, warmup: int, steps: int, longest: int | None, rules: Rules, seed: int) -> list[Finding]:
    """Findings of the first round that is resolved, or wrong for good, or the last. All rounds share the budget."""
    once = warmup + steps
    longest = max(LONGEST if longest is None else longest, once)
    growth = (longest / once) ** (1.0 / (ROUNDS - 1))
    warm = max(warmup / once, 0.25)
    found: list[Finding] = []
    for r in range(ROUNDS):
        run.advance(round(once * growth**r) - run.steps)
        about = f"{len(run.away)} chains of {run.steps} steps, seed {seed}"
        found = judge(run, rules._replace(about=about), warm)
        wrong = any(f.verdict == WRONG for f in found)
        if all(f.passed for f in found) or (wrong and is_settled(run, warm)) or run.lost:
            break
    return found


def own_boxes(profile: str = "quick") -> list[BlackBox]:
    """Samplers of this package at h = 0.1, over temperatures and frictions."""
    from sgmcmc.samplers.presets import SGHMC, SGLD, SGMGT, SGMGTD, SGNHT

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
    """The evidence of the report: our samplers and right twins of wrong ones pass, wrong ones are rejected."""
    from sgmcmc.testing.wrong_boxes import right_twins

    steps = 400 if profile == "quick" else 3000
    found = _FOUND[profile, seed] = []
    for box in own_boxes(profile):
        for finding in check_black_box(box, warmup=steps // 4, steps=steps, seed=seed):
            found.append(finding)
            yield finding
    for box in right_twins() if profile == "full" else ():
        yield from check_black_box(box, warmup=steps // 4, steps=steps, seed=seed)
    for box in wrong_boxes(profile):
        report = check_black_box(box, warmup=steps // 4, steps=steps, seed=seed)
        yield rejection(report, box)
    for row in mutation_table(profile, seed).itertuples(index=False):
        words = f"{row[2]}: {row[3]:.3g}, bound {row[4]}"
        yield Finding("a wrong sampler is rejected", row[0], row[3], "wrong or not resolved", row[1] != RIGHT, words)


@lru_cache(maxsize=4)
def mutation_table(profile: str = "quick", seed: int = 0) -> pd.DataFrame:
    """What became of the twelve kinds of wrong samplers, with the smallest error that each check would have seen."""
    from sgmcmc.testing.wrong_boxes import rejection_table

    return rejection_table(seed, *((100, 400) if profile == "quick" else (300, 1000)))


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
    margin = np.array([float(f.bound.split("±")[1].split()[0]) for f in rows])
    axes.errorbar([f.figure for f in rows], np.arange(len(rows)), xerr=margin, fmt="none", ecolor="0.8", elinewidth=4)
    axes.plot([f.figure for f in rows], np.arange(len(rows)), "o", ms=4)
    axes.axvline(1.0, color="0.3", lw=0.8)
    axes.set_yticks(np.arange(len(rows)), [f"{f.subject}; {f.check.split('; ')[1]}" for f in rows], fontsize=5)
    axes.set_xlabel("variance of θ ÷ truth; grey: what the check allows")
