"""Data sets: found, counted, refused when damaged; folds that are the same for everybody."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

from sgmcmc import datasets


def ripley(rows=250, ones=125, columns=2):
    rng = np.random.default_rng(1)
    y = (np.arange(rows) < ones).astype(np.uint8)
    return {"X": rng.normal(size=(rows, columns)) + y[:, None], "y": y}


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.delenv(datasets.VARIABLE, raising=False)
    np.savez(tmp_path / "blr_ripley.npz", **ripley())
    return tmp_path


def test_a_data_set_is_found_in_the_folder_given_or_in_the_one_of_the_environment(place, monkeypatch):
    given = datasets.load("ripley", place)
    monkeypatch.setenv(datasets.VARIABLE, str(place))
    found = datasets.load("ripley")
    np.testing.assert_array_equal(given.X, found.X)
    assert given.X.shape == (250, 2)
    assert given.y.sum() == 125


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (ripley(rows=249), r"rows \(249, 2\), not \(250, 2\)"),
        (ripley(ones=100), "rows of class 1 100, not 125"),
        (ripley(columns=3), r"rows \(250, 3\)"),
        ({"X": np.zeros((250, 2))}, "it lacks 'y'"),
        (ripley() | {"X": np.full((250, 2), np.nan)}, "finite False"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_refused(place, arrays, message):
    np.savez(place / "blr_ripley.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        datasets.load("ripley", place)


def test_a_damaged_or_missing_file_is_one_sentence(place, monkeypatch):
    (place / "blr_ripley.npz").write_bytes((place / "blr_ripley.npz").read_bytes()[:500])
    with pytest.raises(ValueError, match=r"blr_ripley.npz is damaged .*; get it again"):
        datasets.load("ripley", place)
    with pytest.raises(FileNotFoundError, match=r"blr_heart.npz is not there; get heart from the UCI repository"):
        datasets.load("heart", place)
    with pytest.raises(
        FileNotFoundError, match=r"ripley is not on OpenML; get it from .* set SGMCMC_DATA to the folder"
    ):
        datasets.load("ripley")
    with pytest.raises(ValueError, match=r"name='iris'"):
        datasets.load("iris", place)


class FakeOpenML(types.ModuleType):
    def __init__(self, answer):
        super().__init__("sklearn.datasets")
        self.answer = answer

    def fetch_openml(self, data_id, as_frame, parser):
        if isinstance(self.answer, Exception):
            raise self.answer
        assert data_id == 53
        return types.SimpleNamespace(data=self.answer, target=np.array(["absent"] * 150 + ["present"] * 120))


def test_without_a_folder_it_comes_from_openml_and_is_counted_too(monkeypatch):
    monkeypatch.delenv(datasets.VARIABLE, raising=False)
    monkeypatch.setitem(sys.modules, "sklearn", types.ModuleType("sklearn"))
    monkeypatch.setitem(sys.modules, "sklearn.datasets", FakeOpenML(np.ones((270, 13))))
    heart = datasets.load("heart")
    assert heart.X.shape == (270, 13)
    assert heart.y.sum() == 120
    monkeypatch.setitem(sys.modules, "sklearn.datasets", FakeOpenML(np.ones((269, 13))))
    with pytest.raises(ValueError, match="heart is not what it should be"):
        datasets.load("heart")
    monkeypatch.setitem(sys.modules, "sklearn.datasets", FakeOpenML(OSError("no network")))
    with pytest.raises(
        OSError, match=r"could not be fetched from OpenML \(no network\); get it from .* set SGMCMC_DATA"
    ):
        datasets.load("heart")
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match=r"heart can be fetched with scikit-learn .*; or get it from"):
        datasets.load("heart")


def test_folds_are_stratified_disjoint_standardised_and_the_same_every_time(place):
    data = datasets.load("ripley", place)
    tests = []
    for number in range(datasets.FOLDS):
        train, test = datasets.fold(data, number, seed=3)
        again, _ = datasets.fold(data, number, seed=3)
        np.testing.assert_array_equal(train.X, again.X)
        assert train.X.shape == (200, 6)  # x, x², x³ of both columns
        np.testing.assert_allclose(train.X.mean(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(train.X.std(axis=0), 1.0, rtol=1e-12)
        assert test.y.mean() == 0.5
        tests.append(test.X[:, 0] * train.X.shape[0])
    assert not np.array_equal(datasets.fold(data, 0, seed=4)[0].X, datasets.fold(data, 0, seed=3)[0].X)
    assert sum(t.size for t in tests) == 250


@pytest.mark.skipif(datasets.data_folder() is None, reason="SGMCMC_DATA is not set: no data to count")
@pytest.mark.parametrize("name", datasets.NAMES)
def test_the_real_files_are_what_they_should_be(name):
    data = datasets.load(name)
    assert data.name == name


def chorales(sequences=229, steps=13807, keys=11):
    rng = np.random.default_rng(0)
    arrays = {}
    for part, count, size in (("train", sequences, steps), ("valid", 76, 4602), ("test", 77, 4725)):
        arrays[part] = rng.integers(0, 256, (size, keys)).astype(np.uint8)
        inside = np.sort(rng.choice(np.arange(1, size), count - 1, replace=False))
        arrays[f"{part}_offsets"] = np.concatenate(([0], inside, [size])).astype(np.int32)
    return arrays


def test_music_comes_as_frames_of_keys_and_texts_as_words(place):
    arrays = chorales()
    np.savez(place / "music_jsb.npz", **arrays)
    data = datasets.load("jsb", place)
    np.testing.assert_array_equal(data.valid, np.unpackbits(arrays["valid"], axis=1))
    assert data.train.shape == (13807, 88)
    assert data.test_offsets[-1] == 4725
    text = {part: np.zeros(size, np.uint16) for part, size in (("train", 929589), ("valid", 73760), ("test", 82430))}
    np.savez(place / "ptb.npz", **text, vocab=np.arange(10_000).astype(str))
    words = datasets.load("ptb", place)
    assert (words.train.dtype, words.columns, list(words.test_offsets)) == (np.int64, 10_000, [0, 82430])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (chorales(sequences=228), r"sequences \(228, 76, 77\), not \(229, 76, 77\)"),
        (chorales(steps=13806), r"steps \(13806, 4602, 4725\)"),
        (chorales(keys=10), "columns 80, not 88"),
        (chorales() | {"train_offsets": np.zeros(230, np.int32)}, "consistent False"),
        ({"train": np.zeros((3, 11), np.uint8)}, "it lacks 'valid'"),
    ],
)
def test_music_that_is_not_what_it_should_be_is_refused(place, arrays, message):
    np.savez(place / "music_jsb.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        datasets.load("jsb", place)
