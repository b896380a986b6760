"""Samplers seen from outside: ours pass at h = 0.1, wrong ones are rejected, and the adapter changes nothing."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.testing import adapter, black_box, textbook
from sgmcmc.testing.black_box import BlackBox, as_black_box, check_black_box, measure
from sgmcmc.testing.targets import GAUSSIAN, SKEW

QUICK = {"warmup": 100, "steps": 400}


def run(box: BlackBox, steps: int, seed: int = 3) -> np.ndarray:
    """(steps, chains, dim) of a run on the skew target, through the adapter's own loop over chains."""
    start = np.random.default_rng(0).normal(size=(4, 3))
    states, advance, where = black_box._all_chains(box, start, [seed])
    found = [start]
    for _ in range(steps):
        states = advance(states, SKEW.gradient(found[-1]))
        found.append(where(states))
    return np.array(found)


@pytest.mark.parametrize("box", black_box.own_boxes("quick"), ids=lambda b: f"{b.name}, T = {b.temperature:g}")
def test_our_samplers_pass_at_step_size_a_tenth(box):
    report = check_black_box(box, **QUICK)
    assert report.passed, report


@pytest.mark.parametrize("box", black_box.wrong_boxes("full"), ids=lambda b: b.name)
def test_wrong_samplers_are_rejected(box):
    report = check_black_box(box, **QUICK)
    assert not report.passed
    assert black_box.rejection(report, box).passed


@pytest.mark.parametrize(
    "box",
    [
        textbook.sgld(0.01, 2.0),
        textbook.sghmc(0.1, 0.1),
        textbook.sghmc(0.01, 0.1, 0.1, refresh=100),
        textbook.sghmc(0.02, 4.0, 2.0),
        textbook.sgnht(0.02, 1.0, 0.5),
    ],
    ids=lambda b: b.name,
)
def test_the_same_textbook_samplers_without_the_fault_pass(box):
    report = check_black_box(box, **QUICK)
    assert report.passed, report


def test_a_reversed_sign_is_seen_on_the_skew_target_only():
    failed = check_black_box(textbook.sgld(0.02, fault="reversed"), **QUICK).failures
    assert failed
    assert all(SKEW.name in f.check for f in failed)


def test_the_thermostat_with_a_norm_for_its_square_is_worst_in_many_dimensions():
    box = textbook.sgnht(0.05, 1.0, fault="norm")
    one, twenty = (measure(box, GAUSSIAN, d, **QUICK).second.mean() for d in (1, 20))
    assert twenty > 3.0 * one > 3.0


def test_chains_that_share_noise_are_found_out():
    report = check_black_box(textbook.sgld(0.02, fault="shared noise"), GAUSSIAN, dim=20, **QUICK)
    assert "chains are independent" in {f.check.split(";")[0] for f in report.failures}


def test_a_chain_that_diverges_fails_without_a_warning():
    box = textbook.sghmc(0.5, 0.1, fault="explicit")
    report = check_black_box(box, SKEW, warmup=300, steps=300)
    assert not report.passed
    assert np.isnan(report.findings[0].figure)


@pytest.mark.parametrize("sampler", [sg.SGLD(0.1), sg.SGHMC(0.1, temperature=0.5)])
def test_all_chains_at_once_equal_the_public_init_and_step(sampler, monkeypatch):
    monkeypatch.setattr(adapter, "laws_of", lambda *_: (None, None, None))  # ξ starts at its mean, as `init` has it
    together = run(as_black_box(sampler), 12)
    own = as_black_box(sampler, vectorised=False)
    base = int(np.random.SeedSequence([3]).generate_state(1)[0] >> 2)
    # `init` numbers its chains by `chain`, not by seed
    chains = iter(range(4))
    one_seed = BlackBox(own.name, lambda theta, seed: sampler.init(theta, base, next(chains)), own.step, own.position)
    np.testing.assert_array_equal(together, run(one_seed, 12))


def test_samplers_that_step_one_chain_at_a_time_are_checked_too():
    box = as_black_box(sg.SGHMC(0.1), vectorised=False)
    report = check_black_box(box, GAUSSIAN, dim=20, chains=40, warmup=50, steps=200)
    assert report.passed, report


def test_a_position_of_the_wrong_shape_is_named():
    box = BlackBox("transposed", lambda theta, seed: theta.T, lambda s, g: s, vectorised=True)
    with pytest.raises(ValueError, match="transposed has shape"):
        check_black_box(box)


def test_what_the_user_hands_in_place_does_not_change_the_start():
    """A sampler that works in place is judged like one that does not."""

    def step(theta, gradient):
        theta -= 0.5 * gradient
        return theta

    box = BlackBox("in place", lambda theta, seed: theta, step, vectorised=True)
    pure = BlackBox("pure", lambda theta, seed: theta, lambda theta, g: theta - 0.5 * g, vectorised=True)
    np.testing.assert_array_equal(
        measure(box, GAUSSIAN, 2, 64, 0, 20).first, measure(pure, GAUSSIAN, 2, 64, 0, 20).first
    )


def test_the_example_in_the_docstring_runs():
    found = doctest.testmod(black_box, extraglobs={"np": np, "sg": sg})
    assert found.attempted > 5
    assert found.failed == 0
