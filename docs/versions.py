"""Writes docs/versions.md: which versions of Python, Numba, NumPy, SciPy and pandas the package works with.

    python docs/versions.py                              every Numba on every Python that is found, and the oldest of all
    python docs/versions.py --python PATH --numba 0.61   one row
    python docs/versions.py --oldest                     all lower bounds of pyproject.toml together, exactly these
    python docs/versions.py --page                       only the page, from docs/versions.csv

For each row: a fresh environment in a temporary folder, the package as pip installs it from this working copy, what pip takes
with it, and the checks. Rows are kept in docs/versions.csv one by one, so a stopped run goes on; --again measures them anew.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parent
ROWS, PAGE = HERE / "versions.csv", HERE / "versions.md"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
TOOLS = ("pytest>=8.2", "pytest-xdist>=3.6", "hypothesis>=6.100", "mpmath>=1.3")
CORE_TESTS = (  # what depends on Numba most, in less than three minutes on two cores
    "compiler/test_dispatch",
    "compiler/test_insides",
    "integrators/test_integrators",
    "trace/test_joining",
    "compiler/test_kernels",
    "kinetics/test_kinetics",
    "parameters/test_parameters",
    "run/test_coordinate_sharding",
    "rng/test_rng",
    "samplers/test_samplers",
    "run/test_sampling",
    "compiler/test_store",
    "thermostats/test_thermostats",
)
WHEELS = "numba,llvmlite,numpy,scipy,pandas,matplotlib"  # never built from source
QUIET = ("--quiet", "--disable-pip-version-check", "--no-input", "--no-compile")
PACKAGES = ("numba", "llvmlite", "numpy", "scipy", "pandas", "matplotlib", "tqdm", "arviz-stats")
CHECKS = ("demo", "README", "five samplers", "own gradient", "own kinetics", "second process")
FIELDS = ("row", "python", *PACKAGES, *CHECKS, "draws", "passed", "failed", "failures")
SHOWN = ("python", "numba", "llvmlite", "numpy", "scipy", "pandas", *CHECKS)

Row = dict[str, str]


class Wanted(NamedTuple):
    """A row to be measured: which interpreter, and which Numba, or "oldest" for all lower bounds together."""

    python: str
    minor: str  # of Python
    numba: str

    @property
    def name(self) -> str:
        return f"Python {self.minor}, {'oldest of all' if self.numba == 'oldest' else f'Numba {self.numba}'}"


# ---- what is wanted -------------------------------------------------------------------------------------------------------


def bounds() -> dict[str, str]:
    """The lower bounds of the core dependencies, as pyproject.toml declares them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return dict(text.split(">=") for text in project["dependencies"])


def numbas() -> list[str]:
    """The minor versions of Numba that pip knows, from the declared bound on; the oldest one first."""
    command = [sys.executable, "-m", "pip", "index", "versions", "numba"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    known = re.findall(r"\b(\d+)\.(\d+)\.\d+\b", said.partition("Available versions:")[2].partition("\n")[0])
    least = tuple(map(int, bounds()["numba"].split(".")[:2]))
    return [f"{a}.{b}" for a, b in sorted({(int(a), int(b)) for a, b in known}) if (a, b) >= least]


def minor_of(python: str) -> str:
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()


def wanted(given: argparse.Namespace) -> list[Wanted]:
    found = [str(path) for path in given.python or ()] or [p for v in PYTHONS if (p := shutil.which(f"python{v}"))]
    pythons = {minor_of(python): python for python in found or [sys.executable]}
    some = given.numba or given.oldest or given.newest
    versions = list(given.numba or ()) if some else numbas()
    if given.newest:
        versions.append(numbas()[-1])
    if given.oldest or not some:
        versions.insert(0, "oldest")
    rows = [Wanted(python, minor, numba) for minor, python in pythons.items() for numba in dict.fromkeys(versions)]
    # Newer Pythons have no wheels of the oldest versions; asked for by name, they are tried.
    return [each for each in rows if some or each.numba != "oldest" or each.minor == PYTHONS[0]]


# ---- one row --------------------------------------------------------------------------------------------------------------


class Environment:
    """A fresh virtual environment with the package in it, and a folder to work in, away from the working copy."""

    def __init__(self, python: str, wheel: Path, folder: Path) -> None:
        self.wheel, self.folder, self.python = wheel, folder, folder / "env" / "bin" / "python"
        self.cache = folder / "cache"
        subprocess.run([python, "-m", "venv", str(folder / "env")], check=True, capture_output=True)
        shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)

    def run(self, *command: str, seconds: int = 1800) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "NUMBA_CPU_NAME")}
        settings = {"NUMBA_CACHE_DIR": str(self.cache), "MPLBACKEND": "Agg", "SGMCMC_READY": "0"}
        line = [str(self.python), *command]
        options = {"capture_output": True, "text": True, "check": False, "timeout": seconds}
        return subprocess.run(line, cwd=self.folder, env=kept | settings, **options)  # type: ignore[call-overload, no-any-return]

    def install(self, numba: str) -> str:
        """An empty text, or why it is not to be had."""
        exact = [f"{name}=={version}" for name, version in bounds().items()]
        versions = exact if numba == "oldest" else [f"numba=={numba}.*"]
        wheels = ("--prefer-binary", "--only-binary", WHEELS)
        done = self.run("-m", "pip", "install", *QUIET, *wheels, str(self.wheel), *versions, *TOOLS)
        errors = re.findall(r"^ERROR: (.*)$", done.stderr, re.MULTILINE)
        return "" if done.returncode == 0 else f"not installed: {told(errors[0] if errors else 'pip failed')}"

    def check(self, what: str) -> tuple[str, dict[str, object]]:
        """Something of docs/version_checks.py: "yes" or how it failed, and what it found."""
        done = self.run("-W", "error", str(HERE / "version_checks.py"), what)
        if done.returncode != 0:
            return failure(done), {}
        found = json.loads(done.stdout.splitlines()[-1])
        assert found["from"].startswith(str(self.folder)), "the package must come from the environment"
        return "yes", found


def failure(done: subprocess.CompletedProcess[str]) -> str:
    lines = done.stderr.strip().splitlines() or done.stdout.strip().splitlines() or ["no message"]
    return f"no: {told(lines[-1])}"


def told(line: str) -> str:
    """A message for a cell of the table, without folders of the machine it came from."""
    return re.sub(r"(?:/[\w.+-]+)+/", "…/", line).replace("|", "/")[:200]


def wheel_of_the_working_copy(folder: Path) -> Path:
    """What ``SGMCMC_READY=0 pip install .`` installs, made once: it is the same for every Python."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, env=os.environ | {"SGMCMC_READY": "0"}, check=True, capture_output=True)
    return next(folder.glob("sgmcmc-*-py3-none-any.whl"))


def measure(each: Wanted, wheel: Path, core: bool, anew: bool) -> Row:
    """A row. What is kept of it already, with these very versions, is not measured twice, but for `anew`."""
    with tempfile.TemporaryDirectory() as name:
        here = Environment(each.python, wheel, Path(name).resolve())
        row = {"row": each.name, "python": each.minor} | dict.fromkeys(FIELDS[len(PACKAGES) + 2 :], "")
        reason = here.install(each.numba)
        if reason:
            return row | {"passed": "0", "failed": "?", "failures": reason}
        row |= here.check("versions")[1]["found"]  # type: ignore[arg-type]
        old = next((old for old in kept() if same_versions(old, row)), row)
        row |= checked(here) if anew or not old["demo"] else {key: old[key] for key in (*CHECKS, "draws")}
        known = old["passed"] and not (anew and core)
        tests = {key: old[key] for key in ("passed", "failed", "failures")}
        return row | (core_tests(here) if core and not known else tests)


def same_versions(one: Row, two: Row) -> bool:
    return all(one[key] == two[key] for key in ("row", "python", *PACKAGES))


def checked(here: Environment) -> Row:
    """The checks in the order of CHECKS. The cache is empty before the samplers; after them a second process must add nothing."""
    demo = here.run("-m", "sgmcmc", "demo", "--quiet", "--draws", "400", "--chains", "4")
    readme = re.search(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    assert readme is not None
    (here.folder / "readme.py").write_text(readme[1], encoding="utf-8")
    example = here.run("-W", "error", "-W", "ignore:this run is :UserWarning", "readme.py")
    row = {"demo": "yes" if demo.returncode == 0 else failure(demo)}
    row["README"] = "yes" if example.returncode == 0 else failure(example)
    first = {}
    for name, what in (("five samplers", "samplers"), ("own gradient", "gradient"), ("own kinetics", "kinetics")):
        row[name], first[what] = here.check(what)
    row["draws"] = " ".join(first["samplers"].get("found", {}).values())  # type: ignore[attr-defined]
    row["second process"] = again(here, first)
    return row


def again(here: Environment, first: dict[str, dict[str, object]]) -> str:
    """Whether processes of their own load what the first ones compiled: no new file, nothing compiled, the same draws."""
    before = files(here.cache)
    for what, found in first.items():
        if not found.get("compiled"):
            return f"no: the first process of {what} compiled nothing, or failed"
        verdict, later = here.check(what)
        if verdict != "yes":
            return verdict
        if later["compiled"] or later["found"] != found["found"]:
            return f"no: {what} compiled {later['compiled']} functions, or drew something else"
    return "yes" if files(here.cache) == before else "no: files were added to the cache"


def files(folder: Path) -> set[tuple[str, int]]:
    return {(str(path), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def core_tests(here: Environment) -> Row:
    done = here.run("-m", "pytest", "-rfE", *(f"tests/{name}.py" for name in CORE_TESTS), seconds=3600)
    words = done.stdout.strip().splitlines()[-1:] or [""]
    counts = {kind: int(n) for n, kind in re.findall(r"(\d+) (passed|failed|error)", words[0])}
    names = re.findall(r"^(?:FAILED|ERROR) tests/(\S+)", done.stdout, re.MULTILINE)
    if not counts:
        return {"passed": "0", "failed": "?", "failures": failure(done)}
    failed = counts.get("failed", 0) + counts.get("error", 0)
    return {"passed": str(counts.get("passed", 0)), "failed": str(failed), "failures": " ".join(names[:5])}


# ---- rows and page --------------------------------------------------------------------------------------------------------


def kept() -> list[Row]:
    if not ROWS.exists():
        return []
    with ROWS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def keep(rows: list[Row]) -> None:
    with ROWS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=order))


def order(row: Row) -> tuple[object, ...]:
    numba = re.search(r"Numba (\d+)\.(\d+)", row["row"])
    return tuple(map(int, row["python"].split(".")[:2])), (0, 0) if numba is None else tuple(map(int, numba.groups()))


def has_passed(row: Row) -> bool:
    """Everything, the core tests included."""
    return all(row[check] == "yes" for check in CHECKS) and row["failed"] == "0" and int(row["passed"]) > 0


WORDS = """\
# Versions

Written by `docs/versions.py`. Each row is a fresh environment. The package is installed from a working copy, without kernels
compiled in advance. pip chooses what fits beside the Numba of the row. A row with *(oldest of all)* has every lower bound of
`pyproject.toml`, exactly: {oldest}.
"""

COLUMNS = """\
* demo: `sgmcmc demo` with 4 chains of 400 draws. README: its first example.
* five samplers: SGLD, SGHMC, SGNHT, SGMGT and SGMGTD on a Gaussian. own gradient: a function made with `numba.njit`. own
  kinetics: a NamedTuple with energy, velocity and curvature. Means and variances of the draws must be right; warnings are errors.
* second process: the last three again, in new processes. They must compile nothing, write no file and draw the same bits.
* draws: rows with the same letter gave the same bits with all five samplers, on the machine of this table.
* core tests: passed / failed of {tests}.
"""

PLAIN_TESTS = " ".join(
    f"tests/{name}.py"
    for name in (
        "compiler/test_plain",
        "compiler/test_dispatch",
        "compiler/test_kernels",
        "samplers/test_samplers",
        "rng/test_rng",
    )
)
NOTES = """\
## To try it

The row of the lower bounds, and some tests on Numba's public API alone (`SGMCMC_PLAIN_NUMBA=1`: draws are the same up to
rounding, 1e-9 of their size after 80 steps in double precision and 1e-3 in single, by `tests/compiler/test_plain.py`):

```sh
python3 -m venv .venv && .venv/bin/pip install tqdm && .venv/bin/python docs/versions.py --python python3 --oldest --again
python3 -m venv .venv && .venv/bin/pip install -e ".[test]" && SGMCMC_PLAIN_NUMBA=1 .venv/bin/python -m pytest {plain}
```

## Lower bounds

The lower bounds are installed together and pass together on Python 3.11. pandas 2.2.0 and 2.2.1 demand NumPy 1, so 2.2.2 is
the first that can be installed with NumPy 2. Python 3.13 has no wheels of NumPy 2.0, SciPy 1.13 and pandas 2.2.2; pip takes
newer ones there.

## The same bits in one environment, other bits in another

Another Numba brings another LLVM, which may round differently. Draws of the same seed may be other bits with another Numba
(column *draws*).

Within one environment `sampler.step` and the loop of `sample` are two kernels, and give the same bits. The flags of loops,
`contract` and `reassoc`, allow LLVM to round them differently, so this is checked: part of *five samplers* is that SGLD,
SGHMC, SGNHT, SGMGT, SGMGTD (also with a fixed centre, and a = 1.5) have equal draws in 300 steps of 3 chains, to the last
bit. There is no tolerance.

Numba 0.61 (LLVM 15) once failed this with SGMGTD at a = 2, by 1 ulp. The reason was one statement of `drift_compensated`,
`theta[i] += tau * s * (1 - 2 * c) * v`, with a long formula for c inside the loop: LLVM 15 rounded the product of its four
factors differently in the two kernels. Tried on that version of the package (the parent of commit 32ae02b): without
`contract` in loops, or without `reassoc` and `arcp`, or with a short formula for c, or with the statement in a function that
has no `reassoc`, the bits were equal. Numba 0.68 gave equal bits with none of these changes. Since commit 32ae02b the
formula is short, and the bits are equal with LLVM 15, too.

## GPUs

No GPU was used. numba-cuda was tried on Python 3.11 with `tests/gpu/test_cuda_simulator.py` (its short form, 7 tests) and by
importing it.

| numba-cuda | import with Numba 0.61 to 0.65 | import with Numba 0.66 to 0.68 | simulator |
|---|---|---|---|
| 0.30.0 | yes | no: `numba.cuda.types` has no `NPDatetime` | 7 passed with Numba 0.61 |
| 0.30.3 | yes (0.61 tried) | no: the same | not run |
| 0.30.4, the newest | yes | yes | 7 passed with Numba 0.68 and with Numba 0.61 |

So the extras `cuda12` and `cuda13` demand numba-cuda 0.30.4.
"""


def page(rows: list[Row]) -> str:
    oldest = ", ".join(f"{name} {version}" for name, version in bounds().items())
    heads = [
        "Python",
        "Numba",
        "llvmlite",
        "NumPy",
        "SciPy",
        "pandas",
        *CHECKS,
        "draws",
        "core tests",
        "first failures",
    ]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads), *table_lines(rows)]
    words = COLUMNS.format(tests=", ".join(f"`{name}`" for name in CORE_TESTS))
    return (
        "\n".join([WORDS.format(oldest=oldest), *lines, "", words, NOTES.replace("{plain}", PLAIN_TESTS)]).rstrip()
        + "\n"
    )


def table_lines(rows: list[Row]) -> Iterator[str]:
    letters: dict[str, str] = {"": ""}
    for row in sorted(rows, key=order):
        letter = letters.setdefault(row["draws"], chr(ord("A") + len(letters) - 1))
        cells = [row[name] for name in SHOWN]
        if "oldest" in row["row"]:
            cells[1] += " (oldest of all)"
        core = f"{row['passed']} / {row['failed']}" if row["passed"] else "not run"
        yield "| " + " | ".join([*cells, letter, core, row["failures"]]) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--python", type=Path, nargs="+", metavar="PATH", help="interpreters (all of 3.11 … on the path)"
    )
    parser.add_argument(
        "--numba", nargs="+", metavar="0.XX", help="minor versions (all that pip knows, from the bound on)"
    )
    parser.add_argument("--oldest", action="store_true", help="all lower bounds of pyproject.toml together")
    parser.add_argument("--newest", action="store_true", help="the newest Numba")
    parser.add_argument("--quick", action="store_true", help="without the core tests; what is known of them is kept")
    parser.add_argument("--again", action="store_true", help="measure also rows that are in docs/versions.csv")
    parser.add_argument(
        "--page", action="store_true", help="measure nothing; write docs/versions.md from docs/versions.csv"
    )
    given = parser.parse_args()
    good = True
    if not given.page:
        with tempfile.TemporaryDirectory() as name:
            good = measure_all(given, Path(name))
    PAGE.write_text(page(kept()), encoding="utf-8")
    return 0 if good else 1


def measure_all(given: argparse.Namespace, folder: Path) -> bool:
    """Whether all rows that were measured have passed."""
    from tqdm import tqdm

    good = True
    done = {row["row"] for row in kept() if row["passed"] or given.quick}
    waiting = [each for each in wanted(given) if given.again or each.name not in done]
    wheel = wheel_of_the_working_copy(folder) if waiting else folder
    bar = tqdm(waiting, unit="row", file=sys.stderr)
    for each in bar:
        bar.set_postfix_str(each.name)
        row = measure(each, wheel, core=not given.quick, anew=given.again)
        others = [other for other in kept() if other["row"] != each.name]
        keep([*others, row])
        PAGE.write_text(page(kept()), encoding="utf-8")
        passed = has_passed(row) or (given.quick and all(row[check] == "yes" for check in CHECKS))
        if not passed:
            print(f"{each.name}: {row}", file=sys.stderr)
        good &= passed
    return good


if __name__ == "__main__":
    raise SystemExit(main())
