"""Pictures: they return axes, draw where they are told, never warn, and show what the draws are."""

from __future__ import annotations

import io

import matplotlib as mpl
import numpy as np
import pytest
from scipy.signal import lfilter

import sgmcmc as sg
from sgmcmc import plots
from sgmcmc.plots.chains import moving_average
from sgmcmc.trace import Trace

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

KINDS = ["plot_trace", "plot_marginals", "plot_autocorrelation"]


@pytest.fixture(autouse=True)
def _no_figure_outlives_its_test():
    yield
    plt.close("all")


def make(chains=4, n=300, dim=3, seed=1, **info):
    noise = np.random.default_rng(seed).normal(size=(chains, n, dim))
    draws = lfilter([1.0], [1.0, -0.6], noise, axis=1) if n > 0 else noise
    return Trace(draws, info, np.ones(chains), np.ones(chains), {})


def paint(axes):
    axes.ravel()[0].figure.savefig(io.BytesIO(), dpi=40)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dim", [1, 3, 20])
def test_every_picture_returns_one_axes_per_parameter(kind, dim):
    trace = make(dim=dim)
    axes = getattr(trace, kind)()
    assert axes.shape == (dim,)
    assert [axis.get_title(loc="left") for axis in axes] == list(trace.names)
    assert len({id(axis.figure) for axis in axes}) == 1
    paint(axes)


@pytest.mark.parametrize("kind", KINDS)
def test_every_picture_draws_into_the_axes_it_is_given(kind):
    figure, grid = plt.subplots(2, 2)
    trace = make(dim=4)
    axes = getattr(trace, kind)(ax=grid)
    assert list(axes) == list(grid.ravel())
    assert plt.get_fignums() == [figure.number]
    assert all(axis.has_data() for axis in axes)
    one = getattr(trace, kind)(parameters=["theta[2]"], ax=plt.figure().gca())
    assert one.shape == (1,)
    paint(one)
    with pytest.raises(ValueError, match="ax holds 4 axes; give 1, one for each parameter shown"):
        getattr(trace, kind)(parameters=[0], ax=grid)


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_changes_no_setting_of_matplotlib(kind):
    before = dict(mpl.rcParams)
    getattr(make(dim=2), kind)()
    assert dict(mpl.rcParams) == before
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_of_many_parameters_the_first_twenty_are_shown_and_the_title_says_so(kind):
    axes = getattr(make(chains=1, n=20, dim=50), kind)()
    assert len(axes) == 20
    assert axes[0].figure.get_suptitle().endswith("first 20 of 50 parameters")


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_are_chosen_by_name_or_position(kind):
    trace = make(dim=5)
    axes = getattr(trace, kind)(parameters=[4, "theta[1]"])
    assert [axis.get_title(loc="left") for axis in axes] == ["theta[4]", "theta[1]"]
    assert axes[0].figure.get_suptitle().endswith(", 2 of 5 parameters")
    assert len(getattr(trace, kind)(parameters="theta[1]")) == 1
    for wrong, message in [
        (["beta"], "parameters='beta' is unknown"),
        ([5], "parameters=5 is out of range; give a whole number from 0 to 4"),
        ([], "parameters chooses 0 of 5 parameters; give 1 to 100"),
    ]:
        with pytest.raises(ValueError, match=message):
            getattr(trace, kind)(parameters=wrong)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 2, 1), (9, 30, 2), (1, 5000, 1)])
def test_short_long_and_many_chains_are_drawn_without_a_warning(kind, shape):
    paint(getattr(make(*shape), kind)())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [2.0, 0.0, np.nan, np.inf])
def test_constant_and_non_finite_draws_are_drawn_without_a_warning(kind, value):
    trace = make(chains=2, n=500, dim=2)
    trace.draws[:, :, 1] = value
    trace.draws[0, 5, 0] = value
    paint(getattr(trace, kind)())


def test_a_long_chain_keeps_its_one_spike_and_few_points():
    trace = make(chains=1, n=50_000, dim=1)
    trace.draws[0, 31_234, 0] = 77.0
    line = trace.plot_trace()[0].lines[0]
    assert len(line.get_xdata()) <= 1500
    assert line.get_ydata().max() == 77.0
    assert abs(line.get_xdata()[line.get_ydata().argmax()] - 31_234) < 100
    assert line.get_ydata().min() == trace.draws.min()


def test_the_moving_average_is_the_mean_of_its_window():
    x = np.random.default_rng(1).normal(size=5000) + 100.0
    middle, average = moving_average(x)
    assert average[0] == pytest.approx(x[:200].mean(), rel=1e-12)
    assert average[-1] == pytest.approx(x[-200:].mean(), rel=1e-12)
    assert (middle[0], middle[-1]) == (100.0, 4900.0)


def test_the_legend_names_the_chains_that_were_kept():
    trace = Trace(make(chains=2).draws, {"chains": [0, 3]}, np.ones(2), np.ones(2), {})
    axes = trace.plot_marginals(truth=[0.0, np.nan, 1.0])
    texts = [text.get_text() for text in axes[0].figure.legends[0].get_texts()]
    assert texts == ["chain 0", "chain 3", "truth"]


def test_marginals_show_the_density_the_interval_and_the_truth():
    trace = make(chains=2, n=5000, dim=2)
    axes = trace.plot_marginals(truth=[0.5, np.nan])
    filled = axes[0].patches[0].get_data()
    assert float(np.sum(filled.values * np.diff(filled.edges))) == pytest.approx(1.0, abs=1e-12)
    low, high = axes[0].lines[0].get_xdata()
    inside = (trace.draws[:, :, 0] >= low) & (trace.draws[:, :, 0] <= high)
    assert inside.mean() == pytest.approx(0.94, abs=2e-4)
    assert [float(x) for x in axes[0].lines[-1].get_xdata()] == [0.5, 0.5]
    assert len(axes[1].lines) == len(axes[0].lines) - 1
    with pytest.raises(ValueError, match=r"truth has shape \(1,\); give 2 number\(s\)"):
        trace.plot_marginals(truth=0.5)


def test_autocorrelation_goes_on_until_the_past_is_forgotten():
    fast, slow = make(n=4000, dim=1), make(n=4000, dim=1)
    slow.draws[:] = lfilter([1.0], [1.0, -0.98], slow.draws, axis=1)
    lags = [trace.plot_autocorrelation()[0].get_xlim()[1] for trace in (fast, slow)]
    assert lags[0] == 20
    assert 100 < lags[1] < 2000
    axis = fast.plot_autocorrelation(max_lag=7)[0]
    assert axis.get_xlim() == (0.0, 7.0)
    assert len(axis.lines[1].get_ydata()) == 8
    assert axis.lines[1].get_ydata()[0] == pytest.approx(1.0, abs=1e-15)
    with pytest.raises(ValueError, match="max_lag=4000 is out of range"):
        fast.plot_autocorrelation(max_lag=4000)


def test_colours_are_different_for_seven_chains():
    assert len(set(plots.COLOURS)) == 7


# ---- names -----------------------------------------------------------------------------------------------------------


def named():
    draws = make(chains=2, dim=7).draws
    return Trace(draws, {}, np.ones(2), np.ones(2), {}, parameters={"w": (2, 3), "b": ()})


@pytest.mark.parametrize("kind", KINDS)
def test_the_name_of_a_block_chooses_all_of_it(kind):
    axes = getattr(named(), kind)(parameters="w")
    assert [axis.get_title(loc="left") for axis in axes] == [f"w[{i},{j}]" for i in range(2) for j in range(3)]
    mixed = getattr(named(), kind)(parameters=["b", "w[1,2]", 0])
    assert [axis.get_title(loc="left") for axis in mixed] == ["b", "w[1,2]", "w[0,0]"]


def test_a_block_too_large_for_a_picture_is_refused():
    trace = Trace(np.zeros((1, 5, 101)), {}, np.ones(1), np.ones(1), {}, parameters={"w": (101,)})
    with pytest.raises(ValueError, match="parameters chooses 101 of 101 parameters; give 1 to 100 of them"):
        trace.plot_trace("w")


def test_the_truth_may_be_given_by_name():
    axes = named().plot_marginals(truth={"b": 0.25, "w[0,1]": -1.0})
    marked = [[float(x) for x in axis.lines[-1].get_xdata()] for axis in axes]
    assert marked[6] == [0.25, 0.25]
    assert marked[1] == [-1.0, -1.0]
    with pytest.raises(ValueError, match="truth='c' is unknown; choose one of 'w', 'b'"):
        named().plot_marginals(truth={"c": 1.0})


# ---- energies --------------------------------------------------------------------------------------------------------


def of_gaussian(chains=2, n=300, dim=3):
    trace = make(chains, n, dim)
    return Trace(trace.draws, {}, np.ones(chains), np.ones(chains), {}, model=sg.models.Gaussian(np.zeros(dim), 2.0))


def test_energies_are_those_of_the_model():
    trace = of_gaussian()
    expected = 0.25 * (trace.draws**2).sum(axis=2) + 1.5 * np.log(4.0 * np.pi)
    assert trace.energy() == pytest.approx(expected, rel=1e-12)
    assert trace.energy(sg.models.Gaussian(np.ones(3), 2.0)) != pytest.approx(expected, rel=1e-2)


def test_energies_of_some_draws_are_evenly_spaced_from_the_first_to_the_last():
    trace = of_gaussian(n=1001)
    some = trace.energy(most=22)
    assert some == pytest.approx(trace.energy()[:, ::100], rel=1e-12)


def test_the_picture_of_energies_shows_them_against_time_and_as_a_histogram():
    trace = of_gaussian(n=1001)
    time, law = trace.plot_energy()
    U = trace.energy(most=2000)
    assert time.lines[0].get_ydata() == pytest.approx(U[0], rel=1e-12)
    assert time.lines[0].get_xdata()[-1] == pytest.approx(1000.0)
    filled = law.patches[0].get_data()
    assert float(np.sum(filled.values * np.diff(filled.edges))) == pytest.approx(1.0, abs=1e-12)
    assert time.figure.get_suptitle() == "Potential energy of the draws, 1,000 of 1,001 draws of each chain"
    assert (time.get_xlabel(), time.get_ylabel(), law.get_xlabel()) == ("draw", "potential energy U", "density")
    given = plt.subplots(1, 2)[1]
    assert list(trace.plot_energy(ax=given)) == list(given)
    with pytest.raises(ValueError, match="ax holds 1 axes; give two"):
        trace.plot_energy(ax=given[0])


def test_energies_want_a_model_that_has_them_and_fits():
    bare = make()
    with pytest.raises(ValueError, match="this trace does not know its model"):
        bare.plot_energy()
    with pytest.raises(ValueError, match="model has 1 parameters; the trace has 3"):
        bare.plot_energy(sg.models.FiveWell())
    with pytest.raises(TypeError, match="has no energy; give Potential"):
        bare.plot_energy(sg.Potential(lambda theta: theta, dim=3))


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 2, 1), (9, 30, 2), (1, 5000, 20)])
@pytest.mark.parametrize("kind", ["plot_energy", "plot_pairs"])
def test_energies_and_pairs_of_any_size_are_drawn_without_a_warning(kind, shape):
    paint(getattr(of_gaussian(*shape), kind)())


@pytest.mark.parametrize("value", [2.0, np.nan, np.inf])
@pytest.mark.parametrize("kind", ["plot_energy", "plot_pairs"])
def test_energies_and_pairs_of_constant_and_non_finite_draws_are_drawn(kind, value):
    trace = of_gaussian(n=500)
    trace.draws[:, :, 1] = value
    paint(getattr(trace, kind)())


# ---- pairs -----------------------------------------------------------------------------------------------------------


def test_pairs_fill_the_lower_triangle_and_name_its_edges():
    axes = make(dim=3).plot_pairs(truth=[0.0, np.nan, 1.0])
    assert axes.shape == (3, 3)
    assert all(axes[i, j] is None for i, j in zip(*np.triu_indices(3, 1), strict=True))
    assert [a.get_xlabel() for a in axes[2]] == ["theta[0]", "theta[1]", "theta[2]"]
    assert [a.get_ylabel() for a in axes[:, 0]] == ["theta[0]", "theta[1]", "theta[2]"]
    assert axes[0, 0].figure.get_suptitle() == "Pairs of parameters, with marginal densities"
    paint(axes)


def test_a_pair_shows_the_joint_draws_and_their_correlation():
    x = np.random.default_rng(1).normal(size=(1, 4000, 2))
    x[:, :, 1] += 3.0 * x[:, :, 0]
    trace = Trace(x, {}, np.ones(1), np.ones(1), {})
    panel = trace.plot_pairs()[1, 0]
    counts = panel.images[0].get_array()
    left, right, low, high = panel.images[0].get_extent()
    inside = (x[0, :, 0] >= left) & (x[0, :, 0] <= right) & (x[0, :, 1] >= low) & (x[0, :, 1] <= high)
    assert counts.sum() == inside.sum()
    assert counts[-5:, :20].sum() == 0  # rows are the second parameter: where it is large, the first is not small
    assert counts[-10:, -20:].sum() > 10
    assert panel.texts[0].get_text() == f"r {np.corrcoef(x[0].T)[0, 1]:.2f}"


def test_a_pair_alone_goes_into_one_axes_and_few_draws_are_points():
    axis = plt.figure().gca()
    (one,) = make(chains=2, n=50, dim=4).plot_pairs(["theta[3]", 1], ax=axis)
    assert one is axis
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("theta[3]", "theta[1]")
    assert axis.get_title(loc="left") == "theta[3] and theta[1]"
    assert [len(line.get_xdata()) for line in axis.lines] == [50, 50]
    with pytest.raises(ValueError, match="ax holds 1 axes; give 4 × 4, or one if two parameters are chosen"):
        make(dim=4).plot_pairs(ax=axis)
