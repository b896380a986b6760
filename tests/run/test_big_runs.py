"""Runs and data larger than memory: what is kept, where it goes, and which rows a step reads."""

from __future__ import annotations

import subprocess
import sys

import numba
import numpy as np
import pytest
from scipy import stats

import sgmcmc as sg
from sgmcmc.minibatch import Blocks, as_minibatch, memory, row_buffer
from sgmcmc.rng import stream
from sgmcmc.run.identity import digest_of
from sgmcmc.run.loop_python import choose_rows
from sgmcmc.run.settings import Settings

rng = np.random.default_rng(7)
X = rng.normal(size=(500, 3))
Y = (rng.random(500) < 0.5).astype(np.float64)
MODEL = sg.models.LogisticRegression(X, Y)


def run(model=MODEL, **options):
    settings = {"draws": 50, "warmup": 10, "chains": 3, "seed": 11, "batch_size": 16, "progress": False} | options
    return sg.sample(model, sg.SGNHT(0.02), **settings)


# ---- what is kept -------------------------------------------------------------------------------------------------------


def test_a_function_of_theta_is_recorded_in_its_place():
    trace, whole = run(keep=lambda theta: np.outer(theta, theta)), run()
    wanted = (whole.draws[..., :, None] * whole.draws[..., None, :]).reshape(3, 50, 9)
    np.testing.assert_array_equal(trace.draws, wanted)
    assert trace.names[:2] == ("kept[0]", "kept[1]")
    assert trace.info["keep"] == "<lambda>"
    on = {"draws": 20, "warmup": 0}
    np.testing.assert_array_equal(run(init=trace, **on).draws, run(init=whole, **on).draws)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_moments_are_those_of_the_draws_that_would_have_been_kept(dtype, tmp_path):
    trace, draws = run(keep="moments", dtype=dtype), run(dtype=dtype).draws.astype(np.float64)
    assert trace.draws.shape == (3, 50, 0)
    assert trace.moments.n.tolist() == [50, 50, 50]
    np.testing.assert_allclose(trace.moments.mean, draws.mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(trace.moments.variance, draws.var(axis=1), rtol=1e-12)
    trace.save(tmp_path / "trace.npz")
    for mine, other in zip(sg.Trace.load(tmp_path / "trace.npz").moments, trace.moments, strict=True):
        np.testing.assert_array_equal(mine, other)


def test_draws_in_a_file_are_the_draws(tmp_path):
    trace = run(out=tmp_path / "draws.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "draws.npy"), run().draws)
    np.testing.assert_array_equal(trace.draws, run().draws)
    assert isinstance(trace.draws.base, np.memmap)
    with pytest.raises(FileExistsError, match="delete it, or choose another name"):
        run(out=tmp_path / "draws.npy")


@pytest.mark.parametrize("window", [1, 3, 7])
def test_it_does_not_matter_how_many_draws_are_passed_on_at_once(window, monkeypatch, tmp_path):
    monkeypatch.setattr(Settings, "window", lambda self, chains: window)
    np.testing.assert_array_equal(run(out=tmp_path / "a.npy").draws, run().draws)
    gauss, own = sg.models.Gaussian(np.zeros(3), 1.0), {"batch_size": None}
    np.testing.assert_array_equal(run(gauss, out=tmp_path / "b.npy", **own).draws, run(gauss, **own).draws)


def test_what_cannot_be_kept_is_refused():
    with pytest.raises(TypeError, match="keep=3 cannot be called"):
        run(keep=3)
    with pytest.raises(ValueError, match="keep='mean' is unknown"):
        run(keep="mean")
    with pytest.raises(ValueError, match="give a function of theta that returns numbers"):
        run(keep=lambda theta: "text")
    calls = []
    with pytest.raises(ValueError, match=r"keep returned .* after 1 at the start"):
        run(keep=lambda theta: calls.append(None) or np.zeros(len(calls)))
    with pytest.raises(ValueError, match="keep='moments' keeps no draws"):
        run(keep="moments", out="draws.npy")
    with pytest.raises(ValueError, match=r"ends in \.npy"):
        run(out="draws.txt")


RSS = """
import sys, numpy as np, sgmcmc as sg
def peak():  # in kB; ru_maxrss would begin with that of the process of the tests
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
model = sg.models.Gaussian(np.zeros(300_000), 1.0)
options = dict(chains=1, warmup=0, seed=1, dtype=np.float32, progress=False)
sg.sample(model, sg.SGLD(0.1), draws=60, **options, **{KEPT})
before = peak()
sg.sample(model, sg.SGLD(0.1), draws=int(sys.argv[1]), **options, **{KEPT})
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("kept", ["dict(keep=lambda theta: theta[:5])", "dict(keep='moments')", "{}"])
def test_the_memory_of_a_long_run_is_that_of_a_short_one(kept):
    arguments = [sys.executable, "-c", RSS.replace("{KEPT}", kept), "860"]
    for _ in range(2):  # the first one may have to compile, which takes memory too
        grown = int(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout) / 1024
    draws = 800 * 300_000 * 4 / 2**20  # 916 MB more; how much of its room of 64 MB the short run used is chance
    assert (grown > 0.8 * draws) == (kept == "{}"), grown
    assert kept == "{}" or grown < 0.1 * draws, grown


# ---- data in files ------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    np.save(tmp_path / "y.npy", Y.astype(np.float32))
    return tuple(np.load(tmp_path / f"{n}.npy", mmap_mode="r") for n in "xy")


def test_a_mapped_file_is_used_where_it_is_and_gives_the_same_draws(files):
    x, y = files
    mapped, inside = sg.models.LogisticRegression(x, y), sg.models.LogisticRegression(X.astype(np.float32), Y)
    assert np.shares_memory(mapped.X, x)
    assert np.shares_memory(mapped.y, y)
    own = {"dtype": np.float32, "minibatch": "blocks"}
    np.testing.assert_array_equal(run(mapped, **own).draws, run(inside, **own).draws)
    with pytest.raises(ValueError, match=r"dtype=float64 would read it all into memory; give dtype=np\.float32"):
        run(mapped)
    with pytest.raises(ValueError, match="put the column of ones"):
        sg.models.LogisticRegression(x, y, intercept=True)


@numba.njit
def gradient(theta, data, rows, out):
    for i in rows:
        for j in range(theta.size):
            out[j] += theta[j] - data[i, j]


def test_a_mapped_file_of_your_own_model_is_used_where_it_is(files):
    mapped = sg.Potential(gradient, dim=3, data=files[0])
    assert np.shares_memory(mapped.data, files[0])
    inside = sg.Potential(gradient, dim=3, data=X.astype(np.float32))
    own = {"dtype": np.float32, "draws": 10}
    np.testing.assert_array_equal(run(mapped, **own).draws, run(inside, **own).draws)


def test_chunks_are_the_rows_of_all_their_parts(tmp_path):
    parts = np.split(X, [100, 130, 131])
    for i, part in enumerate(parts):
        np.save(tmp_path / f"{i}.npy", part)
    chunks = sg.Chunks([*(tmp_path / f"{i}.npy" for i in range(3)), parts[3]], block=16, cache=4)
    assert chunks.shape == X.shape
    rows = rng.integers(0, 500, 200)
    np.testing.assert_array_equal(chunks[rows], X[rows])
    assert len(chunks._blocks) == 4
    before = chunks.reads
    np.testing.assert_array_equal(chunks[np.arange(16)], X[:16])
    np.testing.assert_array_equal(chunks[np.arange(16)], X[:16])
    assert chunks.reads <= before + 1
    with pytest.raises(IndexError, match="rows run from 0 to 500"):
        chunks[np.array([0, 500])]


def test_chunks_are_data_of_a_python_gradient_and_blocks_read_few_of_them():
    def of_chunks(theta, data, rows):
        return (theta - data[rows]).sum(axis=0)

    own, reads = {"chains": 1, "draws": 400}, {}
    for kind in ("replacement", Blocks(block=25, window=4)):
        chunks = sg.Chunks([X], block=25, cache=10)
        model = sg.Potential(of_chunks, dim=3, data=chunks)
        inside = sg.Potential(of_chunks, dim=3, data=X)
        np.testing.assert_array_equal(run(model, minibatch=kind, **own).draws, run(inside, minibatch=kind, **own).draws)
        reads[kind] = chunks.reads
    assert reads[Blocks(25, 4)] < 0.2 * reads["replacement"]


def test_the_digest_of_a_long_file_reads_parts_of_it(tmp_path, monkeypatch):
    from sgmcmc.run import identity

    monkeypatch.setattr(identity, "BLOCK", 16)
    long = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float64, (100_000,))
    first = digest_of(long)
    assert "stretches" in first
    long[0] = 1.0
    assert digest_of(long) != first


# ---- blocks -------------------------------------------------------------------------------------------------------------


def rows_of_steps(rule, n_rows, steps, seed=1, fresh=False):
    own, rows, scratch = stream(seed, 0), row_buffer(rule, n_rows), memory(rule, n_rows)
    found = []
    for step in steps:
        if fresh:
            scratch.fill(-1)
        choose_rows(rule, n_rows, own, np.int64(step), scratch, rows)
        found.append(rows.copy())
    return np.array(found)


def chance(rule, n_rows, place):
    """p-value of a chi-square test that the row in this place of its window is every row equally often."""
    per_window = rule.block * rule.window // rule.size
    steps = place // rule.size + per_window * np.arange(40_000)
    rows = rows_of_steps(rule, n_rows, steps)[:, place % rule.size]
    return stats.chisquare(np.bincount(rows, minlength=n_rows)).pvalue


@pytest.mark.parametrize("place", [0, 5, 23])
@pytest.mark.parametrize("n_rows", [24, 37])
def test_every_row_has_the_same_chance_in_every_step(place, n_rows):
    assert chance(Blocks(6, 4, 4), n_rows, place) > 1e-6


def test_blocks_that_do_not_go_round_would_be_seen():
    rule, n_rows = Blocks(6, 4, 4), 37
    rows = rows_of_steps(rule, n_rows - 6, np.arange(0, 60_000, 6))[:, 0]  # begins in 0 … N − block − 1 only
    assert stats.chisquare(np.bincount(rows, minlength=n_rows)).pvalue < 1e-6


def test_a_window_is_a_few_blocks_and_every_row_of_it_comes_once():
    rule, n_rows = Blocks(6, 4, 4), 10_000
    rows = rows_of_steps(rule, n_rows, range(6)).ravel()  # a window
    blocks = np.split(np.sort(rows), 4)
    assert all(np.array_equal(b, np.arange(b[0], b[0] + 6)) for b in blocks)
    assert not np.array_equal(np.sort(rows), rows)


def test_the_rows_of_a_step_do_not_depend_on_what_came_before():
    rule = as_minibatch(7, Blocks(10, 3), 100)
    together = rows_of_steps(rule, 100, range(30))
    np.testing.assert_array_equal(rows_of_steps(rule, 100, range(30), fresh=True), together)


def test_the_mean_over_blocks_is_unbiased_even_if_the_file_is_sorted():
    rule, values = Blocks(8, 4, 4), np.arange(64.0)
    steps = 8 * np.arange(20_000)
    means = values[rows_of_steps(rule, 64, steps)].mean(axis=1)
    z = (means.mean() - values.mean()) / (means.std() / np.sqrt(means.size))
    assert abs(z) < 5.0


def test_blocks_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"Blocks\.block=600 is out of range"):
        as_minibatch(16, Blocks(600, 4), 500)
    with pytest.raises(ValueError, match="batch_size=30 does not fit into"):
        as_minibatch(30, Blocks(5, 4), 500)
    assert as_minibatch(30, "blocks", 500) == Blocks(500, 64, 30)
