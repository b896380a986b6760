"""Step halving: the discretisation bias of any function of θ, from the same run with steps half as long (Richardson).

If E_h[f] = E[f] + C h^k, then E_h[f] − E[f] = (E_h[f] − E_{h/2}[f]) / (1 − 2^−k): k = 2 for splittings, 1 for Euler and
for gradient noise that nothing absorbs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc import checks, diagnostics
from sgmcmc.bias.finding import BiasFinding
from sgmcmc.bias.quantiles import normal_quantile
from sgmcmc.bias.rerun import Rerun
from sgmcmc.integrators import order
from sgmcmc.thermostats import has_variables

__all__ = ["as_functions", "order_of", "step_halving"]

Array = NDArray[np.float64]
Functions = Mapping[str, Callable[[Any], Any]]

_GRAVENESS = ("good", "unknown", "not resolved", "biased")
TOLERANCE = 0.05  # of the function's standard deviation over draws


def as_functions(functions: Any) -> dict[str, Callable[[Any], Any]]:
    """Functions of θ by name; one alone is called by its own name, None are mean and variance."""
    if functions is None:
        return {}
    if callable(functions):
        return {getattr(functions, "__name__", "function"): functions}
    if not isinstance(functions, Mapping) or not all(callable(f) for f in functions.values()) or len(functions) == 0:
        raise TypeError(
            f"functions={checks.show(functions)} is not a function of theta; give one, or {{'name': function, …}}"
        )
    return dict(functions)


def order_of(rerun: Rerun) -> int:
    """The power of h that the bias goes with."""
    noisy = rerun.options["batch_size"] is not None or rerun.options["gradient_noise"] > 0.0
    absorbs = has_variables(rerun.sampler.thermostat)
    return 1 if order(rerun.sampler.integrator) == 1 or (noisy and not absorbs) else 2


def step_halving(trace: Any, rerun: Rerun | None, functions: Functions, progress: bool = False) -> list[BiasFinding]:
    """The bias of each function, or of the worst mean and the worst variance if none is given."""
    if rerun is None or rerun.step_size is None or trace.moments is not None or trace.dim != rerun.model.dim:
        why = "The step cannot be halved: the trace does not know its sampler, or its step size changes, or θ was not kept."
        return [BiasFinding("bias by step halving", math.nan, math.nan, math.nan, "unknown", why)]
    fine = rerun.halved(np.asarray(trace.final["theta"], np.float64), progress)
    order = order_of(rerun)
    if len(functions) > 0:
        return [_bias(name, _values(f, trace.draws), _values(f, fine.draws), order) for name, f in functions.items()]
    center = np.asarray(trace.draws, np.float64).mean(axis=(0, 1))
    coarse, half = (np.asarray(t.draws, np.float64) - center for t in (trace, fine))
    return [_worst("mean", trace, coarse, half, order), _worst("variance", trace, coarse**2, half**2, order)]


def _values(function: Callable[[Any], Any], draws: Any) -> Array:
    """f of every draw, (chain, draw)."""
    found = np.array([[function(theta) for theta in chain] for chain in np.asarray(draws, np.float64)], float)
    if found.ndim != 2:
        raise ValueError(
            f"a function gave an array of shape {found.shape[2:]} for one theta; give one that returns a number"
        )
    return found


def _worst(what: str, trace: Any, coarse: Array, fine: Array, order: int) -> BiasFinding:
    """The parameter with the gravest verdict, and of those the largest bias in units of its interval.

    The intervals are for all d parameters together, of level 1 − 0.05/d each.
    """
    names, d = list(trace.names), coarse.shape[2]
    found = [_bias(f"{what} of {names[i]}", coarse[:, :, i], fine[:, :, i], order, d) for i in range(d)]
    gravest = max(_GRAVENESS.index(f.verdict) for f in found)
    among = [f for f in found if _GRAVENESS.index(f.verdict) == gravest]
    return max(among, key=lambda f: abs(f.value) / max(f.high - f.low, 1e-300))


def _bias(name: str, coarse: Array, fine: Array, order: int, of: int = 1) -> BiasFinding:
    share = 1.0 - 0.5**order
    value = float(coarse.mean() - fine.mean()) / share
    wide = normal_quantile(1.0 - 0.05 / of) * math.hypot(diagnostics.mcse(coarse), diagnostics.mcse(fine)) / share
    spread, label = float(fine.std()), f"bias of {name}"
    if not math.isfinite(wide):
        return BiasFinding(label, value, math.nan, math.nan, "unknown", "Too few draws, or draws that do not move.")
    low, high = value - wide, value + wide
    if abs(value) - wide > TOLERANCE * spread:
        part = "half" if order == 1 else "a quarter"
        said = f"The step is too long for it: take a smaller one; half the step has {part} of this bias."
        return BiasFinding(label, value, low, high, "biased", said)
    if abs(value) + wide > TOLERANCE * spread:
        said = f"No bias above {(abs(value) + wide) / spread:.2g} sd is seen; more draws would see a smaller one."
        return BiasFinding(label, value, low, high, "not resolved", said)
    return BiasFinding(label, value, low, high, "good", "Less than a twentieth of its standard deviation.")
