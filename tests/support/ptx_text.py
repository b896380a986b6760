"""PTX as text: types, where a brace is closed, statements, operands."""

from __future__ import annotations

import re
from collections.abc import Iterator

BITS = {f"{kind}{bits}": bits for kind in "bus" for bits in (8, 16, 32, 64)} | {"f32": 32, "f64": 64, "pred": 1}
FLOATS = {"f32": "float", "f64": "double"}


def type_of(kind: str) -> str:
    """LLVM's name of a type."""
    return FLOATS.get(kind, f"i{BITS[kind]}")


def closing(text: str, start: int) -> int:
    """Where the brace that opens at `start` is closed."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.start()
    raise ValueError("a brace is not closed")


def statements(body: str) -> Iterator[str]:
    """Instructions, declarations, labels (with their colon), and the braces of scopes."""
    for raw in re.split(r"(?<=;)|(?<=:)(?=\s)", body):
        text = raw.strip()
        while text[:1] in ("{", "}") and not re.match(r"\{[^;]*\}\s*,", text):  # a scope, not a vector
            yield text[0]
            text = text[1:].strip()
        text = text.removesuffix(";").strip()
        if text != "":
            yield text


def split(operands: str) -> list[str]:
    """Operands at commas that are in no bracket."""
    parts = re.split(r",(?![^{\[(]*[}\])])", operands)
    return [p.strip() for p in parts if p.strip() != ""]
