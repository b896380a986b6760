"""A trace as ArviZ's data: posterior, sample statistics, prior and observed data, by the names and shapes of parameters."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sgmcmc.priors as priors
from sgmcmc.diagnostics.energies import energies, fitting, log_likelihoods, log_priors
from sgmcmc.parameters import Layout
from sgmcmc.potentials import dim_of, prior_of

__all__ = ["to_datatree"]

Trace = Any  # a sgmcmc.trace.Trace, whose module imports this one
Groups = dict[str, dict[str, Any]]


def to_datatree(trace: Trace, model: Any, log_likelihood: bool, predictive: bool, info: str) -> Any:
    """The data tree of ``Trace.to_arviz``; `info` is that of the trace, as text."""
    try:
        from arviz_base import from_dict  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise ImportError("to_arviz needs arviz-base and xarray; pip install sgmcmc[arviz]") from error
    model = trace.model if model is None else fitting(trace, model)
    trace = _without_slashes(trace)
    dims, coords = _coordinates(trace.layout)
    groups: Groups = {"posterior": trace.layout.unpack(trace.draws)} | _of_model(trace, model)
    if log_likelihood:
        groups |= _of_rows(trace, model)
    if predictive:
        groups["posterior_predictive"] = {"y": _simulated(trace, model)}
    about = {"inference_library": "sgmcmc", "info": info}
    about |= {name: getattr(trace, name).tolist() for name in ("kinetic_temperature", "configurational_temperature")}
    attrs = {"posterior": about, "sample_stats": {"energy": "potential energy U(θ), without that of the momentum"}}
    return from_dict(
        groups,
        dims=dims | _data_dims(groups),
        coords={"chain": trace.chain_numbers} | coords,
        attrs={group: words for group, words in attrs.items() if group in groups},
    )


def _without_slashes(trace: Trace) -> Trace:
    """A DataTree refuses names with a slash: ``mlp/linear.w`` becomes ``mlp.linear.w``."""
    axes = {name.replace("/", "."): shape for name, shape in trace.layout.axes.items()}
    if len(axes) < len(trace.layout.axes):
        raise ValueError(
            f"names {', '.join(trace.layout.axes)} are the same without slashes, as ArviZ wants; rename one"
        )
    return replace(trace, parameters=Layout(axes))


def _coordinates(layout: Layout) -> tuple[dict[str, list[str]], dict[str, list[Any]]]:
    """A dimension for each axis of each block, with the names on it, or numbers from 0."""
    dims: dict[str, list[str]] = {}
    coords: dict[str, list[Any]] = {}
    for name, axes in layout.axes.items():
        dims[name] = [f"{name}_dim_{k}" for k in range(len(axes))]
        for dim, axis in zip(dims[name], axes, strict=True):
            coords[dim] = list(range(axis)) if isinstance(axis, int) else list(axis)
    return dims, coords


def _of_model(trace: Trace, model: Any) -> Groups:
    """The groups that a model can fill: it may have no energy, no proper prior, no data."""
    if model is None or dim_of(model) != trace.dim:
        return {}
    groups: Groups = {}
    with suppress(TypeError):  # a model need not have an energy
        U = energies(trace, model)[1]
        groups["sample_stats"] = {"lp": -U, "energy": U}
    drawn = _prior_draws(prior_of(model), trace)
    if drawn is not None:
        groups["prior"] = trace.layout.unpack(drawn)
    return groups | _data(model)


def _of_rows(trace: Trace, model: Any) -> Groups:
    """What leave-one-out cross-validation and checks of the prior's influence want."""
    if model is None:
        raise ValueError("log_likelihood=True needs the model, which a loaded trace does not have; give model=")
    return {
        "log_likelihood": {"y": log_likelihoods(model, trace.draws)},
        "log_prior": trace.layout.unpack(log_priors(model, trace.draws)),
    }


def _simulated(trace: Trace, model: Any) -> NDArray[Any]:
    """Responses simulated at every draw, (chain, draw, row)."""
    if not hasattr(model, "simulate"):
        what = "a trace without its model" if model is None else repr(model)
        raise TypeError(f"{what} has no simulate(theta, rng); give model= one that has, or leave predictive=False")
    rng = np.random.default_rng([int(trace.info.get("seed", 0)), 0x51])
    return np.stack([[model.simulate(theta, rng) for theta in chain] for chain in trace.draws])


def _prior_draws(prior: Any, trace: Trace) -> NDArray[Any] | None:
    """As many independent draws of the prior as the trace has of the posterior; None for one that cannot be drawn."""
    rng = np.random.default_rng([int(trace.info.get("seed", 0)), 0x5012])
    drawn: NDArray[Any] | None = _drawn(prior, rng, trace.draws.shape)
    return drawn


def _drawn(prior: Any, rng: np.random.Generator, size: tuple[int, ...]) -> Any:
    if isinstance(prior, priors.Gaussian):
        return rng.normal(prior.mean, prior.scale, size)
    if isinstance(prior, priors.Laplace):
        return rng.laplace(0.0, prior.scale, size)
    if isinstance(prior, priors.LogGamma):
        return np.log(rng.gamma(prior.shape + 1.0, 1.0, size)) + np.log(rng.random(size)) / prior.shape  # no underflow
    return None


def _data(model: Any) -> Groups:
    """Responses as observed data, a design matrix as constant data; the arrays of a `Potential` by name or number."""
    if hasattr(model, "X") and hasattr(model, "y"):
        return {"observed_data": {"y": np.asarray(model.y)}, "constant_data": {"X": np.asarray(model.X)}}
    data = getattr(model, "data", None)
    if data is None:
        return {}
    parts = data if isinstance(data, tuple) else (data,)
    names = getattr(data, "_fields", [f"data_{i}" for i in range(len(parts))])
    found = {n: np.asarray(part) for n, part in zip(names, parts, strict=True) if np.ndim(part) > 0}
    return {"observed_data": found} if len(found) > 0 else {}


def _data_dims(groups: Groups) -> dict[str, list[str]]:
    """Rows are rows, whatever array they are in."""
    found: dict[str, list[str]] = {}
    for group in ("observed_data", "constant_data"):
        arrays = groups.get(group, {})
        rows = max((len(a) for a in arrays.values()), default=0)
        for name, array in arrays.items():
            inner = [f"{name}_dim_{k}" for k in range(1, array.ndim)]
            found[name] = ["row" if len(array) == rows else f"{name}_dim_0", *inner]
    if "log_likelihood" in groups or "posterior_predictive" in groups:
        found["y"] = ["row"]
    return found
