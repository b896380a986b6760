"""Checks that cannot be fooled: every verdict has its power, wrong samplers do not pass, right ones are not rejected."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.schedules import Constant, Cyclical
from sgmcmc.testing import as_it_is, time_scales
from sgmcmc.testing.black_box import BlackBox, check_black_box
from sgmcmc.testing.report import Finding, Report
from sgmcmc.testing.wrong_boxes import KINDS, right_twins, underdamped

sys.path.insert(0, str(Path(__file__).parents[2] / "validation"))
import right_samplers

QUICK = {"warmup": 200, "steps": 800}
FULL = os.environ.get("SGMCMC_VALIDATE") == "full"


# These cannot be told from samplers that are very slow: the start is not forgotten.
UNCLEAR = ("right only where it is started", "no noise at tiny steps")


def finding(passed: bool, resolved: bool = True) -> Finding:
    return Finding("c", "s", 1.0, "b", passed, "", 0.1, resolved)


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        ([finding(True)], "right"),
        ([finding(True), finding(False)], "wrong"),
        ([finding(True), finding(False, False)], "not resolved"),
        ([finding(False), finding(False, False)], "wrong"),
        ([], "not resolved"),
    ],
)
def test_a_report_passes_only_if_it_is_right(findings, verdict):
    report = Report("title", findings)
    assert report.verdict == verdict
    assert report.passed == (verdict == "right")


def test_what_is_not_resolved_says_so_everywhere():
    report = Report("title", [finding(False, False)])
    assert "NOT RESOLVED" in repr(report)
    assert "errors below 0.1 would not have been seen" in repr(report)
    assert "not resolved" in report.to_markdown()
    assert "NOT RESOLVED" in report._repr_html_()
    assert report.table["verdict"].tolist() == ["not resolved"]


def test_the_frozen_sampler_of_the_issue_is_wrong():
    report = check_black_box(BlackBox("frozen", init=lambda th, s: th, step=lambda s, g: s))
    assert report.verdict == "wrong"
    assert not report.passed


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
def test_no_wrong_sampler_passes(kind):
    report = check_black_box(kind.wrong(), longest=4000, **QUICK)
    assert not report.passed
    if kind.name not in UNCLEAR:
        assert report.verdict == "wrong", report


def test_a_sampler_that_never_comes_to_the_target_is_not_resolved():
    report = check_black_box(KINDS[-1].wrong(), dim=20, longest=2000, **QUICK)
    assert any(f.check.startswith("forgets its start") for f in report.failures)


@pytest.mark.parametrize("box", right_twins(), ids=lambda b: b.name)
def test_the_same_samplers_without_the_fault_pass(box):
    report = check_black_box(box, **QUICK)
    assert report.passed, report
    assert report.power[[c.startswith("variance ÷ truth;") for c in report.power.index]].max() <= 0.045


def test_a_right_sampler_that_is_too_slow_for_the_budget_is_not_resolved_and_not_wrong():
    """Momenta that start at 0 and a friction that is felt after 10,000 steps: half the variance, for a long time."""
    report = check_black_box(underdamped("slow", 1e-3, 0.1, cold=True), dim=20, longest=2000, **QUICK)
    assert report.verdict == "not resolved", report


def test_every_black_box_check_has_a_power():
    report = check_black_box(underdamped("SGHMC", 0.1, 1.0), dim=20, **QUICK)
    assert np.isfinite(report.power).all()
    assert list(report.power.index) == [f.check for f in report]


# ---- a sampler as it is ------------------------------------------------------------------------------------------------


def test_steps_resolve_the_finest_scale():
    sampler = sg.SGMGTD(1e-3)
    s = time_scales.finest_scale(sampler)
    assert s == pytest.approx(np.sqrt(1e-3 * 0.1 / 0.1))
    assert time_scales.finest_scale(sg.SGHMC(1e-3)) == pytest.approx(0.01)


def test_a_schedule_times_a_number_keeps_its_shape():
    for schedule in (Constant(0.1), Cyclical(0.1, 10), sg.schedules.PolynomialDecay(0.1), lambda t: 0.1 / (1 + t)):
        one = sg.SGLD(schedule).schedule
        half = time_scales.with_steps_times(sg.SGLD(schedule), 0.5).schedule
        steps = np.arange(25)
        np.testing.assert_allclose(half.step_sizes(steps), 0.5 * one.step_sizes(steps))
        assert isinstance(half, type(one))


def test_a_thermostat_too_fast_for_its_step_is_right_to_second_order(monkeypatch):
    """Var θ is 10 % too small at h = 0.1, γ = 30, and 2 % at half the step."""
    monkeypatch.setattr(as_it_is, "WIDTHS", (1.0,))
    report = as_it_is.check_as_it_is(sg.SGNHT(0.1, gamma=30.0))
    assert report.passed, report
    assert "right to order 2" in report.findings[0].detail


def test_a_bias_that_steps_do_not_explain_is_wrong(monkeypatch):
    """The negative control: a run whose second moments are 5 % too small at any step."""
    run = as_it_is._run
    monkeypatch.setattr(as_it_is, "WIDTHS", (1.0,))

    def off(sampler, s, steps, seed):
        figures = run(sampler, s, steps, seed)
        return figures._replace(second=0.95 * figures.second)

    monkeypatch.setattr(as_it_is, "_run", off)
    for sampler in (sg.SGHMC(0.1), sg.SGNHT(0.1, gamma=30.0)):
        assert as_it_is.check_as_it_is(sampler).verdict == "wrong"


def test_the_schedule_is_the_samplers_own(monkeypatch):
    seen = []
    monkeypatch.setattr("sgmcmc.run.sample.sample", lambda model, sampler, **_: seen.append(sampler.schedule) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        as_it_is.check_as_it_is(sg.SGNHT(Cyclical(0.1, 100)))
    assert seen == [Cyclical(0.1, 100)]


# ---- right samplers ----------------------------------------------------------------------------------------------------

GRID = right_samplers.grid()
SOME = list(GRID) if FULL else ["SGHMC, friction 50", "SGNHT, cyclical"]


def test_there_are_forty_right_samplers():
    assert len(GRID) >= 40


@pytest.mark.parametrize("name", SOME)
def test_no_right_sampler_is_rejected(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(1, 21 if FULL else 2):
            report = sg.testing.check(GRID[name], seed=seed, progress=False)
            assert report.passed, (seed, report)
