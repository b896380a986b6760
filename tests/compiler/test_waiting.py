"""Nobody waits in silence, and who wants silence has it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from sgmcmc.compiler import waiting


def work(seconds, compiled=True, progress=True):
    with waiting.speaking(progress), waiting.said():
        if compiled:
            waiting.compiles("outer")
            with waiting.said():  # a kernel that the outer one needs
                waiting.compiles("inner")
        time.sleep(seconds)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ["sgmcmc compiles outer, once for these types …", "sgmcmc compiled outer in"]),
        ({"progress": False}, []),
        ({"compiled": False}, []),  # it was found on disk
    ],
)
def test_what_is_compiled_is_said_unless_there_is_no_progress(capsys, monkeypatch, options, words):
    monkeypatch.setattr(waiting, "MOMENT", 0.01)
    work(0.05, **options)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(words)
    assert all(line.startswith(word) for line, word in zip(lines, words, strict=True))


def test_a_moment_is_not_worth_a_word_and_no_thread_is_left(capsys):
    before = threading.active_count()
    work(0.0)
    assert capsys.readouterr().err == ""
    assert threading.active_count() == before


def test_on_a_terminal_one_line_grows_older(capsys, monkeypatch):
    monkeypatch.setattr(waiting, "MOMENT", 0.01)
    monkeypatch.setattr(waiting, "BETWEEN", 0.02)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    work(0.2)
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.count("\r") > 2


def test_an_outer_function_with_progress_speaks_for_those_it_calls_without(capsys, monkeypatch):
    monkeypatch.setattr(waiting, "MOMENT", 0.01)

    with waiting.speaking():
        work(0.05, progress=False)
    assert "compiles outer" in capsys.readouterr().err
    with waiting.speaking(False):
        work(0.05, progress=False)
    assert capsys.readouterr().err == ""


SCRIPT = """
import sys, numpy as np, sgmcmc as sg
options = {"warmup": 0, "chains": 1, "seed": 1, "progress": sys.argv[1] == "True", "warn": False}
sg.sample(sg.models.Gaussian(np.zeros(2), 1.0), sg.SGLD(0.1), 20, **options)
"""


def test_a_first_run_says_that_it_compiles_and_a_second_one_does_not(tmp_path):
    def told(progress):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, "-c", SCRIPT, str(progress)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr

    assert "sgmcmc compiles run_lanes" in told(True)
    assert "compile" not in told(True)


def test_a_first_run_without_progress_is_silent(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", SCRIPT, "False"]
    assert subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr == ""
