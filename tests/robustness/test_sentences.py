"""What users hand in by mistake: one sentence that names the argument, what came and what is accepted."""

from __future__ import annotations

import re

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.cli import main as cli

MODEL = sg.models.Gaussian(np.zeros(2), 1.0)
ARRAY = np.arange(3000.0).reshape(1000, 3)
SHOWN = r"=an array of shape \(1000, 3\) and dtype float64"


@pytest.fixture(scope="module")
def trace():
    return sg.sample(MODEL, sg.SGNHT(0.1), 20, warmup=0, chains=2, seed=1, progress=False, warn=False)


CASES = {
    "trace[array]": (lambda t: t[ARRAY], TypeError, f"name{SHOWN} is not a text; give"),
    "consensus(array)": (lambda t: sg.consensus(ARRAY), TypeError, f"traces{SHOWN} is not a list of traces; give"),
    "consensus(trace)": (lambda t: sg.consensus(t), TypeError, "traces=a Trace is not a list of traces; give"),
    "consensus(1)": (lambda t: sg.consensus(1), TypeError, "traces=1 is not a list of traces; give"),
    "names=array": (
        lambda t: sg.Trace(t.draws, {}, [1, 1], [1, 1], {}, names=ARRAY),
        TypeError,
        f"names{SHOWN} are not names; give",
    ),
    "names=array of a model": (
        lambda t: sg.models.LogisticRegression(np.eye(2), [0, 1], names=ARRAY),
        ValueError,
        f"names{SHOWN} does not name the columns of X; give",
    ),
    "parameters=array": (
        lambda t: sg.Potential(lambda x: x, parameters=ARRAY),
        TypeError,
        f"parameters{SHOWN} is not a declaration; give",
    ),
    "compare(array)": (lambda t: sg.compare(ARRAY, MODEL), TypeError, f"samplers{SHOWN} is not a dictionary"),
    "compare({name: array})": (
        lambda t: sg.compare({"a": ARRAY}, MODEL),
        TypeError,
        rf"samplers\['a'\]{SHOWN} is not a Sampler",
    ),
    "metrics=array": (
        lambda t: sg.compare({"a": sg.SGLD(0.1)}, MODEL, metrics=ARRAY),
        TypeError,
        f"metrics{SHOWN} is not a list; give",
    ),
    "save(1.0)": (lambda t: t.save(1.0), TypeError, r"path=1\.0 is not a path; give a text or"),
    "load(array)": (lambda t: sg.Trace.load(ARRAY), TypeError, f"path{SHOWN} is not a path; give"),
    "Chunks('missing')": (lambda t: sg.Chunks("missing"), ValueError, "parts='missing' is not a list of chunks; give"),
    "Chunks(array)": (lambda t: sg.Chunks(ARRAY), ValueError, f"parts{SHOWN} is not a list of chunks; give"),
    "Chunks(None)": (lambda t: sg.Chunks(None), ValueError, "parts=None is not a list of chunks; give"),
    "Chunks(['missing'])": (
        lambda t: sg.Chunks(["missing"]),
        FileNotFoundError,
        r"parts\[0\]='missing' cannot be read: No such file or directory; give \.npy files",
    ),
    "Chunks([text])": (lambda t: sg.Chunks([__file__]), ValueError, r"parts\[0\]=.* cannot be read: it is no \.npy"),
    "Chunks([3])": (lambda t: sg.Chunks([3]), TypeError, r"parts\[0\]=3 is no chunk; give"),
    "chunks[array]": (lambda t: sg.Chunks([ARRAY])[ARRAY], IndexError, f"rows{SHOWN} are no rows of chunks; give"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_told_in_one_sentence(case, trace):
    call, kind, said = CASES[case]
    with pytest.raises(kind, match=said) as caught:
        call(trace)
    assert "\n" not in str(caught.value)


def test_a_data_frame_of_samplers_is_told_in_one_sentence():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match="samplers=a DataFrame is not a dictionary of samplers; give"):
        sg.compare(pandas.DataFrame(ARRAY), MODEL)


# ---- runs without draws --------------------------------------------------------------------------------------------------


def test_a_report_on_a_run_without_draws_says_that_there_are_none():
    def progress(steps):
        raise KeyboardInterrupt

    options = {"warmup": 10**8, "chains": 2, "seed": 1, "warn": False}
    trace = sg.sample(MODEL, sg.SGNHT(0.1), 20, progress=progress, **options)
    assert trace.n_draws == 0
    for report in (
        trace.bias_report(),
        trace.bias_report(functions=lambda theta: theta[0]),
        trace.bias_report(halving=True),
    ):
        assert [f.quantity for f in report.problems] == ["draws"]
        assert "no draws to judge" in str(report)
    whole = sg.sample(MODEL, sg.SGNHT(0.1), 20, warmup=0, chains=2, seed=1, progress=False, warn=False)
    assert "no draws to judge" not in str(whole.bias_report())  # the control


# ---- sgmcmc compare --quick ----------------------------------------------------------------------------------------------

TOML = '[model]\nname = "FiveWell"\n[samplers.SGLD]\nstep_size = 0.005\n'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('seeds = "many"', "seeds='many' is not a whole number"),
        ("seeds = []", r"seeds=\[\] must be different numbers"),
        ("seeds = [1, 1]", r"seeds=\[1, 1\] must be different numbers"),
        ("seeds = [1, -2]", "seeds=-2 is out of range"),
        ("seeds = 0", "seeds=0 is out of range"),
        ('chains = "four"', "chains='four' is not a whole number"),
    ],
)
@pytest.mark.parametrize("quick", [[], ["--quick"]])
def test_a_quick_comparison_refuses_what_a_whole_one_refuses(line, said, quick, tmp_path, capsys):
    path = tmp_path / "compare.toml"
    path.write_text(f"{line}\n{TOML}")
    assert cli.main(["compare", str(path), "--quiet", "--out", str(tmp_path / "out"), *quick]) == 1
    told = capsys.readouterr().err
    assert len(told.strip().splitlines()) == 1
    assert re.search(said, told)
