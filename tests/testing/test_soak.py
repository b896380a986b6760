"""A few rounds of the soak: runs killed at random moments have the bits of runs left alone."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("soak", Path(__file__).parents[2] / "validation" / "soak.py")
soak = importlib.util.module_from_spec(spec)
spec.loader.exec_module(soak)


@pytest.mark.parametrize("case", ["lanes", "group"])
def test_a_round_of_the_soak(case, tmp_path):
    script = tmp_path / "child.py"
    script.write_text(soak.CHILD, encoding="utf-8")
    soak.soak_round(script, case, random.Random(1))


def test_a_run_that_forgets_is_found(tmp_path):
    script = tmp_path / "child.py"
    script.write_text(soak.CHILD.replace('"seed": 5}', '"seed": 5 + alone}'), encoding="utf-8")
    with pytest.raises(AssertionError, match="draws of group differ"):
        soak.soak_round(script, "group", random.Random(1))
