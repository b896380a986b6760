"""Arguments as they are: a part that is inlined anyway takes its NamedTuples whole.

Numba takes every argument apart into numbers and pointers where it is passed, and puts it together where it arrives: for a
dozen NamedTuples of arrays, hundreds of instructions at every call, written, printed and parsed only for LLVM to remove them
when it inlines the call. It also prepares each call for exceptions and ``None``, which parts of this package do not give back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite.ir import FunctionType, IntType
from numba import types
from numba.core import cgutils
from numba.core.callconv import Status
from numba.core.compiler_machinery import register_pass
from numba.core.imputils import impl_ret_new_ref
from numba.core.ir_utils import build_definitions
from numba.core.lowering import Lower
from numba.core.ssa import reconstruct_ssa
from numba.core.typed_passes import BaseNativeLowering, PreLowerStripPhis
from numba.core.untyped_passes import ReconstructSSA

__all__ = ["PartLowering", "SingleAssignment", "StripPhis", "WholeLowering"]


@register_pass(mutates_CFG=True, analysis_only=False)
class SingleAssignment(ReconstructSSA):  # type: ignore[misc]
    """Numba's pass without the lifetimes of variables, which only generators and reference counts need."""

    _name = "single_assignment"

    def run_pass(self, state: Any) -> bool:
        """Give every variable one assignment."""
        state.func_ir = reconstruct_ssa(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class StripPhis(PreLowerStripPhis):  # type: ignore[misc]
    """As above, without lifetimes."""

    _name = "part_strip_phis"

    def run_pass(self, state: Any) -> bool:
        """Turn phis into assignments."""
        state.func_ir = self._strip_phi_nodes(state.func_ir)
        return True


class _PartLower(Lower):  # type: ignore[misc]
    """Marks what it makes as one of our parts, in which an exception ends everything."""

    def setup_function(self, fndesc: Any) -> None:
        super().setup_function(fndesc)
        self.function.is_part = True


class _WholeLower(_PartLower):
    def setup_function(self, fndesc: Any) -> None:
        declare = self.context.declare_function
        self.context.declare_function = lambda module, fndesc: _declare(self.context, module, fndesc)
        try:
            super().setup_function(fndesc)
        finally:
            self.context.declare_function = declare

    def extract_function_arguments(self) -> Any:
        self.fnargs = list(self.function.args[2:])  # after the result and the exception
        return self.fnargs


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(BaseNativeLowering):  # type: ignore[misc]
    """For parts that are called: Numba's own way of passing arguments."""

    _name = "part_lowering"

    @property
    def lowering_class(self) -> Any:
        """What lowers."""
        return _PartLower


@register_pass(mutates_CFG=True, analysis_only=False)
class WholeLowering(BaseNativeLowering):  # type: ignore[misc]
    """For parts that are inlined: arguments as they are."""

    _name = "whole_lowering"

    @property
    def lowering_class(self) -> Any:
        """What lowers."""
        return _WholeLower

    def run_pass(self, state: Any) -> bool:
        """Lower, and tell those who will call it how."""
        if isinstance(state.return_type, types.Optional):
            return bool(PartLowering().run_pass(state))
        context = state.targetctx  # made for this part alone

        def insert(function: Any, fndesc: Any, libraries: Any) -> None:
            call = _call_of(fndesc, libraries)
            context._defns[function].append(call, call.signature)  # type: ignore[attr-defined]

        context.insert_user_function = insert
        return bool(super().run_pass(state))


def _declare(context: Any, module: Any, fndesc: Any) -> Any:
    flat = context.call_conv.get_function_type(fndesc.restype, ())
    whole = [context.get_value_type(each) for each in fndesc.argtypes]
    function = cgutils.get_or_insert_function(
        module, FunctionType(flat.return_type, [*flat.args, *whole]), fndesc.mangled_name
    )
    for argument in function.args[:2]:
        argument.add_attribute("noalias")
    function.attributes.add("alwaysinline")
    return function


def _call_of(fndesc: Any, libraries: Any) -> Callable[..., Any]:
    """How a part is called that takes its arguments whole."""

    def call(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = _declare(context, builder.module, fndesc)
        result = cgutils.alloca_once(builder, function.args[0].type.pointee)
        exception = builder.function.args[1]  # where the caller would put one of its own
        code = builder.call(function, [result, exception, *arguments])
        with cgutils.if_unlikely(builder, builder.icmp_signed("!=", code, IntType(32)(0))):
            if getattr(builder.function, "is_part", False):
                builder.ret(code)
            else:
                status = Status(code, None, None, None, None, None, None, builder.load(exception))
                context.call_conv.return_status_propagate(builder, status)
        value = context.get_returned_value(builder, fndesc.restype, builder.load(result))
        return impl_ret_new_ref(context, builder, fndesc.restype, value)

    call.signature = fndesc.argtypes  # type: ignore[attr-defined]
    call.libs = tuple(libraries)  # type: ignore[attr-defined]
    return call
