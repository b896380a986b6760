"""Compiles the CUDA kernels without a GPU and writes what the assembler says of them into docs/gpu.md.

    python benchmarks/gpu_report.py            # both precisions, sm_80 and sm_90; a few minutes

Needs a compiler for PTX (the extra cuda12 or cuda13, or a CUDA toolkit with Numba alone) and ptxas.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numba
import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from cuda_cases import GAUSS, LOGISTIC, RUN, SAMPLERS, WIDE  # noqa: E402
from cuda_compiling import assemble, find_ptxas, launch_arguments, prepare, ptx_of  # noqa: E402

KERNELS = {
    "SGLD, Gaussian": (GAUSS, SAMPLERS["SGLD"], {}),
    "SGNHT, Gaussian": (GAUSS, SAMPLERS["SGNHT"], {}),
    "SGNHT, logistic": (LOGISTIC, SAMPLERS["SGNHT"], {"batch_size": 7}),
    "SGMGT a = 1, logistic": (LOGISTIC, SAMPLERS["SGMGT"], {"batch_size": 7}),
    "SGMGT-D a = 2, logistic": (LOGISTIC, SAMPLERS["SGMGTD"], {"batch_size": 7}),
    "SGNHT, logistic, a block": (WIDE, SAMPLERS["SGNHT"], {"batch_size": 70}),
    "SGMGT-D a = 2, logistic, a block": (WIDE, SAMPLERS["SGMGTD"], {"batch_size": 70}),
}
BEGIN, END = "<!-- written by benchmarks/gpu_report.py -->", "<!-- end -->"


def rows() -> Iterator[str]:
    for name, (model, sampler, more) in KERNELS.items():
        for kind in (np.float64, np.float32):
            kernel, arguments = launch_arguments(model, sampler, RUN | more | {"dtype": kind})
            for capability in ((8, 0), (9, 0)):
                ptx = ptx_of(kernel, arguments, capability)
                made = assemble(ptx, f"sm_{capability[0]}{capability[1]}")
                wide, fused = ptx.count(".f64"), len(re.findall(r"\bfma\.", ptx))
                cells = (name, np.dtype(kind).name, f"sm_{capability[0]}{capability[1]}", *made, wide, fused)
                yield "| " + " | ".join(str(c) for c in cells) + " |"


def write(table: list[str]) -> None:
    page = ROOT / "docs" / "gpu.md"
    before, _, rest = page.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text("\n".join([f"{before}{BEGIN}", *table, f"{END}{after}"]))


def main() -> None:
    trouble = prepare()
    if trouble is not None or find_ptxas() is None:
        raise SystemExit(trouble if trouble is not None else "there is no ptxas")
    said = subprocess.run([str(find_ptxas()), "--version"], capture_output=True, text=True, check=True).stdout
    table = [
        f"Numba {numba.__version__}, ptxas {re.findall(r'V([0-9.]+)', said)[0]}; spills are bytes stored and loaded.",
        "",
        "| kernel | precision | device | registers | stack | spills | shared | `.f64` in the PTX | fused multiplications |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows():
        print(row, flush=True)
        table.append(row)
        write(table)  # after each, so that a run that is cut short leaves what it found


if __name__ == "__main__":
    main()
