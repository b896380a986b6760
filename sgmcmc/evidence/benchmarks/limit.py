"""The limit of the fused update: the time its normals take, plus the time its bytes take at the speed of a STREAM triad."""

from __future__ import annotations

from statistics import median
from typing import Any

__all__ = ["limit_ratios", "limits"]

Row = dict[str, Any]
# What must move, in numbers per coordinate: θ, p and ξ are read and written, the gradient is read. And normals per coordinate.
NUMBERS = {"sghmc": 5, "sgnht": 7, "sgmgtd": 7}
NORMALS = {"sghmc": 1, "sgnht": 1, "sgmgtd": 3}
NAMES = {"sghmc": "SGHMC", "sgnht": "SGNHT", "sgmgtd": "SGMGT-D"}


def _rate(rows: list[Row], method: str) -> float | None:
    """Work per second of the triad (bytes) or of the normals, by the median."""
    found = [r for r in rows if r["method"] == method and "seconds" in r]
    return found[0]["work"] / median(found[0]["seconds"]) if found else None


def limits(rows: list[Row]) -> dict[str, float]:
    """method → ns per parameter, from the rows of the case `update`; empty if the triad or the normals are missing."""
    bytes_per_second, normals_per_second = _rate(rows, "triad"), _rate(rows, "normals")
    if bytes_per_second is None or normals_per_second is None:
        return {}
    return {m: 1e9 * (4 * NUMBERS[m] / bytes_per_second + NORMALS[m] / normals_per_second) for m in NUMBERS}


def limit_ratios(rows: list[Row]) -> dict[str, float]:
    """Our time over the limit, for each method and size."""
    limit = limits(rows)
    own = [r for r in rows if r["who"] == "sgmcmc" and r["method"] in limit and "seconds" in r]
    return {
        f"{NAMES[r['method']]}, {r['dim']:,}": 1e9 * median(r["seconds"]) / r["work"] / limit[r["method"]] for r in own
    }
