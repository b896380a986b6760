"""A lock on a checkpoint or a file of draws: two runs that write to the same one would corrupt it.

The locks of the system are released when the process ends, however it ends. They are on a small file beside it, which stays.
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
    """``with Lock(path): …``; RuntimeError if another run has it, in any process. `what` precedes the path in errors."""

    _held: set[Path] = set()  # noqa: RUF012  a record lock does not keep out threads of its own process
    _guard = threading.Lock()

    def __init__(self, path: Path, what: str = "checkpoint=") -> None:
        self.path, self.what = path.resolve(), what
        self._number: int | None = None

    def __enter__(self) -> Self:
        with Lock._guard:
            if self.path in Lock._held:
                raise RuntimeError(self._in_use())
            self._number = _opened(self.path, self.what)
            try:
                _take(self._number)
            except OSError as error:
                os.close(self._number)
                raise RuntimeError(self._in_use()) from error
            Lock._held.add(self.path)
        return self

    def _in_use(self) -> str:
        return (
            f"{self.what}'{self.path}' is in use by another run; wait for its end, or give this run a file of its own"
        )

    def __exit__(self, *_: Any) -> None:
        with Lock._guard:
            Lock._held.discard(self.path)
            if self._number is not None:
                os.close(self._number)  # releases the lock


def _opened(path: Path, what: str) -> int:
    try:
        return os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise type(error)(
            error.errno,
            f"{what}'{path}' cannot be written ({error.strerror}); choose a folder that you may write to",
        ) from error


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
        log.warning("this system has no locks: do not run two processes with one checkpoint or file of draws")
        return
    msvcrt.locking(number, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
