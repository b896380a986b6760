"""Consensus: one set of draws from runs that each saw a shard of the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc import checks
from sgmcmc.trace import Trace

__all__ = ["consensus"]


def consensus(traces: Sequence[Trace], weights: str = "covariance") -> Trace:
    """Draws of the product of sub-posteriors: θ = (Σ W_s)⁻¹ Σ W_s θ_s, with W_s the inverse covariance of shard s.

    Shard s must have been sampled with its own rows, a seed of its own and the prior to the power 1/S (a Gaussian prior
    √S times as wide). The result is exact if every sub-posterior is Gaussian; otherwise it is off by what makes them
    differ from a Gaussian, and it can never find a mode that a single shard does not show.

    Parameters
    ----------
    traces : list of Trace
        One per shard, of the same parameters; the shortest decides how many draws there are.
    weights : "covariance" or "diagonal"
        dim × dim matrices, for up to some thousand parameters, or one number per parameter.

    Returns
    -------
    Trace

    References
    ----------
    Scott et al. 2016, https://doi.org/10.1080/17509653.2016.1142191.

    Examples
    --------
    >>> options = {"draws": 50, "chains": 2, "progress": False, "warn": False}
    >>> shards = [sg.sample(sg.models.Gaussian(m), sg.SGLD(0.5), seed=s, **options) for s, m in enumerate([-1.0, 1.0])]
    >>> sg.consensus(shards).draws.shape
    (2, 50, 1)
    """
    checks.one_of("weights", weights, ("covariance", "diagonal"))
    draws = _checked(traces)
    precision = [_precision(d.reshape(-1, d.shape[2]), weights == "diagonal") for d in draws]
    total: Any = sum(precision)
    if weights == "diagonal":
        combined = sum(w * d for w, d in zip(precision, draws, strict=True)) / total
    else:
        combined = np.linalg.solve(total, sum(_apply(w, d) for w, d in zip(precision, draws, strict=True))[..., None])[
            ..., 0
        ]
    info = {"consensus": [dict(t.info) for t in traces], "weights": weights, "sampler": "consensus"}
    info |= {"model": f"{len(traces)} shards"}
    nothing = np.full(len(combined), np.nan)
    return Trace(combined, info, nothing, nothing, {}, parameters=traces[0].layout)


def _apply(weight: NDArray[Any], draws: NDArray[Any]) -> Any:
    return draws @ weight  # symmetric


def _checked(traces: Sequence[Trace]) -> list[NDArray[np.float64]]:
    listed = isinstance(traces, Sequence) and len(traces) > 0
    if not listed or not all(isinstance(t, Trace) for t in traces):
        raise TypeError(f"traces={checks.show(traces)} is not a list of traces; give one trace for each shard")
    shapes = {(t.chains, t.dim) for t in traces}
    if len(shapes) > 1:
        raise ValueError(f"traces have (chains, parameters) {sorted(shapes)}; give traces that are alike")
    seeds = [t.info.get("seed") for t in traces]
    if len({s for s in seeds if s is not None}) < len([s for s in seeds if s is not None]):
        raise ValueError(
            f"traces have the seeds {seeds}; with one seed shards have the same noise, and their draws are not independent: "
            "give every shard a seed of its own"
        )
    n = min(t.n_draws for t in traces)
    dim = traces[0].dim
    if n * traces[0].chains <= dim:
        raise ValueError(
            f"traces have {n * traces[0].chains} draws of {dim} parameters, too few for a covariance; give more draws"
        )
    return [t.draws[:, :n].astype(np.float64) for t in traces]


def _precision(rows: NDArray[np.float64], diagonal: bool) -> NDArray[np.float64]:
    """The inverse covariance of the rows."""
    if diagonal:
        return np.asarray(1.0 / rows.var(axis=0, ddof=1))
    return np.asarray(np.linalg.inv(np.atleast_2d(np.cov(rows, rowvar=False))))
