"""A test of the tests: wrong samplers that the checks must reject, and right ones that they must not.

`mutation_table` puts every wrong sampler of the catalogue to every trial (see trials.py), names the first that rejects it, and
makes the error smaller until that trial no longer sees it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.evidence.validation.catalogue import MUTANTS, Mutant, right_ones
from sgmcmc.evidence.validation.trials import STATISTICS, TRIALS, Outcome, Trial, Z
from sgmcmc.testing.report import Finding

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MUTANTS", "TRIALS", "figure", "findings", "mutation_table", "table", "verdicts"]

MOST_HALVINGS = 40  # after these a size is as good as 0
SEEDS = {"quick": 2, "full": 20}


class Verdict(NamedTuple):
    """What became of one wrong sampler."""

    mutant: Mutant
    outcomes: tuple[Outcome | None, ...]  # one per trial; None where it does not apply
    smallest: float  # the smallest size of the error that the catching trial saw; NaN if none caught it

    @property
    def catcher(self) -> int | None:
        """The first trial that rejected."""
        return next((i for i, o in enumerate(self.outcomes) if o is not None and o.rejects), None)


def verdicts(profile: str = "quick", seed: int = 0) -> tuple[Verdict, ...]:
    """Every wrong sampler before every trial; computed once for a profile and a seed."""
    return _verdicts(profile, seed)


@lru_cache(maxsize=4)
def _verdicts(profile: str, seed: int) -> tuple[Verdict, ...]:
    return tuple(_try(mutant, profile, seed) for mutant in MUTANTS)


def _try(mutant: Mutant, profile: str, seed: int) -> Verdict:
    candidate = mutant.make(mutant.size)
    outcomes = tuple(_outcome(trial, candidate, mutant.dim, profile, seed) for trial in TRIALS)
    verdict = Verdict(mutant, outcomes, np.nan)
    if verdict.catcher is None:
        return verdict
    i, caught = next((i, o) for i, o in enumerate(outcomes) if o is not None and o.rejects)
    return verdict._replace(smallest=_smallest(mutant, TRIALS[i], caught.ratio, profile, seed))


def _outcome(trial: Trial, candidate: Any, dim: int, profile: str, seed: int) -> Outcome | None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # wrong samplers overflow, and are told so by the bound
        return trial.run(candidate, dim, profile, seed)


def _smallest(mutant: Mutant, trial: Trial, ratio: float, profile: str, seed: int) -> float:
    """The smallest of size, size/2, size/4, … that is still rejected, from a guess: that the figure falls like the size."""

    def seen(exponent: int) -> bool:
        outcome = _outcome(trial, mutant.make(mutant.size * 0.5**exponent), mutant.dim, profile, seed)
        return outcome is not None and outcome.rejects

    exponent = int(np.clip(np.log2(ratio), 0, MOST_HALVINGS)) if np.isfinite(ratio) else 3
    while exponent < MOST_HALVINGS and seen(exponent + 1):
        exponent += 1
    while exponent > 0 and not seen(exponent):
        exponent -= 1
    return mutant.size * 0.5**exponent


def mutation_table(profile: str = "quick", seed: int = 0) -> pd.DataFrame:
    """One row per wrong sampler: what is wrong, what caught it, the figure and its bound, the smallest size seen."""
    import pandas as pd

    rows = []
    for verdict in verdicts(profile, seed):
        i = verdict.catcher
        outcome = None if i is None else verdict.outcomes[i]
        rows.append(
            {
                "wrong sampler": verdict.mutant.name,
                "in": verdict.mutant.base,
                "caught by": "NOTHING" if i is None else TRIALS[i].name,
                "figure": np.nan if outcome is None else outcome.figure,
                "bound": np.nan if outcome is None else outcome.bound,
                "size": verdict.mutant.size,
                "smallest size seen": verdict.smallest,
                "rejected by": sum(o is not None and o.rejects for o in verdict.outcomes),
            }
        )
    return pd.DataFrame(rows)


table = mutation_table


def ratios(profile: str = "quick", seed: int = 0) -> NDArray[np.float64]:
    """log₁₀(figure/bound), wrong samplers × trials; NaN where a trial does not apply."""
    rows = [[np.nan if o is None else o.ratio for o in v.outcomes] for v in verdicts(profile, seed)]
    with np.errstate(divide="ignore"):
        logs: NDArray[np.float64] = np.log10(np.array(rows))
    return logs


def is_caught(mutant: Mutant, profile: str, seed: int) -> bool:
    """Whether any trial rejects it."""
    candidate = mutant.make(mutant.size)
    outcomes = (_outcome(trial, candidate, mutant.dim, profile, seed) for trial in TRIALS)
    return any(o is not None and o.rejects for o in outcomes)


def findings(profile: str = "quick", seed: int = 0) -> Iterator[Finding]:
    """Every wrong sampler is rejected, no right one is, over fresh seeds."""
    for v in verdicts(profile, seed):
        i = v.catcher
        outcome = None if i is None else v.outcomes[i]
        caught = "by nothing" if i is None else f"by {TRIALS[i].name}; smallest size seen {v.smallest:.2g}"
        bound = "rejected" if outcome is None else f"rejected: ≥ {outcome.bound:.3g}"
        shown = np.nan if outcome is None else outcome.figure
        yield Finding("wrong sampler", f"{v.mutant.name} ({v.mutant.base})", shown, bound, i is not None, caught)
    seeds = range(seed + 1, seed + 1 + SEEDS[profile])
    passing = [m.name for s in seeds for m in MUTANTS if not is_caught(m, "quick", s)]
    count = f"{len(MUTANTS)} wrong samplers × {len(seeds)} seeds" + (f"; passed: {set(passing)}" if passing else "")
    yield Finding("wrong samplers over fresh seeds", "that no check rejected", len(passing), "= 0", not passing, count)
    for name, candidate, dim in right_ones(profile):
        found = [(_outcome(t, candidate, dim, "quick", s), t.name, s) for s in seeds for t in TRIALS]
        worst = max((o.ratio, trial, s) for o, trial, s in found if o is not None)
        detail = f"worst at {worst[1]}, seed {worst[2]}; {len(seeds)} seeds; |z| < {Z:.2f} for {STATISTICS} statistics"
        yield Finding("right sampler", name, worst[0], "figure/bound < 1", worst[0] < 1.0, detail)


def figure(figure: Any, profile: str = "quick", seed: int = 0) -> None:
    """Draw on a matplotlib figure which trial sees which error: log₁₀(figure/bound), red where it rejects."""
    from matplotlib.colors import SymLogNorm

    values = ratios(profile, seed)
    figure.set_size_inches(9.0, 2.0 + 0.2 * len(values))
    axes = figure.subplots()
    scale = SymLogNorm(0.3, vmin=-10.0, vmax=10.0)  # z of 20 against 6 is as clear as a residual of 0.1 against 1e-9
    image = axes.imshow(np.clip(values, -10.0, 10.0), cmap="RdBu_r", norm=scale, aspect="auto")
    axes.set_facecolor("0.9")
    axes.set_yticks(range(len(values)), [m.name for m in MUTANTS], fontsize=7)
    axes.set_xticks(range(len(TRIALS)), [t.name for t in TRIALS], rotation=35, ha="right", fontsize=8)
    for row, verdict in enumerate(verdicts(profile, seed)):
        if verdict.catcher is not None:
            axes.plot(verdict.catcher, row, "k.", markersize=4)
    bar = figure.colorbar(image, ax=axes, shrink=0.6, ticks=[-10, -3, -1, 0, 1, 3, 10], format="%g")
    bar.set_label("log₁₀(figure / bound): rejected above 0")
    axes.set_title("Wrong samplers × checks (dot: the first to reject; grey: does not apply)", fontsize=10)
