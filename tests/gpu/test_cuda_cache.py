"""Compiled CUDA kernels on disk: found by another process, and never stale. No GPU: PTX takes the place of machine code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cuda_compiling import need_ptx

ROOT, HERE = Path(__file__).parents[2], Path(__file__).parents[1] / "support"


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    need_ptx()


def compiled(folder: Path, bend: float, key: str = "content") -> dict:
    """What a fresh process finds, with its cache in `folder`."""
    paths = {"PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}", "NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, str(HERE / "cuda_caching.py"), str(bend), key]
    done = subprocess.run(command, env=os.environ | paths, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_another_process_finds_a_kernel_and_a_changed_implementation_is_compiled_anew(tmp_path):
    first, again, changed = (compiled(tmp_path, bend) for bend in (0.5, 0.5, 0.25))
    assert (first["hits"], again["hits"], changed["hits"]) == (0, 1, 0)
    assert first["nvvm"] > 0
    assert again["nvvm"] == 0
    assert again["theta"] == first["theta"]
    assert np.abs(np.subtract(changed["theta"], first["theta"])).min() > 1e-3


def test_a_kernel_that_cannot_be_kept_runs_all_the_same(tmp_path):
    first, again = (compiled(tmp_path, 0.5, "broken") for _ in range(2))
    assert (first["hits"], again["hits"]) == (0, 0)
    assert again["theta"] == first["theta"]


def test_a_key_without_the_implementations_would_run_old_code(tmp_path):
    first, changed = compiled(tmp_path, 0.5, "blind"), compiled(tmp_path, 0.25, "blind")
    assert changed["hits"] == 1
    assert changed["theta"] == first["theta"]
