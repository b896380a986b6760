"""The experiments: fair tuning, right metrics, and a small run from end to end."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sgmcmc as sg
from sgmcmc import datasets
from sgmcmc.cli import main as cli
from sgmcmc.evidence.experiments import exact, harness, kept, logistic, loop, page, wells, wells_contestants


def parabola(contestant, setting, stage):
    return (np.log(setting["step_size"]) - np.log(0.02)) ** 2 if contestant.name == "good" else np.inf


def nothing(**setting):
    return setting


def test_everybody_is_tuned_on_the_same_points_and_the_best_wins():
    good = harness.Contestant("good", nothing, {"step_size": (1e-3, 1.0)})
    bad = harness.Contestant("bad", nothing, {"step_size": (1e-3, 1.0)})
    winners, tried = harness.tune([good, bad], parabola, budget=16, seed=3, progress=False)
    assert winners[0].setting["step_size"] == pytest.approx(0.02, rel=0.5)
    assert winners[1].score == np.inf  # a sampler that diverges everywhere still has its row
    for name in ("good", "bad"):
        own = tried[tried["sampler"] == name]
        assert len(own[own["stage"] == 0]) == 16
        assert all(len(own[own["stage"] == stage]) == 4 for stage in (1, 2, 3, 4))
        assert len(own[own["stage"] == 5]) == 5
    first = tried[(tried["sampler"] == "good") & (tried["stage"] == 0)]["setting"].tolist()
    assert first == tried[(tried["sampler"] == "bad") & (tried["stage"] == 0)]["setting"].tolist()


def test_a_sampler_tries_what_was_best_for_those_it_contains():
    one = harness.Contestant("good", nothing, {"step_size": (1e-3, 1e-2)})
    two = harness.Contestant("good", nothing, {"step_size": (1e-3, 1.0)})

    def inherited(contestant, best):
        return [{"step_size": 0.02}] if contestant is two else []

    winners, tried = harness.tune([one, two], parabola, budget=4, seed=3, progress=False, heirs=inherited)
    assert winners[0].setting["step_size"] <= 0.01
    assert winners[1].setting == {"step_size": 0.02}
    assert (tried["stage"] == 5).sum() == 4  # as many for everybody


def threads():
    import os

    return os.environ.get("OPENBLAS_NUM_THREADS")


def test_processes_have_one_thread_each_and_the_environment_is_put_back(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert list(harness.run_tasks(threads, [(), ()], "", progress=False)) == ["1", "1"]
    assert threads() is None


def leaving_a_mark(folder, number):
    (folder / f"{number}-{len(list(folder.iterdir()))}").touch()
    return number * 10


def test_what_was_stopped_goes_on(tmp_path, monkeypatch):
    marks, keep = tmp_path / "marks", tmp_path / "kept"
    marks.mkdir()

    def run(*numbers):
        tasks = [(marks, n) for n in numbers]
        return list(harness.run_tasks(leaving_a_mark, tasks, "", progress=False, keep=keep))

    assert run(1) == [10]
    assert run(2, 1) == [20, 10]  # in the order of the tasks, and only one of them is new
    assert sorted(p.name[0] for p in marks.iterdir()) == ["1", "2"]
    monkeypatch.setattr(harness, "_sources", lambda: b"another version")
    assert run(1) == [10]
    assert len(list(marks.iterdir())) == 3  # results of other sources do not count


def test_a_kept_result_comes_back_as_it_was_and_its_name_does_not_depend_on_who_shares_what(tmp_path):
    value = {"a": np.arange(6.0).reshape(2, 3), "b": [1, (2.5, None, "x")], (1, "k"): {"n": np.float32(2)}, "c": True}
    kept.save(tmp_path / "one.npz", value)
    back = kept.load(tmp_path / "one.npz")
    np.testing.assert_array_equal(back.pop("a"), value.pop("a"))
    assert back == value
    assert type(back["b"][1]) is tuple
    text = "".join(["step", "_size"])  # equal, but not the same
    shared, apart = ({"step_size": 1.0}, "step_size"), ({text: 1.0}, "step_size")
    assert pickle.dumps(shared) != pickle.dumps(apart)
    assert kept.digest(shared) == kept.digest(apart)
    samplers = [sg.SGNHT(0.1), sg.SGNHT(0.1), sg.SGNHT(0.2)]
    assert kept.digest(samplers[0]) == kept.digest(samplers[1]) != kept.digest(samplers[2])
    with pytest.raises(TypeError, match="a result holds a set"):
        kept.save(tmp_path / "two.npz", {1, 2})
    (tmp_path / "three.npz").write_bytes(pickle.dumps(value))
    with pytest.raises(ValueError, match="not a complete result"):
        kept.load(tmp_path / "three.npz")


def test_the_distance_to_the_wells_is_zero_for_exact_draws_and_large_for_a_stuck_chain():
    from sgmcmc.testing.targets import FIVE_WELLS

    truth = FIVE_WELLS.law().quantile((np.arange(20_000) + 0.5) / 20_000)[None]
    assert wells.wells_variation(wells.occupancies(truth))[0] < 1e-3
    assert wells.total_variation(wells.bin_shares(truth))[0] < 1e-3
    assert wells.wasserstein(truth)[0] < 1e-3
    stuck = np.full((1, 100), -0.2)
    assert wells.wells_variation(wells.occupancies(stuck))[0] == pytest.approx(1.0 - 0.45095278, abs=1e-6)
    assert wells.total_variation(wells.bin_shares(stuck))[0] == pytest.approx(1.0 - 1.0 / wells.BINS)
    assert wells.true_masses().sum() == pytest.approx(1.0, abs=1e-12)


def test_a_law_too_narrow_within_wells_is_far_although_its_shares_are_right():
    from sgmcmc.models import FiveWell
    from sgmcmc.testing.targets import FIVE_WELLS

    truth = FIVE_WELLS.law().quantile((np.arange(20_000) + 0.5) / 20_000)
    bottoms = np.asarray(FiveWell.WELLS)[np.searchsorted(np.asarray(FiveWell.BARRIERS), truth)]
    narrow = (bottoms + 0.4 * (truth - bottoms))[None]
    assert wells.wells_variation(wells.occupancies(narrow))[0] < 0.01
    assert wells.total_variation(wells.bin_shares(narrow))[0] > 0.3


def test_the_thermal_mass_is_that_of_gaussian_momenta_and_goes_with_them_where_softening_is_strong():
    from sgmcmc.kinetics import Gaussian, MonomialGamma

    assert wells_contestants.thermal_mass(Gaussian(4.0)) == pytest.approx(4.0, rel=1e-4)
    assert wells_contestants.thermal_mass(MonomialGamma(1.0, 0.02)) == pytest.approx(
        100.0, rel=0.03
    )  # K'' is c/2 at the tip
    assert (
        wells_contestants.thermal_mass(MonomialGamma(1.0, 3.0)) > 1.5 * 2.0 / 3.0
    )  # not the tip alone: most momenta are in the tails


def test_auroc_is_the_probability_of_the_right_order():
    assert logistic.auroc([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]) == 1.0
    assert logistic.auroc([0.1, 0.9, 0.2, 0.8], [0, 1, 1, 0]) == 0.75
    assert logistic.auroc([0.5, 0.5], [0, 1]) == 0.5


def test_the_exact_posterior_agrees_with_quadrature():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 1))
    y = (rng.random(30) < 0.6).astype(float)
    found = exact.logistic_posterior(X, y, 10.0, draws=2000, chains=8, seed=1)
    grid = np.linspace(-6.0, 6.0, 4001)
    z = np.outer(grid, X[:, 0])
    log_density = -(np.logaddexp(0.0, z) - y * z).sum(axis=1) - 0.5 * (grid / 10.0) ** 2
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    mean = (weight * grid).sum()
    sd = np.sqrt((weight * (grid - mean) ** 2).sum())
    assert abs(found.mean[0] - mean) < 4.0 * sd / np.sqrt(8000)
    assert found.sd[0] == pytest.approx(sd, rel=0.04)
    assert 0.6 < found.acceptance <= 1.0


def test_the_loop_takes_unbiased_minibatches_and_notices_divergence():
    import sgmcmc as sg

    rng = np.random.default_rng(1)
    data = rng.normal(size=200) + 3.0
    model = sg.Potential(lambda theta, data, rows: np.array([(theta[0] - data[rows]).sum()]), dim=1, data=data)
    seen = []
    assert loop.run_chain(model, sg.SGLD(1e-4), np.zeros(1), 4000, 20, 1, 10, lambda t, theta: seen.append(theta[0]))
    assert np.mean(seen[100:]) == pytest.approx(data.mean(), abs=0.1)
    with np.errstate(all="ignore"):
        assert not loop.run_chain(model, sg.SGLD(10.0), np.zeros(1), 4000, 20, 1, 100, lambda t, theta: None)


@pytest.mark.parametrize("kind", ["SGD", "RMSprop"])
def test_optimisers_go_downhill(kind):
    class Bowl:
        n_rows = 10

        def estimate(self, theta, rows, weight, out):
            out[:] = 10.0 * theta

    path = []
    loop.run_chain(
        Bowl(), loop.Optimiser(kind, 0.05, 10), np.ones(3), 400, 2, 0, 1, lambda t, x: path.append(abs(x).max())
    )
    assert path[-1] < 0.1 * path[0]


def test_wells_run_from_end_to_end(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        wells, "contestants", lambda: [c for c in CONTESTANTS if c.name in ("SGLD", "SGHMC", "SGMGT-D, a = 1")]
    )
    found = wells.run(True, tmp_path, seed=1, progress=False)
    assert {"wells.csv", "wells.md", "wells.png", "wells-limit.csv", "wells-tuning.csv"} <= {
        p.name for p in tmp_path.iterdir()
    }
    assert len(found["table"]) == 3
    assert pd.read_csv(tmp_path / "wells-tuning.csv")["sampler"].nunique() == 3


CONTESTANTS = wells_contestants.contestants()


def test_the_page_holds_all_sections_with_links_that_lead_somewhere(tmp_path):
    out, seen = (
        tmp_path / "runs",
        {"table": pd.DataFrame({"sampler": ["SGLD"], "TV": [0.123456], "setting": [{"h": 0.1}]})},
    )
    table = page.write_table(seen["table"], out, "drbm")
    assert "| SGLD | 0.1235 | h 0.1 |" in table
    for name in ("drbm", "wells"):
        (out / f"{name}.png").write_bytes(b"picture")
        page.write_section(
            out, name, f"Title of {name}", "Setting.", [table], [out / f"{name}.png"], ["it works"], True, 1.0, 0
        )
    written = page.write_page(out, tmp_path / "docs" / "experiments.md")
    text = written.read_text(encoding="utf-8")
    assert text.index("Title of wells") < text.index("Title of drbm")  # the order of the paper, not of the runs
    assert "A quick run" in text
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) == 2
    assert all((written.parent / link).exists() for link in links)


def test_a_hot_chain_is_farther_from_the_posterior_than_a_right_one():
    rng = np.random.default_rng(0)
    posterior = exact.Posterior(np.zeros((0, 3)), np.zeros(3), np.ones(3), 1.0)
    right = logistic.distance(rng.normal(size=(4000, 3)), posterior)
    assert right < 0.1
    assert logistic.distance(2.0 * rng.normal(size=(4000, 3)), posterior) > 0.6
    assert logistic.distance(rng.normal(size=(4000, 3)) + 1.0, posterior) > 0.9


def test_the_published_best_stands_above_the_rows_of_its_data_set():
    table = pd.DataFrame(
        {"data": ["R", "R", "A"], "sampler": ["exact posterior", "SGLD", "SGLD"], "AUROC": [0.9, 0.8, 0.7]}
    )
    found = logistic._with_published(table)
    assert list(found["AUROC"]) == [0.98, 0.9, 0.8, 0.95, 0.7]
    assert list(found["data"]) == ["R", "R", "R", "A", "A"]


@pytest.mark.skipif(datasets.data_folder() is None, reason="SGMCMC_DATA is not set: no data for the experiment")
@pytest.mark.parametrize("name", ["logistic"])
def test_a_quick_experiment_writes_its_tables_and_pictures(name, tmp_path, capsys):
    assert cli.main(["reproduce", name, "--quick", "--quiet", "--out", str(tmp_path)]) == 0
    assert (tmp_path / f"{name}.md").read_text(encoding="utf-8").count("\n") > 5
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_missing_data_is_one_sentence(tmp_path, monkeypatch, capsys):
    assert (
        cli.main(["reproduce", "logistic", "--quick", "--quiet", "--data", str(tmp_path), "--out", str(tmp_path)]) == 1
    )
    assert "is not there; get australian from" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="processes know of their parent's end on POSIX only")
def test_a_killed_experiment_takes_its_workers_with_it(tmp_path):
    """Each worker writes its number and would sleep for a minute; the negative control is that it is there before the kill."""
    script = tmp_path / "killed.py"
    script.write_text(
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "def job(folder, k):\n"
        "    (Path(folder) / f'worker{k}').write_text(str(os.getpid()))\n"
        "    time.sleep(60)\n"
        "if __name__ == '__main__':\n"
        "    from sgmcmc.evidence.experiments.harness import run_tasks\n"
        "    list(run_tasks(job, [(sys.argv[1], 0)], 'jobs', False))\n"
    )
    parent = subprocess.Popen([sys.executable, str(script), str(tmp_path)])
    found = tmp_path / "worker0"
    _wait(lambda: found.exists() and found.read_text() != "")
    worker = int(found.read_text())
    assert _is_alive(worker)
    parent.kill()
    parent.wait()
    _wait(lambda: not _is_alive(worker), 15.0)


def _wait(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def _is_alive(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return False
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
        return True
    return state != "Z"
