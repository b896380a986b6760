"""Ctrl-C while LLVM generates code: it waits until the code is there and kept, and is then raised.

LLVM calls back into Python with the code it has generated, and to ask for code generated before. Python may raise a
KeyboardInterrupt inside such a call, where it is printed and lost: the run went on to its end, the code was not kept, and code
that was asked for could be taken for missing.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["with_late_interrupts"]


def with_late_interrupts(compile_for: Callable[..., Any], engine: Callable[[], Any]) -> Callable[..., Any]:
    """A dispatcher's `compile` that raises what was pressed while the engine generated code at its end."""

    def wrapped(sig: Any) -> Any:
        with _late(engine()):
            return compile_for(sig)

    return wrapped


@contextlib.contextmanager
def _late(engine: Any) -> Iterator[None]:
    """In this block Ctrl-C waits while the engine generates code, and is raised at the end of the block."""
    if not _on_main_thread() or "finalize_object" in vars(engine):
        yield  # Python raises KeyboardInterrupt on its main thread only; or an outer block takes care of it
        return
    pressed: list[Any] = []
    generate = engine.finalize_object

    def finalize_object() -> None:
        with _noted(pressed):
            generate()

    engine.finalize_object = finalize_object
    try:
        yield
    finally:
        del engine.finalize_object
        handler = signal.getsignal(signal.SIGINT)
        if pressed and callable(handler):
            handler(*pressed[0])


@contextlib.contextmanager
def _noted(pressed: list[Any]) -> Iterator[None]:
    """In this block Ctrl-C is written down."""
    handler = signal.getsignal(signal.SIGINT)
    if not _on_main_thread() or not callable(handler):  # another thread compiles at the same time; or Ctrl-C is ignored
        yield
        return
    signal.signal(signal.SIGINT, lambda *place: pressed.append(place))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
