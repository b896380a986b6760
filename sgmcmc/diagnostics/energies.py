"""Energies of draws: U(θ) = −log prior(θ) − Σ log p(y_i | θ), over all rows, at some or all draws of a trace."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc import checks
from sgmcmc.compiler.kernels import kernel
from sgmcmc.potentials import Potential, add_energy, dim_of, energy_of, prior_of, rows_of
from sgmcmc.priors import energy as prior_energy

__all__ = ["energies", "fitting", "log_likelihoods", "log_priors"]

Trace = Any  # a sgmcmc.trace.Trace; that module stands above this one, which it uses


def energies(trace: Trace, model: Any = None, most: int | None = None) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The numbers of at most `most` draws of all chains, evenly spaced, and U at them, (chain, draw)."""
    model = trace.model if model is None else fitting(trace, model)
    if model is None:
        raise ValueError("this trace does not know its model, as it was loaded or made by hand; give model=")
    n = trace.n_draws if most is None else checks.integer("most", most, 1) // max(trace.chains, 1)
    taken = np.unique(np.linspace(0, trace.n_draws - 1, min(max(n, 1), trace.n_draws)).astype(np.intp))
    U = np.empty((trace.chains, taken.size))
    for chain, draws in enumerate(trace.draws):
        U[chain] = [_energy(model, draws[i]) for i in taken]
    return taken, U


def _energy(model: Any, theta: NDArray[Any]) -> float:
    at = np.asarray(theta, dtype=np.float64)
    return float(model.energy(at)) if hasattr(model, "energy") else energy_of(model, at)


def fitting(trace: Trace, model: Any) -> Any:
    """The model, if its parameters are as many as those of the trace."""
    if dim_of(model) != trace.dim:
        raise ValueError(
            f"model has {dim_of(model)} parameters; the trace has {trace.dim}, give the model it came from"
        )
    return model


# ---- by row and by parameter, for ArviZ's leave-one-out and its like -------------------------------------------------------

_MOST_BYTES = 2**31


def log_likelihoods(model: Any, draws: NDArray[Any]) -> NDArray[np.float64]:
    """log p(y_i | θ) of every row at draws (chain, draw, dim), as an array (chain, draw, row)."""
    shape = (*draws.shape[:2], rows_of(model))
    if shape[2] == 0:
        raise ValueError(f"{model!r} has no data; leave log_likelihood=False")
    if 8 * np.prod(shape, dtype=float) > _MOST_BYTES:
        raise ValueError(f"log_likelihood of {shape} numbers would fill more than 2 GB; take a trace of fewer draws")
    flat = np.ascontiguousarray(draws.reshape(-1, draws.shape[2]), dtype=np.float64)
    out = np.empty((len(flat), shape[2]))
    if isinstance(model, Potential):
        _fill_by_function(model, flat, out)
    else:
        _fill_row_energies(model, flat, out)
    return -out.reshape(shape)


def _fill_by_function(model: Any, flat: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    function = model._functions()[1]
    if function is None:
        raise TypeError(f"{model!r} has no energy; give Potential(..., energy=...), or leave log_likelihood=False")
    for theta, row in zip(flat, out, strict=True):
        row[:] = [float(function(theta, model.data, np.array([i]))) for i in range(row.size)]


@kernel
def _fill_row_energies(model: Any, flat: Any, out: Any) -> None:
    rows = np.zeros(1, np.int64)
    for d in range(flat.shape[0]):
        for i in range(out.shape[1]):
            rows[0] = i
            out[d, i] = add_energy(model, flat[d], rows)


def log_priors(model: Any, draws: NDArray[Any]) -> NDArray[np.float64]:
    """log of the prior density of every parameter, in the shape of the draws."""
    prior = prior_of(model)
    flat = np.asarray(draws, dtype=np.float64).ravel()
    return -np.array([float(prior_energy(prior, x)) for x in flat]).reshape(np.shape(draws))
