"""A trace in ArviZ's hands: groups, names, shapes and coordinates, and its plots where it is installed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

import sgmcmc as sg
from sgmcmc.diagnostics.energies import log_likelihoods, log_priors
from sgmcmc.trace import Trace

pytest.importorskip("arviz_base")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = (RNG.random(40) < 1 / (1 + np.exp(-X @ [1.0, -1.0]))).astype(float)


def make(dim=7, **options):
    draws = np.random.default_rng(1).normal(size=(2, 50, dim))
    return Trace(draws, {"chains": [1, 4], "seed": 3}, np.array([0.9, 1.1]), np.ones(2), {}, **options)


def logistic(**options):
    return sg.models.LogisticRegression(X, Y, prior=sg.priors.Gaussian(2.0), **options)


def test_variables_have_the_names_and_shapes_of_the_parameters():
    trace = make(parameters={"w": (["age", "height"], 3), "b": ()})
    posterior = trace.to_arviz().posterior
    assert set(posterior.data_vars) == {"w", "b"}
    assert posterior["w"].dims == ("chain", "draw", "w_dim_0", "w_dim_1")
    assert posterior["b"].dims == ("chain", "draw")
    assert np.array_equal(posterior["w"].values, trace["w"])
    assert np.array_equal(posterior["w"].sel(w_dim_0="height", w_dim_1=1).values, trace["w[height,1]"])
    assert posterior.chain.values.tolist() == [1, 4]
    assert posterior.draw.values.tolist() == list(range(50))


def test_names_with_a_slash_get_a_dot_for_arviz_and_two_that_become_the_same_are_refused():
    trace = make(parameters={"mlp/w": (3, 2), "b": ()})
    assert np.array_equal(trace.to_arviz().posterior["mlp.w"].values, trace["mlp/w"])
    with pytest.raises(ValueError, match="are the same without slashes, as ArviZ wants; rename one"):
        make(parameters={"a/b": (3,), "a.b": (4,)}).to_arviz()


def test_a_trace_alone_has_theta_and_the_story_of_the_run():
    tree = make(dim=2).to_arviz()
    assert list(tree.children) == ["posterior"]
    assert list(tree.posterior.data_vars) == ["theta"]
    assert json.loads(tree.posterior.attrs["info"])["seed"] == 3
    assert tree.posterior.attrs["kinetic_temperature"] == [0.9, 1.1]
    assert tree.posterior.attrs["inference_library"] == "sgmcmc"


def test_with_its_model_there_are_log_densities_prior_and_data():
    trace, model = make(dim=2), logistic()
    tree = trace.to_arviz(model)
    assert set(tree.children) == {"posterior", "sample_stats", "prior", "observed_data", "constant_data"}
    assert tree.sample_stats["lp"].values[1, 7] == pytest.approx(-model.energy(trace.draws[1, 7]), rel=1e-12)
    assert np.array_equal(tree.sample_stats["energy"].values, -tree.sample_stats["lp"].values)
    assert np.array_equal(tree.observed_data["y"].values, Y)
    assert tree.constant_data["X"].dims == ("row", "X_dim_1")
    assert tree.prior["theta"].shape == (2, 50, 2)


def test_a_run_needs_no_model_and_a_loaded_trace_does(tmp_path):
    options = {"draws": 10, "warmup": 0, "chains": 2, "seed": 1, "progress": False}
    trace = sg.sample(logistic(), sg.SGLD(0.01), **options)
    assert "sample_stats" in trace.to_arviz().children
    trace.save(tmp_path / "t.npz")
    loaded = Trace.load(tmp_path / "t.npz")
    assert list(loaded.to_arviz().children) == ["posterior"]
    assert "sample_stats" in loaded.to_arviz(logistic()).children
    with pytest.raises(ValueError, match="log_likelihood=True needs the model"):
        loaded.to_arviz(log_likelihood=True)
    with pytest.raises(ValueError, match="model has 1 parameters; the trace has 2"):
        loaded.to_arviz(sg.models.FiveWell())


@pytest.mark.parametrize(
    ("prior", "law"),
    [
        (sg.priors.Gaussian(2.0, 1.0), stats.norm(1.0, 2.0)),
        (sg.priors.Laplace(0.5), stats.laplace(0.0, 0.5)),
        (sg.priors.LogGamma(0.3), stats.loggamma(0.3)),
    ],
)
def test_draws_of_the_prior_have_its_law(prior, law):
    trace = Trace(np.zeros((2, 1000, 2)), {}, np.ones(2), np.ones(2), {})
    drawn = trace.to_arviz(sg.models.LogisticRegression(X, Y, prior=prior)).prior["theta"].values.ravel()
    assert stats.kstest(drawn, law.cdf).pvalue > 1e-4
    assert stats.kstest(1.2 * drawn, law.cdf).pvalue < 1e-4  # the same draws, a fifth too wide


def test_models_without_prior_energy_or_data_have_no_such_groups():
    trace = make(dim=2)
    assert list(trace.to_arviz(sg.models.Gaussian([0.0, 0.0])).children) == ["posterior", "sample_stats"]
    assert list(trace.to_arviz(sg.Potential(lambda theta: theta, dim=2)).children) == ["posterior"]
    own = sg.Potential(lambda theta, data, rows: theta * rows.size, dim=2, data=(X, Y))
    assert trace.to_arviz(own).observed_data["data_0"].dims == ("row", "data_0_dim_1")


def test_log_likelihoods_and_log_priors_are_those_of_scipy():
    trace, model = make(dim=2), logistic()
    tree = trace.to_arviz(model, log_likelihood=True)
    z = trace.draws @ X.T
    expected = stats.bernoulli.logpmf(Y, 1 / (1 + np.exp(-z)))
    assert tree.log_likelihood["y"].values == pytest.approx(expected, rel=1e-9)
    assert tree.log_prior["theta"].values == pytest.approx(stats.norm.logpdf(trace.draws, scale=2.0), rel=1e-12)
    total = tree.log_likelihood["y"].sum("row").values + tree.log_prior["theta"].sum("theta_dim_0").values
    assert tree.sample_stats["lp"].values == pytest.approx(total, rel=1e-12)


def test_log_likelihoods_of_a_function_of_ones_own():
    def energy(theta, data, rows):
        return np.sum(0.5 * (data[rows] - theta[0]) ** 2)

    model = sg.Potential(lambda theta, data, rows: np.sum(theta - data[rows], keepdims=True), 1, Y, energy=energy)
    draws = RNG.normal(size=(1, 5, 1))
    assert log_likelihoods(model, draws)[0] == pytest.approx(-0.5 * (Y - draws[0]) ** 2, rel=1e-12)
    assert not log_priors(model, draws).any()
    with pytest.raises(ValueError, match="has no data; leave log_likelihood=False"):
        log_likelihoods(sg.models.FiveWell(), draws)
    with pytest.raises(ValueError, match="would fill more than 2 GB"):
        log_likelihoods(model, np.broadcast_to(0.0, (1, 10_000_000, 1)))


def test_simulated_responses_have_the_law_of_the_model():
    rng, at, n = np.random.default_rng(2), np.array([0.5, -1.0]), 4000
    linear = sg.models.LinearRegression(X, Y, noise=0.7)
    z = (np.array([linear.simulate(at, rng) for _ in range(n)]) - X @ at) / 0.7
    assert stats.kstest(z.ravel(), stats.norm.cdf).pvalue > 1e-4
    assert stats.kstest(1.1 * z.ravel(), stats.norm.cdf).pvalue < 1e-4
    p = 1 / (1 + np.exp(-X @ at))
    for model, theta in (
        (sg.models.LogisticRegression(X, Y), at),
        (sg.models.SoftmaxRegression(X, Y.astype(int)), np.column_stack((np.zeros(2), at)).ravel()),
    ):
        ones = np.mean([model.simulate(theta, rng) for _ in range(n)], axis=0)
        z = (ones - p) / np.sqrt(p * (1 - p) / n)
        assert np.abs(z).max() < 5.2
        assert np.abs((1 - ones - p) / np.sqrt(p * (1 - p) / n)).max() > 5.2  # labels the other way round


def test_simulated_responses_are_a_group_of_their_own():
    tree = make(dim=2).to_arviz(logistic(), predictive=True)
    assert tree.posterior_predictive["y"].dims == ("chain", "draw", "row")
    assert set(np.unique(tree.posterior_predictive["y"].values)) == {0.0, 1.0}
    with pytest.raises(
        TypeError, match=r"Gaussian\(2 parameters\) has no simulate\(theta, rng\); give model= one that has"
    ):
        make(dim=2).to_arviz(sg.models.Gaussian([0.0, 0.0]), predictive=True)


PLOTS = ["plot_autocorr", "plot_dist", "plot_energy", "plot_ess", "plot_forest", "plot_mcse", "plot_pair", "plot_rank"]
PLOTS += ["plot_ess_evolution", "plot_trace", "plot_ridge", "plot_prior_posterior", "plot_convergence_dist"]
PLOTS += ["plot_ppc_tstat", "plot_ppc_pava", "plot_loo_pit"]


@pytest.mark.parametrize("name", PLOTS)
@pytest.mark.filterwarnings("ignore")
def test_the_plots_of_arviz_work(name):
    plots = pytest.importorskip("arviz_plots", exc_type=Exception)
    import matplotlib.pyplot as plt

    trace = make(dim=3, parameters={"w": (2,), "b": ()})
    model = sg.models.LogisticRegression(np.column_stack((X, X[:, 0])), Y)
    tree = trace.to_arviz(model, log_likelihood=True, predictive=True)
    getattr(plots, name)(tree, backend="matplotlib")
    plt.close("all")
