"""Chains on other processes: the same bits as here, whatever the executor, also when a worker dies."""

from __future__ import annotations

import logging
import math
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import NamedTuple

import numba
import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.potentials import add_gradient
from sgmcmc.run import pickling, remote, scheduler

rng = np.random.default_rng(7)
X = rng.normal(size=(60, 3))
Y = rng.poisson(1.0, 60).astype(float)


class Banana(NamedTuple):
    """U = θ₀²/2 + (θ₁ − bend·θ₀²)²/2."""

    bend: float
    dim: int = 2


@sg.implements(add_gradient, Banana)
def _(model, theta, rows, out):
    gap = theta[1] - model.bend * theta[0] * theta[0]
    out[0] += theta[0] - 2.0 * model.bend * theta[0] * gap
    out[1] += gap


@numba.njit
def rate(z):
    return math.exp(z)


@numba.njit
def poisson(theta, data, rows, out):
    X, y = data
    for i in rows:
        z = 0.0
        for j in range(theta.size):
            z += X[i, j] * theta[j]
        for j in range(theta.size):
            out[j] += (rate(z) - y[i]) * X[i, j]


def plain(theta):
    return theta


MODELS = {
    "lanes": (sg.models.Gaussian(np.zeros(3), 1.0), {}),
    "built in": (sg.models.LogisticRegression(X, Y > 0), {"batch_size": 16}),
    "own tuple": (Banana(0.5), {}),
    "own njit": (sg.Potential(poisson, dim=3, data=(X, Y)), {"batch_size": 16, "minibatch": "shuffle"}),
    "own python": (sg.Potential(plain, dim=2), {}),
}


def run(name="built in", **options):
    model, own = MODELS[name]
    settings = {"draws": 200, "warmup": 10, "chains": 3, "seed": 11, "progress": False} | own | options
    return sg.sample(settings.pop("model", model), sg.SGNHT(settings.pop("step", 0.02)), **settings)


def same(one, two):
    np.testing.assert_array_equal(one.draws, two.draws)
    for name, value in one.final.items():
        np.testing.assert_array_equal(value, two.final[name], err_msg=name)
    np.testing.assert_array_equal(one.kinetic_temperature, two.kinetic_temperature)
    for mine, other in zip(one.moments or (), two.moments or (), strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.fixture(scope="module", params=["spawn", "fork"])
def processes(request):
    if request.param not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {request.param}")
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(request.param)) as pool:
        yield pool


@pytest.mark.parametrize("name", MODELS)
def test_processes_draw_the_same_bits(name, processes):
    same(run(name, executor=processes), run(name))


@pytest.mark.parametrize("kept", [{"keep": "moments"}, {"keep": lambda theta: theta**2}])
def test_what_is_kept_is_worked_out_there_and_is_the_same(kept, processes, tmp_path):
    same(run(executor=processes, **kept), run(**kept))


def test_draws_go_to_a_file_and_checkpoints_are_written_here(processes, tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "MOST_SECONDS", 0.01)
    options = {"checkpoint": tmp_path / "run.npz", "checkpoint_every": 0.0, "out": tmp_path / "draws.npy"}
    same(run(executor=processes, **options), run())
    same(run(resume=True, **options), run())


class Here(Executor):
    """Runs what it is given at once, after it went through a pickle; loses what it is told to."""

    def __init__(self, lose=()):
        self.lose, self.calls, self.bytes = set(lose), 0, []

    def submit(self, function, /, *arguments):
        self.calls += 1
        future = Future()
        data = pickling.cloudpickle.dumps(arguments)
        self.bytes.append(len(data))
        if self.calls in self.lose:
            future.set_exception(ConnectionError("the worker is gone"))
        else:
            future.set_result(function(*pickling.cloudpickle.loads(data)))
        return future


def test_a_chunk_that_is_lost_is_sent_again(monkeypatch, caplog):
    monkeypatch.setattr(remote, "MOST_SECONDS", 1e-9)  # chunks of one step
    executor = Here(lose=range(1, 200, 5))
    with caplog.at_level(logging.WARNING, "sgmcmc"):
        same(run(executor=executor), run())
    assert "is sent again" in caplog.text
    with pytest.raises(RuntimeError, match=r"was lost 5 times by executor= .*the worker is gone"):
        run(executor=Here(lose=range(1000)))


def test_the_model_travels_once_and_not_with_every_chunk(monkeypatch):
    monkeypatch.setattr(remote, "MOST_SECONDS", 1e-9)
    wide = sg.models.LogisticRegression(rng.normal(size=(20_000, 3)), rng.random(20_000) < 0.5)
    remote._known.clear()
    executor = Here()
    run(model=wide, executor=executor, chains=1)
    large = [size for size in executor.bytes if size > 100_000]
    assert len(large) == 1
    assert len(executor.bytes) > 5


def test_threads_will_do_as_an_executor():
    with ThreadPoolExecutor(2) as pool:
        same(run(executor=pool), run())


def test_divergence_there_is_told_here():
    with ThreadPoolExecutor(2) as pool:
        with pytest.raises(sg.DivergenceError, match="left the finite numbers") as there:
            run("lanes", executor=pool, step=30.0, draws=1000, chains=1)
        with pytest.raises(sg.DivergenceError) as here:
            run("lanes", step=30.0, draws=1000, chains=1)
        assert there.value.step == here.value.step
        start = np.zeros((3, 3))
        start[1] = 1e200
        dropped = {"init": start, "on_divergence": "drop", "step": 0.1}
        same(run("lanes", executor=pool, **dropped), run("lanes", **dropped))


def test_an_error_of_the_gradient_there_is_raised_here():
    def gradient(theta):
        if theta[0] != 0.0:
            raise FloatingPointError("no such number")
        return theta

    with ThreadPoolExecutor(1) as pool, pytest.raises(FloatingPointError, match="no such number"):
        run(model=sg.Potential(gradient, dim=2), batch_size=None, executor=pool)


def test_progress_counts_the_steps_there(monkeypatch):
    seen, real = [], scheduler.run

    def watched(threads, progress, *rest):
        return real(threads, lambda done: seen.append(done) or progress(done), *rest)

    monkeypatch.setattr(scheduler, "run", watched)
    run(executor=Here())
    assert sum(seen) == 3 * 210


def test_ctrl_c_gives_back_what_has_come_home(monkeypatch):
    monkeypatch.setattr(remote, "MOST_SECONDS", 1e-9)
    calls, real = [], scheduler.wait

    def wait(*args, **options):
        calls.append(None)
        if len(calls) == 60:
            raise KeyboardInterrupt
        return real(*args, **options)

    monkeypatch.setattr(scheduler, "wait", wait)
    part, whole = run(executor=Here()), run()
    assert part.info["interrupted"]
    np.testing.assert_array_equal(part.draws, whole.draws[:, : part.n_draws])
    assert 0 < part.n_draws < 200


def test_what_cannot_travel_is_told_in_one_sentence():
    lock = threading.Lock()

    def gradient(theta):
        with lock:
            return theta

    with ThreadPoolExecutor(1) as pool, pytest.raises(TypeError, match="cannot be sent to another process"):
        run(model=sg.Potential(gradient, dim=2), batch_size=None, executor=pool)
    with pytest.raises(TypeError, match="has no submit"):
        run(executor=3)


def test_mapped_data_travel_as_the_name_of_their_file(tmp_path):
    np.save(tmp_path / "x.npy", rng.normal(size=(20_000, 3)))
    np.save(tmp_path / "y.npy", (rng.random(20_000) < 0.5).astype(float))
    x, y = (np.load(tmp_path / f"{n}.npy", mmap_mode="r") for n in "xy")
    model = sg.models.LogisticRegression(x, y)
    data = pickling.to_bytes(model)
    assert len(data) < 5000
    there = pickling.from_bytes(data)
    np.testing.assert_array_equal(there.X, x)
    np.testing.assert_array_equal(pickling.from_bytes(pickling.to_bytes(x[100:200]))[3:5], x[103:105])
    executor = Here()
    same(run(model=model, executor=executor), run(model=model))
    assert max(executor.bytes) < 100_000


# ---- Dask ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
        with distributed.LocalCluster(**options, silence_logs=50) as cluster, distributed.Client(cluster) as found:
            yield found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_a_dask_cluster_draws_the_same_bits(name, client):
    same(run(name, executor=client.get_executor()), run(name))


@pytest.mark.filterwarnings("ignore")
def test_a_dask_worker_that_is_killed_in_mid_run_is_not_missed(client, monkeypatch):
    monkeypatch.setattr(remote, "LEAST_SECONDS", 0.1)
    monkeypatch.setattr(remote, "MOST_SECONDS", 0.1)
    killed, options = [], {"draws": 3000, "thin": 400, "chains": 4}

    def kill():
        time.sleep(0.7)
        pid = min(client.run(os.getpid).values())
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)

    thread = threading.Thread(target=kill)
    thread.start()
    trace = run(executor=client.get_executor(), **options)
    assert killed, "the run was over before the worker was killed"
    thread.join()
    same(trace, run(**options))
    assert trace.draws.shape == (4, 3000, 3)
