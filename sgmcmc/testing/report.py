"""Findings and reports: what was checked, the figure, the bound, whether it passed, and what it would have seen.

A finding is right, wrong, or not resolved: then the check ran to the end of its budget and would still not have seen an
error of the size it is for. What is not resolved has not passed.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from sgmcmc.compiler.field_docs import documented

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["NOT_RESOLVED", "RIGHT", "WRONG", "Finding", "Report", "markdown_table", "within"]

RIGHT, WRONG, NOT_RESOLVED = "right", "wrong", "not resolved"


@documented
class Finding(NamedTuple):
    """One check of one thing.

    Parameters
    ----------
    check : str
        What was checked, a name that can be found in the documentation.
    subject : str
        Of what: a sampler, a kinetics, a target.
    figure : float
        What was measured.
    bound : str
        What is allowed, in words and numbers: "|z| < 4.4", "≥ 1.8".
    passed : bool
    detail : str
        Seed, effective sample size, what else a sceptic would ask.
    power : float
        The smallest error that the check would have seen, in the unit of its bound.
    resolved : bool
        False: an error that matters may have been missed.

    Examples
    --------
    >>> sg.testing.Finding("mean", "SGLD", 0.3, "|z| < 4.4", passed=True).verdict
    'right'
    """

    check: str  # what was checked, a name that can be found in the documentation
    subject: str  # of what: a sampler, a kinetics, a target
    figure: float  # what was measured
    bound: str  # what is allowed, in words and numbers: "|z| < 4.4", "≥ 1.8"
    passed: bool
    detail: str = ""  # seed, effective sample size, what else a sceptic would ask
    power: float = math.nan  # the smallest error that the check would have seen, in the unit of its bound
    resolved: bool = True  # False: an error that matters may have been missed

    @property
    def verdict(self) -> str:
        """right, wrong, or not resolved."""
        return RIGHT if self.passed else (WRONG if self.resolved else NOT_RESOLVED)


def within(check: str, subject: str, figure: float, bound: float, detail: str = "") -> Finding:
    """A finding that passes while |figure| is below `bound`; NaN fails. The bound is what it would have seen."""
    passed = bool(abs(figure) < bound)
    return Finding(check, subject, float(figure), f"|·| < {bound:.3g}", passed, detail, float(bound))


class Report:
    """Findings under a title: `verdict`, `passed`, `power`, and a `table` of them; a notebook shows it in colour.

    Parameters
    ----------
    title : str
    findings : iterable of Finding

    Examples
    --------
    >>> sg.testing.Report("SGLD", [sg.testing.Finding("mean", "SGLD", 0.3, "|z| < 4.4", passed=True)])
    SGLD: 1 checks, passed
    """

    def __init__(self, title: str, findings: Iterable[Finding]) -> None:
        self.title, self.findings = title, list(findings)

    @property
    def verdict(self) -> str:
        """ "wrong" if any finding is, else "not resolved" if any finding is (or there is none), else "right"."""
        found = {f.verdict for f in self.findings}
        if WRONG in found:
            return WRONG
        return RIGHT if found == {RIGHT} else NOT_RESOLVED

    @property
    def passed(self) -> bool:
        """Whether the verdict is "right"."""
        return self.verdict == RIGHT

    @property
    def power(self) -> pd.Series[float]:
        """Per check, the smallest error that it would have seen, in the unit of its bound."""
        import pandas as pd

        return pd.Series([f.power for f in self.findings], [f.check for f in self.findings], float, name="power")

    @property
    def table(self) -> pd.DataFrame:
        """One row per finding: check, subject, figure, bound, passed, detail, power, verdict."""
        import pandas as pd

        rows = [(*f[:-1], f.verdict) for f in self.findings]
        return pd.DataFrame(rows, columns=[*Finding._fields[:-1], "verdict"])

    @property
    def failures(self) -> list[Finding]:
        return [f for f in self.findings if not f.passed]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __add__(self, other: Report) -> Report:
        return Report(self.title, self.findings + other.findings)

    def __repr__(self) -> str:
        lines = [f"{self.title}: {len(self.findings)} checks, {self._state()}"]
        for f in self.failures:
            word = "FAILED" if f.resolved else "NOT RESOLVED"
            seen = "" if f.resolved else f"; errors below {f.power:.2g} would not have been seen"
            lines.append(f"  {word} {f.check} of {f.subject}: {f.figure:.4g}, bound {f.bound}{seen}; {f.detail}")
        return "\n".join(lines)

    def _state(self) -> str:
        wrong = sum(f.verdict == WRONG for f in self.findings)
        open_ = sum(f.verdict == NOT_RESOLVED for f in self.findings)
        words = [f"{wrong} FAILED"] * (wrong > 0) + [f"{open_} NOT RESOLVED"] * (open_ > 0)
        return ", ".join(words) if words else ("passed" if self.findings else "nothing was checked")

    def to_markdown(self, most: int | None = None) -> str:
        """A table that reads well as plain text too; with `most`, failures first and no more rows than that."""
        head = [f"| {' | '.join(_HEAD)} |", "|" + "---|" * len(_HEAD)]
        shown = self.findings if most is None else sorted(self.findings, key=lambda f: f.passed)[:most]
        return "\n".join(head + [f"| {' | '.join(_cells(f))} |" for f in shown])

    def _repr_html_(self) -> str:
        rows = []
        for f in self.findings:
            colour = _COLOURS[f.verdict]
            cells = "".join(f"<td>{html.escape(c)}</td>" for c in _cells(f))
            rows.append(f'<tr style="background:{colour};color:#111">{cells}</tr>')
        head = "".join(f"<th>{name}</th>" for name in _HEAD)
        state = {RIGHT: "passed", WRONG: "FAILED", NOT_RESOLVED: "NOT RESOLVED"}[self.verdict]
        return f"<h3>{html.escape(self.title)}: {state}</h3><table><tr>{head}</tr>{''.join(rows)}</table>"


_HEAD = ("check", "of", "figure", "bound", "passed", "would have seen", "detail")
_COLOURS = {RIGHT: "#e8f5e9", WRONG: "#ffcdd2", NOT_RESOLVED: "#fff3cd"}


def _cells(f: Finding) -> list[str]:
    """The cells of a row; a bar would end a cell in Markdown."""
    return [c.replace("|", "∣") for c in _plain_cells(f)]


def _plain_cells(f: Finding) -> list[str]:
    passed = {RIGHT: "yes", WRONG: "NO", NOT_RESOLVED: "NO: not resolved"}[f.verdict]
    power = "" if math.isnan(f.power) else f"{f.power:.2g}"
    return [f.check, f.subject, f"{f.figure:.4g}", f.bound, passed, power, f.detail]


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
