"""Runs of recurrent networks: they learn, go on where they were stopped, notice divergence, and write what they found."""

from __future__ import annotations

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc import datasets
from sgmcmc.cli import main as cli
from sgmcmc.evidence.experiments import contest, curves, harness, kept, music, page, ptb, recurrent
from sgmcmc.evidence.experiments.loop import Optimiser
from sgmcmc.evidence.experiments.recurrent import Plan, Predictive, run_epochs
from sgmcmc.models import LSTM


def scales(count, seed):
    """Sequences that run up six keys from a random one: the next frame is certain, and frequencies say little."""
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, 6, count)
    frames = np.zeros((count * 8, 6), np.uint8)
    frames[np.arange(count * 8), (starts[:, None] + np.arange(8)).ravel() % 6] = 1
    return frames, np.arange(0, count * 8 + 1, 8)


@pytest.fixture(scope="module")
def problem():
    model = LSTM(*scales(24, 0), hidden=16)
    return model, (model.on(*scales(6, 1)), model.on(*scales(6, 2)))


SAMPLERS = {
    "SGNHT": sg.SGNHT(0.02, 5.0),
    "SGMGT-D": sg.SGMGTD(
        0.03, 1.0, sigma_theta=1e-3, sigma_p=5.0, sigma_xi=0.01, resample_momentum=7, resample_thermostat=5
    ),
    "RMSprop": Optimiser("RMSprop", 0.01, 192),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_stopped_run_goes_on_with_the_same_bits(name, problem, tmp_path, monkeypatch):
    monkeypatch.setattr(recurrent, "BETWEEN", 0.0)
    model, tests = problem
    plan, file = Plan(epochs=4, batch=3, seed=5, collect=1), tmp_path / "run.npz"
    whole = run_epochs(model, tests, SAMPLERS[name], plan)
    run_epochs(model, tests, SAMPLERS[name], plan._replace(epochs=2), file)
    went_on = run_epochs(model, tests, SAMPLERS[name], plan, file)
    assert whole["curve"] == [tuple(row) for row in went_on["curve"]]
    assert whole["steps"] == went_on["steps"] == 32
    assert whole["draws"] == went_on["draws"] == 3
    again = run_epochs(model, tests, SAMPLERS[name], plan, file)  # nothing left to do
    assert again["curve"] == went_on["curve"]
    shorter = run_epochs(
        model, tests, SAMPLERS[name], plan._replace(epochs=1), file
    )  # not the longer one that is there
    assert len(shorter["curve"]) == 1
    assert kept.load(file)["epoch"] == 4
    other = run_epochs(model, tests, SAMPLERS[name], plan._replace(seed=6))
    assert other["curve"] != whole["curve"]


@pytest.mark.parametrize("name", SAMPLERS)
def test_what_was_learnt_is_far_below_the_frequencies(name, problem):
    model, tests = problem
    share = model.x.mean(axis=0)
    static = -(share * np.log(share) + (1 - share) * np.log(1 - share)).sum()
    found = run_epochs(model, tests, SAMPLERS[name], Plan(epochs=30, batch=3, seed=1, collect=10))
    assert found["test"] < 0.6 * static
    assert found["clipped"] < 0.5


def test_divergence_ends_a_run_and_is_infinite(problem):
    model, tests = problem
    with np.errstate(all="ignore"):
        found = run_epochs(model, tests, sg.SGLD(1e6), Plan(epochs=5, batch=3, seed=1, collect=0))
    assert found["valid"] == np.inf
    assert found["epochs"] == 1


def test_the_average_is_of_probabilities_not_of_losses(problem):
    model, (test, _) = problem
    draws = [model.init(k) for k in range(3)]
    average = Predictive(test)
    alone = [average.look(test, theta, True) for theta in draws]
    assert alone == [pytest.approx(test.losses(theta).mean()) for theta in draws]
    assert average.loss() == pytest.approx(-np.log(test.predict(np.stack(draws))).mean(), rel=1e-12)
    assert average.loss() < np.mean(alone)
    one = Predictive(test)
    one.look(test, draws[0], True)
    assert one.loss_of_keys(test.x) == pytest.approx(alone[0], rel=1e-5)  # of one draw keys are independent
    before = average.loss()
    average.look(test, np.full(model.dim, np.nan), True)
    assert average.loss() == before  # what is not finite does not join


def test_a_long_gradient_is_shortened_and_a_short_one_is_not():
    long, short = np.full(4, 10.0), np.full(4, 1.0)
    assert recurrent._bound(long, 5.0) == 1
    assert np.linalg.norm(long) == pytest.approx(5.0)
    assert recurrent._bound(short, 5.0) == 0
    np.testing.assert_array_equal(short, 1.0)


def test_every_row_is_taken_once_in_an_epoch(problem, monkeypatch):
    model, tests = problem
    seen = []
    right = LSTM.gradient_sum
    monkeypatch.setattr(
        LSTM, "gradient_sum", lambda self, theta, rows, out: seen.append(rows) or right(self, theta, rows, out)
    )
    run_epochs(model, tests, sg.SGLD(1e-6), Plan(epochs=2, batch=5, seed=1, collect=0))
    for half in (seen[:5], seen[5:]):
        assert sorted(np.concatenate(half)) == list(range(24))
    assert [r.tolist() for r in seen[:5]] != [r.tolist() for r in seen[5:]]


def test_everybody_takes_part_with_equal_budgets():
    names = [c.name for c in contest.contestants(13_807)]
    expected = ["SGD", "RMSprop", "SGLD", "SGNHT", "SGMGT, a = 1", "SGMGT, a = 2", "SGMGT-D, a = 1", "SGMGT-D, a = 2"]
    assert names == expected
    for c in contest.contestants(13_807):
        middle = {name: float(np.sqrt(low * high)) for name, (low, high) in c.ranges.items()}
        assert hasattr(c.sampler(middle), "step")
    plan = music.budget_of("jsb", False, None, 0)
    assert plan.final.epochs == 100
    assert music.budget_of("jsb", False, 200, 0).final._replace(epochs=0) == plan.final._replace(
        epochs=0
    )  # it can go on
    assert ptb.budget_of(False, 9, 0).final._replace(epochs=0) == ptb.budget_of(False, None, 0).final._replace(epochs=0)


def test_ranges_of_step_sizes_are_alike_in_how_far_a_step_goes():
    """Root mean square velocities by quadrature; without the longer steps those of a = 2 would be a quarter of the others."""
    reach = {}
    for c in contest.contestants(13_807)[3:]:
        kinetics = c.sampler({"step_size": 1e-3, "friction": 1.0}).kinetics
        p = np.exp(np.linspace(-30.0, 12.0, 4001))
        weight = p * np.exp(-np.array([sg.kinetics.energy(kinetics, x) for x in p]))
        speed = np.sqrt(weight @ np.array([sg.kinetics.velocity(kinetics, x) for x in p]) ** 2 / weight.sum())
        reach[c.name] = speed * c.ranges["step_size"][1]
    assert max(reach.values()) / min(reach.values()) < 1.3
    assert reach["SGMGT, a = 2"] / contest.LONGER[2] < 0.3 * reach["SGNHT"]


def tiny(name, folder, quick):
    model = LSTM(*scales(24, 0), hidden=8)
    return model, (model.on(*scales(6, 1)), model.on(*scales(6, 2)))


def test_a_contest_is_held_and_goes_on_with_more_epochs(tmp_path):
    budget = contest.Budget(2, Plan(1, 6, 0, 0, most=2), Plan(2, 6, 0, 0))
    results, tried = contest.hold("tiny", tiny, ("jsb", None, True), budget, 192, True, tmp_path, False)
    assert len(results) == len(contest.QUICK)
    assert (tried.groupby("sampler").size() == 2).all()
    more = budget._replace(final=budget.final._replace(epochs=3))
    longer, _ = contest.hold("tiny", tiny, ("jsb", None, True), more, 192, True, tmp_path, False)
    for short, long in zip(results, longer, strict=True):
        assert [tuple(r) for r in long["curve"]][:2] == [tuple(r) for r in short["curve"]]
        assert long["epochs"] == 3
    assert len(longer) == len(results)
    far, _ = contest.hold("tiny", tiny, ("jsb", None, True), budget._replace(further=4), 192, True, tmp_path, False)
    assert [r["sampler"] for r in far[len(results) :]] == ["SGMGT-D, a = 1, continued"]
    assert far[-1]["epochs"] == 4
    assert [tuple(r) for r in far[-1]["curve"]][:3] == [tuple(r) for r in longer[3]["curve"]]
    row = contest.row_of(longer[0], float, "NLL")
    assert row["test NLL"] == longer[0]["test"]
    assert kept.digest(contest._sources(tiny)) == kept.digest(contest._sources(tiny))
    picture = curves.draw(longer, "NLL", float, 2.7, "frequency of each key", tmp_path / "curves.png")
    assert picture.stat().st_size > 10_000


def test_what_was_found_is_kept_through_edits_elsewhere_and_not_through_others(tmp_path, monkeypatch):
    """Edited plots lose nothing; an edit of the data, or of anything that is compiled, begins anew."""
    budget = contest.Budget(1, Plan(1, 6, 0, 0, most=1), Plan(1, 6, 0, 0, most=1))

    def files():
        contest.hold("tiny", tiny, ("jsb", None, True), budget, 192, True, tmp_path, False)
        return sorted(p.name for p in tmp_path.glob("*.npz"))

    first = files()
    with monkeypatch.context() as edited:
        edited.setattr(harness, "_sources", lambda: b"another plot")
        assert files() == first
    with monkeypatch.context() as edited:
        edited.setattr(contest.fingerprints, "package_fingerprint", lambda: b"another kernel")
        assert set(first) < set(files())
    assert kept.digest(contest._sources(tiny)) != kept.digest(contest._sources(files))


def test_remarks_say_whether_the_published_figure_is_reached():
    import pandas as pd

    own = music.SETS["jsb"]
    table = pd.DataFrame({"sampler": ["SGLD", "SGMGT-D, a = 1", "SGMGT-D, a = 2"], "test NLL": [9.0, 8.5, 8.4]})
    table["keys averaged"], table["best draw alone"], table["last draw alone"], table["shortened"] = 8.6, 8.9, 9.2, 0.01
    said = " ".join(music.remarks_of(table, own))
    assert (
        "SGMGT-D: 8.40 (SGMGT-D, a = 2), at or below the published 8.43; with keys averaged by themselves 8.60" in said
    )
    worse = table.assign(**{"test NLL": [12.0, 8.5, 8.6]})
    said = " ".join(music.remarks_of(worse, own))
    assert "above the published 8.43" in said
    assert "2 of 3 are below 11.06" in said
    assert "lost" not in said
    lost = table.assign(**{"last draw alone": [50.76, 9.2, 9.2], "shortened": [0.46, 0.0, 0.0]})
    said = " ".join(music.remarks_of(lost, own))
    assert (
        "SGLD was lost on the way: its last draw alone is at 50.8, above 11.06, and 46% of its gradients were" in said
    )
    assert said.count("lost") == 1
    assert all(f"music-{name}" in page.ORDER for name in music.SETS)


def test_options_that_an_experiment_does_not_have_are_refused(tmp_path, capsys):
    assert cli.main(["reproduce", "wells", "--epochs", "3", "--out", str(tmp_path)]) != 0
    assert "--epochs is for music and ptb, not for wells" in capsys.readouterr().err
    assert cli.main(["reproduce", "ptb", "--set", "jsb", "--out", str(tmp_path)]) != 0
    assert "--set is for music, not for ptb" in capsys.readouterr().err


@pytest.mark.skipif(datasets.data_folder() is None, reason="SGMCMC_DATA is not set: no music to learn")
def test_quick_music_writes_its_tables_and_pictures(tmp_path, capsys):
    assert cli.main(["reproduce", "music", "--quick", "--quiet", "--epochs", "1", "--out", str(tmp_path)]) == 0
    assert "sgmcmc reproduce music --set jsb --quick" in (tmp_path / "music-jsb.md").read_text(encoding="utf-8")
    assert (tmp_path / "music-jsb.png").stat().st_size > 10_000
