"""The disk cache: hit by a second process, never stale, blind to numbers."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from numba.extending import is_jitted

import sgmcmc
from sgmcmc.compiler import fingerprints
from sgmcmc.compiler.fingerprints import fingerprint
from sgmcmc.compiler.intrinsics import Intrinsic
from sgmcmc.dispatch import open_functions

PARTS = """
from typing import NamedTuple
from sgmcmc.dispatch import implements, open_function

FACTOR = 2.0

@open_function
def change(rule, x):
    "What a rule makes of x."

class Rule(NamedTuple):
    by: float

def helper(x):
    return x

@implements(change, Rule)
def _(rule, x):
    return FACTOR * x * rule.by
"""

KERNEL = """
from sgmcmc.kernels import kernel
from parts import change

@kernel
def apply(rule, x):
    return change(rule, x)
"""

SCRIPT = """
import sys
from kernels_of_mine import apply
from parts import Rule
print(apply(Rule(3.0), 5.0), sum(apply.stats.cache_hits.values()))
apply(Rule(4.0), 6.0)
assert len(apply.overloads) == 1, "another value compiled something"
"""


@pytest.fixture
def project(tmp_path):
    for name, text in (("parts.py", PARTS), ("kernels_of_mine.py", KERNEL), ("script.py", SCRIPT)):
        (tmp_path / name).write_text(textwrap.dedent(text))
    return tmp_path


def run(folder) -> tuple[float, int]:
    """What the script printed: the result, and how many kernels came from the cache."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    value, hits = done.stdout.split()
    return float(value), int(hits)


def test_a_second_process_finds_the_kernel_and_an_edited_leaf_is_never_run_stale(project):
    assert run(project) == (30.0, 0)
    assert run(project) == (30.0, 1)
    parts = project / "parts.py"
    parts.write_text(parts.read_text().replace("FACTOR * x", "FACTOR + x"))  # another file than the kernel's
    assert run(project) == (17.0, 0)
    parts.write_text(parts.read_text().replace("FACTOR = 2.0", "FACTOR = 3.0"))  # a value that the leaf reads
    assert run(project) == (18.0, 0)
    assert run(project) == (18.0, 1)


def test_an_edited_kernel_outside_of_the_package_is_never_run_stale(project):
    assert run(project) == (30.0, 0)
    kernel = project / "kernels_of_mine.py"
    kernel.write_text(kernel.read_text().replace("return change(rule, x)", "return change(rule, x) + 1.0"))
    assert run(project) == (31.0, 0)
    assert run(project) == (31.0, 1)


def all_modules():
    """Every module of the package that can be imported here."""
    skipped = (
        "sgmcmc.__main__",
        "sgmcmc.gpu",
        "sgmcmc.run.gpu",
        "sgmcmc.evidence.benchmarks",
        "sgmcmc.adapters",
    )
    for info in pkgutil.walk_packages(sgmcmc.__path__, "sgmcmc."):
        if not info.name.startswith(skipped):
            yield importlib.import_module(info.name)


def test_every_file_that_a_compiled_function_comes_from_is_in_the_key(tmp_path, monkeypatch):
    """By the functions themselves: implementations, leaves and loops, kernels, intrinsics; and what compiles them."""
    modules = list(all_modules())
    found = {
        f.__code__.co_filename
        for o in open_functions()
        for f in (*o.implementations.values(), *o.device_forms.values())
    }
    for module in modules:
        for value in vars(module).values():
            inside = value.py_func if is_jitted(value) else value.plain if isinstance(value, Intrinsic) else None
            found |= set() if inside is None else {inside.__code__.co_filename}
    found |= {str(path) for path in (fingerprints.ROOT / Path("compiler")).glob("*.py")}
    files = {os.path.relpath(file, fingerprints.ROOT) for file in found if file.startswith(fingerprints.ROOT)}
    assert len(files) > 40
    copy = tmp_path / "sgmcmc"
    shutil.copytree(fingerprints.ROOT, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(fingerprints, "ROOT", str(copy))
    before = fingerprints.package_fingerprint()
    for file in sorted(files):
        content = (copy / file).read_bytes()
        (copy / file).write_bytes(content + b"\n")
        assert fingerprints.package_fingerprint() != before, file
        (copy / file).write_bytes(content)
    assert fingerprints.package_fingerprint() == before
    (copy / "plots" / "new.py").write_text("")  # the control: what compiles nothing does not count
    assert fingerprints.package_fingerprint() == before


def test_a_kernel_of_a_folder_that_does_not_count_is_known_by_its_bytecode():
    def one(x):
        return x + 1.0

    def two(x):
        return x + 2.0

    def of(module):
        for function in (one, two):
            function.__module__, function.__qualname__ = module, "kernel"
        return fingerprints.fingerprint(one), fingerprints.fingerprint(two)

    first, second = of("sgmcmc.evidence.benchmarks.fill")
    assert first != second
    first, second = of("sgmcmc.rng.normal_fills")  # whose source is in every key
    assert first == second


SAME_NAME = """
import numba, numpy as np, sys, sgmcmc as sg
from sgmcmc.run.loop_compiled import run_chunk

def sampled(factor):
    @numba.njit
    def grad(theta):
        return factor * theta
    model = sg.Potential(grad, dim=2)
    options = {"warmup": 0, "chains": 1, "seed": 1, "progress": False, "warn": False}
    return sg.sample(model, sg.SGLD(0.1), 50, init=np.ones(2), **options).draws.sum()

print([float(sampled(float(word))) for word in sys.argv[1:]], sum(run_chunk.stats.cache_misses.values()))
"""


def sums(folder, *factors, **settings):
    """What a process finds with gradients of one name and other content, and how many kernels it compiled."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)} | settings
    command = [sys.executable, "-c", SAME_NAME, *factors]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    values, _, misses = done.stdout.strip().rpartition(" ")
    return json.loads(values), int(misses)


def test_functions_of_one_name_that_two_processes_have_kept_stay_apart_in_a_third(tmp_path):
    """Numba numbers what it compiles from 1 in every process, and code is found by that name (numba#10486)."""
    (one, _), (two, _) = sums(tmp_path, "1.0"), sums(tmp_path, "3.0")
    assert one != two
    assert sums(tmp_path, "1.0", "3.0") == ([*one, *two], 0)
    assert sums(tmp_path, "3.0", "1.0") == ([*two, *one], 0)


FORKED = """
import os, numba, sgmcmc.run.loop_compiled
for _ in range(2):
    if os.fork() == 0:
        compiled = numba.njit(lambda x: x + 1)
        compiled(1.0)
        print([found.fndesc.unique_name for found in compiled.overloads.values()], flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.skipif(os.environ.get("SGMCMC_PLAIN_NUMBA", "0") == "1", reason="the plain way leaves names to Numba")
def test_children_of_one_process_do_not_go_on_numbering_from_the_same_number():
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, check=True)
    one, two = done.stdout.splitlines()
    assert one != two


@pytest.mark.parametrize("setting", ["NUMBA_BOUNDSCHECK", "NUMBA_OPT", "NUMBA_LOOP_VECTORIZE"])
def test_settings_of_numbas_that_shape_machine_code_are_in_the_key(tmp_path, setting):
    """Somebody who looks for an index that is out of bounds would be served the kernel that does not look."""
    assert sums(tmp_path, "1.0")[1] == 1
    other = sums(tmp_path, "1.0", **{setting: "0" if setting == "NUMBA_LOOP_VECTORIZE" else "1"})
    assert other[1] == 1
    assert sums(tmp_path, "1.0")[1] == 0


def test_sources_that_are_edited_while_a_process_runs_are_not_taken_for_the_loaded_ones(monkeypatch):
    assert fingerprints._loaded_sources() == fingerprints._loaded_sources() == fingerprints.package_fingerprint()
    monkeypatch.setattr(fingerprints, "_AT_IMPORT", b"another version")
    found = set()
    for _ in range(2):
        monkeypatch.setattr(fingerprints, "_looked", [-1.0, b""])
        found.add(fingerprints._loaded_sources())
    assert len(found) == 2


def make(constant, inner):
    def outer(x):
        return inner(x) + constant

    return outer


def square(x):
    return x * x


def cube(x):
    return x * x * x


def test_a_fingerprint_sees_closures_and_the_functions_behind_them():
    assert fingerprint(make(1, square)) == fingerprint(make(1, square))
    assert fingerprint(make(1, square)) != fingerprint(make(2, square))
    assert fingerprint(make(1, square)) != fingerprint(make(1, cube))


OF_THE_SCRIPT = """
from typing import NamedTuple
from kernels_of_mine import apply
from parts import change
from sgmcmc.dispatch import implements

class Mine(NamedTuple):
    by: float

@implements(change, Mine)
def _(rule, x):
    return x + rule.by

for x in (5.0, 6.0, 7.0):
    found = apply(Mine(3.0), x)
print(found, sum(apply.stats.cache_hits.values()))
assert len(apply.overloads) == 1, "a call did not find what the one before it had loaded"
"""


@pytest.mark.skipif(
    os.environ.get("SGMCMC_PLAIN_NUMBA", "0") == "1",
    reason="the plain way compiles for a class of a script in every process",
)
def test_a_kernel_for_a_class_of_the_script_is_loaded_once_and_not_for_every_call(project):
    """Such a class is kept by value: what is loaded belongs to a copy of it, and would be loaded again for every call."""
    (project / "script.py").write_text(OF_THE_SCRIPT)
    assert run(project) == (10.0, 0)
    assert run(project) == (10.0, 1)
