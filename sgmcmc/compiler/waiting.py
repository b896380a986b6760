"""Waiting: a compilation that takes longer than a moment is said on stderr, in one line.

Only within functions that show progress, and are asked to (`speaking`); ``progress=False`` is silent.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
import threading
import time
from collections.abc import Iterator

__all__ = ["compiles", "said", "speaking"]

MOMENT, BETWEEN = 0.3, 1.0  # seconds to the first word, and from one to the next on a terminal
_spoken = contextvars.ContextVar("spoken", default=False)
_line: contextvars.ContextVar[_Line | None] = contextvars.ContextVar("line", default=None)


class _Line:
    """A line that grows older while a kernel is compiled."""

    def __init__(self) -> None:
        self.what: str | None = None
        self._ended, self._began = threading.Event(), time.perf_counter()
        self._thread: threading.Thread | None = None

    def begin(self, what: str) -> None:
        if self.what is None:
            self.what = what
            self._thread = threading.Thread(target=self._speak, daemon=True)
            self._thread.start()

    def end(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _speak(self) -> None:
        if self._ended.wait(MOMENT):
            return
        terminal = sys.stderr.isatty()
        text = f"sgmcmc compiles {self.what}, once for these types"
        sys.stderr.write(text + (" …" if terminal else " …\n"))
        sys.stderr.flush()
        while not self._ended.wait(BETWEEN):
            if terminal:
                sys.stderr.write(f"\r{text} … {time.perf_counter() - self._began:.0f} s")
                sys.stderr.flush()
        took = time.perf_counter() - self._began
        sys.stderr.write(f"\r{text}: {took:.1f} s\n" if terminal else f"sgmcmc compiled {self.what} in {took:.1f} s\n")
        sys.stderr.flush()


@contextlib.contextmanager
def said() -> Iterator[None]:
    """In this block, what `compiles` names is said; a block within another one is part of it."""
    if not _spoken.get() or _line.get() is not None:
        yield
        return
    line = _Line()
    token = _line.set(line)
    try:
        yield
    finally:
        _line.reset(token)
        line.end()


def compiles(what: str) -> None:
    """Name what is compiled now."""
    line = _line.get()
    if line is not None:
        line.begin(what)


@contextlib.contextmanager
def speaking(progress: object = True) -> Iterator[None]:
    """In this block, what is compiled is said unless `progress` is False; a block around it that speaks, speaks for it."""
    token = _spoken.set(_spoken.get() or progress is not False)
    try:
        yield
    finally:
        _spoken.reset(token)
