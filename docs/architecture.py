"""Writes docs/architecture.md: the folders of the package, the way of one call through them, and how large and tangled they are.

python docs/architecture.py [--check]     --check: only say whether the page's tree is that of the package
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

HERE = Path(__file__).parent
PAGE, PACKAGE, LAYERS = HERE / "architecture.md", HERE.parent / "sgmcmc", HERE.parent / "tests" / "test_layers.py"
# Measured on the tree of 2026-11-18 before folders were made, with the same rules.
BEFORE = {
    "modules that lie flat in `sgmcmc/`": "50",
    "layers of imports": "36",
    "one call of `sg.sample`: functions / files / changes of file": "290 / 50 / 172",
    "one call of `sampler.step`": "109 / 20 / 58",
    "files with more than 300 lines": "10",
    "private names of Numba, files that use them": "~60, 18",
}

WORDS = """\
# Architecture

Written by `docs/architecture.py`. A sampler is a value: kinetics, thermostat, integrator and scale are named tuples of numbers.
What a part means is said by *open functions*, which choose an implementation by the types of their arguments while Numba
compiles. A kernel is an ordinary function that is compiled for the types of its parts; numbers are arguments. So a part in
your script is compiled into the loop as those of the package are.

A folder imports from the layers that stand above its own in this table, and from its own layer where that makes no circle;
`tests/test_layers.py` holds that.

"""
CALL = """\
## One call

The functions that `sg.sample(model, sg.SGMGTD(1e-3, a=2), batch_size=16)` of a logistic regression enters, each at its first
call, with compilation switched off. A line is a stretch that stays in one file.

<details markdown><summary>The way of the call</summary>
"""

# Follows one call, without Numba: functions, and the files they are in, in the order of their first calls.
TRACE = """
import json, os, sys, threading
import numpy as np, sgmcmc as sg
root = os.path.dirname(os.path.abspath(sg.__file__)) + os.sep
X, y = np.random.default_rng(0).normal(size=(64, 3)), np.arange(64) % 2
model, sampler = sg.models.LogisticRegression(X, y), sg.SGMGTD(1e-3, a=2)
state, order = sampler.init(np.zeros(3), seed=1), {}
hidden = ("<module>", "<listcomp>", "<genexpr>", "<lambda>", "<dictcomp>", "<setcomp>")

def importing(frame):
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(root):
            return True
        frame = frame.f_back
    return False

def profile(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(root) and code.co_name not in hidden:
        key = code.co_filename[len(root):], code.co_firstlineno, code.co_name
        if key not in order and not importing(frame):
            order[key] = None

threading.setprofile(profile)
sys.setprofile(profile)
if sys.argv[1] == "sample":
    sg.sample(model, sampler, draws=8, warmup=8, threads=2, batch_size=16, progress=False, seed=1, chains=2, warn=False)
else:
    sampler.step(state, np.zeros(3))
sys.setprofile(None)
threading.setprofile(None)
print(json.dumps(list(order)))
"""


def traced(call: str) -> list[tuple[str, int, str]]:
    """File, line and name of each function of the package that a call enters."""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", TRACE, call], env=environment, capture_output=True, text=True, check=True
    )
    return [(file, line, name) for file, line, name in json.loads(done.stdout.splitlines()[-1])]


def counts(order: list[tuple[str, int, str]]) -> str:
    changes = sum(one[0] != two[0] for one, two in pairwise(order))
    return f"{len(order)} / {len({file for file, _, _ in order})} / {changes}"


def layers() -> dict[str, set[str]]:
    """The units of each layer of imports, lowest first."""
    tree = ast.parse(LAYERS.read_text(encoding="utf-8"))
    found = [n.value for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "LAYERS"]
    return dict(ast.literal_eval(found[0]))


def first_line(path: Path) -> str:
    words = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return words.split("\n")[0].strip().removesuffix(".").replace("|", "/")


def modules(folder: Path) -> Iterator[Path]:
    yield from sorted(p for p in folder.rglob("*.py") if p.name != "__init__.py")


def tree() -> str:
    """A row for each folder or module of the package, in the order of the layers; and the modules of each folder."""
    rows, details = ["| layer | in `sgmcmc/` | what it is |", "|---|---|---|"], []
    for layer, units in layers().items():
        for name in sorted(units - {"__init__", "__main__"}):
            folder = PACKAGE / name
            if folder.is_dir():
                rows.append(f"| {layer} | `{name}/` | {first_line(folder / '__init__.py')} |")
                inside = [f"* `{p.relative_to(folder)}`: {first_line(p)}" for p in modules(folder)]
                details.append(f"### {name}/\n\n" + "\n".join(inside) if inside else "")
            else:
                rows.append(f"| {layer} | `{name}.py` | {first_line(PACKAGE / f'{name}.py')} |")
    return "\n".join(rows) + "\n\n## What is in each folder\n\n" + "\n\n".join(filter(None, details)) + "\n"


def measured(sample: list[tuple[str, int, str]], step: list[tuple[str, int, str]]) -> str:
    sys.path.insert(0, str(PACKAGE.parent))
    from sgmcmc.compiler.numba_bridge import CUDA_INSIDES, INSIDES

    lines = [len(path.read_text(encoding="utf-8").splitlines()) for path in PACKAGE.rglob("*.py")]
    now = dict(
        zip(
            BEFORE,
            (
                str(len(list(PACKAGE.glob("*.py")))),
                str(len(layers())),
                counts(sample),
                counts(step),
                str(sum(n > 300 for n in lines)),
                f"{len(INSIDES) + len(CUDA_INSIDES)}, 1",
            ),
            strict=True,
        )
    )
    return "\n".join(
        ["| what | before | now |", "|---|---|---|", *(f"| {key} | {BEFORE[key]} | {now[key]} |" for key in BEFORE)]
    )


def way(order: list[tuple[str, int, str]]) -> str:
    """The stretches of a call that stay in one file."""
    stretches: list[tuple[str, list[str]]] = []
    for file, _, name in order:
        if not stretches or stretches[-1][0] != file:
            stretches.append((file, []))
        stretches[-1][1].append(name.strip("<>"))
    return "\n".join(
        f"{i}. `{file}`: {', '.join(f'`{n}`' for n in names)}" for i, (file, names) in enumerate(stretches, 1)
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        return 0 if tree() in PAGE.read_text(encoding="utf-8") else 1
    sample, step = traced("sample"), traced("step")
    PAGE.write_text(
        "\n".join([WORDS + tree(), CALL, way(sample), "\n</details>\n\n## Measured\n", measured(sample, step), ""]),
        encoding="utf-8",
    )
    print(re.sub(r"(?s).*## Measured\n\n", "", PAGE.read_text(encoding="utf-8")))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
