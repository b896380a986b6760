"""Other processes, threads and file systems: two that compile at once, children, read-only folders; always the same draws."""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.potentials import PythonPotential

RUN = """
import hashlib, logging
import numpy as np
import sgmcmc as sg

def digest(**options):
    model = sg.models.Gaussian(np.zeros(2), np.ones(2))
    trace = sg.sample(model, sg.SGLD(0.1), 20, **({"warmup": 0, "chains": 3, "seed": 1, "progress": False} | options))
    return hashlib.sha256(trace.draws.tobytes()).hexdigest()
"""
SCOPE: dict[str, Any] = {}
exec(RUN, SCOPE)
digest = SCOPE["digest"]  # the same function here


def start(body: str, **environment: str) -> subprocess.Popen[str]:
    code = RUN + textwrap.dedent(body)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-W", "error", "-c", code], env=os.environ | environment, **pipes)


def finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    return out.strip(), err


def test_two_processes_that_compile_at_once_into_an_empty_folder_are_both_right(tmp_path):
    both = [start("print(digest())", NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    answers = [finish(process)[0] for process in both]
    kept = {p.name for p in tmp_path.rglob("*.nbc")}
    assert kept
    assert not list(tmp_path.rglob("*.tmp.*"))
    third, _ = finish(start("print(digest())", NUMBA_CACHE_DIR=str(tmp_path)))
    assert [*answers, third] == [digest()] * 3
    assert {p.name for p in tmp_path.rglob("*.nbc")} == kept  # the third found what it needed

    some = max(tmp_path.rglob("*.nbc"), key=lambda p: p.stat().st_size)
    some.write_bytes(some.read_bytes()[:1000])  # half a file, as a full disk may leave
    assert finish(start("print(digest())", NUMBA_CACHE_DIR=str(tmp_path)))[0] == third


READ_ONLY = """
import errno
from sgmcmc.compiler import store

def refuse():
    raise OSError(errno.EROFS, "Read-only file system")

store.own_folder = refuse  # root may write anywhere
"""


def test_where_nothing_can_be_written_a_run_goes_on_with_one_warning(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", READ_ONLY + RUN + "print(digest())"],
        env=os.environ | {"HOME": str(tmp_path / "nobody"), "NUMBA_CACHE_DIR": ""},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    answer, told = finish(process)
    assert answer == digest()
    assert len(told.strip().splitlines()) == 1
    assert "compiled code is not kept" in told
    assert list(tmp_path.iterdir()) == []


def test_a_cache_folder_that_is_a_file_or_vanishes_does_no_harm(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    answer, told = finish(start("print(digest())", NUMBA_CACHE_DIR=str(file / "cache")))
    assert answer == digest()
    assert len(told.strip().splitlines()) <= 1
    body = """
    from sgmcmc.compiler import store
    def refuse(content, key): raise OSError(28, "No space left on device")
    store.sealed = refuse  # the folder is good, and full
    print(digest())
    """
    answer, told = finish(start(body, NUMBA_CACHE_DIR=str(tmp_path / "full")))
    assert answer == digest()
    assert len(told.strip().splitlines()) == 1


CHILDREN = """
import multiprocessing, sys

def in_child(queue):
    queue.put(digest(threads=2))

if __name__ == "__main__":
    mine = digest(threads=2)
    context = multiprocessing.get_context(sys.argv[1])
    queue = context.Queue()
    child = context.Process(target=in_child, args=(queue,))
    child.start()
    theirs = queue.get(timeout=120)
    child.join(60)
    print(mine == theirs, child.exitcode, mine == digest())
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_child_samples_after_its_parent_has(method, tmp_path):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no start method {method}")
    script = tmp_path / "children.py"
    script.write_text(RUN + CHILDREN, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), method], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.stdout.split() == ["True", "0", "True"], done.stderr


def plain(theta, data, rows):
    return theta * len(rows) - data[rows].sum(axis=0)


@pytest.mark.parametrize("chains", [1, 5, 37])
def test_one_thread_and_many_give_the_same_bits(chains):
    digests = {digest(threads=threads, chains=chains) for threads in (1, 2, 3, 8, 64)}
    assert len(digests) == 1
    assert digest(threads=1, chains=chains, seed=2) not in digests


def test_a_plain_python_gradient_gives_the_same_bits_on_any_threads():
    model = sg.Potential(plain, dim=2, data=np.random.default_rng(0).normal(size=(30, 2)))
    assert isinstance(model, PythonPotential)
    options = {"warmup": 0, "chains": 3, "batch_size": 4, "seed": 1, "progress": False}
    one, many = (sg.sample(model, sg.SGLD(0.01), 20, threads=n, **options).draws for n in (1, 8))
    assert (one == many).all()


# ---- no call that only POSIX has, without a way around it ---------------------------------------------------------------

POSIX = re.compile(
    r"\bos\.(fork|getuid|geteuid|getpgid|killpg|setsid|uname|sched_\w+|register_at_fork|sysconf|nice)\b"
    r"|^\s*(?:import|from) (resource|fcntl|pwd|grp|termios|posix)\b|/proc/\w+"
    r"|\bsignal\.(SIGKILL|SIGALRM|SIGUSR\d|SIGHUP|SIGCHLD|alarm|pause|setitimer|sigwait\w*|pthread_\w+)\b",
    re.MULTILINE,
)
GUARDS = re.compile(
    r"hasattr\(os|getattr\(os|except \(?(OSError|ImportError)|suppress\(OSError|sys\.platform|\.exists\(\)"
)


def unguarded(source: str) -> list[str]:
    """POSIX-only calls in functions, or at the top of a file, without a guard a few lines around."""
    lines, found = source.splitlines(), []
    for i, line in enumerate(lines):
        near = "\n".join(lines[max(0, i - 4) : i + 6])
        if POSIX.search(line) and not line.lstrip().startswith(("#", '"""')) and not GUARDS.search(near):
            found.append(line.strip())
    return found


def test_nothing_that_only_posix_has_is_called_without_a_way_around_it():
    package = Path(sg.__file__).parent
    found = {str(p.relative_to(package)): unguarded(p.read_text(encoding="utf-8")) for p in package.rglob("*.py")}
    assert {name: lines for name, lines in found.items() if lines} == {}
    assert unguarded("import resource") == ["import resource"]
    assert unguarded("signal.alarm(1)") == ["signal.alarm(1)"]
    assert unguarded("signal.signal(signal.SIGINT, f)") == []
    assert unguarded("x = os.sched_getaffinity(0)") == ["x = os.sched_getaffinity(0)"]
