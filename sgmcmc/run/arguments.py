"""The arguments of `sample`, each checked once, before anything compiles."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc import checks
from sgmcmc.gpu.availability import choose_device
from sgmcmc.minibatch import as_minibatch
from sgmcmc.parameters import Layout, layout_of_model
from sgmcmc.potentials import PythonPotential, check_model, dim_of, has_own_noise, rows_of
from sgmcmc.run.recording import Keep, KeepFunction, KeepMoments
from sgmcmc.run.settings import Settings
from sgmcmc.run.starts import last_step
from sgmcmc.samplers import Sampler, precision
from sgmcmc.threads import usable_cores
from sgmcmc.trace import Trace

__all__ = ["Destination", "as_destination", "as_keep", "as_seed", "as_settings", "check_progress"]


def as_settings(model: Any, sampler: Any, init: Any, given: dict[str, Any]) -> Settings:
    """The arguments of `sample` that determine the draws."""
    if not isinstance(sampler, Sampler):
        raise TypeError(
            f"sampler={checks.show(sampler)} is not a Sampler; give SGLD(...), SGHMC(...), SGNHT(...), SGMGT(...) or SGMGTD(...)"
        )
    checks.one_of("device", given["device"], ("cpu", "cuda", "auto"))
    dim, n_rows, layout = _check_model(model)
    if isinstance(sampler.scale, tuple):  # a scale of the user's: its numbers are known now
        sampler = replace(sampler, scale=sampler.scale_values(dim))
    chosen, why = _device(given["device"], model, sampler)
    _check_mapped(model, precision(given["dtype"]))
    clip = given["clip_gradient"]
    settings = Settings(
        model,
        sampler,
        draws=checks.integer("draws", given["draws"], 1),
        warmup=checks.integer("warmup", given["warmup"], 0),
        chains=checks.integer("chains", given["chains"], 1, 2**32 - 1),
        thin=checks.integer("thin", given["thin"], 1),
        dim=dim,
        n_rows=n_rows,
        layout=layout,
        dtype=precision(given["dtype"]),
        on_divergence=checks.one_of("on_divergence", given["on_divergence"], ("raise", "drop")),
        noise=checks.number("gradient_noise", given["gradient_noise"], 0.0, 1e300),
        clip=np.inf if clip is None else checks.number("clip_gradient", clip, 0.0, open_low=True),
        rows=as_minibatch(given["batch_size"], given["minibatch"], n_rows),
        first=last_step(init) if isinstance(init, Trace) else 0,
        device=chosen,
        why=why,
        cores=usable_cores() if given["threads"] is None else checks.integer("threads", given["threads"], 1),
        own_noise=sampler.wants_variance and has_own_noise(model),
    )
    _check_chains(settings)
    settings.plan.step_sizes(settings.first, 1, settings.dtype)  # a user's function: better refused here
    return settings


CHAIN = 500  # bytes of a chain beside its numbers
PLAN = 24  # bytes that a draw takes in the plan of a run, while it is made
STATE = 5  # numbers per coordinate of every chain: θ, p, ξ, the origin, a draw


def _check_chains(settings: Settings) -> None:
    """Refuse chains whose states do not fit in memory: to find out by making them may take hours."""
    there = _physical_memory()
    if there is not None and PLAN * settings.draws > there:
        raise ValueError(
            f"draws={settings.draws} need {PLAN * settings.draws / 2**30:.3g} GiB for the numbers of their steps alone, and "
            f"this machine has {there / 2**30:.3g}; ask for fewer draws, with a larger thin"
        )
    needed = settings.chains * (CHAIN + STATE * settings.dim * np.dtype(settings.dtype).itemsize)
    if there is not None and needed > there:
        raise ValueError(
            f"chains={settings.chains} with {settings.dim} coordinates need {needed / 2**30:.3g} GiB for their states alone, "
            f"and this machine has {there / 2**30:.3g}; ask for fewer chains"
        )


def _physical_memory() -> int | None:
    """In bytes; None if the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, AttributeError, ValueError):
        return None


def _device(device: str, model: Any, sampler: Sampler) -> tuple[str, str]:
    """Where to run, and why. A Python gradient and a matrix as scale need the CPU."""
    has_matrix = np.ndim(sampler.scale) == 2
    if device == "auto" and has_matrix:
        return "cpu", "scale is a matrix"
    if device == "cuda" and has_matrix:
        raise ValueError("scale is a matrix, which couples all coordinates, and cannot run on a GPU; use device='cpu'")
    if device == "auto" and isinstance(model, PythonPotential):
        return "cpu", "the gradient is computed by Python"
    if device == "cuda":
        from sgmcmc.run.gpu.chains import check_model_for_device

        check_model_for_device(model)
    return choose_device(device)


def _check_model(model: Any) -> tuple[int, int, Layout]:
    if not isinstance(model, PythonPotential):
        check_model(model)
    dim = dim_of(model)
    return dim, rows_of(model), layout_of_model(model, dim)  # better refused here than after the run


def _check_mapped(part: Any, kind: Any) -> None:
    """Refuse to read a file into memory that was mapped so as not to be."""
    for value in part if isinstance(part, tuple) else ():
        _check_mapped(value, kind)
        if checks.is_mapped(value) and value.dtype.kind == "f" and value.dtype != np.dtype(kind):
            raise ValueError(
                f"the data are a memory-mapped file of {value.dtype}, and dtype={np.dtype(kind)} would read it all into memory; "
                f"give dtype=np.{value.dtype}, or write the file in {np.dtype(kind)}"
            )


def check_progress(progress: Any) -> None:
    """A bar, none, or a function."""
    if not isinstance(progress, bool | np.bool_) and not callable(progress):
        raise TypeError(f"progress={checks.show(progress)} is neither True nor False nor a function")


def as_seed(seed: Any, init: Any, saved: int | None = None) -> int:
    """The seed given, or that of the run to continue, or a new one."""
    if seed is not None:
        return checks.integer("seed", seed, 0, 2**64 - 1)
    if saved is not None:
        return saved
    if not isinstance(init, Trace):
        return secrets.randbits(64)
    if "seed" not in init.info:
        raise ValueError("init is a trace without a seed in its info; give seed= the one of its run")
    return checks.integer("seed", init.info["seed"], 0, 2**64 - 1)


def as_keep(keep: Any, theta: NDArray[Any]) -> Keep:
    """What is kept of a draw; a function is called once, at the start of the first chain."""
    if keep is None:
        return Keep(theta.size, theta.dtype)
    if isinstance(keep, str):
        checks.one_of("keep", keep, ("moments",))
        return KeepMoments()
    if not callable(keep):
        raise TypeError(
            f"keep={checks.show(keep)} cannot be called; give a function of theta, 'moments', or None for theta itself"
        )
    return _keep_function(keep, theta)


def _keep_function(keep: Callable[[Any], Any], theta: NDArray[Any]) -> KeepFunction:
    found = np.asarray(keep(theta.copy()))
    if found.dtype.kind not in "fiub" or found.size == 0:
        raise ValueError(
            f"keep returned {found.dtype} of shape {found.shape}; give a function of theta that returns numbers"
        )
    return KeepFunction(keep, found.size, found.dtype if found.dtype.kind == "f" else np.float64)


class Destination(NamedTuple):
    """Where a run is saved, and the executor that computes it."""

    checkpoint: Path | None
    every: float
    resume: bool
    out: Path | None
    executor: Executor | None

    def found(self) -> Path | None:
        """The checkpoint to resume, if there is one; FileExistsError for any file that would be overwritten."""
        there = self.checkpoint is not None and self.checkpoint.exists()
        if there and not self.resume:
            raise FileExistsError(
                f"checkpoint='{self.checkpoint}' exists; give resume=True to go on from it, delete it, or choose another name"
            )
        if self.out is not None and self.out.exists() and not there:
            raise FileExistsError(f"out='{self.out}' exists; delete it, or choose another name")
        return self.checkpoint if there else None


def as_destination(
    checkpoint: Any, every: Any, resume: Any, out: Any, executor: Any, keep: Any, device: str
) -> Destination:
    """The arguments of `sample` that do not change the draws."""
    paths = {name: _path(name, value) for name, value in (("checkpoint", checkpoint), ("out", out))}
    if not isinstance(resume, bool | np.bool_):
        raise TypeError(f"resume={checks.show(resume)} is neither True nor False")
    if resume and checkpoint is None:
        raise ValueError("resume=True was given without a checkpoint; give checkpoint='run.npz', or leave resume out")
    if paths["out"] is not None and paths["out"] == paths["checkpoint"]:
        raise ValueError(
            f"out={checks.show(out)} and checkpoint={checks.show(checkpoint)} are the same file; give each a name of its own"
        )
    if paths["out"] is not None and isinstance(keep, str):
        raise ValueError(
            f"out={checks.show(out)} was given, but keep={checks.show(keep)} keeps no draws; leave out= or keep= out"
        )
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(
            f"executor={checks.show(executor)} has no submit; give a concurrent.futures.Executor, such as client.get_executor()"
        )
    if executor is not None and device != "cpu":
        raise ValueError(f"device={device!r} was given with an executor, whose workers use the CPU; leave device='cpu'")
    seconds = checks.number("checkpoint_every", every, 0.0, 1e9)
    return Destination(paths["checkpoint"], seconds, bool(resume), paths["out"], executor)


def _path(name: str, value: Any) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name}={checks.show(value)} is not the name of a file; give a text or a path")
    path = Path(os.path.realpath(value))  # locks and comparisons are about the target of a link
    if name == "out" and path.suffix != ".npy":
        raise ValueError(f"out={checks.show(value)} will hold an array for np.load; give a name that ends in .npy")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"{name}={checks.show(value)} is in a folder that is not there; make {path.parent} first"
        )
    if path.exists() and not path.is_file():  # opening a pipe would wait for another process
        raise ValueError(f"{name}='{path}' is not a regular file; give the name of a file")
    return path
