"""Files that nobody wrote on purpose, or somebody wrote with bad intent: refused in one sentence, or without effect."""

from __future__ import annotations

import io
import pickle
import shutil
import struct
import zipfile

import numpy as np
import pytest
from numpy.lib import format as npy

import sgmcmc as sg
from sgmcmc.run.checkpoint import load

MODEL, SAMPLER = sg.models.Gaussian(np.array([1.0, -2.0]), 1.0), sg.SGNHT(0.2)
OPTIONS = {"draws": 20, "warmup": 0, "chains": 2, "seed": 1, "progress": False}


def run(folder, **options):
    return sg.sample(MODEL, SAMPLER, checkpoint=folder / "run.npz", **(OPTIONS | {"resume": True} | options))


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("original")
    trace = run(folder)
    return folder, trace


@pytest.fixture
def copy(original, tmp_path):
    """A folder with the files of a finished run, to be spoiled."""
    for name in ("run.npz", "run.npz.draws.npy"):
        shutil.copy(original[0] / name, tmp_path / name)
    return tmp_path


def is_refused_or_the_same(folder, known):
    """Whether a file was refused; if it was not, nothing in it may have changed."""
    try:
        found = load(folder / "run.npz")
    except ValueError as error:
        return "\n" not in str(error)
    assert found.header == known.header
    assert found.arrays.keys() == known.arrays.keys()
    assert all(np.array_equal(a, known.arrays[name]) for name, a in found.arrays.items())
    return False


def test_no_flipped_byte_of_a_checkpoint_is_ever_believed(copy):
    known, data = load(copy / "run.npz"), bytearray((copy / "run.npz").read_bytes())
    refused = 0
    places = sorted({*range(0, len(data), 9), *range(len(data) - 1800, len(data), 3)})  # at the end is the directory
    for place in places:
        data[place] ^= 0xFF
        (copy / "run.npz").write_bytes(data)
        refused += is_refused_or_the_same(copy, known)
        data[place] ^= 0xFF
    assert refused > 0.7 * len(places)  # the rest are times and flags of the zip file, which mean nothing


def test_a_changed_number_with_a_right_checksum_would_be_seen(copy):
    # The control of the test above: it compares contents, and does not only wait for errors.
    known = load(copy / "run.npz")
    run(copy, draws=20, seed=1)
    arrays = dict(known.arrays, sums=known.arrays["sums"] + 1.0)
    np.savez(copy / "run.npz", **arrays)
    with pytest.raises(AssertionError):
        is_refused_or_the_same(copy, known)


def test_a_checkpoint_that_is_cut_anywhere_is_refused(copy):
    known, data = load(copy / "run.npz"), (copy / "run.npz").read_bytes()
    for length in range(0, len(data), 7):
        (copy / "run.npz").write_bytes(data[:length])
        assert is_refused_or_the_same(copy, known), length
    (copy / "run.npz").write_bytes(data[: len(data) // 2] + b"\0" * (len(data) - len(data) // 2))
    assert is_refused_or_the_same(copy, known)


class Bomb:
    """Leaves a file behind if it is ever unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def object_array(folder):
    buffer = io.BytesIO()
    np.save(buffer, np.array([Bomb(folder / "exploded")], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def rewritten(path, changes, compress=zipfile.ZIP_STORED):
    """The same archive with other members."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()} | changes
    with zipfile.ZipFile(path, "w", compress) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


@pytest.mark.parametrize("name", ["theta.npy", "header.npy", "extra.npy"])
def test_a_pickle_in_a_checkpoint_is_never_loaded(name, copy):
    rewritten(copy / "run.npz", {name: object_array(copy)})
    with pytest.raises(ValueError, match="is not a whole checkpoint"):
        run(copy)
    assert not (copy / "exploded").exists()
    pickle.loads(pickle.dumps(Bomb(copy / "exploded"))).close()
    assert (copy / "exploded").exists()  # the bomb works


def test_a_pickle_in_place_of_a_file_is_never_loaded(copy, tmp_path):
    for name in ("run.npz", "run.npz.draws.npy"):
        content = (copy / name).read_bytes()
        for bad in (pickle.dumps(Bomb(tmp_path / "exploded")), object_array(tmp_path)):
            (copy / name).write_bytes(bad)
            with pytest.raises(ValueError, match=r"is not a whole checkpoint|cannot be gone on from"):
                run(copy)
        (copy / name).write_bytes(content)
    assert not (tmp_path / "exploded").exists()


def promise(shape, dtype="<f8"):
    """The header of an array, without the array."""
    buffer = io.BytesIO()
    npy.write_array_header_1_0(buffer, {"descr": dtype, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def test_bombs_are_refused_before_memory_is_taken(copy):
    path, data = copy / "run.npz", (copy / "run.npz").read_bytes()
    rewritten(path, {"theta.npy": promise((1 << 40,))})
    with pytest.raises(ValueError, match="which it does not hold"):
        load(path)
    path.write_bytes(data)
    rewritten(path, {"theta.npy": promise((1 << 24,)) + bytes(1 << 27)}, zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="is compressed"):
        load(path)
    path.write_bytes(data)
    rewritten(path, {f"{i}.npy": b"" for i in range(2000)})
    with pytest.raises(ValueError, match="members"):
        load(path)


def test_members_that_lie_over_each_other_are_refused(copy):
    path = copy / "run.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(10):
            archive.writestr(f"{i:02}.npy", promise((1000,)) + bytes(8000))
    data = bytearray(path.read_bytes())
    first = data.index(b"PK\x01\x02")
    place = first
    for _ in range(10):  # every entry of the directory shall point to the first member
        lengths = struct.unpack_from("<HHH", data, place + 28)
        struct.pack_into("<I", data, place + 42, 0)
        place += 46 + sum(lengths)
    path.write_bytes(data[: 8128 + 40] + data[first:])
    with pytest.raises(ValueError, match="is not a whole checkpoint"):
        load(path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("theta", np.zeros((2, 3)), "theta is float64 of shape"),
        ("theta", np.zeros((2, 2), np.float32), "theta is float32"),
        ("step", np.array([10**9, 0]), "not one of this run"),
        ("step", np.array([-1, 0]), "not one of this run"),
        ("number", np.array([1, 0]), "not one of this run"),
        ("draw_counts", np.array([21, 20]), "it vouches for"),
        ("draw_counts", np.array([20]), "it vouches for"),
        ("draw_sums", np.array([1, 2], np.uint32), "does not hold the 20 draws of chain 0"),
    ],
)
def test_arrays_that_do_not_fit_the_run_never_reach_a_kernel(name, value, message, copy):
    buffer = io.BytesIO()
    np.save(buffer, value)
    rewritten(copy / "run.npz", {f"{name}.npy": buffer.getvalue()})
    with pytest.raises(ValueError, match=f"cannot be gone on from: .*{message}"):
        run(copy)


def test_an_array_that_is_missing_is_named(copy):
    with zipfile.ZipFile(copy / "run.npz") as archive:
        members = {n: archive.read(n) for n in archive.namelist() if n != "xi.npy"}
    with zipfile.ZipFile(copy / "run.npz", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match="xi is missing"):
        run(copy)


def test_draws_that_were_changed_cut_or_lost_are_refused(copy):
    path = copy / "run.npz.draws.npy"
    data = path.read_bytes()
    for place in (10, 130, len(data) - 1):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(ValueError, match=r"cannot be gone on from: .*run\.npz\.draws\.npy"):
            run(copy)
    for length in (0, 5, 128, len(data) - 1):
        path.write_bytes(data[:length])
        with pytest.raises(ValueError, match=r"cannot be gone on from: .*run\.npz\.draws\.npy"):
            run(copy)
    path.unlink()
    with pytest.raises(ValueError, match="is gone"):
        run(copy)


def test_draws_behind_those_that_were_saved_may_be_torn(original, tmp_path, monkeypatch):
    from sgmcmc.run import scheduler

    calls, real = [], scheduler.wait

    def wait(*args, **options):
        calls.append(None)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return real(*args, **options)

    monkeypatch.setattr("sgmcmc.run.job.CHUNK_SECONDS", 1e-12)
    monkeypatch.setattr(scheduler, "wait", wait)
    part = run(tmp_path)
    assert 0 < part.n_draws < 20
    data = bytearray((tmp_path / "run.npz.draws.npy").read_bytes())
    begin = 128 + 16 * 19
    data[begin : begin + 16] = b"torn" * 4
    (tmp_path / "run.npz.draws.npy").write_bytes(data)
    np.testing.assert_array_equal(run(tmp_path).draws, original[1].draws)


def test_a_trace_is_no_checkpoint(copy, original):
    original[1].save(copy / "run.npz")
    with pytest.raises(ValueError, match=r"its header does not say sgmcmc\.checkpoint"):
        run(copy)
