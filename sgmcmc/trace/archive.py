"""Archives: an uncompressed ``.npz`` of plain arrays and one JSON text, written atomically.

It holds no code and is never unpickled. It gets its name only when it is complete and on the disk. Before anything is used, each
array must have the size that its header says, all arrays together must fit in the file, and checksums are compared.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from sgmcmc.checks import show

__all__ = ["read", "reason", "to_json", "write"]

MOST_MEMBERS = 1000
WRITE_BYTES = 1 << 24  # bytes written at once


def to_json(value: Any) -> str:
    """JSON of numbers, texts, lists and dictionaries, NumPy's too."""
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"info holds {show(value)}; give what JSON can hold: numbers, texts, lists and dictionaries")


def reason(error: BaseException) -> str:
    """Why a file cannot be read, in one line."""
    return f"{error.args[0]} is missing" if isinstance(error, KeyError) else " ".join(str(error).split())


# ---- writing ------------------------------------------------------------------------------------------------------------


def write(path: Path, header: dict[str, Any], arrays: dict[str, NDArray[Any] | Sequence[NDArray[Any]]]) -> None:
    """Write atomically: a file beside it is written, flushed to the disk and then renamed.

    A list of arrays of one shape is written as the array that they make when stacked, without ever making it.
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    text: dict[str, NDArray[Any] | Sequence[NDArray[Any]]] = {
        "header": np.array(to_json(header | {"members": sorted(arrays)}))
    }
    try:
        with open(beside, "xb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
                for name, value in (text | arrays).items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        _write_array(member, value)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        _flush_folder(path.parent)
    finally:
        beside.unlink(missing_ok=True)


def _write_array(member: IO[bytes], value: NDArray[Any] | Sequence[NDArray[Any]]) -> None:
    rows = [value] if isinstance(value, np.ndarray) else list(value)
    shape = value.shape if isinstance(value, np.ndarray) else (len(rows), *np.shape(rows[0]))
    descr = npy.dtype_to_descr(rows[0].dtype)
    npy.write_array_header_1_0(member, {"descr": descr, "fortran_order": False, "shape": shape})
    for row in rows:
        raw = np.ascontiguousarray(row).reshape(-1).view(np.uint8)
        for first in range(0, raw.size, WRITE_BYTES):
            member.write(raw[first : first + WRITE_BYTES].data)


def _flush_folder(folder: Path) -> None:
    """Flush the new name to the disk; not possible, nor needed, on Windows."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


# ---- reading ------------------------------------------------------------------------------------------------------------


def read(path: Path, form: str, version: int, what: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the header; ValueError for anything but a whole archive of this form."""
    if os.path.exists(path) and not os.path.isfile(path):  # opening a pipe would wait for another process
        raise ValueError(f"{path} is not {what}: it is not a regular file")
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                members = archive.infolist()
                _measure(members, os.fstat(file.fileno()).st_size)
                header = _header(archive, form, version)
                return {m.filename.removesuffix(".npy"): _array(archive, m) for m in members}, header
        except Exception as error:  # zipfile, numpy and json raise a dozen kinds, and numpy's tokenizer one of its own
            raise ValueError(f"{path} is not {what}: {reason(error)}") from error


def _measure(members: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse members that overlap, are compressed, or are too many."""
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise ValueError(f"{member.filename} is compressed")
    names = [m.filename for m in members]
    if len(members) > MOST_MEMBERS or len(set(names)) < len(names):
        raise ValueError(f"it has {len(members)} members, or one name twice")
    if sum(m.file_size for m in members) > size:
        raise ValueError("its members are larger than the file")


def _header(archive: zipfile.ZipFile, form: str, version: int) -> dict[str, Any]:
    if "header.npy" not in archive.namelist():
        raise ValueError("it has no header")
    header = json.loads(str(_array(archive, archive.getinfo("header.npy"))))
    if not isinstance(header, dict) or header.get("format") != form:
        raise ValueError(f"its header does not say {form}")
    if header.get("version") != version:
        raise ValueError(f"it has format version {header.get('version')!r}, and this sgmcmc reads {version}")
    missing = [name for name in header.get("members", []) if f"{name}.npy" not in archive.namelist()]
    if missing:
        raise ValueError(f"{missing[0]} is missing")
    return header


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """One array, if the size in its header equals the size of its data."""
    with archive.open(member) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python's, about the text of a damaged array
        if npy.read_magic(file) != (1, 0):
            raise ValueError(f"{member.filename} is not an array of version 1.0")
        shape, _, dtype = npy.read_array_header_1_0(file)
        if dtype.kind not in "fiubU" or file.tell() + math.prod(shape) * dtype.itemsize != member.file_size:
            raise ValueError(f"{member.filename} promises {dtype} of shape {shape}, which it does not hold")
    with archive.open(member) as file:
        array: NDArray[Any] = npy.read_array(file, allow_pickle=False)
        if file.read(1) != b"":  # only at the end of a member does zipfile compare its checksum
            raise ValueError(f"{member.filename} goes on after its end")
    return array
