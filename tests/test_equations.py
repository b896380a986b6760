"""The page of the equations is true: each file, name, implementation, test and topic that it names exists.

The syntax of its tables is in a comment at the top of docs/equations.md. A failure names the line, the row and what is
missing, and where else it was found. When code moves, replace path and name on the page.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

import sgmcmc as sg
from sgmcmc.evidence.validation.topics import TOPICS

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "equations.md"
HEADER = ["equation", "source", "code", "check"]
NAME, WORD = r"`[\w.]+`", r"[\w.]+"
REFERENCE = re.compile(rf"`([\w/]+\.py)`: ({NAME}(?:, {NAME})*)(?: for ({NAME}(?: × {NAME})*))?")
TOPIC = re.compile(rf"topic ({NAME})")
FILE = re.compile(r"`((?:sgmcmc|tests|validation)/[\w/]+\.py)`")  # also in the text around the tables


class Reference(NamedTuple):
    """A name in a file; with types, the implementation of that open function for them."""

    line: int
    row: str
    path: str
    name: str
    types: tuple[str, ...]

    def __str__(self) -> str:
        return f"`{self.name}`" + (f" for `{'` × `'.join(self.types)}`" if self.types else "")


class Table(NamedTuple):
    """What the tables of a page say, and what in them is not in the syntax."""

    references: list[Reference]
    topics: list[tuple[int, str, str]]  # line, row, topic
    errors: list[str]


# ---- reading the page ------------------------------------------------------------------------------------------------


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def read(text: str) -> Table:
    table = Table([], [], [])
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith("|"):
            continue
        row = cells(line)
        if row != HEADER and set("".join(row)) != {"-"}:
            read_row(number, row, table)
    return table


def read_row(number: int, row: list[str], table: Table) -> None:
    if len(row) != len(HEADER) or not all(row):
        table.errors.append(
            f"{place(number, row[0])} has {len(row)} cells, some perhaps empty; give {' | '.join(HEADER)}"
        )
        return
    for column, cell in zip(HEADER[2:], row[2:], strict=True):
        for entry in cell.split("; "):
            reference, topic = REFERENCE.fullmatch(entry), TOPIC.fullmatch(entry)
            if reference is not None:
                path, names, types = reference.groups()
                kinds = tuple(re.findall(WORD, types or ""))
                table.references.extend(Reference(number, row[0], path, n, kinds) for n in re.findall(WORD, names))
            elif topic is not None and column == "check":
                table.topics.append((number, row[0], topic.group(1).strip("`")))
            else:
                table.errors.append(f"{place(number, row[0])}: {column} has {entry!r}, which is not in the syntax")


def place(line: int, row: str) -> str:
    return f"docs/equations.md, line {line}, row “{row}”"


# ---- looking at the sources ------------------------------------------------------------------------------------------


class Source(NamedTuple):
    """What a file defines."""

    names: frozenset[str]  # of functions, classes and methods, these as Class.method
    implementations: frozenset[tuple[str, tuple[str, ...]]]  # open function, types


@cache
def source(path: Path) -> Source:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    top = [node for node in tree.body if isinstance(node, kinds)]
    methods = {f"{c.name}.{f.name}" for c in top if isinstance(c, ast.ClassDef) for f in c.body if isinstance(f, kinds)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    given = [c.args for c in calls if ast.unparse(c.func).rpartition(".")[2] in ("implements", "implements_by_type")]
    found = {(ast.unparse(first).rpartition(".")[2], tuple(map(ast.unparse, types))) for first, *types in given}
    return Source(frozenset({node.name for node in top} | methods), frozenset(found))


def defines(path: Path, reference: Reference) -> bool:
    if not path.is_file():
        return False
    if reference.types:
        return (reference.name, reference.types) in source(path).implementations
    return reference.name in source(path).names


@cache
def every_file() -> tuple[Path, ...]:
    return tuple(sorted(p for folder in ("sgmcmc", "tests", "validation") for p in (ROOT / folder).rglob("*.py")))


def missing(reference: Reference) -> str:
    """What is missing, and where else it is, in one sentence."""
    path = ROOT / reference.path
    if not path.is_file():
        what = f"there is no file {reference.path}, for {reference}"
    else:
        what = f"{reference.path} has no {reference}"
        others = sorted(t for n, t in source(path).implementations if n == reference.name and t)
        if reference.types and others:
            what += f"; it has {reference.name} for {', '.join(' × '.join(t) for t in others)}"
    elsewhere = [p.relative_to(ROOT).as_posix() for p in every_file() if defines(p, reference)][:5]
    return f"{place(reference.line, reference.row)}: {what}; " + (
        f"found in {', '.join(elsewhere)}" if elsewhere else "found nowhere else: was it renamed?"
    )


def problems(text: str) -> list[str]:
    """Everything on the page that is not so."""
    table, known = read(text), {topic.name for topic in TOPICS}
    words = [(n, line) for n, line in enumerate(text.splitlines(), 1) if not line.lstrip().startswith("|")]
    files = [(n, path) for n, line in words for path in FILE.findall(line)]
    return [
        *table.errors,
        *(f"docs/equations.md, line {n}: there is no file {path}" for n, path in files if not (ROOT / path).is_file()),
        *(missing(r) for r in table.references if not defines(ROOT / r.path, r)),
        *(
            f"{place(n, row)}: {t!r} is no topic of the validation suite; there are {', '.join(sorted(known))}"
            for n, row, t in table.topics
            if t not in known
        ),
    ]


# ---- what must have a row --------------------------------------------------------------------------------------------


def exported(module: ModuleType, but: tuple[str, ...] = ()) -> list[str]:
    """The types and makers that a module exports: their names begin with a capital."""
    return [n for n in module.__all__ if n[0].isupper() and callable(getattr(module, n)) and n not in but]


# What modules export beside parts: what kernels know of a sampler and of a step, and how code is chosen.
PLUMBING = {
    "thermostat": ("Crosstalk", "NoCrosstalk"),  # whether `crosstalk` compensates: a type, so that no kernel looks
    "integrator": ("Dynamics", "Moment", "Noise", "State"),
    "schedule": ("Schedule",),  # the protocol
}


def needed() -> dict[str, list[str]]:
    return {
        "preset": [name for name in sg.__all__ if name.isupper()],
        "kinetics": exported(sg.kinetics),
        "thermostat": exported(sg.thermostats, but=PLUMBING["thermostat"]),
        "integrator": exported(sg.integrators, but=PLUMBING["integrator"]),
        "schedule": exported(sg.schedules, but=PLUMBING["schedule"]),
        "minibatch rule": exported(sg.minibatch),
        "estimator": list(sg.estimators.__all__),
        "topic": [topic.name for topic in TOPICS],
    }


def uncovered(text: str) -> list[str]:
    """What has no row."""
    table = read(text)
    there = {r.name for r in table.references} | {t for r in table.references for t in r.types}
    there |= {topic for _, _, topic in table.topics}
    return [
        f"docs/equations.md has no row for the {kind} {name}"
        for kind, names in needed().items()
        for name in names
        if name not in there
    ]


# ---- the tests -------------------------------------------------------------------------------------------------------


def test_every_file_function_implementation_test_and_topic_on_the_page_exists():
    found = problems(PAGE.read_text(encoding="utf-8"))
    assert not found, "\n" + "\n".join(found)


def test_every_preset_and_every_part_of_a_sampler_has_a_row():
    assert len(needed()["preset"]) >= 5
    assert all(needed().values())
    found = uncovered(PAGE.read_text(encoding="utf-8"))
    assert not found, "\n" + "\n".join(found)


TRUE = "`tests/test_equations.py`: `test_a_made_up_row_is_reported`"
MADE_UP = {
    "`tests/test_equations.py`: `no_such_function`": "has no `no_such_function`; found nowhere else: was it renamed?",
    "`tests/test_equations.py`: `read` for `Gaussian`": "has no `read` for `Gaussian`",
    "`tests/no_such_file.py`: `read`": "there is no file tests/no_such_file.py, for `read`; found in ",
    "`tests/test_equations.py`: `Reference.read`": "has no `Reference.read`",
    "`tests/test_equations.py`, `read`": "which is not in the syntax",
    "tests/test_equations.py: read": "which is not in the syntax",
    "topic `invariance`": "code has 'topic `invariance`'",
    "": "has 4 cells, some perhaps empty",
}


@pytest.mark.parametrize("code", MADE_UP)
def test_a_made_up_row_is_reported(code):
    text = f"| {' | '.join(HEADER)} |\n|---|---|---|---|\n| energy of \\|p\\| | a paper | {code} | {TRUE} |"
    (found,) = problems(text)
    assert "docs/equations.md, line 3, row “energy of \\|p\\|”" in found
    assert MADE_UP[code] in found
    assert problems(text.replace(f"| {code} |", f"| {TRUE} |")) == []


def test_a_topic_that_does_not_exist_is_reported():
    (found,) = problems(f"| x | y | {TRUE} | {TRUE}; topic `astrology` |")
    assert "'astrology' is no topic of the validation suite" in found


def test_a_file_in_the_text_that_does_not_exist_is_reported():
    assert problems("`tests/test_equations.py` holds `tests/no_such_file.py`.") == [
        "docs/equations.md, line 1: there is no file tests/no_such_file.py"
    ]


def test_code_that_has_moved_is_reported_with_the_place_where_it_is_now():
    references = read(PAGE.read_text(encoding="utf-8")).references
    for kind in (True, False):  # an implementation, and a name of its own
        moved = next(r for r in references if bool(r.types) == kind)
        found = missing(moved._replace(path="tests/test_equations.py"))
        assert moved.row in found
        assert moved.path in found.partition("found in")[2]


def test_a_part_without_a_row_is_reported():
    text = PAGE.read_text(encoding="utf-8")
    for name in ("SGHMC", "Relativistic", "PerChain", "BAOAB", "Cyclical", "sample_svrg", "stein"):
        without = "\n".join(line for line in text.splitlines() if f"`{name}" not in line)
        assert any(found.endswith(f" {name}") for found in uncovered(without)), name
