"""A test of the tests: every wrong sampler is rejected by a named check, no right one is."""

from __future__ import annotations

import os

import numpy as np
import pytest

from sgmcmc.evidence.validation import mutants
from sgmcmc.evidence.validation.catalogue import BASES, MUTANTS, right_ones
from sgmcmc.evidence.validation.trials import TRIALS
from sgmcmc.testing.reference import Reference

PROFILE = "full" if os.environ.get("SGMCMC_VALIDATE") == "full" else "quick"
RIGHT = {name: (candidate, dim) for name, candidate, dim in right_ones(PROFILE)}


@pytest.fixture(scope="module")
def table():
    return mutants.mutation_table(PROFILE, seed=11)


def test_there_are_enough_wrong_samplers():
    assert len(MUTANTS) >= 28
    assert len({m.name for m in MUTANTS}) == len(MUTANTS)


def test_every_wrong_sampler_is_rejected_by_a_named_check(table):
    passed = table[table["caught by"] == "NOTHING"]
    assert passed.empty, passed.to_string()
    assert set(table["caught by"]) <= {t.name for t in TRIALS}


def test_every_check_catches_something(table):
    assert set(table["caught by"]) == {t.name for t in TRIALS}


def test_errors_much_smaller_than_the_full_ones_are_seen(table):
    """The power of the checks: 1e-6 for those without randomness; correlations and laws to an eighth or a quarter."""
    random = table["caught by"].isin(["one step from the law", "law of fresh draws", "independent normals"])
    exact = table[~random & ~table["wrong sampler"].str.startswith("gradient before")]  # whose effect is its square
    assert (exact["smallest size seen"] < 1e-6).all(), exact.to_string()
    laws = table[table["caught by"].isin(["law of fresh draws", "independent normals"])]
    assert (laws["smallest size seen"] <= 0.5).all(), laws.to_string()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_without_its_error_a_wrong_sampler_is_right(mutant):
    """So it is the error that is rejected, not the class that has it."""
    candidate = mutant.make(0.0)
    if mutant.base not in BASES:
        assert np.array_equal(candidate.gradient(np.ones(2), [1, 3]), mutants_free_gradient())
        return
    sampler, dim = BASES[mutant.base]
    right = Reference(sampler)
    rng = np.random.default_rng(3)
    sizes = sampler.sizes(dim)
    state = right.start(*(rng.standard_normal((5, n)) for n in (dim, sizes.p, sizes.xi)))
    for turn in (None, 1):
        fresh = {"resample_momentum": turn if sizes.p else None, "resample_thermostat": turn if sizes.xi else None}
        one, two = right.with_(**fresh), candidate.with_(**fresh)
        gradient, noise = rng.standard_normal((5, dim)), one.draw_noise(state, 1, 1)
        moved = two.move(state, gradient, two.draw_noise(state, 1, 1), 0.1, 0.2, 1, 1)
        for a, b in zip(one.move(state, gradient, noise, 0.1, 0.2, 1, 1), moved, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)


def mutants_free_gradient():
    from sgmcmc.evidence.validation.catalogue import Regression

    return Regression().gradient(np.ones(2), [1, 3])


@pytest.mark.parametrize("name", RIGHT)
def test_no_right_sampler_is_rejected(name):
    candidate, dim = RIGHT[name]
    for seed in range(mutants.SEEDS[PROFILE]):
        for trial in TRIALS:
            outcome = trial.run(candidate, dim, "quick", seed)
            assert outcome is None or not outcome.rejects, (trial.name, seed, outcome)


def test_the_figure_shows_every_wrong_sampler(table):
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    mutants.figure(figure, PROFILE, seed=11)
    assert len(figure.axes[0].get_yticks()) == len(MUTANTS)
