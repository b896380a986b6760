"""What a model is to a sampler: the gradient of −log p(y_i | θ) summed over rows, a prior, a dimension.

The estimate that every sampler uses is, with N rows in the data and n in the minibatch,

    ∇Ũ(θ) = (N/n) Σ_{i in rows} ∇(−log p(y_i | θ))  +  ∇(−log prior(θ))

A model is a NamedTuple of numbers and arrays with `add_gradient` implemented for its class. Its `dim` and, if it has data,
`n_rows` are fields or properties; its `prior`, if any, is a field. A model without data gives ∇U, and ignores the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc.checks import any_array, integer
from sgmcmc.compiler.kernels import kernel
from sgmcmc.compiler.open_functions import LOOP, implements, implements_by_type, loop, open_function
from sgmcmc.priors import Flat, energy, slope

__all__ = [
    "add_energy",
    "add_gradient",
    "add_gradient_within",
    "add_prior_gradient",
    "check_model",
    "dim_of",
    "energy_of",
    "estimate",
    "estimate_within",
    "expect",
    "fill_gradients",
    "full_energy",
    "full_gradient",
    "gradient_of",
    "laid_out",
    "point",
    "prior_energy",
    "prior_of",
    "rows_of",
    "scratch_rows",
    "scratch_size",
    "selection",
    "sums_in_parts",
    "weigh",
]


@open_function(on=1, inline=True, fastmath=LOOP)
def add_gradient(model: Any, theta: Any, rows: Any, out: Any) -> Any:
    """out += Σ_{i in rows} ∇(−log p(y_i | θ)); `rows` are int64 indices that may repeat, all arrays are contiguous."""


@open_function(on=1, inline=False, fastmath=LOOP)
def add_gradient_within(model: Any, theta: Any, rows: Any, scratch: Any, out: Any) -> Any:
    """`add_gradient` without allocation, for GPUs: `scratch` has room for `scratch_size(model)` numbers, no array need be
    contiguous."""


@open_function
def scratch_size(model: Any) -> Any:
    """How many numbers `add_gradient_within` wants to keep beside its result, in plain Python."""


@implements(add_gradient_within)
def _(model: Any, theta: Any, rows: Any, scratch: Any, out: Any) -> None:
    add_gradient(model, theta, rows, out)


@implements(scratch_size)
def _(model: Any) -> Any:
    return 0


@open_function(on=1, fastmath=LOOP)
def fill_gradients(model: Any, theta: Any, scratch: Any, out: Any) -> Any:
    """out[:, l] = the gradient of a model without data and without its prior at theta[:, l], for all chains l of a pack.

    To be given where loops over the chains, innermost, are faster than chain by chain. `scratch` has `scratch_rows(model)` rows.
    """


@open_function
def scratch_rows(model: Any) -> Any:
    """How many numbers per chain `fill_gradients` wants to keep beside its result, in plain Python."""


@implements(scratch_rows)
def _(model: Any) -> Any:
    return 0


@open_function
def sums_in_parts(model: Any) -> Any:
    """Whether `add_gradient` is as fast for a part of the rows at a time, in plain Python: threads then share it out."""


@implements(sums_in_parts)
def _(model: Any) -> Any:
    return False


@open_function(on=1, inline=True, fastmath=LOOP)
def expect(model: Any, rows: Any) -> Any:
    """Prefetch hint: the rows of the next step. Default: no operation."""


@implements(expect)
def _(model: Any, rows: Any) -> Any:
    return None


@open_function
def laid_out(model: Any) -> Any:
    """The model as the loops on a CPU like its data best; `add_gradient` must give the same sums for it. Called from Python."""


@implements(laid_out)
def _(model: Any) -> Any:
    return model


@open_function(on=1, inline=False, fastmath=LOOP)
def add_energy(model: Any, theta: Any, rows: Any) -> Any:
    """Σ_{i in rows} −log p(y_i | θ), a number."""


@open_function
def prior_of(model: Any) -> Any:
    """The model's field `prior`; Flat() where there is none."""


def _own_prior(model: Any) -> Any:
    return model.prior


def _no_prior(model: Any) -> Any:
    return Flat()


@implements_by_type(prior_of)
def _(cls: Any) -> Any:
    return _own_prior if "prior" in getattr(cls, "_fields", ("prior",)) else _no_prior


@loop
def add_prior_gradient(model: Any, theta: Any, out: Any) -> Any:
    """out += ∇(−log prior(θ))."""
    prior = prior_of(model)
    for j in range(theta.size):
        out[j] += slope(prior, theta[j])


@loop
def prior_energy(model: Any, theta: Any) -> Any:
    """−log prior(θ)."""
    prior = prior_of(model)
    total = 0.0
    for j in range(theta.size):
        total += energy(prior, theta[j])
    return total


@loop(inline=True)
def weigh(model: Any, theta: Any, weight: Any, out: Any) -> Any:
    """out = weight · out + ∇(−log prior(θ)), where out is a sum over rows."""
    prior = prior_of(model)
    for j in range(out.size):
        out[j] = weight * out[j] + slope(prior, theta[j])


@loop(inline=True)
def estimate(model: Any, theta: Any, rows: Any, weight: Any, out: Any) -> Any:
    """out = weight · Σ_rows ∇(−log p(y_i | θ)) + ∇(−log prior(θ)): unbiased for ∇U if weight = N/n (1 without data).

    `weight` has the dtype of θ. The prior is added once, it is never scaled by N/n.
    """
    for j in range(out.size):
        out[j] = 0.0
    add_gradient(model, theta, rows, out)
    weigh(model, theta, weight, out)


@loop
def estimate_within(model: Any, theta: Any, rows: Any, weight: Any, scratch: Any, out: Any) -> Any:
    """`estimate`, without allocation."""
    for j in range(out.size):
        out[j] = 0.0
    add_gradient_within(model, theta, rows, scratch, out)
    weigh(model, theta, weight, out)


@kernel
def full_energy(model: Any, theta: Any, rows: Any, weight: Any) -> Any:
    """weight · Σ_rows −log p(y_i | θ) − log prior(θ)."""
    return weight * add_energy(model, theta, rows) + prior_energy(model, theta)


@kernel
def full_gradient(model: Any, theta: Any, rows: Any, weight: Any, out: Any) -> None:
    """`estimate`, to be called from Python."""
    estimate(model, theta, rows, weight, out)


# --------------------------------------------------------------------------------------------------- asked from Python


def dim_of(model: Any) -> int:
    """How many coordinates θ has."""
    dim = getattr(model, "dim", None)
    if dim is None:
        raise TypeError(f"{type(model).__name__} has no dim; give it a field or a property dim, the length of θ")
    return integer(f"{type(model).__name__}.dim", dim, 1)


def rows_of(model: Any) -> int:
    """How many rows of data there are; 0 for a model without data."""
    return integer(f"{type(model).__name__}.n_rows", getattr(model, "n_rows", 0), 0)


def check_model(model: Any) -> None:
    """Refuse, in one sentence, what would otherwise be a page of typing errors or a prior that compiled code cannot see."""
    name, fields = type(model).__name__, getattr(model, "_fields", None)
    if fields is None or not isinstance(model, tuple):
        raise TypeError(f"the model is a {name}; give one of sgmcmc.models, a Potential, or a NamedTuple of your own")
    if add_gradient.choose((type(model),)) is None:
        raise TypeError(f"{name} has no gradient; give one with @implements(add_gradient, {name})")
    if "prior" in fields:
        slope.require(model[fields.index("prior")])
    elif not isinstance(getattr(model, "prior", Flat()), Flat):
        raise TypeError(
            f"{name}.prior is not a field, so compiled code cannot see it; make it a field of the NamedTuple"
        )
    dim_of(model)
    rows_of(model)


def energy_of(model: Any, theta: Any, rows: Any = None) -> float:
    """U(θ) of any model; with `rows`, its estimate from these rows."""
    for function, part in ((add_energy, model), (energy, prior_of(model))):
        if function.choose((type(part),)) is None:
            name = type(part).__name__
            raise TypeError(f"{name} has no energy; give one with @implements({function.__name__}, {name})")
    chosen, weight = selection(model, rows)
    return float(full_energy(model, point(model, theta), chosen, weight))


def gradient_of(model: Any, theta: Any, rows: Any = None) -> NDArray[np.float64]:
    """∇U(θ) of any model; with `rows`, its unbiased estimate from these rows."""
    chosen, weight = selection(model, rows)
    out = np.zeros(dim_of(model))
    full_gradient(model, point(model, theta), chosen, weight, out)
    return out


def point(model: Any, theta: Any) -> NDArray[np.float64]:
    """θ as the kernels want it. NaN and infinity may pass: a model may be asked what it does there."""
    array, dim = any_array("theta", theta), dim_of(model)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"theta has dtype {array.dtype}; give real numbers")
    if array.shape != (dim,):
        raise ValueError(f"theta has shape {array.shape}; give ({dim},)")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=np.float64)


def selection(model: Any, rows: Any) -> tuple[NDArray[np.int64], float]:
    """The rows as int64 and the weight N/n that makes their sum unbiased; all rows and 1.0 for None."""
    n_rows = rows_of(model)
    if rows is None:
        return np.arange(n_rows, dtype=np.int64), 1.0
    chosen = any_array("rows", rows)
    if n_rows == 0:
        raise ValueError(f"rows were given, but {type(model).__name__} has no data; leave rows=None")
    if chosen.ndim != 1 or chosen.size == 0 or chosen.dtype.kind not in "iu":
        raise ValueError(
            f"rows has shape {chosen.shape} and dtype {chosen.dtype}; give a one-dimensional array of row numbers"
        )
    if chosen.min() < 0 or chosen.max() >= n_rows:
        raise ValueError(f"rows run from {chosen.min()} to {chosen.max()}; the data have rows 0 to {n_rows - 1}")
    return np.ascontiguousarray(chosen, dtype=np.int64), n_rows / chosen.size
