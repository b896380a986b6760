"""Mixing: rank-normalised R̂ and effective sample sizes of the worst parameter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sgmcmc import diagnostics
from sgmcmc.bias.finding import BiasFinding, name_of

__all__ = ["mixing"]

R_HAT, ESS_PER_CHAIN, MOST = 1.01, 100.0, 256


def mixing(trace: Any) -> list[BiasFinding]:
    """R̂ above 1.01 (Vehtari et al. 2021 ask for less) and fewer than 100 effective draws per chain are problems."""
    if trace.moments is not None or trace.n_draws < 4 or trace.dim == 0:
        why = "There are too few draws to compare chains; keep draws, at least 4 per chain."
        return [BiasFinding("R̂, largest", math.nan, math.nan, math.nan, "unknown", why)]
    some = np.unique(np.linspace(0, trace.dim - 1, min(trace.dim, MOST)).astype(int))
    x = [np.asarray(trace.draws[:, :, i], np.float64) for i in some]
    r_hats = np.array([diagnostics.r_hat(d) for d in x])
    sizes = np.array([min(diagnostics.ess(d, "bulk"), diagnostics.ess(d, "tail")) for d in x])
    few = _ess(trace, some, sizes)
    return [_r_hat(trace, some, r_hats, few.verdict == "good"), few]


def _r_hat(trace: Any, some: Any, values: Any, enough: bool) -> BiasFinding:
    worst = int(np.nanargmax(values)) if np.isfinite(values).any() else 0
    value = float(values[worst])
    if value <= R_HAT and not enough:
        said = "The chains agree so far, with too few effective draws to rely on it: run longer."
        return BiasFinding("R̂, largest", value, math.nan, math.nan, "not resolved", said)
    if value <= R_HAT:
        return BiasFinding("R̂, largest", value, math.nan, math.nan, "good", "The chains agree.")
    if math.isnan(value):
        return BiasFinding(
            "R̂, largest", value, math.nan, math.nan, "unknown", "The draws do not move; look at the model."
        )
    said = f"Chains disagree most about {name_of(trace, int(some[worst]))}: run longer, with larger thin= and warmup=."
    return BiasFinding("R̂, largest", value, math.nan, math.nan, "not mixed", said)


def _ess(trace: Any, some: Any, values: Any) -> BiasFinding:
    worst = int(np.nanargmin(values)) if np.isfinite(values).any() else 0
    value, wanted = float(values[worst]), ESS_PER_CHAIN * trace.chains
    if math.isnan(value) or value >= wanted:
        verdict = "unknown" if math.isnan(value) else "good"
        return BiasFinding(
            "ESS, smallest", value, math.nan, math.nan, verdict, "Intervals of the summary can be relied on."
        )
    longer = f"{wanted / max(value, 1.0):.2g} times as many steps"
    said = f"{name_of(trace, int(some[worst]))} has few effective draws: take {longer}, or sg.tune the sampler."
    return BiasFinding("ESS, smallest", value, math.nan, math.nan, "not mixed", said)
