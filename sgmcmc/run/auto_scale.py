"""``scale="auto"``: the scale of the posterior, measured by a pilot run and then fixed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sgmcmc.run.pilot import find_scale
from sgmcmc.run.settings import Settings
from sgmcmc.samplers import Sampler
from sgmcmc.trace import Trace

__all__ = ["in_natural_units"]


def in_natural_units(
    sample: Callable[..., Any],
    model: Any,
    sampler: Sampler,
    init: Any,
    settings: Settings,
    seed: int,
    progress: bool,
) -> tuple[Sampler, Any]:
    """The sampler with a measured scale, and the starts of its chains.

    A run that continues a trace takes the scale of that trace. Otherwise a pilot of some thousand gradients measures it, and
    starts that were not given are where the pilot ended. The pilot depends on the model, `init` and the seed alone, so a
    resumed run has the same scale.
    """
    if isinstance(init, Trace):
        return replace(sampler, scale=_of_trace(init)), init
    given = init.get("theta") if isinstance(init, Mapping) else init
    options: dict[str, Any] = {"temperature": sampler.temperature, "seed": seed % 2**63, "progress": progress}
    pilot = find_scale(sample, model, chains=settings.chains, init=given, matrix=settings.device == "cpu", **options)
    found = replace(sampler, scale=pilot.scale)
    if given is not None:
        return found, init
    starts = {"theta": pilot.theta}
    return found, starts | dict(init) | starts if isinstance(init, Mapping) else starts


def _of_trace(trace: Trace) -> Any:
    if "scale" not in trace.info:
        raise ValueError("init is a trace whose run did not measure its scale; give scale= the numbers that it had")
    return np.asarray(trace.info["scale"])
