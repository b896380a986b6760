"""Imports point downward: a module may use the layers below its own, its own package, and, without circles, its own layer."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import sgmcmc

ROOT = Path(sgmcmc.__file__).parent

# From the lowest to the highest. `__init__` is what users import: a list of names, loaded when they are asked for.
LAYERS = {
    "base": {"_lazy", "checks", "threads"},
    "compiler": {"compiler", "dispatch", "kernels"},
    "numbers": {"elementary", "rng"},
    "parts": {"kinetics", "minibatch", "moments", "priors", "schedules", "thermostats"},
    "models": {"datasets", "models", "parameters", "potentials", "transforms"},
    "samplers": {"gpu", "integrators", "samplers"},
    "results": {"bias", "diagnostics", "plots", "trace"},
    "run": {"__init__", "run"},
    "tools": {"adapters", "comparison", "estimators", "evidence", "testing", "tuning"},
    "commands": {"__main__", "cli"},
}
LEVEL = {unit: level for level, units in enumerate(LAYERS.values()) for unit in units}
MAY_NAME_EVIDENCE = {"evidence", "testing", "cli"}

# A trace offers its own plots and summary, through imports inside the methods.
HEAVY = {
    "scipy",
    "matplotlib",
    "pandas",
    "arviz_stats",
    "arviz_base",
    "tqdm",
    "numba.cuda",
    "dask",
    "distributed",
    "mpi4py",
}


def unit_of(path: Path) -> str:
    """The folder or module that lies directly in the package."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(tree: ast.AST, inside_functions: bool) -> list[str]:
    """Modules imported at the top of a file, or anywhere in it."""
    nodes = ast.walk(tree) if inside_functions else iter_top(tree)
    found = []
    for node in nodes:
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def iter_top(tree: ast.AST):
    for node in tree.body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield node


def used_units(path: Path, source: str) -> Iterator[tuple[str, str]]:
    """What a file imports from the package, anywhere in it, and the unit which that is in."""
    own = unit_of(path)
    for name in imports(ast.parse(source), inside_functions=own != "__init__"):
        top, *inside = name.split(".")
        unit = inside[0] if inside and inside[0] in LEVEL else "__init__"
        if top == "sgmcmc" and unit != own and inside != ["__version__"]:
            yield name, unit


def violations(path: Path, source: str) -> list[str]:
    own, here = unit_of(path), path.relative_to(ROOT)
    found = [
        f"{here} imports {name}, which is above it"
        for name, unit in used_units(path, source)
        if LEVEL[unit] > LEVEL[own]
    ]
    if "sgmcmc.evidence" in source and own not in MAY_NAME_EVIDENCE:
        found.append(f"{here} names sgmcmc.evidence, which is for testing and cli")
    return found


def circle(files: Iterable[tuple[Path, str]]) -> list[str]:
    """Units that import each other, directly or through others; none is right."""
    graph: dict[str, set[str]] = {}
    for path, source in files:
        graph.setdefault(unit_of(path), set()).update(unit for _, unit in used_units(path, source))
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def sources() -> list[tuple[Path, str]]:
    return [(path, path.read_text()) for path in sorted(ROOT.rglob("*.py"))]


def test_every_module_has_a_layer():
    assert {unit_of(path) for path, _ in sources()} == set(LEVEL)
    assert len(LEVEL) == sum(map(len, LAYERS.values()))
    assert len(LAYERS) <= 10


def test_imports_point_downward():
    assert [v for path, source in sources() for v in violations(path, source)] == []


def test_folders_do_not_import_each_other_in_a_circle():
    assert circle(sources()) == []


def test_an_import_that_points_upward_is_seen():
    assert violations(ROOT / "rng" / "gamma.py", "from sgmcmc.kinetics import Gaussian") != []
    assert violations(ROOT / "kinetics" / "gaussian.py", "from sgmcmc.rng import words") == []
    assert violations(ROOT / "compiler" / "store.py", "def f():\n    import sgmcmc as sg") != []
    assert violations(ROOT / "tuning" / "tune.py", "import sgmcmc as sg") == []
    assert violations(ROOT / "tuning" / "tune.py", "from sgmcmc.evidence.experiments import lda") != []
    assert violations(ROOT / "cli" / "bench.py", "from sgmcmc.evidence.experiments import lda") == []


def test_a_circle_within_a_layer_is_seen():
    there = (ROOT / "rng" / "gamma.py", "from sgmcmc.elementary import log")
    back = (ROOT / "elementary" / "powers.py", "def f():\n    from sgmcmc import rng")
    assert circle([there]) == circle([back]) == []
    assert set(circle([there, back])) == {"rng", "elementary"}
    assert set(circle([*sources(), back])) == {"rng", "elementary"}


# Numba's simulator wants `cuda` as a name of the module that holds a kernel; only each other import these at their tops.
# The table of a comparison is a kind of DataFrame, so pandas is at the top of its module.
LAZY = {
    ROOT / "comparison" / "table.py",
    ROOT / "run" / "gpu" / "kernels.py",
    *(ROOT / "gpu" / f"{n}.py" for n in ("kernel_cache", "runtime", "update_kernel")),
}


def test_modules_with_heavy_imports_are_imported_inside_functions_only():
    names = (
        "sgmcmc.comparison.table",
        "sgmcmc.run.gpu.kernels",
        "sgmcmc.gpu.kernel_cache",
        "sgmcmc.gpu.runtime",
        "sgmcmc.gpu.update_kernel",
    )
    for path in sorted(set(ROOT.rglob("*.py")) - LAZY):
        at_the_top = imports(ast.parse(path.read_text()), inside_functions=False)
        assert not any(n.startswith(names) for n in at_the_top), path


def test_heavy_packages_are_imported_inside_the_functions_that_need_them():
    for path in sorted(set(ROOT.rglob("*.py")) - LAZY):
        at_the_top = imports(ast.parse(path.read_text()), inside_functions=False)
        heavy = [name for name in at_the_top if any(name == h or name.startswith(h + ".") for h in HEAVY)]
        assert heavy == [], path
