"""The table of cases: everything that is measured, by whom, with which numbers; the rest of the package is driven by it.

An entry is a dictionary of plain values. `case`, `who` and `method` say what is measured; `problem` is the case unless it is
given; the keys in `setting` say which entries are compared with each other; `runs` and `budget` bound the repetitions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sgmcmc.evidence.benchmarks import texts
from sgmcmc.evidence.benchmarks.alone.starting import OWN_GRADIENT
from sgmcmc.evidence.benchmarks.scaling import scaling_entries

__all__ = ["CASES", "Case", "Config", "Unit", "chosen_cases", "entries"]

Config = dict[str, Any]
MOST_RUNS, BUDGET = 9, 8.0
METHODS = ("sgld", "sghmc", "sgnht")
PINNED = "blackjax+pinned"  # on one core, for steps so short that a second one only gets in the way


class Unit(NamedTuple):
    """figure = scale · work/seconds for a rate, scale · seconds/work for a cost."""

    label: str
    scale: float
    is_rate: bool


class Case(NamedTuple):
    name: str
    title: str
    text: str
    unit: Unit
    setting: tuple[str, ...]
    beside: tuple[
        str, ...
    ]  # entries that are the same in these take turns: all that a claim compares, as far as memory allows
    entries: Callable[[bool], list[Config]]


def _entry(case: str, who: str, method: str, quick: bool, /, **numbers: Any) -> Config:
    runs = {"runs": 3, "budget": 0.5} if quick else {"runs": MOST_RUNS, "budget": BUDGET}
    return {"case": case, "who": who, "method": method, **runs, **numbers}


def _cores(who: str) -> dict[str, int]:
    return {"threads": 1} if who == PINNED else {}


def _wells(quick: bool) -> list[Config]:
    found = []
    for dtype in ("float32",) if quick else ("float32", "float64"):
        for chains in (1, 64) if quick else (1, 64, 4096):
            for method in ("sgnht", "sgmgtd") if quick else (*METHODS, "sgmgtd"):
                for who in ("sgmcmc", "blackjax", PINNED, "blackjax+tuned", "sgmcmcjax", "posteriors", "numpy"):
                    if _runs_wells(who, method, chains, dtype):
                        steps = _wells_steps(who, chains, quick)
                        numbers = {"chains": chains, "dtype": dtype, "steps": steps} | _cores(who)
                        found.append(_entry("wells", who, method, quick, **numbers))
    return found


def _runs_wells(who: str, method: str, chains: int, dtype: str) -> bool:
    if method == "sgmgtd":
        return who == "sgmcmc"  # no peer has it
    if who == "blackjax+tuned":
        return chains > 1
    if who == PINNED:
        return chains == 1
    if who in ("posteriors", "numpy"):  # slow in double precision as in single; one method shows it
        return dtype == "float32" or method == "sgnht"
    return True


def _wells_steps(who: str, chains: int, quick: bool) -> int:
    if quick:
        return 200 if who in ("posteriors", "numpy") else 2000
    if who in ("posteriors", "numpy"):  # a millisecond a step
        return 500 if chains == 4096 else 10_000
    return 2000 if chains == 4096 else 100_000


_SIZES: dict[str, dict[str, Any]] = {
    "small": {"n": 1000, "d": 25, "batch": 16, "steps": 5000},
    "large": {"n": 1_000_000, "d": 100, "batch": 1000, "steps": 1000},
}
_QUICK_SIZES = {
    "small": _SIZES["small"] | {"steps": 500},
    "large": _SIZES["large"] | {"n": 20_000, "steps": 50, "h": 1.5e-4, "friction": 10.0},
}


def _logistic(quick: bool) -> list[Config]:
    found = []
    for size, numbers in _SIZES.items():
        if quick:
            numbers = _QUICK_SIZES[size]
        for chains in (1, 4):
            for method in ("sgnht",) if quick else (*METHODS, "sgmgtd"):
                for who in ("sgmcmc", "blackjax", PINNED, "sgmcmcjax", "posteriors", "numpy"):
                    if who == PINNED and size == "large":
                        continue
                    alone = method == "sgmgtd" and who != "sgmcmc"
                    if alone or (who == "sgmcmcjax" and method == "sghmc"):  # it has SGHMC in blocks of steps only
                        continue
                    own = {"size": size, "chains": chains, "dtype": "float32"} | _cores(who)
                    found.append(_entry("logistic", who, method, quick, **own, **numbers))
    return found


def _update(quick: bool) -> list[Config]:
    count = 3_000_000 if quick else 30_000_000
    found = [
        _entry("update", "sgmcmc", "triad", quick, problem="triad", dim=0, count=count) | {"runs": 30},
        _entry("update", "sgmcmc", "normals", quick, problem="many normals", dim=0, count=count) | {"runs": 30},
    ]
    for dim, steps in ((100_000, 20),) if quick else ((1_000_000, 40), (6_000_000, 8)):
        for method in ("sgnht", "sgmgtd") if quick else ("sghmc", "sgnht", "sgmgtd"):
            libraries = ("sgmcmc", "blackjax", "sgmcmcjax", "posteriors", "numpy")
            able = ("sgmcmc", "jax") if method == "sgmgtd" else libraries  # no peer has SGMGT-D; in JAX it is by hand
            found += [_entry("update", who, method, quick, dim=dim, steps=steps) for who in able]
    return found


def _normals(quick: bool) -> list[Config]:
    contestants = [
        ("sgmcmc", "philox"),
        ("numpy", "PCG64"),
        ("numpy", "SFC64"),
        ("jax", "threefry"),
        ("jax", "rbg"),
        ("torch", "mt19937"),
    ]
    found = []
    for dtype in ("float32", "float64"):
        for count, blocks in ((100_000, 1),) if quick else ((10_000_000, 1), (10_000, 100)):
            for who, method in contestants:
                numbers = {"dtype": dtype, "count": count, "blocks": blocks, "threads": 1}
                found.append(_entry("normals", who, method, quick, **numbers) | {"runs": 5 if quick else 30})
    return found


def _start(quick: bool) -> list[Config]:
    found = []
    for method in ("first run", OWN_GRADIENT, "second run", "import", "installed"):
        contestants = ("sgmcmc", "blackjax", "sgmcmcjax", "posteriors")
        found += [_entry("start", who, method, quick) | {"runs": 1 if quick else 5} for who in contestants]
    return found


def _efficiency(quick: bool) -> list[Config]:
    common = {"n": 1000, "d": 25, "batch": 16, "chains": 4, "dtype": "float32", "quick": quick}
    contestants = [("sgmcmc", method) for method in (("sgnht",) if quick else (*METHODS, "sgmgtd"))]
    contestants += [("blackjax", m) for m in METHODS] + [("sgmcmcjax", "sgld"), ("sgmcmcjax", "sgnht")]
    contestants += [("posteriors", "sgnht")]
    found = []
    for who, method in contestants:
        steps = 1000 if quick else 10_000 if who == "posteriors" else 100_000
        found.append(_entry("efficiency", who, method, quick, **common, steps=steps, draws=f"draws-{who}-{method}.npy"))
    for who in ("blackjax", "numpyro"):
        numbers = {"problem": "nuts", "steps": 50 if quick else 2000, "warmup": 100 if quick else 500}
        found.append(_entry("efficiency", who, "nuts", quick, **common, **numbers, draws=f"draws-{who}-nuts.npy"))
    return found


def _scaling(quick: bool) -> list[Config]:
    return [_entry("scaling", e.pop("who"), e.pop("method"), quick, **e) for e in scaling_entries(quick)]


CASES: dict[str, Case] = {
    case.name: case
    for case in (
        Case(
            "wells",
            "Five wells with noisy gradients",
            texts.WELLS,
            Unit("million chain-steps per second", 1e-6, True),
            ("dtype", "chains", "method"),
            ("dtype", "chains"),
            _wells,
        ),
        Case(
            "logistic",
            "Logistic regression",
            texts.LOGISTIC,
            Unit("µs per chain-step", 1e6, False),
            ("size", "chains", "method"),
            ("size", "chains", "method"),
            _logistic,
        ),
        Case(
            "update",
            "Fused update of many parameters",
            texts.UPDATE,
            Unit("ns per parameter", 1e9, False),
            ("dim", "method"),
            (),
            _update,
        ),
        Case(
            "normals",
            "Normals",
            texts.NORMALS,
            Unit("million per second", 1e-6, True),
            ("dtype", "count"),
            ("dtype", "count"),
            _normals,
        ),
        Case("start", "Start", texts.START, Unit("s, or MB", 1.0, False), ("method",), ("method",), _start),
        Case(
            "efficiency",
            "Efficiency",
            texts.EFFICIENCY,
            Unit("effective draws per second", 1.0, True),
            ("n",),
            (),
            _efficiency,
        ),
        Case(
            "scaling",
            "Scaling",
            texts.SCALING,
            Unit("ns per chain-step", 1e9, False),
            ("axis", "at"),
            ("axis",),
            _scaling,
        ),
    )
}


def chosen_cases(names: list[str]) -> list[Case]:
    """The cases by name, all if none is named; one sentence for a name that is none."""
    unknown = [name for name in names if name not in CASES]
    if unknown:
        raise ValueError(f"there is no case {unknown[0]!r}; choose from {', '.join(CASES)}")
    return [case for case in CASES.values() if not names or case.name in names]


def entries(cases: list[Case], quick: bool, peers: bool) -> list[Config]:
    """What is to be measured; without peers, this package and plain NumPy."""
    found = [e for case in cases for e in case.entries(quick)]
    return [e for e in found if peers or e["who"] in ("sgmcmc", "numpy")]
