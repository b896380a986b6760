"""Docstrings of the public names: where they are, what numpydoc form asks of them, and their examples, run.

    python tests/support/docstrings.py [--compiled] [NAME ...]      runs the examples (of names that contain NAME)

Examples run without the compiler (``NUMBA_DISABLE_JIT=1``), so a run of a sampler takes milliseconds; `--compiled` compiles,
and runs the LONG ones too.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import importlib.util
import inspect
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

MODULES = (
    "adapters",
    "comparison",
    "datasets",
    "diagnostics",
    "estimators",
    "integrators",
    "kinetics",
    "minibatch",
    "models",
    "parameters",
    "priors",
    "schedules",
    "testing",
    "thermostats",
    "trace",
    "transforms",
    "tuning",
)
# Examples that take minutes without the compiler.
LONG = ("sgmcmc.testing.check_as_it_is", "sgmcmc.testing.check_streams")
# Classes whose methods are part of the surface, beside the class: all of them, or these.
METHODS: dict[str, tuple[str, ...] | None] = {"sgmcmc.Trace": None, "sgmcmc.Sampler": ("init", "step")}

SECTIONS = ("Parameters", "Attributes", "Returns", "Raises", "Notes", "References", "Examples")
HEADING = re.compile(r"^([A-Z]\w+)\n-{3,}$", re.MULTILINE)
ITEM = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : \S.*)?$", re.MULTILINE)
STRAY = re.compile(r"^(\*{0,2}[a-z_]\w*(?:, \*{0,2}[a-z_]\w*)*) ?: \S", re.MULTILINE)


def surface() -> dict[str, Any]:
    """Functions, classes, open functions and methods by the shortest name a user can write; each once."""
    found: dict[str, Any] = {}
    known: set[int] = set()
    for module in ("sgmcmc", *(f"sgmcmc.{name}" for name in MODULES)):
        home = importlib.import_module(module)
        for name in home.__all__:
            value = getattr(home, name)
            if _has_docstring(value) and id(value) not in known:
                known.add(id(value))
                found[f"{module}.{name}"] = value
    for owner, names in METHODS.items():
        for name in public_methods(found[owner]) if names is None else names:
            found[f"{owner}.{name}"] = getattr(found[owner], name)
    return found


def _has_docstring(value: Any) -> bool:
    """Whether it can have one of its own; modules, numbers and aliases of types cannot."""
    open_function = importlib.import_module("sgmcmc.dispatch").OpenFunction
    return inspect.isclass(value) or inspect.isfunction(value) or isinstance(value, open_function)


def public_methods(cls: type) -> list[str]:
    """Functions and class methods of a class of this package and its bases within the package."""
    own = [vars(base) for base in cls.__mro__ if base.__module__.startswith("sgmcmc")]
    named = dict.fromkeys(itertools.chain.from_iterable(own))
    return [n for n in named if not n.startswith("_") and inspect.isroutine(getattr(cls, n))]


def docstring(value: Any) -> str:
    """The docstring of this very object, without the indentation of the source; a class does not inherit one."""
    text = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    return inspect.cleandoc(text or "")


def sections(text: str) -> dict[str, str]:
    """The text of each section by its heading; what stands before the first is named ""."""
    parts = HEADING.split(text)
    return {"": parts[0].strip()} | {h: body.strip("\n") for h, body in zip(parts[1::2], parts[2::2], strict=True)}


def parameters_of(value: Any) -> list[str]:
    """The names in the signature, in order; a class without a signature of its own takes those of its base."""
    try:
        signature = inspect.signature(value)
    except ValueError:  # an exception's constructor
        return []
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    names = [stars.get(p.kind, "") + p.name for p in signature.parameters.values()]
    return [name for name in names if name != "self"]


def returns_something(value: Any) -> bool:
    """Whether it is annotated so; an open function without annotations works on its arguments."""
    if inspect.isclass(value):
        return False
    return inspect.signature(value).return_annotation not in (None, "None", inspect.Signature.empty)


def problems_of_summary(text: str) -> Iterator[str]:
    first, _, rest = text.partition("\n")
    if not first.endswith("."):
        yield "its first line is not a sentence that ends with a full stop"
    if rest and not rest.startswith("\n"):
        yield "there is no empty line after the summary"


def problems(value: Any, wants_parameters: bool = True) -> list[str]:
    """What numpydoc form asks for and is not there; empty if all is well."""
    text = docstring(value)
    if text == "":
        return ["it has no docstring"]
    found, has = list(problems_of_summary(text)), sections(text)
    headings = [h for h in has if h]
    found += [f"it has the unknown section {h}" for h in headings if h not in SECTIONS]
    if headings != [h for h in SECTIONS if h in headings]:
        found.append(f"its sections are in the order {', '.join(headings)}")
    listed = [name for names, _ in items(has.get("Parameters", "")) for name in names]
    wanted = parameters_of(value) if wants_parameters else []
    if [name.lstrip("*") for name in listed] != [name.lstrip("*") for name in wanted]:
        found.append(f"it documents the parameters {listed}; its signature has {wanted}")
    found += [f"{', '.join(n)} has no type" for n, typed in items(has.get("Parameters", "")) if not typed]
    if returns_something(value) and "Returns" not in has:
        found.append("it does not say what it returns")
    if ">>> " not in has.get("Examples", ""):
        found.append("it has no example")
    return found + stray_items(text)


def items(section: str) -> list[tuple[list[str], bool]]:
    """The names of each entry of a section such as Parameters, and whether a type stands behind them."""
    return [(m[1].split(", "), m[1] != m[0]) for m in ITEM.finditer(section)]


def stray_items(text: str) -> list[str]:
    """Entries such as ``name: text`` in prose, which the site would run together."""
    prose = (body for heading, body in sections(text).items() if heading in ("", "Notes", "References"))
    return [f"{m[1]} is listed outside of a section" for body in prose for m in STRAY.finditer(body)]


# ---- examples -----------------------------------------------------------------------------------------------------------


def examples_of(name: str, value: Any, given: dict[str, Any]) -> doctest.DocTest:
    return doctest.DocTestParser().get_doctest(docstring(value), given, name, None, 0)


def missing_libraries(text: str) -> list[str]:
    wanted = re.findall(r"^\s*>>> import (jax|torch)\b", text, re.MULTILINE)
    return [name for name in wanted if importlib.util.find_spec(name) is None]


def run_examples(chosen: dict[str, Any]) -> dict[str, str]:
    """What went wrong, by name. An example has `np` and `sg`; one of a method goes on from that of its class."""
    import numpy as np

    import sgmcmc as sg

    failed, left_by = {}, {}
    for name, value in chosen.items():
        if missing_libraries(docstring(value)):
            continue
        owner = name.rpartition(".")[0]
        given = {"np": np, "sg": sg} | left_by.get(owner, {})
        test, said = examples_of(name, value, given), []
        runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        runner.run(test, out=said.append, clear_globs=False)
        left_by[name] = test.globs
        if runner.failures:
            failed[name] = "".join(said)
    return failed


def run_in_a_process(*arguments: str) -> dict[str, str]:
    """`run_examples` in a process of its own, where a warning is an error."""
    environment = os.environ | {"MPLBACKEND": "Agg", "PYTHONIOENCODING": "utf-8"}
    strict = ("-W", "error", "-W", "ignore:this run is :UserWarning")
    command = [sys.executable, *strict, os.path.abspath(__file__), "--json", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def main(arguments: list[str]) -> None:
    words = [a for a in arguments if not a.startswith("--")]
    compiled = "--compiled" in arguments
    if not compiled:
        os.environ["NUMBA_DISABLE_JIT"] = "1"  # before Numba is loaded
    chosen = surface()
    wanted = {n for n in chosen if (not words or any(w in n for w in words)) and (compiled or n not in LONG)}
    owners = {n.rpartition(".")[0] for n in wanted}
    with contextlib.redirect_stdout(sys.stderr), tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        failed = run_examples({n: v for n, v in chosen.items() if n in wanted | owners})
    print(
        json.dumps(failed) if "--json" in arguments else "\n".join(failed.values()) or f"{len(wanted)} names: all right"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
