"""The page on versions is what was measured, and the lower bounds of pyproject.toml are versions that passed together."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def versions():
    spec = importlib.util.spec_from_file_location("versions", ROOT / "docs" / "versions.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def equal(one, two):
    """Whether 2.0 and 2.0.0 are the same version: zeros at the end do not count."""
    return re.sub(r"(\.0)+$", "", one) == re.sub(r"(\.0)+$", "", two)


def test_the_lower_bounds_are_the_versions_of_the_oldest_row_which_passed(versions):
    row = next(row for row in versions.kept() if row["row"] == "Python 3.11, oldest of all")
    assert versions.has_passed(row)
    assert versions.bounds().keys() == set(versions.PACKAGES) - {"llvmlite"}  # which comes with Numba
    for name, version in versions.bounds().items():
        assert equal(version, row[name]), name


def test_other_versions_are_told_apart():
    assert equal("0.61", "0.61.0")
    assert not equal("0.61", "0.61.2")
    assert not equal("0.6", "0.60")


def test_a_build_with_kernels_needs_the_versions_that_a_run_needs_and_any_other_none(versions, monkeypatch):
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    hook = module.CustomBuildHook(".", {}, None, None, "", "wheel", None)
    monkeypatch.setenv("SGMCMC_READY", "1")
    needed = dict(text.split(">=") for text in hook.dependencies())
    assert needed == {name: versions.bounds()[name] for name in ("numba", "scipy", "tqdm")}
    monkeypatch.delenv("SGMCMC_READY")
    assert hook.dependencies() == []
    assert [text.split(">=")[0] for text in PROJECT["build-system"]["requires"]] == ["hatchling"]


def test_every_python_that_is_named_has_a_row_that_passed_with_its_newest_numba(versions):
    named = set(re.findall(r"Python :: (3\.\d+)'", str(PROJECT["project"]["classifiers"])))
    newest = max(versions.order(row)[1] for row in versions.kept())
    passed = [row for row in versions.kept() if versions.has_passed(row) and versions.order(row)[1] == newest]
    assert named == {".".join(row["python"].split(".")[:2]) for row in passed}
    assert PROJECT["project"]["requires-python"] == ">=" + min(named)


def test_the_page_is_what_the_script_writes(versions):
    assert versions.PAGE.read_text(encoding="utf-8") == versions.page(versions.kept())


def test_a_row_that_failed_anywhere_has_not_passed(versions):
    row = next(row for row in versions.kept() if versions.has_passed(row))
    for change in ({"demo": "no: it fails"}, {"second process": ""}, {"failed": "1"}, {"failed": ""}, {"passed": "0"}):
        assert not versions.has_passed(row | change), change


def test_the_core_tests_are_there(versions):
    assert all((ROOT / "tests" / f"{name}.py").exists() for name in versions.CORE_TESTS)


def test_a_message_in_the_table_names_no_folder_of_a_machine(versions):
    assert versions.told("OSError: /tmp/abc/env/lib/x.py | 3/4") == "OSError: …/x.py / 3/4"
    assert "/tmp" not in versions.ROWS.read_text(encoding="utf-8") + versions.PAGE.read_text(encoding="utf-8")
