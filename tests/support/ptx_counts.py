"""What a kernel does, counted while its PTX runs on the CPU: arithmetic by pipe, and bytes that leave the registers.

An instruction counts once whatever it costs, but for integers of 64 bits, which are two of 32 on a GPU. Moves, branches, calls
and the reading of parameters do not count: the assembler removes most of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ptx_text import BITS, FLOATS, split

KINDS = ("single", "double", "special", "integer", "loaded", "stored")
SPECIAL = {"ex2", "lg2", "sin", "cos", "rcp", "rsqrt", "sqrt", "div", "tanh"}
FREE = {"mov", "cvta", "bra", "ret", "exit", "call", "bar", "barrier", "membar", "fence", "trap"}


class Counts(NamedTuple):
    """Instructions and bytes."""

    single: int
    double: int
    special: int
    integer: int
    loaded: int
    stored: int


def kind_of(base: str, mods: list[str], operands: list[str]) -> tuple[str, int] | None:
    """What an instruction counts as, and how much."""
    kind = mods[-1] if mods else ""
    if base in FREE:
        return None
    if base in ("ld", "st"):
        if {"param", "shared", "local", "const"} & set(mods):
            return None
        vector = operands[0] if base == "ld" else operands[1]
        return ("loaded" if base == "ld" else "stored"), len(split(vector.strip("{}"))) * BITS[kind] // 8
    if kind in FLOATS and base != "cvt":
        return (("special" if base in SPECIAL else ("double" if kind == "f64" else "single")), 1)
    return "integer", 2 if BITS.get(kind, 32) == 64 else 1


def add_to(code: Any, base: str, mods: list[str], operands: list[str]) -> None:
    """Code that counts the instruction that comes next."""
    found = kind_of(base, mods, operands)
    if found is not None:
        kind, amount = found
        place = f"getelementptr (i64, ptr @{code.module.prefix}counts, i64 {KINDS.index(kind)})"
        before = code.value(f"load i64, ptr {place}")
        code.lines.append(f"store i64 {code.value(f'add i64 {before}, {amount}')}, ptr {place}")
