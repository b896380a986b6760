"""The files of kernels: whole and ours, or compiled again; pruned, and gone when they are removed."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numba
import pytest

from sgmcmc.compiler import store
from sgmcmc.compiler.store import MAGIC, Store

KEY = "a" * 64
posix = pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX")


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A store with one entry, and its file."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(store, "INSTALLED", tmp_path / "installed")
    monkeypatch.setattr(store, "_told", set())
    found = Store("run_chunk")
    found.save(KEY, {"code": list(range(1000))})
    return found, store.folder() / found.file_name(KEY)


def test_what_was_saved_is_found_under_its_key_alone(kept):
    found, _ = kept
    assert found.load(KEY) == {"code": list(range(1000))}
    assert found.load("b" * 64) is None
    assert Store("another").load(KEY) is None
    found.flush()
    assert found.load(KEY) is None


@pytest.mark.parametrize("place", [0, len(MAGIC), len(MAGIC) + 31, len(MAGIC) + 32, 500, -1])
def test_one_flipped_bit_anywhere_is_a_miss(kept, place):
    found, file = kept
    content = bytearray(file.read_bytes())
    content[place] ^= 4
    file.write_bytes(content)
    assert found.load(KEY) is None
    found.save(KEY, 1)  # and is mended by what is compiled then
    assert found.load(KEY) == 1


def test_half_a_file_an_empty_one_and_anothers_key_are_misses(kept):
    found, file = kept
    content = file.read_bytes()
    for wrong in (content[: len(content) // 2], b"", b"x" * 10, pickle.dumps({"code": 1})):
        file.write_bytes(wrong)
        assert found.load(KEY) is None
    file.write_bytes(content)
    (file.parent / found.file_name("b" * 64)).write_bytes(content)  # a file under a name that is not its own
    assert found.load("b" * 64) is None
    assert found.load(KEY) is not None


class Trap:
    """A pickle that leaves a trace when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@posix
def test_a_file_that_others_may_write_to_or_own_is_not_even_read(kept, tmp_path, monkeypatch):
    found, file = kept
    trace = tmp_path / "trace"
    found.save(KEY, Trap(str(trace)))
    for mode in (0o620, 0o602, 0o666):
        file.chmod(mode)
        assert found.load(KEY) is None
        assert not trace.exists()
    file.chmod(0o600)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)  # as another user sees it
    if os.getuid() != 0:
        assert found.load(KEY) is None
    monkeypatch.undo()


@posix
@pytest.mark.skipif(os.name == "posix" and os.getuid() != 0, reason="to give a file to another user takes root")
def test_a_file_or_folder_of_another_user_is_not_trusted(kept, tmp_path):
    found, file = kept
    trace = tmp_path / "trace"
    found.save(KEY, Trap(str(trace)))
    os.chown(file, 12345, 12345)
    assert found.load(KEY) is None
    os.chown(file, 0, 0)
    os.chown(file.parent, 12345, 12345)
    assert found.load(KEY) is None
    assert not trace.exists()
    os.chown(file.parent, 0, 0)
    found.load(KEY)
    assert trace.exists()  # the control: nothing else kept it from being read


@posix
def test_a_folder_that_others_may_write_to_is_not_used_and_said_once(kept, caplog):
    found, file = kept
    file.parent.chmod(0o777)
    assert found.load(KEY) is None
    found.save(KEY, 2)
    assert [record.message.count("others may write to it (mode 777)") for record in caplog.records] == [1]


@posix
def test_a_link_is_not_followed(kept, tmp_path):
    found, file = kept
    content = file.read_bytes()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(content)
    file.unlink()
    file.symlink_to(elsewhere)
    assert found.load(KEY) is None


@posix
def test_what_is_made_is_for_its_owner_alone_whatever_the_umask(kept, tmp_path, monkeypatch):
    before = os.umask(0)
    try:
        monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "shared"))
        found = Store("run_chunk")
        found.save(KEY, 1)
        assert found.load(KEY) == 1
        assert (store.folder().stat().st_mode & 0o777, next(store.folder().iterdir()).stat().st_mode & 0o777) == (
            0o700,
            0o600,
        )
    finally:
        os.umask(before)


def test_what_was_not_used_for_long_goes_and_what_is_used_stays(kept):
    found, file = kept
    old, used, unfinished = (file.parent / name for name in ("old.1.nbc", "used.1.nbc", "x.tmp"))
    for path, age in ((old, 61), (used, 59), (unfinished, 1)):
        path.write_bytes(b"1")
        os.utime(path, (time.time() - age * 86400.0,) * 2)
    os.utime(file, (time.time() - 59 * 86400.0,) * 2)
    found.load(KEY)  # in use
    store.prune(file.parent)
    assert {path.name for path in file.parent.iterdir()} == {used.name, file.name}
    assert time.time() - file.stat().st_mtime < 60.0


def test_beyond_a_gigabyte_the_longest_unused_goes(kept, monkeypatch):
    _, file = kept
    monkeypatch.setattr(store, "BYTES", 3 * file.stat().st_size)
    for number in range(5):
        copy = file.parent / f"{number}.nbc"
        copy.write_bytes(file.read_bytes())
        os.utime(copy, (time.time() - 100.0 * number - 100.0,) * 2)
    store.prune(file.parent)
    assert {path.name for path in file.parent.iterdir()} == {file.name, "0.nbc", "1.nbc"}


def test_all_can_be_removed(kept):
    _, file = kept
    assert store.remove() == 1
    assert not file.parent.exists()
    assert store.remove() == 0


def test_without_a_home_what_came_with_the_installation_is_still_found(tmp_path, monkeypatch, caplog):
    import zlib

    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(store, "INSTALLED", tmp_path)
    monkeypatch.setattr(store, "_told", set())
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(blocked / "cache"))
    monkeypatch.setattr(Path, "home", lambda: blocked / "home")
    found = Store("run_chunk")
    assert found.load(KEY) is None
    (tmp_path / found.file_name(KEY)).write_bytes(zlib.compress(store.sealed(pickle.dumps(7), KEY)))
    assert found.load(KEY) == 7
    found.save(KEY, 8)  # nowhere, without an error
    assert found.load(KEY) == 7
    assert len(caplog.records) == 1
    assert "compiled code is not kept" in caplog.text


SCRIPT = """
import numpy as np, sgmcmc as sg
from sgmcmc.run.loop_lanes import run_lanes
options = {"warmup": 0, "chains": 2, "seed": 1, "progress": False, "warn": False}
draws = sg.sample(sg.models.Gaussian(np.zeros(2), 1.0), sg.SGLD(0.1), 20, **options).draws
print(draws.sum(), sum(run_lanes.stats.cache_hits.values()))
"""


def test_flipped_bits_in_a_real_kernel_never_harm_a_run(tmp_path):
    def run():
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        value, hits = done.stdout.split()
        return value, int(hits)

    first = run()
    assert run() == (first[0], 1)
    (file,) = (path for path in tmp_path.rglob("run_lanes*.nbc"))
    content = file.read_bytes()
    for place in (len(content) // 3, 2 * len(content) // 3):  # in the middle of machine code
        broken = bytearray(content)
        broken[place] ^= 1
        file.write_bytes(broken)
        assert run() == (first[0], 0)
