"""What a step costs, in rows of data: by it the budget of a tuning is shared out between settings."""

from __future__ import annotations

from typing import Any

from sgmcmc.kinetics import MonomialGamma, RootMonomial, specialise
from sgmcmc.potentials import PythonPotential, dim_of
from sgmcmc.samplers import Sampler

__all__ = ["cost_of_step"]

PER_STEP, PER_COORDINATE = 900.0, 40.0
OF_FORM = {RootMonomial: 64.0, MonomialGamma: 640.0}  # per coordinate, in place of that: with roots, and with powers


def cost_of_step(sampler: Sampler | None, model: Any, rows: int) -> float:
    """What a step takes, in rows of data: those of its gradient, and what they would take that it spends on all the rest.

    From times of a logistic regression with 14 and with 86 coordinates, where a row is half a nanosecond per coordinate. It is
    a formula, not a measurement, so that a seed decides what is chosen. A gradient in Python outweighs all the rest.
    """
    if isinstance(model, PythonPotential):
        return 1.0 + rows
    each = PER_COORDINATE if sampler is None else OF_FORM.get(type(specialise(sampler.kinetics)), PER_COORDINATE)
    return each + PER_STEP / dim_of(model) + rows
