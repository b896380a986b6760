"""Docstrings of a part's fields: what the docstring of its class says of them under Parameters."""

from __future__ import annotations

import inspect
import re
from typing import TypeVar

__all__ = ["documented"]

Part = TypeVar("Part", bound=type)
_ENTRY = re.compile(r"^(\w+(?:, \w+)*) : (.+)((?:\n    .+)*)", re.MULTILINE)


def documented(part: Part) -> Part:
    """Returns the class of a part, with its fields documented: `help` shows that in place of "Alias for field number 0"."""
    text = inspect.cleandoc(part.__doc__ or "").partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    for names, kind, said in _ENTRY.findall(text):
        for name in names.split(", "):
            getattr(part, name).__doc__ = ": ".join(filter(None, (kind, " ".join(said.split()))))
    return part
