"""All of the repository that touches Numba's insides. `plain` does the same on its public API, some five times slower.

Parts are compiled to be linked, not to be run. Numba optimises every function with all that it calls, and generates machine code
for it, so a leaf at the bottom of six levels of calls would go through LLVM six times. Here a part stops at its intermediate
representation; the kernel links what it needs and optimises it as a whole.

What is used, in what for, and what happens without it: see `INSIDES`. If one is missing, `backend` takes `plain`.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import itertools
import os
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import llvmlite.binding as ll
from llvmlite.ir import Constant, IntType, MetaDataString, PointerType
from llvmlite.ir.instructions import Branch, ConditionalBranch
from numba import errors, njit, types
from numba.core import bytecode, codegen, compiler, registry, runtime, serialize, typed_passes, untyped_passes
from numba.core.compiler_machinery import PassManager
from numba.core.typing import templates
from numba.extending import typeof_impl

from sgmcmc.compiler.literals import class_of, compiled_form
from sgmcmc.compiler.type_errors import blamed, in_package, returning, with_plain_errors

__all__ = [
    "INSIDES",
    "cuda_driver",
    "declare",
    "dumps",
    "engine",
    "kernel",
    "missing",
    "registers_of",
]

# Name, what it is used for, what happens without it (beside that `plain` is taken). After () comes an attribute of objects,
# which is looked for in the code of their class. Those of CUDA's are used on GPUs alone.
INSIDES = (
    ("numba.core.typing.templates:AbstractTemplate", "one compilation of a part for all its callers", "three of them"),
    ("numba.core.registry:CPUDispatcher", "a part is compiled without looking for files", "slower"),
    (
        "numba.core.registry:CPUDispatcher()._compiler",
        "the same; errors of a user's function in a few lines",
        "hundreds",
    ),
    (
        "numba.core.dispatcher:_FunctionCompiler()._failed_cache",
        "a function that was mended is tried again",
        "a new session",
    ),
    ("numba.core.registry:CPUDispatcher()._cache", "kernels are kept by their content", "stale kernels"),
    ("numba.core.registry:cpu_target", "the processor, and what generates code for it", "no kept kernels"),
    (
        "numba.core.compiler:Compiler",
        "libraries of our own for parts and kernels",
        "LLVM works at every level of calls",
    ),
    ("numba.core.compiler_machinery:PassManager", "fewer passes for parts", "first compilations take a tenth longer"),
    ("numba.core:untyped_passes", "the same", ""),
    ("numba.core:typed_passes", "the same", ""),
    ("numba.core.compiler:CompileResult._reduce", "kernels to files", "every process compiles"),
    ("numba.core.compiler:CompileResult._rebuild", "kernels from files", "every process compiles"),
    ("numba.core.options:DefaultOptions._nrt", "parts without reference counts", "steps slow down by atomic counts"),
    ("numba.core.codegen:CodeLibrary", "a part stays text", "it is optimised by itself"),
    ("numba.core.codegen:JITCodeLibrary", "the library of a kernel", "as above"),
    ("numba.core.codegen:CPUCodeLibrary()._linking_libraries", "what a kernel links, each once", "as above"),
    ("numba.core.codegen:CPUCodeLibrary()._final_module", "where a kernel is linked", "as above"),
    ("numba.core.codegen:CPUCodeLibrary._optimize_final_module", "one run of LLVM's passes", "two of them"),
    (
        "numba.core.codegen:CPUCodeLibrary._get_module_for_linking",
        "a user's function that calls a part",
        "no such function",
    ),
    ("numba.core.codegen:CPUCodeLibrary()._codegen", "the passes", "as above"),
    ("numba.core.codegen:CPUCodegen._module_pass_manager", "the passes", "as above"),
    ("numba.core.codegen:CPUCodegen()._engine", "Ctrl-C while code is generated waits", "it is lost"),
    ("numba.core.bytecode:FunctionIdentity._unique_ids", "names that no other process gives", "numba#10486"),
    ("numba.core.serialize:dumps", "classes of a script are kept by value", "their kernels are not kept"),
    ("numba.core.runtime:rtsys", "a kernel is loaded without what only compiling needs", "20 ms more"),
)
CUDA_INSIDES = (
    "CUDACache._index_key",
    "CUDACache._cache_file",
    "_launch_config_key",
    "_codelibrary",
    "_module",
    "driver",
)


def missing() -> list[str]:
    """What of `INSIDES` this Numba does not have: the self-test, in a millisecond once Numba is there."""
    return [name for name, _use, _without in INSIDES if not _is_there(name)]


def _is_there(name: str) -> bool:
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            if isinstance(found, type) and f"{found.__name__}()." in path:
                return _is_set_in(found, part)
            found = getattr(found, part.removesuffix("()"))
    except (ImportError, AttributeError):
        return False
    return True


def _is_set_in(cls: type, attribute: str) -> bool:
    """Whether the code of a class, or of its bases, reads or sets an attribute."""
    inside = (getattr(f, "__code__", None) for each in cls.__mro__ for f in vars(each).values())
    return any(code is not None and attribute in code.co_names for code in inside)


def _number_from_anywhere() -> None:
    """Names of compiled functions are numbered from 1 in every process. Two functions of one name that two processes have kept
    would answer to one name in a third that loads both (numba#10486)."""
    bytecode.FunctionIdentity._unique_ids = itertools.count(secrets.randbits(60))


_number_from_anywhere()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_number_from_anywhere)
dumps = serialize.dumps


# ---- open functions -------------------------------------------------------------------------------------------------


def declare(function: Any) -> None:
    """Let Numba know of an open function: it asks for its type when compiled code first meets it."""
    if type(function) not in _declared:
        _declared.add(type(function))
        typeof_impl.register(type(function))(_numba_type)


_declared: set[type] = set()


def _numba_type(function: Any, _context: Any) -> Any:
    """What Numba calls the type of an open function; made when it is first asked for, which keeps imports quick."""
    if function.numba_type is None:
        template = type(function.__name__, (_ChosenByTypes,), {"key": function, "parts": {}, "entries": {}})
        function.numba_type = types.Function(template)
    return function.numba_type


class _ChosenByTypes(templates.AbstractTemplate):  # type: ignore[misc]
    """What ``numba.extending.overload`` does, but one compilation serves all callers.

    Numba keeps one per set of the caller's compile options. Ours are set explicitly, so they do not depend on the caller,
    and a leaf that is used by leaves, loops and kernels would be compiled three times for nothing.
    """

    key: Any
    context: Any
    parts: dict[Any, Any]
    entries: dict[Any, Any]

    def generic(self, args: Any, kws: Any) -> Any:
        """The signature of the part that serves these types, which is compiled."""
        try:
            args = inspect.signature(self.key).bind(*args, **kws).args
        except TypeError as error:
            raise errors.TypingError(f"{self.key.__name__}: {error}") from None
        key = self.context, args
        made = self.parts[key] if key in self.parts else self._made(args)
        if made is None:
            return None
        part = types.Dispatcher(made)
        found = part.get_call_type(self.context, args, {})
        self.entries[found.args] = part.get_overload(found)
        self.parts[key] = made  # one that does not compile may be mended
        return found

    def get_impl_key(self, sig: Any) -> Any:
        """What Numba finds the code of a signature by."""
        return self.entries[sig.args]

    def _made(self, args: Any) -> Any:
        device = _is_device(self.context)
        form = compiled_form(self.key, args, device)
        if form is None:
            return None
        return _device_part(self.key, form) if device else _part(self.key, args, form)


def _is_device(context: Any) -> bool:
    """Whether this typing context is that of Numba's CUDA target, built in or of the package numba-cuda."""
    return type(context).__module__.startswith("numba.cuda")


def _options(function: Any, signature: tuple[Any, ...]) -> dict[str, Any]:
    """Compile options of an implementation. Nothing calls it but compiled code, so it needs no entry from Python or C."""
    classes = [class_of(t) for t in signature[: function.on]]
    key = None if None in classes else function.key_for(tuple(classes))
    return {
        "nopython": True,
        "forceinline": function.inline,
        "fastmath": _InOrder(function.fastmath),
        "error_model": "numpy",
        "no_cpython_wrapper": True,
        "no_cfunc_wrapper": True,
        "_nrt": key is None or function.allocates[key],
    }


class _InOrder(set[str]):
    """Options that are written in the same order in every process: they are in the name of a compiled function."""

    def __repr__(self) -> str:
        return repr(sorted(self))


# ---- parts: compiled as far as text ---------------------------------------------------------------------------------


def _part(function: Any, args: Any, form: Callable[..., Any]) -> Any:
    """``numba.njit`` for an implementation of an open function; if arrays lie apart, LLVM is told so."""
    own = _ApartCompiler if function.apart else _PartCompiler
    dispatcher = _PartDispatcher(form, targetoptions=_options(function, args), pipeline_class=own)
    dispatcher.stands_for = function.__name__
    return dispatcher


class _PartDispatcher(registry.CPUDispatcher):  # type: ignore[misc]
    stands_for = ""  # the name of the open function

    def compile(self, sig: Any) -> Any:
        """Compile for these types. Numba's own also looks for a disk cache, and installs timers."""
        arguments = tuple(sig)
        if arguments not in self.overloads:
            key = _part_key(self, arguments)
            self.add_overload(_kept_part(key, arguments) or self._compiled(arguments, key))
        return self.overloads[arguments].entry_point

    def _compiled(self, arguments: tuple[Any, ...], key: str) -> Any:
        with blamed(self.stands_for, self.py_func, arguments), _named_after(key):
            found = self._compiler.compile(arguments, None)
        returning(self.stands_for, self.py_func, arguments, found.signature.return_type)
        _keep_part(found, key)
        return found


# LLVM halves vectors on processors with AVX-512, since the first of them slowed down for long ones. Ours are loops of
# arithmetic, half as fast again with all 16 floats; elsewhere this changes nothing.
WIDE = '"prefer-vector-width"="512"'


class _WideLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]
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


class _PartLibrary(_WideLibrary):
    """A library that stays text, which LLVM reads when a kernel is linked.

    Numba would parse, verify, simplify and copy every part, and what it calls with it, at every level of calls.
    """

    def __init__(self, own_codegen: Any, name: str) -> None:
        codegen.CodeLibrary.__init__(self, own_codegen, name)
        self._linking_libraries: list[Any] = []
        self.texts: list[str] = []
        self.numbas: list[str] = []  # of a part from a file: the texts of Numba's own functions that it calls
        self.key = self.symbol = ""

    @property
    def codegen(self) -> Any:
        return _NoEnvironment()

    def add_ir_module(self, module: Any) -> None:
        for function in _defined(module):
            function.linkage = "linkonce_odr"  # any of several will do, and none if all calls are inlined
            _mark(module, function)
        self.texts.append(str(module).encode().decode("latin1"))  # as LLVM wants it

    def finalize(self) -> None:
        """Nothing: it is text."""

    def _get_module_for_linking(self) -> Any:
        """For a function of a user's that calls a part, outside of any kernel.

        LLVM leaves out what is ``linkonce`` and not called yet, so parts are that only afterwards. Numba's own functions, of
        which several parts may bring the same, are called by now.
        """
        parts, others = _reachable([self])
        texts = [text.replace("define linkonce_odr ", "define ") for part in parts for text in part.texts]
        module, *more = map(ll.parse_assembly, texts + [text for part in parts for text in part.numbas])
        for each in more:
            module.link_in(each)
        for library in others:
            module.link_in(library._get_module_for_linking(), preserve=True)
        for function in module.functions:
            if not function.is_declaration and function.linkage == ll.Linkage.external:
                function.linkage = "linkonce_odr"
        return module

    def get_pointer_to_function(self, name: str) -> int:
        return 0  # there is no machine code; nothing ever calls a part by address


class _NoEnvironment:
    """A part has no constants in a Python environment: nothing in nopython code reads one."""

    def set_env(self, name: str, environment: Any) -> None:
        pass


class _ApartLibrary(_PartLibrary):
    """The library of a part whose arrays do not overlap where it writes."""

    def add_ir_module(self, module: Any) -> None:
        for function in _defined(module):
            for argument in function.args[2:]:  # after the result and the exception
                if isinstance(argument.type, PointerType):
                    argument.add_attribute("noalias")
        super().add_ir_module(module)


class PartStore:
    """Where parts are kept as text, so that another kernel, or one around a new gradient, types only what is new.

    SGNHT with an own gradient takes 2.3 s then in place of 4.3, of which 1.3 are LLVM's; a first SGMGT-D after it 5.0 in place
    of 5.7. Parts that call a function of the user's are not kept, nor is what they are called by.
    """

    files: Any = None
    loaded: dict[str, Any] = {}  # noqa: RUF012


def _part_key(dispatcher: Any, arguments: tuple[Any, ...]) -> str:
    """The content of a part of this package, and of all it may call; "" for one that is not kept."""
    if PartStore.files is None or not in_package(dispatcher.py_func):
        return ""
    options = sorted((name, sorted(v) if isinstance(v, set) else v) for name, v in dispatcher.targetoptions.items())
    target = (
        *_target_of(arguments)[1],
        dispatcher.stands_for,
        dispatcher._compiler.pipeline_class.__name__,
        repr(options),
    )
    return str(PartStore.files.key_of(dispatcher.py_func, arguments, target))


@contextlib.contextmanager
def _named_after(key: str) -> Iterator[None]:
    """In this block the function that is compiled next is numbered after its key: every process gives it the same name."""
    counter = bytecode.FunctionIdentity._unique_ids
    if key:
        bytecode.FunctionIdentity._unique_ids = itertools.chain([int(key[:15], 16)], counter)
    try:
        yield
    finally:
        bytecode.FunctionIdentity._unique_ids = counter


def _keep_part(found: Any, key: str) -> None:
    """Keep the text of a part with the keys of those it calls; not if it calls what is neither a part nor Numba's own, or
    holds an address of this process."""
    library = found.library
    links = [each for each in library._linking_libraries if each is not runtime.rtsys.library]
    called = {each.key: each.symbol for each in links if isinstance(each, _PartLibrary)}
    texts = [_text_of(each) for each in links if not isinstance(each, _PartLibrary)]
    if not (key and all(called) and all(texts)) or library.has_dynamic_globals:
        return
    library.key, library.symbol = key, found.fndesc.mangled_name
    PartStore.loaded[key] = found
    fndesc = found.fndesc
    fndesc.typemap = fndesc.calltypes = None
    PartStore.files.save(key, (library.texts, texts, called, fndesc, found.signature, found.environment))


def _text_of(library: Any) -> str | None:
    """A library of Numba's own functions as text; None if there is a function of anybody else's in it."""
    module = library._get_module_for_linking()
    names = [f.name for f in module.functions if not f.is_declaration]
    return str(module) if all("_ZN5numba" in name for name in names) else None


def _kept_part(key: str, arguments: tuple[Any, ...]) -> Any:
    """A part for these very types. A class of a script comes back from a file as another one of the same content."""
    found = _loaded_part(key) if key else None
    return None if found is None or found.signature.args != arguments else found


def _loaded_part(key: str) -> Any:
    """A part from a file, with all that it calls, as if it had been compiled here; None if anything of it is missing."""
    if key in PartStore.loaded:
        return PartStore.loaded[key]
    kept = PartStore.files.load(key)
    if kept is None:
        return None
    texts, numbas, links, fndesc, signature, environment = kept
    called = [_loaded_part(link) for link in links]
    if [None if each is None else each.library.symbol for each in called] != list(links.values()):
        return None  # one of them is missing, or was compiled again under another name
    context = registry.cpu_target.target_context
    library = _PartLibrary(context.codegen(), fndesc.qualname)
    library.texts, library.numbas, library.key, library.symbol = texts, numbas, key, fndesc.mangled_name
    library._linking_libraries = [each.library for each in called]
    found = compiler.compile_result(
        typing_context=registry.cpu_target.typing_context,
        target_context=context,
        entry_point=context.get_executable(library, fndesc, environment),
        environment=environment,
        signature=signature,
        library=library,
        fndesc=fndesc,
        objectmode=False,
        lifted=(),
    )
    context.insert_user_function(found.entry_point, fndesc, [library])
    PartStore.loaded[key] = found
    return found


def _reachable(libraries: list[Any]) -> tuple[list[Any], list[Any]]:
    """The parts among libraries and among all that these link, callers first; and the libraries of Numba's own.

    LLVM leaves out what is ``linkonce`` and not called yet, so all that call a part come before it.
    """
    found: dict[Any, None] = {}
    after: list[Any] = []

    def visit(each: Any) -> None:
        if each not in found:
            found[each] = None
            for called in each._linking_libraries if isinstance(each, _PartLibrary) else ():
                visit(called)
            after.append(each)

    for each in libraries:
        visit(each)
    parts = [each for each in reversed(after) if isinstance(each, _PartLibrary)]
    return parts, [each for each in after if not isinstance(each, _PartLibrary)]


# ---- kernels --------------------------------------------------------------------------------------------------------


class _KernelLibrary(_WideLibrary):
    """The library of a kernel: it links the parts that it needs, each once."""

    _linking_libraries: list[Any]

    def finalize(self) -> None:
        parts, self._linking_libraries = _reachable(self._linking_libraries)
        for text in (text for part in parts for text in part.texts + part.numbas):
            self._final_module.link_in(ll.parse_assembly(text))
        super().finalize()

    def _optimize_final_module(self) -> None:
        """Once, with all passes: their inliner goes from the leaves up and simplifies each function before it is copied.

        Numba simplifies functions first, and inlines once before, for a pass that removes reference counts; parts have none.
        """
        found = self._codegen._module_pass_manager()
        passes, *options = found if isinstance(found, tuple) else (found,)  # one manager, up to Numba 0.61
        passes.run(self._final_module, *options)


class _KernelCompiler(compiler.Compiler):  # type: ignore[misc]
    """Numba's compiler, with a library of its own."""

    library_class: Any = _KernelLibrary

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *arguments: Any) -> None:
        library = self.library_class(targetctx.codegen(), "kernel")
        library.enable_object_caching()
        super().__init__(typingctx, targetctx, library, *arguments)


class _PartCompiler(_KernelCompiler):
    library_class = _PartLibrary

    def define_pipelines(self) -> list[Any]:
        """Parts of this package go without the passes for what none of them has: closures, array expressions, exceptions, …

        It takes a tenth off a first compilation (SGNHT with an own gradient).
        """
        return [_short_pipeline()] if in_package(self.state.func_id.func) else super().define_pipelines()


class _ApartCompiler(_PartCompiler):
    library_class = _ApartLibrary


def _short_pipeline() -> Any:
    passes = PassManager("part")
    for each in (
        untyped_passes.TranslateByteCode,
        untyped_passes.FixupArgs,
        untyped_passes.IRProcessing,
        untyped_passes.RewriteSemanticConstants,
        untyped_passes.GenericRewrites,
        untyped_passes.ReconstructSSA,
        typed_passes.NopythonTypeInference,
        typed_passes.PreLowerStripPhis,
        typed_passes.IRLegalization,
        typed_passes.NativeLowering,
        typed_passes.NoPythonBackend,
    ):
        passes.add_pass(each, each.__name__)
    passes.finalize()
    return passes


def kernel(function: Callable[..., Any], options: dict[str, Any], keep: Any, around: Callable[..., Any]) -> Any:
    """Compile a module-level function, `around` every compilation, kept in the files of `keep` under their keys."""
    # Nothing calls a kernel from C: an entry for that is a hundred arguments, copied, in a tenth of the machine code.
    compiled = njit(**options, no_cfunc_wrapper=True, pipeline_class=_KernelCompiler)(function)
    compiled._cache = _KernelCache(keep)
    own = compiled._compiler
    own.compile = with_plain_errors(own.compile, own._failed_cache.clear)
    compiled.compile = around(compiled.compile, engine)
    return compiled


def engine() -> Any:
    """What generates machine code, to be told of Ctrl-C."""
    return registry.cpu_target.target_context.codegen()._engine


class _KernelCache:
    """What a dispatcher of Numba's asks for compiled code before it compiles, and hands it to afterwards."""

    cache_path = ""

    def __init__(self, keep: Any) -> None:
        self._keep = keep

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, unless it holds an address of this process."""
        if not data.library.has_dynamic_globals:
            self._keep.save(self._keep.key_of(*_target_of(sig)), data._reduce())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for these very types, by their content.

        A class that a script defines is kept by value, and comes back as another class of the same content. Under the types of
        that class no call would find the kernel: each would load it again, until the memory is full.
        """
        found = self._keep.load(self._keep.key_of(*_target_of(sig)))
        if found is None:
            return None
        runtime.rtsys.initialize(target_context)  # all that machine code needs; a refresh loads what compiling does
        result = compiler.CompileResult._rebuild(target_context, *found)
        return result._replace(signature=result.signature.return_type(*sig))

    def enable(self) -> None:
        """Numba's word for what it always is here."""

    disable = enable

    def flush(self) -> None:
        self._keep.flush()


def _target_of(sig: Any) -> tuple[Any, tuple[Any, ...]]:
    """The types, and the processor: Numba hands over a tuple of types, or a signature."""
    return getattr(sig, "args", sig), registry.cpu_target.target_context.codegen().magic_tuple()


# ---- GPUs -----------------------------------------------------------------------------------------------------------


def _device_part(function: Any, form: Callable[..., Any]) -> Any:
    """A function on a GPU. NVVM inlines all that it may; what is `called` stays a function of its own, so that its registers are
    free again after it."""
    from numba import cuda

    dispatcher = cuda.jit(device=True)(form)
    if function.called:
        dispatcher.compile_device = _not_inlined(dispatcher.compile_device)
    return dispatcher


def _not_inlined(compile_device: Callable[..., Any]) -> Callable[..., Any]:
    def compile_and_mark(*arguments: Any) -> Any:
        compiled = compile_device(*arguments)
        for function in compiled.library._module.functions:
            if not function.is_declaration:
                function.attributes.discard("alwaysinline")
                function.attributes.add("noinline")
        return compiled

    return compile_and_mark


def keep_device_kernel(compiled: Any, keep: Any, guard: Callable[[], Any]) -> None:
    """Let a kernel for GPUs be kept in the files of `keep`; whatever goes wrong with them is caught by `guard`."""
    from numba.cuda.dispatcher import CUDACache

    class Cache(CUDACache):  # type: ignore[misc]
        def __init__(self, function: Callable[..., Any]) -> None:
            super().__init__(function)
            self._cache_file = keep

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            with guard():
                return super().load_overload(sig, target_context)

        def save_overload(self, sig: Any, data: Any) -> None:
            with guard():
                super().save_overload(sig, data)

        def _index_key(self, sig: Any, codegen: Any) -> str:
            """The launch shape counts where the package numba-cuda says that it has shaped the code."""
            arguments = getattr(sig, "args", sig)
            target = *codegen.magic_tuple(), str(getattr(self, "_launch_config_key", None))
            return str(keep.key_of(arguments, target))

    compiled._cache = Cache(compiled.py_func)


def cuda_driver() -> Any:
    """Numba's handle of the CUDA driver."""
    from numba.cuda.cudadrv.driver import driver

    return driver


def registers_of(compiled: Any) -> Any:
    """The machine code of a kernel for GPUs, which knows what it needs."""
    return compiled._codelibrary.get_cufunc()


def keep_parts(files: Any) -> None:
    """Keep parts in these files."""
    PartStore.files = files
