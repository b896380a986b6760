"""Files of draws beside checkpoints: each run has its own, none is written over, and two runs never share one."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.run.checkpoint import FORMAT, VERSION, load
from sgmcmc.trace import archive

MODEL, SAMPLER = sg.models.Gaussian(np.array([1.0, -2.0]), 1.0), sg.SGNHT(0.2)


def run(seed=1, **options):
    settings = {"draws": 20, "warmup": 0, "chains": 2, "seed": seed, "progress": False, "warn": False}
    return sg.sample(MODEL, SAMPLER, **settings | options)


@pytest.fixture
def step_by_step(monkeypatch):
    """Chunks of one step, all of them on threads of the pool."""
    monkeypatch.setattr("sgmcmc.run.job.CHUNK_SECONDS", 1e-12)


def in_the_run():
    """Whether `keep` is called by a chunk, not before the run."""
    return threading.current_thread().name.startswith("sgmcmc")


def test_checkpoints_that_differ_after_a_dot_have_draws_of_their_own(tmp_path):
    first = run(1, checkpoint=tmp_path / "lr0.001")
    second = run(2, checkpoint=tmp_path / "lr0.002")
    assert not np.array_equal(first.draws, second.draws)
    for seed, name in ((1, "lr0.001"), (2, "lr0.002")):
        np.testing.assert_array_equal(np.load(tmp_path / f"{name}.draws.npy"), run(seed).draws)
        np.testing.assert_array_equal(run(seed, checkpoint=tmp_path / name, resume=True).draws, run(seed).draws)


def test_two_runs_at_once_whose_names_differ_after_a_dot_have_the_draws_of_runs_alone(tmp_path, step_by_step):
    found = {}
    both = threading.Barrier(2, timeout=30)

    def together(seed, name):
        def keep(theta):
            if in_the_run():
                both.wait()  # row by row, so that each run writes between two writes of the other
            return theta

        options = {"chains": 1, "threads": 1, "keep": keep}
        found[seed] = run(seed, checkpoint=tmp_path / name, **options).draws

    threads = [threading.Thread(target=together, args=a) for a in ((1, "lr0.001"), (2, "lr0.002"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in (1, 2):
        np.testing.assert_array_equal(found[seed], run(seed, chains=1).draws)


@pytest.mark.parametrize("name", ["run.draws.npy", "run.npz.draws.npy"])
def test_a_file_that_the_run_did_not_make_is_left_as_it_is(name, tmp_path):
    (tmp_path / name).write_bytes(b"mine")
    if name == "run.draws.npy":  # no file of this run
        run(checkpoint=tmp_path / "run.npz")
    else:
        with pytest.raises(FileExistsError, match=r"run\.npz\.draws\.npy.* exists; delete it, or choose another"):
            run(checkpoint=tmp_path / "run.npz")
        assert not (tmp_path / "run.npz").exists()
    assert (tmp_path / name).read_bytes() == b"mine"


def without_draws(folder, **options):
    """A checkpoint of a run that ended before its first draw."""

    def stop(theta):
        if in_the_run():
            raise FloatingPointError
        return theta

    with pytest.raises(FloatingPointError):
        run(checkpoint=folder / "run.npz", keep=stop, **options)
    return stop


@pytest.mark.parametrize("content", [b"mine", None])
def test_a_run_that_goes_on_without_draws_writes_over_its_own_file_only(content, tmp_path, step_by_step):
    stop = without_draws(tmp_path)
    file = tmp_path / "run.npz.draws.npy"
    if content is not None:
        file.write_bytes(content)
        with pytest.raises(ValueError, match="is not the file of float64 draws"):
            run(checkpoint=tmp_path / "run.npz", keep=stop, resume=True)
        assert file.read_bytes() == content
        return
    for spoil in (lambda: None, file.unlink, lambda: file.write_bytes(b"")):  # killed before, or while it was made
        spoil()
        with pytest.raises(FloatingPointError):
            run(checkpoint=tmp_path / "run.npz", keep=stop, resume=True)
        assert file.stat().st_size == 128 + 2 * 20 * 2 * 8


def test_a_run_that_goes_on_without_draws_does_not_write_over_another_file_given_as_out(tmp_path, step_by_step):
    stop = without_draws(tmp_path)
    np.save(tmp_path / "mine.npy", np.arange(5))
    with pytest.raises(ValueError, match="is not the file of float64 draws"):
        run(checkpoint=tmp_path / "run.npz", keep=stop, resume=True, out=tmp_path / "mine.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "mine.npy"), np.arange(5))


def test_two_runs_cannot_write_the_same_file_of_draws(tmp_path, step_by_step):
    options = {"checkpoint": tmp_path / "run.npz", "out": tmp_path / "draws.npy", "resume": True}

    def keep(theta):  # called while a run without a checkpoint writes its draws
        if in_the_run():
            with pytest.raises(RuntimeError, match=r"draws\.npy' is in use by another run; wait"):
                run(**options)
        return theta

    run(**options)
    options["out"].unlink()
    run(draws=1, chains=1, out=options["out"], keep=keep)
    with pytest.raises(ValueError, match="is not the file of"):  # the control: the lock ended with the run
        run(**options)


# ---- checkpoints written before the draws were named after the whole name ------------------------------------------------


def make_old(path):
    """What an older version left: draws beside the checkpoint under its stem, and no word in it where they are."""
    saved = load(path)
    header = {"format": FORMAT, "version": VERSION} | {k: saved.header[k] for k in ("identity", "versions")}
    archive.write(path, header, {k: v for k, v in saved.arrays.items() if k != "header"})
    path.with_name(f"{path.name}.draws.npy").rename(path.with_name(f"{path.stem}.draws.npy"))


def interrupted(path, seed=1):
    """A run that Ctrl-C ended with some of its draws."""

    told = []

    def progress(steps):
        told.append(steps)
        if len(told) == 8:
            raise KeyboardInterrupt

    part = run(seed, checkpoint=path, progress=progress)
    assert 0 < part.n_draws < 20


@pytest.mark.parametrize("times", [1, 2])
def test_a_checkpoint_of_an_older_version_is_gone_on_from(times, tmp_path, step_by_step):
    path = tmp_path / "run.npz"
    interrupted(path)
    make_old(path)
    for _ in range(times):  # the second one is of the new version, with draws where the old one had them
        trace = run(checkpoint=path, resume=True)
    np.testing.assert_array_equal(trace.draws, run().draws)
    np.testing.assert_array_equal(np.load(tmp_path / "run.draws.npy"), trace.draws)
    assert not (tmp_path / "run.npz.draws.npy").exists()


def test_old_checkpoints_that_shared_a_file_are_told_apart(tmp_path, step_by_step):
    for seed, name in ((1, "lr0.001"), (2, "lr0.002")):  # the second wrote over the draws of the first
        interrupted(tmp_path / name, seed)
        make_old(tmp_path / name)
    with pytest.raises(ValueError, match=r"lr0\.draws\.npy does not hold the \d+ draws of chain 0 that were saved"):
        run(1, checkpoint=tmp_path / "lr0.001", resume=True)
    trace = run(2, checkpoint=tmp_path / "lr0.002", resume=True)
    np.testing.assert_array_equal(trace.draws, run(2).draws)


def test_a_checkpoint_whose_draws_are_gone_names_the_file_that_is_missing(tmp_path, step_by_step):
    path = tmp_path / "run.npz"
    interrupted(path)
    (tmp_path / "run.npz.draws.npy").rename(tmp_path / "run.draws.npy")  # the name of old, which this one never had
    with pytest.raises(ValueError, match=r"run\.npz\.draws\.npy is gone"):
        run(checkpoint=path, resume=True)


# ---- names that cannot be those of files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("resume", [False, True])
def test_out_and_checkpoint_cannot_be_the_same_file(resume, tmp_path):
    with pytest.raises(ValueError, match=r"out=.*run\.npy.* and checkpoint=.* are the same file; give each"):
        run(checkpoint=tmp_path / "run.npy", out=str(tmp_path / "run.npy"), resume=resume)
    assert list(tmp_path.iterdir()) == []


def test_out_and_checkpoint_cannot_be_the_same_file_by_a_link(tmp_path):
    (tmp_path / "link.npy").symlink_to(tmp_path / "run.npy")
    with pytest.raises(ValueError, match="are the same file; give each a name of its own"):
        run(checkpoint=tmp_path / "run.npy", out=tmp_path / "link.npy")


def test_out_may_be_where_the_draws_would_be_anyway(tmp_path):
    run(checkpoint=tmp_path / "run.npz", out=tmp_path / "run.npz.draws.npy")
    np.testing.assert_array_equal(run(checkpoint=tmp_path / "run.npz", resume=True).draws, run().draws)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="FIFOs are POSIX")
@pytest.mark.parametrize("resume", [False, True])
def test_a_pipe_or_a_folder_is_no_checkpoint(resume, tmp_path):
    os.mkfifo(tmp_path / "fifo.npy")
    (tmp_path / "folder.npy").mkdir()
    for name in ("fifo.npy", "folder.npy"):
        for options in ({"checkpoint": tmp_path / name}, {"checkpoint": tmp_path / "a.npz", "out": tmp_path / name}):
            with pytest.raises(ValueError, match=rf"{name}'? is not a regular file; give"):
                run(resume=resume, **options)
    with pytest.raises(ValueError, match="is not a regular file"):
        sg.Trace.load(tmp_path / "fifo.npy")


def test_a_link_as_checkpoint_stays_a_link_and_its_lock_is_that_of_its_target(tmp_path):
    (tmp_path / "link.npz").symlink_to(tmp_path / "run.npz")
    trace = run(checkpoint=tmp_path / "link.npz")
    assert (tmp_path / "link.npz").is_symlink()
    np.testing.assert_array_equal(run(checkpoint=tmp_path / "run.npz", resume=True).draws, trace.draws)
