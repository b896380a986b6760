"""`compare`: samplers on one model with one budget, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from sgmcmc import checks
from sgmcmc.comparison.budget import read_budget
from sgmcmc.comparison.metrics import Judge, choose_metrics
from sgmcmc.comparison.modes import read_modes
from sgmcmc.comparison.reference import read_reference
from sgmcmc.comparison.run_all import run_all
from sgmcmc.comparison.runs import Outcome, Setting, Task, rehearse
from sgmcmc.compiler import waiting
from sgmcmc.potentials import dim_of
from sgmcmc.samplers import Sampler

if TYPE_CHECKING:
    from sgmcmc.comparison.table import Comparison

__all__ = ["compare", "read_seeds"]


def compare(
    samplers: Mapping[str, Sampler],
    model: Any,
    budget: int | str | timedelta = 100_000,
    *,
    metrics: Sequence[Any] | None = None,
    reference: Any = None,
    seeds: int | Sequence[int] = 3,
    chains: int = 4,
    draws: int = 1000,
    warmup: float = 0.2,
    temperature: float = 1.0,
    modes: Any = None,
    batch_size: int | None = None,
    minibatch: str = "replacement",
    init: Any = None,
    gradient_noise: float = 0.0,
    dtype: DTypeLike = np.float64,
    executor: Executor | None = None,
    threads: int | None = None,
    progress: bool = True,
) -> Comparison:
    """Run samplers on a model, each with several seeds and the same budget, and measure what their draws are worth.

    A sampler that diverges has a row that says so. Ctrl-C ends the runs and returns what there is.

    Parameters
    ----------
    samplers : dict
        ``{"SGNHT": sg.SGNHT(0.1), …}``.
    model : as for sample
    budget : int or str
        What each run may spend, all its chains together: gradient evaluations (100_000), or time ("10 s").
    metrics : list, optional
        Names of columns, and functions of a trace; None is all that can be computed (docs/comparing.md lists them).
    reference : Trace, pair or "exact", optional
        The truth: a `Trace`, a pair (mean, sd), or "exact" for a model whose moments are known. None: no errors.
    seeds : int or list of int
        How many, or which.
    chains : int
        Per run.
    draws : int
        Per chain; the steps between two of them follow from the budget.
    warmup : float
        The share of the budget that is spent before the first draw.
    temperature : float
        Of the target exp(−U/T) of all samplers, whatever they themselves say.
    modes : array (mode, dim), optional
        Centres; a draw belongs to the nearest. None: those of a mixture or of the five wells.
    batch_size, minibatch, init, gradient_noise, dtype : as for sample, the same for all samplers
    executor : concurrent.futures.Executor, optional
        To run elsewhere; None is threads of this process.
    threads : int or None
        How many runs at a time, each on a thread of its own; None is one per core.
    progress : bool

    Returns
    -------
    Comparison
        A DataFrame with a row per sampler and seed; ``.plot()`` draws accuracy against time, ``.traces`` has the draws.

    Examples
    --------
    >>> samplers = {"SGLD": sg.SGLD(0.1), "SGHMC": sg.SGHMC(0.5)}
    >>> table = sg.compare(samplers, sg.models.Gaussian(), budget=400, seeds=1, chains=2, draws=50, progress=False)
    >>> table[["sampler", "gradients"]].values.tolist()
    [['SGLD', 400], ['SGHMC', 400]]
    """
    tasks = [Task(name, sampler, seed) for name, sampler in _samplers(samplers).items() for seed in read_seeds(seeds)]
    chains, dim = checks.integer("chains", chains, 1), dim_of(model)
    temperature = checks.number("temperature", temperature, 0.0, 1e300, open_low=True)
    truth, known_modes = read_reference(reference, model, dim, temperature), read_modes(modes, model, dim, temperature)
    names, own = choose_metrics(metrics, truth, known_modes)
    options: dict[str, Any] = {"batch_size": batch_size, "minibatch": minibatch, "init": init}
    setting = Setting(
        model,
        read_budget(budget, chains),
        chains,
        checks.integer("draws", draws, 4),
        checks.number("warmup", warmup, 0.0, 0.95),
        options | {"gradient_noise": gradient_noise, "dtype": dtype},
    )
    threads = None if threads is None else checks.integer("threads", threads, 1)
    with waiting.speaking(progress):
        for task in {task.name: task for task in tasks}.values():
            rehearse(task, setting)
        outcomes, interrupted = run_all(tasks, setting, executor, threads, progress)
    return _table(outcomes, Judge(model, names, own, truth, known_modes, temperature), setting, interrupted)


def _samplers(samplers: Any) -> dict[str, Sampler]:
    if not isinstance(samplers, Mapping) or len(samplers) == 0:
        raise TypeError(
            f'samplers={checks.show(samplers)} is not a dictionary of samplers; give {{"SGNHT": sg.SGNHT(0.1), …}}'
        )
    for name, sampler in samplers.items():
        if not isinstance(name, str) or not isinstance(sampler, Sampler):
            raise TypeError(
                f"samplers[{checks.show(name)}]={checks.show(sampler)} is not a Sampler with a text for its name"
            )
    return dict(samplers)


def read_seeds(seeds: Any) -> list[int]:
    """The seeds, of a list of them or of their number."""
    if isinstance(seeds, Sequence) and not isinstance(seeds, str):
        chosen = [checks.integer("seeds", s, 0, 2**64 - 1) for s in seeds]
        if len(chosen) == 0 or len(set(chosen)) < len(chosen):
            raise ValueError(f"seeds={checks.show(seeds)} must be different numbers, at least one")
        return chosen
    return list(range(checks.integer("seeds", seeds, 1, 10_000)))


def _table(outcomes: list[Outcome], judge: Judge, setting: Setting, interrupted: bool) -> Comparison:
    import pandas as pd

    from sgmcmc.comparison.table import Comparison

    points = [judge.points(outcome) for outcome in outcomes]
    scale = judge.scale(outcomes)
    rows, history = [], []
    for outcome, some in zip(outcomes, points, strict=True):
        facts = {"sampler": outcome.name, "seed": outcome.seed, "status": outcome.status}
        facts |= {"draws": 0 if outcome.trace is None else outcome.trace.chains * outcome.trace.n_draws}
        facts |= {"gradients": outcome.gradients, "seconds": outcome.seconds}
        rows.append(facts | judge.row(outcome, some, scale))
        history += judge.history(outcome, some, scale)
    columns = ["sampler", "seed", "status", "draws", "gradients", "seconds", *judge.names, *judge.own]
    table = Comparison(pd.DataFrame(rows, columns=columns))
    table.history = pd.DataFrame(history)
    table.traces = {(o.name, o.seed): o.trace for o in outcomes if o.trace is not None}
    table.about = {"model": repr(setting.model), "budget": str(setting.budget), "interrupted": interrupted}
    table.about |= {"ksd_scale": scale, "chains": setting.chains, "warmup": setting.warmup}
    return table
