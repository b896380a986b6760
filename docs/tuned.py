"""Writes docs/tuned.md: what `sg.tune` reaches, beside the settings of the experiments, and what less noisy gradients do.

    python docs/tuned.py [A G H P R C]        # with SGMCMC_DATA where the data sets are; a letter alone measures that one

Each part keeps its rows in docs/tuned.csv, so that a run that was stopped goes on.
"""

from __future__ import annotations

import ast
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from targets import regression

import sgmcmc as sg
from sgmcmc import diagnostics
from sgmcmc.bias.gradients import noise_variance
from sgmcmc.estimators import control_variate, find_mode
from sgmcmc.evidence.experiments.logistic import BATCH, DATA, distance

HERE = Path(__file__).parent
ROWS = HERE / "tuned.csv"
SEEDS, CHAINS, DRAWS, WARMUP = (11, 12, 13), 4, 5000, 2000
TUNINGS = (0, 1, 2)  # seeds of `sg.tune`


def hand_tuned(letter: str) -> dict[str, sg.Sampler]:
    """SGMGT-D as the experiments tuned it, on the same fold, by its distance to the exact posterior."""
    table = pd.read_csv(HERE / "experiments" / "logistic-tuning.csv")
    found = {}
    for a in (1, 2):
        own = table[(table["data"] == letter) & (table["sampler"] == f"SGMGT-D, a = {a}")]
        setting = ast.literal_eval(own.loc[own["distance"].idxmin(), "setting"])
        found[f"experiments, a = {a}"] = sg.SGMGTD(setting["step_size"], a=float(a), sigma_p=setting["friction"])
    return found


def measured(model, sampler, batch_size, start, truth) -> dict[str, float]:
    """Median ESS per second of the processor, and the distance of mean and sd to the exact posterior, over the seeds."""
    rates, errors = [], []
    for seed in SEEDS:
        begin = time.process_time()
        trace = sg.sample(
            model, sampler, DRAWS, warmup=WARMUP, chains=CHAINS, batch_size=batch_size, seed=seed, init=start, threads=1,
            progress=False, warn=False,
        )  # fmt: skip
        seconds = time.process_time() - begin
        rates.append(np.median([diagnostics.ess(trace.draws[:, :, j]) for j in range(trace.dim)]) / seconds)
        errors.append(distance(trace.draws.reshape(-1, trace.dim), truth))
    return {"ESS per second": float(np.mean(rates)), "error": float(np.mean(errors))}


def logistic(letter: str) -> list[dict]:
    model, truth = regression(letter, 250)
    rows = []
    for seed in TUNINGS:
        best = sg.tune(sg.SGMGTD, model, seed=seed, progress=False)
        found = {"what": f"logistic {letter}", "sampler": f"sg.tune, seed {seed}", "setting": repr(best)}
        rows.append(found | measured(model, best.sampler, best.batch_size, best.theta, truth))
    for name, sampler in hand_tuned(letter).items():
        own = measured(model, sampler, BATCH, best.theta, truth)
        rows.append({"what": f"logistic {letter}", "sampler": name} | own)
    return rows


def condition(dim: int = 10) -> list[dict]:
    """Marginal variances on a correlated Gaussian with condition number 1e4; the worst ratio to the truth."""
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(dim, dim)))[0]
    cov = Q @ np.diag(np.geomspace(1e-4, 1.0, dim)) @ Q.T
    best = sg.tune(sg.SGHMC, sg.models.Gaussian(np.zeros(dim), cov), progress=False)
    trace = best.sample(20_000, thin=100, warmup=20_000, seed=3, progress=False)
    ratio = trace.draws.var(axis=(0, 1)) / np.diag(cov)
    return [{"what": "condition number 1e4", "sampler": "sg.tune(SGHMC)", "error": float(abs(ratio - 1).max())}]


def control(n: int = 1_000_000) -> list[dict]:
    """The trace of the minibatch noise at a posterior sd from the mode, with plain rows and with control variates."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    y = rng.random(n) < 1 / (1 + np.exp(-X @ [0.5, -1.0, 0.3, 0.0, 0.2]))
    model = sg.models.LogisticRegression(X, y)
    mode = find_mode(model)
    p = 1 / (1 + np.exp(-X @ mode))
    sd = np.sqrt(np.diag(np.linalg.inv((X.T * (p * (1 - p))) @ X)))
    better, at = control_variate(model, mode), mode + sd
    noise = [noise_variance(m, at, 100, "replacement", most=5000).sum() for m in (model, better)]
    rows = [{"what": "N = 1e6, noise ratio plain ÷ control", "sampler": "–", "error": float(noise[0] / noise[1])}]
    options = {"draws": 2000, "warmup": 2000, "thin": 5, "batch_size": 100, "seed": 1, "init": mode}
    for name, m in (("plain rows", model), ("control variates", better)):
        trace = sg.sample(m, sg.SGHMC(0.3, 1.0, scale=sd), progress=False, warn=False, **options)
        worst = trace.draws.std(axis=(0, 1)) / sd
        rows.append({"what": "N = 1e6, sd ÷ exact", "sampler": f"SGHMC, {name}", "error": float(np.median(worst))})
    return rows


PARTS = {
    **{letter: lambda letter=letter: logistic(letter) for letter in DATA},
    "condition": condition,
    "control": control,
}


def compared(table: pd.DataFrame) -> list[str]:
    """The worst seed of tuning beside the best of the settings by hand, in each figure."""
    lines = [
        "| data | ESS per second ÷ the larger by hand, worst seed | error ÷ the smaller by hand, worst seed | both hold |",
        "|---|---|---|---|",
    ]
    for letter, name in DATA.items():
        own = table[table["what"] == f"logistic {letter}"]
        tuned = own["sampler"].str.startswith("sg.tune")
        if len(own) == 0:
            continue
        rate = own.loc[tuned, "ESS per second"].min() / own.loc[~tuned, "ESS per second"].max()
        error = own.loc[tuned, "error"].max() / own.loc[~tuned, "error"].min()
        lines.append(f"| {name} | {rate:.2f} | {error:.2f} | {'yes' if rate >= 1.0 and error <= 1.0 else 'NO'} |")
    return lines


def write(table: pd.DataFrame) -> None:
    lines = ["# What tuning reaches", "", "Written by `docs/tuned.py`.", "", "## Six logistic regressions", ""]
    lines += [
        f"First fold, the settings of the experiments (SGMGT-D, batches of {BATCH}) beside `sg.tune(sg.SGMGTD, model)` with its "
        f"default budget: {CHAINS} chains of {DRAWS} draws after {WARMUP} steps, mean of {len(SEEDS)} seeds. ESS is the median "
        "over coefficients, seconds are of the processor, the error is the distance of mean (in exact sd) and log sd to the "
        f"exact posterior, root mean square. `sg.tune` was run with {len(TUNINGS)} seeds; runs by hand start where the last of "
        "these ended.",
        "",
        *compared(table),
        "",
        "| data | sampler | ESS per second | error |",
        "|---|---|---|---|",
    ]
    own = table[table["what"].str.startswith("logistic")]
    for r in own.itertuples():
        lines.append(f"| {DATA[r.what[-1]]} | {r.sampler} | {r[4]:.4g} | {r.error:.3f} |")
    missing = [DATA[letter] for letter in DATA if f"logistic {letter}" not in set(own["what"])]
    lines += ["", f"Not measured yet: {', '.join(missing)}."] if missing else []
    rest = table[~table["what"].str.startswith("logistic")]
    if len(rest) > 0:
        lines += ["", "## The rest", "", "| what | sampler | value |", "|---|---|---|"]
        lines += [f"| {r.what} | {r.sampler} | {r.error:.4g} |" for r in rest.itertuples()]
        lines += ["", "Condition number: the largest relative error of a marginal variance of 10 coordinates."]
    (HERE / "tuned.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    wanted = sys.argv[1:] if len(sys.argv) > 1 else list(PARTS)
    columns = ["what", "sampler", "setting", "ESS per second", "error"]
    for part in wanted:
        rows = pd.DataFrame(PARTS[part](), columns=columns)
        before = pd.read_csv(ROWS) if ROWS.exists() else pd.DataFrame(columns=columns)
        kept = before[~before["what"].isin(rows["what"])]
        table = rows if kept.empty else pd.concat([kept, rows], ignore_index=True)
        table.to_csv(ROWS, index=False)
        write(table)
        print(rows.to_string(), flush=True)


if __name__ == "__main__":
    main()
