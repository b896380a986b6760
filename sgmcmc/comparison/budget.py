"""What every run may spend: gradient evaluations, or seconds."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, NamedTuple

from sgmcmc import checks

__all__ = ["Budget", "read_budget"]

_UNITS = {
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "min": 60.0,
    "minute": 60.0,
    "minutes": 60.0,
    "h": 3600.0,
}
_WAYS = 'give a whole number of gradient evaluations (100_000), or a time ("10 s", "2 min")'


class Budget(NamedTuple):
    """Exactly one of the two is a number; all chains of a run spend it together."""

    gradients: int | None
    seconds: float | None

    def __str__(self) -> str:
        return f"{self.seconds:g} s" if self.gradients is None else f"{self.gradients:,} gradient evaluations"


def read_budget(budget: Any, chains: int) -> Budget:
    """A whole number is gradient evaluations; a text with a unit, or a timedelta, is a time."""
    if isinstance(budget, timedelta):
        return Budget(None, _positive(budget, budget.total_seconds()))
    if isinstance(budget, str):
        found = re.fullmatch(r"\s*([0-9.eE+-]+)\s*([a-z]+)\s*", budget)
        if found is None or found[2] not in _UNITS:
            raise ValueError(f"budget={budget!r} is not understood; {_WAYS}")
        try:
            return Budget(None, _positive(budget, float(found[1]) * _UNITS[found[2]]))
        except ValueError:
            raise ValueError(f"budget={budget!r} is not understood; {_WAYS}") from None
    if isinstance(budget, float):
        raise TypeError(f"budget={budget!r} could be either; {_WAYS}")
    return Budget(checks.integer("budget", budget, 10 * chains), None)


def _positive(budget: Any, seconds: float) -> float:
    if not 0.0 < seconds < 1e9:
        raise ValueError(f"budget={budget!r} is out of range; give a time above 0")
    return seconds
