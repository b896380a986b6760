"""Findings and reports: what was checked, the figure, the bound, and whether it passed."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Finding", "Report", "markdown_table", "within"]


class Finding(NamedTuple):
    """One check of one thing."""

    check: str  # what was checked, a name that can be found in the documentation
    subject: str  # of what: a sampler, a kinetics, a target
    figure: float  # what was measured
    bound: str  # what is allowed, in words and numbers: "|z| < 4.4", "≥ 1.8"
    passed: bool
    detail: str = ""  # seed, effective sample size, what else a sceptic would ask


def within(check: str, subject: str, figure: float, bound: float, detail: str = "") -> Finding:
    """A finding that passes while |figure| is below `bound`; NaN fails."""
    return Finding(check, subject, float(figure), f"|·| < {bound:.3g}", bool(abs(figure) < bound), detail)


class Report:
    """Findings under a title. `passed` says whether all of them did, `table` shows them; a notebook shows it in colour."""

    def __init__(self, title: str, findings: Iterable[Finding]) -> None:
        self.title, self.findings = title, list(findings)

    @property
    def passed(self) -> bool:
        """Whether there are findings and all of them passed."""
        return bool(self.findings) and all(f.passed for f in self.findings)

    @property
    def table(self) -> pd.DataFrame:
        """One row per finding: check, subject, figure, bound, passed, detail."""
        import pandas as pd

        return pd.DataFrame(self.findings, columns=list(Finding._fields))

    @property
    def failures(self) -> list[Finding]:
        return [f for f in self.findings if not f.passed]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __add__(self, other: Report) -> Report:
        return Report(self.title, self.findings + other.findings)

    def __repr__(self) -> str:
        state = "passed" if self.passed else f"{len(self.failures)} FAILED"
        lines = [f"{self.title}: {len(self.findings)} checks, {state}"]
        lines += [
            f"  FAILED {f.check} of {f.subject}: {f.figure:.4g}, bound {f.bound}; {f.detail}" for f in self.failures
        ]
        return "\n".join(lines)

    def to_markdown(self, most: int | None = None) -> str:
        """A table that reads well as plain text too; with `most`, failures first and no more rows than that."""
        head = ["| check | of | figure | bound | passed | detail |", "|---|---|---|---|---|---|"]
        shown = self.findings if most is None else sorted(self.findings, key=lambda f: f.passed)[:most]
        return "\n".join(head + [f"| {' | '.join(_cells(f))} |" for f in shown])

    def _repr_html_(self) -> str:
        rows = []
        for f in self.findings:
            colour = "#e8f5e9" if f.passed else "#ffcdd2"
            cells = "".join(f"<td>{html.escape(c)}</td>" for c in _cells(f))
            rows.append(f'<tr style="background:{colour};color:#111">{cells}</tr>')
        head = "".join(f"<th>{name}</th>" for name in ("check", "of", "figure", "bound", "passed", "detail"))
        state = "passed" if self.passed else "FAILED"
        return f"<h3>{html.escape(self.title)}: {state}</h3><table><tr>{head}</tr>{''.join(rows)}</table>"


def _cells(f: Finding) -> list[str]:
    """The cells of a row; a bar would end a cell in Markdown."""
    return [c.replace("|", "∣") for c in _plain_cells(f)]


def _plain_cells(f: Finding) -> list[str]:
    return [f.check, f.subject, f"{f.figure:.4g}", f.bound, "yes" if f.passed else "NO", f.detail]


def markdown_table(table: pd.DataFrame, digits: int = 3, missing: str = "nan") -> str:
    """A table to be read: so many digits, dictionaries as words; a bar would end a cell."""

    def cell(value: object) -> str:
        if isinstance(value, float):
            return f"{value:.{digits}g}" if value == value else missing
        if isinstance(value, dict):
            return ", ".join(f"{k} {v:g}" for k, v in value.items())
        return str(value).replace("|", "∣")

    head = [f"| {' | '.join(map(str, table.columns))} |", "|" + "---|" * len(table.columns)]
    return "\n".join(head + [f"| {' | '.join(cell(v) for v in row)} |" for row in table.itertuples(index=False)])
