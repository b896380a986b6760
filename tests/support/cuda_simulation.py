"""Run by test_cuda_simulator in a process of its own: every case in the CUDA simulator and in the loop of the CPU.

Both run as plain Python here, so a comparison of all cases takes seconds; test_nojit holds plain Python to the machine code.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import warnings

import numpy as np
from cuda_cases import GAUSS, LOGISTIC, RUN, SINGLY, Foreign, block_runs, moments_error, runs, walk

import sgmcmc as sg
from sgmcmc.dispatch import simulate_device
from sgmcmc.run import loop_compiled, scheduler
from sgmcmc.run.gpu import chains as gpu_chains
from sgmcmc.run.gpu import kernels as gpu_kernels
from sgmcmc.samplers import ask_and_tell as samplers

FEW = (
    "sampler SGLD",
    "model two strips",
    "measured 1 rows, replacement, coordinate",
    "measured 5 rows, replacement, coordinate",
)

SOME = (  # every kinetics, integrator, thermostat and rule of rows, each way to hand in a model and to measure noise
    "sampler gaussian-euler-fixed",
    "sampler laplace-symmetric-coordinate",
    "sampler root-baoab-chain",
    "sampler general-euler-coordinate",
    "sampler relativistic-symmetric-chain",
    "sampler own-baoab-fixed",
    "sampler SGLD",
    "sampler cyclical",
    "sampler OBABO",
    "sampler UBU",
    "sampler own thermostat",
    "sampler own flow",
    "model own rows",
    "model linear",
    "model different rows",
    "model shuffled rows",
    "model two strips",
    "model softmax",
    "model ring",
    "model own with data",
    "model noisy",
    "measured 1 rows, shuffle, chain",
    "measured 5 rows, replacement, coordinate",
)


def difference(one: np.ndarray, two: np.ndarray) -> float:
    """The largest difference, relative to the largest number."""
    if one.shape != two.shape or one.dtype != two.dtype or not np.isfinite(two).all():
        return float("inf")
    return float(np.abs(one - two).max(initial=0.0) / max(1.0, np.abs(one).max(initial=0.0)))


def compare(model, sampler, options) -> dict[str, float]:
    simulate_device(False)
    here = sg.sample(model, sampler, **options)
    simulate_device(True)
    there = sg.sample(model, sampler, **options, device="cuda")
    assert there.info["device"] == "cuda"
    found = {"draws": difference(here.draws, there.draws), "moves": float(np.abs(np.diff(there.draws, axis=1)).min())}
    found |= {name: difference(value, there.final[name]) for name, value in here.final.items()}
    for name in ("kinetic_temperature", "configurational_temperature"):
        one, two = np.nan_to_num(getattr(here, name)), np.nan_to_num(getattr(there, name))
        found[name] = difference(one, two)
    return found


def rows_and_shapes() -> dict[str, bool]:
    """Whether rows are the CPU's, bit for bit, and draws do not depend on blocks, chunks, chains or catching up."""
    found = {}
    for kind in ("replacement", "no-replacement", "shuffle"):
        options = RUN | {"batch_size": 6, "minibatch": kind}
        seen: dict[str, np.ndarray] = {}
        original = gpu_chains.DeviceTask.finish

        def finish(task, original=original, seen=seen):
            seen["cuda"] = np.moveaxis(task.scratch.rows, task.chain_axis, 0).copy()
            original(task)

        advance = scheduler.Job.advance

        def watched(job, chain, buffers, count, advance=advance, seen=seen):
            done = advance(job, chain, buffers, count)
            seen[f"cpu{chain.number}"] = buffers.rows.copy()
            return done

        gpu_chains.DeviceTask.finish, scheduler.Job.advance = finish, watched
        simulate_device(False)
        sg.sample(LOGISTIC, sg.SGNHT(0.02), **options)
        simulate_device(True)
        sg.sample(LOGISTIC, sg.SGNHT(0.02), **options, device="cuda")
        gpu_chains.DeviceTask.finish, scheduler.Job.advance = original, advance
        found[f"rows {kind}"] = all((seen["cuda"][i] == seen[f"cpu{i}"]).all() for i in range(3))
    return found | shapes()


def shapes() -> dict[str, bool]:
    options = RUN | {"chains": 7, "device": "cuda"}
    whole = sg.sample(GAUSS, sg.SGNHT(0.1), **options)
    found = {}
    standard = gpu_chains.DeviceTask.__init__.__defaults__
    for block in (1, 4, 32):
        gpu_chains.DeviceTask.__init__.__defaults__ = (None, block)
        found[f"block {block}"] = bool((sg.sample(GAUSS, sg.SGNHT(0.1), **options).draws == whole.draws).all())
    gpu_chains.DeviceTask.__init__.__defaults__ = standard
    found["chain alone"] = bool(
        (sg.sample(GAUSS, sg.SGNHT(0.1), **options | {"chains": 2}).draws == whole.draws[:2]).all()
    )
    gpu_chains.DRAWS_AT_ONCE, kept = 1, gpu_chains.DRAWS_AT_ONCE
    found["one draw at once"] = bool((sg.sample(GAUSS, sg.SGNHT(0.1), **options).draws == whole.draws).all())
    gpu_chains.DRAWS_AT_ONCE = kept
    devices, gpu_kernels.devices = gpu_kernels.devices, lambda: [None, None, None]
    found["three devices"] = bool((sg.sample(GAUSS, sg.SGNHT(0.1), **options).draws == whole.draws).all())
    gpu_kernels.devices = devices
    first = sg.sample(GAUSS, sg.SGNHT(0.1), **options | {"draws": 2})
    rest = sg.sample(GAUSS, sg.SGNHT(0.1), **options | {"draws": 3, "warmup": 0, "init": first})
    found["resumed"] = bool((rest.draws == whole.draws[:, 2:]).all())
    bad = options | {"init": np.array([[0.5] * 3] * 6 + [[1e308] * 3]), "on_divergence": "drop"}
    with warnings.catch_warnings():  # of every thread; np.errstate is of this one alone
        warnings.simplefilter("ignore")
        dropped = sg.sample(GAUSS, sg.SGNHT(3.0), **bad)
        simulate_device(False)
        on_cpu = sg.sample(GAUSS, sg.SGNHT(3.0), **bad | {"device": "cpu"})
    found["divergence"] = dropped.info["diverged"] == on_cpu.info["diverged"] != {}
    return found


def moments(kind) -> dict[str, float]:
    """How far running moments are from those of the states that a loop on device arrays saw; and states without them."""
    samplers.draw_momenta = samplers.draw_momenta.py_func
    found = {}
    for name in ("SGLD", "SGNHT", "root-symmetric-coordinate"):
        running = sg.Moments()
        states = walk(SINGLY[name], kind, Foreign, moments=running)
        found[name] = moments_error(running, states)
        without = walk(SINGLY[name], kind, Foreign)
        found[f"{name} as without"] = max(difference(a[0], b[0]) for a, b in zip(states, without, strict=True))
    return found


def updates(kind) -> dict[str, float]:
    """Largest differences between ask and tell on the host and on device arrays."""
    samplers.update_once, samplers.draw_momenta = samplers.update_once.py_func, samplers.draw_momenta.py_func
    found = {}
    for name, one in SINGLY.items():
        simulate_device(False)
        here = walk(one, kind, lambda array: array)
        simulate_device(True)
        there = walk(one, kind, Foreign)
        pairs = [(a, b) for old, new in zip(here, there, strict=True) for a, b in zip(old, new, strict=True) if a.size]
        found[name] = max(difference(a, b) for a, b in pairs)
        found[name] = found[name] if np.abs(there[-1][0] - there[0][0]).min() > 0.0 else float("inf")
    return found


def measured(cases) -> dict[str, list[float]]:
    """Of every run that measures V: its smallest in the end, and how far off the draws are if the device does not measure it."""
    unmeasured, found = loop_compiled.Unmeasured(), {}
    replaced = gpu_chains.DeviceTask.__init__
    for name, (model, sampler, options) in cases.items():
        if name.startswith("measured"):
            simulate_device(False)
            here = sg.sample(model, sampler, **options)

            def blind(task, job, *rest, **more):
                gradient = job.gradient._replace(measure=unmeasured)
                replaced(task, dataclasses.replace(job, gradient=gradient), *rest, **more)

            simulate_device(True)
            gpu_chains.DeviceTask.__init__ = blind
            there = sg.sample(model, sampler, **options, device="cuda")
            gpu_chains.DeviceTask.__init__ = replaced
            smallest = float(here.final["variance"].min())
            found[name] = [smallest, difference(here.draws, there.draws)]
    return found


def few(cases) -> dict[str, float]:
    """The largest difference of each of a few cases."""
    found = {name: compare(*run) for name, run in cases.items()}
    return {name: max(size for part, size in each.items() if part != "moves") for name, each in found.items()}


def blocks(threads: int = 4) -> None:
    """From here on a block of so many threads runs each chain."""
    gpu_chains.takes_a_block = lambda *_: True
    gpu_chains.DeviceTask.__init__.__defaults__ = (None, threads)


if __name__ == "__main__":
    loop_compiled.run_chunk = loop_compiled.run_steps  # as Python: an open function that is not compiled
    cases, wanted = runs, sys.argv[1]
    if wanted.startswith("block "):
        blocks()
        cases, wanted = block_runs, wanted.removeprefix("block ")
    if wanted == "shapes":
        print(json.dumps(rows_and_shapes()))
    elif wanted.startswith("moments"):
        print(json.dumps(moments(np.dtype(wanted.split()[1]).type)))
    elif wanted == "few":
        print(json.dumps(few({name: run for name, run in cases(np.float64).items() if name in FEW})))
    elif wanted == "some":
        print(json.dumps({name: compare(*run) for name, run in cases(np.float64).items() if name in SOME}))
    elif wanted == "some measured":
        print(json.dumps(measured({name: run for name, run in cases(np.float64).items() if name in SOME})))
    elif wanted == "measured":
        print(json.dumps(measured(cases(np.float64))))
    elif wanted.startswith("update"):
        print(json.dumps(updates(np.dtype(wanted.split()[1]).type)))
    else:
        print(json.dumps({name: compare(*run) for name, run in cases(np.dtype(wanted).type).items()}))
