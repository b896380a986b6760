"""The report of a validation run as Markdown and as HTML, with its pictures beside it."""

from __future__ import annotations

import html
import platform
from collections.abc import Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from sgmcmc.evidence.validation.suite import Section
from sgmcmc.testing.report import markdown_table
from sgmcmc.testing.statistics import BUDGET

__all__ = ["write_documents"]

_PACKAGES = ("sgmcmc", "numpy", "numba", "llvmlite", "scipy", "arviz-stats")
MOST = 25  # rows of a topic in Markdown, which cannot be folded
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff }
table { border-collapse: collapse; font-size: 14px; margin: 1rem 0 }
td, th { border: 1px solid #ccc; padding: .2rem .5rem; text-align: left }
.yes { background: #e8f5e9 } .NO { background: #ffcdd2 } img { max-width: 100% } summary { cursor: pointer; color: #0072B2 }
"""


def write_documents(
    sections: Sequence[Section], out: Path, profile: str, seed: int, name: str = "validation"
) -> list[Path]:
    """Write NAME.md, NAME.html and NAME.csv into `out`."""
    import pandas as pd

    out.mkdir(parents=True, exist_ok=True)
    frames = [s.report.table.assign(topic=s.topic.name) for s in sections]
    paths = [out / f"{name}.{ending}" for ending in ("md", "html", "csv")]
    paths[0].write_text(_markdown(sections, profile, seed, name), encoding="utf-8")
    paths[1].write_text(_html(sections, profile, seed), encoding="utf-8")
    pd.concat(frames).to_csv(paths[2], index=False)
    return paths


def _verdict(sections: Sequence[Section]) -> str:
    findings = [f for s in sections for f in s.report]
    failed = [f for f in findings if not f.passed]
    if not failed:
        return f"All {len(findings)} checks passed."
    unclear = sum(not f.resolved for f in failed)
    return f"{len(failed)} of {len(findings)} checks FAILED" + (
        f", {unclear} of them not resolved." if unclear else "."
    )


def _conditions(sections: Sequence[Section], profile: str, seed: int) -> str:
    versions = []
    for package in _PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    minutes = sum(s.seconds for s in sections) / 60.0
    return (
        f"Profile {profile}, seed {seed}, {date.today().isoformat()}; {', '.join(versions)}, "
        f"Python {platform.python_version()} on {platform.machine()}; {minutes:.1f} minutes of processor time, compilation "
        f"included. Each family of random checks raises a false alarm with a probability of at most {BUDGET:g}; what is not "
        "random is compared to round-off."
    )


def _summary(sections: Sequence[Section]) -> list[tuple[str, str, str, str]]:
    rows = []
    for s in sections:
        failed = len(s.report.failures)
        state = "yes" if s.report.passed else f"NO ({failed})"
        rows.append((s.topic.title, str(len(s.report.findings)), state, f"{s.seconds:.0f}"))
    return rows


def _markdown(sections: Sequence[Section], profile: str, seed: int, name: str) -> str:
    lines = ["# Validation", "", f"**{_verdict(sections)}** Written by `sgmcmc validate --{profile}`.", ""]
    lines += [_conditions(sections, profile, seed), ""]
    lines += ["| evidence | checks | passed | s |", "|---|---|---|---|"]
    lines += [
        f"| [{row[0]}](#{s.topic.name}) | {' | '.join(row[1:])} |"
        for row, s in zip(_summary(sections), sections, strict=True)
    ]
    for s in sections:
        lines += ["", f'<a id="{s.topic.name}"></a>', "", f"## {s.topic.title}", "", s.topic.text, ""]
        if s.picture is not None:
            lines += [f"![{s.topic.title}]({s.picture.name})", ""]
        if s.table is not None:
            lines += [markdown_table(s.table), ""]
        lines += [s.report.to_markdown(MOST)]
        if len(s.report.findings) > MOST:
            lines += ["", f"… and {len(s.report.findings) - MOST} more, all of them in `{name}.csv` and `{name}.html`."]
        if s.error != "":
            lines += ["", "```", s.error.strip(), "```"]
    return "\n".join(lines) + "\n"


def _html(sections: Sequence[Section], profile: str, seed: int) -> str:
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>sgmcmc: validation</title>",
        f"<style>{_STYLE}</style>",
    ]
    parts += [
        f"<h1>Validation</h1><p><b>{_verdict(sections)}</b></p><p>{html.escape(_conditions(sections, profile, seed))}</p>"
    ]
    parts += ["<table><tr><th>evidence<th>checks<th>passed<th>s"]
    for row, s in zip(_summary(sections), sections, strict=True):
        first = f'<td><a href="#{s.topic.name}">{html.escape(row[0])}</a>'
        parts += [f'<tr class="{row[2][:3].strip()}">{first}{"".join(f"<td>{c}" for c in row[1:])}']
    parts += ["</table>"]
    for s in sections:
        parts += [f'<h2 id="{s.topic.name}">{html.escape(s.topic.title)}</h2><p>{html.escape(s.topic.text)}</p>']
        if s.picture is not None:
            parts += [f'<img src="{s.picture.name}" alt="{html.escape(s.topic.title)}">']
        if s.table is not None:
            parts += [s.table.to_html(index=False, float_format=lambda x: f"{x:.3g}", border=0)]
        unfolded = "" if s.report.passed else " open"
        parts += [
            f"<details{unfolded}><summary>{len(s.report.findings)} checks</summary>{s.report._repr_html_()}</details>"
        ]
        if s.error != "":
            parts += [f"<pre>{html.escape(s.error)}</pre>"]
    return "\n".join(parts) + "\n"
