"""The command line: help, exit codes, what `info` tells and what `demo` writes."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.cli import demo, info
from sgmcmc.cli import main as cli
from sgmcmc.compiler import store
from sgmcmc.trace import Trace

COMMANDS = ["info", "demo", "compile", "compare", "reproduce", "validate", "bench"]


def exit_code(arguments):
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    return caught.value.code


def test_help_lists_every_command(capsys):
    assert exit_code(["--help"]) == 0
    text = capsys.readouterr().out
    assert list(cli._COMMANDS) == COMMANDS
    assert all(command in text for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help(command, capsys):
    assert exit_code([command, "--help"]) == 0
    assert f"usage: sgmcmc {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["dance"], "invalid choice: 'dance'"),
        (["info", "--fast"], "unrecognized arguments: --fast"),
        (["demo", "--draws", "99"], "'99' is not allowed; give a whole number of at least 100"),
        (["demo", "--draws", "many"], "'many' is not allowed; give a whole number"),
        (["demo", "--chains", "0"], "'0' is not allowed; give a whole number of at least 1"),
        (["demo", "--noise", "nan"], "'nan' is not allowed; give a number of at least 0"),
        (["demo", "--noise", "inf"], "'inf' is not allowed; give a number of at least 0"),
        (["demo", "--temperature", "0"], "'0' is not allowed; give a number of at least 0.1"),
    ],
)
def test_wrong_arguments_exit_with_2_and_a_reason(arguments, message, capsys):
    assert exit_code(arguments) == 2
    assert message in capsys.readouterr().err


def test_version_is_that_of_the_package(capsys):
    from importlib.metadata import version

    assert exit_code(["--version"]) == 0
    assert capsys.readouterr().out == f"sgmcmc {version('sgmcmc')}\n"


def test_python_dash_m_is_the_same_command():
    done = subprocess.run([sys.executable, "-m", "sgmcmc", "info"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("sgmcmc ")
    wrong = subprocess.run([sys.executable, "-m", "sgmcmc", "dance"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2


def test_info_tells_what_a_bug_report_needs(capsys):
    assert cli.main(["info"]) == 0
    facts = dict(
        line.split(maxsplit=1) for line in capsys.readouterr().out.replace("kernel cache", "cache").splitlines()
    )
    assert {"sgmcmc", "numba", "llvmlite", "numpy", "scipy", "python", "platform", "cpu", "cores", "simd"} <= set(facts)
    assert facts["numpy"] == np.__version__
    assert facts["cuda"].startswith(("ready", "simulator", "no driver", "no device", "broken install", "not installed"))
    assert facts["jit"].startswith(("on", "off"))


def test_info_survives_a_machine_that_hides_its_name_and_its_disk(monkeypatch):
    class Hidden:
        def __init__(self, path):
            raise FileNotFoundError(path)

    def nobody():
        raise RuntimeError("could not determine home directory")

    monkeypatch.setattr(store.Path, "home", nobody)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(info, "Path", Hidden)
    monkeypatch.setattr(info.platform, "processor", lambda: "")
    facts = dict(info._facts())
    assert facts["kernel cache"].startswith("none")
    assert info.platform.machine() in facts["cpu"]


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "sgmcmc: interrupted\n"),
        (ValueError("no such thing"), 1, "sgmcmc: no such thing\n"),
        (OSError("disk full"), 1, "sgmcmc: disk full\n"),
    ],
)
def test_a_failure_is_one_sentence_and_an_exit_code(monkeypatch, capsys, error, code, message):
    def fail(_):
        raise error

    monkeypatch.setitem(cli._COMMANDS, "info", (lambda parser: fail, "fail"))
    assert cli.main(["info"]) == code
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("out", ["nowhere/demo.png", "demo.txt", "demo"])
def test_demo_checks_where_it_writes_before_it_samples(tmp_path, monkeypatch, capsys, out):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sg, "sample", None)
    assert cli.main(["demo", "--out", out]) == 1
    assert "cannot be written; give a .png, .pdf or .svg in a directory that exists" in capsys.readouterr().err


def test_demo_writes_a_table_and_a_picture(tmp_path, capsys):
    out = tmp_path / "demo.png"
    assert cli.main(["demo", "--out", str(out), "--draws", "200", "--chains", "5", "--seed", "3"]) == 0
    text = capsys.readouterr()
    names = [line.split()[0] for line in text.out.splitlines()[1:7]]
    assert names == ["exact", "SGLD", "SGHMC", "SGNHT", "SGMGT", "SGMGT-D"]
    assert text.out.splitlines()[1].split()[1:5] == ["0.015", "1.157", "0.559", "2.000"]
    assert text.err.startswith(demo._FIRST_RUN)
    assert out.read_bytes().startswith(b"\x89PNG")


def test_a_quiet_demo_is_quiet_and_the_same_seed_gives_the_same_numbers(tmp_path, capsys):
    tables = []
    for _ in range(2):
        assert cli.main(["demo", "--out", str(tmp_path / "x.svg"), "--draws", "100", "--chains", "2", "--quiet"]) == 0
        text = capsys.readouterr()
        assert text.err == ""
        tables.append([line.split()[:-1] for line in text.out.splitlines()[1:7]])
    assert tables[0] == tables[1]


def test_chains_of_the_demo_start_in_different_wells(monkeypatch):
    given = {}
    monkeypatch.setattr(sg, "sample", lambda *_, **options: given.update(options))
    demo._demo_trace(sg.models.FiveWell(), None, cli._parser().parse_args(["demo", "--chains", "7"]))
    wells = list(sg.models.FiveWell().WELLS[:5])
    assert given["init"].ravel().tolist() == wells + wells[:2]


def test_the_demo_says_when_nothing_follows():
    assert "the chains have not met" in demo._demo_moral(10.0, 1.3)
    assert "the chains have not met" in demo._demo_moral(10.0, float("nan"))
    assert "heats SGHMC" in demo._demo_moral(10.0, 1.01)
    assert "exact gradients" in demo._demo_moral(0.0, 1.01)


def test_the_table_of_the_demo_says_what_the_draws_say():
    draws = np.random.default_rng(1).normal(size=(2, 500, 1))
    trace = Trace(draws, {"steps_per_second": 1.25e6}, np.array([1.5, 2.0]), np.ones(2), {})
    row = demo._demo_table({"X": trace}, demo._exact(sg.models.FiveWell(), 1.0)).loc["X"]
    assert row["E θ"].startswith(f"{draws.mean():.3f} ± ")
    assert row["sd θ"] == f"{draws.std():.3f}"
    assert row["P(θ < 0)"].startswith(f"{(draws < 0).mean():.3f} ± ")
    assert row["E pK'"] == "1.750"
    assert row["steps/s"] == "1.25e+06"


def test_the_exact_law_of_the_demo_is_that_of_the_model():
    model = sg.models.FiveWell()
    exact = demo._exact(model, 1.0)
    assert exact.masses == pytest.approx(model.MASSES, abs=1e-5)
    assert exact.mean == pytest.approx(model.MEAN, abs=1e-8)
    assert exact.sd**2 + exact.mean**2 == pytest.approx(model.SECOND_MOMENT, abs=1e-8)
    assert exact.below_zero == pytest.approx(model.BELOW_ZERO, abs=2e-5)
    assert exact.density[2000] == pytest.approx(np.exp(-model.energy([0.0])) / model.Z, rel=1e-8)


def test_heat_moves_mass_from_the_deep_wells_to_the_shallow_ones():
    cold, hot = (demo._exact(sg.models.FiveWell(), T).masses for T in (1.0, 2.0))
    assert (hot[[2, 3]] < cold[[2, 3]]).all()
    assert (hot[[0, 1, 4, 5]] > cold[[0, 1, 4, 5]]).all()
    assert hot.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"NUMBA_DISABLE_JIT": "1"}, "NUMBA_DISABLE_JIT is set"),
        ({"NUMBA_CACHE_DIR": "{file}"}, "file"),
    ],
)
def test_compile_says_in_a_line_why_nothing_would_be_kept(tmp_path, settings, words):
    (tmp_path / "file").write_text("")
    settings = {name: value.format(file=tmp_path / "file") for name, value in settings.items()}
    command = [sys.executable, "-m", "sgmcmc", "compile", "SGLD"]
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert words in done.stderr


def test_compile_keeps_kernels_and_parts_and_removes_them_again(tmp_path):
    def said(*arguments):
        command = [sys.executable, "-m", "sgmcmc", "compile", *arguments]
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert said("SGLD", "--quiet").startswith("4 samplers compiled, kept in")
    kept = [path.name for path in tmp_path.rglob("*.nbc")]
    assert any(name.startswith("part") for name in kept)
    assert any(name.startswith("run_chunk") for name in kept)
    assert said("--remove").startswith(f"{len(kept)} files removed")
    assert list(tmp_path.rglob("*.nbc")) == []
