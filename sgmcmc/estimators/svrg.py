"""SVRG: control variates whose centre follows the chains, for posteriors whose mode is far away, or of which there are several.

Every `period` steps the centre moves to the mean of where the chains are, and the whole gradient is computed there. The centre
depends on the past alone, and the rows to come are independent of it: every gradient is unbiased.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sgmcmc import checks
from sgmcmc.estimators.control import control_variate
from sgmcmc.potentials import rows_of
from sgmcmc.run.arguments import as_seed
from sgmcmc.run.sample import sample
from sgmcmc.samplers import Sampler
from sgmcmc.trace import Trace
from sgmcmc.trace.joining import joined

__all__ = ["sample_svrg"]


def sample_svrg(
    model: Any,
    sampler: Sampler,
    draws: int = 1000,
    *,
    batch_size: int,
    period: int | None = None,
    warmup: int = 1000,
    thin: int = 1,
    seed: int | None = None,
    init: Any = None,
    progress: bool = True,
    **options: Any,
) -> Trace:
    """Draw as `sample` does, with a control variate whose centre is moved every `period` steps.

    The run is made of stretches, so `checkpoint` and `out` are not among its options.

    Parameters
    ----------
    model : any compiled model with data
    sampler : Sampler
    draws, batch_size : as for sample
    period : int, optional
        Steps between two centres; None: as many as pass over the data once.
    warmup, thin, seed, init : as for sample
    progress : bool
    **options : others of sample

    Returns
    -------
    Trace

    Examples
    --------
    >>> model = sg.models.LinearRegression(np.ones((8, 1)), np.zeros(8))
    >>> trace = sg.estimators.sample_svrg(model, sg.SGLD(0.01), 20, batch_size=4, warmup=10, seed=1, progress=False)
    >>> trace.draws.shape
    (4, 20, 1)
    """
    for name in ("checkpoint", "out", "keep", "resume"):
        if name in options:
            raise ValueError(f"{name} is not for sample_svrg, whose run is made of stretches; leave it out")
    size = checks.integer("batch_size", batch_size, 1)
    draws, warmup = checks.integer("draws", draws, 1), checks.integer("warmup", warmup, 0)
    thin, seed = checks.integer("thin", thin, 1), as_seed(seed, init)
    span = max(1, rows_of(model) // size) if period is None else checks.integer("period", period, 1)
    options |= {"batch_size": size, "seed": seed, "progress": False, "warn": False}
    last = sample(model, sampler, 1, warmup=0, init=init, **options)  # where the chains begin
    parts: list[Trace] = []
    left, bar = warmup, _bar(warmup + draws * thin, progress)
    while left > 0:
        last = sample(_centred(model, last), sampler, 1, warmup=min(span, left) - 1, init=last, **options)
        left -= min(span, left)
        bar.update(min(span, warmup))
    per_stretch = max(1, span // thin)
    while sum(part.n_draws for part in parts) < draws:
        wanted = min(per_stretch, draws - sum(part.n_draws for part in parts))
        last = sample(_centred(model, last), sampler, wanted, warmup=0, thin=thin, init=last, **options)
        parts.append(last)
        bar.update(wanted * thin)
        if last.info["interrupted"]:
            break
    bar.close()
    whole = joined(parts)
    info = whole.info | {"estimator": "SVRG", "model": repr(model)}
    return replace(whole, info=info, parameters=whole.layout, model=model, rerun=None)


def _centred(model: Any, trace: Trace) -> Any:
    return control_variate(model, np.asarray(trace.final["theta"], np.float64).mean(axis=0))


def _bar(total: int, progress: bool) -> Any:
    from tqdm.auto import tqdm

    return tqdm(total=total, unit="step", unit_scale=True, desc="SVRG", disable=not progress)
