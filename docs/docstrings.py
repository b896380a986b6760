"""For the reference: every parameter with its own default, also where two share an entry, and in named tuples."""

from __future__ import annotations

import re
from typing import Any

import griffe

_SHARED = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)+)( : .+(?:\n    .+)*)", re.MULTILINE)


def one_by_one(text: str) -> str:
    """Returns a docstring in which every entry of a section has one name."""
    return _SHARED.sub(lambda entry: "\n".join(name + entry[2] for name in entry[1].split(", ")), text)


def of_fields(cls: griffe.Class) -> griffe.Function:
    """Returns the constructor of a named tuple, which takes its fields in their order."""
    kind = griffe.ParameterKind.positional_or_keyword
    fields = [
        griffe.Parameter(f.name, kind=kind, default=f.value)
        for f in cls.attributes.values()
        if "property" not in f.labels
    ]
    return griffe.Function("__init__", parameters=griffe.Parameters(*fields), parent=cls)


class Defaults(griffe.Extension):
    """Lets every parameter be shown with its own default."""

    def on_instance(self, *, obj: griffe.Object, **options: Any) -> None:
        """Called once for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = one_by_one(obj.docstring.value)

    def on_class_members(self, *, cls: griffe.Class, **options: Any) -> None:
        """A part is made by ``__new__``, or of its fields: its defaults are shown as those of any class."""
        if "__new__" in cls.members:
            cls.members.setdefault("__init__", cls.members["__new__"])
        elif "NamedTuple" in map(str, cls.bases):
            cls.members["__init__"] = of_fields(cls)
