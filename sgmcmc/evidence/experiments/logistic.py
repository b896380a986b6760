"""Bayesian logistic regression on six data sets: AUROC, effective sample sizes, and the distance to the exact posterior.

Minibatches of 16 rows, 5000 iterations of which 1000 are burn-in, five runs: the folds of `sgmcmc.datasets.fold`, one chain each.
Columns are standardised by the training part, an intercept is added, the prior is N(0, 10²) for every coefficient. Samplers are
tuned on the training rows of the first fold, by how far the draws are from the exact posterior of those rows in mean and
standard deviation: the likelihood of held-out rows would choose settings that run hot (sd ratios above 2), which it cannot see.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sgmcmc.evidence.experiments.exact import Posterior
from sgmcmc.evidence.experiments.harness import Contestant, interval, run_tasks, settings, unfinished
from sgmcmc.evidence.experiments.page import write_section, write_table

__all__ = ["run"]

DATA = {"A": "australian", "G": "german", "H": "heart", "P": "pima", "R": "ripley", "C": "caravan"}
PRIOR, BATCH, STEPS, BURN = 10.0, 16, 5000, 1000
SETTING = (
    "Batches of 16 rows, 5000 iterations of which 1000 are burn-in, one run on each of five folds. Each sampler has the same "
    "number of settings, scored on the first fold by the distance of its draws to the exact posterior in mean and sd, with "
    "other seeds. Beside the AUROC: the median effective sample size of 4000 draws, the error of the posterior mean in "
    "exact sd (root mean square over coefficients), and the ratio of the sds. The exact "
    "posterior is that of full-data HMC with a Metropolis test."
)
# Table of the paper: AUROC by sampler and data set. Its splits are not described, and five of its best figures lie above
# what any linear model reaches on these data, so they are shown, not aimed at.
PUBLISHED_BEST = {"A": 0.95, "G": 0.90, "H": 0.95, "P": 0.93, "R": 0.98, "C": 0.73}


def _make(kind: str, a: float | None, step_size: float, friction: float = 1.0) -> Any:
    import sgmcmc as sg

    if kind == "SGLD":
        return sg.SGLD(step_size)
    if kind == "SGHMC":
        return sg.SGHMC(step_size, friction)
    if kind == "SGNHT":
        return sg.SGNHT(step_size, friction)
    if kind == "SGMGT":
        return sg.SGMGT(step_size, a=float(a or 1.0), diffusion=friction)
    return sg.SGMGTD(step_size, a=float(a or 1.0), sigma_p=friction)


def contestants() -> list[Contestant]:
    """Step size and friction are tuned; SGLD has no friction."""
    ranges = {"step_size": (1e-3, 0.1), "friction": (0.3, 30.0)}
    found = [Contestant("SGLD", partial(_make, "SGLD", None), {"step_size": (1e-5, 1e-2)})]
    found += [Contestant(kind, partial(_make, kind, None), ranges) for kind in ("SGHMC", "SGNHT")]
    found += [
        Contestant(f"{kind}, a = {a}", partial(_make, kind.replace("-", ""), float(a)), ranges)
        for kind in ("SGMGT", "SGMGT-D")
        for a in (1, 2)
    ]
    return found


def auroc(score: Any, y: Any) -> float:
    """The probability that a row of class 1 scores above one of class 0, ties counting half."""
    from scipy.stats import rankdata

    ranks, ones = rankdata(score), np.asarray(y) == 1
    n1, n0 = int(ones.sum()), int((~ones).sum())
    return float((ranks[ones].sum() - 0.5 * n1 * (n1 + 1)) / (n1 * n0))


def _chain(sampler: Any, X: Any, y: Any, seed: int) -> Any:
    import sgmcmc as sg

    model = sg.models.LogisticRegression(X, y, prior=sg.priors.Gaussian(PRIOR), intercept=True)
    trace = sg.sample(
        model, sampler, draws=STEPS - BURN, warmup=BURN, chains=1, batch_size=BATCH, seed=seed, threads=1, progress=False,
        init=np.zeros(model.dim), warn=False,
    )  # fmt: skip
    return model, trace


def distance(draws: Any, posterior: Any) -> float:
    """Root mean square over coefficients of the error of the mean, in exact sd, and of the logarithm of the ratio of sds."""
    off = (draws.mean(axis=0) - posterior.mean) / posterior.sd
    ratio = np.log(np.maximum(draws.std(axis=0), 1e-300) / posterior.sd)
    return float(np.sqrt((off**2).mean() + (ratio**2).mean()))


def contest(
    letter: str, contestant: Contestant, folder: str | None, budget: int, seed: int, truth: Any
) -> dict[str, Any]:
    """Tune one sampler on the first fold of one data set (`truth` is its exact posterior) and run it on the five folds."""
    from sgmcmc import datasets, diagnostics
    from sgmcmc.checks import DivergenceError

    data = datasets.load(DATA[letter], folder)
    train, _ = datasets.fold(data, 0, seed)
    best, best_score, tried = None, np.inf, []
    for setting in settings(contestant, budget, seed):
        try:
            # Not the seeds of the results: three runs of other noise and other minibatches.
            chains = [_chain(contestant.sampler(setting), train.X, train.y, seed + 1000 + k)[1] for k in range(3)]
            value = float(np.mean([distance(trace.draws[0], truth) for trace in chains]))
        except DivergenceError:
            value = np.inf
        tried.append((letter, contestant.name, setting, value))
        if value < best_score:
            best, best_score = setting, value
    if best is None:
        raise ValueError(f"{contestant.name} diverged at every setting on {DATA[letter]}; widen its ranges")
    runs = []
    for number in range(datasets.FOLDS):
        train, test = datasets.fold(data, number, seed)
        model, trace = _chain(contestant.sampler(best), train.X, train.y, seed + number)
        ess = np.array([diagnostics.ess(trace.draws[:, :, j]) for j in range(trace.draws.shape[2])])
        runs.append(
            {
                "auroc": auroc(model.predict(trace.draws[:, ::4], test.X), test.y),
                "ess": float(np.nanmedian(ess)),
                "ess_per_second": float(np.nanmedian(ess)) / trace.info["seconds"],
                "mean": trace.draws[0].mean(axis=0),
                "sd": trace.draws[0].std(axis=0),
            }
        )
    return {"letter": letter, "sampler": contestant.name, "setting": best, "runs": runs, "tried": tried}


def exact(letter: str, number: int, folder: str | None, draws: int, seed: int) -> dict[str, Any]:
    """AUROC, mean and standard deviation under the exact posterior of one fold."""
    from scipy.special import expit

    from sgmcmc import datasets
    from sgmcmc.evidence.experiments.exact import logistic_posterior

    train, test = datasets.fold(datasets.load(DATA[letter], folder), number, seed)
    posterior = logistic_posterior(_with_ones(train.X), train.y, PRIOR, draws, seed=seed)
    score = expit(posterior.draws[::4] @ _with_ones(test.X).T).mean(axis=0)
    return {
        "letter": letter,
        "fold": number,
        "auroc": auroc(score, test.y),
        "posterior": {"mean": posterior.mean, "sd": posterior.sd, "acceptance": posterior.acceptance},
    }


def _with_ones(X: Any) -> Any:
    return np.column_stack((np.ones(len(X)), X))


def run(quick: bool, out: Path, seed: int = 0, progress: bool = True, folder: str | None = None) -> dict[str, Any]:
    """Tune, run, write logistic.md, logistic.csv, logistic-tuning.csv and logistic.png into `out`."""
    import pandas as pd

    begin, keep = time.perf_counter(), unfinished(out, "logistic")
    letters = ("A", "P", "R") if quick else tuple(DATA)
    budget, draws = (4, 100) if quick else (16, 250)
    truths = {}
    tasks = [(letter, number, folder, draws, seed) for letter in letters for number in range(5)]
    for truth in run_tasks(exact, tasks, "logistic, exact posteriors", progress, keep):
        posterior = Posterior(np.empty((0, 0)), **truth["posterior"])
        truths[truth["letter"], truth["fold"]] = truth | {"posterior": posterior}
    entries = [
        (letter, c, folder, budget, seed, truths[letter, 0]["posterior"]) for letter in letters for c in contestants()
    ]
    results = list(run_tasks(contest, entries, "logistic, samplers", progress, keep))
    rows = []
    for letter in letters:
        reference = interval([truths[letter, k]["auroc"] for k in range(5)])
        rows.append({"data": letter, "sampler": "exact posterior", "AUROC": reference[0], "±": reference[1]})
        rows += [_row(r, truths) for r in results if r["letter"] == letter]
    table = pd.DataFrame(rows)
    tables = [write_table(_with_published(table), out, "logistic")]
    tried = [t for r in results for t in r["tried"]]
    pd.DataFrame(tried, columns=["data", "sampler", "setting", "distance"]).to_csv(
        out / "logistic-tuning.csv", index=False
    )
    picture, remarks = draw(table, out / "logistic.png"), _remarks(table)
    write_section(
        out, "logistic", "Logistic regression", SETTING, tables, [picture], remarks, quick,
        time.perf_counter() - begin, seed,
    )  # fmt: skip
    return {"table": table, "picture": picture, "results": results, "remarks": remarks}


def _with_published(table: Any) -> Any:
    """The table with the paper's best AUROC above the rows of each data set."""
    import pandas as pd

    letters = list(dict.fromkeys(table["data"]))
    best = [{"data": k, "sampler": "published best", "AUROC": PUBLISHED_BEST[k]} for k in letters]
    return pd.concat([pd.DataFrame(best), table]).sort_values("data", key=lambda d: d.map(letters.index), kind="stable")


def _remarks(table: Any) -> list[str]:
    """What the figures say, in sentences."""
    exact_rows = table[table["sampler"] == "exact posterior"].set_index("data")
    own = table[table["sampler"] != "exact posterior"]
    gaps = (own["AUROC"] - own["data"].map(exact_rows["AUROC"])).abs()
    worst = own.loc[gaps.idxmax()]
    said = [
        f"AUROC: all samplers are within {gaps.max():.4f} of the exact posterior (the largest difference is that of "
        f"{worst['sampler']} on {DATA[worst['data']]}); between samplers it tells little."
    ]
    area = exact_rows["AUROC"]
    above = [k for k in exact_rows.index if PUBLISHED_BEST[k] > exact_rows.loc[k, "AUROC"] + exact_rows.loc[k, "±"]]
    said.append(
        f"The published best lies above the exact posterior's interval on {len(above)} of {len(exact_rows)} sets "
        f"({', '.join(f'{DATA[k]} {PUBLISHED_BEST[k]:.2f} against {area[k]:.3f}' for k in above)}). "
        "No linear model reaches those figures on these data, even in-sample: the splits or the features must differ."
    )
    for what, best in (("ESS, median", "idxmax"), ("mean off, sd", "idxmin")):
        names = [own.loc[getattr(own[own["data"] == k][what], best)()]["sampler"] for k in exact_rows.index]
        said.append(f"{'Largest median ESS' if best == 'idxmax' else 'Smallest error of the posterior mean'}: "
                    + ", ".join(f"{DATA[k]} {n}" for k, n in zip(exact_rows.index, names, strict=True)) + ".")  # fmt: skip
    ratio = own.groupby("sampler", sort=False)["sd ratio"].median()
    said.append("Posterior sd ÷ exact, median over sets: " + ", ".join(f"{n} {v:.2f}" for n, v in ratio.items()) + ".")
    return said


def _row(result: dict[str, Any], truths: dict[Any, Any]) -> dict[str, Any]:
    letter, runs = result["letter"], result["runs"]
    area = interval([r["auroc"] for r in runs])
    off, ratio = [], []
    for k, r in enumerate(runs):
        truth = truths[letter, k]["posterior"]
        off.append(float(np.sqrt((((r["mean"] - truth.mean) / truth.sd) ** 2).mean())))
        ratio.append(float(np.median(r["sd"] / truth.sd)))
    return {
        "data": letter,
        "sampler": result["sampler"],
        "AUROC": area[0],
        "±": area[1],
        "ESS, median": float(np.mean([r["ess"] for r in runs])),
        "ESS per second": float(np.mean([r["ess_per_second"] for r in runs])),
        "mean off, sd": float(np.mean(off)),
        "sd ratio": float(np.mean(ratio)),
        "setting": result["setting"],
    }


def draw(table: Any, path: Path) -> Path:
    """AUROC by data set, with the exact posterior's and the published best; median ESS beside it."""
    from sgmcmc.plots import COLOURS, blank_figure

    figure = blank_figure(11.0, 4.5)
    left, right = figure.subplots(1, 2)
    letters = list(dict.fromkeys(table["data"]))
    names = [n for n in dict.fromkeys(table["sampler"]) if n != "exact posterior"]
    for x, letter in enumerate(letters):
        own = table[table["data"] == letter]
        truth = own[own["sampler"] == "exact posterior"].iloc[0]
        label = {"exact posterior": x == 0}
        left.hlines(
            truth["AUROC"],
            x - 0.42,
            x + 0.42,
            color="#333333",
            lw=2,
            label="exact posterior" if label["exact posterior"] else None,
        )
        left.plot(x, PUBLISHED_BEST[letter], "*", color="#999999", ms=10, label="published best" if x == 0 else None)
        for k, name in enumerate(names):
            r = own[own["sampler"] == name].iloc[0]
            place = x - 0.36 + 0.72 * k / max(1, len(names) - 1)
            left.errorbar(
                place, r["AUROC"], r["±"], fmt="o", ms=4, color=COLOURS[k % 7], label=name if x == 0 else None
            )
            right.bar(place, r["ESS, median"], 0.1, color=COLOURS[k % 7])
    for axis, title, ylabel in (
        (left, "AUROC on held-out folds", "AUROC, mean of five folds ± 95 %"),
        (right, "Mixing", "median ESS of 4000 draws"),
    ):
        axis.set_xticks(range(len(letters)), [DATA[letter] for letter in letters])
        axis.set(title=title, ylabel=ylabel)
    right.set_yscale("log")
    figure.legend(loc="outside lower center", ncol=5, frameon=False, fontsize=9)
    figure.savefig(path, dpi=140)
    return path
