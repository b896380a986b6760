"""What the README and the docs say is run: every Python block, every example, every link, and the commands in CI."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def runnable(block: str) -> bool:
    """Blocks with JAX or PyTorch run where these are installed; they stand alone, so that the others do not need them."""
    wanted = re.findall(r"^import (jax|torch)\b", block, re.MULTILINE)
    return all(importlib.util.find_spec(name) is not None for name in wanted)


def run(*arguments: str, directory: Path) -> str:
    """A fresh process, in a directory of its own, in which a warning is an error.

    Except what `sample` says of a run: pages show what goes wrong, and runs that are short for the sake of the reader.
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore:this run is :UserWarning", *arguments],
        cwd=directory,
        env=os.environ | {"MPLBACKEND": "Agg", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda page: page.name)
def test_the_blocks_of_a_page_run_from_top_to_bottom(page, tmp_path):
    script = tmp_path / f"{page.stem}.py"
    script.write_text("\n".join(filter(runnable, blocks(page, "python"))), encoding="utf-8")
    run(str(script), directory=tmp_path)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_every_example_runs_and_is_short(example, tmp_path):
    assert len(example.read_text(encoding="utf-8").splitlines()) < 60
    assert run(str(example), directory=tmp_path) != ""


def test_a_block_that_fails_is_seen(tmp_path):
    with pytest.raises(AssertionError, match="UserWarning: out of date"):
        run("-c", "import warnings; warnings.warn('out of date')", directory=tmp_path)


def test_ci_runs_exactly_the_commands_of_the_readme_and_of_the_pages_on_gpus_and_versions():
    pages = README, ROOT / "docs" / "gpu.md", ROOT / "docs" / "versions.md"
    commands = [line for page in pages for block in blocks(page, "sh") for line in block.splitlines()]
    in_ci = re.findall(r"^in_a_fresh_copy '(.*)'$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
    assert in_ci == commands
    assert len(commands) == 6


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    local = [t.partition("#")[0] for t in targets if not t.startswith(("http://", "https://", "#"))]
    assert [t for t in local if not (page.parent / t).exists()] == []


def test_the_table_of_files_names_every_file_of_the_package():
    table = README.read_text(encoding="utf-8").partition("## Where a thing lives")[2].partition("##")[0]
    named = set(re.findall(r"`([a-z_]+(?:\.py|/))`", table)) - {"sgmcmc/"}
    package = ROOT / "sgmcmc"
    there = {f"{p.name}/" if p.is_dir() else p.name for p in package.iterdir() if not p.name.startswith("_")}
    assert named == there - {"py.typed", "checks.py"}
