"""The two temperatures of a run, with 95 % intervals: E[p K'(p)] and E[(θ − c)·∇U(θ)]/d are both T if all is well."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc import diagnostics
from sgmcmc.bias.finding import Finding, student
from sgmcmc.bias.gradients import gradient_at
from sgmcmc.potentials import rows_of

__all__ = ["configurational", "kinetic", "virials"]

TOLERANCE = 0.05  # of the target's temperature, beyond what chance explains
KINETIC_TOLERANCE = 0.25  # BAOAB has h²ω²/4 of it with the law of θ still right
_MOST_DRAWS, _MOST_ROWS, _FEWEST = 1000, 20_000_000, 100


def kinetic(trace: Any) -> Finding:
    """The kinetic temperature by the scatter between chains."""
    T = float(trace.info.get("temperature", 1.0))
    value, wide = student(trace.kinetic_temperature)
    if math.isnan(value):
        return Finding(
            "kinetic temperature", value, math.nan, math.nan, "unknown", "There is no momentum in this sampler."
        )
    verdict = _verdict(value, wide, T, KINETIC_TOLERANCE)
    advice = {
        "good": "The momenta have the temperature of the target.",
        "unknown": "One chain alone has no scatter between chains; run at least two for an interval.",
        "hot": "The momenta are too hot: take a smaller step, or warm up longer.",
        "cold": "The momenta are too cold: the step is long for the stiffest direction, so take a smaller one.",
    }[verdict]
    return Finding("kinetic temperature", value, value - wide, value + wide, verdict, advice)


def configurational(trace: Any, model: Any) -> Finding:
    """The configurational temperature: at the draws, by all rows, if that can be afforded, else as the run measured it."""
    T = float(trace.info.get("temperature", 1.0))
    value, wide = _by_draws(trace, model)
    if math.isnan(value):
        value, wide = student(trace.configurational_temperature)
    verdict = _verdict(value, wide, T, TOLERANCE)
    off = f"{value / T:.3g} times what they should be"
    advice = {
        "good": "The draws have the temperature of the target.",
        "unknown": "One chain alone, without its model, has no interval; run at least two.",
        "hot": f"Variances are about {off}: take a smaller step, a larger batch, or a sampler with a thermostat.",
        "cold": f"Variances are about {off}, or the chains are still on their way: warm up longer, then take a "
        "smaller step.",
    }[verdict]
    return Finding("configurational temperature", value, value - wide, value + wide, verdict, advice)


def _verdict(value: float, wide: float, T: float, tolerance: float) -> str:
    if math.isnan(wide):
        return "unknown"
    if abs(value - T) - wide <= tolerance * T:
        return "good"
    return "hot" if value > T else "cold"


def _by_draws(trace: Any, model: Any) -> tuple[float, float]:
    """Mean and half-width by the effective sample size, or NaN where there is no model or it would take too long."""
    if model is None or trace.moments is not None or trace.n_draws < _FEWEST:
        return math.nan, math.nan
    affordable = min(_MOST_DRAWS, _MOST_ROWS // max(rows_of(model), 1)) // trace.chains
    if affordable * trace.chains < _FEWEST:
        return math.nan, math.nan
    some = np.unique(np.linspace(0, trace.n_draws - 1, min(affordable, trace.n_draws)).astype(np.intp))
    values = virials(np.asarray(trace.draws[:, some], np.float64), model)
    return float(values.mean()), 1.96 * diagnostics.mcse(values)


def virials(draws: NDArray[np.float64], model: Any) -> NDArray[np.float64]:
    """(θ − c)·∇U(θ)/d of draws (chain, draw, dim), where c is the mean of the other chains, or of the other half.

    With the mean of the same draws for c, the result would be too small by about T/ESS.
    """
    chains, n, dim = draws.shape
    x = draws if chains > 1 else draws[:, : n // 2 * 2].reshape(2, n // 2, dim)
    means = x.mean(axis=1)
    others = (means.sum(axis=0) - means) / (len(x) - 1)
    found = np.empty(x.shape[:2])
    for c in range(len(x)):
        for i, theta in enumerate(x[c]):
            found[c, i] = (theta - others[c]) @ gradient_at(model, theta) / dim
    return found.reshape(chains, -1)
