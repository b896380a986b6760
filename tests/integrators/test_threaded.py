"""The update of a long vector on several threads: the same bits as on one, and nothing left running."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc import threads
from sgmcmc.integrators import BAOAB, Euler, State, SymmetricSplitting
from sgmcmc.integrators import threaded as spread
from sgmcmc.integrators.step import noise_buffers, update_once
from sgmcmc.moments import NoMoments
from sgmcmc.samplers import ask_and_tell as samplers
from sgmcmc.thermostats import NoseHoover

DIM = spread.LONG + 3 * spread.PIECE + 777  # the last piece and the last block are not full
EVERY = {"resample_momentum": 2, "resample_thermostat": 3}
UNITS = np.linspace(0.5, 2.0, DIM)
SAMPLERS = {
    "SGLD": sg.SGLD(1e-3),
    "SGLD-Euler-units": sg.SGLD(1e-3, integrator=Euler(), scale=UNITS),
    "SGHMC": sg.SGHMC(1e-2),
    "SGNHT": sg.SGNHT(1e-2),
    "SGNHT-units": sg.SGNHT(1e-2, scale=UNITS),
    "SGMGT": sg.SGMGT(1e-2, a=1.0, **EVERY),
    "SGMGTD-1-units": sg.SGMGTD(1e-2, a=1.0, scale=UNITS, **EVERY),
    "SGMGTD-2-BAOAB": sg.SGMGTD(1e-2, a=2.0, integrator=BAOAB(), **EVERY),
    "SGMGTD-general": sg.SGMGTD(1e-2, a=1.5, integrator=SymmetricSplitting(), **EVERY),
}


def steps(sampler, count, n_threads, monkeypatch, dtype=np.float32, moments=None):
    monkeypatch.setattr(samplers, "usable_cores", lambda: n_threads)
    state = sampler.init(np.linspace(-1.0, 1.0, DIM).astype(dtype), seed=3)
    for _ in range(count):
        state = sampler.step(state, np.tanh(state.theta), inplace=True, moments=moments)
    return state


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_chain_is_the_same_bits_on_one_two_and_three_threads(name, monkeypatch):
    found = [steps(SAMPLERS[name], 4, n, monkeypatch) for n in (1, 2, 3)]
    for other in found[1:]:
        for field in State._fields:
            np.testing.assert_array_equal(
                getattr(found[0].arrays, field), getattr(other.arrays, field), err_msg=f"{name} {field}"
            )
    assert np.isfinite(found[0].theta).all()
    assert np.abs(found[0].theta - np.linspace(-1.0, 1.0, DIM)).min() > 0.0  # every coordinate has moved


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_moments_do_not_depend_on_the_threads(dtype, monkeypatch):
    found = []
    for n in (1, 2, 3):
        moments = sg.Moments()
        steps(SAMPLERS["SGNHT"], 3, n, monkeypatch, dtype, moments)
        found.append((moments.mean, moments.variance))
    for mean, variance in found[1:]:
        np.testing.assert_array_equal(mean, found[0][0])
        np.testing.assert_array_equal(variance, found[0][1])
    assert (found[0][1] > 0.0).all()


@pytest.mark.parametrize("name", ["SGHMC", "SGNHT-units", "SGMGTD-1-units"])
def test_pieces_and_the_whole_vector_are_the_same_step(name):
    sampler = SAMPLERS[name]
    dynamics = sampler.dynamics(DIM, np.float32)
    start = sampler.init(np.linspace(-1.0, 1.0, DIM).astype(np.float32), seed=4)
    one, two = (State(*(a.copy() for a in start.arrays)) for _ in range(2))
    gradient, h = np.cos(start.theta), np.float32(0.01)
    place = (start.stream, np.int64(5), h, h)
    whole = update_once(dynamics, one, gradient, noise_buffers(dynamics, DIM, np.float32), NoMoments(), *place)
    parts = [update_spread_copy(dynamics, two, gradient, place, n) for n in (1, 3)]
    for field in State._fields:
        np.testing.assert_array_equal(getattr(one, field), getattr(two, field), err_msg=field)
    assert parts[0] == parts[1] == pytest.approx(whole, rel=1e-5)


def update_spread_copy(dynamics, state, gradient, place, n_threads):
    """A step of `state`; all but the last are undone."""
    before = State(*(a.copy() for a in state))
    virial = spread.update_spread(dynamics, state, gradient, NoMoments(), *place, n_threads)
    if n_threads == 1:
        for array, old in zip(state, before, strict=True):
            array[:] = old
    return virial


def test_one_friction_for_a_whole_chain_stays_on_one_thread():
    chain = sg.Sampler(1e-2, thermostat=NoseHoover(per="chain"))
    assert not spread.is_long(chain.dynamics(DIM), DIM)
    assert spread.is_long(SAMPLERS["SGNHT"].dynamics(DIM), DIM)
    assert not spread.is_long(SAMPLERS["SGNHT"].dynamics(DIM), spread.LONG - 1)


def test_a_run_with_a_python_gradient_is_the_same_on_any_number_of_threads():
    model = sg.Potential(lambda theta: np.tanh(theta), dim=DIM)
    runs = [
        sg.sample(
            model, sg.SGNHT(1e-2), draws=2, warmup=2, chains=2, seed=1, dtype=np.float32, threads=n, progress=False
        )
        for n in (1, 2)
    ]
    np.testing.assert_array_equal(runs[0].draws, runs[1].draws)
    np.testing.assert_array_equal(runs[0].kinetic_temperature, runs[1].kinetic_temperature)


# ---- sharing --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_threads", [1, 2, 3, 7, 50])
def test_every_part_is_done_once_on_no_more_threads_than_asked_for(n_threads):
    done, who = np.zeros(10, int), set()

    def work(low, high):
        done[low:high] += 1
        who.add(threading.get_ident())

    threads.share(work, 10, n_threads)
    assert done.tolist() == [1] * 10
    assert threading.get_ident() in who
    assert len(who) <= min(n_threads, 10)


def test_helpers_are_kept_from_call_to_call():
    threads.share(lambda low, high: None, 2, 2)
    before = threads._Helpers.pool
    threads.share(lambda low, high: None, 2, 2)
    assert threads._Helpers.pool is before


@pytest.mark.parametrize("where", ["here", "there"])
def test_an_error_is_raised_once_nothing_runs_any_more(where):
    finished = []

    def work(low, high):
        if (low == 0) == (where == "here"):
            raise KeyboardInterrupt(where)
        time.sleep(0.05)
        finished.append(low)

    with pytest.raises(KeyboardInterrupt, match=where):
        threads.share(work, 2, 2)
    assert len(finished) == 1


def test_a_pool_is_lent_to_one_at_a_time_and_again_afterwards():
    with threads.borrowed_pool(2) as first, threads.borrowed_pool(2) as second:
        assert first is not second
    with threads.borrowed_pool(2) as again:
        assert again in (first, second)
        assert again.submit(int).result() == 0


def test_a_pool_in_which_something_may_still_run_is_not_lent_again():
    with pytest.raises(FloatingPointError), threads.borrowed_pool(3) as lost:
        raise FloatingPointError
    with threads.borrowed_pool(3) as pool:
        assert pool is not lost


@pytest.mark.skipif(not hasattr(os, "fork"), reason="asks for fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_helpers_of_its_own():
    threads.share(lambda low, high: None, 2, 2)
    with threads.borrowed_pool(2) as pool:
        pool.submit(int).result()
    child = os.fork()
    if child == 0:
        threads.share(lambda low, high: None, 2, 2)
        with threads.borrowed_pool(2) as pool:
            pool.submit(int).result()
        os._exit(17)
    for _ in range(200):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        time.sleep(0.05)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert pid
    assert os.waitstatus_to_exitcode(status) == 17


@pytest.mark.parametrize("shape", [(0,), (3,), (25,), (81, 25), (1, 0)])
def test_arrays_on_lines_of_their_own_share_none(shape):
    array = np.random.default_rng(0).random(shape)
    rooms = [threads.rows_on_own_lines([array[None]] * count, 1) for count in (25, *[1] * 25)]
    copies = [own[0] for room in rooms for own in room]
    assert all(np.array_equal(own, array) and own.flags.c_contiguous and own.flags.writeable for own in copies)
    pairs = [n for own in copies for n in range(own.ctypes.data // 128, -(-(own.ctypes.data + own.nbytes) // 128))]
    assert len(set(pairs)) == len(pairs)


def test_rows_on_lines_of_their_own_share_none_with_other_rows():
    rng = np.random.default_rng(0)
    given = [rng.random((9, 3)), rng.random((1, 40)), rng.random((9, 0)), rng.random((9, 2, 5)), np.arange(9)[:, None]]
    copies = threads.rows_on_own_lines(given, 9)
    lines = set()
    for i in range(9):
        for array, copy in zip(given, copies, strict=True):
            row = copy[i]
            np.testing.assert_array_equal(row, array[i % len(array)])
            assert row.dtype == array.dtype
            assert row.flags.c_contiguous
            assert row.flags.writeable
            own = set(range(row.ctypes.data // 128, -(-(row.ctypes.data + row.nbytes) // 128)))
            assert not lines & own
            lines |= own


def test_plain_arrays_do_share_lines():
    """The control of the test above."""
    rows = np.zeros((50, 3))
    lines = [n for row in rows for n in {row.ctypes.data // 128, (row.ctypes.data + row.nbytes - 1) // 128}]
    assert len(set(lines)) < len(lines)
