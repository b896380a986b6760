"""Coordinate sharding: the same bits on any number of threads, the same step as by ask and tell, no endless waiting."""

from __future__ import annotations

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.integrators import threaded as spread
from sgmcmc.run import coordinate_sharding, loop_compiled, row_sharding, sharding

DIM = spread.LONG + 3 * spread.PIECE + 777  # the last shard and the last block are not full
MODEL = sg.models.Gaussian(np.zeros(DIM), np.linspace(0.5, 2.0, DIM))
START = np.linspace(-1.0, 1.0, DIM)
SAMPLERS = {
    "SGLD": sg.SGLD(1e-2),
    "SGHMC": sg.SGHMC(1e-1),
    "SGNHT": sg.SGNHT(1e-1, scale=np.linspace(0.7, 1.4, DIM)),
    "SGMGTD": sg.SGMGTD(1e-1, a=1.0, resample_momentum=2, resample_thermostat=3),
}


def run(threads, sampler=SAMPLERS["SGNHT"], model=MODEL, **options):
    settings = {"chains": 1, "warmup": 2, "seed": 5, "progress": False, "warn": False, "init": START} | options
    return sg.sample(model, sampler, 5, threads=threads, **settings)


@pytest.fixture
def made(monkeypatch):
    """The numbers of threads of the sharded chains that runs make."""
    found, make = [], sharding.CoordinateShardedTask.split
    monkeypatch.setattr(
        sharding.CoordinateShardedTask, "split", lambda self, size: (found.append(size), make(self, size))[1]
    )
    return found


def same(one, other):
    np.testing.assert_array_equal(one.draws, other.draws)
    np.testing.assert_array_equal(one.kinetic_temperature, other.kinetic_temperature)
    np.testing.assert_array_equal(one.configurational_temperature, other.configurational_temperature)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", SAMPLERS)
def test_a_chain_is_the_same_bits_on_any_number_of_threads(name, dtype, made):
    one = run(1, SAMPLERS[name], dtype=dtype)
    for threads in (2, 3):
        same(one, run(threads, SAMPLERS[name], dtype=dtype))
    assert made == [2, 3]


def test_nor_does_it_depend_on_chunks_on_other_chains_or_on_pauses_of_sharding(monkeypatch, made):
    whole = run(2)
    np.testing.assert_array_equal(whole.draws[0], run(4, chains=2).draws[0])
    monkeypatch.setattr("sgmcmc.run.job.CHUNK_SECONDS", 1e-12)  # a step at a time
    same(whole, run(2))
    monkeypatch.setattr(sharding, "MIN_GAIN", 0.0)  # sharding is always found too slow
    same(whole, run(2))
    assert made == [2, 2, 2, 2, 2]


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_draws_are_those_of_ask_and_tell(name):
    sampler = SAMPLERS[name]
    state = sampler.init(START, seed=5, gradient_variance=0.0)  # exact gradients, as a run knows by itself
    for _ in range(3):
        state = sampler.step(state, MODEL.gradient(state.theta))
    np.testing.assert_allclose(run(2, sampler, warmup=0).draws[0, 2], state.theta, rtol=1e-12, atol=1e-13)


def test_temperatures_are_those_of_the_draws():
    """Computed here from every state. The control: of all shards but one they differ."""
    trace = run(2, sg.SGHMC(1e-1), warmup=0, init={"theta": START, "p": np.ones(DIM)})
    theta = trace.draws[0].astype(np.float64)
    gradient = theta[:4] / np.linspace(0.5, 2.0, DIM)  # those of steps 1 to 4 are at draws 0 to 3
    work = (theta[:4] - START) * gradient
    assert trace.configurational_temperature[0] == pytest.approx(work.sum(axis=1).mean() / DIM, rel=1e-9)
    less = work[:, spread.PIECE :].sum(axis=1).mean() / DIM
    assert trace.configurational_temperature[0] != pytest.approx(less, rel=1e-3)


def test_a_divergence_is_that_of_one_thread(made):
    wild = sg.SGNHT(1e30)
    with pytest.raises(sg.DivergenceError) as alone:
        run(1, wild)
    with pytest.raises(sg.DivergenceError) as together:
        run(2, wild)
    assert made == [2]
    assert str(alone.value) == str(together.value)


def test_one_number_that_is_not_finite_is_seen_in_every_shard():
    for place in (0, spread.PIECE, DIM - 1):
        variances = np.ones(DIM)
        variances[place] = 1e-300  # a gradient of 1e300 there, whose square is infinite
        with pytest.raises(sg.DivergenceError):
            run(2, sg.SGNHT(1.0), sg.models.Gaussian(np.zeros(DIM), variances), init=np.ones(DIM))


@pytest.mark.parametrize("leader", [True, False], ids=["leader", "helper"])
def test_no_thread_waits_for_one_that_failed(leader, monkeypatch):
    run(2)  # compiled
    place, name = (loop_compiled, "run_chunk") if leader else (sharding, "run_helper")
    inside = getattr(place, name)

    def failing(*arguments):
        sizes = arguments[8 if leader else 9]
        if sizes.size > 0:
            raise FloatingPointError("no such number")
        return inside(*arguments)

    monkeypatch.setattr(place, name, failing)
    with pytest.raises(FloatingPointError, match="no such number"):
        run(2)


def test_short_chains_and_gradients_in_python_have_no_shards(made):
    dynamics = sg.SGNHT(0.1).dynamics(spread.LONG - 1, np.float64)
    assert (
        coordinate_sharding.coordinate_shards_for(dynamics, MODEL, spread.LONG - 1, np.float64)
        == row_sharding.Unsharded()
    )
    in_python = sg.Potential(lambda theta: theta, dim=DIM)
    same(run(1, model=in_python), run(2, model=in_python))
    assert made == []
