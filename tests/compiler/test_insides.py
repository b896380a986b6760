"""Numba's insides are touched in one file, and a Numba that has changed them is answered by the plain way."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sgmcmc
from sgmcmc.compiler import backend, numba_bridge

PACKAGE, ROOT = Path(sgmcmc.__file__).parent, Path(__file__).parents[2]
PUBLIC = {
    "numba",
    "numba.extending",
    "numba.types",
    "numba.typed",
    "numba.cuda",
    "llvmlite",
    "llvmlite.binding",
    "llvmlite.ir",
}
BRIDGE = PACKAGE / "compiler" / "numba_bridge.py"
# What the tests of the tests need: stand-ins for a device, and a look at what LLVM made.
STAND_INS = {
    "support/cuda_caching.py",
    "support/cuda_compiling.py",
    "gpu/test_cuda_state.py",
    "compiler/test_interrupts.py",
}


def insides(source: str) -> set[str]:
    """Modules of Numba and llvmlite that are not public, by the syntax tree; also those that are reached by attributes."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            names = [
                f"{node.module}.{alias.name}" if f"{node.module}.{alias.name}" in PUBLIC else node.module
                for alias in node.names
            ]
            names += [f"{node.module}.{alias.name}" for alias in node.names if alias.name.startswith("_")]
        elif isinstance(node, ast.Attribute) and re.match(r"numba\.(core|np|cuda\.\w)", ast.unparse(node)):
            names = (
                [ast.unparse(node)] if ast.unparse(node) not in ("numba.cuda.jit", "numba.cuda.is_available") else []
            )
        else:
            continue
        found |= {name for name in names if name.split(".")[0] in ("numba", "llvmlite") and name not in PUBLIC}
    return found


def test_insides_are_seen_where_there_are_some():
    assert insides("from numba.core import config")
    assert insides("import numba.core.dispatcher")
    assert insides("from numba.extending import _Intrinsic")
    assert insides("x = numba.core.dispatcher.Dispatcher")
    assert insides("def f():\n    from numba.np.arrayobj import populate_array")
    assert not insides(
        "from numba import njit, types\nfrom numba.extending import intrinsic\nimport llvmlite.binding as ll"
    )


def test_no_other_file_touches_the_insides_of_numba():
    folders = [ROOT / name for name in ("tests", "validation", "docs", "examples", "benchmarks")]  # where they are
    files = [path for folder in (PACKAGE, *folders) for path in folder.rglob("*.py") if path != BRIDGE]
    assert len(files) > 300
    touched = {f"{p.parent.name}/{p.name}": insides(p.read_text(encoding="utf-8")) for p in files}
    assert {name: found for name, found in touched.items() if found and name not in STAND_INS} == {}
    assert insides(BRIDGE.read_text(encoding="utf-8"))  # the control


def test_the_table_of_insides_is_whole_and_short():
    """What the bridge imports from insides, or reads of their objects by a name with an underscore, is in its table."""
    tables = [name for name, _use, _without in numba_bridge.INSIDES], numba_bridge.CUDA_INSIDES
    listed = {part for names in tables for name in names for part in re.split(r"[:.]|\(\)", name)}
    tree = ast.parse(BRIDGE.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    own = {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)} | {"_keep", "_replace"}
    imported = [n for n in nodes if isinstance(n, ast.ImportFrom) and re.match(r"numba\.(core|cuda\.)", str(n.module))]
    names = {alias.name for node in imported for alias in node.names}
    names |= {
        n.attr for n in nodes if isinstance(n, ast.Attribute) and re.match("_[a-z]", n.attr) and n.attr not in own
    }
    assert names <= listed
    assert numba_bridge.missing() == []
    assert len(numba_bridge.INSIDES) <= 25


@pytest.mark.parametrize("name", [name for name, _use, _without in numba_bridge.INSIDES])
def test_without_any_one_of_them_the_plain_way_is_chosen(name, monkeypatch):
    module, _, path = name.partition(":")
    *holders, last = path.split(".")
    holder = importlib.import_module(module)
    for part in holders:
        holder = getattr(holder, part.removesuffix("()"))
    if "()" in path:
        monkeypatch.setattr(numba_bridge, "_is_set_in", lambda cls, attribute: (cls, attribute) != (holder, last))
    else:
        for owner in holder.__mro__ if isinstance(holder, type) else [holder]:
            if last in vars(owner):
                monkeypatch.delattr(owner, last)
    assert name in str(backend.plain_because())


def test_versions_that_nobody_tried_and_the_variable_choose_it_too(monkeypatch):
    monkeypatch.delenv("SGMCMC_PLAIN_NUMBA", raising=False)
    assert backend.plain_because() is None
    for version in ("0.60.0", "0.999.1", "1.2.0"):
        monkeypatch.setattr(backend.numba, "__version__", version)
        assert version in str(backend.plain_because())
    monkeypatch.undo()
    monkeypatch.setenv("SGMCMC_PLAIN_NUMBA", "1")
    assert "SGMCMC_PLAIN_NUMBA" in str(backend.plain_because())
    monkeypatch.setenv("SGMCMC_PLAIN_NUMBA", "0")
    assert backend.plain_because() is None


RENAMED = """
import warnings
import numba.core.compiler as compiler
{change}
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    import numpy as np, sgmcmc as sg
    from sgmcmc.compiler import backend
    options = {{"warmup": 0, "chains": 2, "seed": 1, "progress": False, "warn": False}}
    draws = sg.sample(sg.models.Gaussian(np.zeros(2), 1.0), sg.SGLD(0.1), 20, **options).draws
print(draws.sum(), backend._backend.__name__.split(".")[-1], sum("five times as long" in str(w.message) for w in told))
"""


def test_a_numba_that_renames_something_still_samples_with_one_warning(tmp_path):
    found = {}
    for change in ("pass", "del compiler.CompileResult._rebuild"):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, "-c", RENAMED.format(change=change)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        value, way, told = done.stdout.split()
        found[way] = float(value), int(told)
    assert found["numba_bridge"][1] == 0
    assert found["plain"][1] == 1
    assert found["plain"][0] == pytest.approx(found["numba_bridge"][0], rel=1e-12)
