"""Parts are compiled to be linked, not to be run: typed and lowered once, optimised once, in the kernel that holds them.

Numba optimises every function with all that it calls, and generates machine code for it, so a leaf at the bottom of six
levels of calls would go through LLVM six times. Here a part stops at its intermediate representation; the kernel links what
it needs and optimises it as a whole. The parts of this package also go without the passes for what none of them has
(closures, array expressions, raised exceptions, …), and without timers that are notified of every call into LLVM.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as ll
from llvmlite.ir import Constant, IntType, MetaDataString, PointerType
from llvmlite.ir.instructions import Branch, ConditionalBranch
from numba.core import typed_passes, untyped_passes
from numba.core.cgutils import normalize_ir_text
from numba.core.codegen import CodeLibrary, JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import PassManager, _pass_registry
from numba.core.registry import CPUDispatcher

from sgmcmc.lowering import PartLowering, SingleAssignment, StripPhis, WholeLowering
from sgmcmc.remembering import Remembering, nothing_new, shared_flags
from sgmcmc.type_errors import blamed, in_package, returning

__all__ = ["KernelCompiler", "device_jit", "part_jit"]

# LLVM halves vectors on processors with AVX-512, since the first of them slowed down for long ones. Ours are loops of
# arithmetic, half as fast again with all 16 floats; elsewhere this changes nothing.
WIDE = '"prefer-vector-width"="512"'


def part_jit(apart: bool, name: str, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit`` for implementations of the open function `name`; if arrays lie `apart`, LLVM is told so."""
    compiler = _ApartCompiler if apart else _PartCompiler
    options |= {"nopython": True}

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = _PartDispatcher(function, targetoptions=options, pipeline_class=compiler)
        dispatcher.stands_for = name
        return dispatcher

    return decorate


def device_jit(called: bool, **_options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Numba's decorator for functions on a GPU; the options of `part_jit` are for the CPU.

    NVVM inlines all that it may. What is `called` stays a function of its own, so that its registers are free again after it.
    """
    from numba import cuda

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = cuda.jit(device=True)(function)
        if called:
            dispatcher.compile_device = _not_inlined(dispatcher.compile_device)
        return dispatcher

    return decorate


def _not_inlined(compile_device: Callable[..., Any]) -> Callable[..., Any]:
    def compile_and_mark(*arguments: Any) -> Any:
        compiled = compile_device(*arguments)
        for function in compiled.library._module.functions:
            if not function.is_declaration:
                function.attributes.discard("alwaysinline")
                function.attributes.add("noinline")
        return compiled

    return compile_and_mark


class _PartDispatcher(CPUDispatcher):  # type: ignore[misc]
    stands_for = ""  # the name of the open function

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._compiler._customize_flags = shared_flags

    def compile(self, sig: Any) -> Any:
        """Compile for these types. Numba's own also looks for a disk cache, and installs timers."""
        arguments = tuple(sig)
        if arguments not in self.overloads:
            with blamed(self.stands_for, self.py_func, arguments):
                found = self._compiler.compile(arguments, None)
            returning(self.stands_for, self.py_func, arguments, found.signature.return_type)
            self.add_overload(found)
        return self.overloads[arguments].entry_point


class _WideLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Machine code with vectors as long as the processor has them."""

    def add_ir_module(self, module: Any) -> None:
        for function in _defined(module):
            _mark(module, function)
        super().add_ir_module(module)


def _defined(module: Any) -> list[Any]:
    return [function for function in module.functions if not function.is_declaration]


def _mark(module: Any, function: Any) -> None:
    set.add(function.attributes, WIDE)  # llvmlite's own `add` knows the attributes without a value only
    _one_vector_at_a_time(module, function)


def _one_vector_at_a_time(module: Any, function: Any) -> None:
    """Ask for loops that take one vector per turn: LLVM's four need 32 floats, and leave fewer to be taken one by one."""
    count = module.add_metadata([MetaDataString(module, "llvm.loop.interleave.count"), Constant(IntType(32), 1)])
    for block in function.blocks:
        if block.is_terminated and isinstance(block.terminator, (Branch, ConditionalBranch)):
            loop = module.add_metadata([count, Constant(IntType(32), len(module.metadata))])
            loop.operands = (loop, count)  # a loop is known by a node that refers to itself
            block.terminator.set_metadata("llvm.loop", loop)


class _KernelLibrary(_WideLibrary):
    """The library of a kernel: it links the parts that it needs, each once, whoever calls them."""

    _linking_libraries: list[Any]

    def finalize(self) -> None:
        parts, self._linking_libraries = _reachable(self._linking_libraries)
        for text in (text for part in parts for text in part.texts):  # callers first: LLVM takes what is called already
            self._final_module.link_in(ll.parse_assembly(text))
        super().finalize()

    def _optimize_final_module(self) -> None:
        """Once, with all passes: their inliner goes from the leaves up and simplifies each function before it is copied.

        Numba simplifies functions first, and inlines once before, for a pass that removes reference counts; parts have none.
        """
        found = self._codegen._module_pass_manager()
        passes, *options = found if isinstance(found, tuple) else (found,)  # one manager, up to Numba 0.61
        passes.run(self._final_module, *options)


def _reachable(libraries: list[Any]) -> tuple[list[Any], list[Any]]:
    """The parts among libraries and among all that these link, and the libraries of Numba's own."""
    found: dict[Any, None] = {}
    waiting = list(libraries)
    while waiting:
        each = waiting.pop()
        if each not in found:
            found[each] = None
            waiting.extend(each._linking_libraries if isinstance(each, _PartLibrary) else ())
    parts = [each for each in found if isinstance(each, _PartLibrary)]
    return parts, [each for each in found if not isinstance(each, _PartLibrary)]


class KernelCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler, with long vectors."""

    library_class: Any = _KernelLibrary

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *arguments: Any) -> None:
        library = self.library_class(targetctx.codegen(), "kernel")
        library.enable_object_caching()
        self._contexts = typingctx, targetctx
        with nothing_new(*self._contexts):
            super().__init__(typingctx, targetctx, library, *arguments)

    def compile_extra(self, func: Any) -> Any:
        with nothing_new(*self._contexts):
            return super().compile_extra(func)


class _PartLibrary(_WideLibrary):
    """A library that stays text, which LLVM reads when a kernel is linked.

    Numba would parse, verify, simplify and copy every part, and what it calls with it, at every level of calls.
    """

    def __init__(self, codegen: Any, name: str) -> None:
        CodeLibrary.__init__(self, codegen, name)
        self._linking_libraries: list[Any] = []
        self.texts: list[str] = []

    @property
    def codegen(self) -> Any:
        return _NoEnvironment()

    def add_ir_module(self, module: Any) -> None:
        for function in _defined(module):
            function.linkage = "linkonce_odr"  # any of several will do, and none if all calls are inlined
            _mark(module, function)
        self.texts.append(normalize_ir_text(str(module)))

    def finalize(self) -> None:
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """For a function of a user's that calls a part, outside of any kernel.

        LLVM leaves out what is ``linkonce`` and not called yet, so it is that only afterwards.
        """
        module = ll.parse_assembly(str(self._codegen._create_empty_module(self.name)))
        parts, others = _reachable([self])
        for text in (text for part in parts for text in part.texts):
            module.link_in(ll.parse_assembly(text.replace("define linkonce_odr ", "define ")))
        for library in others:
            module.link_in(library._get_module_for_linking(), preserve=True)
        for function in module.functions:
            if not function.is_declaration and function.linkage == ll.Linkage.external:
                function.linkage = "linkonce_odr"
        return module

    def get_pointer_to_function(self, name: str) -> int:
        return 0  # there is no machine code; nothing ever calls a part by address


class _PartCompiler(KernelCompiler):
    """Numba's compiler for parts."""

    library_class = _PartLibrary

    @property
    def lowering(self) -> Any:
        """How its arguments are passed: LLVM is told what lies apart by a word for each pointer."""
        return WholeLowering if self.state.flags.forceinline else PartLowering

    def __init__(self, typingctx: Any, *arguments: Any) -> None:
        super().__init__(typingctx, *arguments)
        self.state.typingctx = Remembering(typingctx)

    def define_pipelines(self) -> list[Any]:
        inside = in_package(self.state.func_id.func)
        return [_short_pipeline(self.state.flags.nrt, self.lowering)] if inside else super().define_pipelines()


class _ApartLibrary(_PartLibrary):
    """The library of a part whose arrays do not overlap where it writes."""

    def add_ir_module(self, module: Any) -> None:
        for function in _defined(module):
            for argument in function.args[2:]:  # after the result and the exception
                if isinstance(argument.type, PointerType):
                    argument.add_attribute("noalias")
        super().add_ir_module(module)


class _ApartCompiler(_PartCompiler):
    library_class = _ApartLibrary
    lowering = PartLowering


class _Passes(PassManager):  # type: ignore[misc]
    """Passes, one after the other; Numba also tells listeners of each, times it, and checks what it left."""

    def run(self, state: Any) -> None:
        for each, _ in self.passes:
            _pass_registry.get(each).pass_inst.run_pass(state)


def _short_pipeline(nrt: bool, lowering: Any) -> Any:
    passes = _Passes("part")
    for each in (
        untyped_passes.TranslateByteCode,
        untyped_passes.FixupArgs,
        untyped_passes.IRProcessing,
        untyped_passes.RewriteSemanticConstants,
        untyped_passes.GenericRewrites,
        SingleAssignment,
        typed_passes.NopythonTypeInference,
        StripPhis,
        *([typed_passes.IRLegalization] if nrt else []),  # says where variables end, for the sake of reference counts
        lowering,
        typed_passes.NoPythonBackend,
    ):
        passes.add_pass(each, each.__name__)
    passes.finalize()
    return passes


class _NoEnvironment:
    """A part has no constants in a Python environment: nothing in nopython code reads one."""

    def set_env(self, name: str, environment: Any) -> None:
        pass
