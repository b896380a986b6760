"""What the commands share: types of arguments, words on stderr."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["Run", "at_least", "silent", "teach", "to_stderr"]

Run = Callable[[argparse.Namespace], None]


def at_least(low: float, kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """An argument type: a number from `low` on."""

    def convert(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value < float("inf"):
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{text!r} is not allowed; give {what} of at least {low:g}")
        return value

    return convert


def teach(parser: argparse.ArgumentParser, lesson: str) -> None:
    """Put examples and exit codes below the list of arguments, with the line breaks they have here."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = lesson


def silent(text: str) -> None:
    """Say nothing."""


def to_stderr(text: str) -> None:
    """Say it at once, where it does not mix with results."""
    print(text, file=sys.stderr, flush=True)
