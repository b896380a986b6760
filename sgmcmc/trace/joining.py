"""Joining: runs that went on from each other, as the one run that they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.trace import Trace
from sgmcmc.trace.measurements import CoordinateTemperatures

__all__ = ["SEGMENTS", "joined"]

SEGMENTS = 64  # of the whole, as of one run
_TEMPERATURES = ("kinetic_temperature", "configurational_temperature")
_COUNTED = ("seconds", "compile_seconds", "steps", "gradient_evaluations", "row_evaluations")

Array = NDArray[np.float64]


def joined(parts: Sequence[Trace]) -> Trace:
    """One trace of parts that follow each other in time: draws and weights one after the other, temperatures by time.

    What was counted is added up; where it ended, its model and all else is that of the last part. Chains that a later part no
    longer has are left out, as `sample` leaves out chains that diverged.

    The configurational temperature comes from single coordinates, if several chains measured all of them: their centre is the
    mean of the other chains, while the temperature of a part by itself is measured from where its chain began, and is far too low
    for parts of a few steps (0.06 in place of 1 for two steps of SGHMC(0.05)).
    """
    if any(part.moments is not None for part in parts):
        raise ValueError('traces of keep="moments" have no draws to be joined; keep draws')
    last, times = parts[-1], np.array([part.n_draws * part.info.get("thin", 1) for part in parts], float)
    if len(parts) == 1 or times.sum() == 0.0:
        return last
    rows = [_rows(part, last) for part in parts]
    return replace(
        last,
        draws=np.concatenate([part.draws[own] for part, own in zip(parts, rows, strict=True)], axis=1),
        weights=np.concatenate([np.asarray(part.weights) for part in parts]),
        info=_info(parts),
        parameters=last.layout,
        **_measured(parts, rows, times),
    )


def _rows(part: Trace, last: Trace) -> list[int]:
    """Where the chains of the last part are in this one."""
    if not set(last.chain_numbers) <= set(part.chain_numbers):
        raise ValueError(f"a trace of chains {last.chain_numbers} did not go on from one of {part.chain_numbers}")
    return [part.chain_numbers.index(chain) for chain in last.chain_numbers]


def _measured(parts: Sequence[Trace], rows: list[list[int]], times: Array) -> dict[str, Any]:
    """The temperatures of those parts that have measured any: of one step, say, there are none."""
    known = [t > 0.0 and not np.isnan(p.configurational_temperature).all() for p, t in zip(parts, times, strict=True)]
    if not any(known):
        return {"by_coordinate": None} | {name: np.full(parts[-1].chains, np.nan) for name in _TEMPERATURES}
    some, t = [k for k, is_known in enumerate(known) if is_known], times[known]
    found: dict[str, Any] = {
        name: np.average([getattr(parts[k], name)[rows[k]] for k in some], axis=0, weights=t) for name in _TEMPERATURES
    }
    every = [_of_chains(parts[k].by_coordinate, rows[k]) for k in some]
    by_coordinate = _by_coordinate(every, t) if parts[-1].chains > 1 else None
    if by_coordinate is not None and np.array_equal(
        by_coordinate.coordinates, np.arange(by_coordinate.coordinates.size)
    ):
        means = [c.values.mean(axis=(1, 2)) for c in every if c is not None]
        found["configurational_temperature"] = np.average(means, axis=0, weights=t)
    return found | {"by_coordinate": by_coordinate}


def _of_chains(found: CoordinateTemperatures | None, rows: list[int]) -> CoordinateTemperatures | None:
    return None if found is None else found._replace(values=found.values[rows])


def _info(parts: Sequence[Trace]) -> dict[str, Any]:
    info = dict(parts[-1].info)
    for name in _COUNTED:
        if all(name in part.info for part in parts):
            info[name] = sum(part.info[name] for part in parts)
    if "seconds" in info and "steps" in info:
        info["steps_per_second"] = info["steps"] / max(info["seconds"], 1e-9)
    lost = {chain: step for part in parts for chain, step in part.info.get("diverged", {}).items()}
    return info | ({"diverged": lost} if "diverged" in info else {})


def _by_coordinate(parts: list[CoordinateTemperatures | None], times: Array) -> CoordinateTemperatures | None:
    """The segments of all parts, pooled into at most 64 of about the same length; None if a part lacks them.

    One chain alone has none, either: its centre is the mean over the rest of its own part, which for a short part makes it cold.
    """
    values, lengths = list[Array](), list[Array]()
    for part, time in zip(parts, times, strict=True):
        if part is None or parts[0] is None or not np.array_equal(part.coordinates, parts[0].coordinates):
            return None
        segments = part.values.shape[1]
        values.append(part.values)
        lengths.append(np.full(segments, time / segments))
    whole = pooled(np.concatenate(values, axis=1), np.concatenate(lengths))
    return None if parts[0] is None else parts[0]._replace(values=whole)


def pooled(values: Array, lengths: Array) -> Array:
    """Means of (chain, segment, k) over neighbouring segments, weighted by their lengths: 64 or fewer, about equally long."""
    total, longest = float(lengths.sum()), float(lengths.max())
    bins = max(1, min(SEGMENTS, int(total / longest * (1.0 + 1e-9))))
    middle = np.cumsum(lengths) - 0.5 * lengths
    place = np.minimum((middle / total * bins).astype(np.intp), bins - 1)
    first = np.flatnonzero(np.diff(place, prepend=-1))  # of each bin
    weighted = np.add.reduceat(values * lengths[:, None], first, axis=1)
    return np.asarray(weighted / np.add.reduceat(lengths, first)[:, None])
