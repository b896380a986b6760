"""The page: claims and what became of them, then every case with its picture, its figures and its checks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sgmcmc.evidence.benchmarks import texts
from sgmcmc.evidence.benchmarks.cases import CASES, Case
from sgmcmc.evidence.benchmarks.claims import Verdict, verdicts
from sgmcmc.evidence.benchmarks.limit import limit_ratios, limits
from sgmcmc.evidence.benchmarks.rows import (
    Row,
    contestant,
    figure,
    is_right,
    measured,
    of_case,
    ours_among,
    settings,
    speedup,
    words,
)

__all__ = ["write_page"]


def write_page(results: dict[str, Any], page: Path, pictures: dict[str, Path]) -> Path:
    """All of it from the dictionary that is in the JSON file; links to pictures are relative to the page."""
    rows: list[Row] = results["rows"]
    lines = [texts.HEAD, _conditions(results), ""]
    if results["quick"]:
        lines += ["**A quick run, which shows that everything works; its figures mean little.**", ""]
    lines += [*_claims(verdicts(rows)), ""]
    for case in CASES.values():
        own = of_case(rows, case.name)
        if own:
            link = os.path.relpath(pictures[case.name], page.parent) if case.name in pictures else None
            lines += [*_section(case, own, link), ""]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return page


def _conditions(results: dict[str, Any]) -> str:
    machine, rows = results["machine"], [r for r in results["rows"] if measured(r)]
    versions = ", ".join(f"{name} {value}" for name, value in machine["versions"].items())
    text = f"{machine['cpu']}, {machine['cores']} cores, {machine['platform']}, Python {machine['python']}; {versions}"
    if machine["old_versions"]:
        old = ", ".join(f"{name} {value}" for name, value in machine["old_versions"].items())
        text += f"; in an environment of its own: {old}"
    spans = [f"{case} from {times[0]} to {times[-1]}" for case in CASES if (times := _times(rows, case))]
    if spans:  # by case: a case may have been measured again, alone
        text += f". Measured: {', '.join(spans)}"
    busy = sorted(r.get("others", 0.0) for r in rows)
    if busy:
        text += (
            f". Other processes used {busy[len(busy) // 2]:.0%} of the machine during the median entry and {busy[-1]:.0%} "
            "during the worst"
        )
    return text + "."


def _times(rows: list[Row], case: str) -> list[str]:
    """When the entries of a case were measured, first to last."""
    own = [r for r in rows if r["case"] == case]
    return sorted(r[name].replace("T", " ") for r in own for name in ("at_time", "until") if name in r)


def _claims(found: list[Verdict]) -> Iterator[str]:
    holds = [v.holds for v in found]
    yield "## Claims"
    yield ""
    yield (
        f"{holds.count(True)} hold, {holds.count(False)} do not, {holds.count(None)} were not measured. A figure over several "
        "settings is the worst of them, which is named."
    )
    yield ""
    yield from _table(["case", "claim", "figure", "bound", "holds", "where"], (_claim_cells(v) for v in found))


def _claim_cells(verdict: Verdict) -> list[str]:
    claim = verdict.claim
    bound = f"{'≥' if claim.at_least else '≤'} {claim.bound:g}"
    if verdict.figure is None:
        return [claim.case, claim.text, "–", bound, "not measured", ""]
    holds = "yes" if verdict.holds else "**NO**"
    return [claim.case, claim.text, f"{verdict.figure:.3g}", bound, holds, verdict.where]


def _section(case: Case, rows: list[Row], picture: str | None) -> Iterator[str]:
    yield f"## {case.title}"
    yield ""
    yield case.text
    yield ""
    yield _wins_and_losses(rows)
    yield ""
    if picture is not None:
        yield f"![{case.title}]({Path(picture).as_posix()})"
        yield ""
    if case.name != "efficiency":  # there everybody is in one setting
        yield f"In {case.unit.label}; the last column is our speed over that of the fastest other."
        yield ""
        yield from _matrix(rows)
        yield ""
    if case.name == "update":
        yield from _limit_lines(rows)
    yield from _details(case, rows)
    yield from _gaps(rows)


def _wins_and_losses(rows: list[Row]) -> str:
    """Both in one sentence; settings without a peer are not counted."""
    won: list[tuple[str, float]] = []
    lost: list[tuple[str, float]] = []
    for where, group in settings(rows).items():
        ratio = _against_fastest(group)
        if ratio is not None:
            (won if ratio >= 1.0 else lost).append((where, ratio))
    if not won and not lost:
        return "Nothing here to compare with."
    text = f"Ahead of the fastest other in {len(won)} of {len(won) + len(lost)} settings"
    if not lost:
        return text + "."
    return text + "; **behind** in " + "; ".join(f"{where} ({ratio:.2g}×)" for where, ratio in lost) + "."


def _against_fastest(group: list[Row]) -> float | None:
    ours = ours_among(group)
    others = [r for r in group if r["who"] != "sgmcmc" and measured(r)]
    if ours is None or not others:
        return None
    return min(speedup(ours, other) for other in others)


def _matrix(rows: list[Row]) -> Iterator[str]:
    columns = list(dict.fromkeys(contestant(r) for r in rows if measured(r)))
    head = ["setting", *columns, "ratio"]

    def line(where: str, group: list[Row]) -> list[str]:
        cells = [next((_cell(r) for r in group if contestant(r) == name), "") for name in columns]
        ratio = _against_fastest(group)
        return [where, *cells, "" if ratio is None else f"{ratio:.3g}×" if ratio >= 1.0 else f"**{ratio:.3g}×**"]

    yield from _table(head, (line(where, group) for where, group in settings(rows).items() if _shown(group)))


def _shown(group: list[Row]) -> bool:
    return any(measured(r) and r.get("problem") not in ("triad", "many normals", "memory") for r in group)


def _cell(row: Row) -> str:
    if not measured(row):
        return "failed" if "error" in row else "–"
    return f"{figure(row):.3g}" + ("" if is_right(row) else " **WRONG**")


def _limit_lines(rows: list[Row]) -> Iterator[str]:
    limit, ratios = limits(rows), limit_ratios(rows)
    if not limit:
        return
    yield "Our time over the limit of this run:"
    yield ""
    yield from _table(["setting", "time ÷ limit"], ([where, f"{ratio:.2f}"] for where, ratio in ratios.items()))
    yield ""
    yield "The limits: " + ", ".join(f"{method} {value:.2f} ns" for method, value in limit.items()) + " per parameter."
    yield ""


def _details(case: Case, rows: list[Row]) -> Iterator[str]:
    folded = case.name != "efficiency"
    if folded:
        yield "<details><summary>Every entry with its check</summary>"
        yield ""
    head = ["setting", "who", "median", "best", "runs", "first call, s", "ours ÷ this", "check"]
    yield from _table(head, (_detail(r, rows) for r in rows if measured(r)))
    if folded:
        yield ""
        yield "</details>"


def _detail(row: Row, rows: list[Row]) -> list[str]:
    ours = ours_among(r for r in rows if words(r) == words(row))
    ratio = "" if ours is None or row["who"] == "sgmcmc" else f"{speedup(ours, row):.3g}×"
    verdict = "" if is_right(row) else "**WRONG:** "
    where = words(row) if row["case"] != "efficiency" else _setting_found(row)
    timed = len(row["seconds"]) > 0
    best = f"{figure(row, best=True):.3g}" if timed else ""
    who = f"{contestant(row)} ({row['version']})"
    check = verdict + row["check"]["text"]
    return [where, who, f"{figure(row):.3g}", best, str(len(row["seconds"])), f"{row['first']:.2f}", ratio, check]


def _setting_found(row: Row) -> str:
    if "h" not in row:
        return f"{row['steps']} draws per chain; warm-up {row.get('warmup_seconds', 0.0):.2g} s, not counted"
    friction = f", friction {row['friction']:g}" if row["friction"] else ""
    return f"h = {row['h']:g}{friction}; {row['accurate_settings']} of {row['settings']} settings accurate"


def _gaps(rows: list[Row]) -> Iterator[str]:
    """Who is not here and why, one line each; and what failed."""
    reasons = dict.fromkeys((r["who"], r["missing"]) for r in rows if "missing" in r)
    failures = [(contestant(r), words(r), r["error"]) for r in rows if "error" in r]
    if reasons or failures:
        yield ""
    for who, reason in reasons:
        yield f"* {who} was not measured: {reason}."
    for who, where, error in failures:
        yield f"* {who} failed ({where}): `{error}`."


def _table(head: list[str], lines: Iterator[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for cells in lines:
        yield f"| {' | '.join(cell.replace('|', '∣') for cell in cells)} |"
