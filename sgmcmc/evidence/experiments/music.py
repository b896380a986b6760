"""Polyphonic music by a recurrent network: test NLL per frame of an LSTM with 200 units, by sampler and optimiser.

Each frame of 88 keys is predicted from all before it. Sequences are cut into pieces of at most 200 frames to train on, and are
whole to test on; the frame before a piece is seen. NLL is −log of the probability of a frame, averaged over draws; natural
logarithms.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sgmcmc.evidence.experiments import curves
from sgmcmc.evidence.experiments.contest import Budget, cost_of, hold, row_of
from sgmcmc.evidence.experiments.page import write_section, write_table
from sgmcmc.evidence.experiments.recurrent import Plan

__all__ = ["SETS", "run"]

HIDDEN, LENGTH, EPOCHS, COLLECT = 200, 200, 100, 10


class Set(NamedTuple):
    """A data set: its title, the batch, the NLL of the frequency of each key, and the published figures there are."""

    title: str
    batch: int
    static: float
    published: dict[str, float]
    tuning: int  # epochs


SETS = {
    "jsb": Set("JSB chorales", 1, 11.06, {"SGMGT-D": 8.43, "SGLD": 11.25}, 10),
    "piano": Set("Piano-midi.de", 2, 11.05, {"SGLD": 11.37}, 8),
    "nottingham": Set("Nottingham", 4, 10.25, {"SGMGT-D": 3.33}, 4),
    "muse": Set("MuseData", 4, 11.51, {}, 3),
}
SETTING = (
    "One LSTM layer of 200 units, 88 Bernoulli outputs, prior N(0, 1) on every weight, float32; {batch} of at most 200 frames "
    "per step, {epochs} epochs, {rows} steps each. NLL per frame of the predictive average over the draws at the end of each "
    "epoch after epoch {collect}; beside it that of single draws, the best by validation and the last. Every method was tuned "
    "with {settings} settings of {tuning} epochs by the validation NLL of its average. Gradients longer than 5 per frame are "
    "shortened; the table has the share of steps. The predictive average of SGD and RMSprop is over the points they pass. The "
    "average is of probabilities of whole frames: a mixture, in which keys depend on each other. Beside it the NLL with the "
    "probability of each key averaged by itself, the keys of a frame being independent as in a single draw."
)


def problem(name: str, folder: str | None, quick: bool) -> tuple[Any, tuple[Any, Any]]:
    """The model of the training part, and the validation and test parts; of a quick run only a few sequences of those."""
    from sgmcmc import datasets
    from sgmcmc.models import LSTM

    data = datasets.load(name, folder)
    model = LSTM(data.train, data.train_offsets, HIDDEN, length=LENGTH)
    tests = []
    for x, offsets in ((data.valid, data.valid_offsets), (data.test, data.test_offsets)):
        few = offsets[: 1 + (6 if quick else offsets.size)]
        tests.append(model.on(x[: few[-1]], few))
    return model, (tests[0], tests[1])


def budget_of(name: str, quick: bool, epochs: int | None, seed: int) -> Budget:
    """What is spent on a set, in full or in a quick run."""
    own = SETS[name]
    count = (2 if quick else EPOCHS) if epochs is None else epochs
    final = Plan(count, own.batch, seed, 0 if quick else COLLECT, most=40 if quick else None)
    tuning = final._replace(epochs=1 if quick else own.tuning, collect=own.tuning // 2 if not quick else 0)
    return Budget(2 if quick else 8, tuning, final)


def run(
    quick: bool, out: Path, seed: int = 0, progress: bool = True, folder: str | None = None, name: str = "jsb",
    epochs: int | None = None, further: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Tune, run, write music-NAME.md, .csv, -tuning.csv and .png into `out`; what is needed to go on stays in out/checkpoints."""
    import pandas as pd

    begin, budget, own, label = time.perf_counter(), budget_of(name, quick, epochs, seed), SETS[name], f"music-{name}"
    budget = budget._replace(further=further)
    model, _ = problem(name, folder, quick)
    place = (name, folder, quick)
    results, tried = hold(
        label, problem, place, budget, model.steps, quick, out / "checkpoints" / f"{label}{'-quick' * quick}", progress
    )
    table = pd.DataFrame([row_of(r, float, "NLL") for r in results])
    table.insert(2, "keys averaged", [r["keys"] for r in results])
    table.insert(3, "published", [own.published.get(n.split(",")[0], np.nan) for n in table["sampler"]])
    static = pd.DataFrame([{"sampler": "frequency of each key", "test NLL": own.static}])
    tables = [write_table(pd.concat([table, static]), out, label)]
    tried.to_csv(out / f"{label}-tuning.csv", index=False)
    picture = curves.draw(results, "NLL per frame", float, own.static, "frequency of each key", out / f"{label}.png")
    remarks = remarks_of(table, own)
    plan = budget.final
    setting = SETTING.format(
        batch="one piece" if own.batch == 1 else f"{own.batch} pieces", epochs=plan.epochs,
        rows=-(-model.n_rows // own.batch) if plan.most is None else plan.most, collect=plan.collect,
        settings=budget.settings, tuning=budget.tuning.epochs,
    )  # fmt: skip
    command = f"sgmcmc reproduce music --set {name}{' --quick' if quick else ''} --epochs {plan.epochs} --seed {seed}"
    command += "" if further is None else f" --further {further}"
    write_section(
        out, label, f"Music: {own.title}", setting, tables, [picture], remarks, quick, time.perf_counter() - begin, seed, command,
        None if quick else cost_of(results),
    )  # fmt: skip
    return {"table": table, "results": results, "picture": picture, "remarks": remarks}


def remarks_of(table: Any, own: Set) -> list[str]:
    """What the figures say, in sentences."""
    test = table.set_index("sampler")["test NLL"]
    ranking = ", ".join(f"{n} {v:.2f}" if np.isfinite(v) else f"{n} diverged" for n, v in test.sort_values().items())
    below = test[test < own.static]
    said = [
        f"Test NLL per frame: {ranking}.",
        f"{len(below)} of {len(test)} are below {own.static:.2f}, that of the frequency of each key.",
    ]
    for kind, value in own.published.items():
        rows = test[[n for n in test.index if n.split(",")[0] == kind]]
        if len(rows):
            name, found = rows.idxmin(), rows.min()
            word = "at or below" if found <= value else "above"
            keys, draw = table.set_index("sampler").loc[name, ["keys averaged", "best draw alone"]]
            said.append(
                f"{kind}: {found:.2f} ({name}), {word} the published {value:.2f}; with keys averaged by themselves {keys:.2f}, "
                f"its best single draw {draw:.2f}."
            )
    if own.published.get("SGLD", 0.0) > own.static:
        said.append("The published figure of SGLD is above that of the frequency of each key: no evidence of learning.")
    said += [
        f"{name} was lost on the way: its last draw alone is at {last:.1f}, above {own.static:.2f}, and {share:.0%} of its "
        "gradients were shortened. Its step size was the best of those tried in short runs."
        for name, last, share in zip(table["sampler"], table["last draw alone"], table["shortened"], strict=True)
        if last > own.static
    ]
    return said
