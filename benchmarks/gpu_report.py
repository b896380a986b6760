"""Compiles the CUDA kernels without a GPU, and writes into docs/gpu.md what the assembler says of them and what they do.

    python benchmarks/gpu_report.py            # both precisions, sm_80 and sm_90; a few minutes

Needs a compiler for PTX (the extra cuda12 or cuda13, or a CUDA toolkit with Numba alone) and ptxas. Operations and bytes are
counted while the PTX runs on the CPU, over 100 steps, so that everything that happens now and then is in them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from cuda_cases import GAUSS, LOGISTIC, RUN, WIDE, Foreign  # noqa: E402
from cuda_compiling import (  # noqa: E402
    PtxDevice,
    PtxKernels,
    assemble,
    find_ptxas,
    launch_arguments,
    prepare,
    ptx_in_place_of_a_gpu,
    ptx_of,
    update_arguments,
)

import sgmcmc as sg  # noqa: E402

SAMPLERS: dict[str, Callable[[], Any]] = {
    "SGLD": lambda: sg.SGLD(0.01),
    "SGNHT": lambda: sg.SGNHT(0.01),
    "SGMGT, a = 1": lambda: sg.SGMGT(0.01, a=1.0),
    "SGMGT-D, a = 1": lambda: sg.SGMGTD(0.01, a=1.0),
    "SGMGT-D, a = 2": lambda: sg.SGMGTD(0.01, a=2.0),
    "SGMGT-D, a = 1.5": lambda: sg.SGMGTD(0.01, a=1.5),
}
MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "thread, Gaussian, d = 3": (GAUSS, {}),
    "thread, logistic, d = 3, batch 7": (LOGISTIC, {"batch_size": 7}),
    "block, logistic, d = 70, batch 50": (WIDE, {"batch_size": 50}),
}
UPDATE = "update of device arrays"
COORDINATES = 1000

# NVIDIA A100 SXM, from its data sheet: 108 multiprocessors at 1.41 GHz, each with 64 lanes for single precision, 32 for
# double, 64 for integers and 16 for special functions, and four instructions per cycle for 32 lanes; memory of 1555 GB/s.
DEVICE, MULTIPROCESSORS, CLOCK, BANDWIDTH = "A100 SXM 40 GB", 108, 1.41e9, 1.555e12
LANES = {"single": 64, "double": 32, "special": 16, "integer": 64, "issue": 128}
STEPS = 100


# ---- registers ---------------------------------------------------------------------------------------------------------------


def kernels() -> Iterator[tuple[str, str, Any, Any]]:
    """(kernel, sampler, its precision, what makes the kernel and its arguments)."""
    for where, (model, more) in MODELS.items():
        for name, make in SAMPLERS.items():
            for kind in (np.float64, np.float32):
                options = RUN | more | {"dtype": kind}
                yield where, name, kind, lambda m=model, s=make, o=options: launch_arguments(m, s(), o)
    for name, make in SAMPLERS.items():
        for kind in (np.float64, np.float32):
            yield UPDATE, name, kind, lambda s=make, k=kind: update_arguments(s(), Foreign(np.zeros(COORDINATES, k)))


def registers() -> Iterator[str]:
    yield "| kernel | sampler | precision | device | registers | stack | spills | shared | `.f64` | fused |"
    yield "|---|---|---|---|---:|---:|---:|---:|---:|---:|"
    for where, name, kind, make in kernels():
        kernel, arguments = make()
        if kernel.__name__ == "chain_per_thread":
            where = where.replace("block", "thread")  # what a block would spill, a thread does alone
        for capability in ((8, 0), (9, 0)):
            ptx, device = ptx_of(kernel, arguments, capability), f"sm_{capability[0]}{capability[1]}"
            cells = where, name, np.dtype(kind).name, device, *assemble(ptx, device)
            yield row(*cells, ptx.count(".f64"), len(re.findall(r"\bfma\.", ptx)))


# ---- operations and bytes ----------------------------------------------------------------------------------------------------


def per_step(where: str, make: Callable[[], Any], kind: Any) -> tuple[Any, int]:
    """What a step of a chain does, and of how many coordinates it is."""
    counting = PtxKernels(counted=True)
    if where == UPDATE:
        sampler = make()
        sampler.__dict__["_device"] = PtxDevice(counting)
        gradient = Foreign(np.ones(COORDINATES, kind))
        state = sampler.init(gradient)
        for _ in range(STEPS):
            state = sampler.step(state, gradient)
        return np.array(next(iter(counting.modules.values())).counts()) / STEPS, COORDINATES
    model, more = MODELS[where]
    totals = []
    for steps in (STEPS, 2 * STEPS):
        options = RUN | more | {"dtype": kind, "warmup": 0, "draws": 1, "thin": steps}
        with ptx_in_place_of_a_gpu(counting):
            sg.sample(model, make(), **options, device="cuda")
        totals.append(sum(np.array(m.counts()) for m in counting.modules.values()))
    return (totals[1] - 2 * totals[0]) / (STEPS * RUN["chains"]), model.dim


def seconds(counts: Any) -> tuple[float, str]:
    """The least time that a step of one chain can take of a whole device, and what takes it."""
    single, double, special, integer, loaded, stored = counts
    work = {"single": single, "double": double, "special": special, "integer": integer}
    work["issue"] = single + double + special + integer
    times = {name: n / (MULTIPROCESSORS * CLOCK * LANES[name]) for name, n in work.items()}
    times["memory"] = (loaded + stored) / BANDWIDTH
    bound = max(times, key=times.__getitem__)
    return times[bound], bound


def model_of_speed() -> Iterator[str]:
    yield "| kernel | sampler | precision | floating point | special | integer | bytes | bound by | estimate |"
    yield "|---|---|---|---:|---:|---:|---:|---|---|"
    for where in (*MODELS, UPDATE):
        for name, make in SAMPLERS.items():
            for kind in (np.float32, np.float64):
                counts, dim = per_step(where, make, kind)
                least, bound = seconds(counts)
                per = dim if where == UPDATE else 1  # of one coordinate there, of one chain elsewhere
                speed = (
                    f"{least / dim * 1e12:.2g} ps per coordinate"
                    if where == UPDATE
                    else f"{1 / least:.2g} chain-steps/s"
                )
                figures = (
                    f"{n / per:.0f}" for n in (counts[0] + counts[1], counts[2], counts[3], counts[4] + counts[5])
                )
                yield row(where, name, np.dtype(kind).name, *figures, bound, speed)


# ---- the page ----------------------------------------------------------------------------------------------------------------


def row(*cells: Any) -> str:
    return "| " + " | ".join(str(c) for c in cells) + " |"


def write(name: str, lines: Iterator[str], before: str) -> None:
    """The part of docs/gpu.md between the marks of `name`, after each line: a run that is cut short leaves what it found."""
    page, begin, end = (
        ROOT / "docs" / "gpu.md",
        f"<!-- {name}, by benchmarks/gpu_report.py -->",
        f"<!-- end of {name} -->",
    )
    written = [before, ""]
    for line in lines:
        print(line, flush=True)
        written.append(line)
        head, _, rest = page.read_text().partition(begin)
        page.write_text("\n".join([f"{head}{begin}", *written, f"{end}{rest.partition(end)[2]}"]))


def main() -> None:
    trouble = prepare()
    if trouble is not None or find_ptxas() is None:
        raise SystemExit(trouble if trouble is not None else "there is no ptxas")
    said = subprocess.run([str(find_ptxas()), "--version"], capture_output=True, text=True, check=True).stdout
    version = re.findall(r"V([0-9.]+)", said)[0]
    write(
        "operations", model_of_speed(), f"Numba {numba.__version__}; per step of a chain, or of a coordinate; {DEVICE}."
    )
    write("registers", registers(), f"Numba {numba.__version__}, ptxas {version}; spills are bytes stored and loaded.")


if __name__ == "__main__":
    main()
