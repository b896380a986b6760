"""Threads that can stop: a kernel with barriers as a coroutine of LLVM, which returns at each barrier and can be resumed.

`votes` are two numbers of a block: whether all threads that came to the barrier so far said yes, and the answer that they
find when they go on.
"""

from __future__ import annotations

import llvmlite.binding as llvm

# LLVM 22 gives nothing back at the end of a coroutine; before 17 there was no token.
_END = "void" if llvm.llvm_version_info[0] >= 22 else "i1"
_TOKEN = (", token", ", token none") if llvm.llvm_version_info[0] >= 17 else ("", "")

DECLARATIONS = f"""
declare token @llvm.coro.id(i32, ptr, ptr, ptr)
declare i64 @llvm.coro.size.i64()
declare ptr @llvm.coro.begin(token, ptr)
declare i8 @llvm.coro.suspend(token, i1)
declare {_END} @llvm.coro.end(ptr, i1{_TOKEN[0]})
declare ptr @llvm.coro.free(token, ptr)
declare void @llvm.coro.resume(ptr)
declare void @llvm.coro.destroy(ptr)
declare i1 @llvm.coro.done(ptr)
declare ptr @malloc(i64)
declare void @free(ptr)
"""

BEGIN = """
%coroutine = call token @llvm.coro.id(i32 0, ptr null, ptr null, ptr null)
%frame.size = call i64 @llvm.coro.size.i64()
%frame = call ptr @malloc(i64 %frame.size)
%handle = call ptr @llvm.coro.begin(token %coroutine, ptr %frame)
"""

END = f"""
br label %finished
finished:
%last = call i8 @llvm.coro.suspend(token none, i1 true)
switch i8 %last, label %suspended [i8 1, label %cleanup]
cleanup:
%rest = call ptr @llvm.coro.free(token %coroutine, ptr %handle)
call void @free(ptr %rest)
br label %suspended
suspended:
{"" if _END == "void" else "%end = "}call {_END} @llvm.coro.end(ptr %handle, i1 false{_TOKEN[1]})
ret ptr %handle
"""


def barrier(name: str, own: str) -> str:
    """Say `own` (0 or 1), stop, and find the answer in %name.answer when resumed."""
    return f"""
%{name}.before = load i32, ptr %votes
%{name}.after = and i32 %{name}.before, {own}
store i32 %{name}.after, ptr %votes
%{name}.how = call i8 @llvm.coro.suspend(token none, i1 false)
switch i8 %{name}.how, label %suspended [i8 0, label %{name}.on i8 1, label %cleanup]
{name}.on:
%{name}.place = getelementptr i32, ptr %votes, i64 1
%{name}.answer = load i32, ptr %{name}.place
"""


def drivers(prefix: str) -> str:
    """Functions for the host: resume, destroy, is it done?"""
    return f"""
define void @"{prefix}resume"(ptr %handle) {{
call void @llvm.coro.resume(ptr %handle)
ret void
}}
define void @"{prefix}destroy"(ptr %handle) {{
call void @llvm.coro.destroy(ptr %handle)
ret void
}}
define i32 @"{prefix}done"(ptr %handle) {{
%done = call i1 @llvm.coro.done(ptr %handle)
%answer = zext i1 %done to i32
ret i32 %answer
}}
"""
