"""Writes docs/adaptive-a.md: a chosen during the warm-up beside every fixed a, at equal gradients.

    python docs/adaptive_a.py [TARGET ...]        # wells, mixture, A, G, H, P, R, C; with SGMCMC_DATA where the data sets are

Rows are kept in docs/adaptive-a.csv after every target, so that a run that was stopped goes on.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pandas as pd
from targets import NAMES, TARGETS, Target, kept, with_error

import sgmcmc as sg
from sgmcmc.bias.stability import longest_step
from sgmcmc.tuning import adapt_a

HERE = Path(__file__).parent
ROWS = HERE / "adaptive-a.csv"
VALUES, SEEDS = (1.0, 1.5, 2.0), (1, 2, 3, 4, 5)
CHAINS, ROUNDS, STEPS, DRAWS, THIN = 12, 12, 2000, 500, 40
OF_EDGE = 0.15  # the step, in units of the longest stable one


def measured(target: Target) -> list[dict[str, Any]]:
    options = dict(target.options)
    temperature = options.pop("temperature", 1.0)

    def make(a: float) -> sg.Sampler:
        own = {"a": a, "softening": 2.5, "temperature": temperature, "scale": target.scale}
        h = OF_EDGE * longest_step(sg.SGMGTD(1e-12, **own), target.steepest)
        return sg.SGMGTD(h, **own)

    rows = []
    for seed in SEEDS:
        chosen = adapt_a(
            make, target.model, rounds=ROUNDS, steps=STEPS, chains=CHAINS, seed=seed, progress=False, **options
        )
        trace = chosen.sample(DRAWS, thin=THIN, warmup=0, seed=seed + 100, progress=False, warn=False)
        rows.append({"a": "chosen", "seed": seed, "chose": chosen.setting["a"], "error": target.error(trace.draws)})
        for a in VALUES:
            own = {"warmup": (ROUNDS + 2 * len(VALUES)) * STEPS, "thin": THIN, "chains": CHAINS, "seed": seed}
            trace = sg.sample(target.model, make(a), DRAWS, progress=False, warn=False, **own, **options)
            rows.append({"a": f"{a:g}", "seed": seed, "chose": a, "error": target.error(trace.draws)})
    return rows


def write(table: pd.DataFrame) -> None:
    lines = [
        "# a, chosen while warming up",
        "",
        "Written by `docs/adaptive_a.py`. "
        f"SGMGT-D by `sg.tuning.adapt_a` ({ROUNDS} rounds of {STEPS} steps after two of each a alone, {CHAINS} chains) "
        f"beside every fixed a with as long a warm-up; then {DRAWS} draws, every {THIN}th step, of each chain. Softening 2.5, "
        f"steps of {OF_EDGE} of the longest stable one for each a. The error is the total variation of the shares of the "
        "wells, or for the regressions the distance of mean (in exact sd) and log sd to the exact posterior; mean of "
        f"{len(SEEDS)} seeds ± its standard error.",
        "",
        "| target | a = 1 | a = 1.5 | a = 2 | chosen | how often 1, 1.5, 2 |",
        "|---|---|---|---|---|---|",
    ]
    for target in NAMES:
        own = table[table["target"] == target]
        if len(own) == 0:
            continue
        cells = [with_error(own[own["a"].astype(str) == a]["error"]) for a in ("1", "1.5", "2", "chosen")]
        chose = own[own["a"] == "chosen"]["chose"].astype(float)
        lines.append(
            f"| {NAMES[target]} | {' | '.join(cells)} | {', '.join(str((chose == a).sum()) for a in VALUES)} |"
        )
    missing = [NAMES[t] for t in NAMES if t not in set(table["target"])]
    lines += ["", f"Not measured yet: {', '.join(missing)}."] if missing else []
    (HERE / "adaptive-a.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    for name in sys.argv[1:] if len(sys.argv) > 1 else list(TARGETS):
        write(kept(ROWS, name, measured(TARGETS[name]())))


if __name__ == "__main__":
    main()
