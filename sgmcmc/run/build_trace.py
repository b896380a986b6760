"""The trace of a run, made from its chains."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators.state import State
from sgmcmc.kinetics import Overdamped
from sgmcmc.minibatch import FullData, rows_per_step
from sgmcmc.parameters import Layout
from sgmcmc.run.chains import ChainView
from sgmcmc.run.coordinate_temperatures import temperatures_of, tracked_coordinates
from sgmcmc.run.job import Chain
from sgmcmc.run.plan import Plan
from sgmcmc.run.recording import Keep, KeepFunction
from sgmcmc.run.settings import Settings
from sgmcmc.schedules import Constant
from sgmcmc.trace import CoordinateTemperatures, KeptMoments, Trace

__all__ = ["build_trace", "facts"]


def build_trace(
    settings: Settings,
    plan: Plan,
    chains: list[Chain],
    kept: NDArray[Any],
    keep: Keep,
    info: dict[str, Any],
    rerun: Any,
) -> Trace:
    """The trace: the draws that all chains that did not diverge have in common, and the facts of the run."""
    alive = [c for c in chains if c.diverged is None]
    n_draws = plan.recorded_before(min(c.step for c in alive))
    index = [i for i, c in enumerate(chains) if c.diverged is None]
    draws = kept[:, :n_draws] if len(alive) == len(chains) else kept[index, :n_draws]
    final, sums = _ends(alive)
    with np.errstate(invalid="ignore", divide="ignore"):
        kinetic, configurational = sums[:, 0] / sums[:, 2], sums[:, 1] / sums[:, 2]
    if isinstance(settings.sampler.kinetics, Overdamped):
        kinetic = np.full(len(alive), np.nan)
    info |= {"chains": [c.number for c in alive]}
    info |= {"diverged": {str(c.number): c.diverged for c in chains if c.diverged is not None}}
    facts_of_theta = {"parameters": settings.layout, "model": settings.model}
    named = facts_of_theta if draws.shape[2] == settings.dim else {}
    if isinstance(keep, KeepFunction):
        named = {"parameters": Layout({"kept": (keep.size,)})}
    more = {"moments": _moments(alive), "rerun": rerun, "weights": _weights(plan, n_draws)}
    more["by_coordinate"] = _by_coordinate(alive, settings, plan)
    return Trace(draws, info, kinetic, configurational, final, **more, **named)


def _weights(plan: Plan, n_draws: int) -> Any:
    """The step sizes of the draws; one number if they are equal."""
    if isinstance(plan.schedule, Constant):
        return plan.schedule.step_size
    return plan.schedule.step_sizes(plan.kept[:n_draws])


def _by_coordinate(alive: list[Chain], settings: Settings, plan: Plan) -> CoordinateTemperatures | None:
    """The temperatures of single coordinates, in those segments of the run that all chains measured."""
    if any(c.segment_sums is None for c in alive):
        return None
    first = alive[0]
    if isinstance(first, ChainView) and first.arrays.segment_sums is not None:
        rows = np.array([c.row for c in alive if isinstance(c, ChainView)])
        sums = first.arrays.segment_sums[rows]
    else:
        sums = np.stack([c.segment_sums for c in alive if c.segment_sums is not None])
    sums = sums[:, (sums[:, :, -1] > 0.0).all(axis=0)]
    if sums.shape[1] == 0:
        return None
    coordinates = tracked_coordinates(settings.dim, settings.chains, plan.segments)
    origins = np.stack([c.origin[coordinates] for c in alive])
    return CoordinateTemperatures(coordinates, temperatures_of(sums, origins))


def _ends(alive: list[Chain]) -> tuple[dict[str, NDArray[Any]], NDArray[np.float64]]:
    """The last states of the chains, and their sums of measurements, a row per chain."""
    numbers = {"step": np.array([c.step for c in alive]), "before": np.array([c.before for c in alive])}
    first = alive[0]
    if isinstance(first, ChainView) and first.arrays.holds_states:
        common, rows = first.arrays, np.array([c.row for c in alive if isinstance(c, ChainView)])
        arrays = {name: array[rows] for name, array in common.states._asdict().items()}
        return arrays | numbers, common.sums[rows]
    columns = zip(*(c.state for c in alive), strict=True)
    arrays = {name: np.stack(own) for name, own in zip(State._fields, columns, strict=True)}
    return arrays | numbers, np.array([c.sums for c in alive])


def _moments(alive: list[Chain]) -> KeptMoments | None:
    tallies = [c.tally for c in alive if c.tally is not None]
    if len(tallies) == 0:
        return None
    mean, variance = (np.stack([getattr(t, name) for t in tallies]) for name in ("mean", "variance"))
    return KeptMoments(np.array([t.count for t in tallies]), mean, variance)


def facts(settings: Settings, seed: int, steps: int, seconds: float, compiling: float) -> dict[str, Any]:
    """The facts of a run, for `trace.info`."""
    s = settings
    full = isinstance(s.rows, FullData)
    return {
        "sampler": repr(s.sampler),
        "model": repr(s.model),
        "seed": seed,
        "dtype": np.dtype(s.dtype).name,
        "device": s.device,
        "device_reason": s.why,
        "steps": steps,
        "warmup": s.warmup,
        "thin": s.thin,
        "batch_size": None if full else s.rows.size,
        "gradient_noise": s.noise,
        "clip_gradient": None if s.clip == np.inf else s.clip,
        "temperature": s.sampler.temperature,
        "seconds": seconds,
        "compile_seconds": compiling,
        "steps_per_second": steps / max(seconds, 1e-9),
        "gradient_evaluations": steps,
        "row_evaluations": steps * rows_per_step(s.rows, s.n_rows),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """The versions that shape the draws, bit by bit."""
    import numba

    from sgmcmc import __version__

    return {"sgmcmc": __version__, "numpy": np.__version__, "numba": numba.__version__}
