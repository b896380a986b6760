"""The files that compiled code is kept in: one for each key, whole and ours, or not read.

A file begins with a digest of its key and of the rest; what does not fit is a miss, as is any error in reading. Compiled code is
run as it is, so a file or a folder that another user owns, or that others may write to, is not trusted. The folder is
NUMBA_CACHE_DIR/sgmcmc-<user>, or without that variable the user's cache folder; nothing is kept beside the package.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import pickle
import stat
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

__all__ = ["INSTALLED", "Store", "folder", "own_folder", "prune", "remove", "state_of"]

_log = logging.getLogger("sgmcmc")
INSTALLED = (
    Path(__file__).parents[1] / "compiled"
)  # made by run/ahead_of_time.py; not there in a working copy or a pure wheel
MAGIC, DIGEST = b"sgmcmc kernel 1\n", 32
DAYS, BYTES = 60, 1 << 30  # what was not used for so long goes, and the oldest beyond that size
_told: set[str] = set()


def folder() -> Path:
    """Where this user's kernels are."""
    user = f"-{os.getuid()}" if hasattr(os, "getuid") else ""
    if numba.config.CACHE_DIR:
        return Path(numba.config.CACHE_DIR) / f"sgmcmc{user}"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "sgmcmc"
    mac = Path.home() / "Library" / "Caches"
    given = os.environ.get("XDG_CACHE_HOME", "")
    linux = Path(given) if os.path.isabs(given) else Path.home() / ".cache"
    return (mac if sys.platform == "darwin" else linux) / "sgmcmc"


def state_of(status: os.stat_result) -> str | None:
    """Why a file or folder is not trusted; None if it is."""
    if not hasattr(os, "geteuid"):  # Windows has lists of rights, and a folder for each user
        return None
    if status.st_uid not in (os.geteuid(), 0):
        return f"it belongs to user {status.st_uid}"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write to it (mode {stat.S_IMODE(status.st_mode):o})"
    return None


def own_folder() -> Path:
    """The folder, made if it is not there; an OSError if it cannot be, or is not to be trusted."""
    own = folder()
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = own.lstat()
    reason = "it is no folder" if not stat.S_ISDIR(status.st_mode) else state_of(status)
    if reason is not None:
        raise PermissionError(f"{own} is not trusted: {reason}")
    return own


def _tell(error: Exception) -> None:
    """Where nothing can be kept, kernels are compiled in every process; said once."""
    if "cache" not in _told:
        _told.add("cache")
        _log.warning("compiled code is not kept: %s; set NUMBA_CACHE_DIR to a folder that can be written to", error)


class Store:
    """What is kept of one function, by key."""

    def __init__(self, name: str, dumps: Callable[[Any], bytes] = pickle.dumps) -> None:
        self._name = "".join(c if c.isalnum() or c in "._" else "-" for c in name)[-80:]
        self._dumps = dumps

    def load(self, key: str) -> Any:
        """From the user's folder, or from what came with the installation; None if there is none to be trusted."""
        for find in (self._kept, self._installed):
            with contextlib.suppress(Exception):  # whatever is wrong with a file, it is compiled again
                return pickle.loads(_checked(find(key), key))
        return None

    def save(self, key: str, data: Any) -> None:
        """Written aside and renamed: a file is there as a whole or not at all."""
        try:
            own, payload = own_folder(), self._dumps(data)
            with tempfile.NamedTemporaryFile(dir=own, suffix=".tmp", delete=False) as file:
                try:
                    file.write(sealed(payload, key))
                    file.close()
                    os.replace(file.name, own / self.file_name(key))
                except BaseException:
                    Path(file.name).unlink(missing_ok=True)
                    raise
        except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
            _tell(error)
            return
        if "pruned" not in _told:
            _told.add("pruned")
            with contextlib.suppress(OSError):
                prune(own)

    def flush(self) -> None:
        """Forget all that is kept of this function."""
        for path in folder().glob(self.file_name("*")):
            path.unlink(missing_ok=True)

    def file_name(self, key: str) -> str:
        """Of what is kept under a key."""
        return f"{self._name}.{key[:32]}.nbc"

    def _kept(self, key: str) -> bytes:
        try:
            path = own_folder() / self.file_name(key)
        except (OSError, RuntimeError) as error:
            _tell(error)
            raise
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)), "rb") as file:
            status = os.fstat(file.fileno())
            if state_of(status) is not None or not stat.S_ISREG(status.st_mode):
                raise PermissionError(path)
            if time.time() - status.st_mtime > 86400.0:
                os.utime(path)  # it is in use: see `prune`
            return file.read()

    def _installed(self, key: str) -> bytes:
        """Compressed, to a fifth of its size; trusted as the package's own sources are."""
        return zlib.decompress((INSTALLED / self.file_name(key)).read_bytes())


def sealed(payload: bytes, key: str) -> bytes:
    """A file's content: what it is, the digest of its key and payload, and the payload."""
    return MAGIC + hashlib.sha256(key.encode() + payload).digest() + payload


def _checked(content: bytes, key: str) -> bytes:
    start = len(MAGIC) + DIGEST
    payload = content[start:]
    if content[:start] != sealed(payload, key)[:start]:
        raise ValueError("not whole, or not ours")
    return payload


def prune(own: Path) -> None:
    """Take away what was not used for 60 days, and the longest unused beyond a gigabyte."""
    files = [(path.stat(), path) for path in own.iterdir() if path.suffix in (".nbc", ".tmp")]
    kept = 0
    for status, path in sorted(files, key=lambda each: -each[0].st_mtime):
        kept += status.st_size
        unfinished = path.suffix == ".tmp" and time.time() - status.st_mtime > 3600.0
        if unfinished or kept > BYTES or time.time() - status.st_mtime > DAYS * 86400.0:
            path.unlink(missing_ok=True)


def remove() -> int:
    """Take away all that is kept of this user. Returns how many files there were."""
    files = [path for path in folder().glob("*") if path.suffix in (".nbc", ".tmp")]
    for path in files:
        path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder().rmdir()
    return len(files)
