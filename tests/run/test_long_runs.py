"""The script behind the figures of docs/long-runs.md, small: memory stays flat where it should, and grows where it must."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DIM, SHORT, LONG = 400_000, 60, 240  # a window of 64 MB is 41 draws


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("long_runs", ROOT / "benchmarks" / "long_runs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("kept", ["function", "moments", "theta"])
def test_peak_memory_grows_with_the_length_only_where_every_draw_is_kept(script, kept):
    draws = (LONG - SHORT) * DIM * 4
    script.fresh(script.MEMORY, DIM, SHORT, kept)  # whoever comes first may have to compile, which takes memory too
    grown = script.fresh(script.MEMORY, DIM, LONG, kept) - script.fresh(script.MEMORY, DIM, SHORT, kept)
    if kept == "theta":
        assert grown > 0.8 * draws  # the control
    else:
        assert abs(grown) < 0.1 * draws


def test_the_lengths_of_the_page_differ_by_four_times_or_more(script):
    assert set(script.LENGTHS) == set(script.WORDS)
    assert all(long >= 4 * short for short, long in script.LENGTHS.values())


def test_a_table_goes_between_its_marks_and_again_in_place_of_itself(script, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- begin memory -->\nold\n<!-- end memory -->\nb\n", encoding="utf-8")
    for _ in range(2):
        script.put(page, "memory", "θ")
    assert page.read_text(encoding="utf-8") == "a\n<!-- begin memory -->\n\nθ\n\n<!-- end memory -->\nb\n"


def test_the_page_has_the_table_of_the_script(script):
    page = (ROOT / "docs" / "long-runs.md").read_text(encoding="utf-8")
    table = page.split("<!-- begin memory -->")[1].split("<!-- end memory -->")[0]
    assert "6,000,000 parameters" in table
    steps = [line.split("|")[2].strip() for line in table.splitlines() if line.endswith("MB |")]
    assert steps == [str(n) for lengths in script.LENGTHS.values() for n in lengths]
