"""Starts: the first states of the chains, new or from the end of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc import checks
from sgmcmc.integrators.state import State
from sgmcmc.rng import stream
from sgmcmc.run.chains import ChainArrays, ChainView
from sgmcmc.run.job import Chain
from sgmcmc.run.loop_compiled import Unmeasured
from sgmcmc.run.old_formats import with_variance
from sgmcmc.run.settings import Settings
from sgmcmc.trace import Trace

__all__ = ["last_step", "start"]

_WORDS = {"theta": "parameters", "p": "momentum", "xi": "thermostat"}


def start(settings: Settings, init: Any, seed: int) -> list[Chain]:
    """The chains before their first step; their `out` is set later."""
    sampler, chains, dim, kind = settings.sampler, settings.chains, settings.dim, settings.dtype
    nowhere = np.empty((0, dim), kind)
    if isinstance(init, Trace):
        return _continue(settings, init, seed, nowhere)
    given = dict(init) if isinstance(init, Mapping) else {"theta": init}
    unknown = [name for name in given if name not in _WORDS]
    if unknown:
        raise ValueError(f"init has the unknown key {unknown[0]!r}; its keys are 'theta', 'p' and 'xi'")
    if given.get("theta") is None:
        given["theta"] = _cloud(seed, chains, dim)
    sizes = sampler.sizes(dim)._asdict()
    for name in given:
        if sizes[name] == 0:
            raise ValueError(f"init[{name!r}] was given, but the sampler has no {_WORDS[name]}; leave it out")
    values = {name: _per_chain(f"init[{name!r}]", value, chains, sizes[name]) for name, value in given.items()}
    extra: dict[str, Any] = {name: values[name] for name in ("p", "xi") if name in values}
    extra |= {"variance": settings.known_variance}
    states, fresh = sampler.start(values["theta"].astype(kind), **extra), "p" not in values
    arrays, keys = ChainArrays(states, np.zeros((chains, dim), kind), np.zeros((chains, 3))), stream(seed, chains - 1)
    return [ChainView(arrays, i, keys, nowhere, fresh) for i in range(chains)]


def _per_chain(name: str, value: Any, chains: int, size: int) -> NDArray[np.float64]:
    """One row per chain from a number, a row, or a row per chain."""
    array = checks.finite_array(name, value)
    if array.shape not in ((), (size,), (chains, size)):
        raise ValueError(f"{name} has shape {array.shape}; give ({size},) or ({chains}, {size})")
    return np.broadcast_to(array, (chains, size))


def _cloud(seed: int, chains: int, dim: int) -> NDArray[np.float64]:
    """Default starts: normal around 0 with standard deviation 0.1."""
    generators = (np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,))) for number in range(chains))
    return np.stack([0.1 * g.standard_normal(dim) for g in generators])


def last_step(trace: Trace) -> int:
    """The first step of a run that continues this trace."""
    names = State._fields if "center" not in trace.final else ("theta", "p", "xi", "pending")
    missing = [name for name in (*names, "step", "before") if name not in trace.final]
    if missing:
        raise ValueError(f"init is a trace without {missing[0]!r} in its final state; give one that sample returned")
    steps, before = (np.asarray(trace.final[name]) for name in ("step", "before"))
    if steps.dtype.kind not in "iu" or steps.shape != (trace.chains,) or steps.min() < 0 or steps.max() >= 2**62:
        raise ValueError("init is a trace whose final['step'] is no count of steps for each chain; give one of sample")
    if before.dtype.kind != "f" or before.shape != (trace.chains,) or not (before >= 0.0).all():
        raise ValueError("init is a trace whose final['before'] is no step size for each chain; give one of sample")
    return int(steps.max())


def _last_arrays(trace: Trace, final: dict[str, Any], name: str) -> NDArray[Any]:
    array = np.asarray(final[name])
    if array.dtype.kind != "f" or array.ndim != 2 or len(array) != trace.chains or not np.isfinite(array).all():
        raise ValueError(
            f"init is a trace whose final[{name!r}] has shape {array.shape} and dtype {array.dtype}; give finite floats, a "
            "row per chain, as sample leaves them"
        )
    return array


def _continue(settings: Settings, trace: Trace, seed: int, nowhere: NDArray[Any]) -> list[Chain]:
    """Chains that continue a trace; their random numbers are those of one longer run.

    After Ctrl-C chains may have ended in different steps: those behind catch up before anything is recorded.
    """
    sampler, chains, dim, kind = settings.sampler, settings.chains, settings.dim, settings.dtype
    final = with_variance(trace.final, sampler.sigma_p, sampler.temperature, sampler.wants_variance)
    arrays = State(*(_last_arrays(trace, final, name) for name in State._fields))
    n, size = arrays.theta.shape
    if n != chains or size != dim or arrays.theta.dtype != np.dtype(kind):
        raise ValueError(
            f"init is a trace of {n} chains, {size} coordinates and dtype "
            f"{arrays.theta.dtype}; the run has chains={chains}, {dim} coordinates and dtype {np.dtype(kind)}"
        )
    result = []
    for i, number in enumerate(trace.chain_numbers):
        state = State(*(np.array(a[i], dtype=kind) for a in arrays))
        if not sampler.fits(state):
            raise ValueError(
                f"init is a trace of {trace.info.get('sampler')}, whose state {sampler!r} cannot go on from"
            )
        if isinstance(settings.measure, Unmeasured) and sampler.wants_variance:
            state.variance[:] = sampler.variance_in_units(settings.known_variance, dim)
        at, before = int(final["step"][i]), float(final["before"][i])
        result.append(Chain(number, stream(seed, number), state, at, before, nowhere, np.zeros(dim, kind)))
    return result
