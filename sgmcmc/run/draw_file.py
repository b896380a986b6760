"""Draws in a file: an ``.npy`` array (chain, draw, size) that is filled row by row while the run goes on.

Rows are written, not mapped: a full disk is then an error that can be reported (a mapped page without space kills the process),
and written rows do not count as memory of the process. A running checksum per chain lets a checkpoint say which rows it covers.
Rows after those may be incomplete; a resumed run writes the same rows again.
"""

from __future__ import annotations

import io
import os
import threading
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

__all__ = ["DrawFile"]

READ_BYTES = 1 << 24  # bytes read at once


class DrawFile:
    """A sink that writes rows to a file."""

    def __init__(self, path: Path, shape: tuple[int, int, int], dtype: Any, numbers: list[int]) -> None:
        self.path, self.shape, self.dtype = path, shape, np.dtype(dtype)
        self._rows = {number: row for row, number in enumerate(numbers)}
        self._lock = threading.Lock()
        self._file: io.FileIO | None = None
        self.counts = np.zeros(shape[0], np.int64)  # rows of each chain that its checksum covers
        self.sums = np.zeros(shape[0], np.uint32)
        self._header = _header(shape, self.dtype)

    def refuse_existing(self) -> None:
        """FileExistsError if there is a file of this name: a run writes only to files that it created."""
        if os.path.lexists(self.path):
            raise FileExistsError(f"the file of draws '{self.path}' exists; delete it, or choose another name")

    def create(self) -> None:
        """Create a file of the full size without rows; most file systems allocate it as rows come."""
        self.refuse_existing()
        self._make("x+b")

    def _make(self, mode: str) -> None:
        try:
            file = self._file = io.FileIO(self.path, mode)  # closed by `close`
            file.write(self._header)
            file.truncate(self._offset(self.shape[0], 0))
        except OSError as error:
            raise OSError(
                f"draws cannot be written to {self.path}: {error.strerror}; choose a folder with room that you may write to"
            ) from error

    def reopen(self, counts: NDArray[Any], sums: NDArray[Any]) -> None:
        """Open a file whose first `counts` rows of each chain have these checksums; ValueError if they have not."""
        if counts.max(initial=0) == 0:  # the run ended before its first rows, or before it created the file
            if os.path.lexists(self.path):
                self._refuse_foreign()
            self._make("w+b")
            return
        try:
            file = self._file = open(self.path, "r+b", buffering=0)  # noqa: SIM115
        except FileNotFoundError as error:
            raise ValueError(f"{self.path} is gone, and with it the draws of the checkpoint") from error
        if file.read(len(self._header)) != self._header:
            raise self._foreign()
        for row, (count, crc) in enumerate(zip(counts, sums, strict=True)):
            if self._checksum(row, int(count)) != crc:
                raise ValueError(f"{self.path} does not hold the {count} draws of chain {row} that were saved")
        self.counts, self.sums = counts.astype(np.int64), sums.astype(np.uint32)

    def _refuse_foreign(self) -> None:
        """ValueError for a file that `create` did not begin."""
        if not self.path.is_file():
            raise self._foreign()
        with open(self.path, "rb") as file:
            found = file.read(len(self._header))
        if not self._header.startswith(found):
            raise self._foreign()

    def _foreign(self) -> ValueError:
        return ValueError(f"{self.path} is not the file of {self.dtype} draws of shape {self.shape} that it was")

    def _offset(self, row: int, first: int) -> int:
        return len(self._header) + (row * self.shape[1] + first) * self.shape[2] * int(self.dtype.itemsize)

    def _checksum(self, row: int, count: int) -> int:
        assert self._file is not None
        self._file.seek(self._offset(row, 0))
        left, crc = count * self.shape[2] * self.dtype.itemsize, 0
        while left > 0:
            block = self._file.read(min(left, READ_BYTES))
            if len(block) == 0:
                return -1
            crc, left = zlib.crc32(block, crc), left - len(block)
        return crc

    def write(self, number: int, first: int, rows: NDArray[Any]) -> None:
        """Write the rows first, first + 1, … of a chain; calls are in order."""
        row, raw = self._rows[number], np.ascontiguousarray(rows, self.dtype).reshape(-1).view(np.uint8).data
        if first != self.counts[row]:
            raise RuntimeError(f"chain {number} has {self.counts[row]} draws in {self.path}, and now comes {first}")
        with self._lock:
            assert self._file is not None
            self._file.seek(self._offset(row, first))
            done = 0
            try:
                while done < len(raw):
                    done += self._file.write(raw[done:]) or 0
            except OSError as error:
                raise OSError(
                    f"draws cannot be written to {self.path}: {error.strerror}; make room, and go on from the last "
                    "checkpoint with resume=True, if there is one"
                ) from error
        self.sums[row] = zlib.crc32(raw, int(self.sums[row]))
        self.counts[row] += len(rows)

    def flush(self) -> None:
        """Return when all rows are on the disk."""
        if self._file is not None:
            os.fsync(self._file.fileno())

    def mapped(self) -> NDArray[Any]:
        """The array, mapped from the file."""
        self.flush()
        return np.load(self.path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _header(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bytes:
    buffer = io.BytesIO()
    npy.write_array_header_1_0(buffer, {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape})
    return buffer.getvalue()
