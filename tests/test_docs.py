"""The site of the docs: it builds strictly, says nothing that needs the network, and opens with a picture of a real run."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
NEEDED = ("mkdocs", "material", "mkdocstrings")

needs_mkdocs = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason='the site needs mkdocs-material and mkdocstrings; pip install "sgmcmc[docs]"',
)


def build(where: Path, config: Path = ROOT / "mkdocs.yml") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config), "-d", str(where)],
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    where = tmp_path_factory.mktemp("site")
    done = build(where)
    assert done.returncode == 0, done.stderr
    return where


@needs_mkdocs
def test_every_page_is_built_and_the_reference_is_not_empty(site):
    for page in DOCS.rglob("*.md"):
        assert (site / page.relative_to(DOCS).with_suffix(".html")).exists(), page
    shown = "".join(page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html"))
    import sgmcmc

    modules = {
        "datasets",
        "estimators",
        "integrators",
        "kinetics",
        "minibatch",
        "models",
        "priors",
        "schedules",
        "testing",
        "thermostats",
    }
    lazy = {
        "compare": "comparison.compare",
        "tune": "tuning.tune",
    }  # loaded when it is asked for; documented where it is
    missing = [n for n in sgmcmc.__all__ if n not in modules and f'id="sgmcmc.{lazy.get(n, n)}"' not in shown]
    assert missing == []
    methods = ("summary", "bias_report", "plot_trace", "load")  # of the class itself, and of what is mixed into it
    assert [name for name in methods if f'id="sgmcmc.Trace.{name}"' not in shown] == []


@needs_mkdocs
def test_no_page_loads_anything_from_elsewhere(site):
    loads = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=["'](?:https?:)?//([^"']+)""")
    for page in site.rglob("*.html"):
        assert loads.findall(page.read_text(encoding="utf-8")) == [], page
    assert loads.findall('<link rel="stylesheet" href="https://fonts.example/css">') == ["fonts.example/css"]


@needs_mkdocs
def test_a_broken_link_fails_the_build(tmp_path):
    config = tmp_path / "mkdocs.yml"
    config.write_text("site_name: broken\nplugins: []\ntheme: {name: material, font: false}\n", encoding="utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("[nowhere](nowhere.md)\n", encoding="utf-8")
    assert build(tmp_path / "site", config).returncode != 0


def test_the_site_lists_every_page():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r": ([\w/-]+\.md)$", text, re.MULTILINE))
    assert listed == {str(page.relative_to(DOCS).as_posix()) for page in DOCS.rglob("*.md")}


def test_pages_link_within_the_docs_so_that_they_work_on_the_site_and_in_the_repository():
    for page in DOCS.rglob("*.md"):
        targets = re.findall(r"\]\(([^)\s#]+)", page.read_text(encoding="utf-8"))
        local = [t for t in targets if not t.startswith(("http://", "https://"))]
        for target in local:
            there = (page.parent / target).resolve()
            assert there.is_relative_to(DOCS), (page, target)
            assert there.exists(), (page, target)


def test_the_opening_picture_is_drawn_by_its_script(tmp_path):
    picture = tmp_path / "opening.png"
    script = [sys.executable, "-W", "error", str(DOCS / "pictures.py"), str(picture), "--draws", "200"]
    subprocess.run(script, check=True, capture_output=True)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert (DOCS / "pictures" / "opening.png").exists()
    assert "pictures/opening.png" in (DOCS / "index.md").read_text(encoding="utf-8")


@pytest.mark.skipif(importlib.util.find_spec("griffe") is None, reason='needs griffe; pip install "sgmcmc[docs]"')
def test_parameters_that_share_an_entry_of_a_docstring_get_one_each():
    spec = importlib.util.spec_from_file_location("docstrings", DOCS / "docstrings.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = "It is a, b : c.\n\nParameters\n----------\na, b : float\n    One,\n    more.\nc : int\n"
    parted = text.replace(
        "a, b : float\n    One,\n    more.", "a : float\n    One,\n    more.\nb : float\n    One,\n    more."
    )
    assert module.one_by_one(text) == parted


@needs_mkdocs
def test_a_parameter_is_shown_with_its_own_default(site):
    def defaults(page: str, name: str) -> dict[str, str]:
        text = (site / "api" / f"{page}.html").read_text(encoding="utf-8").partition(f'id="{name}"')[2]
        table = re.findall(r"<tr class=\"doc-section-item\".*?</tr>", text.partition("</table>")[0], re.DOTALL)
        return {words[0]: words[-1] for words in (re.sub(r"<[^>]+>", " ", row).split() for row in table)}

    shown = defaults("samplers", "sgmcmc.SGMGTD")
    assert [shown[name] for name in ("step_size", "sigma_theta", "sigma_p", "scale")] == [
        "required",
        "0.1",
        "1.0",
        "1.0",
    ]
    assert defaults("parts", "sgmcmc.kinetics.MonomialGamma")["softening"] == "None"  # made by __new__
    assert defaults("sampling", "sgmcmc.tuning.OfEdge") == {"low": "0.02", "high": "0.7"}  # made of its fields


def test_the_page_of_the_architecture_has_the_folders_and_files_of_the_package():
    command = [sys.executable, str(DOCS / "architecture.py"), "--check"]
    assert subprocess.run(command, check=False).returncode == 0, "run python docs/architecture.py"
