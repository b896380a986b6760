"""What is judged of a black box's run: each figure with its bound, and the smallest error that would have been seen.

A figure passes while |figure − truth| < tolerance + t·se: se is the standard error over independent chains, t Student's bound
for the whole family of checks and rounds. An error of tolerance + (t + 1.64)·se is seen with a probability of 95 %: that is
the power. A check with less power than it needs is not resolved, and has not passed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.testing.adapter import BlackBox
from sgmcmc.testing.outside_runs import FIRST, Averages, Run
from sgmcmc.testing.report import Finding
from sgmcmc.testing.statistics import p_bound, t_bound
from sgmcmc.testing.targets import GAUSSIAN, SKEW, Target

__all__ = ["NEEDED", "Rules", "first_draws", "is_settled", "judge"]

Array = NDArray[np.float64]
NEEDED = 0.05  # every check must see an error of 5 %
FRICTION = 0.045  # a friction 5 % too strong makes the variance 4.8 % too small
THIRD = 0.06  # in units of E|x|³, of which the third moment of the skew target is 0.37
SURE = 0.15  # the start is forgotten as far as this, or only what is far off is called wrong
LOCAL = 0.3  # for a single coordinate or pair out of many
SURELY = 1.645  # standard errors beyond a bound: seen with a probability of 95 %


class Rules(NamedTuple):
    """What is allowed: the tolerance for the discretisation, and how many checks share the false-alarm budget."""

    tolerance: float
    family: int
    about: str  # chains, steps, seed

    def bound(self, samples: int, parts: int = 1) -> float:
        return t_bound(self.family * parts, samples)


class Judge:
    """Findings about one run. `doubt` is how far a figure may be off because the start is not forgotten yet."""

    def __init__(self, run: Run, rules: Rules, doubt: float = 0.0) -> None:
        self.run, self.rules, self.doubt = run, rules, doubt
        self.where = f"{run.target.name}, d = {run.dim}, T = {run.box.temperature:g}"

    def near(self, check: str, values: Array, truth: float, needed: float = NEEDED) -> Finding:
        """The mean of independent values is `truth`."""
        allowed, n = self.rules.tolerance, len(values)
        t = self.rules.bound(n)
        figure, se = float(values.mean()), float(values.std(ddof=1) / n**0.5)
        margin = allowed + t * se
        words = f"{truth:.4g} ± {margin:.2g} ({allowed:g} + {t:.2f}·se)"
        return self.finding(check, figure, truth, margin, words, margin + SURELY * se, needed, f"se {se:.2g}; ")

    def all_near(self, check: str, values: Array, truth: float, names: list[str], needed: float) -> Finding:
        """The means of many figures (chains, figures) are `truth`: the one that is farthest off for its bound."""
        t, n = self.rules.bound(len(values), values.shape[1]), len(values)
        figures, se = values.mean(axis=0), values.std(axis=0, ddof=1) / n**0.5
        margin = self.rules.tolerance + t * se
        k = int(np.argmax(np.abs(figures - truth) / margin))
        words = f"{truth:.4g} ± {margin[k]:.2g} ({self.rules.tolerance:g} + {t:.2f}·se)"
        power = float((margin + SURELY * se).max())
        detail = f"se {se[k]:.2g}; {names[k]} of {len(names)}; "
        return self.finding(check, float(figures[k]), truth, float(margin[k]), words, power, needed, detail)

    def finding(
        self,
        check: str,
        figure: float,
        truth: float,
        margin: float,
        words: str,
        power: float,
        needed: float,
        detail: str,
    ) -> Finding:
        """What is outside its bound, however wide that is, is wrong, unless the start may be the reason."""
        off = abs(figure - truth)
        inside, resolved = bool(off < margin), power <= needed
        wrong = not inside and off > self.doubt
        about = detail + self.rules.about + ("" if resolved else f"; {needed:g} should be seen")
        about += "" if inside or wrong else "; the start is not forgotten"
        name = f"{check}; {self.where}"
        return Finding(
            name, self.run.box.name, figure, words, inside and resolved, about, power, wrong or (resolved and inside)
        )


def judge(run: Run, rules: Rules, warm: float) -> list[Finding]:
    """All findings of a run, of which the part `warm` is warm-up."""
    judge = Judge(run, rules)
    if run.lost:
        name = f"variance ÷ truth; {judge.where}"
        return [Finding(name, run.box.name, np.nan, "finite", False, f"diverged; {rules.about}")]
    if run.stands_still:
        words = f"what a step moves by, in standard deviations; {judge.where}"
        return [Finding(words, run.box.name, 0.0, "> 0", False, f"no chain has moved; {rules.about}", 0.0)]
    window = run.window(warm)
    start, doubt = _forgets(judge, window)
    judge.doubt = doubt
    kept = np.ones(len(run.away), bool) if doubt < LOCAL else ~run.away
    mine = Averages(*(a[kept] for a in window))
    found = [*_moments(judge, mine), *start, *_dependence(judge, mine)]
    found.append(_independent(judge, run.standard(run.theta[kept]) - mine.mean.mean()))
    return found


RESTARTS = 64


def first_draws(box: BlackBox, target: Target, dim: int, chains: int | None, rules: Rules, seed: int) -> list[Finding]:
    """The first draws after exact starts are in the target: as many starts as it takes to see 5 %, or 64 times the chains."""
    parts: list[Array] = []
    for k in range(RESTARTS):
        run = Run(box, target, dim, chains, seed + 1000 * (k + 1), away=False)
        run.advance(FIRST)
        if run.lost:
            return []  # the run itself says so
        parts.append(run.first)
        if k % 4 == 3:
            judge = Judge(run, rules._replace(about=f"{FIRST} draws of {(k + 1) * len(run.away)} chains, seed {seed}"))
            first = np.concatenate(parts)
            found = [judge.near("first draws: mean, in standard deviations", first[:, 0], 0.0)]
            found.append(judge.near("first draws: variance ÷ truth", 1.0 + first[:, 1], 1.0))
            if all(f.power <= NEEDED for f in found):
                break
    return found


def _moments(judge: Judge, w: Averages) -> Iterator[Finding]:
    run = judge.run
    yield judge.near("variance ÷ truth", w.second.mean(axis=1), 1.0, FRICTION)
    yield judge.near("mean, in standard deviations", w.mean.mean(axis=1), 0.0)
    if not run.target.name.startswith(GAUSSIAN.name):  # there they say nothing new
        size = run.law.mean(lambda x: np.abs(run.standard(x)) ** 3)
        truth = run.law.mean(lambda x: run.standard(x) ** 3) / size
        yield judge.near("third moment ÷ E|·|³", w.third / size, truth, THIRD)
        yield judge.near("virial E[θU'] ÷ T", w.virial, 1.0)
    elif run.dim > 1:
        names = [f"coordinate {i}" for i in range(run.dim)]
        yield judge.all_near("variance ÷ truth, each coordinate", w.second, 1.0, names, LOCAL)


def _dependence(judge: Judge, w: Averages) -> Iterator[Finding]:
    """Coordinates of a product law are uncorrelated, and so are their increments."""
    d = judge.run.dim
    if d == 1 or judge.run.target.name.startswith(SKEW.name):
        return
    yield judge.near("correlation, all pairs of coordinates", w.pairs, 0.0)
    yield judge.near("correlation, neighbours", w.neighbours, 0.0)
    size = max(float(w.moved.mean()), 1e-300)
    yield judge.near("correlation of increments, all pairs", w.moved_pairs / size, 0.0)
    if w.products.size:
        i, j = np.triu_indices(d, 1)
        names = [f"pair {a}, {b}" for a, b in zip(i, j, strict=True)]
        yield judge.all_near("correlation, each pair", w.products[:, i, j], 0.0, names, LOCAL)


def _forgets(judge: Judge, w: Averages) -> tuple[list[Finding], float]:
    """Chains that started away from the target have come to where those are that started in it; and how sure that is.

    The chains that started in the target had only their hidden variables to forget, say momenta of 0: what is left of that
    falls as the gap does, and is less (without momenta a variance of 1 becomes a half, one of 2.5 becomes 1.25).
    """
    run = judge.run
    if not run.away.any():
        return [], 0.0
    second = w.second.mean(axis=1)
    figure, se = _gap(second, run.away)
    t = judge.rules.bound(int(run.away.sum()))
    margin = judge.rules.tolerance + t * se
    words = f"0 ± {margin:.2g} ({judge.rules.tolerance:g} + {t:.2f}·se)"
    check = f"forgets its start: variance from away − from the target; {judge.where}"
    power, inside = margin + SURELY * se, abs(figure) < margin
    about = f"se {se:.2g}; starts at {STARTS}; {judge.rules.about}"
    passed = bool(inside and power <= 2.0 * NEEDED)
    doubt = abs(figure) + (3.0 * se if margin <= SURE else margin) if inside else np.inf
    return [Finding(check, run.box.name, figure, words, passed, about, power, passed)], doubt


STARTS = "1.5 standard deviations, shifted by 0.5"


def _gap(values: Array, away: NDArray[np.bool_]) -> tuple[float, float]:
    """The difference of two groups' means and its standard error."""
    a, b = values[away], values[~away]
    return float(a.mean() - b.mean()), float(np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b)))


def _independent(judge: Judge, last: Array) -> Finding:
    """p-value of Σ over coordinates of chains·mean²/variance: chains that share their noise have a common mean."""
    from scipy.stats import f as fisher

    chains, dim = last.shape
    level = p_bound(judge.rules.family)
    spread = float(last.var(axis=0, ddof=1).mean())
    p = 0.0
    if spread > 0.0:
        p = float(fisher.sf(chains * (last.mean(axis=0) ** 2).mean() / spread, dim, dim * (chains - 1)))
    power = float(fisher.isf(level, dim, dim * (chains - 1)) - 1.0) / chains  # the correlation that would be seen
    detail = f"p-value of the chains' mean in each coordinate at the end; {judge.rules.about}"
    name = f"chains are independent; {judge.where}"
    return Finding(name, judge.run.box.name, p, f"> {level:.1g}", p > level, detail, power)


def is_settled(run: Run, warm: float) -> bool:
    """Whether the two halves of what counts agree, so that a longer run would find the same."""
    if run.lost:
        return True
    middle = 0.5 * (1.0 + warm)
    one, two = (run.window(*part).second.mean(axis=1) for part in ((warm, middle), (middle, 1.0)))
    change = two - one
    return bool(abs(float(change.mean())) <= 4.0 * float(change.std(ddof=1) / len(change) ** 0.5) + 1e-3)
