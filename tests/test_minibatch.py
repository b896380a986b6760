"""Minibatches: which rows a step looks at, how likely each set of rows is, and what that choice depends on.

Every chi-square test rejects at p < 1e-6, so that the dozen here are a false alarm once in 80,000 runs; beside each stands a
choice that is slightly wrong, which it must reject.
"""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from scipy import stats

import sgmcmc as sg
from sgmcmc.minibatch import (
    Blocks,
    EpochShuffle,
    FullData,
    WithoutReplacement,
    WithReplacement,
    as_minibatch,
    coming,
    forget,
    lookahead,
    memory,
    row_buffer,
)
from sgmcmc.rng import stream
from sgmcmc.run import job, scheduler
from sgmcmc.run.loop_python import choose_rows

LIMIT = 1e-6
KINDS = {"replacement": WithReplacement, "no-replacement": WithoutReplacement, "shuffle": EpochShuffle}


def rows_of_steps(minibatch, n_rows, steps, seed=1, chain=0, fresh=False):
    """The rows of some steps, one row of the result per step; with `fresh` nothing is remembered from step to step."""
    own, rows, scratch = stream(seed, chain), row_buffer(minibatch, n_rows), memory(minibatch, n_rows)
    found = []
    for step in steps:
        if fresh:
            scratch.fill(-1)
        choose_rows(minibatch, n_rows, own, np.int64(step), scratch, rows)
        found.append(rows.copy())
    return np.array(found)


def p_value(outcomes, expected):
    """Of a chi-square test that the outcomes come with these probabilities; 0 if an impossible one occurs."""
    counts = Counter(outcomes)
    if set(counts) - set(expected):
        return 0.0
    total = sum(counts.values())
    observed, wanted = zip(*((counts[o], total * q) for o, q in expected.items()), strict=True)
    return stats.chisquare(observed, wanted).pvalue


def equally(outcomes):
    outcomes = list(outcomes)
    return {o: 1.0 / len(outcomes) for o in outcomes}


# ---- with replacement ---------------------------------------------------------------------------------------------------


def test_rows_with_replacement_are_uniform_and_independent():
    rows = rows_of_steps(WithReplacement(3), 7, range(20_000))
    assert p_value(rows.ravel().tolist(), equally(range(7))) > LIMIT
    pairs = map(tuple, rows[:, :2].tolist())
    assert p_value(pairs, equally(itertools.product(range(7), repeat=2))) > LIMIT
    across = zip(rows[:-1, 2].tolist(), rows[1:, 0].tolist(), strict=True)
    assert p_value(across, equally(itertools.product(range(7), repeat=2))) > LIMIT


def test_the_test_of_uniform_rows_sees_a_modulo_of_16_values():
    biased = np.random.default_rng(0).integers(0, 16, 60_000) % 7
    assert p_value(biased.tolist(), equally(range(7))) < LIMIT


# ---- without replacement ------------------------------------------------------------------------------------------------

SUBSETS = equally(itertools.combinations(range(5), 2))


def test_rows_without_replacement_are_every_subset_equally_often():
    rows = rows_of_steps(WithoutReplacement(2), 5, range(30_000))
    assert p_value(map(tuple, np.sort(rows, axis=1).tolist()), SUBSETS) > LIMIT
    everyone = rows_of_steps(WithoutReplacement(5), 5, range(100))
    assert (np.sort(everyone, axis=1) == np.arange(5)).all()


def test_the_test_of_subsets_sees_rows_that_repeat_and_a_shift_of_one():
    generator = np.random.default_rng(0)
    repeating = np.sort(generator.integers(0, 5, (30_000, 2)), axis=1)
    assert p_value(map(tuple, repeating.tolist()), SUBSETS) == 0.0
    first = generator.integers(0, 5, 30_000)
    neighbour = (first + 1 + (generator.random(30_000) < 0.47) * generator.integers(1, 4, 30_000)) % 5
    clumsy = np.sort(np.stack([first, neighbour], axis=1), axis=1)
    assert p_value(map(tuple, clumsy.tolist()), SUBSETS) < LIMIT


@pytest.mark.parametrize(("n_rows", "size"), [(5, 2), (40, 39), (1000, 100)])
def test_no_row_comes_twice_without_replacement(n_rows, size):
    for rows in rows_of_steps(WithoutReplacement(size), n_rows, range(200)):
        assert len(set(rows.tolist())) == size
        assert rows.min() >= 0
        assert rows.max() < n_rows


# ---- shuffled epochs ----------------------------------------------------------------------------------------------------


def test_an_epoch_is_a_permutation_and_every_permutation_is_equally_likely():
    rows = rows_of_steps(EpochShuffle(2), 4, range(2 * 24_000)).reshape(-1, 4)
    assert (np.sort(rows, axis=1) == np.arange(4)).all()
    permutations = equally(itertools.permutations(range(4)))
    assert p_value(map(tuple, rows.tolist()), permutations) > LIMIT


def test_the_test_of_permutations_sees_the_classic_wrong_shuffle():
    generator = np.random.default_rng(0)
    order = np.tile(np.arange(4), (24_000, 1))
    for one in order:
        for i in range(4):
            j = generator.integers(0, 4)  # from the whole, not from what is left
            one[i], one[j] = one[j], one[i]
    assert p_value(map(tuple, order.tolist()), equally(itertools.permutations(range(4)))) < LIMIT


def test_rows_left_over_wait_for_the_next_epoch():
    rows = rows_of_steps(EpochShuffle(3), 11, range(3 * 4000)).reshape(-1, 9)
    assert all(len(set(epoch)) == 9 for epoch in rows.tolist())
    left = [11 * 10 // 2 - sum(epoch) for epoch in rows.tolist()]  # the sum of the two rows left out
    assert len(set(left)) == 19  # all sums from 0 + 1 to 9 + 10
    assert p_value(rows.ravel().tolist(), equally(range(11))) > LIMIT


def test_a_batch_of_all_rows_is_a_new_order_each_step():
    rows = rows_of_steps(EpochShuffle(6), 6, range(50))
    assert (np.sort(rows, axis=1) == np.arange(6)).all()
    assert len({r.tobytes() for r in rows}) > 40


# ---- what the choice depends on -----------------------------------------------------------------------------------------

all_kinds = pytest.mark.parametrize("minibatch", [WithReplacement(4), WithoutReplacement(4), EpochShuffle(4)])


@all_kinds
def test_rows_depend_on_seed_chain_and_step_alone(minibatch):
    rows = rows_of_steps(minibatch, 22, range(40))
    np.testing.assert_array_equal(rows_of_steps(minibatch, 22, range(40), fresh=True), rows)
    np.testing.assert_array_equal(rows_of_steps(minibatch, 22, range(39, -1, -1))[::-1], rows)
    np.testing.assert_array_equal(rows_of_steps(minibatch, 22, [17])[0], rows[17])
    for other in ({"seed": 2}, {"chain": 1}):
        assert not np.array_equal(rows_of_steps(minibatch, 22, range(40), **other), rows)
    assert len({r.tobytes() for r in rows}) > 35


@pytest.mark.parametrize("minibatch", [*(kind(1) for kind in KINDS.values()), Blocks(3, 4, 1)])
def test_the_one_row_of_a_step_is_the_same_after_a_look_at_that_of_the_next(minibatch):
    # What a step does that measures the gradient noise of batches of one row: its own, the next one's, its own again.
    steps = [s + ahead for s in range(60) for ahead in (0, 1, 0)]
    rows = rows_of_steps(minibatch, 22, range(61))
    np.testing.assert_array_equal(rows_of_steps(minibatch, 22, steps), rows[steps])
    assert len(set(rows.ravel().tolist())) > 15


@pytest.mark.parametrize("make", [memory, lookahead])
@pytest.mark.parametrize("minibatch", [*(kind(4) for kind in KINDS.values()), Blocks(3, 4, 4)])
def test_memory_that_another_chain_used_is_forgotten(minibatch, make):
    def rows_of_chain(chain, scratch):
        rows = row_buffer(minibatch, 22)
        choose_rows(minibatch, 22, stream(1, chain), np.int64(2), scratch, rows)
        return rows.copy()

    scratch = make(minibatch, 22)
    for chain in range(20):
        forget(minibatch, scratch)
        np.testing.assert_array_equal(rows_of_chain(chain, scratch), rows_of_chain(chain, make(minibatch, 22)))
    if scratch.size:  # the control: one that remembers chooses otherwise
        remembered = [rows_of_chain(chain, scratch) for chain in range(20)]
        fresh = [rows_of_chain(chain, make(minibatch, 22)) for chain in range(20)]
        assert not np.array_equal(remembered, fresh)


class Recorder:
    """A gradient that remembers the rows it was asked for."""

    def __init__(self):
        self.rows = []

    def __call__(self, theta, data, rows):
        self.rows.append((float(theta[0]), tuple(rows.tolist())))
        return np.ones_like(theta)


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_run_asks_for_these_rows_whatever_the_chunks_and_chains(kind, monkeypatch):
    expected = {chain: rows_of_steps(KINDS[kind](4), 22, range(30), seed=9, chain=chain) for chain in range(3)}
    for seconds in (job.CHUNK_SECONDS, 1e-12):
        monkeypatch.setattr("sgmcmc.run.job.CHUNK_SECONDS", seconds)
        recorder = Recorder()
        function = lambda theta, data, rows, r=recorder: r(theta, data, rows)  # noqa: E731
        model = sg.Potential(function, dim=3, data=np.zeros((22, 1)), additive=False)
        recorder.rows.clear()  # of the first look
        # chains share their scratch space in groups, which here are as large as can be
        monkeypatch.setattr(scheduler, "split", lambda chains, parts: [chains])
        # warn=False: this theta runs away, and to say so, sample looks at the gradient of all rows once more
        options = {"draws": 30, "warmup": 0, "chains": 3, "seed": 9, "progress": False, "warn": False}
        trace = sg.sample(model, sg.SGNHT(0.1), batch_size=4, minibatch=kind, **options)
        asked = dict.fromkeys(range(3), ())
        starts = {float(trace.draws[c, t, 0]): c for c in range(3) for t in range(30)}
        for theta, rows in recorder.rows:
            if theta in starts:  # all but the first step of each chain, which begins at no draw
                asked[starts[theta]] += (rows,)
        for chain in range(3):
            assert asked[chain] == tuple(map(tuple, expected[chain][1:].tolist()))


# ---- the gradient -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_gradient_estimate_is_unbiased(kind):
    generator = np.random.default_rng(3)
    data = generator.normal(size=(12, 3)) * np.array([1.0, 5.0, 0.2])
    model = sg.Potential(
        lambda theta, data, rows: data[rows].sum(axis=0), dim=3, data=data, prior=sg.priors.Gaussian(2.0)
    )
    theta = np.array([1.0, 2.0, 3.0])
    exact = data.sum(axis=0) + theta / 4.0
    np.testing.assert_allclose(model.gradient(theta), exact, rtol=1e-12)
    rows = rows_of_steps(KINDS[kind](3), 12, range(4000))
    estimates = np.array([model.gradient(theta, rows=r) for r in rows])
    # the batches of an epoch balance each other, which only makes the mean more accurate than z thinks
    z = (estimates.mean(axis=0) - exact) / (estimates.std(axis=0) / np.sqrt(len(rows)))
    assert np.abs(z).max() < 5.0
    wrong = (estimates.mean(axis=0) * 11.0 / 12.0 - exact) / (estimates.std(axis=0) / np.sqrt(len(rows)))
    assert np.abs(wrong).max() > 5.0


def test_the_full_data_set_is_every_row_in_order():
    assert row_buffer(FullData(), 5).tolist() == [0, 1, 2, 3, 4]
    assert rows_of_steps(FullData(), 5, [3]).tolist() == [[0, 1, 2, 3, 4]]
    assert memory(FullData(), 5).size == 0


# ---- how it is asked for ------------------------------------------------------------------------------------------------


def test_a_size_and_a_name_make_a_minibatch():
    assert as_minibatch(None, "replacement", 10) == FullData()
    for name, kind in KINDS.items():
        made = as_minibatch(10, name, 10)
        assert type(made) is kind
        assert made.size == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((11, "replacement", 10), "batch_size=11 is larger than the data set of 10 rows; choose 1 to 10, or None"),
        ((0, "replacement", 10), "batch_size=0 is out of range"),
        ((5, "replacement", 0), "batch_size=5 was given, but the model has no data rows"),
        ((5, "random", 10), "minibatch='random' is unknown; choose one of 'replacement', 'no-replacement', 'shuffle'"),
    ],
)
def test_what_makes_no_minibatch_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        as_minibatch(*arguments)


def test_the_rows_that_are_said_to_come_are_those_of_the_next_step():
    """What a model is told to expect: wrong rows would change no draw, and only make it slow."""
    minibatch, own = WithReplacement(16), stream(1, 0)
    rows, scratch = row_buffer(minibatch, 1000), lookahead(minibatch, 1000)
    foretold = None
    known = 0
    for step in range(200):
        choose_rows(minibatch, 1000, own, np.int64(step), scratch, rows)
        if foretold is not None and foretold.size:
            np.testing.assert_array_equal(foretold, rows)
            known += 1
        low, high = coming(minibatch, step, scratch, rows.size)
        foretold = scratch[low:high].copy()
    assert known == 199 - 200 // 64  # not over the end of a block of 64 steps
    assert coming(minibatch, 0, memory(minibatch, 1000), rows.size) == (0, 0)
    assert coming(EpochShuffle(16), 0, memory(EpochShuffle(16), 1000), rows.size) == (0, 0)
