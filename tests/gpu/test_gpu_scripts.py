"""What is to run on a GPU runs in Numba's simulator: the benchmark, and the tests of tier 3 themselves, few and small."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sgmcmc.gpu.availability import READY, find_state

ROOT = Path(__file__).parents[2]


def run(*command: str, **variables: str) -> subprocess.CompletedProcess:
    paths = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    environment = os.environ | paths | variables
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)


def test_the_benchmark_runs_from_end_to_end(tmp_path):
    table, page = tmp_path / "gpu.csv", tmp_path / "gpu.md"
    script = str(ROOT / "benchmarks" / "gpu.py")
    done = run(script, "--simulator", "--csv", str(table), "--markdown", str(page), NUMBA_ENABLE_CUDASIM="1")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(table.read_text().splitlines()))
    seen = {(r["what"], r["size"], r["precision"], r["device"]) for r in rows}
    expected = {("chains", n, p, "cuda") for n in "23" for p in ("float64", "float32")}
    expected |= {
        (w, n, p, "cuda")
        for w in ("updates", "updates with moments")
        for n in ("8", "13")
        for p in ("float64", "float32")
    }
    assert seen >= expected
    assert len(rows) == len(seen) == len(expected) * 3 // 2  # the CPU beside the smaller size of each
    assert all(float(r["rate"]) > 0.0 for r in rows)
    assert page.read_text().count("\n| ") == len(rows) + 1


def test_without_a_gpu_the_benchmark_says_so_in_one_sentence():
    if find_state().state == READY:
        pytest.skip("there is a GPU")
    done = run(str(ROOT / "benchmarks" / "gpu.py"))
    assert done.returncode == 1
    assert re.fullmatch(r"no usable GPU: .*; there is nothing to measure\n", done.stderr)
    assert done.stdout == ""


@pytest.mark.slow
def test_the_tests_for_a_gpu_are_in_order():
    more = {"NUMBA_ENABLE_CUDASIM": "1", "SGMCMC_GPU_TESTS": "simulator"}
    done = run("-m", "pytest", "-n0", "-p", "no:cacheprovider", str(ROOT / "tests" / "gpu" / "test_gpu.py"), **more)
    assert done.returncode == 0, done.stdout
    assert int(re.findall(r"(\d+) passed", done.stdout)[0]) >= 18
