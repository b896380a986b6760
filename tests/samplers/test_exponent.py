"""Choosing a while warming up: the better one wins, the law stays right, and the same seed chooses the same."""

from __future__ import annotations

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.testing.statistics import z_bound, z_of_chains, z_of_mean
from sgmcmc.tuning import adapt_a
from sgmcmc.tuning.exponent import shared_out, weights

NORMAL = sg.models.Gaussian(np.zeros(2), np.array([1.0, 4.0]))
SHORT = {"rounds": 4, "steps": 200, "progress": False, "seed": 3}


def make(a):
    return sg.SGMGTD(0.1, a=a, softening=2.0)


def test_the_table_says_which_chains_each_value_had_and_the_same_seed_gives_the_same():
    one, two, other = (adapt_a(make, NORMAL, **(SHORT | {"seed": seed})) for seed in (3, 3, 4))
    assert one.table.equals(two.table)
    assert not one.table.equals(other.table)
    assert (one.table.groupby("round")["chains"].sum() == 12).all()
    assert one.setting["a"] in (1.0, 1.5, 2.0)
    assert one.sampler == make(one.setting["a"])
    assert one.theta.shape == (12, 2)


def test_the_value_with_the_best_draws_is_chosen_and_gets_more_and_more_chains():
    def slow_unless_a_is_2(a):
        return sg.SGMGTD(0.1 if a == 2.0 else 0.002, a=a, softening=2.0)

    best = adapt_a(slow_unless_a_is_2, NORMAL, rounds=8, steps=400, progress=False)
    assert best.setting["a"] == 2.0
    own = best.table[best.table["a"] == 2.0].set_index("round")["chains"]
    assert own[8] > own[1]

    def slow_unless_a_is_1(a):  # the control: it is the draws that decide, not the place in the list
        return sg.SGMGTD(0.1 if a == 1.0 else 0.002, a=a, softening=2.0)

    assert adapt_a(slow_unless_a_is_1, NORMAL, rounds=8, steps=400, progress=False).setting["a"] == 1.0


def test_a_value_that_diverges_loses_and_chains_stay_where_they_were():
    def wild(a):
        return sg.SGMGTD(0.1 if a < 2.0 else 1e6, a=a, softening=2.0)

    with pytest.warns(UserWarning, match="step_size"):
        best = adapt_a(wild, NORMAL, **SHORT)
    assert best.setting["a"] < 2.0
    assert np.isfinite(best.theta).all()
    assert best.table.query("a == 2.0")["log score"].tolist() == [np.inf]
    with pytest.warns(UserWarning, match="step_size"), pytest.raises(ValueError, match="diverge with every a"):
        adapt_a(lambda a: sg.SGMGTD(1e6, a=a), NORMAL, **SHORT)


@pytest.mark.parametrize("noise", [0.0, 4.0])
def test_draws_after_the_warm_up_and_during_it_have_the_right_law(noise):
    squares = []

    def noted(trace):
        squares.append((trace.draws**2).mean(axis=(0, 1)))
        return 1.0 / trace.draws.var()  # a criterion that likes it hot, and may not change the law

    best = adapt_a(make, NORMAL, rounds=30, steps=2000, criterion=noted, gradient_noise=noise, progress=False, seed=1)
    trace = best.sample(4000, thin=10, warmup=1000, seed=2, progress=False)
    wrong = sg.sample(NORMAL, make(2.0), 4000, thin=10, seed=2, gradient_noise=noise, progress=False, clip_gradient=0.5)
    bound = z_bound(8)
    for j, variance in enumerate((1.0, 4.0)):
        assert abs(z_of_chains(trace.draws[:, :, j] ** 2, variance)) < bound
        assert (
            abs(z_of_mean(np.array(squares)[:, j], variance)) < bound
        )  # 200 units of time each: as good as independent
        assert abs(z_of_chains(wrong.draws[:, :, j] ** 2, variance)) > bound  # what a wrong law looks like here


def test_shares_sum_to_the_chains_and_each_value_has_its_least():
    for number in range(1, 9):
        w = weights(np.array([0.0, 1.0, 3.0]), number)
        assert w.sum() == pytest.approx(1.0)
        counts = shared_out(13, w, 2)
        assert counts.sum() == 13
        assert counts.min() >= 2
    assert shared_out(12, weights(np.zeros(3), 5), 2).tolist() == [4, 4, 4]
    assert weights(np.array([0.0, 1.0]), 1).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": [1.0]}, "nothing to choose"),
        ({"values": [1.0, 1.0]}, "nothing to choose"),
        ({"values": [0.0, 1.0]}, "values"),
        ({"chains": 3}, "chains"),
        ({"rounds": 0}, "rounds"),
        ({"steps": 10}, "steps"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        adapt_a(make, NORMAL, **arguments)


def test_a_sampler_without_an_exponent_is_refused():
    with pytest.raises(TypeError, match="which has no a"):
        adapt_a(lambda a: sg.SGHMC(0.1), NORMAL)
