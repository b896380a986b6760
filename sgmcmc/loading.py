"""Machine code from a file: a kernel that was compiled before is loaded without its intermediate code.

Numba keeps both, the one to run and the other for functions that inline the kernel, and parses both in every process. Hardly
anybody inlines a kernel, and to parse one takes 20 ms, a twentieth of a short script. Here it is parsed when it is asked for.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as ll
from numba.core.caching import CompileResultCacheImpl
from numba.core.codegen import JITCodeLibrary

__all__ = ["LeanCache"]


class LeanCache(CompileResultCacheImpl):  # type: ignore[misc]
    """What is kept of a kernel: its machine code with the names of what is in it, its intermediate code, the rest."""

    def reduce(self, cres: Any) -> tuple[Any, ...]:
        (name, kind, (machine_code, bitcode)), *rest = super().reduce(cres)
        return (name, kind, (machine_code, _names_alone(bitcode))), bitcode, *rest

    def rebuild(self, target_context: Any, payload: tuple[Any, ...]) -> Any:
        library, bitcode, *rest = payload
        found = super().rebuild(target_context, (library, *rest))
        found.library.__class__ = _Loaded
        found.library.bitcode = bitcode
        return found


class _Loaded(JITCodeLibrary):  # type: ignore[misc]
    """A library whose intermediate code is still to be parsed, should anybody want to link it."""

    bitcode: bytes | None

    def _get_module_for_linking(self) -> Any:
        if self.bitcode is not None:
            self._shared_module, self.bitcode = ll.parse_bitcode(self.bitcode), None
        return super()._get_module_for_linking()


def _names_alone(bitcode: bytes) -> bytes:
    """A module that defines the same names, with nothing behind them: Numba asks it whether a name is there."""
    module = ll.parse_bitcode(bitcode)
    inside = (ll.Linkage.internal, ll.Linkage.private)
    lines = [f'define void @"{f.name}"() {{ unreachable }}' for f in module.functions if _is_seen(f, inside)]
    lines += [f'@"{g.name}" = global i8 0' for g in module.global_variables if _is_seen(g, inside)]
    names = ll.parse_assembly("\n".join(lines))
    return bytes(names.as_bitcode())


def _is_seen(value: Any, inside: tuple[Any, ...]) -> bool:
    return not value.is_declaration and value.linkage not in inside
