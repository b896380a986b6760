"""Joining: traces of runs that continue each other, as one trace."""

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


def joined(traces: Sequence[Trace]) -> Trace:
    """One trace of consecutive traces: draws and weights are concatenated, temperatures are averaged by time.

    Counts are added; final state, model and all else are those of the last trace. Chains that a later trace lacks are left out,
    as `sample` leaves out chains that diverged.

    The configurational temperature comes from single coordinates, if several chains measured all of them: their centre is the
    mean of the other chains. That of one trace alone is measured from the start of its chain, and is far too low for a few steps
    (0.06 in place of 1 for two steps of SGHMC(0.05)).
    """
    if any(trace.moments is not None for trace in traces):
        raise ValueError('traces of keep="moments" have no draws to be joined; keep draws')
    last, times = traces[-1], np.array([trace.n_draws * trace.info.get("thin", 1) for trace in traces], float)
    if len(traces) == 1 or times.sum() == 0.0:
        return last
    rows = [_rows(trace, last) for trace in traces]
    return replace(
        last,
        draws=np.concatenate([trace.draws[own] for trace, own in zip(traces, rows, strict=True)], axis=1),
        weights=np.concatenate([np.asarray(trace.weights) for trace in traces]),
        info=_info(traces),
        parameters=last.layout,
        **_measured(traces, rows, times),
    )


def _rows(trace: Trace, last: Trace) -> list[int]:
    """The rows of the chains of the last trace in this one."""
    if not set(last.chain_numbers) <= set(trace.chain_numbers):
        raise ValueError(f"a trace of chains {last.chain_numbers} did not go on from one of {trace.chain_numbers}")
    return [trace.chain_numbers.index(chain) for chain in last.chain_numbers]


def _measured(traces: Sequence[Trace], rows: list[list[int]], times: Array) -> dict[str, Any]:
    """The temperatures of the traces that have measured any; one of a single step has none."""
    known = [t > 0.0 and not np.isnan(p.configurational_temperature).all() for p, t in zip(traces, times, strict=True)]
    if not any(known):
        return {"by_coordinate": None} | {name: np.full(traces[-1].chains, np.nan) for name in _TEMPERATURES}
    some, t = [k for k, is_known in enumerate(known) if is_known], times[known]
    found: dict[str, Any] = {
        name: np.average([getattr(traces[k], name)[rows[k]] for k in some], axis=0, weights=t) for name in _TEMPERATURES
    }
    every = [_of_chains(traces[k].by_coordinate, rows[k]) for k in some]
    by_coordinate = _by_coordinate(every, t) if traces[-1].chains > 1 else None
    if by_coordinate is not None and np.array_equal(
        by_coordinate.coordinates, np.arange(by_coordinate.coordinates.size)
    ):
        means = [c.values.mean(axis=(1, 2)) for c in every if c is not None]
        found["configurational_temperature"] = np.average(means, axis=0, weights=t)
    return found | {"by_coordinate": by_coordinate}


def _of_chains(found: CoordinateTemperatures | None, rows: list[int]) -> CoordinateTemperatures | None:
    return None if found is None else found._replace(values=found.values[rows])


def _info(traces: Sequence[Trace]) -> dict[str, Any]:
    info = dict(traces[-1].info)
    for name in _COUNTED:
        if all(name in trace.info for trace in traces):
            info[name] = sum(trace.info[name] for trace in traces)
    if "seconds" in info and "steps" in info:
        info["steps_per_second"] = info["steps"] / max(info["seconds"], 1e-9)
    lost = {chain: step for trace in traces for chain, step in trace.info.get("diverged", {}).items()}
    return info | ({"diverged": lost} if "diverged" in info else {})


def _by_coordinate(traces: list[CoordinateTemperatures | None], times: Array) -> CoordinateTemperatures | None:
    """The segments of all traces, pooled into at most 64 of about the same length; None if a trace lacks them.

    A single chain has none, either: its centre is the mean over the rest of its own trace, which makes a short one cold.
    """
    values, lengths = list[Array](), list[Array]()
    for trace, time in zip(traces, times, strict=True):
        if trace is None or traces[0] is None or not np.array_equal(trace.coordinates, traces[0].coordinates):
            return None
        segments = trace.values.shape[1]
        values.append(trace.values)
        lengths.append(np.full(segments, time / segments))
    whole = pooled(np.concatenate(values, axis=1), np.concatenate(lengths))
    return None if traces[0] is None else traces[0]._replace(values=whole)


def pooled(values: Array, lengths: Array) -> Array:
    """Means of (chain, segment, k) over neighbouring segments, weighted by their lengths: 64 or fewer, about equally long."""
    total, longest = float(lengths.sum()), float(lengths.max())
    bins = max(1, min(SEGMENTS, int(total / longest * (1.0 + 1e-9))))
    middle = np.cumsum(lengths) - 0.5 * lengths
    place = np.minimum((middle / total * bins).astype(np.intp), bins - 1)
    first = np.flatnonzero(np.diff(place, prepend=-1))  # of each bin
    weighted = np.add.reduceat(values * lengths[:, None], first, axis=1)
    return np.asarray(weighted / np.add.reduceat(lengths, first)[:, None])
