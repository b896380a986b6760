"""A lock on a checkpoint: two processes that write the same one would spoil both runs.

The system's own locks end with the process, however it ends. They are tied to a small file beside the checkpoint, which stays.
"""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path
from typing import Any, Self

__all__ = ["Lock"]

log = logging.getLogger("sgmcmc")


class Lock:
    """``with Lock(path): …``; RuntimeError if somebody else has it, be it a thread of this process."""

    _held: set[Path] = set()  # noqa: RUF012  a record lock does not keep out threads of its own process
    _guard = threading.Lock()

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._number: int | None = None

    def __enter__(self) -> Self:
        with Lock._guard:
            if self.path in Lock._held:
                raise RuntimeError(_in_use(self.path))
            self._number = _opened(self.path)
            try:
                _take(self._number)
            except OSError as error:
                os.close(self._number)
                raise RuntimeError(_in_use(self.path)) from error
            Lock._held.add(self.path)
        return self

    def __exit__(self, *_: Any) -> None:
        with Lock._guard:
            Lock._held.discard(self.path)
            if self._number is not None:
                os.close(self._number)  # which lets go of the lock


def _opened(path: Path) -> int:
    try:
        return os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise type(error)(
            error.errno,
            f"checkpoint='{path}' cannot be written ({error.strerror}); choose a folder that you may write to",
        ) from error


def _in_use(path: Path) -> str:
    return f"checkpoint='{path}' is in use by another run; wait for its end, or give this run a file of its own"


def _take(number: int) -> None:
    try:
        import fcntl
    except ImportError:
        _take_on_windows(number)
        return
    fcntl.lockf(number, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _take_on_windows(number: int) -> None:
    try:
        import msvcrt
    except ImportError:
        log.warning("this system has no locks: do not run two processes with one checkpoint")
        return
    msvcrt.locking(number, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
