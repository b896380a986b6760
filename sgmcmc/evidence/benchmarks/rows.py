"""Reading rows of results: the figure of a row, who it is, which rows belong together, and how many times faster we are."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import Any

from sgmcmc.evidence.benchmarks.cases import CASES

__all__ = [
    "Row",
    "contestant",
    "figure",
    "is_right",
    "measured",
    "of_case",
    "ours_among",
    "settings",
    "speedup",
    "words",
]

Row = dict[str, Any]
NAMES = {"sgld": "SGLD", "sghmc": "SGHMC", "sgnht": "SGNHT", "sgmgtd": "SGMGT-D", "nuts": "NUTS"}


def measured(row: Row) -> bool:
    return "missing" not in row and "error" not in row


def is_right(row: Row) -> bool:
    """Whether what was drawn passed its check."""
    return measured(row) and bool(row["check"]["right"])


def of_case(rows: Iterable[Row], case: str, **numbers: Any) -> list[Row]:
    """The rows of a case with these values."""
    return [r for r in rows if r["case"] == case and all(r.get(k) == v for k, v in numbers.items())]


def contestant(row: Row) -> str:
    """The column a row belongs to: a library, with its method where methods compete with each other."""
    if row["case"] == "normals" and row["who"] != "sgmcmc":
        return f"{row['who']} {row['method']}"
    if row["case"] == "efficiency":
        return f"{row['who']} {NAMES.get(row['method'], row['method'])}"
    return str(row["who"])


def words(row: Row) -> str:
    """The setting of a row, to be read."""
    shown = []
    for key in CASES[row["case"]].setting:
        value = row.get(key)
        if key == "method":
            shown.append(NAMES.get(str(value), str(value)))
        elif key == "chains":
            shown.append(f"{value:,} chain{'s' * (value != 1)}")
        elif key in ("dim", "count"):
            shown.append(f"{value:,}")
        elif value is not None:
            shown.append(str(value))
    if "also" in row:
        shown.append(row["also"])
    return ", ".join(shown)


def settings(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows that are compared with each other, by the words of their setting, in order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(words(row), []).append(row)
    return found


def figure(row: Row, best: bool = False) -> float:
    """The number a row is compared by, in the unit of its case, from the median time or from the best."""
    if "megabytes" in row:
        return float(row["megabytes"])
    seconds = float(min(row["seconds"]) if best else median(row["seconds"]))
    if "ess_min" in row:
        return float(row["ess_min"]) / seconds
    unit, work = CASES[row["case"]].unit, float(row["work"])
    return unit.scale * (work / seconds if unit.is_rate else seconds / work)


def speedup(ours: Row, other: Row) -> float:
    """How many times better we are, by medians; above 1 we win."""
    ratio = figure(ours) / figure(other)
    return ratio if CASES[ours["case"]].unit.is_rate else 1.0 / ratio


def ours_among(rows: Iterable[Row]) -> Row | None:
    """Our best measured row among rows of one setting."""
    own = [r for r in rows if r["who"] == "sgmcmc" and measured(r)]
    if not own:
        return None
    best = own[0]
    for row in own[1:]:
        best = row if speedup(row, best) > 1.0 else best
    return best
