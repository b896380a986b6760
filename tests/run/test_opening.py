"""The opening of a run: the calling thread takes part, nothing is lost on Ctrl-C, and nobody else's code keeps it busy."""

from __future__ import annotations

import os
import signal
import threading
import time

import numba
import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.potentials import is_ours
from sgmcmc.run import scheduler
from sgmcmc.run.opening import open_run

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((200, 20)), (RNG.random(200) < 0.5).astype(np.float64)
MODEL = sg.models.LogisticRegression(X, Y, prior=sg.priors.Gaussian(1.0))
LONG = 30_000  # draws, for more than one chunk


def run(draws=3000, **options):
    settings = {"chains": 4, "warmup": 5, "batch_size": 8, "seed": 3, "progress": False, "warn": False, "threads": 2}
    return sg.sample(MODEL, sg.SGNHT(1e-2), draws, **settings | options)


class Worker:
    """A task of some chunks that notes which threads ran it."""

    def __init__(self, seconds=0.0, error=None, chunks=1, busy=()):
        self.seconds, self.error, self.steps_left, self.busy = seconds, error, 7 * chunks, busy
        self.thread, self.threads, self.ended = None, [], False

    def chunk(self):
        self.thread = threading.get_ident()
        self.threads.append(self.thread)
        time.sleep(self.seconds * (10 if self.thread in self.busy else 1))
        self.ended = True
        if self.error is not None:
            raise self.error
        self.steps_left -= 7
        return 7


@pytest.fixture
def handler():
    """Ctrl-C is heard, also where the tests run in the background of a shell, which has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_one_thread_is_the_one_that_asks():
    workers = [Worker() for _ in range(3)]
    assert open_run(workers, 1, time.perf_counter() + 9.0) == [7, 7, 7]
    assert {w.thread for w in workers} == {threading.get_ident()}


def test_two_threads_share_the_tasks_and_this_is_one_of_them():
    workers = [Worker(0.05) for _ in range(4)]
    assert open_run(workers, 2, time.perf_counter() + 9.0) == [7, 7, 7, 7]
    assert len({w.thread for w in workers}) == 2
    assert threading.get_ident() in {w.thread for w in workers}


def test_what_has_not_begun_in_time_is_left_to_the_crew():
    workers = [Worker(0.05) for _ in range(4)]
    steps = open_run(workers, 2, time.perf_counter() + 0.03)
    assert sorted(steps) == [0, 0, 7, 7]
    assert [w.thread is None for w in workers] == [s == 0 for s in steps]


def test_tasks_take_turns_until_they_are_done():
    workers, order = [Worker(chunks=c) for c in (3, 1, 2)], []
    for i, worker in enumerate(workers):
        worker.chunk = lambda chunk=worker.chunk, i=i: order.append(i) or chunk()
    assert open_run(workers, 1, time.perf_counter() + 9.0) == [21, 7, 14]
    assert order == [0, 1, 2, 0, 2, 0]


def test_a_thread_that_is_held_up_leaves_more_to_the_others():
    us = threading.get_ident()
    workers = [Worker(0.002, chunks=25, busy={us}) for _ in range(4)]
    assert open_run(workers, 2, time.perf_counter() + 9.0) == [175] * 4
    ours = sum(thread == us for worker in workers for thread in worker.threads)
    assert 0 < ours < 25  # of 100; an eleventh if all goes well, and half of them if each had its share


@pytest.mark.parametrize("which", [0, 1, 2, 3])
def test_an_error_is_passed_on_after_everybody_has_ended(which):
    workers = [Worker(0.02, FloatingPointError("no such number") if i == which else None) for i in range(4)]
    with pytest.raises(FloatingPointError, match="no such number"):
        open_run(workers, 2, time.perf_counter() + 9.0)
    assert all(w.ended for w in workers if w.thread is not None)


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is a POSIX signal")
def test_ctrl_c_ends_the_opening_after_a_chunk_of_every_task(handler):
    workers, press = [Worker(chunks=100) for _ in range(3)], Worker(chunks=100)
    chunk = press.chunk
    press.chunk = lambda: os.kill(os.getpid(), signal.SIGINT) or chunk()
    steps = []
    with pytest.raises(KeyboardInterrupt):
        steps = open_run([press, *workers], 1, time.perf_counter() + 9.0)
    assert steps == []  # it was raised at the end
    assert [len(w.threads) for w in (press, *workers)] == [1, 1, 1, 1]


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is a POSIX signal")
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_lets_all_tasks_begin_though_the_time_is_up(threads, handler):
    workers, press = [Worker(chunks=100) for _ in range(3)], Worker(0.2, chunks=100)
    chunk = press.chunk
    press.chunk = lambda: os.kill(os.getpid(), signal.SIGINT) or chunk()
    tasks = [press, *workers] if threads == 1 else [press, Worker(0.2, chunks=100), *workers]
    with pytest.raises(KeyboardInterrupt):
        open_run(tasks, threads, time.perf_counter() + 0.1)
    assert [len(w.threads) for w in tasks] == [1] * len(tasks)


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is a POSIX signal")
@pytest.mark.parametrize("held_up", [0.0, 0.2])  # seconds; the opening lasts less than a tenth
@pytest.mark.parametrize("chains", [1, 4])
def test_ctrl_c_in_the_opening_waits_for_the_steps_and_loses_none(chains, held_up, monkeypatch, handler):
    kernel_of, pressed = scheduler.Job.advance, []

    def advance(job, chain, buffers, count):
        if count > 0 and not pressed:
            pressed.append(chain.number)
            os.kill(os.getpid(), signal.SIGINT)
        if count > 0:
            time.sleep(held_up)
        return kernel_of(job, chain, buffers, count)

    monkeypatch.setattr(scheduler.Job, "advance", advance)
    part = run(LONG, chains=chains)
    monkeypatch.undo()
    assert pressed
    assert part.info["interrupted"]
    assert part.final["step"].min() == 5 + part.n_draws
    whole = run(LONG, chains=chains)
    assert 0 < part.n_draws < whole.n_draws
    np.testing.assert_array_equal(part.draws, whole.draws[:, : part.n_draws])
    begin = int(part.final["step"].max()) - 5
    rest = run(draws=20, warmup=0, init=part, chains=chains)
    np.testing.assert_array_equal(rest.draws, whole.draws[:, begin : begin + 20])


def test_a_short_run_does_not_wait_for_another_thread(monkeypatch):
    def never(*arguments, **options):
        raise AssertionError("a thread was waited for")

    run(chains=1)  # compiled
    monkeypatch.setattr(scheduler, "wait", never)
    monkeypatch.setattr("sgmcmc.run.job.CHUNK_SECONDS", 60.0)  # however slow the machine is
    assert run(chains=1).draws.shape == (1, 3000, 20)


def test_chunks_of_the_opening_end_with_it():
    """All wait for each other there: a chunk of 0.15 s, begun in the last moment, would keep the others from going on."""
    task = scheduler.Task(None, [])
    for left, expected in ((10.0, 1500), (0.05, 500), (0.0, 23)):
        task.count, task.opens_until = 1500, time.perf_counter() + left
        task.next_count(100, 0.01)  # 0.1 ms each
        assert expected - 30 <= task.count <= expected
    task.opens_until = None
    task.next_count(100, 0.01)
    assert task.count == 1472  # the control: 64 times as many as before, of at most 1500


def test_progress_is_told_every_step():
    told = []
    run(progress=told.append)
    assert sum(told) == 4 * 3005


def test_a_divergence_in_the_opening_is_the_same_error_on_any_number_of_threads():
    errors = []
    for threads in (1, 2):
        with pytest.raises(sg.DivergenceError) as caught:
            run(init=np.full(20, 1e300), chains=1, threads=threads)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


@numba.njit
def slope_of(theta):
    return theta


def test_code_of_others_never_runs_on_the_calling_thread():
    seen = set()

    def gradient(theta):
        seen.add(threading.get_ident())
        return theta

    model = sg.Potential(gradient, dim=3)
    seen.clear()  # it is tried when the model is made
    sg.sample(model, sg.SGLD(0.1), 20, warmup=0, chains=2, seed=1, progress=False, warn=False)
    assert seen
    assert threading.get_ident() not in seen


def test_whose_code_a_model_is():
    class Mine(sg.models.LogisticRegression):
        pass

    theirs = sg.Potential(slope_of, dim=3)
    assert is_ours(MODEL)
    assert is_ours(sg.estimators.control_variate(MODEL, np.zeros(20)))
    for model in (theirs, sg.Potential(lambda theta: theta, dim=3), Mine(X, Y)):
        assert not is_ours(model)
    assert not is_ours(MODEL._replace(prior=theirs))  # whatever is inside
