"""The benchmarks: their table, their checks (and what those reject), their page, and that a stopped run goes on."""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sgmcmc.cli import main as cli
from sgmcmc.evidence.benchmarks import contestant, results, runner
from sgmcmc.evidence.benchmarks.alone import checking, clock, efficiency
from sgmcmc.evidence.benchmarks.alone.problems import WELLS, logistic_data, wells_start
from sgmcmc.evidence.benchmarks.alone.run import MEASURES, file_of
from sgmcmc.evidence.benchmarks.alone.starting import distributions, megabytes
from sgmcmc.evidence.benchmarks.cases import CASES, chosen_cases, entries
from sgmcmc.evidence.benchmarks.claims import CLAIMS, verdicts
from sgmcmc.evidence.benchmarks.contestant import Contestant
from sgmcmc.evidence.benchmarks.environments import NEEDS, Environments
from sgmcmc.evidence.benchmarks.limit import limit_ratios, limits
from sgmcmc.evidence.benchmarks.ours import sampler_for
from sgmcmc.evidence.benchmarks.page import write_page
from sgmcmc.evidence.benchmarks.references import laplace
from sgmcmc.evidence.benchmarks.rows import figure, settings, speedup
from sgmcmc.evidence.benchmarks.worker import _measure

ALONE = Path(runner.__file__).parent / "alone"


# ---- the table --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quick", [True, False])
def test_every_entry_can_be_measured_and_no_two_are_the_same(quick):
    table = entries(list(CASES.values()), quick, peers=True)
    assert len({json.dumps(e, sort_keys=True) for e in table}) == len(table)
    for entry in table:
        assert entry["who"] in NEEDS
        assert set(CASES[entry["case"]].setting) <= set(entry)
        name = file_of(entry)
        if name is None:
            assert entry["who"] == "sgmcmc"
            assert callable(_measure(entry))
        else:
            assert (ALONE / f"{name}.py").exists()


def test_every_setting_has_one_row_of_each_contestant():
    from sgmcmc.evidence.benchmarks.rows import contestant

    for case in CASES.values():
        for where, group in settings(case.entries(False)).items():
            names = [contestant(e) for e in group]
            assert len(set(names)) == len(names), where


def test_every_claim_is_about_a_case_and_every_case_has_claims():
    assert {claim.case for claim in CLAIMS} == set(CASES)


def test_without_peers_only_we_and_numpy_are_measured():
    assert {e["who"] for e in entries(list(CASES.values()), True, peers=False)} == {"sgmcmc", "numpy"}


def test_a_case_that_is_none_gives_one_sentence(capsys, tmp_path):
    assert cli.main(["bench", "dancing", "--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"sgmcmc: there is no case 'dancing'; choose from {', '.join(CASES)}\n"
    assert [case.name for case in chosen_cases([])] == list(CASES)


# ---- peers stand alone ------------------------------------------------------------------------------------------------


def test_files_that_run_peers_import_nothing_of_this_package():
    assert set(MEASURES.values()) <= {p.stem for p in ALONE.glob("*.py")}
    for path in ALONE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            assert not any(name.split(".")[0] == "sgmcmc" for name in names), path


def test_a_peer_is_measured_by_a_plain_script(tmp_path):
    entry = next(e for e in CASES["normals"].entries(True) if e["who"] == "numpy")
    (tmp_path / "entry.json").write_text(json.dumps(entry))
    words = [str(ALONE / "run.py"), str(tmp_path / "entry.json"), str(tmp_path), str(tmp_path / "found.json")]
    subprocess.run([sys.executable, "-I", *words], check=True, cwd=tmp_path)
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["version"] == np.__version__
    assert found["check"]["right"]
    assert len(found["seconds"]) == entry["runs"]


def bare(monkeypatch) -> Environments:
    """An environment in which nothing but ourselves is installed."""
    environments = Environments()
    monkeypatch.setattr(environments, "versions", {"numpy": np.__version__, "sgmcmc": "0"})
    return environments


def test_a_peer_that_is_not_there_is_named_with_its_remedy(monkeypatch):
    environments = bare(monkeypatch)
    assert environments.missing("sgmcmc") == environments.missing("numpy") == ""
    assert environments.missing("torch") == 'torch is not installed; `pip install "sgmcmc[peers]"` brings it'
    assert "--old-python" in environments.missing("sgmcmcjax")
    assert environments.python_of("sgmcmcjax") == sys.executable


def test_an_old_python_that_is_none_gives_one_sentence(tmp_path, capsys):
    assert cli.main(["bench", "--old-python", str(tmp_path / "python"), "--out", str(tmp_path)]) == 1
    assert "is no file; give the python of an environment with SGMCMCJax" in capsys.readouterr().err


# ---- checks, and wrong laws that they reject --------------------------------------------------------------------------


def wells_runs(heat=1.0, weights=WELLS.weights, frozen=False):
    """Records (run, record, chain, 2) of independent draws of the mixture, or of something else."""
    rng = np.random.default_rng(5)
    shape = (3, 1 if frozen else 60, 256)
    k = rng.choice(len(weights), size=shape, p=weights)
    x = np.array(WELLS.means)[k] + np.sqrt(heat) * WELLS.scale * rng.standard_normal((*shape, 2))
    return np.repeat(x, 60, axis=1) if frozen else x


def test_exact_draws_of_the_wells_are_right():
    assert checking.wells_check(wells_runs())["right"]
    starts = np.stack([wells_start(256, seed, "float64") for seed in range(60)])
    assert checking.wells_check([starts])["right"]


@pytest.mark.parametrize(
    ("wrong", "figure"),
    [
        ({"heat": 1.25}, "temperature"),
        ({"heat": 0.8}, "temperature"),
        ({"weights": (0.2, 0.1, 0.3, 0.15, 0.25)}, "mean"),
        ({"frozen": True}, "move"),
    ],
)
def test_wrong_draws_of_the_wells_are_seen(wrong, figure):
    check = checking.wells_check(wells_runs(**wrong))
    assert not check["right"]
    value, truth, error, allowance = check["figures"][figure]
    assert abs(value - truth) > allowance + 4 * error
    assert "WRONG" in check["text"]


def regression_runs(sd=1.0, shift=0.0):
    rng = np.random.default_rng(6)
    return [0.5 + 0.1 * (shift + sd * rng.standard_normal((200, 4, 25))) for _ in range(5)]


def test_a_posterior_is_right_and_a_wrong_one_is_seen():
    judge = lambda runs: checking.logistic_check(runs, np.full(25, 0.5), np.full(25, 0.1))  # noqa: E731
    assert judge(regression_runs())["right"]
    assert not judge(regression_runs(sd=1.2))["right"]
    assert not judge(regression_runs(sd=0.8))["right"]
    assert not judge(regression_runs(shift=0.3))["right"]
    assert not judge([np.full((200, 4, 25), np.nan)] * 3)["right"]
    standing = [np.repeat(run[:1], 200, axis=0) for run in regression_runs()]
    assert not judge(standing)["right"]


def test_normals_are_right_and_nearly_normal_numbers_are_seen():
    rng = np.random.default_rng(7)
    z = rng.standard_normal(1_000_000)
    assert checking.normals_check(z)["right"]
    for wrong in (1.005 * z, z + 0.006, np.clip(z, -3, 3), rng.uniform(-(3**0.5), 3**0.5, z.size)):
        assert not checking.normals_check(wrong)["right"]
    assert checking.variance_check(theta=z)["right"]
    assert not checking.variance_check(theta=1.1 * z)["right"]


def test_few_blocks_make_wide_errors():
    blocks = np.random.default_rng(8).standard_normal((200, 1))
    few, many = (checking._over_blocks(blocks[:n])[1][0] * np.sqrt(n) for n in (4, 200))
    assert few > 3 * many
    assert checking._over_blocks(blocks[:1])[1][0] == np.inf


def test_only_accurate_settings_are_taken_and_the_timed_runs_are_judged_again(tmp_path):
    exact = {"mean": np.zeros(25), "sd": np.ones(25)}
    config = {"method": "sgld", "quick": False, "runs": 3, "budget": 0.1, "draws": "d.npy", "chains": 4, "steps": 5000}

    def run(seed, h, friction):
        """A sampler that is hot in proportion to its step size and forgets faster with a large one."""
        rng = np.random.default_rng((seed, int(h * 1e7)))
        hold = round(6e-5 / h)
        z = rng.standard_normal((4, 4000 // hold + 1, 25))
        return (1.0 + h / 3.5e-4) * np.repeat(z, hold, axis=1)[:, :4000]

    found = efficiency.compete(run, config, exact, tmp_path)
    assert found["h"] == 1.5e-5  # the largest step of the grid whose sd is within 5 %
    assert found["check"]["right"]
    assert np.load(tmp_path / "d.npy").shape == (3, 4, 3600, 25)
    hot = efficiency.compete(lambda seed, h, a: 1.2 * run(seed, h, a), config, exact, tmp_path)
    assert hot["accurate_settings"] == 0
    assert not hot["check"]["right"]
    assert not efficiency.score(np.full((4, 100, 25), np.nan), exact["mean"], exact["sd"]).accurate


def test_laplace_finds_the_mode_in_chunks(monkeypatch):
    from sgmcmc.evidence.benchmarks import references

    X, y = logistic_data(1000, 3)
    whole = laplace(X, y)
    monkeypatch.setattr(references, "_CHUNK", 64)
    chunked = laplace(X, y)
    assert np.allclose(whole[0], chunked[0], atol=1e-10)
    slope = X.T.astype(float) @ (1 / (1 + np.exp(-X @ whole[0])) - y) + whole[0]
    assert np.abs(slope).max() < 1e-6


def test_the_installed_size_counts_dependencies():
    assert {"sgmcmc", "numba", "numpy", "llvmlite"} <= set(distributions("sgmcmc"))
    assert megabytes("sgmcmc") > megabytes("numba") > megabytes("numpy") > 1.0
    assert "pytest" not in distributions("sgmcmc")  # an extra


# ---- the page, from made-up results -----------------------------------------------------------------------------------


def made_up() -> dict:
    """We win with one chain, lose with 64, are wrong in double precision; one peer is missing, one failed."""
    right, wrong = {"right": True, "text": "temperature 1.01"}, {"right": False, "text": "temperature 1.30, WRONG"}

    def row(who, chains, seconds, dtype="float32", check=right):
        common = {"case": "wells", "who": who, "method": "sgnht", "chains": chains, "dtype": dtype, "steps": 1000}
        time = {"seconds": [seconds, 1.1 * seconds, 9.0 * seconds], "others": 0.02, "first": 1.0, "version": "1"}
        return common | time | {"work": 1000 * chains, "check": check, "at_time": "2026-01-01T00:00:00"}

    rows = [row("sgmcmc", 1, 1.0), row("blackjax", 1, 8.0), row("sgmcmc", 64, 1.0), row("blackjax", 64, 0.5)]
    rows += [row("sgmcmc", 1, 1.0, "float64", wrong), row("blackjax", 1, 8.0, "float64")]
    entry = {"case": "wells", "who": "posteriors", "method": "sgnht", "chains": 1, "dtype": "float32"}
    rows += [entry | {"missing": "torch is not installed; install it"}]
    rows += [entry | {"who": "numpy", "error": "ValueError: no"}]
    common = {"case": "update", "who": "sgmcmc", "others": 0.0, "first": 0.0, "version": "1", "check": right}
    rows += [common | {"method": "triad", "problem": "triad", "dim": 0, "seconds": [1.0], "work": 28e9}]
    rows += [common | {"method": "normals", "problem": "many normals", "dim": 0, "seconds": [1.0], "work": 1e9}]
    rows += [common | {"method": "sgnht", "dim": 1_000_000, "seconds": [0.01], "work": 1_000_000}]
    machine = {"cpu": "A CPU", "cores": 2, "platform": "X", "python": "3", "versions": {"sgmcmc": "0.1"}}
    return {"machine": machine | {"old_versions": {"jax": "0.4"}}, "quick": False, "rows": rows}


def test_the_page_shows_losses_as_plainly_as_wins(tmp_path):
    found = made_up()
    results.write_all(found, tmp_path / "pictures", tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "A CPU, 2 cores" in page
    assert "jax 0.4" in page
    assert "Ahead of the fastest other in 2 of 3 settings; **behind** in float32, 64 chains, SGNHT (0.5×)." in page
    assert "| float32, 64 chains, SGNHT | 0.0582 | 0.116 | **0.5×** |" in page
    assert "**WRONG:** temperature 1.30" in page
    assert "* posteriors was not measured: torch is not installed; install it." in page
    assert "* numpy failed (float32, 1 chain, SGNHT): `ValueError: no`." in page
    assert "| wells | speed over BlackJAX, float32 | 0.5 | ≥ 5 | **NO** | float32, 64 chains, SGNHT |" in page
    assert "| start | import: speed over BlackJAX | – | ≥ 3 | not measured |  |" in page
    assert "](pictures/wells.png)" in page
    assert (tmp_path / "pictures" / "wells.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "pictures" / results.FILE).read_text()) == found


def test_claims_are_judged_by_the_worst_setting_and_never_by_wrong_draws():
    found = {v.claim.text: v for v in verdicts(made_up()["rows"])}
    assert found["speed over BlackJAX, float32"].figure == pytest.approx(0.5)
    double = found["speed over BlackJAX, float64"]
    assert (double.figure, double.holds) == (0.0, False)
    assert "our draws are wrong" in double.where
    assert found["speed over SGMCMCJax, one chain, float32"].holds is None


def test_a_claim_about_our_sgmgtd_is_not_judged_by_somebody_elses():
    check = {"right": True, "text": "fine"}

    def row(who, method, seconds):
        return {
            "case": "update",
            "who": who,
            "method": method,
            "dim": 10,
            "seconds": [seconds],
            "work": 1,
            "check": check,
        }

    rows = [row("sgmcmc", "sgmgtd", 1.0), row("jax", "sgmgtd", 9.0), row("blackjax", "sgnht", 2.0)]
    found = {v.claim.text: v.figure for v in verdicts(rows)}
    assert found["speed of SGMGT-D over the fastest SGNHT of BlackJAX and posteriors"] == pytest.approx(2.0)
    assert found["speed of SGMGT-D over SGMGT-D by hand in JAX"] == pytest.approx(9.0)


def test_blackjax_on_one_core_counts_where_it_is_the_faster():
    """On two, a step of a small model may take twice as long."""
    check = {"right": True, "text": "fine"}

    def row(who, seconds):
        numbers = {"case": "logistic", "size": "small", "chains": 1, "method": "sgnht"}
        return numbers | {"who": who, "seconds": [seconds], "work": 1, "check": check}

    rows = [row("sgmcmc", 1.0), row("blackjax", 25.0), row("blackjax+pinned", 9.0)]
    found = {v.claim.text: v for v in verdicts(rows)}["speed over BlackJAX, small"]
    assert (found.figure, found.holds) == (pytest.approx(9.0), False)
    table = entries(list(CASES.values()), False, peers=True)
    pinned = [e for e in table if e["who"] == "blackjax+pinned"]
    assert {(e["case"], e["chains"]) for e in pinned} == {("wells", 1), ("logistic", 1), ("logistic", 4)}
    assert all(e["threads"] == 1 for e in pinned)


def test_the_limit_is_normals_plus_bytes():
    rows = [r for r in made_up()["rows"] if r["case"] == "update"]
    assert limits(rows)["sgnht"] == pytest.approx(1.0 + 1.0)  # 28 bytes at 28 GB/s and a normal at 1e9/s
    assert limit_ratios(rows) == {"SGNHT, 1,000,000": pytest.approx(5.0)}
    assert limits([]) == {}


def test_a_figure_is_that_of_the_median_and_a_ratio_above_1_is_a_win_in_either_unit():
    rows = made_up()["rows"]
    assert figure(rows[0]) == pytest.approx(1e-6 * 1000 / 1.1)
    assert figure(rows[0], best=True) == pytest.approx(1e-6 * 1000 / 1.0)
    assert speedup(rows[0], rows[1]) == pytest.approx(8.0)
    slow, fast = ({"case": "logistic", "seconds": [s], "work": 1} for s in (2.0, 1.0))
    assert speedup(fast, slow) == pytest.approx(2.0)


# ---- runs -------------------------------------------------------------------------------------------------------------


def test_a_quick_run_goes_from_end_to_end(tmp_path, monkeypatch, capsys):
    some = [e for e in CASES["normals"].entries(True) if e["dtype"] == "float32" and e["who"] in ("sgmcmc", "numpy")]
    some += [e for e in CASES["wells"].entries(True) if e["who"] == "sgmcmc" and e["method"] == "sgnht"]
    some += [next(e for e in CASES["wells"].entries(True) if e["who"] == "sgmcmcjax")]
    monkeypatch.setattr(results, "entries", lambda cases, quick, peers: some)
    words = ["bench", "normals", "wells", "--quick", "--peers", "--quiet", "--out", str(tmp_path / "out")]
    assert cli.main([*words, "--page", str(tmp_path / "page.md")]) == 0
    said = capsys.readouterr().out
    assert "0 with wrong draws, 0 failed" in said
    assert "normals: speed over NumPy's PCG64, float32" in said
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "**A quick run" in page
    assert "* sgmcmcjax was not measured: sgmcmcjax needs a JAX of 2024" in page
    assert not runner.kept_in(tmp_path / "out").exists()
    found = json.loads((tmp_path / "out" / results.FILE).read_text())
    assert len(found["rows"]) == len(some)
    assert all(r["check"]["right"] for r in found["rows"] if "missing" not in r)


def test_a_stopped_run_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    calls = []

    def measure(group, folder, environments, tell):
        if len(calls) == 1:
            calls.append(None)
            raise KeyboardInterrupt
        calls.append(group)
        check = {"right": True, "text": "fine"}
        row = {"seconds": [1.0], "work": 1, "others": 0.0, "first": 0.0, "version": "1", "check": check}
        return [row for _ in group]

    monkeypatch.setattr(runner, "_measure", measure)
    words = ["bench", "normals", "--quick", "--quiet", "--out", str(tmp_path)]
    assert cli.main(words) == 130
    assert "3 finished entries are kept" in capsys.readouterr().err
    assert not (tmp_path / results.FILE).exists()
    assert cli.main(words) == 0
    table = entries([CASES["normals"]], True, peers=False)
    assert [e for group in calls if group is not None for e in group] == table  # each once
    assert len(json.loads((tmp_path / results.FILE).read_text())["rows"]) == len(table)


def test_a_failure_is_a_row_beside_others_and_is_tried_again(tmp_path, monkeypatch):
    good = CASES["normals"].entries(True)[1]
    environments = bare(monkeypatch)
    rows = runner.run_entries([good | {"method": "NoSuchGenerator"}, good], tmp_path, environments, progress=False)
    assert "NoSuchGenerator" in rows[0]["error"]
    assert rows[1]["check"]["right"]
    assert list(runner.kept_in(tmp_path).glob("?" * 32 + ".json")) == []


# ---- turns ------------------------------------------------------------------------------------------------------------


def numpy_entries() -> list[dict]:
    found = [e for e in CASES["normals"].entries(True) if e["who"] == "numpy" and e["dtype"] == "float32"]
    assert [e["method"] for e in found] == ["PCG64", "SFC64"]
    return found


def test_contestants_get_ready_one_after_the_other_and_then_run_in_turn(tmp_path, monkeypatch):
    turns, real = [], Contestant.take_turn

    def take_turn(self):
        turns.append((self.entry["method"], "begins"))
        more = real(self)
        turns.append((self.entry["method"], "waits" if more else "ends"))
        return more

    monkeypatch.setattr(Contestant, "take_turn", take_turn)
    some = [numpy_entries()[0] | {"runs": 3}, numpy_entries()[1] | {"runs": 2}]
    rows = runner.run_entries(some, tmp_path, Environments(), progress=False)
    a, b = [("PCG64", "begins"), ("PCG64", "waits")], [("SFC64", "begins"), ("SFC64", "waits")]
    last_a, last_b = [a[0], ("PCG64", "ends")], [b[0], ("SFC64", "ends")]
    assert turns == a + b + a + b + a + last_b + last_a
    assert [len(row["seconds"]) for row in rows] == [3, 2]
    assert all(row["check"]["right"] and row["at_time"] <= row["until"] for row in rows)


def test_a_package_of_the_same_name_where_one_stands_is_not_what_is_measured(tmp_path, monkeypatch):
    other = tmp_path / "sgmcmc"
    other.mkdir()
    (other / "__init__.py").write_text("raise SystemExit('not me')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(runner.__file__).parents[3]))  # this one, installed or not
    entry = next(e for e in CASES["normals"].entries(True) if e["who"] == "sgmcmc")
    (row,) = runner.run_entries([entry], tmp_path / "out", Environments(), progress=False)
    assert "error" not in row, row
    assert row["check"]["right"]


def test_a_contestant_that_dies_while_it_waits_is_an_error_and_the_others_go_on(tmp_path, monkeypatch):
    real = Contestant.take_turn

    def take_turn(self):
        more = real(self)
        if self.entry["method"] == "PCG64":
            self.kill()
            self._process.wait()
        return more

    monkeypatch.setattr(Contestant, "take_turn", take_turn)
    rows = runner.run_entries(numpy_entries(), tmp_path, Environments(), progress=False)
    assert rows[0]["error"] == "ended with code -9"
    assert rows[1]["check"]["right"]


def test_a_contestant_that_is_never_done_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(contestant, "TIMEOUT", 0.01)
    (row,) = runner.run_entries(numpy_entries()[:1], tmp_path, Environments(), progress=False)
    assert row["error"] == "not done after 0 s"


def test_short_runs_in_turn_are_repeated_before_one_is_timed(monkeypatch):
    calls, now = [], [0.0]

    def run(x):
        calls.append(x)
        now[0] += clock.WARM / 4 if x < 5 else clock.WARM
        return x

    monkeypatch.setattr(clock, "WARM", 0.25)  # of which sums are exact
    monkeypatch.setattr(clock.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(clock.sys, "stdin", io.StringIO("go\n" * 2))
    monkeypatch.setenv(clock.TURNS, "1")
    record, outputs = clock.timed(run, range(5), 100.0)
    assert calls == [0] * 5 + [1] * 5
    assert outputs == [0, 1]  # there is no third turn
    assert record["seconds"] == pytest.approx([clock.WARM / 4] * 2)
    calls.clear()
    monkeypatch.setattr(clock.sys, "stdin", io.StringIO("go\n" * 2))
    clock.timed(run, [5, 6], 100.0)
    assert calls == [5, 5, 6]  # a long one, once that is known, needs none before it
    calls.clear()
    monkeypatch.setattr(clock.sys, "stdin", io.StringIO("go\n" * 2))
    clock.timed(run, [0, 1], 100.0, warm_up=False)
    assert calls == [0, 1]  # what starts from nothing must not have been started before
    monkeypatch.delenv(clock.TURNS)
    record, outputs = clock.timed(lambda x: 0.5 * x, range(9), -1.0, keeps_time=True)
    assert record["seconds"] == outputs == [0.0, 0.5, 1.0, 1.5, 2.0]  # as many as there must be


def test_chains_of_a_peer_that_go_on_meet_new_noise_in_every_repetition(monkeypatch):
    """With the same noise again and again, BlackJAX's SGNHT seemed to be wrong."""
    pytest.importorskip("blackjax", reason="BlackJAX is not installed: nothing to measure")
    from sgmcmc.evidence.benchmarks.alone.jax_update import measure

    monkeypatch.setattr(clock.sys, "stdin", io.StringIO("go\n" * 3))
    monkeypatch.setenv(clock.TURNS, "1")
    entry = {"who": "blackjax", "method": "sgnht", "dim": 20_000, "steps": 20, "runs": 3, "budget": 100.0}
    found = measure(entry, Path())
    assert found["check"]["right"], found["check"]["text"]


@pytest.mark.parametrize("forgets_the_bend", [False, True])
def test_sgmgtd_by_hand_in_jax_is_right_and_would_be_seen_if_it_were_not(forgets_the_bend, monkeypatch):
    pytest.importorskip("jax", reason="JAX is not installed: nothing to measure")
    from sgmcmc.evidence.benchmarks.alone import jax_kernels, jax_update

    if forgets_the_bend:
        right = jax_kernels._velocity_and_bend
        monkeypatch.setattr(jax_kernels, "_velocity_and_bend", lambda p: (right(p)[0], 0.0 * p))
    entry = {"who": "jax", "method": "sgmgtd", "dim": 20_000, "steps": 400, "runs": 3, "budget": 100.0}
    assert jax_update.measure(entry, Path())["check"]["right"] is not forgets_the_bend


def test_sgmgtd_by_hand_has_the_numbers_of_the_preset():
    from sgmcmc.evidence.benchmarks.alone import jax_kernels as by_hand

    ours = sampler_for("sgmgtd", 0.05, 1.0)
    assert (ours.kinetics.a, ours.kinetics.softening, ours.kinetics.mass) == (1.0, by_hand.SOFTENING, 1.0)
    assert (ours.sigma_theta, ours.sigma_xi, ours.thermostat.gamma) == (
        by_hand.SIGMA_THETA,
        by_hand.SIGMA_XI,
        by_hand.GAMMA,
    )


def test_what_a_claim_compares_takes_turns():
    """All of a setting, and where a claim is about ourselves alone, all that it looks at."""
    table = entries(list(CASES.values()), False, peers=True)
    group_of = {json.dumps(table[i]): number for number, group in enumerate(runner._groups(table)) for i in group}

    def groups(**numbers):
        chosen = [e for e in table if all(e.get(k) == v for k, v in numbers.items())]
        assert len(chosen) > 1
        return {group_of[json.dumps(e)] for e in chosen}

    for case in CASES.values():
        for where, group in settings(case.entries(False)).items():
            assert len({group_of[json.dumps(e)] for e in group}) == 1, where
    for dtype in ("float32", "float64"):
        assert len(groups(case="wells", who="sgmcmc", dtype=dtype, chains=64)) == 1  # SGMGT-D beside SGNHT
    for axis in ("d", "N", "chains", "threads"):
        assert len(groups(case="scaling", axis=axis)) == 1
    assert len(groups(case="update")) == 1  # the triad and the normals beside the updates
    assert len(groups(case="wells")) > 1


def test_the_page_says_when_each_case_was_measured(tmp_path):
    made = made_up()
    for row in made["rows"]:
        if row["case"] == "wells":
            row["until"] = "2026-02-03T04:05:06"
        else:
            row["at_time"] = "2026-03-01T00:00:00"
    page = tmp_path / "page.md"
    write_page(made, page, {})
    text = page.read_text()
    assert "wells from 2026-01-01 00:00:00 to 2026-02-03 04:05:06" in text
    assert "update from 2026-03-01 00:00:00 to 2026-03-01 00:00:00" in text


def test_a_run_replaces_the_cases_it_measured_and_never_mixes_quick_with_full(tmp_path):
    old = made_up()
    (tmp_path / results.FILE).write_text(json.dumps(old))
    new = old | {"rows": [old["rows"][0] | {"seconds": [2.0]}]}
    merged = results.merge(tmp_path, new)
    assert [r["case"] for r in merged["rows"]] == ["wells", "update", "update", "update"]
    assert merged["rows"][0]["seconds"] == [2.0]
    assert results.merge(tmp_path, new | {"quick": True})["rows"] == new["rows"]
