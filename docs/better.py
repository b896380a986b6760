"""Writes docs/better.md: the paper's own scheme beside this package's, and beside tuned SGHMC and SGNHT, at equal gradients.

    python docs/better.py [TARGET ...]   # wells, mixture, A, G, H, P, R, C, lda, drbm; with SGMCMC_DATA where the data are

Every contestant is tuned by `sg.tune` with the same budget; of lda and drbm as docs/better_large.py says. Rows are kept in
docs/better.csv after every target.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import better_large
import numpy as np
import pandas as pd
from targets import NAMES, TARGETS, Target, kept, paper, with_error

import sgmcmc as sg
from sgmcmc import diagnostics

HERE = Path(__file__).parent
ROWS = HERE / "better.csv"
CHAINS, GRADIENTS, SEEDS, DRAWS = 4, 40_000, (21, 22, 23, 24, 25), 2000
BUDGET = 400_000


CONTESTANTS = {
    "SGMGT-D": sg.SGMGTD,
    "SGMGT-D, the paper's": paper,
    "SGHMC, BAOAB": sg.SGHMC,
    "SGNHT, BADODAB": sg.SGNHT,
}
LARGE = {"lda": "topics of abstracts, LDA", "drbm": "digits, DRBM"}
SPACES: dict[str, dict[str, Any]] = {"SGMGT-D, the paper's": {"a": [1.0, 2.0]}}


def measured(target: Target) -> list[dict[str, Any]]:
    rows = []
    options = dict(target.options)
    size = options.pop("batch_size", None)
    temperature = options.pop("temperature", 1.0)
    for name, make in CONTESTANTS.items():
        space = SPACES.get(name, {}) | {"scale": target.scale} | ({} if size is None else {"batch_size": size})
        criterion = None if size is not None else (lambda trace: target.error(trace.draws) ** 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of stiff settings, which lose by their score
            best = sg.tune(
                make,
                target.model,
                BUDGET,
                space=space,
                criterion=criterion,
                temperature=temperature,
                progress=False,
                **options,
            )
        rows += [{"sampler": name, "setting": repr(best), "seed": seed} | one_run(best, target, seed) for seed in SEEDS]
    return rows


def one_run(best: Any, target: Target, seed: int) -> dict[str, float]:
    """Error and ESS per 1000 gradients of a run of so many gradients per chain, from where tuning ended."""
    try:
        trace = best.sample(DRAWS, thin=GRADIENTS // DRAWS, warmup=0, seed=seed, progress=False, warn=False)
    except sg.DivergenceError:
        return {"error": np.nan, "ESS": 0.0}
    sizes = [diagnostics.ess(trace.draws[:, :, j]) for j in range(trace.dim)]
    return {"error": target.error(trace.draws), "ESS": 1000.0 * float(np.median(sizes)) / (CHAINS * GRADIENTS)}


def write(table: pd.DataFrame) -> None:
    lines = [
        "# Better than the paper?",
        "",
        "Written by `docs/better.py`. Every contestant is tuned by `sg.tune` with the same budget "
        f"({BUDGET:,} gradients), then runs {CHAINS} chains of {GRADIENTS:,} gradients from there, mean of {len(SEEDS)} seeds ± "
        "its standard error. *The paper's* SGMGT-D has Euler steps, the published softening and a fixed centre; ours a symmetric "
        "splitting with one gradient, a smooth softening and an adaptive centre. Units and axes (`scale`) are the same for all. "
        "The error is that of the shares of wells or modes (total variation; tuned by it, too) or, for regressions, the distance "
        "of mean and sd to the exact posterior (tuned without knowing it). ESS is the median over coordinates, per 1000 "
        "gradients.",
        "",
        *rows_of(table, NAMES, "error"),
        "",
        *said(table, NAMES),
        "",
        "## Topics and digits",
        "",
        "No exact posterior is known here, so the error is that of predictions: test perplexity of the topics of abstracts "
        "(collapsed Gibbs sampling with all the data reaches 797.5, word frequencies 1040.4), and the share of test digits that "
        "the predictive average has wrong. Batches, lengths and tests are those of `sgmcmc reproduce lda` and `drbm`. Each "
        f"contestant has {better_large.SETTINGS} settings, scored on held-out training data; {len(better_large.SEEDS)} seeds. "
        "ESS is that of eight coordinates, with the seeds as chains: these do not agree within such runs, so it says little more "
        "than how fast a chain moves where it is.",
        "",
        *rows_of(table, LARGE, "error of predictions"),
        "",
        *said(table, LARGE),
    ]
    missing = [name for t, name in (NAMES | LARGE).items() if t not in set(table["target"])]
    lines += ["", f"Not measured yet: {', '.join(missing)}."] if missing else []
    (HERE / "better.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def rows_of(table: pd.DataFrame, names: dict[str, str], what: str) -> list[str]:
    """Means over seeds, the least error of each target in bold."""
    lines = [f"| target | sampler | {what} | ESS per 1000 gradients |", "|---|---|---|---|"]
    for target in (t for t in names if t in set(table["target"])):
        own = table[table["target"] == target]
        best = own.groupby("sampler")["error"].mean().idxmin()
        for name in CONTESTANTS:
            rows = own[own["sampler"] == name]
            error, mark = rows["error"], "**" if name == best else ""
            lost = int((~np.isfinite(error)).sum())
            error = error[np.isfinite(error)]
            figure = with_error(error, mark) if len(error) else "–"
            figure += f" ({lost} of {len(rows)} diverged)" if lost else ""
            lines.append(f"| {names[target]} | {name} | {figure} | {rows['ESS'].mean():.3g} |")
    return lines


def said(table: pd.DataFrame, names: dict[str, str]) -> list[str]:
    """Where SGMGT-D wins and where it does not, by two standard errors of the difference, and by how much."""
    lines = []
    for other in list(CONTESTANTS)[1:] if any(t in names for t in table["target"]) else []:
        better, worse, even, gains = [], [], [], []
        for target in (t for t in names if t in set(table["target"])):
            own = table[table["target"] == target].groupby("sampler")
            mean, se, ess = own["error"].mean(), own["error"].sem(), own["ESS"].mean()
            apart = mean[other] - mean["SGMGT-D"]
            place = even if abs(apart) < 2.0 * np.hypot(se[other], se["SGMGT-D"]) else better if apart > 0.0 else worse
            short = names[target].removeprefix("logistic regression, ")
            place.append(f"{short} ({mean[other] / mean['SGMGT-D']:.2g})")
            gains.append(ess["SGMGT-D"] / ess[other])
        lines.append(
            f"* {other}: its error is larger than that of SGMGT-D on {_listed(better)}, smaller on {_listed(worse)}, not to be "
            f"told apart on {_listed(even)} (in brackets how many times as large). SGMGT-D has {min(gains):.2g} to "
            f"{max(gains):.2g} times its ESS per gradient."
        )
    return lines


def _listed(names: list[str]) -> str:
    return ", ".join(names) if names else "none"


def main() -> None:
    for name in sys.argv[1:] if len(sys.argv) > 1 else [*TARGETS, *LARGE]:
        rows = better_large.measured(name) if name in LARGE else measured(TARGETS[name]())
        write(kept(ROWS, name, rows))


if __name__ == "__main__":
    main()
