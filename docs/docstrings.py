"""For the reference: lines of a docstring such as ``dim: the length of θ.`` become a list, as they read in a terminal."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ITEM = re.compile(r"^([a-z_]\w*(?:, [a-z_]\w*)*) ?: (?=\S)")
_HEADING = re.compile(r"^Parameters\n-+$\n", re.MULTILINE)


def as_list(text: str) -> str:
    """The docstring with its ``name: text`` lines as a Markdown list; continued lines stay with their item."""
    lines, inside = [], False
    for line in _HEADING.sub("", text).splitlines():
        item = _ITEM.match(line)
        if item is not None:
            lines += [] if inside else [""]
            names = ", ".join(f"`{name}`" for name in item[1].split(", "))
            lines.append(f"* {names}: {line[item.end() :]}")
            inside = True
        else:
            inside = inside and line.startswith("    ")
            lines.append(line)
    return "\n".join(lines)


class Lists(griffe.Extension):
    """Applies `as_list` to every docstring that the reference shows."""

    def on_instance(self, *, obj: griffe.Object, **options: Any) -> None:
        """Called once for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_list(obj.docstring.value)
