"""The entries of the case `scaling`: one number at a time is varied, the others stay.

Logistic regressions on other data keep what the small one has in units of its posterior: h ∝ 1/N and friction ∝ N/batch make
the minibatch noise the same share of the friction everywhere.
"""

from __future__ import annotations

from typing import Any

__all__ = ["scaling_entries"]


def scaling_entries(quick: bool) -> list[dict[str, Any]]:
    found = []
    for axis in (_dimensions, _rows, _batches, _chains, _threads):
        found += axis(quick)
    return [*found, _memory(quick)]


def _both(axis: str, at: int, **numbers: Any) -> list[dict[str, Any]]:
    """Us and BlackJAX with the same SGNHT."""
    common = {"axis": axis, "at": at, "method": "sgnht", "dtype": "float32", **numbers}
    return [common | {"who": who} for who in ("sgmcmc", "blackjax")]


def _dimensions(quick: bool) -> list[dict[str, Any]]:
    found = []
    for d in (10, 1000) if quick else (10, 100, 1000, 10_000, 100_000, 1_000_000):
        # A run has to be set up, which takes 20 ns per coordinate: of 100 steps that is a tenth, of 20 it was half.
        steps = min(20_000, max(20 if quick else 100, (200_000 if quick else 20_000_000) // d))
        found += _both("d", d, problem="gaussian", d=d, chains=1, steps=steps)
    return found


def _regression(n: int, batch: int, chains: int, steps: int) -> dict[str, Any]:
    friction = 20.0 * n / 1000.0 * max(1.0, 16.0 / batch)
    numbers = {"n": n, "d": 25, "batch": batch, "chains": chains, "steps": steps}
    return numbers | {"problem": "logistic", "size": "small", "h": 3e-4 * 1000.0 / n, "friction": friction}


def _rows(quick: bool) -> list[dict[str, Any]]:
    found = []
    for n in (1000, 10_000) if quick else (1000, 10_000, 100_000, 1_000_000):
        found += _both("N", n, **_regression(n, 16, 1, 500 if quick else 10_000))
    return found


def _batches(quick: bool) -> list[dict[str, Any]]:
    found = []
    for batch in (16, 64) if quick else (1, 4, 16, 64, 256, 1000):
        steps = 300 if quick else 10_000 if batch <= 64 else 2000
        found += _both("batch", batch, **_regression(10_000, batch, 1, steps))
    return found


def _chains(quick: bool) -> list[dict[str, Any]]:
    found = []
    for chains in (1, 16) if quick else (1, 4, 16, 64, 256, 1024, 4096, 10_000):
        steps = 1000 if quick else min(50_000, max(4000, 4_000_000 // chains))  # few chains would be done in no time
        found += _both("chains", chains, problem="wells", chains=chains, steps=steps)
    return found


def _threads(quick: bool) -> list[dict[str, Any]]:
    """Of us only: how much a second core brings. `also` tells the problems apart.

    256 chains are four full packs. 64 are one on one thread, and two half-full ones on two: an axis of their own.
    """
    found = []
    for threads in (1, 2):
        common = {"who": "sgmcmc", "at": threads, "threads": threads, "dtype": "float32", "method": "sgnht"}
        for axis, chains, steps in (("threads", 256, 20_000), ("threads, one lane group", 64, 50_000)):
            wells = {"problem": "wells", "chains": chains, "steps": 1000 if quick else steps}
            found.append(common | wells | {"axis": axis, "also": f"wells, {chains} chains"})
        regression = _regression(1000, 16, 4, 500 if quick else 50_000) | {"also": "logistic, 4 chains"}
        found.append(common | regression | {"axis": "threads"})
    return found


def _memory(quick: bool) -> dict[str, Any]:
    chains, steps = (1000, 100) if quick else (10_000, 1000)
    numbers = {"who": "sgmcmc", "axis": "memory", "at": chains, "method": "sgnht", "dtype": "float64"}
    return numbers | {"problem": "memory", "chains": chains, "steps": steps, "d": 10}
