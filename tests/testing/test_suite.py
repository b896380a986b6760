"""The quick profile from end to end, as people run it: every check passes, and the report is there.

All topics together take four minutes, and the other files here run the quick findings of most. So the command runs those that
have no such test, and a few that are fast; with SGMCMC_VALIDATE=full, all of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import sgmcmc as sg
from sgmcmc.evidence.validation.suite import run_suite
from sgmcmc.evidence.validation.topics import TOPICS

FULL = os.environ.get("SGMCMC_VALIDATE") == "full"
ROOT = Path(__file__).parents[2]
PART = ("fokker_planck", "marginals", "mutants", "published", "lyapunov")


def test_every_topic_that_is_left_out_has_its_quick_findings_in_a_test_of_its_own():
    left = [t for t in TOPICS if t.name not in PART]
    assert len(left) + len(PART) == len(TOPICS)
    for name in [n for t in left for n in (t.name, *t.also)]:
        places = (ROOT / "validation" / f"test_{name}.py", ROOT / "tests" / "testing" / f"test_{name}.py")
        text = "".join(place.read_text(encoding="utf-8") for place in places if place.exists())
        assert any(call in text for call in ('findings("quick"', 'own_boxes("quick"', "check_streams(")), name


def test_the_quick_profile_passes_and_writes_its_report(tmp_path):
    command = [sys.executable, "-m", "sgmcmc", "validate", "--quick", "--quiet", "--jobs", "1", "--out", str(tmp_path)]
    chosen = [t for t in TOPICS if FULL or t.name in PART]
    done = subprocess.run([*command, *(t.name for t in chosen)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (tmp_path / "validation.md").read_text(encoding="utf-8")
    assert "FAILED" not in text
    assert all(topic.title in text for topic in chosen)
    found = pd.read_csv(tmp_path / "validation.csv")
    assert found["passed"].all()
    assert set(found["topic"]) == {topic.name for topic in chosen}
    assert (tmp_path / "validation.html").stat().st_size > 10_000
    assert len(list(tmp_path.glob("*.png"))) >= (8 if FULL else 4)
    wrong = found[(found["topic"] == "mutants") & (found["check"] == "wrong sampler")]
    assert len(wrong) >= 25


def test_a_topic_that_breaks_off_fails_with_its_reason(monkeypatch):
    from sgmcmc.evidence.validation import reductions, suite

    def broken(profile, seed):
        raise ZeroDivisionError("on purpose")
        yield

    monkeypatch.setattr(reductions, "findings", broken)
    topic = next(t for t in TOPICS if t.name == "reductions")
    section = suite._run_topic(topic, "quick", 0, None)
    assert not section.report.passed
    assert "on purpose" in section.error


@pytest.mark.parametrize("options", [{"profile": "slow"}, {"topics": ("luck",)}])
def test_unknown_words_are_refused(options):
    with pytest.raises(ValueError, match=r"luck|slow"):
        run_suite(**options)


def test_check_gives_a_verdict_on_one_sampler_and_sees_a_wrong_one():
    report = sg.testing.check(sg.SGNHT(0.01, temperature=2.0), progress=False)
    assert report.passed, report
    assert list(report.table.columns) == ["check", "subject", "figure", "bound", "passed", "detail", "power", "verdict"]
    assert "passed" in report._repr_html_()
    cold = sg.SGHMC(0.1, friction=1.0)
    subject = Cold(cold)
    assert not sg.testing.check(subject, progress=False).passed


class Cold(sg.testing.Kernel):
    """A sampler whose friction is 5 % too strong for its noise."""

    def __init__(self, sampler, name=None):
        super().__init__(sampler, "cold")

    def with_(self, **changes):
        return Cold(super().with_(**changes).sampler)

    def move(self, state, gradient, noise, *rest, **more):
        return super().move(state, gradient, noise._replace(p=0.975 * noise.p), *rest, **more)


def test_what_cannot_be_checked_is_one_sentence():
    with pytest.raises(TypeError, match="cannot be checked; give a Sampler"):
        sg.testing.check("SGLD")
