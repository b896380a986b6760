"""`sample`: from a model and a sampler to a trace."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sgmcmc import checks
from sgmcmc.bias.health import warn_of
from sgmcmc.bias.rerun import Rerun
from sgmcmc.bias.runaway import falls_for_ever
from sgmcmc.compiler import waiting
from sgmcmc.run import scheduler
from sgmcmc.run.arguments import Destination, as_destination, as_keep, as_seed, as_settings, check_progress
from sgmcmc.run.auto_scale import in_natural_units
from sgmcmc.run.build_trace import build_trace, facts
from sgmcmc.run.checkpoint import load
from sgmcmc.run.lock import Lock
from sgmcmc.run.outputs import Outputs, open_outputs
from sgmcmc.run.remote import remote_tasks
from sgmcmc.run.settings import Settings, local_tasks
from sgmcmc.run.starts import start
from sgmcmc.samplers import Sampler
from sgmcmc.trace import Trace

__all__ = ["sample"]


def sample(
    model: Any,
    sampler: Sampler,
    draws: int = 1000,
    *,
    warmup: int = 1000,
    chains: int = 4,
    batch_size: int | None = None,
    minibatch: str | tuple[Any, ...] = "replacement",
    seed: int | None = None,
    init: Any = None,
    thin: int = 1,
    dtype: DTypeLike = np.float64,
    device: str = "cpu",
    threads: int | None = None,
    progress: bool | Callable[[int], None] = True,
    on_divergence: str = "raise",
    gradient_noise: float = 0.0,
    clip_gradient: float | None = None,
    keep: Callable[[NDArray[Any]], Any] | str | None = None,
    out: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
    resume: bool = False,
    executor: Executor | None = None,
    warn: bool = True,
) -> Trace:
    """Draw from the posterior of a model.

    Ctrl-C ends the run early and returns the draws so far, of equal number for all chains; a second one ends it at
    once.

    Parameters
    ----------
    model : NamedTuple or Potential
        One of `sgmcmc.models`, a `Potential` around your own gradient, or a NamedTuple of your own.
    sampler : Sampler
        `SGLD(...)`, `SGHMC(...)`, `SGNHT(...)`, `SGMGT(...)`, `SGMGTD(...)` or a `Sampler(...)`.
    draws : int
        How many draws to keep from each chain.
    warmup : int
        How many steps each chain takes before that.
    chains : int
        How many chains; chain number 7 of ten is the same, bit for bit, as chain number 7 of a hundred.
    batch_size : int or None
        Rows per gradient; None is all of them.
    minibatch : str or NamedTuple
        "replacement" (independent rows), "no-replacement" (different rows), "shuffle" (epochs in random order),
        "blocks" (for data larger than memory), or a scheme: ``sg.minibatch.Blocks(block, window)``, one of your own.
    seed : int or None
        0 … 2⁶⁴ − 1; None takes one from the operating system, and the trace says which (``trace.info["seed"]``).
    init : array, dict or Trace, optional
        Where chains start: (dim,), or (chains, dim), or {"theta": …, "p": …, "xi": …}, or a `Trace` to go on from. None
        is a small cloud around 0; with ``scale="auto"``, where the pilot has found the posterior.
    thin : int
        Keep every so many steps.
    dtype : np.float64 or np.float32
        For everything in the run.
    device : "cpu", "cuda" or "auto"
        "auto" is a GPU if one is usable, else the CPU; ``trace.info["device"]`` says which.
    threads : int or None
        None is as many as there are cores. Fewer chains than that use several each, if their steps are long: many rows,
        or many coordinates. (Chains with a plain Python gradient take turns on one; their update uses them all.)
    progress : bool or callable
        A bar, or none, or a function that is told how many steps were done since it was last told; if it raises
        KeyboardInterrupt, the run ends as by Ctrl-C.
    on_divergence : "raise" or "drop"
        "raise" a DivergenceError, or "drop" the chain and go on with the others.
    gradient_noise : float
        B; adds N(0, 2B) to every coordinate of the gradient, for studies of gradient noise.
    clip_gradient : float or None
        Bound on each coordinate of the gradient; it biases the draws, so None, off, is the default.
    keep : callable or "moments", optional
        A function of θ whose value is recorded in place of θ, or "moments" for mean and variance only
        (``trace.moments``).
    out : path, optional
        An ``.npy`` file for the draws, written as they come; ``trace.draws`` is then read from it, and no memory is
        taken.
    checkpoint : path, optional
        A file (``.npz``) from which the run can go on after any end, the machine's included.
    checkpoint_every : float
        Seconds between two checkpoints.
    resume : bool
        Go on from the checkpoint, if there is one; the draws are those of a run that never ended.
    executor : concurrent.futures.Executor, optional
        Its workers run the chains; the draws are the same.
    warn : bool
        Say so, in a `RunWarning`, if the run is hot, cold (also in one coordinate), unstable, not mixed, or running
        away (``trace.bias_report()`` says more).

    Returns
    -------
    Trace

    Examples
    --------
    >>> trace = sg.sample(sg.models.FiveWell(), sg.SGNHT(0.1), draws=500, chains=2, seed=1, progress=False, warn=False)
    >>> trace.draws.shape
    (2, 500, 1)
    """
    given: dict[str, Any] = {
        "draws": draws,
        "warmup": warmup,
        "chains": chains,
        "thin": thin,
        "dtype": dtype,
        "device": device,
    }
    given |= {"batch_size": batch_size, "minibatch": minibatch, "threads": threads, "on_divergence": on_divergence}
    given |= {"gradient_noise": gradient_noise, "clip_gradient": clip_gradient}
    settings = as_settings(model, sampler, init, given)
    sampler = settings.sampler
    measured_scale = isinstance(sampler.scale, str)
    check_progress(progress)
    if not isinstance(warn, bool | np.bool_):
        raise TypeError(f"warn={checks.show(warn)} is neither True nor False")
    destination = as_destination(checkpoint, checkpoint_every, resume, out, executor, keep, settings.device)
    with contextlib.ExitStack() as stack:
        stack.enter_context(waiting.speaking(progress))
        if destination.checkpoint is not None:
            stack.enter_context(Lock(destination.checkpoint))
        found = destination.found()
        saved = None if found is None else load(found)
        seed = as_seed(seed, init, None if saved is None else saved.seed)
        if isinstance(sampler.scale, str):
            sampler, init = in_natural_units(sample, model, sampler, init, settings, seed, progress is True)
            settings = as_settings(model, sampler, init, given)
        all_chains = start(settings, init, seed)
        kept = as_keep(keep, all_chains[0].state.theta)
        outputs = stack.enter_context(open_outputs(settings, destination, kept, all_chains, seed, saved))
        rerun = Rerun(sample, model, sampler, given | {"seed": seed, "threads": threads, "on_divergence": "drop"})
        trace = _run(settings, destination, outputs, seed, progress, rerun)
    if measured_scale:
        trace.info["scale"] = np.asarray(sampler.scale).tolist()
    trace.info["minibatch"] = _name(minibatch) if batch_size is not None else None
    trace.info["keep"] = keep if keep is None or isinstance(keep, str) else getattr(keep, "__name__", repr(keep))
    if warn:
        warn_of(trace)
    return trace


def _name(minibatch: Any) -> str:
    return minibatch if isinstance(minibatch, str) else repr(minibatch)


def _run(
    settings: Settings,
    destination: Destination,
    outputs: Outputs,
    seed: int,
    progress: bool | Callable[[int], None],
    rerun: Rerun,
) -> Trace:
    job, chains = settings.job(outputs.recorder), outputs.chains
    end = job.end
    left = [c for c in chains if c.diverged is None and c.step < end]  # all of them, unless the run was resumed
    begin, before = time.perf_counter(), sum(c.step for c in chains)
    tasks, threads = _tasks(settings, destination, outputs, job, left, seed)
    for task in tasks[:1] if settings.device == "cpu" else tasks:  # every GPU has code of its own
        task.prepare()  # compiles, or loads from the disk cache
    compiled = time.perf_counter()
    interrupted = _drive(settings, job, chains, threads, progress, tasks, outputs.checkpoint)
    for task in tasks:
        task.finish()
    outputs.end()
    seconds = time.perf_counter() - compiled
    info = facts(settings, seed, sum(c.step for c in chains) - before, seconds, compiled - begin)
    info |= {"interrupted": interrupted, "threads": threads}
    info |= {"executor": None if destination.executor is None else type(destination.executor).__name__}
    return build_trace(settings, job.plan, chains, outputs.values(), outputs.keep, info, rerun)


def _tasks(
    settings: Settings,
    destination: Destination,
    outputs: Outputs,
    job: scheduler.Job,
    left: list[scheduler.Chain],
    seed: int,
) -> tuple[Sequence[scheduler.Task], int]:
    """The tasks of the chains that are not at their end, and how many run at once."""
    if len(left) == 0:
        return [], 1
    if destination.executor is not None:
        tasks = remote_tasks(destination.executor, settings, outputs.keep, job, outputs.sink, left, seed)
        return tasks, len(tasks)
    found = local_tasks(settings.device, job, left, seed, settings.threads, outputs.windows(left), settings.cores)
    return found, len(found) if settings.device == "cuda" else settings.threads


def _drive(
    settings: Settings,
    job: scheduler.Job,
    chains: list[scheduler.Chain],
    threads: int,
    progress: bool | Callable[[int], None],
    tasks: Sequence[scheduler.Task],
    saver: scheduler.Saver | None,
) -> bool:
    def diverged(chain: scheduler.Chain) -> None:
        if settings.on_divergence == "raise" or all(c.diverged is not None for c in chains):
            raise _divergence(chain, settings)

    if callable(progress) or not progress:
        told = progress if callable(progress) else lambda done: None
        return _outcome(scheduler.run(threads, told, diverged, tasks, saver), chains, settings)
    from tqdm.auto import tqdm  # a tenth of a second that a run without a bar does not pay

    total = sum(job.end - c.step for c in chains if c.diverged is None)
    label = f"{len(chains)} chain{'s' if len(chains) > 1 else ''}"
    with tqdm(total=total, unit="step", unit_scale=True, desc=label, mininterval=0.2) as bar:
        interrupted = scheduler.run(threads, lambda done: bar.update(done) and None, diverged, tasks, saver)
    return _outcome(interrupted, chains, settings)


def _outcome(interrupted: bool, chains: list[scheduler.Chain], settings: Settings) -> bool:
    if all(c.diverged is not None for c in chains):
        raise _divergence(chains[0], settings)
    return interrupted


def _divergence(chain: scheduler.Chain, settings: Settings) -> checks.DivergenceError:
    step = chain.diverged if chain.diverged is not None else -1
    h = float(settings.sampler.schedule.step_sizes(np.array([step]))[0])
    fits = "a scale= that fits the posterior" if np.ndim(settings.sampler.scale) else 'scale="auto" with step_size=0.1'
    advice = (
        f"try a step size of {h / 4:.2g}, a start nearer to the mode (init=), or {fits}"
        if not falls_for_ever(settings.model, np.random.default_rng(0).standard_normal(settings.dim))
        else "U falls without end, so the gradient may have the wrong sign (give the gradient of -log p, not of log p), or "
        "the posterior may be improper"
    )
    return checks.DivergenceError(
        f"chain {chain.number} left the finite numbers in step {step}, with step size {h:g}; {advice}",
        chain.number,
        step,
    )
