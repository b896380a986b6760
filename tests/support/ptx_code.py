"""The instructions of PTX in LLVM's language: one function per kernel or device function, a stack slot per register.

LLVM turns the slots into registers again. Comments give PTX's order of operands where it surprises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import ptx_coroutine
import ptx_counts
from ptx_text import BITS, FLOATS, split, statements, type_of

SPECIAL = [f"%{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"]
N_SPECIAL = len(SPECIAL)
PASSED = "ptr %shared, ptr %votes, " + ", ".join(f"i32 %s{i}" for i in range(N_SPECIAL))

INTEGER = {"add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor"}
FLOATING = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
UNARY = {"sqrt": "sqrt", "abs": "fabs", "ex2": "exp2", "lg2": "log2", "sin": "sin", "cos": "cos"}
ROUNDING = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
ORDERED = {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "num": "ord", "nan": "uno"}
UNORDERED = {"equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge"}
UNSIGNED = {"eq": "eq", "ne": "ne", "lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}
IGNORED = (".loc", ".pragma", ".file", ".branchtargets", ".callprototype")


class Code:
    """One function on its way from PTX to LLVM."""

    def __init__(self, module: Any, name: str, is_entry: bool) -> None:
        self.module, self.name, self.is_entry = module, name, is_entry
        self.is_coroutine = is_entry and module.has_barrier
        self.lines: list[str] = []
        self.slots: list[str] = []
        self.registers: dict[str, tuple[str, int]] = {}  # its slot and its bits
        self.outside: list[dict[str, tuple[str, int]]] = []  # registers of the scopes around this one
        self.memory: dict[str, str] = {}  # parameters and local arrays
        self.count = 0

    def translate(self, body: str, parameters: list[tuple[str, int, str]]) -> str:
        if self.is_entry:  # parameters stand in memory, eight bytes each
            for i, (name, _, _) in enumerate(parameters):
                self.memory[name] = self.value(f"getelementptr i8, ptr %parameters, i64 {8 * i}")
            head = "ptr %parameters, "
        else:
            head = "".join(f"ptr %a{i}, " for i in range(len(parameters)))
            self.memory |= {name: f"%a{i}" for i, (name, _, _) in enumerate(parameters)}
        for statement in statements(body):
            self.statement(statement)
        name = f'@"{self.module.prefix}{self.name}"({head}{PASSED})'
        if self.is_coroutine:
            lines = "\n".join([*self.slots, ptx_coroutine.BEGIN, *self.lines, ptx_coroutine.END])
            return f"define ptr {name} presplitcoroutine {{\nstart:\n{lines}\n}}"
        lines = "\n".join([*self.slots, *self.lines, "ret void"])
        return f"define {'' if self.is_entry else 'internal '}void {name} {{\nstart:\n{lines}\n}}"

    # ---- values ----------------------------------------------------------------------------------------------------

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def value(self, right: str) -> str:
        name = f"%{self.fresh()}"
        self.lines.append(f"{name} = {right}")
        return name

    def call(self, function: str, kind: str, *arguments: str) -> str:
        self.module.declarations.add(f"declare {kind} @{function}({', '.join(a.split()[0] for a in arguments)})")
        return self.value(f"call {kind} @{function}({', '.join(arguments)})")

    def label(self, name: str | None = None) -> None:
        self.lines.append(f'"{self.fresh() if name is None else name}":')

    def resized(self, value: str, bits: int, wanted: int, signed: bool = False) -> str:
        if bits == wanted:
            return value
        how = "trunc" if bits > wanted else ("sext" if signed else "zext")
        return self.value(f"{how} i{bits} {value} to i{wanted}")

    def read(self, operand: str, kind: str) -> str:
        bits = BITS[kind]
        if operand in self.registers:
            slot, own = self.registers[operand]
            raw = self.resized(self.value(f"load i{own}, ptr {slot}"), own, bits)
        elif operand in SPECIAL:
            raw = self.resized(f"%s{SPECIAL.index(operand)}", 32, bits)
        elif re.fullmatch(r"0[dDfF][0-9A-Fa-f]+", operand):
            raw = str(int(operand[2:], 16))
        elif re.fullmatch(r"-?(0[xX][0-9A-Fa-f]+|\d+)U?", operand):
            raw = str(int(operand.rstrip("U"), 0) % (1 << bits))
        else:
            raw = self.address(operand)
        return self.value(f"bitcast i{bits} {raw} to {FLOATS[kind]}") if kind in FLOATS else raw

    def write(self, target: str, value: str, kind: str) -> None:
        if target == "_":
            return
        if kind in FLOATS:
            value = self.value(f"bitcast {FLOATS[kind]} {value} to i{BITS[kind]}")
        slot, own = self.registers[target]
        value = self.resized(value, BITS[kind], own, kind[0] == "s")
        self.lines.append(f"store i{own} {value}, ptr {slot}")

    def address(self, name: str) -> str:
        if name in self.module.shared:
            return str(self.module.shared[name])
        found = self.module.globals.get(name, self.memory.get(name))
        if found is None:
            raise NotImplementedError(f"operand {name}")
        return self.value(f"ptrtoint ptr {found} to i64")

    def pointer(self, operand: str, space: list[str]) -> str:
        match = re.fullmatch(r"\[\s*([%\w$]+)\s*(?:\+\s*(-?\d+))?\s*\]", operand)
        assert match is not None, operand
        base, offset = match.group(1), int(match.group(2) or 0)
        if "param" in space:
            return self.value(f"getelementptr i8, ptr {self.memory[base]}, i64 {offset}")
        at = self.read(base, "u64") if base in self.registers else self.address(base)
        at = self.value(f"add i64 {at}, {offset}")
        if "shared" in space:
            return self.value(f"getelementptr i8, ptr %shared, i64 {at}")
        return self.value(f"inttoptr i64 {at} to ptr")

    # ---- statements ------------------------------------------------------------------------------------------------

    def statement(self, text: str) -> None:
        if text == "{":  # a register that is declared within hides its namesake outside
            self.outside.append(self.registers)
            self.registers = dict(self.registers)
        elif text == "}":
            self.registers = self.outside.pop()
        elif text.endswith(":"):
            self.lines.append(f'br label %"{text[:-1]}"')
            self.label(text[:-1])
        elif text.startswith(".reg"):
            _, kind, names = text.split(None, 2)
            for name in names.split(","):
                match = re.fullmatch(r"\s*(%?[\w$]+)(?:<(\d+)>)?\s*", name)
                assert match is not None, name
                many = match.group(2)
                for each in [match.group(1)] if many is None else [f"{match.group(1)}{i}" for i in range(int(many))]:
                    slot, bits = f"%{self.fresh()}", BITS[kind[1:]]
                    self.registers[each] = slot, bits
                    self.slots.append(f"{slot} = alloca i{bits}")
        elif text.startswith((".param", ".local")):
            match = re.match(r"\.\w+\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+([\w$]+)(?:\[(\d+)\])?$", text)
            assert match is not None, text
            kind, name, n = match.groups()
            self.memory[name] = f"%{self.fresh()}"
            self.slots.append(f"{self.memory[name]} = alloca [{BITS[kind] // 8 * int(n or 1)} x i8], align 16")
        elif not text.startswith(IGNORED):
            self.guarded(text)

    def guarded(self, text: str) -> None:
        match = re.match(r"@(!?)(%\w+)\s+(.*)", text, re.DOTALL)
        if match is None:
            self.instruction(text)
            return
        negated, predicate, rest = match.groups()
        inside, after = self.fresh(), self.fresh()
        order = (after, inside) if negated else (inside, after)
        self.lines.append(f"br i1 {self.read(predicate, 'pred')}, label %{order[0]}, label %{order[1]}")
        self.label(inside)
        self.instruction(rest)
        self.lines.append(f"br label %{after}")
        self.label(after)

    def instruction(self, text: str) -> None:
        name, rest = [*text.split(None, 1), ""][:2]
        base, *mods = name.strip().split(".")
        kind = mods[-1] if mods else ""
        operands = split(rest)
        if self.module.counted:
            ptx_counts.add_to(self, base, mods, operands)
        if base == "call":
            self.call_function(rest)
        elif hasattr(self, f"do_{base}"):
            getattr(self, f"do_{base}")(mods, kind, operands)
        elif kind in FLOATS and base in FLOATING:
            self.binary(FLOATING[base], kind, operands)
        elif kind in FLOATS and base in UNARY:
            operand = f"{FLOATS[kind]} {self.read(operands[1], kind)}"
            self.write(operands[0], self.call(f"llvm.{UNARY[base]}.{kind}", FLOATS[kind], operand), kind)
        elif kind not in FLOATS and base in INTEGER and "cc" not in mods:
            self.binary(INTEGER[base], kind, operands)
        elif base in ("div", "rem"):
            self.binary(("s" if kind[0] == "s" else "u") + base, kind, operands)
        else:
            raise NotImplementedError(name)

    def binary(self, operation: str, kind: str, o: list[str]) -> None:
        self.write(
            o[0], self.value(f"{operation} {type_of(kind)} {self.read(o[1], kind)}, {self.read(o[2], kind)}"), kind
        )

    # ---- control ---------------------------------------------------------------------------------------------------

    def do_bra(self, mods: list[str], kind: str, o: list[str]) -> None:
        self.lines.append(f'br label %"{o[0]}"')
        self.label()

    def do_ret(self, mods: list[str], kind: str, o: list[str]) -> None:
        self.lines.append("br label %finished" if self.is_coroutine else "ret void")
        self.label()

    do_exit = do_ret

    def do_trap(self, mods: list[str], kind: str, o: list[str]) -> None:
        self.module.declarations.add("declare void @llvm.trap()")
        self.lines.append("call void @llvm.trap()")

    def do_bar(self, mods: list[str], kind: str, o: list[str]) -> None:
        """The operands of bar.red.and are: everybody's answer, which barrier, what this thread says."""
        reduces = mods == ["red", "and", "pred"]
        if not self.is_coroutine or not (reduces or mods[0] == "sync"):
            raise NotImplementedError(f"bar.{'.'.join(mods)} in {self.name}")
        name, own = self.fresh(), self.resized(self.read(o[2], "pred"), 1, 32) if reduces else "1"
        self.lines.append(ptx_coroutine.barrier(name, own))
        if reduces:
            self.write(o[0], self.resized(f"%{name}.answer", 32, 1), "pred")

    do_barrier = do_bar

    def do_membar(self, mods: list[str], kind: str, o: list[str]) -> None:
        pass

    do_fence = do_membar

    def call_function(self, rest: str) -> None:
        match = re.match(r"(?:\((.*?)\)\s*,)?\s*([\w$]+)\s*(?:,\s*\((.*?)\))?", rest.strip(), re.DOTALL)
        assert match is not None, rest
        names = split(match.group(1) or "") + split(match.group(3) or "")
        passed = "".join(f"ptr {self.memory[name]}, " for name in names)
        self.lines.append(f'call void @"{self.module.prefix}{match.group(2)}"({passed}{PASSED})')

    # ---- memory ----------------------------------------------------------------------------------------------------

    def do_mov(self, mods: list[str], kind: str, o: list[str]) -> None:
        bits = BITS[kind]
        if o[0].startswith("{"):  # into pieces
            pieces = split(o[0][1:-1])
            whole, width = self.read(o[1], kind), bits // len(pieces)
            for i, piece in enumerate(pieces):
                shifted = self.value(f"lshr i{bits} {whole}, {i * width}")
                self.write(piece, self.resized(shifted, bits, width), f"b{width}")
        elif o[1].startswith("{"):  # out of pieces
            pieces = split(o[1][1:-1])
            width, whole = bits // len(pieces), "0"
            for i, piece in enumerate(pieces):
                wide = self.resized(self.read(piece, f"b{width}"), width, bits)
                whole = self.value(f"or i{bits} {whole}, {self.value(f'shl i{bits} {wide}, {i * width}')}")
            self.write(o[0], whole, kind)
        else:
            self.write(o[0], self.read(o[1], kind), kind)

    def places(self, mods: list[str], kind: str, operand: str, names: str) -> Iterator[tuple[str, str]]:
        """The members of a vector operand, with where each is in memory."""
        start = self.pointer(operand, mods)
        for i, name in enumerate(split(names.strip("{}"))):
            yield name, self.value(f"getelementptr i8, ptr {start}, i64 {i * BITS[kind] // 8}")

    def do_ld(self, mods: list[str], kind: str, o: list[str]) -> None:
        for name, where in self.places(mods, kind, o[1], o[0]):
            self.write(name, self.value(f"load {type_of(kind)}, ptr {where}, align 1"), kind)

    def do_st(self, mods: list[str], kind: str, o: list[str]) -> None:
        for name, where in self.places(mods, kind, o[0], o[1]):
            self.lines.append(f"store {type_of(kind)} {self.read(name, kind)}, ptr {where}, align 1")

    def do_cvta(self, mods: list[str], kind: str, o: list[str]) -> None:
        value = self.read(o[1], kind)
        if "shared" in mods:
            base = self.value("ptrtoint ptr %shared to i64")
            value = self.value(f"{'sub' if 'to' in mods else 'add'} i64 {value}, {base}")
        self.write(o[0], value, kind)

    # ---- arithmetic ------------------------------------------------------------------------------------------------

    def product(self, mods: list[str], kind: str, a: str, b: str) -> tuple[str, str]:
        """The wanted part of a product of integers, and its type."""
        bits, signed = BITS[kind], kind[0] == "s"
        x, y = (self.resized(self.read(each, kind), bits, 2 * bits, signed) for each in (a, b))
        whole = self.value(f"mul i{2 * bits} {x}, {y}")
        if "wide" in mods:
            return whole, f"{kind[0]}{2 * bits}"
        if "hi" in mods:
            whole = self.value(f"lshr i{2 * bits} {whole}, {bits}")
        return self.resized(whole, 2 * bits, bits), kind

    def do_mul(self, mods: list[str], kind: str, o: list[str]) -> None:
        if kind in FLOATS:
            self.binary("fmul", kind, o)
        else:
            self.write(o[0], *self.product(mods, kind, o[1], o[2]))

    def do_mad(self, mods: list[str], kind: str, o: list[str]) -> None:
        part, wide = self.product(mods, kind, o[1], o[2])
        self.write(o[0], self.value(f"add {type_of(wide)} {part}, {self.read(o[3], wide)}"), wide)

    def do_fma(self, mods: list[str], kind: str, o: list[str]) -> None:
        operands = (f"{FLOATS[kind]} {self.read(each, kind)}" for each in o[1:])
        self.write(o[0], self.call(f"llvm.fma.{kind}", FLOATS[kind], *operands), kind)

    def do_neg(self, mods: list[str], kind: str, o: list[str]) -> None:
        value = self.read(o[1], kind)
        self.write(
            o[0],
            self.value(f"fneg {FLOATS[kind]} {value}" if kind in FLOATS else f"sub {type_of(kind)} 0, {value}"),
            kind,
        )

    def do_min(self, mods: list[str], kind: str, o: list[str], which: str = "min") -> None:
        name = f"{which}num.{kind}" if kind in FLOATS else f"{'s' if kind[0] == 's' else 'u'}{which}.i{BITS[kind]}"
        operands = (f"{type_of(kind)} {self.read(each, kind)}" for each in o[1:])
        self.write(o[0], self.call(f"llvm.{name}", type_of(kind), *operands), kind)

    def do_max(self, mods: list[str], kind: str, o: list[str]) -> None:
        self.do_min(mods, kind, o, "max")

    def do_rcp(self, mods: list[str], kind: str, o: list[str]) -> None:
        self.write(o[0], self.value(f"fdiv {FLOATS[kind]} 1.0, {self.read(o[1], kind)}"), kind)

    def do_not(self, mods: list[str], kind: str, o: list[str]) -> None:
        self.write(o[0], self.value(f"xor {type_of(kind)} {self.read(o[1], kind)}, -1"), kind)

    def do_shl(self, mods: list[str], kind: str, o: list[str], how: str = "shl") -> None:
        """By more than the width: all bits are gone (or, to the right with a sign, all are the sign)."""
        bits, by = BITS[kind], self.read(o[2], "u32")
        far = self.value(f"icmp uge i32 {by}, {bits}")
        near = self.value(f"select i1 {far}, i32 {bits - 1 if how == 'ashr' else 0}, i32 {by}")
        shifted = self.value(f"{how} i{bits} {self.read(o[1], kind)}, {self.resized(near, 32, bits)}")
        if how != "ashr":
            shifted = self.value(f"select i1 {far}, i{bits} 0, i{bits} {shifted}")
        self.write(o[0], shifted, kind)

    def do_shr(self, mods: list[str], kind: str, o: list[str]) -> None:
        self.do_shl(mods, kind, o, "ashr" if kind[0] == "s" else "lshr")

    def do_shf(self, mods: list[str], kind: str, o: list[str]) -> None:
        if "clamp" in mods:
            raise NotImplementedError("shf.clamp")
        low, high, by = (f"i32 {self.read(each, 'b32')}" for each in o[1:])
        self.write(o[0], self.call(f"llvm.fsh{'l' if 'l' in mods else 'r'}.i32", "i32", high, low, by), "b32")

    def do_bfe(self, mods: list[str], kind: str, o: list[str]) -> None:
        bits, start, length = BITS[kind], int(o[2], 0), int(o[3], 0)
        up = self.value(f"shl i{bits} {self.read(o[1], kind)}, {bits - start - length}")
        how = "ashr" if kind[0] == "s" else "lshr"
        self.write(o[0], self.value(f"{how} i{bits} {up}, {bits - length}"), kind)

    def do_bfi(self, mods: list[str], kind: str, o: list[str]) -> None:  # d, what, into, start, length
        bits, start, length = BITS[kind], int(o[3], 0), int(o[4], 0)
        mask = ((1 << length) - 1) << start
        new = self.value(f"and i{bits} {self.value(f'shl i{bits} {self.read(o[1], kind)}, {start}')}, {mask}")
        old = self.value(f"and i{bits} {self.read(o[2], kind)}, {((1 << bits) - 1) ^ mask}")
        self.write(o[0], self.value(f"or i{bits} {new}, {old}"), kind)

    # ---- comparisons and conversions -------------------------------------------------------------------------------

    def do_setp(self, mods: list[str], kind: str, o: list[str]) -> None:
        how, x, y = mods[0], self.read(o[1], kind), self.read(o[2], kind)
        if kind in FLOATS:
            result = self.value(f"fcmp {(ORDERED | UNORDERED)[how]} {FLOATS[kind]} {x}, {y}")
        else:
            word = UNSIGNED.get(how, ("s" if kind[0] == "s" else "u") + how)
            result = self.value(f"icmp {word} {type_of(kind)} {x}, {y}")
        for join in set(mods[1:]) & {"and", "or", "xor"}:
            result = self.value(f"{join} i1 {result}, {self.read(o[3], 'pred')}")
        first, *second = o[0].split("|")
        self.write(first, result, "pred")
        for other in second:
            self.write(other, self.value(f"xor i1 {result}, true"), "pred")

    def do_selp(self, mods: list[str], kind: str, o: list[str]) -> None:
        condition, x, y = self.read(o[3], "pred"), self.read(o[1], kind), self.read(o[2], kind)
        self.write(o[0], self.value(f"select i1 {condition}, {type_of(kind)} {x}, {type_of(kind)} {y}"), kind)

    def do_cvt(self, mods: list[str], kind: str, o: list[str]) -> None:
        to, value = mods[-2], self.read(o[1], kind)
        rounding = next((ROUNDING[m] for m in mods if m in ROUNDING), None)
        if rounding is not None:
            value = self.call(f"llvm.{rounding}.{kind}", FLOATS[kind], f"{FLOATS[kind]} {value}")
        if kind in FLOATS and to in FLOATS:
            if kind != to:
                value = self.value(f"{'fptrunc' if kind == 'f64' else 'fpext'} {FLOATS[kind]} {value} to {FLOATS[to]}")
        elif kind in FLOATS:  # PTX clamps what does not fit
            sign = "s" if to[0] == "s" else "u"
            value = self.call(f"llvm.fpto{sign}i.sat.i{BITS[to]}.{kind}", type_of(to), f"{FLOATS[kind]} {value}")
        elif to in FLOATS:
            value = self.value(f"{'s' if kind[0] == 's' else 'u'}itofp i{BITS[kind]} {value} to {FLOATS[to]}")
        else:
            value = self.resized(value, BITS[kind], BITS[to], kind[0] == "s")
        self.write(o[0], value, to)
