"""Chunks: the rows of many files as one array, of which only a few blocks are in memory."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc import checks

__all__ = ["Chunks"]


class Chunks:
    """Data larger than memory, for a plain Python gradient: ``data[rows]`` reads the blocks in which the rows lie.

    ``chunks.reads`` counts the blocks that were read.

    Parameters
    ----------
    parts : list
        ``.npy`` files, or anything that has a shape and gives slices of rows: arrays, memory maps, HDF5 and Zarr
        arrays. They follow each other, and are alike but for their number of rows.
    block : int
        So many consecutive rows are read at once; the chunk size of the file, if it has chunks.
    cache : int
        So many blocks stay in memory, those used last. ``minibatch="blocks"`` keeps to few of them.

    Examples
    --------
    >>> data = sg.Chunks([np.zeros((3, 2)), np.ones((4, 2))], block=2)
    >>> data[[0, 6]].tolist(), data.reads
    ([[0.0, 0.0], [1.0, 1.0]], 2)
    """

    def __init__(self, parts: Sequence[Any], block: int = 1024, cache: int = 256) -> None:
        self.parts = [_opened(i, part) for i, part in enumerate(_listed(parts))]
        self.block, self.cache = checks.integer("block", block, 1), checks.integer("cache", cache, 1)
        shapes = {tuple(part.shape[1:]) for part in self.parts}
        kinds = {np.dtype(part.dtype) for part in self.parts}
        if len(shapes) > 1 or len(kinds) > 1:
            raise ValueError(
                f"parts have rows of shapes {sorted(shapes)} and dtypes {kinds}; give parts that are alike"
            )
        self._begins = np.cumsum([0, *(len(part) for part in self.parts)])
        self.shape, self.dtype = (int(self._begins[-1]), *shapes.pop()), kinds.pop()
        self._make_room()

    def _make_room(self) -> None:
        self.reads, self._lock = 0, threading.Lock()
        self._blocks: OrderedDict[tuple[int, int], NDArray[Any]] = OrderedDict()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        """The rows with these numbers, in this order."""
        wanted = np.asarray(rows)
        if wanted.ndim != 1 or wanted.dtype.kind not in "iu":
            raise IndexError(
                f"rows={checks.show(rows)} are no rows of chunks; give a one-dimensional array of row numbers"
            )
        if wanted.size > 0 and (wanted.min() < 0 or wanted.max() >= len(self)):
            raise IndexError(f"rows run from {wanted.min()} to {wanted.max()}; there are rows 0 to {len(self) - 1}")
        part = np.searchsorted(self._begins, wanted, side="right") - 1
        block, place = np.divmod(wanted - self._begins[part], self.block)
        found = np.empty((wanted.size, *self.shape[1:]), self.dtype)
        for key in sorted(set(zip(part.tolist(), block.tolist(), strict=True))):
            here = (part == key[0]) & (block == key[1])
            found[here] = self._read(key)[place[here]]
        return found

    def _read(self, key: tuple[int, int]) -> NDArray[Any]:
        with self._lock:
            if key not in self._blocks:
                first = key[1] * self.block
                self._blocks[key] = np.array(self.parts[key[0]][first : first + self.block])
                self.reads += 1
            self._blocks.move_to_end(key)
            while len(self._blocks) > self.cache:
                self._blocks.popitem(last=False)
            return self._blocks[key]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_blocks", "reads")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._make_room()

    def __repr__(self) -> str:
        return f"<Chunks: {len(self.parts)} part{'s' * (len(self.parts) > 1)}, shape {self.shape}, {self.dtype}>"


def _listed(parts: Any) -> Sequence[Any]:
    if not isinstance(parts, Sequence) or isinstance(parts, str) or len(parts) == 0:
        raise ValueError(
            f"parts={checks.show(parts)} is not a list of chunks; give a list of .npy files or of arrays, at least one"
        )
    return parts


def _opened(i: int, part: Any) -> Any:
    if isinstance(part, str | os.PathLike):
        try:
            return np.load(part, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            said = error.strerror if isinstance(error, OSError) and error.strerror is not None else "it is no .npy file"
            raise type(error)(f"parts[{i}]={checks.show(part)} cannot be read: {said}; give .npy files") from error
    if not hasattr(part, "shape") or len(part.shape) == 0 or not hasattr(part, "dtype"):
        raise TypeError(
            f"parts[{i}]={checks.show(part)} is no chunk; give .npy files, or arrays that give slices of rows"
        )
    return part
