"""Run by test_cuda_cache in processes of their own: compile the kernel of the update for a kinetics of one's own, or load it.

    python cuda_caching.py BEND content|blind|broken

"blind" leaves the implementations out of the key; "broken" has a disk that takes nothing. There is no device, so a stand-in
says what a driver would, and PTX takes the place of machine code. Prints how often the cache was hit, how often NVVM was
called, and where the PTX brings θ.
"""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any, NamedTuple

import numba
import numpy as np
from cuda_cases import Foreign
from cuda_compiling import CaughtError, PtxDevice, prepare
from ptx_cpu import Module

import sgmcmc as sg
from sgmcmc.compiler import fingerprints
from sgmcmc.dispatch import implements
from sgmcmc.kinetics import curvature, energy, velocity

BEND = float(sys.argv[1])
CAPABILITY = (8, 0)


class Bent(NamedTuple):
    """K = p²/2 + bend·p⁴/4, where the bend is in the code."""

    mass: float


@implements(energy, Bent)
def _(kinetics, p):
    return 0.5 * p * p + 0.25 * BEND * p * p * p * p


@implements(velocity, Bent)
def _(kinetics, p):
    return p + BEND * p * p * p


@implements(curvature, Bent)
def _(kinetics, p):
    return 1.0 + 3.0 * BEND * p * p


class Catching(PtxDevice):
    def launch(self, threads, arguments, stream):
        raise CaughtError(arguments)


def stand_in_for_a_device() -> list[int]:
    """Let Numba's dispatcher compile, bind, save and load; returns a list that grows with every call of NVVM."""
    from numba.cuda import codegen
    from numba.cuda.cudadrv import devices, nvvm, runtime

    context = SimpleNamespace(device=SimpleNamespace(compute_capability=CAPABILITY, id=0))
    devices.get_context = lambda *_: context
    runtime.runtime.get_version = lambda: (13, 0)
    calls, compile_ir = [], nvvm.compile_ir

    def counted(*args: Any, **options: Any) -> Any:
        calls.append(1)
        return compile_ir(*args, **options)

    def bound(library: Any) -> Any:
        library.get_asm_str(CAPABILITY)  # which is saved
        return SimpleNamespace(module=SimpleNamespace(initialized=True))

    nvvm.compile_ir, codegen.CUDACodeLibrary.get_cufunc = counted, bound
    return calls


def arguments_of_a_step() -> tuple[Any, ...]:
    sampler = sg.Sampler(0.1, kinetics=Bent(1.0))
    sampler.__dict__["_device"] = Catching()
    state = sampler.init(Foreign(np.linspace(-1.0, 1.0, 6)), seed=3)
    state.p[:] = 1.0  # not the law's, which a change of the kinetics changes too
    try:
        sampler.step(state, Foreign(np.zeros(6)))
    except CaughtError as caught:
        return caught.args[0]
    raise AssertionError("nothing was launched")


def fail(kernel: Any) -> None:
    raise RuntimeError("Cannot pickle CUDACodeLibrary with linking files")


def main() -> None:
    trouble = prepare()
    if trouble is not None:
        raise SystemExit(trouble)
    calls = stand_in_for_a_device()
    from sgmcmc.gpu.update_kernel import update_kernel

    if sys.argv[2] == "blind":
        fingerprints.implementations_fingerprint = lambda cls, foreign=None: b""
    elif sys.argv[2] == "broken":
        update_kernel._cache._impl.reduce = fail
    arguments = arguments_of_a_step()
    types = tuple(numba.typeof(a) for a in arguments)
    kernel = update_kernel.compile(types)
    Module(kernel.inspect_asm(CAPABILITY)).launch(2, 1, arguments)
    hits = sum(update_kernel.stats.cache_hits.values())
    print(json.dumps({"hits": hits, "nvvm": len(calls), "theta": arguments[2].theta.tolist()}))


if __name__ == "__main__":
    main()
