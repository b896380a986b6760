"""Potentials: what a model must give, and models made of one function of yours."""

from sgmcmc.potentials.contract import (
    add_energy,
    add_gradient,
    add_gradient_within,
    add_prior_gradient,
    check_model,
    dim_of,
    energy_of,
    estimate,
    estimate_within,
    fill_gradients,
    full_energy,
    full_gradient,
    gradient_of,
    prior_energy,
    prior_of,
    rows_of,
    scratch_rows,
    scratch_size,
    sums_in_parts,
    weigh,
)
from sgmcmc.potentials.cooperation import part_of_sum, sum_over_rows, sums_per_row, to_errors
from sgmcmc.potentials.finite_differences import check_gradient
from sgmcmc.potentials.model import Model
from sgmcmc.potentials.wrapped import Potential, PythonPotential

__all__ = [
    "Model",
    "Potential",
    "PythonPotential",
    "add_energy",
    "add_gradient",
    "add_gradient_within",
    "add_prior_gradient",
    "check_gradient",
    "check_model",
    "dim_of",
    "energy_of",
    "estimate",
    "estimate_within",
    "fill_gradients",
    "full_energy",
    "full_gradient",
    "gradient_of",
    "part_of_sum",
    "prior_energy",
    "prior_of",
    "rows_of",
    "scratch_rows",
    "scratch_size",
    "sum_over_rows",
    "sums_in_parts",
    "sums_per_row",
    "to_errors",
    "weigh",
]
