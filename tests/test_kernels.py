"""The disk cache: hit by a second process, never stale, blind to numbers."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from sgmcmc import kernels
from sgmcmc.kernels import fingerprint

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


def test_sources_that_are_edited_while_a_process_runs_are_not_taken_for_the_loaded_ones(monkeypatch):
    assert kernels._loaded_sources() == kernels._loaded_sources() == kernels.package_fingerprint()
    monkeypatch.setattr(kernels, "_AT_IMPORT", b"another version")
    assert kernels._loaded_sources() != kernels._loaded_sources()


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


def saved_at_once(cache_class, folder):
    """What two processes find that save at the same time: each has read the index before the other writes, the data of the
    first comes last."""
    one, two = (cache_class(str(folder), "kernel-1.py3", "stamp") for _ in range(2))
    late = []
    one._save_data = lambda name, data: late.append((name, data))
    seen = one._load_index()
    two._load_index = lambda: dict(seen)
    one.save("a" * 64, "code of a")
    two.save("b" * 64, "code of b")
    cache_class._save_data(one, *late[0])
    third = cache_class(str(folder), "kernel-1.py3", "stamp")
    return third.load("a" * 64), third.load("b" * 64)


def test_processes_that_save_at_once_do_not_get_each_others_code(tmp_path):
    from numba.core.caching import IndexDataCacheFile

    from sgmcmc.kernels import FilePerKey

    (tmp_path / "ours").mkdir()
    (tmp_path / "numbered").mkdir()
    assert saved_at_once(FilePerKey, tmp_path / "ours") == ("code of a", "code of b")
    assert (
        saved_at_once(IndexDataCacheFile, tmp_path / "numbered")[1] == "code of a"
    )  # the negative control: Numba's own


def test_a_flushed_cache_is_empty(tmp_path):
    from sgmcmc.kernels import FilePerKey

    cache = FilePerKey(str(tmp_path), "kernel-1.py3", "stamp")
    assert cache.load("a" * 64) is None
    cache.save("a" * 64, 1)
    assert cache.load("a" * 64) == 1
    cache.flush()
    assert cache.load("a" * 64) is None


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


def test_a_kernel_for_a_class_of_the_script_is_loaded_once_and_not_for_every_call(project):
    """Such a class is kept by value: what is loaded belongs to a copy of it, and would be loaded again for every call."""
    (project / "script.py").write_text(OF_THE_SCRIPT)
    assert run(project) == (10.0, 0)
    assert run(project) == (10.0, 1)
