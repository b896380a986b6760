"""Penn Treebank by a recurrent network: test perplexity of a two-layer LSTM, by sampler and optimiser.

Embeddings of 300, two layers of 200 units, softmax over 10,000 words: 5,731,600 parameters. The text is cut into windows of 20
words, each from the state zero, to train and to test alike, as in the public code of the paper; 32 windows per step.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from sgmcmc.evidence.experiments import curves
from sgmcmc.evidence.experiments.contest import Budget, cost_of, hold, row_of
from sgmcmc.evidence.experiments.page import write_section, write_table
from sgmcmc.evidence.experiments.recurrent import Plan

__all__ = ["run"]

HIDDEN, LAYERS, EMBEDDING, WINDOW, BATCH, EPOCHS = 200, 2, 300, 20, 32, 3
UNIGRAM = 639.3  # test perplexity of word frequencies
REACH = 4.0  # with the steps that music goes to, every sampler with momenta was best at the longest
SETTING = (
    "Two LSTM layers of 200 units, embeddings of 300, softmax over 10,000 words (5,731,600 parameters), prior N(0, 1) on every "
    "weight, float32; windows of 20 words from the state zero, 32 per step, {epochs} epochs of {rows} steps, four tests in each. "
    "Perplexity of the predictive average over draws after epoch {collect:g}; beside it that of single draws, the best by "
    "validation and the last. Every method was tuned with {settings} settings of {tuning} steps by its validation perplexity. "
    "Gradients longer than 5 per word are shortened; the table has the share of steps. The predictive average of SGD and "
    "RMSprop is over the points they pass."
)


def problem(folder: str | None, few: int | None) -> tuple[Any, tuple[Any, Any]]:
    """The model of the training text, and the validation and test texts; of a short run only their first `few` words."""
    from sgmcmc import datasets
    from sgmcmc.models import LSTM

    data = datasets.load("ptb", folder)
    model = LSTM(data.train, None, HIDDEN, LAYERS, WINDOW, data.columns, EMBEDDING)
    valid, test = (model.on(x[:few], length=WINDOW) for x in (data.valid, data.test))
    return model, (valid, test)


def budget_of(quick: bool, epochs: int | None, seed: int) -> Budget:
    """What is spent, in full or in a quick run; when averaging begins does not depend on `epochs`, so that a run can go on."""
    count = (1 if quick else EPOCHS) if epochs is None else epochs
    final = Plan(count, BATCH, seed, 0 if quick else 1, 1 if quick else 4, 12 if quick else None)
    tuning = Plan(1, BATCH, seed, 0, 1, 6 if quick else 250)
    return Budget(2 if quick else 6, tuning, final)


def run(
    quick: bool, out: Path, seed: int = 0, progress: bool = True, folder: str | None = None, epochs: int | None = None,
    further: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Tune, run, write ptb.md, .csv, -tuning.csv and .png into `out`; what is needed to go on stays in out/checkpoints."""
    import pandas as pd

    begin, budget = time.perf_counter(), budget_of(quick, epochs, seed)._replace(further=further)
    few = 2000 if quick else None
    model, _ = problem(folder, few)
    results, tried = hold(
        "ptb",
        problem,
        (folder, few),
        budget,
        model.steps,
        quick,
        out / "checkpoints" / f"ptb{'-quick' * quick}",
        progress,
        REACH,
    )
    table = pd.DataFrame([row_of(r, perplexity, "perplexity") for r in results])
    static = pd.DataFrame([{"sampler": "word frequencies", "test perplexity": UNIGRAM}])
    tables = [write_table(pd.concat([table, static]), out, "ptb")]
    tried.to_csv(out / "ptb-tuning.csv", index=False)
    picture = curves.draw(results, "perplexity", perplexity, UNIGRAM, "word frequencies", out / "ptb.png")
    plan, remarks = budget.final, remarks_of(table)
    setting = SETTING.format(
        epochs=plan.epochs, rows=-(-model.n_rows // BATCH) if plan.most is None else plan.most, collect=plan.collect,
        settings=budget.settings, tuning=budget.tuning.most,
    )  # fmt: skip
    command = f"sgmcmc reproduce ptb{' --quick' if quick else ''} --epochs {plan.epochs} --seed {seed}"
    command += "" if further is None else f" --further {further}"
    seconds = time.perf_counter() - begin
    write_section(
        out, "ptb", "Language: Penn Treebank", setting, tables, [picture], remarks, quick, seconds, seed, command,
        None if quick else cost_of(results),
    )  # fmt: skip
    return {"table": table, "results": results, "picture": picture, "remarks": remarks}


def perplexity(loss: float) -> float:
    """e to the loss per word."""
    return float(np.exp(loss))


def remarks_of(table: Any) -> list[str]:
    """What the figures say, in sentences."""
    test = table.set_index("sampler")["test perplexity"]
    ranking = ", ".join(f"{n} {v:.0f}" if np.isfinite(v) else f"{n} diverged" for n, v in test.sort_values().items())
    return [
        f"Test perplexity: {ranking}.",
        f"{int((test < UNIGRAM).sum())} of {len(test)} are below {UNIGRAM:.0f}, that of word frequencies.",
    ]
