"""Runs the PTX of a CUDA kernel on the CPU: PTX to LLVM's language to machine code, through llvmlite, which Numba brings.

It shows what the simulator cannot: Numba's typing for CUDA, NVVM's fused multiplications and optimisations, 32- and 64-bit
integers as a GPU has them. It cannot show what hardware does: assembly, the order of memory, approximate instructions
(computed exactly here), speed. An instruction that is not known is an error.

Threads run one after another, those of all blocks, from barrier to barrier, in an order that the caller chooses. Of two
threads that touch the same number between two barriers either may come first: a kernel that lacks a barrier, or whose blocks
get into each other's way, gives other results in another order.
"""

from __future__ import annotations

import ctypes
import itertools
import re
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from ptx_code import N_SPECIAL, Code
from ptx_coroutine import DECLARATIONS, drivers
from ptx_counts import KINDS, Counts
from ptx_text import BITS, FLOATS, closing

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+([\w$]+)(?:\[(\d+)\])?")
_HEADER = re.compile(r"\s*\.(version|target|address_size|file)[^\n]*")
_FUNCTION = re.compile(r"\s*((?:\.(?:visible|weak|extern)\s+)*)\.(entry|func)\b")
_VARIABLE = re.compile(
    r"((?:\.\w+\s+)*?)(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)\s*(?:\[(\d*)\])?\s*(?:=\s*(.*))?$", re.DOTALL
)
_NUMBERS = itertools.count()


class Module:
    """A kernel that can be launched on the CPU."""

    def __init__(self, ptx: str, counted: bool = False) -> None:
        self.counted = counted
        text = re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", "", ptx, flags=re.DOTALL))
        self.prefix = f"m{next(_NUMBERS)}_"
        self.globals: dict[str, str] = {}
        self.shared: dict[str, int] = {}
        self.shared_bytes = 0
        self.declarations: set[str] = set()
        self.functions: list[str] = []
        self.parameters: list[tuple[str, int, str]] = []
        self.has_barrier = re.search(r"\bbar(rier)?\.", text) is not None
        self._read(text)
        self._compile()

    # ---- reading ---------------------------------------------------------------------------------------------------

    def _read(self, text: str) -> None:
        place = 0
        while text[place:].strip() != "":
            header, function = _HEADER.match(text, place), _FUNCTION.match(text, place)
            if header is not None:
                place = header.end()
            elif function is not None:
                opening, semicolon = text.find("{", place), text.find(";", place)
                if 0 <= semicolon < opening:  # a prototype
                    place = semicolon + 1
                    continue
                end = closing(text, opening)
                self._function(text[function.end() : opening], text[opening + 1 : end], function.group(2) == "entry")
                place = end + 1
            else:
                end = text.index(";", place)
                self._variable(text[place:end].strip())
                place = end + 1

    def _variable(self, statement: str) -> None:
        match = _VARIABLE.match(statement)
        if match is None:
            raise NotImplementedError(statement[:80])
        space, align, kind, name, count, values = match.groups()
        size = int(count) if count else (0 if count == "" else 1)
        if ".shared" in space:
            step = int(align or 8)
            self.shared[name] = -(-self.shared_bytes // step) * step
            self.shared_bytes = self.shared[name] + size * BITS[kind] // 8
            return
        bits = BITS[kind]
        found = [int(v[2:], 16) if v[:2] in ("0d", "0f") else int(v, 0) for v in re.findall(r"[-\w]+", values or "")]
        padded = [v % (1 << bits) for v in found] + [0] * (max(size, 1) - len(found))
        self.globals[name] = f"@{self.prefix}g{len(self.globals)}"
        inside = ", ".join(f"i{bits} {v}" for v in padded)
        self.functions.append(f"{self.globals[name]} = internal global [{len(padded)} x i{bits}] [{inside}], align 16")

    def _function(self, head: str, body: str, is_entry: bool) -> None:
        match = re.match(r"\s*(\(.*?\))?\s*([\w$]+)\s*\((.*?)\)", head, re.DOTALL)
        assert match is not None, head[:80]
        results, parameters = (
            [(name, BITS[kind] // 8 * int(n or 1), kind) for kind, name, n in _PARAMETER.findall(part or "")]
            for part in (match.group(1), match.group(3))
        )
        name = "entry" if is_entry else match.group(2)
        self.functions.append(Code(self, name, is_entry).translate(body, results + parameters))
        if is_entry:
            self.parameters = parameters

    def _compile(self) -> None:
        stops = [DECLARATIONS, drivers(self.prefix)] if self.has_barrier else []
        table = [f"@{self.prefix}counts = global [{len(KINDS)} x i64] zeroinitializer"] if self.counted else []
        source = "\n".join([*sorted(self.declarations), *table, *self.functions, *stops])
        module = llvm.parse_assembly(source)
        module.verify()
        features = llvm.get_host_cpu_features().flatten()
        machine = llvm.Target.from_default_triple().create_target_machine(
            opt=2, cpu=llvm.get_host_cpu_name(), features=features
        )
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
        builder.getModulePassManager().run(module, builder)
        self.engine = llvm.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()
        arguments = [ctypes.c_void_p] * 3 + [ctypes.c_int32] * N_SPECIAL
        self.call = self._function_at("entry", ctypes.c_void_p if self.has_barrier else None, *arguments)
        if self.has_barrier:
            self.resume = self._function_at("resume", None, ctypes.c_void_p)
            self.destroy = self._function_at("destroy", None, ctypes.c_void_p)
            self.done = self._function_at("done", ctypes.c_int32, ctypes.c_void_p)

    def _function_at(self, name: str, *types: Any) -> Any:
        return ctypes.CFUNCTYPE(*types)(self.engine.get_function_address(f"{self.prefix}{name}"))

    def counts(self) -> Counts:
        """What all launches so far did; of a module that counts."""
        address = self.engine.get_global_value_address(f"{self.prefix}counts")
        return Counts(*(ctypes.c_int64 * len(KINDS)).from_address(address))

    # ---- launching -------------------------------------------------------------------------------------------------

    def launch(self, blocks: int, threads: int, arguments: Any, order: str = "ascending") -> None:
        """Run the kernel on so many blocks of so many threads, in this order."""
        values = list(flat(arguments))
        assert len(values) == len(self.parameters), (len(values), len(self.parameters))
        packed = b"".join(
            _bytes(value, kind, size).ljust(8, b"\0")
            for value, (_, size, kind) in zip(values, self.parameters, strict=True)
        )
        memory = ctypes.create_string_buffer(packed, len(packed) + 8)
        # Nobody may rely on zeros in shared memory.
        shared = [ctypes.create_string_buffer(b"\xff" * (self.shared_bytes + 64)) for _ in range(blocks)]
        votes = [(ctypes.c_int32 * 2)(1, 1) for _ in range(blocks)]

        def begin(n: int) -> Any:
            block, thread = divmod(n, threads)
            where = (ctypes.addressof(each) for each in (memory, shared[block], votes[block]))
            return self.call(*where, thread, 0, 0, threads, 1, 1, block, 0, 0, blocks, 1, 1)

        handles = {n: begin(n) for n in ORDERS[order](0, blocks * threads)}
        if self.has_barrier:
            self._go_on(handles, votes, threads, ORDERS[order])

    def _go_on(self, handles: dict[int, Any], votes: list[Any], threads: int, order: Callable[[int, int], Any]) -> None:
        """All threads from barrier to barrier, to the end."""
        phase, count = 0, len(handles)
        while handles:
            done = [n for n, handle in handles.items() if self.done(handle)]
            leaving = np.bincount(np.array(done, int) // threads, minlength=len(votes))
            parted = any(0 < k < threads for k in leaving)
            for n in list(handles) if parted else done:
                self.destroy(handles.pop(n))
            assert not parted, "some threads of a block were done while others stood at a barrier"
            for vote in votes:
                vote[0], vote[1] = 1, vote[0]
            phase += 1
            for n in order(phase, count):
                if n in handles:
                    self.resume(handles[n])


ORDERS: dict[str, Callable[[int, int], Any]] = {
    "ascending": lambda phase, n: range(n),
    "descending": lambda phase, n: range(n - 1, -1, -1),
    "shuffled": lambda phase, n: np.random.default_rng(phase).permutation(n).tolist(),
}


def flat(value: Any) -> Any:
    """Numbers in the order of a kernel's parameters: tuples member by member, arrays as Numba describes them."""
    if isinstance(value, tuple):
        for member in value:
            yield from flat(member)
    elif isinstance(value, np.ndarray):
        yield from (0, 0, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides)
    else:
        yield value


def _bytes(value: Any, kind: str, size: int) -> bytes:
    if kind in FLOATS:
        return (np.float32(value) if kind == "f32" else np.float64(value)).tobytes()
    return (int(value) % (1 << 8 * size)).to_bytes(size, "little")
