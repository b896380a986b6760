"""Checkpoints: a run that is ended at any moment goes on as if it never had been, and nothing else is ever taken for one."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.run import checkpoint as checkpoints
from sgmcmc.run import draw_file, scheduler
from sgmcmc.trace import archive

rng = np.random.default_rng(7)
X = rng.normal(size=(60, 3))
Y = (rng.random(60) < 1.0 / (1.0 + np.exp(-X @ np.array([1.0, -1.0, 0.5])))).astype(np.float64)
MEAN, VARIANCE = np.array([1.0, -2.0, 0.5]), np.array([1.0, 4.0, 0.25])


def plain(theta):
    return (theta - MEAN) / VARIANCE


GAUSS = sg.models.Gaussian(MEAN, VARIANCE)
LOGISTIC = sg.models.LogisticRegression(X, Y, prior=sg.priors.Gaussian(2.0))
CASES = {
    "lanes": (GAUSS, sg.SGMGTD(0.1), {}),
    "group": (LOGISTIC, sg.SGNHT(0.02), {"batch_size": 16, "minibatch": "shuffle"}),
    "python": (sg.Potential(plain, dim=3), sg.SGNHT(0.1), {"gradient_noise": 0.1}),
    "single": (LOGISTIC, sg.SGNHT(0.02), {"batch_size": 16, "dtype": np.float32}),
}
every_engine = pytest.mark.parametrize("case", CASES)


class KillError(BaseException):
    """What a run does not catch, as it cannot catch kill -9."""


def run(case="lanes", **options):
    model, sampler, own = CASES[case]
    settings = {"draws": 60, "warmup": 10, "thin": 2, "chains": 3, "seed": 11, "progress": False} | own | options
    return sg.sample(settings.pop("model", model), settings.pop("sampler", sampler), **settings)


def same(one, two):
    """Draws, last state, temperatures and moments, bit for bit."""
    np.testing.assert_array_equal(one.draws, two.draws)
    assert one.draws.dtype == two.draws.dtype
    for name, value in one.final.items():
        np.testing.assert_array_equal(value, two.final[name], err_msg=name)
    np.testing.assert_array_equal(one.kinetic_temperature, two.kinetic_temperature)
    np.testing.assert_array_equal(one.configurational_temperature, two.configurational_temperature)
    for mine, other in zip(one.moments or (), two.moments or (), strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.fixture
def kills(monkeypatch):
    """Let a run die at its n-th chunk, with chunks of one step and a checkpoint at every third chance."""
    real, seen = scheduler.wait, {"left": -1, "polls": 0}

    def wait(*args, **options):
        seen["left"] -= 1
        if seen["left"] == 0:
            real(*args)
            raise KillError
        return real(*args, **options)

    def due(self):
        seen["polls"] += 1
        return seen["polls"] % 3 == 0

    monkeypatch.setattr("sgmcmc.run.job.CHUNK_SECONDS", 1e-12)
    monkeypatch.setattr(scheduler, "wait", wait)
    monkeypatch.setattr(checkpoints.Checkpoint, "due", due)
    return lambda n: seen.update(left=n)


# ---- going on -----------------------------------------------------------------------------------------------------------


@every_engine
@pytest.mark.parametrize("kept", [{}, {"keep": "moments"}, {"keep": lambda theta: theta[:2] ** 2}])
def test_a_run_that_is_killed_again_and_again_has_the_draws_of_one_that_is_not(case, kept, kills, tmp_path):
    options, deaths = {"checkpoint": tmp_path / "run.npz", "resume": True} | kept, 0
    for n in (1, 4, 40, 90, 150, 7):
        kills(n)
        try:
            trace = run(case, threads=1 + n % 2, **options)
        except KillError:
            deaths += 1
    assert deaths >= 2
    kills(-1)
    same(run(case, **options), run(case, **kept))
    trace = run(case, **options)  # of a run that is over
    assert trace.info["steps"] == 0
    same(trace, run(case, **kept))


def test_a_checkpoint_that_forgets_something_would_be_seen(kills, tmp_path, monkeypatch):
    kills(60)
    with pytest.raises(KillError):
        run("group", checkpoint=tmp_path / "run.npz")
    kills(-1)
    real = checkpoints._restore_extras

    def forgetful(arrays, chain, *rest):
        real(arrays, chain, *rest)
        chain.before *= 1.0 + 1e-9
        chain.state.xi[:] += 1e-9

    monkeypatch.setattr(checkpoints, "_restore_extras", forgetful)
    with pytest.raises(AssertionError):
        same(run("group", checkpoint=tmp_path / "run.npz", resume=True), run("group"))


def test_a_run_can_go_on_with_other_threads_another_place_of_its_draws_and_without_its_seed(kills, tmp_path):
    kills(50)
    with pytest.raises(KillError):
        run("group", checkpoint=tmp_path / "run.npz", out=tmp_path / "a.npy", threads=1)
    kills(-1)
    (tmp_path / "a.npy").rename(tmp_path / "b.npy")
    trace = run("group", checkpoint=tmp_path / "run.npz", out=tmp_path / "b.npy", resume=True, threads=2, seed=None)
    same(trace, run("group"))
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), run("group").draws)


@every_engine
def test_ctrl_c_saves_and_gives_back_what_there_is(case, monkeypatch, tmp_path):
    real, calls = scheduler.wait, []

    def wait(*args, **options):
        calls.append(None)
        if len(calls) == 100:
            raise KeyboardInterrupt
        return real(*args, **options)

    monkeypatch.setattr("sgmcmc.run.job.CHUNK_SECONDS", 1e-12)
    monkeypatch.setattr(scheduler, "wait", wait)
    part = run(case, checkpoint=tmp_path / "run.npz")
    whole = run(case)
    assert part.info["interrupted"]
    assert 0 < part.n_draws < whole.n_draws
    np.testing.assert_array_equal(part.draws, whole.draws[:, : part.n_draws])
    same(run(case, checkpoint=tmp_path / "run.npz", resume=True), whole)


def test_a_chain_that_was_dropped_stays_dropped(kills, tmp_path):
    start = np.tile(MEAN, (3, 1))
    start[1] = 1e200
    options = {"init": start, "on_divergence": "drop", "sampler": sg.SGNHT(0.1)}
    kills(90)
    with pytest.raises(KillError):
        run(checkpoint=tmp_path / "run.npz", **options)
    kills(-1)
    trace = run(checkpoint=tmp_path / "run.npz", resume=True, **options)
    assert trace.info["chains"] == [0, 2]
    same(trace, run(**options))


def test_a_run_that_goes_on_from_a_trace_can_be_killed_too(kills, tmp_path):
    first = run("group")
    kills(60)
    with pytest.raises(KillError):
        run("group", init=first, checkpoint=tmp_path / "run.npz")
    kills(-1)
    same(run("group", init=first, checkpoint=tmp_path / "run.npz", resume=True), run("group", init=first))


SCRIPT = """
import logging, sys, numpy as np, sgmcmc as sg
model = sg.models.Gaussian(np.array([1.0, -2.0, 0.5]), np.array([1.0, 4.0, 0.25]))
options = dict(draws=3000, warmup=10, thin=200, chains=3, seed=11, progress=False)
sys.stdout.write("go\\n"); sys.stdout.flush()
trace = sg.sample(model, sg.SGNHT(0.2), checkpoint=sys.argv[1], checkpoint_every=0.0, resume=True, **options)
np.save(sys.argv[2], trace.draws)
"""


def end(child):
    child.kill()
    child.wait()
    child.stdout.close()


def test_kill_nine_at_random_moments(tmp_path):
    moments = np.random.default_rng(3).uniform(0.02, 0.4, 4)
    arguments = [sys.executable, "-c", SCRIPT, str(tmp_path / "run.npz"), str(tmp_path / "draws.npy")]
    for moment in moments:
        child = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        child.stdout.readline()
        time.sleep(moment)
        end(child)
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)
    whole = sg.sample(GAUSS, sg.SGNHT(0.2), draws=3000, warmup=10, thin=200, chains=3, seed=11, progress=False)
    np.testing.assert_array_equal(np.load(tmp_path / "draws.npy"), whole.draws)


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C of another process is a POSIX signal")
def test_a_second_ctrl_c_ends_a_run_whose_gradient_hangs():
    script = """
import signal, sys, time, numpy as np, sgmcmc as sg
signal.signal(signal.SIGINT, signal.default_int_handler)
calls = []
def gradient(theta):
    calls.append(None)
    if len(calls) == 20:
        print("go", flush=True)
        time.sleep(30)
    return theta
try:
    sg.sample(sg.Potential(gradient, dim=2), sg.SGNHT(0.1), draws=1000, chains=1, progress=False)
except KeyboardInterrupt:
    import os
    print("out", flush=True)
    os._exit(0)
"""
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "go\n"
    begin = time.perf_counter()
    for _ in range(2):
        time.sleep(0.5)
        os.kill(child.pid, signal.SIGINT)
    assert child.stdout.readline() == "out\n"
    assert time.perf_counter() - begin < 10.0
    end(child)


# ---- what it costs ------------------------------------------------------------------------------------------------------


def test_a_checkpoint_is_as_small_at_the_end_of_a_long_run(tmp_path):
    sizes = {}
    for draws in (100, 20_000):
        run(draws=draws, thin=1, checkpoint=tmp_path / f"{draws}.npz")
        sizes[draws] = (tmp_path / f"{draws}.npz").stat().st_size
        assert (tmp_path / f"{draws}.npz.draws.npy").stat().st_size == 128 + 3 * draws * 3 * 8
    assert abs(sizes[100] - sizes[20_000]) < 100


def test_checkpoints_take_at_most_a_tenth_of_the_time(tmp_path):
    saver = checkpoints.Checkpoint(tmp_path / "run.npz", 0.0, {}, [], None)
    assert saver.due()
    saver.took = 100.0
    assert not saver.due()


# ---- other runs ---------------------------------------------------------------------------------------------------------

OTHER = {
    "draws": {"draws": 61},
    "warmup": {"warmup": 11},
    "thin": {"thin": 3},
    "chains": {"chains": 4},
    "seed": {"seed": 12},
    "dtype": {"dtype": np.float32},
    "minibatch": {"batch_size": 17},
    "noise": {"gradient_noise": 0.1},
    "clip": {"clip_gradient": 5.0},
    "keep": {"keep": "moments"},
    "init": {"init": np.ones(3)},
    "on_divergence": {"on_divergence": "drop"},
    "sampler.step_size": {"sampler": sg.SGNHT(0.03)},
    "sampler.kinetics": {"sampler": sg.SGMGT(0.02)},
    "sampler.scale": {"sampler": sg.SGNHT(0.02, scale=np.array([1.0, 1.0, 2.0]))},
    "model.X": {"model": sg.models.LogisticRegression(X + 1e-15, Y, prior=sg.priors.Gaussian(2.0))},
    "model.y": {"model": sg.models.LogisticRegression(X, 1.0 - Y, prior=sg.priors.Gaussian(2.0))},
    "model.prior.scale": {"model": sg.models.LogisticRegression(X, Y, prior=sg.priors.Gaussian(3.0))},
    "model": {"model": sg.models.LinearRegression(X, Y, prior=sg.priors.Gaussian(2.0))},
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished checkpoint; its folder is not to be changed."""
    folder = tmp_path_factory.mktemp("finished")
    run("group", checkpoint=folder / "run.npz", minibatch="replacement")
    return folder


@pytest.mark.parametrize("name", OTHER)
def test_the_checkpoint_of_another_run_is_refused_and_the_difference_is_named(name, finished):
    options = {"minibatch": "replacement"} | OTHER[name]
    with pytest.raises(ValueError, match=rf"run\.npz' belongs to another run: {name} is .* there and .* here; give"):
        run("group", checkpoint=finished / "run.npz", resume=True, **options)


def test_another_gradient_function_is_another_run(tmp_path):
    def other(theta):
        return (theta - MEAN) / (2.0 * VARIANCE)

    run("python", checkpoint=tmp_path / "run.npz")
    with pytest.raises(ValueError, match=r"model\.gradient_function is function"):
        run("python", model=sg.Potential(other, dim=3), checkpoint=tmp_path / "run.npz", resume=True)


def test_a_checkpoint_is_not_written_over_by_a_run_that_does_not_go_on_from_it(finished):
    before = (finished / "run.npz").read_bytes()
    with pytest.raises(FileExistsError, match="give resume=True to go on from it"):
        run("group", checkpoint=finished / "run.npz", minibatch="replacement")
    assert (finished / "run.npz").read_bytes() == before


def test_other_versions_are_only_a_warning(finished, monkeypatch, caplog):
    monkeypatch.setattr(checkpoints, "versions", lambda: {"numba": "0.1"})
    with caplog.at_level(logging.WARNING, "sgmcmc"):
        run("group", checkpoint=finished / "run.npz", resume=True, minibatch="replacement")
    assert "may differ in the last digits" in caplog.text


# ---- disks --------------------------------------------------------------------------------------------------------------


def test_a_full_disk_while_saving_costs_a_warning_and_the_old_checkpoint_stays(monkeypatch, kills, tmp_path, caplog):
    path, real, calls = tmp_path / "run.npz", archive._write_array, []

    def full(member, value):
        calls.append(None)
        if len(calls) > 100:
            member.write(b"half")
            raise OSError(28, "No space left on device")
        real(member, value)

    monkeypatch.setattr(archive, "_write_array", full)
    trace = run("group", checkpoint=path)
    same(trace, run("group"))
    assert "No space left" in caplog.text
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        ".run.npz.draws.npy.lock",
        ".run.npz.lock",
        "run.npz",
        "run.npz.draws.npy",
    ]
    monkeypatch.setattr(archive, "_write_array", real)
    half_way = checkpoints.load(path).arrays["step"].max()
    assert 0 < half_way < 130
    same(run("group", checkpoint=path, resume=True), trace)


def test_a_full_disk_for_draws_ends_the_run_with_a_remedy_and_it_goes_on_when_there_is_room(
    monkeypatch, kills, tmp_path
):
    real, calls = draw_file.DrawFile.write, []

    class Full:
        def __init__(self, file):
            self.file = file

        def __getattr__(self, name):
            return getattr(self.file, name)

        def write(self, raw):
            calls.append(None)
            if len(calls) > 60:
                self.file.write(raw[: len(raw) // 2])
                raise OSError(28, "No space left on device")
            return self.file.write(raw)

    def write(self, *args):
        if not isinstance(self._file, Full):
            self._file = Full(self._file)
        real(self, *args)

    monkeypatch.setattr(draw_file.DrawFile, "write", write)
    with pytest.raises(OSError, match=r"draws cannot be written to .*: No space left on device; make room, and go on"):
        run("group", checkpoint=tmp_path / "run.npz")
    monkeypatch.setattr(draw_file.DrawFile, "write", real)
    same(run("group", checkpoint=tmp_path / "run.npz", resume=True), run("group"))


LIMITED = """
import resource, sys, numpy as np, sgmcmc as sg
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
model = sg.models.Gaussian(np.zeros(3), 1.0)
try:
    sg.sample(model, sg.SGNHT(0.2), draws=1000, warmup=0, chains=2, seed=1, progress=False, checkpoint=sys.argv[2])
except OSError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits on files are POSIX")
@pytest.mark.parametrize(("limit", "message"), [(1000, "File too large"), (40_000, "draws cannot be written")])
def test_a_limit_on_the_size_of_files_is_an_error_at_the_start(limit, message, tmp_path):
    arguments = [sys.executable, "-c", LIMITED, str(limit), str(tmp_path / "run.npz")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert message in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are POSIX")
def test_a_read_only_folder_is_refused_before_anything_is_computed(tmp_path):
    script = """
import os, sys, numpy as np, sgmcmc as sg
model = sg.models.Gaussian(np.zeros(3), 1.0)
sg.sample(model, sg.SGNHT(0.2), checkpoint=sys.argv[1], progress=False)  # everything is imported while it can be read
if os.getuid() == 0:
    os.setuid(65534)
try:
    sg.sample(model, sg.SGNHT(0.2), checkpoint=sys.argv[2], progress=False)
except PermissionError as error:
    print(error)
"""
    with tempfile.TemporaryDirectory() as folder:  # the folders of pytest are closed to others
        os.chmod(folder, 0o555)
        arguments = [sys.executable, "-c", script, str(tmp_path / "first.npz"), f"{folder}/run.npz"]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert "cannot be written (Permission denied); choose a folder that you may write to" in done.stdout, done.stderr


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="folder that is not there; make"):
        run(checkpoint=tmp_path / "none" / "run.npz")


# ---- two at once --------------------------------------------------------------------------------------------------------


def test_two_processes_cannot_have_the_same_checkpoint(tmp_path):
    arguments = [sys.executable, "-c", SCRIPT.replace("draws=3000", "draws=10**6"), str(tmp_path / "run.npz"), "x"]
    child = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    child.stdout.readline()
    try:
        while not (tmp_path / "run.npz").exists():
            time.sleep(0.01)
        with pytest.raises(RuntimeError, match="is in use by another run; wait for its end"):
            run(checkpoint=tmp_path / "run.npz", resume=True)
    finally:
        end(child)
    with pytest.raises(ValueError, match="belongs to another run: draws is 1000000 there"):
        run(checkpoint=tmp_path / "run.npz", resume=True)  # the lock ended with the process


def test_two_runs_of_one_process_cannot_have_the_same_checkpoint(tmp_path):
    def keep(theta):
        with pytest.raises(RuntimeError, match="is in use"):
            run(checkpoint=tmp_path / "run.npz", resume=True)
        return theta[0]

    run(draws=2, checkpoint=tmp_path / "run.npz", keep=keep)


def test_arguments_are_checked_at_the_door(tmp_path):
    with pytest.raises(ValueError, match="resume=True was given without a checkpoint"):
        run(resume=True)
    with pytest.raises(TypeError, match="resume='yes' is neither"):
        run(resume="yes", checkpoint=tmp_path / "a.npz")
    with pytest.raises(TypeError, match="checkpoint=3 is not the name of a file"):
        run(checkpoint=3)
    with pytest.raises(ValueError, match="checkpoint_every=-1 is out of range"):
        run(checkpoint=tmp_path / "a.npz", checkpoint_every=-1)


def test_a_checkpoint_that_names_parts_as_they_were_called_before_is_that_of_the_same_run(tmp_path):
    from sgmcmc.run.old_formats import is_same_fact

    old = "BAOAB 8fffd45ee2760b076e006f6c3f9a51bb"
    assert is_same_fact(old, "Splitting_BAOAB")
    assert is_same_fact("SymmetricSplitting f69cf8f17f74391b78708662733312f5", "Splitting_BNFAFNB")
    assert not is_same_fact(old, "Splitting_OBABO")
    mine = "BAOAB 014b0c5963d8600edab858d5ca6c7953"  # a class of the user's keeps its digest
    assert not is_same_fact(old, mine)
    assert not is_same_fact(None, "BAOAB")
