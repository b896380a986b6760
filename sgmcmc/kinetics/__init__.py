"""Kinetics: what momentum costs, and how fast it moves the parameters.

A kinetics is a value (`Gaussian`, `MonomialGamma`, `Relativistic`, or your own NamedTuple), what it does is an open
function (`energy`, `velocity`, `curvature`, …). Implement these three for a new type and everything else follows.
"""

from __future__ import annotations

from sgmcmc.kinetics import momentum_law  # noqa: F401  (its implementations count, it has no names)
from sgmcmc.kinetics.functions import (
    acceptance,
    arrival,
    bounded_inverse_mass,
    curvature,
    draw,
    energy,
    fill_momenta,
    friction_flow,
    halfway,
    inverse_mass,
    log_normaliser,
    specialise,
    velocity,
    velocity_and_excess,
)
from sgmcmc.kinetics.gaussian import Gaussian, Overdamped
from sgmcmc.kinetics.monomial_gamma import MonomialGamma
from sgmcmc.kinetics.relativistic import Relativistic
from sgmcmc.kinetics.special_forms import (
    LinearMonomial,
    RootMonomial,
    asinh_flow,
    end_of_flow,
    second_flow,
    sinh_flow,
    velocity_after_flow,
)
from sgmcmc.kinetics.tabulated import Tabulated, with_momentum_law

__all__ = [
    "Gaussian",
    "LinearMonomial",
    "MonomialGamma",
    "Overdamped",
    "Relativistic",
    "RootMonomial",
    "Tabulated",
    "acceptance",
    "arrival",
    "asinh_flow",
    "bounded_inverse_mass",
    "curvature",
    "draw",
    "end_of_flow",
    "energy",
    "fill_momenta",
    "friction_flow",
    "halfway",
    "inverse_mass",
    "log_normaliser",
    "second_flow",
    "sinh_flow",
    "specialise",
    "velocity",
    "velocity_after_flow",
    "velocity_and_excess",
    "with_momentum_law",
]
