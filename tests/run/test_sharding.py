"""One chain on several threads: the same bits as on one, and no thread waits for one that failed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.compiler.intrinsics import give_signal, read_signal, yield_address
from sgmcmc.kernels import kernel
from sgmcmc.potentials import add_gradient, estimate
from sgmcmc.run import loop_compiled, row_sharding, sharding

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3000, 40))
Y = (RNG.random(3000) < 0.5).astype(np.float64)
MODEL = sg.models.LogisticRegression(X, Y, prior=sg.priors.Gaussian(1.0))
SAMPLER = sg.SGNHT(1e-2)


def run(threads, sampler=SAMPLER, **options):
    settings = {"chains": 1, "batch_size": 1000, "warmup": 3, "seed": 5, "progress": False} | options
    return sg.sample(MODEL, sampler, 20, threads=threads, **settings)


@pytest.fixture
def made(monkeypatch):
    """The numbers of threads of the sharded chains that runs make."""
    found, make = [], sharding.ShardedTask.__init__
    monkeypatch.setattr(sharding.ShardedTask, "__init__", lambda self, *a: (found.append(a[2]), make(self, *a))[1])
    return found


@pytest.mark.parametrize("options", [{}, {"minibatch": "shuffle"}, {"batch_size": None}, {"dtype": np.float32}])
def test_draws_do_not_depend_on_the_number_of_threads(options, made):
    one = run(1, **options)
    for threads in (2, 3, 8, 11):
        other = run(threads, **options)
        np.testing.assert_array_equal(one.draws, other.draws)
        np.testing.assert_array_equal(one.kinetic_temperature, other.kinetic_temperature)
        np.testing.assert_array_equal(one.configurational_temperature, other.configurational_temperature)
    assert made == ([2, 3, 6, 6] if "batch_size" in options else [2, 2, 2, 2])  # no more than there are shards


def test_nor_on_the_length_of_chunks_or_on_other_chains(monkeypatch, made):
    whole = run(2)
    np.testing.assert_array_equal(whole.draws[0], run(4, chains=2).draws[0])
    np.testing.assert_array_equal(whole.draws[0], run(2, chains=3).draws[0])
    assert made == [2, 2, 2]  # one chain; two chains with two threads each; three chains take turns
    monkeypatch.setattr("sgmcmc.run.job.CHUNK_SECONDS", 1e-12)
    np.testing.assert_array_equal(whole.draws, run(2).draws)


def test_short_gradients_are_left_alone(made):
    run(2, batch_size=100)
    assert made == []
    whole = row_sharding.row_shards_for(MODEL, 40, sg.minibatch.WithReplacement(100), 3000, np.float64)
    assert whole == row_sharding.Unsharded()


@pytest.mark.parametrize("rows", [np.arange(3000), RNG.integers(0, 3000, 1003)], ids=["all", "some"])
def test_shards_add_up_to_the_sum_over_all_rows(rows):
    theta, whole, own = RNG.standard_normal(40), np.zeros(40), np.zeros(40)

    @kernel
    def both(shards, model, theta, rows, whole, own):
        estimate(model, theta, rows, 1.5, whole)
        row_sharding.estimate_sharded(shards, model, theta, rows, 1.5, 0, own)

    both(
        row_sharding.row_shards_for(MODEL, 40, sg.minibatch.WithReplacement(rows.size), 3000, np.float64),
        MODEL,
        theta,
        rows,
        whole,
        own,
    )
    np.testing.assert_allclose(own, whole, rtol=1e-12, atol=1e-12)


def test_a_missing_row_would_be_noticed():
    """The control of the test above: one row less shows."""
    theta, whole, less = RNG.standard_normal(40), np.zeros(40), np.zeros(40)

    @kernel
    def sums(model, theta, rows, out):
        add_gradient(model, theta, rows, out)

    sums(MODEL, theta, np.arange(3000), whole)
    sums(MODEL, theta, np.arange(2999), less)
    assert not np.allclose(less, whole, rtol=1e-12, atol=1e-12)


def test_a_divergence_is_that_of_one_thread(made):
    wild = sg.SGNHT(1e6)
    with pytest.raises(sg.DivergenceError) as alone:
        run(1, sampler=wild)
    with pytest.raises(sg.DivergenceError) as together:
        run(2, sampler=wild)
    assert made == [2]
    assert str(alone.value) == str(together.value)


@pytest.mark.parametrize("leader", [True, False], ids=["leader", "helper"])
def test_no_thread_waits_for_one_that_failed(leader, monkeypatch):
    run(2)  # compiled
    inside = loop_compiled.run_chunk

    def failing(*arguments):
        if arguments[8].size > 0 and (arguments[4].row_shards.thread == 0) == leader:  # a step, and of this thread
            raise FloatingPointError("no such number")
        return inside(*arguments)

    monkeypatch.setattr(loop_compiled, "run_chunk", failing)
    with pytest.raises(FloatingPointError, match="no such number"):
        run(2)


@pytest.fixture
def judged():
    """A sharded chain whose chunks take given times."""
    found = sharding.ShardedTask.__new__(sharding.ShardedTask)
    found.count, found.number, found.seconds_alone, found.is_proven = 10**6, 0, np.inf, False
    found.pause, found.left = sharding.SHARDED_STEPS, 0

    def chunk(together, alone):
        is_together, most = found._turn()
        count = min(found.count, most)
        if found.number > 0:
            found._judge(is_together, count, together if is_together else alone)
        found.number += 1
        return is_together, count

    return chunk


def test_sharding_that_is_faster_goes_on(judged):
    chunks = [judged(3e-5, 6e-5) for _ in range(sharding.PROBE_EVERY)]
    assert chunks[:4] == [(True, 64), (False, 16), (True, 64), (True, 10**6)]
    assert all(together for together, _ in chunks[2:])
    assert judged(3e-5, 6e-5)[0]
    assert judged(3e-5, 6e-5) == (False, sharding.ALONE_STEPS)  # one thread is timed again


def test_sharding_that_was_slow_by_accident_is_soon_resumed(judged):
    for _ in range(2):
        judged(3e-5, 6e-5)
    assert judged(1e-3, 6e-5) == (True, 64)
    assert judged(3e-5, 6e-5) == (False, 64)
    assert judged(3e-5, 6e-5) == (True, 64)
    assert judged(3e-5, 6e-5) == (True, 10**6)


def test_sharding_that_stays_slow_is_tried_less_and_less_often(judged):
    chunks = [judged(1e-3, 6e-5) for _ in range(2 * sharding.PROBE_EVERY)]
    pauses = [count for together, count in chunks if not together and count > sharding.ALONE_STEPS]
    assert pauses[:4] == [64, 128, 256, 512]
    assert max(pauses) == int(sharding.MAX_PAUSE / 6e-5)
    tried = sum(count for together, count in chunks[1:] if together)
    assert tried * 1e-3 < 0.2 * sum(pauses) * 6e-5


@kernel
def count_in_turns(signals, me, seen, turns):
    """Two threads write one after the other into the same place; each checks what the other wrote."""
    right = 0
    for turn in range(me, 2 * turns, 2):
        while read_signal(signals, 0) < turn:
            pass
        right += seen[0] == turn
        seen[0] = turn + 1
        give_signal(signals, 0, turn + 1)
    return right


def test_a_signal_brings_along_what_was_written_before_it():
    signals, seen, turns = np.zeros(8, np.int64), np.zeros(1, np.int64), 2000
    count_in_turns(np.full(8, 9), 0, np.zeros(1, np.int64), 1)  # compiled
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(count_in_turns, signals, me, seen, turns) for me in (0, 1)]
    assert [f.result() for f in futures] == [turns, turns]


def test_this_system_lets_a_thread_give_way():
    assert yield_address() != 0
