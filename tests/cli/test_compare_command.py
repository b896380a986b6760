"""`sgmcmc compare`: a file that describes a comparison, what is written, and one sentence for what makes no sense."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sgmcmc as sg
from sgmcmc.cli import main as cli
from sgmcmc.comparison.config import EXAMPLE, read_config

FILE = """
budget = 4000
seeds = 2
reference = "exact"
out = "found"
[model]
name = "Gaussian"
mean = [0.0, 1.0]
cov = 2.0
[samplers.SGLD]
step_size = 0.2
[samplers.wild]
sampler = "SGLD"
step_size = 90.0
"""


def written(folder: Path, text: str = FILE) -> Path:
    path = folder / "compare.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_comparison_writes_tables_a_page_and_a_picture(tmp_path, capsys):
    assert cli.main(["compare", str(written(tmp_path)), "--quiet", "--jobs", "1"]) == 0
    found = pd.read_csv(tmp_path / "found" / "comparison.csv")
    assert found["sampler"].tolist() == ["SGLD", "SGLD", "wild", "wild"]
    assert found["status"][2].startswith("diverged in step")
    config = read_config(tmp_path / "compare.toml")
    expected = sg.compare(config.samplers, config.model, 4000, seeds=2, reference="exact", progress=False)
    for column in ("gradients", "ess_bulk", "ksd", "error_mean"):
        assert found[column].to_numpy() == pytest.approx(expected[column].to_numpy(), rel=1e-12, nan_ok=True)
    page = (tmp_path / "found" / "comparison.md").read_text(encoding="utf-8")
    assert "## Medians over seeds" in page
    assert "each run spends 4,000 gradient evaluations on 4 chains" in page
    assert 'name = "Gaussian"' in page
    assert "diverged in step" in page
    assert (tmp_path / "found" / "comparison.png").read_bytes().startswith(b"\x89PNG")
    assert len(pd.read_csv(tmp_path / "found" / "history.csv")) > 20
    text = capsys.readouterr()
    assert text.err == ""
    assert "diverged" in text.out


def test_a_quick_comparison_is_a_small_one_and_says_so(tmp_path, capsys):
    out = tmp_path / "elsewhere"
    path = written(tmp_path, FILE.replace("4000", "40_000"))
    assert cli.main(["compare", str(path), "--quick", "--out", str(out), "--quiet"]) == 0
    found = pd.read_csv(out / "comparison.csv")
    assert found["seed"].tolist() == [0, 0]
    assert found["gradients"][0] == 2000
    assert "its figures mean little" in (out / "comparison.md").read_text(encoding="utf-8")
    assert not (tmp_path / "found").exists()


def test_the_example_is_the_one_in_the_folder_of_examples_and_can_be_read(capsys):
    assert cli.main(["compare", "--example"]) == 0
    assert capsys.readouterr().out == EXAMPLE
    path = Path(__file__).parents[2] / "examples" / "compare.toml"
    assert path.read_text(encoding="utf-8") == EXAMPLE
    config = read_config(path)
    assert list(config.samplers) == ["SGLD", "SGHMC", "SGNHT", "SGMGT, a = 1", "SGMGT-D, a = 1"]
    assert config.samplers["SGMGT-D, a = 1"] == sg.SGMGTD(0.05, a=1.0, temperature=2.0)


def test_without_a_file_the_exit_code_is_2_and_the_help_teaches(capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["compare"])
    assert caught.value.code == 2
    assert "give a FILE.toml, or --example for one to start from" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["compare", "--help"])
    text = capsys.readouterr().out
    for lesson in ("how to begin", "--example > compare.toml", "comparison.csv", "exit codes", "[samplers.NAME]"):
        assert lesson in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("budget = 4000", "budget = "), "is not a TOML file"),
        (("budget = 4000", "buget = 4000"), "has the unknown key 'buget'; there are budget, seeds"),
        (("budget = 4000", "budget = 4000.5"), "budget=4000.5 could be either"),
        (('name = "Gaussian"', 'name = "Gauss"'), "[model] has name = 'Gauss'; choose one of FiveWell, Gaussian"),
        (("cov = 2.0", "cov = -2.0"), "[model]: cov has a variance of -2"),
        (("cov = 2.0", "covariance = 2.0"), "[model]: "),
        (
            ('sampler = "SGLD"', 'sampler = "NUTS"'),
            "[samplers.wild] is of no known sampler; add sampler = one of SGHMC",
        ),
        (("step_size = 0.2", "step = 0.2"), "[samplers.SGLD]: "),
        (("step_size = 0.2", "step_size = -1"), "[samplers.SGLD]: "),
        (('reference = "exact"', 'reference = "no.npz"'), "no.npz"),
        (('reference = "exact"', "reference = 3"), 'reference = 3; give "exact", the file of a saved trace'),
        (("[model]", "[modell]"), "has the unknown key 'modell'"),
        (('name = "Gaussian"', 'data = "no.csv"'), "no.csv"),
        (("seeds = 2", 'seeds = "two"'), "seeds='two' is not a whole number"),
        (("seeds = 2", 'metrics = "ksd"'), "metrics='ksd' is not a list"),
    ],
)
def test_a_file_that_makes_no_sense_exits_with_1_and_one_sentence(tmp_path, capsys, change, message):
    assert change[0] in FILE
    assert cli.main(["compare", str(written(tmp_path, FILE.replace(*change))), "--quiet"]) == 1
    said = capsys.readouterr().err
    assert message in said
    assert said.startswith("sgmcmc: ")
    assert len(said.strip().splitlines()) == 1


def test_no_file_no_sections_and_no_draws_exit_with_1(tmp_path, capsys):
    assert cli.main(["compare", str(tmp_path / "none.toml")]) == 1
    assert cli.main(["compare", str(written(tmp_path, "budget = 4000"))]) == 1
    assert "has no section [model]; sgmcmc compare --example prints a file" in capsys.readouterr().err
    only_wild = FILE.replace("[samplers.SGLD]\nstep_size = 0.2\n", "")
    assert cli.main(["compare", str(written(tmp_path, only_wild)), "--quiet"]) == 1
    assert "no run has draws; the column status of the table says why" in capsys.readouterr().err
    assert (tmp_path / "found" / "comparison.csv").exists()


def test_ctrl_c_writes_what_there_is_and_exits_with_130(tmp_path, monkeypatch, capsys):
    whole = sg.compare({"SGLD": sg.SGLD(0.2)}, sg.models.Gaussian([0.0]), 800, seeds=1, progress=False)
    whole.about["interrupted"] = True
    monkeypatch.setattr("sgmcmc.compare", lambda *_, **__: whole)
    assert cli.main(["compare", str(written(tmp_path)), "--quiet"]) == 130
    assert "Interrupted: these are the runs" in (tmp_path / "found" / "comparison.md").read_text(encoding="utf-8")
    assert capsys.readouterr().err == "sgmcmc: interrupted\n"


def test_a_regression_from_a_csv_file_has_the_names_of_its_columns(tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(50, 2)), columns=["age", "height"])
    rows["sick"] = (rng.random(50) < 0.5).astype(int)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    model = 'data = "rows.csv"\nresponse = "sick"\nintercept = true\nprior = { name = "Laplace", scale = 2.0 }\n'
    text = f"[model]\n{model}[samplers.SGLD]\nstep_size = 0.01\n"
    made = read_config(written(tmp_path, text)).model
    assert isinstance(made, sg.models.LogisticRegression)
    assert made.names == ("intercept", "age", "height")
    assert made.prior == sg.priors.Laplace(2.0)
    with pytest.raises(ValueError, match=r"response = 'ill'; choose a column of .*: age, height, sick"):
        read_config(written(tmp_path, text.replace("sick", "ill")))
    rows.assign(name="x").to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(ValueError, match="has the column 'name', which holds no numbers"):
        read_config(written(tmp_path, text))
