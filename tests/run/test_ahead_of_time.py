"""Kernels that come with an installation: found by a first run, never stale, put into a wheel."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import sgmcmc
from sgmcmc.run import ahead_of_time as ahead

SCRIPT = """
import numpy as np, sgmcmc as sg
from sgmcmc.run.loop_compiled import run_chunk
rng = np.random.default_rng(0)
X, y = rng.normal(size=(200, 5)), rng.integers(0, 2, 200)
model = sg.models.LogisticRegression(X, y, prior=sg.priors.Gaussian(10.0))
sg.sample(model, sg.SGLD(1e-4), 10, warmup=0, batch_size=16, seed=1, dtype="float32", progress=False, warn=False)
print(sg.__file__, sum(run_chunk.stats.cache_hits.values()), sum(run_chunk.stats.cache_misses.values()))
"""


def first_run(site: Path, cache: Path) -> tuple[str, str]:
    """Kernels found and kernels compiled by a process with an empty cache."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=site, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    file, found, compiled = done.stdout.split()
    assert Path(file).is_relative_to(site)
    return found, compiled


def test_a_first_run_finds_what_came_with_the_package_unless_a_source_was_edited(tmp_path):
    site = tmp_path / "site"
    there, left_out = Path(sgmcmc.__file__).parent, shutil.ignore_patterns("__pycache__", "compiled")
    shutil.copytree(there, site / "sgmcmc", ignore=left_out)
    assert ahead.compile_into(site / "sgmcmc" / "compiled", [("SGLD", "logistic regression", "float32")]) > 0
    assert first_run(site, tmp_path / "empty") == ("1", "0")
    flows = site / "sgmcmc" / "integrators" / "flows.py"
    flows.write_text(flows.read_text() + "\n# edited\n")
    assert first_run(site, tmp_path / "empty too") == ("0", "1")


def dynamics_of(sampler):
    """The types that a kernel is compiled for."""
    return tuple(type(part) for part in sampler.dynamics(1, float))


def test_every_preset_is_compiled_for_every_model():
    kinds = {(dynamics_of(ahead.sampler_of(preset)), model, dtype) for preset, model, dtype in ahead.cases()}
    assert len(kinds) == 22
    assert {dynamics_of(sgmcmc.SGMGTD(1e-3, a)) for a in (1.0, 1.5, 2.0, 5.0)} <= {dynamics for dynamics, _, _ in kinds}
    presets = (sgmcmc.SGLD, sgmcmc.SGHMC, sgmcmc.SGNHT, sgmcmc.SGMGT, sgmcmc.SGMGTD)
    assert {dynamics_of(preset(1e-3)) for preset in presets} <= {dynamics for dynamics, _, _ in kinds}


@pytest.fixture
def hook(monkeypatch):
    """The hook of the build, with a compiler that makes two files, or fails."""
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", Path(__file__).parents[2] / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def make(fails=False):
        def compile_in_advance(command, **_options):
            assert command[1:3] == ["-m", "sgmcmc.run.ahead_of_time"]
            for name in ("one.nbc", "two.nbc"):
                (Path(command[3]) / name).write_bytes(b"code")
            return SimpleNamespace(returncode=int(fails), stderr="Traceback\nImportError: no numba\n")

        monkeypatch.setattr(module.subprocess, "run", compile_in_advance)
        warnings: list[str] = []
        app = SimpleNamespace(display_warning=warnings.append)
        built = module.CustomBuildHook(".", {}, None, None, "", "wheel", app)
        return built, warnings

    monkeypatch.setenv("SGMCMC_READY", "1")
    return make


def test_a_wheel_gets_the_kernels_and_says_for_which_platform_it_is(hook):
    built, _ = hook()
    assert any(need.startswith("numba") for need in built.dependencies())
    data = {"force_include": {}}
    built.initialize("standard", data)
    assert sorted(data["force_include"].values()) == ["sgmcmc/compiled/one.nbc", "sgmcmc/compiled/two.nbc"]
    assert data["infer_tag"]
    assert not data["pure_python"]
    built.finalize("standard", data, "")
    assert not any(Path(file).exists() for file in data["force_include"])


def test_a_wheel_is_made_without_them_where_they_are_not_wanted_or_cannot_be_made(hook, monkeypatch):
    for version, wanted, fails in (("editable", "1", False), ("standard", "0", False), ("standard", "1", True)):
        monkeypatch.setenv("SGMCMC_READY", wanted)
        built, warnings = hook(fails)
        data = {"force_include": {}}
        built.initialize(version, data)
        assert data == {"force_include": {}}
        assert (len(warnings) == 1 and "no numba" in warnings[0]) == fails
