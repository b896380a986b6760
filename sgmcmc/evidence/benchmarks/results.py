"""The file of results: one JSON for all cases, in which a run replaces the cases that it measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sgmcmc.evidence.benchmarks.cases import CASES, Config, chosen_cases, entries
from sgmcmc.evidence.benchmarks.charts import draw_all
from sgmcmc.evidence.benchmarks.environments import Environments
from sgmcmc.evidence.benchmarks.machine import facts
from sgmcmc.evidence.benchmarks.page import write_page
from sgmcmc.evidence.benchmarks.runner import forget, run_entries

__all__ = ["FILE", "merge", "run_bench", "write_all"]

FILE = "benchmarks.json"


def run_bench(
    names: list[str],
    out: Path,
    page: Path,
    *,
    peers: bool = False,
    quick: bool = False,
    old_python: Path | None = None,
    progress: bool = True,
) -> dict[str, Any]:
    """Measure, write the JSON, the pictures and the page, and return the content of the JSON."""
    cases = chosen_cases(names)
    environments = Environments(old_python)
    todo: list[Config] = entries(cases, quick, peers)
    rows = run_entries(todo, out, environments, progress)
    results = merge(out, {"machine": facts(environments), "quick": quick, "rows": rows})
    write_all(results, out, page)
    forget(out)
    return results


def merge(out: Path, new: dict[str, Any]) -> dict[str, Any]:
    """The new rows, and those of the other cases that are in the file; never two runs of one case, nor quick with full."""
    file = out / FILE
    if not file.exists():
        return new
    old = json.loads(file.read_text(encoding="utf-8"))
    if old["quick"] != new["quick"]:
        return new
    done = {row["case"] for row in new["rows"]}
    kept = [row for row in old["rows"] if row["case"] not in done]
    order = list(CASES)
    return new | {"rows": sorted(kept + new["rows"], key=lambda row: order.index(row["case"]))}


def write_all(results: dict[str, Any], out: Path, page: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / FILE).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    write_page(results, page, draw_all(results["rows"], out))
