"""The sources are clean: ruff finds nothing, mypy is strict."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(*command: str) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("check", [("check", "."), ("format", "--check", ".")])
def test_ruff_finds_nothing(check):
    run("ruff", *check)


def test_mypy_is_content_in_strict_mode():
    run("mypy", "sgmcmc")
