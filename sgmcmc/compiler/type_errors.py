"""Type errors in functions of yours: what Numba says about them in hundreds of lines, said in a few.

Your function is compiled in the midst of a kernel, and Numba quotes all that calls it. So each function that is not of this
package is looked at where it fails alone: that leaves a mark in Numba's message, and the kernel raises what the mark stands for.
An error that has no mark is our own, and stays as it is; the whole of Numba's message goes to the log, at level DEBUG.
"""

from __future__ import annotations

import contextlib
import dis
import hashlib
import linecache
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from numba import errors, types

__all__ = ["PlainError", "blamed", "explain", "in_package", "returning", "said_plainly", "short", "with_plain_errors"]

_log = logging.getLogger(__name__)
_PACKAGE = __name__.split(".")[0]
_OURS = tuple(str(Path(str(sys.modules[name].__file__)).absolute().parent) + os.sep for name in (_PACKAGE, "numba"))
_PLACE = re.compile(r' *File "([^"]*)", line (\d+):')
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_MARK = re.compile(r"\[said plainly: (\w+)\]")
_MISSING = re.compile(r"\w+ has no implementation for [^;\n]+; give one with @implements\([^()\n]*\)")
_RAISED = re.compile(r"^\w+Error: ")
_REJECTED = "Rejected as the implementation raised"
_FRAME = ("Failed in ", "During: ", "raised from ", _REJECTED)  # of Numba's messages: what stands around a reason
_LONGEST = 240  # letters of a reason, or of a source line

_REMEDY = "called from Python it runs without Numba, to be stepped through"

_said: dict[str, str] = {}  # by mark
_odd: dict[str, tuple[Any, str]] = {}  # implementations of the user's that return no number, and what they return


class PlainError(TypeError):
    """What is wrong with a function of the user's. Numba lets it through; the kernel raises it again, in a short traceback."""


class _Place(NamedTuple):
    row: int  # of Numba's message
    file: str
    line: int


def with_plain_errors(compile_for: Callable[..., Any], forget: Callable[[], None]) -> Callable[..., Any]:
    """`compile` of a kernel's compiler, with a few lines in place of Numba's where a function of the user's is wrong."""

    def compile_plainly(*arguments: Any) -> Any:
        try:
            with said_plainly():
                return compile_for(*arguments)
        except TypeError:
            forget()  # the user may mend the function, and try again
            raise

    return compile_plainly


@contextlib.contextmanager
def said_plainly() -> Iterator[None]:
    """In this block Numba's errors about functions of the user's become a TypeError of a few lines."""
    try:
        yield
        return
    except errors.ForceLiteralArg:  # no error: Numba's dispatcher compiles again
        raise
    except PlainError as error:
        text = str(error)
    except errors.NumbaError as error:
        text = _plain(_COLOUR.sub("", str(error)))
        if not text:
            raise
        _log.debug("%s", error)
    raise TypeError(text) from None


def _plain(message: str) -> str:
    """What Numba's message stands for, if it is about a function of the user's; else nothing."""
    missing, mark = _MISSING.search(message), _MARK.search(message)
    if missing is not None:
        return missing.group()
    return _said.get(mark.group(1), "") if mark is not None else _wrong_return(message.splitlines())


def _wrong_return(lines: list[str]) -> str:
    """Which function of the user's returns what a caller in this package cannot use, if one does."""
    row = next((row for row, line in enumerate(lines) if _PLACE.match(line)), None)
    if row is None:
        return ""
    reason, caller = _reason(lines, row), _lines_before(*_file_and_line(lines[row]))
    for title, (function, returned) in reversed(_odd.items()):
        called = re.search(rf"\b{title.split('(', 1)[0]}\(", caller)
        if called and re.search(rf"(?<!\w){re.escape(returned)}(?!\w)", reason):
            file, line = _place_in(function, [])
            return (
                f"{_cut(title)} returns {returned}, which its caller cannot use:\n{_shown(file, line)}\n"
                f"  Numba: {_cut(reason)}\n{_REMEDY}"
            )
    return ""


def _lines_before(file: str, line: int) -> str:
    return "".join(linecache.getline(file, n) for n in range(max(1, line - 5), line + 1))


@contextlib.contextmanager
def blamed(name: str, function: Any, arguments: tuple[Any, ...]) -> Iterator[None]:
    """In this block the implementation of an open function is compiled; if it is the user's, what goes wrong is told of it."""
    if not _is_theirs(function):
        yield
        return
    title = _title(name, arguments)
    try:
        yield
    except (PlainError, errors.ForceLiteralArg, OSError):
        raise
    except Exception as error:
        getattr(function, "check_types", tuple)(arguments)  # it may know better what is wrong
        text = explain(title, function, error, _REMEDY)
        if not isinstance(error, errors.NumbaError):  # Numba gives up at once
            raise PlainError(text) from None
        mark = hashlib.sha256(text.encode()).hexdigest()[:16]
        _said[mark] = text
        error.add_context(f"compiling {name} [said plainly: {mark}]")
        raise


def returning(name: str, function: Any, arguments: tuple[Any, ...], returned: Any) -> None:
    """Note what an implementation of the user's returns, if it is no number: its caller may not be able to use it."""
    if _is_theirs(function):
        _odd.pop(_title(name, arguments), None)
        if not isinstance(returned, types.Number | types.Boolean):
            _odd[_title(name, arguments)] = function, str(returned)


def _is_theirs(function: Any) -> bool:
    return hasattr(function, "check_types") or not in_package(function)


def _title(name: str, arguments: tuple[Any, ...]) -> str:
    return f"{name}({', '.join(map(short, arguments))})"


def explain(title: str, function: Any, error: Exception, remedy: str) -> str:
    """A few lines: what does not compile, the line of the user's that is to blame, Numba's reason, what to do."""
    _log.debug("%s", error)
    lines = _COLOUR.sub("", str(error)).splitlines()
    places = [_Place(row, *_file_and_line(line)) for row, line in enumerate(lines) if _PLACE.match(line)]
    users = [place for place in places if _is_users(place.file, function)]
    place = users[0] if users else _Place(len(lines), *_place_in(function, lines))
    said = [f"  Numba: {_cut(reason)}" for reason in _reasons(lines, place.row, places[0].row if places else place.row)]
    return "\n".join([f"{_cut(title)} does not compile:", _shown(place.file, place.line), *said, remedy])


def _reasons(lines: list[str], row: int, innermost: int) -> list[str]:
    """Why the line that is told of does not compile, and what was wrong further in, if that says more."""
    call, inside = _reason(lines, row), _specific(lines[:row])
    if inside == "" and innermost < row:
        inside = _reason(lines, innermost)
    if call.startswith("No implementation of _") and inside:  # a function of Numba's own
        call = ""
    return list(dict.fromkeys(reason for reason in (call, inside) if reason))


def _shown(file: str, line: int) -> str:
    source = _cut(linecache.getline(file, line).strip()) or "(the source is not in a file)"
    return f'  File "{file}", line {line}\n    {source}'


def in_package(function: Any) -> bool:
    """Whether a function, or a class, is of this package."""
    return str(getattr(function, "__module__", "")).split(".")[0] == _PACKAGE


def short(numba_type: Any) -> str:
    """A type in a word: of a NamedTuple the name of its class alone."""
    plain = types.unliteral(numba_type)
    if isinstance(plain, types.BaseNamedTuple):
        return str(plain.instance_class.__name__)
    if isinstance(plain, types.BaseTuple):
        return f"({', '.join(map(short, plain.types))})"
    return str(plain)


def _file_and_line(line: str) -> tuple[str, int]:
    """The place that a line of Numba's message names. It is given from the current folder."""
    file, number = _PLACE.match(line).groups()  # type: ignore[union-attr]
    return file if file.startswith("<") else os.path.abspath(file), int(number)


def _is_users(file: str, function: Any) -> bool:
    """Whether a file is neither of this package nor of Numba. Both make functions of strings, as a user may."""
    if file.startswith(("<string", "<dynamic", "<unknown")):  # a notebook's cells have other names
        return bool(file == function.__code__.co_filename)
    return not file.startswith(_OURS)


def _place_in(function: Any, lines: list[str]) -> tuple[str, int]:
    """Where Numba names no place: the first line that reads a name that the message has in quotes, or the function's own."""
    code = function.__code__
    quoted = set(re.findall(r"'(\w+)'", " ".join(lines)))
    for instruction in dis.get_instructions(code):
        if instruction.argval in quoted and instruction.positions is not None and instruction.positions.lineno:
            return code.co_filename, instruction.positions.lineno
    first = code.co_firstlineno
    heads = (n for n in range(first, first + 10) if "def " in linecache.getline(code.co_filename, n))
    return code.co_filename, next(heads, first)


def _reason(lines: list[str], row: int) -> str:
    """The first line of the message that ends at a place: what stands above it, indented as far or further."""
    depth, start = _depth(lines[row]) if row < len(lines) else 0, row
    while start > 0 and _depth(lines[start - 1]) >= depth and not _begins(lines[start - 1], depth):
        start -= 1
    for i in range(start, row):
        line = lines[i].strip()
        said = _RAISED.sub("", line) if line.startswith("TypingError: ") else line
        if said and not said.startswith(_FRAME):
            return _without_candidates(said, lines[i:row])
    return ""


def _without_candidates(reason: str, lines: list[str]) -> str:
    """Of a call that no candidate takes, the call."""
    if reason.startswith("No implementation of function"):
        calls = (line.strip()[4:] for line in lines if line.strip().startswith(">>> "))
        return f"No implementation of {next(calls, reason)}"
    return reason.removesuffix(" Raised from None").rstrip(".")


def _specific(lines: list[str]) -> str:
    """Why the first candidate was rejected, if it says so in a sentence of its own."""
    for row in range(1, len(lines)):
        said = lines[row].strip()
        if _REJECTED in lines[row - 1] and "Failed in " not in said and "Poison type" not in said:
            return _without_candidates(_RAISED.sub("", said), lines[row:])
    return ""


def _begins(line: str, depth: int) -> bool:
    """Whether a message that is indented so far begins after this line."""
    return _REJECTED in line and _depth(line) == depth


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip()) if line.strip() else 1000


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
