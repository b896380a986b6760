"""For the reference: parameters that share an entry, ``a, b : float``, get one each, shown with their own defaults."""

from __future__ import annotations

import re
from typing import Any

import griffe

_SHARED = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)+)( : .+(?:\n    .+)*)", re.MULTILINE)


def one_by_one(text: str) -> str:
    """Returns a docstring in which every entry of a section has one name."""
    return _SHARED.sub(lambda entry: "\n".join(name + entry[2] for name in entry[1].split(", ")), text)


class OneByOne(griffe.Extension):
    """Applies `one_by_one` to every docstring that the reference shows."""

    def on_instance(self, *, obj: griffe.Object, **options: Any) -> None:
        """Called once for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = one_by_one(obj.docstring.value)
