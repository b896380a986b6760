"""Gradient estimators: unbiased, less noisy by what theory says, and the law that is drawn from stays the same."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc import diagnostics
from sgmcmc.bias.gradients import noise_variance
from sgmcmc.estimators import control_variate, find_mode, importance_rows, sample_svrg

QUIET = {"progress": False, "threads": 1}


def logistic(n=2000, uneven=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    if uneven:
        X[: n // 50] *= 20.0
    y = rng.random(n) < 1 / (1 + np.exp(-X @ [0.5, -1.0, 0.3]))
    return sg.models.LogisticRegression(X, y, prior=sg.priors.Gaussian(2.0))


MODEL = logistic()
MODE = find_mode(MODEL)
AWAY = MODE + np.array([0.1, -0.2, 0.05])


def test_the_mode_is_a_mode():
    assert abs(MODEL.gradient(MODE)).max() < 1e-3 * np.sqrt(MODEL.n_rows)


@pytest.mark.parametrize(
    "wrap", [lambda m: control_variate(m, AWAY), lambda m: importance_rows(m, np.linspace(1, 9, 2000))]
)
def test_the_mean_over_rows_is_the_whole_gradient_and_energies_are_the_same(wrap):
    model, theta = wrap(MODEL), MODE - 0.3
    single = np.mean([model.gradient(theta, np.array([i])) for i in range(model.n_rows)], axis=0)
    np.testing.assert_allclose(single, MODEL.gradient(theta), rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(model.gradient(theta), MODEL.gradient(theta), rtol=1e-9, atol=1e-7)
    assert model.energy(theta) == MODEL.energy(theta)
    rows = np.arange(model.n_rows)
    np.testing.assert_allclose(model.gradient(theta, rows), MODEL.gradient(theta), rtol=1e-9, atol=1e-7)
    assert (rows == np.arange(model.n_rows)).all()  # what was handed in is as it was
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.gradient(theta, np.array([3, 5])), model.gradient(theta, np.array([3, 5])))


def test_a_wrong_sum_at_the_centre_is_a_bias_that_the_mean_over_rows_sees():
    right = control_variate(MODEL, AWAY)
    wrong = right._replace(per_row=1.1 * right.per_row)
    single = np.mean([wrong.gradient(MODE, np.array([i])) for i in range(wrong.n_rows)], axis=0)
    assert abs(single - MODEL.gradient(MODE)).max() > 1.0


def test_the_noise_of_control_variates_goes_with_the_square_of_the_distance():
    model, direction = control_variate(MODEL, MODE), np.array([1.0, -0.5, 0.2])
    noise = [noise_variance(model, MODE + r * direction, 16, "replacement").sum() for r in (0.0, 0.01, 0.02, 0.04)]
    assert noise[0] < 1e-12 * noise_variance(MODEL, MODE, 16, "replacement").sum()
    np.testing.assert_allclose(np.array(noise[2:]) / noise[1:-1], 4.0, rtol=0.1)
    sd = np.sqrt(np.diag(np.linalg.inv(_hessian(MODEL, MODE))))
    typical = noise_variance(model, MODE + sd, 16, "replacement").sum()
    plain = noise_variance(MODEL, MODE + sd, 16, "replacement").sum()
    assert plain / typical > MODEL.n_rows / 20  # of order N


def _hessian(model, theta, e=1e-4):
    return np.array([(model.gradient(theta + d) - model.gradient(theta - d)) / (2 * e) for d in e * np.eye(theta.size)])


def test_importance_weights_have_less_noise_where_rows_differ_and_bad_weights_have_more():
    model = logistic(uneven=True)
    theta = find_mode(model)

    def trace_of_noise(m):
        return noise_variance(m, theta, 16, "replacement", most=10**5).sum()

    plain, good = trace_of_noise(model), trace_of_noise(importance_rows(model))
    bad = trace_of_noise(importance_rows(model, 1.0 / np.linalg.norm(model.X, axis=1)))
    assert good < 0.6 * plain
    assert bad > 1.5 * plain


@pytest.mark.parametrize("kind", ["control", "importance", "svrg"])
def test_the_law_stays_right(kind):
    model, sampler = logistic(500), sg.SGNHT(0.02, 5.0)
    options = {"warmup": 4000, "thin": 10, "batch_size": 16, "seed": 1, "chains": 4} | QUIET
    exact = sg.sample(model, sg.SGHMC(0.05, 5.0), 4000, **(options | {"batch_size": None}))
    if kind == "svrg":
        trace = sample_svrg(model, sampler, 4000, period=2000, **(options))
    else:
        wrapped = control_variate(model) if kind == "control" else importance_rows(model)
        trace = sg.sample(wrapped, sampler, 4000, **options)
    for j in range(3):
        one, two = (t.draws[:, :, j].astype(float) for t in (trace, exact))
        z = (one.mean() - two.mean()) / np.hypot(diagnostics.mcse(one), diagnostics.mcse(two))
        assert abs(z) < 4.5, (kind, j, z)
        assert abs(one.std() / two.std() - 1) < 0.12
    assert abs(trace.configurational_temperature.mean() - 1) < 0.1


def test_samplers_that_nothing_protects_are_hot_with_plain_rows_and_right_with_control_variates():
    options = {"draws": 1500, "warmup": 2000, "thin": 10, "batch_size": 16, "seed": 1, "warn": False} | QUIET
    plain = sg.sample(MODEL, sg.SGLD(3e-4), **options)
    better = sg.sample(control_variate(MODEL), sg.SGLD(3e-4), **options)
    assert plain.configurational_temperature.mean() > 3
    assert abs(better.configurational_temperature.mean() - 1) < 0.15


def test_the_stretches_of_svrg_are_one_run():
    options = {"batch_size": 16, "warmup": 30, "thin": 2, "seed": 3, "chains": 2} | QUIET
    trace = sample_svrg(MODEL, sg.SGNHT(0.01), 100, period=50, **options)
    assert trace.draws.shape == (2, 100, 3)
    assert trace.info["estimator"] == "SVRG"
    same = sample_svrg(MODEL, sg.SGNHT(0.01), 100, period=50, **options)
    np.testing.assert_array_equal(trace.draws, same.draws)
    assert len(np.unique(trace.draws[0, :, 0])) == 100


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: control_variate(sg.models.Gaussian(0.0, 1.0)), "has no data"),
        (lambda: control_variate(MODEL, np.zeros(2)), r"center has shape \(2,\); give \(3,\)"),
        (lambda: importance_rows(sg.models.Gaussian(0.0, 1.0)), "has no data"),
        (lambda: importance_rows(MODEL, np.zeros(2000)), "give 2000 numbers above 0"),
        (lambda: importance_rows(MODEL, slots=0), "slots=0 is out of range"),
        (lambda: sample_svrg(MODEL, sg.SGLD(1e-4), batch_size=16, out="x.npy"), "out is not for sample_svrg"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_models_in_python_are_refused():
    own = sg.Potential(lambda theta, data, rows: theta * rows.size, dim=2, data=np.zeros(5))
    for wrap in (control_variate, importance_rows):
        with pytest.raises(TypeError, match="for compiled models"):
            wrap(own)
