"""A trace: its summary, its files, and what it hands on; the diagnostics behind it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from arviz_stats.base import array_stats
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter

from sgmcmc import diagnostics
from sgmcmc.trace import Trace, archive

COLUMNS = ["mean", "sd", "hdi_low", "hdi_high", "mcse", "ess_bulk", "ess_tail", "r_hat"]


def make(draws, info=None, names=(), final=None):
    chains = len(draws)
    temperatures = np.linspace(0.9, 1.1, chains)
    info = {"sampler": "SGNHT(step_size=0.1)", "model": "Gaussian(2)", "seconds": 1.5} if info is None else info
    return Trace(draws, info, temperatures, temperatures[::-1].copy(), {} if final is None else final, names)


def normals(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape)


def ar1(rho, chains, n, seed):
    """A stationary AR(1) process of variance 1."""
    noise = np.random.default_rng(seed).normal(size=(chains, n + 500)) * np.sqrt(1.0 - rho * rho)
    return lfilter([1.0], [1.0, -rho], noise, axis=1)[:, 500:]


# ---- diagnostics -----------------------------------------------------------------------------------------------------


def test_diagnostics_are_those_of_arviz():
    x = ar1(0.7, 4, 400, seed=2)
    assert diagnostics.ess(x, "bulk") == pytest.approx(array_stats.ess(x, method="bulk"), rel=1e-12)
    assert diagnostics.ess(x, "tail") == pytest.approx(array_stats.ess(x, method="tail", prob=(0.05, 0.95)), rel=1e-12)
    assert diagnostics.ess(x, "mean") == pytest.approx(array_stats.ess(x, method="mean"), rel=1e-9)
    assert diagnostics.mcse(x) == pytest.approx(array_stats.mcse(x, method="mean"), rel=1e-9)
    assert diagnostics.r_hat(x) == pytest.approx(array_stats.rhat(x, method="rank"), rel=1e-12)
    assert diagnostics.hdi(x, 0.9) == tuple(array_stats.hdi(x.ravel(), 0.9))


@pytest.mark.parametrize("odd", [0, 1])
def test_r_hat_of_one_chain_is_that_of_its_two_halves(odd):
    x = ar1(0.9, 1, 200 + odd, seed=3)
    halves = np.concatenate((x[:, :100], x[:, -100:]))
    by_hand = max(
        float(array_stats.rhat(array_stats._z_scale(y), method="identity"))
        for y in (halves, abs(halves - np.median(halves)))
    )
    assert diagnostics.r_hat(x) == pytest.approx(by_hand, rel=1e-12)


def test_r_hat_sees_a_drifting_chain_and_a_chain_of_another_scale():
    x = normals(4, 500)
    assert diagnostics.r_hat(x) < 1.01
    assert diagnostics.r_hat(x[:1] + np.linspace(0.0, 2.0, 500)) > 1.1
    assert diagnostics.r_hat(x * np.array([[1.0], [1.0], [1.0], [4.0]])) > 1.1


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_ess_of_an_autoregression_is_near_the_theory(rho):
    """ESS/N → (1 − ρ)/(1 + ρ). 30 replicas give the standard error; |z| < 5 is a false alarm once in two million.

    Geyer's truncation is biased upward by the noise it sums, about 1 % here, which the tolerance of 2 % adds.
    """
    theory = (1.0 - rho) / (1.0 + rho)
    found = np.array([diagnostics.ess(ar1(rho, 4, 2000, seed), "mean") / 8000 for seed in range(30)])
    error = found.std(ddof=1) / np.sqrt(len(found))
    assert abs(found.mean() - theory) < 5.0 * error + 0.02 * theory
    wrong = (1.0 - rho - 0.1) / (1.0 + rho + 0.1)  # the control: a process with ρ + 0.1
    assert abs(found.mean() - wrong) > 5.0 * error + 0.02 * theory


def test_mcse_is_the_scatter_of_the_mean():
    """sd of 200 means against the mean mcse: a relative error of 1/√400 = 5 % each way, four of them allowed."""
    runs = [ar1(0.8, 4, 500, seed) for seed in range(100, 300)]
    scatter = np.std([x.mean() for x in runs], ddof=1)
    claimed = np.mean([diagnostics.mcse(x) for x in runs])
    assert abs(np.log(claimed / scatter)) < 0.2
    naive = np.mean([x.std() / np.sqrt(x.size) for x in runs])  # the control: as if draws were independent
    assert abs(np.log(naive / scatter)) > 0.2


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1e20, 1e306])
def test_diagnostics_do_not_depend_on_the_unit(scale):
    x = ar1(0.5, 2, 300, seed=5)
    for kind in ("bulk", "tail", "mean"):
        assert diagnostics.ess(scale * x, kind) == pytest.approx(diagnostics.ess(x, kind), rel=1e-9)
    assert diagnostics.r_hat(scale * x) == pytest.approx(diagnostics.r_hat(x), rel=1e-12)
    assert diagnostics.mcse(scale * x) == pytest.approx(scale * diagnostics.mcse(x), rel=1e-9)
    assert diagnostics.autocorrelation(scale * x) == pytest.approx(diagnostics.autocorrelation(x), abs=1e-12)


def test_autocorrelation_is_the_sum_it_stands_for():
    x = ar1(0.6, 3, 97, seed=6)
    y = x - x.mean(axis=1, keepdims=True)
    by_hand = [[(c[: 97 - k] * c[k:]).sum() / (c * c).sum() for k in range(97)] for c in y]
    assert diagnostics.autocorrelation(x) == pytest.approx(np.array(by_hand), abs=1e-12)
    assert diagnostics.autocorrelation(x, max_lag=5).shape == (3, 6)


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (4, 3), (3, 0), (0, 5)])
def test_too_few_draws_give_nan(shape):
    x = normals(*shape)
    assert np.isnan([diagnostics.ess(x), diagnostics.ess(x, "tail"), diagnostics.mcse(x), diagnostics.r_hat(x)]).all()


@pytest.mark.parametrize("value", [0.0, 3.5, np.nan, np.inf])
def test_draws_that_never_move_or_are_not_finite_give_nan(value):
    x = np.full((4, 50), value)
    assert np.isnan([diagnostics.ess(x), diagnostics.mcse(x), diagnostics.r_hat(x)]).all()
    assert np.isnan(diagnostics.autocorrelation(x)).all()
    assert np.isnan(diagnostics.ess(np.where(np.arange(50) == 7, np.nan, normals(4, 50))))


def test_chains_stuck_in_different_places_have_an_infinite_r_hat():
    assert diagnostics.r_hat(np.repeat([[0.0], [1.0], [2.0]], 100, axis=1)) == np.inf


@given(st.lists(st.lists(st.floats(), min_size=9, max_size=9), min_size=1, max_size=3))
@settings(max_examples=150, derandomize=True, deadline=None)
def test_no_draws_whatever_raise_or_warn(rows):
    x = np.array(rows)
    assert np.isnan(diagnostics.ess(x)) or diagnostics.ess(x) > 0.0
    diagnostics.ess(x, "tail"), diagnostics.mcse(x), diagnostics.r_hat(x), diagnostics.hdi(x)
    assert diagnostics.autocorrelation(x).shape == x.shape


def test_diagnostics_say_what_they_take():
    with pytest.raises(ValueError, match=r"draws has shape \(3,\); give the draws of one parameter"):
        diagnostics.ess([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="kind='middle' is unknown; choose one of 'bulk', 'tail', 'mean'"):
        diagnostics.ess(normals(2, 9), "middle")
    with pytest.raises(ValueError, match=r"prob=1\.5 is out of range"):
        diagnostics.hdi(normals(2, 9), 1.5)
    with pytest.raises(ValueError, match="max_lag=9 is out of range; give a whole number from 0 to 8"):
        diagnostics.autocorrelation(normals(2, 9), 9)


# ---- the trace -------------------------------------------------------------------------------------------------------


def test_summary_has_the_promised_columns_and_values():
    draws = np.stack([ar1(rho, 4, 300, seed=7) for rho in (0.1, 0.8)], axis=2) * [1.0, 5.0] + [0.0, 3.0]
    table = make(draws, names=("alpha", "beta")).summary(hdi_prob=0.8)
    assert list(table.columns) == COLUMNS
    assert list(table.index) == ["alpha", "beta"]
    for i, name in enumerate(("alpha", "beta")):
        x = draws[:, :, i]
        expected = [x.mean(), x.std(ddof=1), *array_stats.hdi(x.ravel(), 0.8), array_stats.mcse(x)]
        expected += [array_stats.ess(x), array_stats.ess(x, method="tail", prob=(0.05, 0.95)), array_stats.rhat(x)]
        assert table.loc[name].to_numpy() == pytest.approx(np.array(expected, dtype=float), rel=1e-9)


def test_summary_of_four_draws_by_hand():
    row = make(np.array([1.0, 2.0, 3.0, 6.0]).reshape(1, 4, 1)).summary().iloc[0]
    assert row["mean"] == 3.0
    assert row["sd"] == pytest.approx(np.sqrt(14.0 / 3.0), rel=1e-15)
    assert (row["hdi_low"], row["hdi_high"]) == (1.0, 6.0)


@pytest.mark.parametrize("shape", [(1, 1, 2), (1, 3, 1), (2, 5, 1), (1, 100, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_summary_of_short_and_single_chains_does_not_warn(shape, dtype):
    table = make(normals(*shape).astype(dtype)).summary()
    assert table.shape == (shape[2], 8)
    assert (table.dtypes == np.float64).all()
    assert table["mean"].notna().all()
    assert table["r_hat"].notna().all() == (shape[1] >= 4)


def test_summary_of_constant_draws_has_a_mean_and_no_diagnostics():
    row = make(np.full((4, 100, 1), 2.5)).summary().iloc[0]
    assert (row["mean"], row["sd"], row["hdi_low"], row["hdi_high"]) == (2.5, 0.0, 2.5, 2.5)
    assert row[["mcse", "ess_bulk", "ess_tail", "r_hat"]].isna().all()


def test_summary_of_draws_that_are_not_finite_is_nan_in_that_row_only():
    draws = normals(2, 50, 2)
    draws[1, 3, 0] = np.inf
    table = make(draws).summary()
    assert table.iloc[0].isna().all()
    assert table.iloc[1].notna().all()


def test_dataframe_has_a_row_per_draw_under_the_chains_own_numbers():
    trace = make(normals(2, 3, 2), info={"chains": [0, 5]})
    frame = trace.to_dataframe()
    assert list(frame.index.names) == ["chain", "draw"]
    assert list(frame.columns) == ["theta[0]", "theta[1]"]
    assert (frame.loc[5].to_numpy() == trace.draws[1]).all()
    assert frame.loc[(0, 2), "theta[1]"] == trace.draws[0, 2, 1]


def test_a_trace_tells_its_size_and_story_in_two_lines():
    trace = make(normals(4, 10, 3), {"sampler": "SGLD(0.1)", "model": "x" * 500, "seconds": 2.0, "interrupted": True})
    assert (trace.chains, trace.n_draws, trace.dim) == (4, 10, 3)
    first, second = repr(trace).splitlines()
    assert first == "<Trace: 4 chains × 10 draws × 3 parameters, float64"
    assert second.startswith(" SGLD(0.1) on xxx")
    assert second.endswith("2 s, interrupted>")
    assert len(second) < 160
    assert "1 chain × 1 draw × 1 parameter," in repr(make(normals(1, 1, 1), {}))


def test_html_is_escaped_and_bounded():
    page = make(normals(2, 10, 30), {"sampler": "<script>alert(1)</script>"})._repr_html_()
    assert "<script>" not in page
    assert "theta[19]" in page
    assert "theta[20]" not in page
    assert "10 more parameters" in page


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"draws": normals(4, 3)}, r"draws is float64 of shape \(4, 3\)"),
        ({"draws": np.zeros((2, 3, 4), int)}, "draws is int64"),
        ({"names": ("a",)}, "names holds 1 different names; give 2"),
        ({"names": ("a", "a")}, "names holds 1 different names; give 2"),
        ({"kinetic_temperature": np.ones(3)}, r"kinetic_temperature has shape \(3,\)"),
        ({"info": {"chains": [1]}}, r"info\['chains'\] names 1 chains; draws has 2"),
    ],
)
def test_a_trace_that_does_not_fit_together_is_refused(change, message):
    good = {"draws": normals(2, 3, 2), "info": {}, "final": {}}
    good |= {"kinetic_temperature": np.ones(2), "configurational_temperature": np.ones(2)}
    with pytest.raises(ValueError, match=message):
        Trace(**(good | change))


# ---- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_saved_trace_comes_back_bit_for_bit(tmp_path, dtype):
    draws = normals(2, 5, 3).astype(dtype)
    draws[0, 0] = [np.nan, -0.0, np.inf]
    info = {
        "seed": np.int64(7),
        "seconds": 1.5,
        "chains": [0, 3],
        "versions": {"numba": "1"},
        "temperature": np.float32(1),
    }
    final = {"theta": normals(2, 3).astype(dtype), "step": np.int64(9), "rows": np.arange(4, dtype=np.uint32)}
    trace = make(draws, info, ("α", "b c", "d/../e"), final)
    trace.kinetic_temperature[1] = np.nan
    trace.save(tmp_path / "run.npz")
    back = Trace.load(tmp_path / "run.npz")
    for name in ("draws", "kinetic_temperature", "configurational_temperature"):
        assert getattr(back, name).tobytes() == getattr(trace, name).tobytes()
        assert getattr(back, name).dtype == getattr(trace, name).dtype
    assert back.names == trace.names
    assert back.info == {**info, "seed": 7, "temperature": 1.0}
    assert list(back.final) == list(final)
    for name, value in final.items():
        assert (back.final[name] == value).all()
        assert back.final[name].dtype == value.dtype
    assert os.listdir(tmp_path) == ["run.npz"]


def test_the_name_of_the_file_is_the_name_that_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make(normals(1, 4, 1)).save("run")
    assert os.listdir(tmp_path) == ["run"]
    assert Trace.load("run").n_draws == 4


def test_a_failed_save_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    make(normals(1, 4, 1)).save(path)
    before = path.read_bytes()
    with pytest.raises(TypeError, match=r"info holds <object .* give what JSON can hold"):
        make(normals(1, 5, 1), {"sampler": object()}).save(path)

    def full_disk(member, array):
        member.write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(archive, "_write_array", full_disk)
    with pytest.raises(OSError, match="no space left"):
        make(normals(1, 5, 1)).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["run.npz"]


def saved(tmp_path: Path) -> bytes:
    make(normals(2, 20, 2), final={"theta": normals(2, 2)}).save(tmp_path / "good.npz")
    return (tmp_path / "good.npz").read_bytes()


def assert_refused(path: Path, message: str = "is not a complete file of Trace.save|is a damaged trace") -> None:
    with pytest.raises(ValueError, match=message) as caught:
        Trace.load(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path):
    whole = saved(tmp_path)
    for end in [*range(0, len(whole), 97), len(whole) - 1]:
        (tmp_path / "cut.npz").write_bytes(whole[:end])
        assert_refused(tmp_path / "cut.npz")


def test_a_file_with_a_flipped_byte_is_refused_or_equal(tmp_path):
    whole = saved(tmp_path)
    good = Trace.load(tmp_path / "good.npz")
    for at in range(0, len(whole), 23):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        (tmp_path / "bad.npz").write_bytes(damaged)
        try:
            back = Trace.load(tmp_path / "bad.npz")
        except ValueError:
            continue  # the checksum of the zip, or one of our own checks
        assert back.draws.tobytes() == good.draws.tobytes()


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x05\x06" + b"\0" * 18, b"\x93NUMPY\x01\x00"])
def test_a_file_of_somebody_else_is_refused(tmp_path, content):
    (tmp_path / "other.npz").write_bytes(content)
    assert_refused(tmp_path / "other.npz")


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        Trace.load(tmp_path / "nothing.npz")


def rewritten(tmp_path: Path, change: dict[str, bytes | None], compression: int = zipfile.ZIP_STORED) -> Path:
    """The good file with members replaced, added or (None) left out."""
    saved(tmp_path)
    with zipfile.ZipFile(tmp_path / "good.npz") as old, zipfile.ZipFile(tmp_path / "bad.npz", "w", compression) as new:
        members = {name: old.read(name) for name in old.namelist()} | change
        for name, content in members.items():
            if content is not None:
                new.writestr(name, content)
    return tmp_path / "bad.npz"


def npy(array, **options) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def header(**change) -> dict[str, bytes | None]:
    good = {"format": "sgmcmc.trace", "version": 1, "info": {}, "names": ["a", "b"]}
    return {"header.npy": npy(np.array(json.dumps({k: v for k, v in (good | change).items() if v is not None})))}


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


PROMISE = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little")
PROMISE += b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000, 10), }".ljust(117) + b"\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (header(version=2), "it has format version 2, and this sgmcmc reads 1"),
        (header(format="other"), "its header does not say sgmcmc.trace"),
        (header(info=None), "info is missing"),
        (header(names=["a"]), "names holds 1 different names"),
        (header(names=3), "is a damaged trace"),
        ({"header.npy": npy(np.array("{"))}, "not a complete file"),
        ({"header.npy": npy(np.array("[" * 100_000))}, "not a complete file"),
        ({"header.npy": None}, "it has no header"),
        ({"draws.npy": None}, "draws is missing"),
        ({"draws.npy": npy(normals(3, 3))}, "draws is float64 of shape"),
        ({"draws.npy": npy(np.array([Bomb()], dtype=object), allow_pickle=True)}, "promises object"),
        ({"final/x.npy": npy(np.array([Bomb()], dtype=object), allow_pickle=True)}, "promises object"),
        ({"draws.npy": PROMISE}, "promises float64 of shape .* which it does not hold"),
        ({"final/x.npy": b"not an array"}, "not a complete file"),
    ],
)
def test_a_hostile_file_is_refused_and_nothing_in_it_runs(tmp_path, monkeypatch, change, message):
    monkeypatch.chdir(tmp_path)
    assert_refused(rewritten(tmp_path, change), message)
    assert not (tmp_path / "exploded").exists()


def test_the_rewritten_file_without_a_change_is_good(tmp_path):
    assert Trace.load(rewritten(tmp_path, {})).n_draws == 20


def test_a_compressed_file_is_refused_before_it_is_unpacked(tmp_path):
    assert_refused(rewritten(tmp_path, {}, zipfile.ZIP_DEFLATED), "is compressed")


# ---- neighbours ------------------------------------------------------------------------------------------------------


def test_to_arviz_without_arviz_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz_base", None)
    with pytest.raises(ImportError, match=r"to_arviz needs arviz-base and xarray; pip install sgmcmc\[arviz\]"):
        make(normals(2, 5, 2)).to_arviz()


def test_importing_the_trace_brings_neither_matplotlib_nor_arviz_nor_pandas():
    code = "import sys, sgmcmc.trace, sgmcmc.diagnostics; print(*{m.partition('.')[0] for m in sys.modules})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "sgmcmc" in found
    assert not {"matplotlib", "arviz_stats", "arviz_base", "pandas", "xarray"} & set(found)
