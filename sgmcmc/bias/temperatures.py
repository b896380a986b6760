"""The two temperatures of a run, with 95 % intervals: E[p K'(p)] and E[(θ − c)·∇U(θ)]/d are both T if all is well."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc import diagnostics
from sgmcmc.bias.coordinates import mean_interval
from sgmcmc.bias.finding import BiasFinding, judged, longer, student
from sgmcmc.bias.gradients import gradient_at
from sgmcmc.potentials import rows_of

__all__ = ["configurational", "kinetic", "virials"]

TOLERANCE = 0.05  # of the target's temperature, beyond what chance explains
KINETIC_TOLERANCE = 0.25  # BAOAB has h²ω²/4 of it with the law of θ still right
_MOST_DRAWS, _MOST_ROWS, _FEWEST = 4000, 20_000_000, 100


def kinetic(trace: Any) -> BiasFinding:
    """The kinetic temperature by the scatter between chains."""
    T = float(trace.info.get("temperature", 1.0))
    value, wide = student(trace.kinetic_temperature)
    if math.isnan(value):
        return BiasFinding(
            "kinetic temperature", value, math.nan, math.nan, "unknown", "There is no momentum in this sampler."
        )
    verdict = judged(value - wide, value + wide, T, KINETIC_TOLERANCE)
    advice = {
        "not resolved": f"The interval is too wide to say; {longer(value, wide, T, KINETIC_TOLERANCE)}, or more chains.",
        "good": "The momenta have the temperature of the target.",
        "unknown": "One chain alone has no scatter between chains; run at least two for an interval.",
        "hot": "The momenta are too hot: take a smaller step, or warm up longer.",
        "cold": "The momenta are too cold: the step is long for the stiffest direction, so take a smaller one.",
    }[verdict]
    return BiasFinding("kinetic temperature", value, value - wide, value + wide, verdict, advice)


def configurational(trace: Any, model: Any) -> BiasFinding:
    """The configurational temperature: at the draws, by all rows, if that can be afforded, else as the run measured it."""
    T = float(trace.info.get("temperature", 1.0))
    value, low, high = _measured(trace, model)
    verdict = judged(low, high, T, TOLERANCE)
    advice = {
        "good": "The draws have the temperature of the target.",
        "not resolved": f"The interval is too wide to say; {longer(value, 0.5 * (high - low), T, TOLERANCE)}.",
        "unknown": "There are too few draws, or one chain alone without its model; run longer, or at least two chains.",
        "hot": f"Variances are about {value / T:.3g} times what they should be: take a smaller step, a larger batch, or a "
        "sampler with a thermostat.",
        "cold": _cold(value, T),
    }[verdict]
    return BiasFinding("configurational temperature", value, low, high, verdict, advice)


def _cold(value: float, T: float) -> str:
    if value <= 0.0:
        return "It is negative, as of no chain at rest: the chains are still on their way, so warm up longer."
    return (
        f"Variances are about {value / T:.3g} times what they should be, or the chains are still on their way: warm up "
        "longer, then take a smaller step."
    )


def _measured(trace: Any, model: Any) -> tuple[float, float, float]:
    """Value and interval: of the draws, else of the segments of the run, else of its chains."""
    value, wide = _by_draws(trace, model)
    if math.isnan(value):
        value, low, high = mean_interval(trace)
        if not math.isnan(value):
            return value, low, high
        value, wide = student(trace.configurational_temperature)
    return value, value - wide, value + wide


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
