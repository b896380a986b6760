"""Data sets of the experiments: found in a folder, else on OpenML; counted before they are used, split the same for everybody.

    data = sg.datasets.load("australian")                 # raw columns
    train, test = sg.datasets.fold(data, 0)               # the first of five stratified folds, standardised by its training part

A folder is given as an argument, or by the environment variable SGMCMC_DATA; it holds one .npz file per data set. What
OpenML has is fetched through scikit-learn (``pip install "sgmcmc[data]"``), which keeps a copy in its own cache. A file
that does not have the rows, columns and classes it should have is an error, never a warning.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc import checks

__all__ = ["NAMES", "Corpus", "Labelled", "Sequences", "data_folder", "fold", "load"]

VARIABLE = "SGMCMC_DATA"
FOLDS = 5


class Labelled(NamedTuple):
    """Rows with whole-numbered labels; the test part is empty where the source has none."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


class Corpus(NamedTuple):
    """Word counts of documents, as the rows of a sparse matrix: document i has words indices[indptr[i]:indptr[i + 1]]."""

    name: str
    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    counts: NDArray[np.int64]
    vocab: NDArray[Any]
    train: NDArray[np.int64]
    test: NDArray[np.int64]


class Sequences(NamedTuple):
    """Sequences in three parts: sequence i of `train` is train[train_offsets[i]:train_offsets[i + 1]].

    Music has frames of 0 and 1, (frames, 88); a text has numbers of words, and is one sequence.
    """

    name: str
    train: NDArray[Any]
    valid: NDArray[Any]
    test: NDArray[Any]
    train_offsets: NDArray[np.int64]
    valid_offsets: NDArray[np.int64]
    test_offsets: NDArray[np.int64]
    columns: int  # keys, or words of the vocabulary


class Source(NamedTuple):
    """Where a data set comes from, and what must be true of it."""

    file: str
    about: str  # where to get it by hand
    rows: int
    columns: int
    ones: int | None = None  # rows of class 1, for two classes
    test_rows: int = 0
    openml: int | None = None
    convert: Callable[[Any, Any], tuple[Any, ...]] | None = None  # OpenML's X and y to X, y[, X_test, y_test]
    parts: tuple[tuple[int, int, int], tuple[int, int, int]] | None = (
        None  # sequences and steps to train, validate, test
    )


def _as_read(X: Any, y: Any) -> tuple[Any, ...]:
    """Two classes, the larger label being class 1; columns as they are."""
    labels = np.unique(y)
    return np.asarray(X, float), (np.asarray(y) == labels[-1]).astype(np.int64)


def _pima(X: Any, y: Any) -> tuple[Any, ...]:
    """The 532 rows with plausible glucose, pressure, skin and body mass, without insulin: the set of the paper."""
    raw, labels = _as_read(X, y)
    keep = (raw[:, [1, 2, 3, 5]] > 0).all(axis=1)
    return raw[keep][:, [0, 1, 2, 3, 5, 6, 7]], labels[keep]


def _caravan(X: Any, y: Any) -> tuple[Any, ...]:
    raw, labels = _as_read(X, y)
    return raw[:5822], labels[:5822], raw[5822:], labels[5822:]


def _mnist(X: Any, y: Any) -> tuple[Any, ...]:
    raw, labels = np.asarray(X), np.asarray(y).astype(np.int64)
    return raw[:60000], labels[:60000], raw[60000:], labels[60000:]


def _music(name: str, sequences: tuple[int, int, int], frames: tuple[int, int, int]) -> Source:
    about = "Boulanger-Lewandowski et al. 2012, polyphonic music: frames as packed bits, and offsets of sequences"
    return Source(f"music_{name}.npz", about, frames[0], 88, parts=(sequences, frames))


_UCI = "the UCI repository, Statlog collection"
SOURCES = {
    "australian": Source("blr_australian.npz", f"{_UCI}: australian.dat", 690, 14, 307, 0, 40981, _as_read),
    "german": Source("blr_german.npz", f"{_UCI}: german.data-numeric (not on OpenML in this form)", 1000, 24, 300),
    "heart": Source("blr_heart.npz", f"{_UCI}: heart.dat", 270, 13, 120, 0, 53, _as_read),
    "pima": Source("blr_pima.npz", "the R package MASS: Pima.tr and Pima.te", 532, 7, 177, 0, 37, _pima),
    "ripley": Source("blr_ripley.npz", "the R package MASS: synth.tr and synth.te", 250, 2, 125, 1000),
    "caravan": Source(
        "blr_caravan.npz", "UCI, Insurance Company Benchmark (COIL 2000)", 5822, 85, 348, 4000, 298, _caravan
    ),
    "mnist": Source("mnist.npz", "yann.lecun.com/exdb/mnist", 60000, 784, None, 10000, 554, _mnist),
    "icml": Source(
        "lda_icml1315.npz", "word counts of the abstracts of ICML 2013 to 2015 (proceedings.mlr.press)", 765, 1918
    ),
    "reuters": Source("lda_reuters.npz", "the Python package lda: lda/tests/reuters.ldac", 395, 4258),
    "jsb": _music("jsb", (229, 76, 77), (13807, 4602, 4725)),
    "nottingham": _music("nottingham", (694, 173, 170), (176561, 45513, 44463)),
    "muse": _music("muse", (524, 135, 124), (245202, 82755, 64339)),
    "piano": _music("piano", (87, 12, 25), (75911, 8540, 19036)),
    "ptb": Source(
        "ptb.npz",
        "the Penn Treebank as in Mikolov et al. 2010 (licensed by the LDC): train, valid, test as numbers of words",
        929589,
        10_000,
        parts=((1, 1, 1), (929589, 73760, 82430)),
    ),
}
NAMES = tuple(SOURCES)


def data_folder(given: str | os.PathLike[str] | None = None) -> Path | None:
    """The folder with the data: the argument, else SGMCMC_DATA, else None."""
    if given is not None:
        return Path(given)
    variable = os.environ.get(VARIABLE, "")
    return None if variable == "" else Path(variable)


def load(name: str, folder: str | os.PathLike[str] | None = None) -> Any:
    """Returns a data set by its name: `Labelled` with raw columns, `Corpus` or `Sequences`.

    Parameters
    ----------
    name : one of NAMES
    folder : path of the .npz files; None takes the environment variable SGMCMC_DATA, and without that OpenML
    """
    checks.one_of("name", name, NAMES)
    source, place = SOURCES[name], data_folder(folder)
    if place is not None:
        path = place / source.file
        if not path.is_file():
            raise FileNotFoundError(
                f"{path} is not there; get {name} from {source.about}, and put it there as an .npz file"
            )
        arrays = _read(path)
    else:
        arrays = _fetch(name, source)
    if source.parts is not None:
        data: Any = _sequences(name, source, arrays)
    else:
        data = _corpus(name, arrays) if "indptr" in arrays else _labelled(name, arrays)
    _verify(name, source, data)
    return data


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            return dict(file)
    except (ValueError, OSError, zipfile.BadZipFile, EOFError) as error:
        raise ValueError(f"{path} is damaged ({error}); get it again") from error


def _fetch(name: str, source: Source) -> dict[str, Any]:
    where = f"get it from {source.about}, and set {VARIABLE} to the folder with {source.file}"
    if source.openml is None or source.convert is None:
        raise FileNotFoundError(f"{name} is not on OpenML; {where}")
    try:
        from sklearn.datasets import fetch_openml
    except ImportError as error:
        raise ImportError(
            f'{name} can be fetched with scikit-learn (pip install "sgmcmc[data]"); or {where}'
        ) from error
    try:
        got = fetch_openml(data_id=source.openml, as_frame=False, parser="liac-arff")
    except (OSError, ValueError) as error:
        raise OSError(f"{name} could not be fetched from OpenML ({error}); {where}") from error
    return dict(zip(("X", "y", "X_test", "y_test"), source.convert(got.data, got.target), strict=False))


def _labelled(name: str, arrays: dict[str, Any]) -> Labelled:
    if name == "mnist" and "X_train" in arrays:
        arrays = arrays | {"X": arrays["X_train"], "y": arrays["y_train"]}
    try:
        X, y = arrays["X"], np.asarray(arrays["y"]).astype(np.int64)
        kind = X.dtype if name == "mnist" else np.float64  # pixels stay bytes: 47 MB, not 376
        test = arrays.get("X_test", np.empty((0, X.shape[1])))
        labels = np.asarray(arrays.get("y_test", np.empty(0))).astype(np.int64)
        return Labelled(name, np.asarray(X, kind), y, np.asarray(test, kind), labels)
    except (KeyError, IndexError) as error:
        raise ValueError(f"{SOURCES[name].file} is damaged: it lacks {error}; get it again") from error


def _corpus(name: str, arrays: dict[str, Any]) -> Corpus:
    try:
        whole = {key: np.asarray(arrays[key]).astype(np.int64) for key in ("indptr", "indices", "counts")}
        train, test = (np.asarray(arrays[f"{part}_docs"]).astype(np.int64) for part in ("train", "test"))
        return Corpus(name, **whole, vocab=arrays["vocab"], train=train, test=test)
    except KeyError as error:
        raise ValueError(f"{SOURCES[name].file} is damaged: it lacks {error}; get it again") from error


def _sequences(name: str, source: Source, arrays: dict[str, Any]) -> Sequences:
    try:
        parts = [np.asarray(arrays[part]) for part in ("train", "valid", "test")]
        if parts[0].ndim == 2:  # music
            offsets = [np.asarray(arrays[f"{part}_offsets"]).astype(np.int64) for part in ("train", "valid", "test")]
            return Sequences._make((name, *(np.unpackbits(p, axis=1) for p in parts), *offsets, 8 * parts[0].shape[1]))
        offsets = [np.array([0, p.size]) for p in parts]
        return Sequences._make((name, *(p.astype(np.int64) for p in parts), *offsets, arrays["vocab"].size))
    except KeyError as error:
        raise ValueError(f"{source.file} is damaged: it lacks {error}; get it again") from error


def _verify(name: str, source: Source, data: Any) -> None:
    found: dict[str, Any]
    wanted: dict[str, Any]
    if isinstance(data, Sequences):
        steps, ends_of = (data.train, data.valid, data.test), data[4:7]
        wanted = dict(zip(("sequences", "steps"), source.parts or (), strict=False)) | {"columns": source.columns}
        found = {"sequences": tuple(o.size - 1 for o in ends_of), "steps": tuple(len(s) for s in steps)}
        found["columns"] = data.columns
        wanted["consistent"] = True
        found["consistent"] = all(
            o[0] == 0 and o[-1] == len(s) and (np.diff(o) > 0).all() for o, s in zip(ends_of, steps, strict=True)
        ) and (data.train.ndim == 2 or max(int(s.max()) for s in steps) < data.columns)
    elif isinstance(data, Corpus):
        ends = data.indptr[-1] == data.indices.size == data.counts.size and int(data.indices.max()) < data.vocab.size
        parts = np.sort(np.concatenate((data.train, data.test)))
        wanted = {"documents": source.rows, "words": source.columns, "consistent": True, "split in two": True}
        found = {"documents": data.indptr.size - 1, "words": data.vocab.size, "consistent": bool(ends)}
        found["split in two"] = bool(np.array_equal(parts, np.arange(source.rows)))
    else:
        wanted = {
            "rows": (source.rows, source.columns),
            "labels": source.rows,
            "test rows": data.X_test.shape[0],
            "finite": True,
        }
        found = {"rows": data.X.shape, "labels": data.y.size, "test rows": data.y_test.size}
        found["finite"] = bool(np.isfinite(data.X).all() and np.isfinite(data.X_test).all())
        if source.ones is not None:
            wanted["rows of class 1"], found["rows of class 1"] = source.ones, int((data.y == 1).sum())
        if source.test_rows and data.X_test.size:
            wanted["test rows"] = source.test_rows
    for key, value in wanted.items():
        if found[key] != value:
            raise ValueError(
                f"{name} is not what it should be: {key} {found[key]}, not {value}; get {source.about} again"
            )


# ---- what every sampler sees ---------------------------------------------------------------------------------------------


def fold(data: Labelled, number: int, seed: int = 0) -> tuple[Labelled, Labelled]:
    """Training and test part of one of five stratified folds, ready for a regression with an intercept.

    Rows of each class are shuffled by `seed` and dealt to the folds in turn. Ripley's two columns become x, x², x³ of each.
    Columns are standardised by the mean and standard deviation of the training part; constant ones are left out.
    """
    checks.integer("number", number, 0, FOLDS - 1)
    rng = np.random.default_rng(seed)
    place = np.empty(data.y.size, np.int64)
    dealt = 0
    for label in np.unique(data.y):
        rows = rng.permutation(np.flatnonzero(data.y == label))
        place[rows] = (np.arange(rows.size) + dealt) % FOLDS
        dealt += rows.size
    X = np.concatenate([data.X, data.X**2, data.X**3], axis=1) if data.name == "ripley" else np.asarray(data.X, float)
    inside = place != number
    keep = np.ptp(X[inside], axis=0) > 0
    mean, scale = X[inside][:, keep].mean(axis=0), X[inside][:, keep].std(axis=0)
    Z = (X[:, keep] - mean) / scale
    nothing = np.empty((0, Z.shape[1])), np.empty(0, np.int64)
    return (
        Labelled(data.name, Z[inside], data.y[inside], *nothing),
        Labelled(data.name, Z[~inside], data.y[~inside], *nothing),
    )
