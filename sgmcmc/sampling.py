"""`sample`: from a model and a sampler to a trace."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sgmcmc import checks
from sgmcmc.engines import cpu, crew, cuda, packed, python
from sgmcmc.engines.cuda_state import choose_device
from sgmcmc.engines.plan import Plan, make_plan
from sgmcmc.integrators import State
from sgmcmc.kinetics import Overdamped
from sgmcmc.minibatch import FullData, as_minibatch
from sgmcmc.potentials import PythonPotential, check_model, dim_of, rows_of
from sgmcmc.rng import stream
from sgmcmc.samplers import Sampler, in_precision, precision
from sgmcmc.threads import usable_cores
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
    minibatch: str = "replacement",
    seed: int | None = None,
    init: Any = None,
    thin: int = 1,
    dtype: DTypeLike = np.float64,
    device: str = "cpu",
    threads: int | None = None,
    progress: bool = True,
    on_divergence: str = "raise",
    gradient_noise: float = 0.0,
    clip_gradient: float | None = None,
) -> Trace:
    """Draw from the posterior of a model.

    Parameters
    ----------
    model : one of `sgmcmc.models`, a `Potential` around your own gradient, or a NamedTuple of your own.
    sampler : `SGLD(...)`, `SGHMC(...)`, `SGNHT(...)`, `SGMGT(...)`, `SGMGTD(...)` or a `Sampler(...)`.
    draws : how many draws to keep from each chain.
    warmup : how many steps each chain takes before that.
    chains : how many chains; chain number 7 of ten is the same, bit for bit, as chain number 7 of a hundred.
    batch_size : rows per gradient; None is all of them.
    minibatch : "replacement" (independent rows), "no-replacement" (different rows), "shuffle" (epochs in random order).
    seed : 0 … 2⁶⁴ − 1; None takes one from the operating system, and the trace says which (``trace.info["seed"]``).
    init : where chains start: (dim,), or (chains, dim), or {"theta": …, "p": …, "xi": …}, or a `Trace` to go on from. None
        is a small cloud around 0.
    thin : keep every so many steps.
    dtype : np.float64 or np.float32, for everything in the run.
    device : "cpu", "cuda", or "auto": a GPU if one is usable, else the CPU; ``trace.info["device"]`` says which.
    threads : None is as many as there are cores (chains with a plain Python gradient take turns on one;
        their update uses them all, if it is long).
    on_divergence : "raise" a DivergenceError, or "drop" the chain and go on with the others.
    gradient_noise : B; adds N(0, 2B) to every coordinate of the gradient, for studies of gradient noise.
    clip_gradient : bound on each coordinate of the gradient; it biases the draws, so None, off, is the default.

    Ctrl-C ends the run early and returns the draws so far, of equal number for all chains.
    """
    _check(sampler, device, progress)
    chosen, why = _device(device, model)
    dim, n_rows = _check_model(model)
    draws = checks.integer("draws", draws, 1)
    warmup = checks.integer("warmup", warmup, 0)
    chains = checks.integer("chains", chains, 1, 2**32 - 1)
    thin = checks.integer("thin", thin, 1)
    kind = precision(dtype)
    checks.one_of("on_divergence", on_divergence, ("raise", "drop"))
    noise = checks.number("gradient_noise", gradient_noise, 0.0, 1e300)
    clip = np.inf if clip_gradient is None else checks.number("clip_gradient", clip_gradient, 0.0, open_low=True)
    rows = as_minibatch(batch_size, minibatch, n_rows)
    seed = _seed(seed, init)
    cores = usable_cores() if threads is None else checks.integer("threads", threads, 1)
    n_threads = 1 if isinstance(model, PythonPotential) else min(cores, chains)

    out = _room(chains, draws, dim, kind)
    first = _last_step(init) if isinstance(init, Trace) else 0
    plan = make_plan(sampler.schedule, draws, warmup, thin, first)
    plan.step_sizes(first, 1, kind)  # a function of the user's: better refused here than after compiling
    weight = 1.0 if isinstance(rows, FullData) else n_rows / rows.size
    gradient = in_precision(cpu.Gradient(rows, n_rows, weight, noise, clip), kind)
    interpreted = isinstance(model, PythonPotential)
    job = crew.Job(
        partial(python.run_chunk, threads=cores // n_threads) if interpreted else cpu.run_chunk,
        sampler.dynamics(dim, kind),
        model if interpreted else in_precision(model, kind),
        gradient,
        plan,
        kind,
    )
    crew_chains = _start(sampler, init, seed, chains, dim, kind, out)

    begin = time.perf_counter()
    tasks = _tasks(chosen, job, crew_chains, seed, n_threads, out)
    n_threads = len(tasks) if chosen == "cuda" else n_threads
    for task in tasks[:1] if chosen == "cpu" else tasks:  # every GPU has code of its own
        task.prepare()  # compiles, or loads from the disk cache
    compiled = time.perf_counter()
    before = sum(c.step for c in crew_chains)
    interrupted = _run(job, crew_chains, n_threads, progress, on_divergence, sampler, tasks)
    for task in tasks:
        task.finish()
    seconds = time.perf_counter() - compiled

    return _collect(
        job,
        crew_chains,
        out,
        interrupted,
        {
            "sampler": repr(sampler),
            "model": repr(model),
            "seed": seed,
            "dtype": np.dtype(kind).name,
            "device": chosen,
            "device_reason": why,
            "threads": n_threads,
            "steps": sum(c.step for c in crew_chains) - before,
            "warmup": warmup,
            "thin": thin,
            "batch_size": None if batch_size is None else int(batch_size),
            "minibatch": minibatch if batch_size is not None else None,
            "gradient_noise": noise,
            "clip_gradient": None if clip_gradient is None else clip,
            "temperature": sampler.temperature,
            "seconds": seconds,
            "compile_seconds": compiled - begin,
        },
        has_momentum=not isinstance(sampler.kinetics, Overdamped),
    )


# ---- at the door --------------------------------------------------------------------------------------------------------


def _check(sampler: Any, device: Any, progress: Any) -> None:
    if not isinstance(sampler, Sampler):
        raise TypeError(
            f"sampler={checks.show(sampler)} is not a Sampler; give SGLD(...), SGHMC(...), SGNHT(...), SGMGT(...) or SGMGTD(...)"
        )
    checks.one_of("device", device, ("cpu", "cuda", "auto"))
    if not isinstance(progress, bool | np.bool_):
        raise TypeError(f"progress={checks.show(progress)} is neither True nor False")


def _device(device: str, model: Any) -> tuple[str, str]:
    """Where to run, and why; a Python gradient runs on the CPU."""
    if device == "auto" and isinstance(model, PythonPotential):
        return "cpu", "the gradient is computed by Python"
    if device == "cuda":
        cuda.check_model_for_device(model)
    return choose_device(device)


def _check_model(model: Any) -> tuple[int, int]:
    if not isinstance(model, PythonPotential):
        check_model(model)
    return dim_of(model), rows_of(model)


def _seed(seed: Any, init: Any) -> int:
    if seed is None:
        if not isinstance(init, Trace):
            return secrets.randbits(64)
        if "seed" not in init.info:
            raise ValueError("init is a trace without a seed in its info; give seed= the one of its run")
        seed = init.info["seed"]
    return checks.integer("seed", seed, 0, 2**64 - 1)


def _room(chains: int, draws: int, dim: int, kind: Any) -> NDArray[Any]:
    """Memory for all draws, or a word on how much it would be."""
    try:
        return np.empty((chains, draws, dim), kind)
    except (MemoryError, ValueError) as error:  # ValueError: more than an address can tell
        size = chains * draws * dim * np.dtype(kind).itemsize / 2**30
        raise ValueError(
            f"draws={draws} of chains={chains} with {dim} coordinates need {size:.3g} GiB, more than there is; ask for "
            "fewer draws (a larger thin= keeps the length of the run), or dtype=np.float32"
        ) from error


# ---- the start ----------------------------------------------------------------------------------------------------------


_WORDS = {"theta": "parameters", "p": "momentum", "xi": "thermostat"}


def _start(
    sampler: Sampler, init: Any, seed: int, chains: int, dim: int, kind: Any, out: NDArray[Any]
) -> list[crew.Chain]:
    if isinstance(init, Trace):
        return _continue(sampler, init, seed, chains, dim, kind, out)
    given = dict(init) if isinstance(init, Mapping) else {"theta": init}
    unknown = [name for name in given if name not in _WORDS]
    if unknown:
        raise ValueError(f"init has the unknown key {unknown[0]!r}; its keys are 'theta', 'p' and 'xi'")
    if given.get("theta") is None:
        given["theta"] = _cloud(seed, chains, dim)
    sizes = sampler.sizes(dim)._asdict()
    for name in given:
        if sizes[name] == 0:
            raise ValueError(f"init[{name!r}] was given, but the sampler has no {_WORDS[name]}; leave it out")
    values = {name: _per_chain(f"init[{name!r}]", value, chains, sizes[name]) for name, value in given.items()}
    extra = {name: values[name] for name in ("p", "xi") if name in values}
    states, fresh = sampler.start(values["theta"].astype(kind), **extra), "p" not in values
    origins = np.zeros((chains, dim), kind)
    return [
        crew.Chain(i, stream(seed, i), State(*(a[i] for a in states)), 0, 0.0, out[i], origins[i], fresh=fresh)
        for i in range(chains)
    ]


def _per_chain(name: str, value: Any, chains: int, size: int) -> NDArray[np.float64]:
    """One row per chain from a number, a row, or a row per chain."""
    array = checks.finite_array(name, value)
    if array.shape not in ((), (size,), (chains, size)):
        raise ValueError(f"{name} has shape {array.shape}; give ({size},) or ({chains}, {size})")
    return np.broadcast_to(array, (chains, size))


def _cloud(seed: int, chains: int, dim: int) -> NDArray[np.float64]:
    """Where chains start if nothing is said: normal around 0 with standard deviation 0.1."""
    generators = (np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,))) for number in range(chains))
    return np.stack([0.1 * g.standard_normal(dim) for g in generators])


def _last_step(trace: Trace) -> int:
    missing = [name for name in (*State._fields, "step", "before") if name not in trace.final]
    if missing:
        raise ValueError(f"init is a trace without {missing[0]!r} in its final state; give one that sample returned")
    steps, before = (np.asarray(trace.final[name]) for name in ("step", "before"))
    if steps.dtype.kind not in "iu" or steps.shape != (trace.chains,) or steps.min() < 0 or steps.max() >= 2**62:
        raise ValueError("init is a trace whose final['step'] is no count of steps for each chain; give one of sample")
    if before.dtype.kind != "f" or before.shape != (trace.chains,) or not (before >= 0.0).all():
        raise ValueError("init is a trace whose final['before'] is no step size for each chain; give one of sample")
    return int(steps.max())


def _last_arrays(trace: Trace, name: str, chains: int) -> NDArray[Any]:
    array = np.asarray(trace.final[name])
    if array.dtype.kind != "f" or array.ndim != 2 or len(array) != chains or not np.isfinite(array).all():
        raise ValueError(
            f"init is a trace whose final[{name!r}] has shape {array.shape} and dtype {array.dtype}; give finite floats, a "
            "row per chain, as sample leaves them"
        )
    return array


def _continue(
    sampler: Sampler, trace: Trace, seed: int, chains: int, dim: int, kind: Any, out: NDArray[Any]
) -> list[crew.Chain]:
    """Chains that go on from the end of a trace, with the same random numbers as if it had never ended.

    After Ctrl-C they ended in different steps: those behind catch up with the furthest before anything is recorded.
    """
    final = trace.final
    if trace.draws.shape[0] != chains or trace.draws.shape[2] != dim or trace.draws.dtype != np.dtype(kind):
        raise ValueError(
            f"init is a trace of {trace.draws.shape[0]} chains, {trace.draws.shape[2]} coordinates and dtype "
            f"{trace.draws.dtype}; the run has chains={chains}, {dim} coordinates and dtype {np.dtype(kind)}"
        )
    result = []
    arrays = State(*(_last_arrays(trace, name, chains) for name in State._fields))
    for i, number in enumerate(trace.chain_numbers):
        state = State(*(np.array(a[i], dtype=kind) for a in arrays))
        if not sampler.fits(state):
            raise ValueError(
                f"init is a trace of {trace.info.get('sampler')}, whose state {sampler!r} cannot go on from"
            )
        at, before = int(final["step"][i]), float(final["before"][i])
        result.append(crew.Chain(number, stream(seed, number), state, at, before, out[i], np.zeros(dim, kind)))
    return result


# ---- the run and what comes of it ---------------------------------------------------------------------------------------


def _tasks(
    device: str, job: crew.Job, chains: list[crew.Chain], seed: int, threads: int, out: NDArray[Any]
) -> Sequence[crew.Task]:
    """Who runs the chains: the GPUs, or packs of small chains, or groups of chains one after the other."""
    if device == "cuda":
        return cuda.fleets(job, chains, seed)
    packs = packed.packs(job, chains, threads, out)
    return crew.groups(job, chains, threads) if packs is None else packs


def _run(
    job: crew.Job,
    chains: list[crew.Chain],
    threads: int,
    progress: bool,
    on_divergence: str,
    sampler: Sampler,
    tasks: Sequence[crew.Task],
) -> bool:
    def diverged(chain: crew.Chain) -> None:
        if on_divergence == "raise" or all(c.diverged is not None for c in chains):
            raise _divergence(chain, sampler)

    if not progress:
        return _outcome(crew.run(threads, lambda done: None, diverged, tasks), chains, sampler)
    from tqdm.auto import tqdm  # a tenth of a second that a run without a bar does not pay

    total = sum(job.end - c.step for c in chains)
    label = f"{len(chains)} chain{'s' if len(chains) > 1 else ''}"
    with tqdm(total=total, unit="step", unit_scale=True, desc=label, mininterval=0.2) as bar:
        interrupted = crew.run(threads, lambda done: bar.update(done) and None, diverged, tasks)
    return _outcome(interrupted, chains, sampler)


def _outcome(interrupted: bool, chains: list[crew.Chain], sampler: Sampler) -> bool:
    if interrupted and all(c.diverged is not None for c in chains):
        raise _divergence(chains[0], sampler)
    return interrupted


def _divergence(chain: crew.Chain, sampler: Sampler) -> checks.DivergenceError:
    step = chain.diverged if chain.diverged is not None else -1
    h = float(sampler.schedule.step_sizes(np.array([step]))[0])
    return checks.DivergenceError(
        f"chain {chain.number} left the finite numbers in step {step}, with step size {h:g}; try a step size of {h / 4:.2g}, "
        "a start nearer to the mode (init=), or a scale= that fits the posterior",
        chain.number,
        step,
    )


def _collect(
    job: crew.Job,
    chains: list[crew.Chain],
    out: NDArray[Any],
    interrupted: bool,
    info: dict[str, Any],
    has_momentum: bool,
) -> Trace:
    alive = [c for c in chains if c.diverged is None]
    plan: Plan = job.plan
    n_draws = min(plan.recorded_before(c.step) for c in alive)
    index = [i for i, c in enumerate(chains) if c.diverged is None]
    draws = out[:, :n_draws] if len(alive) == len(chains) else out[index, :n_draws]
    counts = np.array([c.sums[2] for c in alive])
    sums = np.array([c.sums for c in alive])
    with np.errstate(invalid="ignore", divide="ignore"):
        kinetic, configurational = sums[:, 0] / counts, sums[:, 1] / counts
    steps = info["steps"]
    rows = job.gradient.n_rows if isinstance(job.gradient.minibatch, FullData) else job.gradient.minibatch.size
    info |= {
        "chains": [c.number for c in alive],
        "diverged": {str(c.number): c.diverged for c in chains if c.diverged is not None},
        "steps_per_second": steps / max(info["seconds"], 1e-9),
        "gradient_evaluations": steps,
        "row_evaluations": steps * rows,
        "interrupted": interrupted,
        "versions": _versions(),
    }
    final = {name: np.stack([getattr(c.state, name) for c in alive]) for name in State._fields}
    final |= {"step": np.array([c.step for c in alive]), "before": np.array([c.before for c in alive])}
    return Trace(draws, info, kinetic if has_momentum else np.full(len(alive), np.nan), configurational, final)


def _versions() -> dict[str, str]:
    import numba

    from sgmcmc import __version__

    return {"sgmcmc": __version__, "numpy": np.__version__, "numba": numba.__version__}
