"""Imports point downward: a module may use the layers below its own, and its own package."""

from __future__ import annotations

import ast
from pathlib import Path

import sgmcmc

ROOT = Path(sgmcmc.__file__).parent

LAYERS = [
    {"_lazy", "checks", "threads"},
    {"datasets", "parameters", "transforms"},
    {"compiler"},
    {"dispatch", "kernels", "moments"},
    {"elementary"},
    {"rng"},
    {"kinetics", "priors", "schedules"},
    {"thermostats"},
    {"minibatch", "potentials"},
    {"integrators"},
    {"gpu"},
    {"models", "samplers"},
    {"diagnostics"},
    {"bias", "plots"},
    {"trace"},
    {"adapters", "run"},
    {"__init__"},
    {"testing"},
    {"comparison", "tuning"},
    {"estimators"},
    {"evidence"},
    {"cli"},
    {"__main__"},
]
LEVEL = {module: level for level, modules in enumerate(LAYERS) for module in modules}

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


def part_of(path: Path) -> str:
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


def violations(path: Path, source: str) -> list[str]:
    own, found = part_of(path), []
    for name in imports(ast.parse(source), inside_functions=True):
        parts = name.split(".")
        if parts[0] != "sgmcmc" or len(parts) == 1:
            continue
        other = parts[1] if parts[1] in LEVEL else "__init__"
        if other != own and LEVEL[other] >= LEVEL[own] and parts[1] != "__version__":
            found.append(f"{path.relative_to(ROOT)} imports {name}, which is not below it")
    return found


def test_every_module_has_a_layer():
    unknown = {part_of(p) for p in ROOT.rglob("*.py")} - set(LEVEL)
    assert unknown == set()


def test_imports_point_downward():
    assert [v for p in sorted(ROOT.rglob("*.py")) for v in violations(p, p.read_text())] == []


def test_an_import_that_points_upward_is_seen():
    assert violations(ROOT / "rng" / "gamma.py", "from sgmcmc.kinetics import Gaussian") != []
    assert violations(ROOT / "kinetics" / "gaussian.py", "from sgmcmc.rng import words") == []


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
