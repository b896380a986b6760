"""Files that were cut, damaged or made to harm: a trace is read from them whole, or a ValueError says why not."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from fuzzing import trace

import sgmcmc as sg

FLIPS, CUTS = 600, 200


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "whole.npz"
    trace().save(path)
    return path.read_bytes()


def load(tmp_path: Path, content: bytes) -> sg.Trace:
    path = tmp_path / "hostile.npz"
    path.write_bytes(content)
    return sg.Trace.load(path)


def refused(tmp_path: Path, content: bytes) -> str:
    with pytest.raises(ValueError, match=r"hostile\.npz is") as caught:
        load(tmp_path, content)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def same(one: sg.Trace, two: sg.Trace) -> bool:
    return np.array_equal(one.draws, two.draws) and one.info == two.info and one.names == two.names


def test_a_file_that_was_cut_anywhere_is_refused(whole, tmp_path):
    assert same(load(tmp_path, whole), trace())
    for length in np.linspace(0, len(whole) - 1, CUTS).astype(int):
        refused(tmp_path, whole[:length])


def test_a_flipped_byte_is_seen_or_harmless(whole, tmp_path):
    rng, seen = np.random.default_rng(0), 0
    for place in rng.integers(0, len(whole), FLIPS):
        damaged = bytearray(whole)
        damaged[place] ^= int(rng.integers(1, 256))
        try:
            assert same(load(tmp_path, bytes(damaged)), trace())  # a date, or an attribute that nobody reads
        except ValueError:
            seen += 1
    assert seen > 0.7 * FLIPS


def test_random_bytes_and_a_trace_with_bytes_before_or_behind_do_no_harm(whole, tmp_path):
    rng = np.random.default_rng(1)
    for size in (0, 1, 22, 100, 5000):
        refused(tmp_path, rng.bytes(size))
    for content in (b"x" * 100 + whole, whole + b"x" * 100):
        with contextlib.suppress(ValueError):
            assert same(load(tmp_path, content), trace())


def archive(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return buffer.getvalue()


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def header(**changes) -> bytes:
    text = {"format": "sgmcmc.trace", "version": 1, "info": {"seed": 1}, "names": ["a", "b", "c"]} | changes
    return npy(np.array(json.dumps(text)))


def members(**changes: bytes) -> dict[str, bytes]:
    made = {"header": header(), "draws": npy(trace().draws)}
    made |= {f"{name}_temperature": npy(np.ones(2)) for name in ("kinetic", "configurational")}
    return {f"{name}.npy": content for name, content in (made | changes).items()}


def test_the_hostile_files_below_would_load_without_their_poison(tmp_path):
    assert load(tmp_path, archive(members())).names == ("a", "b", "c")


class Harm:
    """A pickle that writes a file when it is loaded."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("place", ["header", "draws", "final/theta"])
def test_no_pickle_is_ever_loaded(place, tmp_path):
    mark = tmp_path / "harm"
    poison = np.empty(1, dtype=object)
    poison[0] = Harm(mark)
    raw = pickle.dumps(Harm(mark))
    for content in (npy(poison), raw):
        refused(tmp_path, archive(members(**{place: content})))
        assert not mark.exists()
    refused(tmp_path, raw)
    assert not mark.exists()
    pickle.loads(raw)  # the poison is real
    assert mark.exists()


def memory_of(call) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_zip_bomb_takes_no_memory(tmp_path):
    """20 MB of zeros in 20 kB; it would be 20 GB as easily."""
    bomb = archive(members(draws=npy(np.zeros((2, 416_667, 3)))), zipfile.ZIP_DEFLATED)
    assert len(bomb) < 100_000
    assert memory_of(lambda: refused(tmp_path, bomb)) < 2_000_000


def promise(shape: tuple[int, ...], size: int) -> bytes:
    """An array that promises a shape and brings `size` bytes."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return buffer.getvalue() + bytes(size)


@pytest.mark.parametrize("shape", [(2, 10**6, 3), (2, 10**15, 3), (2**40, 2**40, 3), (-1, 20, 3), (2, 0, 3)])
def test_an_array_that_promises_more_than_it_brings_takes_no_memory(shape, tmp_path):
    content = archive(members(draws=promise(shape, 960)))
    assert memory_of(lambda: refused(tmp_path, content)) < 2_000_000


def test_sizes_that_lie_in_the_directory_too_take_no_memory(tmp_path):
    """The directory of the archive and the array agree on 48 GB; the file is smaller."""
    content = bytearray(archive(members(draws=promise((2, 10**7, 3), 960))))
    told = 480_000_000 + len(promise((2, 10**7, 3), 0))
    entry = content.index(b"draws.npy", content.index(b"PK\x01\x02")) - 46
    content[entry + 20 : entry + 28] = struct.pack("<II", told, told)
    assert memory_of(lambda: refused(tmp_path, bytes(content))) < 2_000_000


def test_members_that_share_their_bytes_are_refused(tmp_path):
    """Many names for one stretch of the file: as many times its memory."""
    content = archive(members(**{f"final/{i:04}": npy(np.zeros(50_000)) for i in range(3)}))
    data = bytearray(content)
    first = data.index(b"final/0000.npy", data.index(b"PK\x01\x02")) - 46
    place = data[first + 42 : first + 46]
    for i in (1, 2):
        entry = data.index(f"final/{i:04}.npy".encode(), first) - 46
        data[entry + 42 : entry + 46] = place
    refused(tmp_path, bytes(data))


@pytest.mark.parametrize(
    "content",
    [
        npy(np.array("[" * 100_000)),
        npy(np.array("{}")),
        npy(np.array("9" * 10_000)),
        npy(np.array("NaN")),
        npy(np.array("")),
        npy(np.array(3.0)),
        header(names="abc"),
        header(names=[1, 2, 3]),
        header(names=None),
        header(info=[]),
        header(info={"chains": 3}),
        header(info={"chains": ["a", "b"]}),
        header(info={"chains": [None, None]}),
        header(version=2),
        header(format="another"),
    ],
)
def test_a_strange_header_is_refused(content, tmp_path):
    refused(tmp_path, archive(members(header=content)))


def test_an_encrypted_member_and_a_strange_dtype_are_refused(tmp_path):
    content = bytearray(archive(members()))
    content[content.index(b"PK\x01\x02") + 8] |= 1
    refused(tmp_path, bytes(content))
    for strange in (np.zeros(3, "M8[s]"), np.zeros((2, 20, 3), complex), np.zeros(2, [("a", float)]), np.array([b"x"])):
        refused(tmp_path, archive(members(draws=npy(strange))))
