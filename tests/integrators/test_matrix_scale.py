"""A matrix as scale: the chain runs in S⁻¹θ, whichever loop runs it, and what is kept is θ."""

from __future__ import annotations

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.bias.gradients import noise_variance
from sgmcmc.bias.stability import largest_curvature
from sgmcmc.integrators.preconditioning import from_units, in_units, slope_in_units

MEAN = np.array([0.3, -1.0, 2.0])
ROOT = np.array([[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [-2.0, 0.4, 3.0]])
COV = ROOT @ ROOT.T
S = np.array([[1.1, -0.2, 0.1], [0.8, 0.3, 0.0], [-1.5, 0.6, 2.0]])  # neither symmetric nor the root
SAMPLERS = {
    "SGLD": lambda scale: sg.SGLD(0.05, scale=scale),
    "SGHMC": lambda scale: sg.SGHMC(0.2, scale=scale),
    "SGMGTD": lambda scale: sg.SGMGTD(0.05, scale=scale),
    "SGMGTD, a = 2": lambda scale: sg.SGMGTD(0.03, a=2, scale=scale),
    "SGMGTD, a = 1.5": lambda scale: sg.SGMGTD(0.03, a=1.5, scale=scale),
    "Euler": lambda scale: sg.SGMGTD(0.02, integrator=sg.integrators.Euler(), scale=scale),
    "one thermostat": lambda scale: sg.SGNHT(0.1, per="chain", scale=scale),
}
OPTIONS = {"draws": 60, "warmup": 0, "chains": 2, "seed": 5, "progress": False, "warn": False}


def model_in_units(matrix):
    inverse = np.linalg.inv(matrix)
    return sg.models.Gaussian(inverse @ MEAN, inverse @ COV @ inverse.T)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_chain_is_that_of_the_model_in_its_units(name):
    start = np.array([[0.0, 0.5, 1.0], [1.0, -1.0, 0.0]])
    found = sg.sample(sg.models.Gaussian(MEAN, COV), SAMPLERS[name](S), init=start, **OPTIONS)
    plain = sg.sample(model_in_units(S), SAMPLERS[name](1.0), init=in_units(S, start), **OPTIONS)
    np.testing.assert_allclose(found.draws, from_units(S, plain.draws), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.final["p"], plain.final["p"], rtol=1e-7, atol=1e-9)
    transposed = sg.sample(sg.models.Gaussian(MEAN, COV), SAMPLERS[name](S.T), init=start, **OPTIONS)
    assert not np.allclose(transposed.draws, from_units(S, plain.draws), rtol=1e-3)


def test_a_diagonal_matrix_is_what_an_array_is():
    width = np.array([0.5, 2.0, 3.0])
    model = sg.models.Gaussian(MEAN, COV)
    runs = [sg.sample(model, sg.SGMGTD(0.05, scale=s), init=MEAN, **OPTIONS).draws for s in (width, np.diag(width))]
    np.testing.assert_allclose(*runs, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bits_are_the_same_in_pieces_and_among_others(dtype):
    model, sampler = sg.models.Gaussian(MEAN, COV), sg.SGMGTD(0.05, scale=S)
    options = OPTIONS | {"dtype": dtype, "init": np.zeros(3)}
    whole = sg.sample(model, sampler, **options | {"chains": 5, "threads": 2})
    assert np.array_equal(sg.sample(model, sampler, **options).draws, whole.draws[:2])
    first = sg.sample(model, sampler, **options | {"draws": 25})
    rest = sg.sample(model, sampler, **options | {"draws": 35, "init": first, "seed": None})
    assert np.array_equal(np.concatenate([first.draws, rest.draws], axis=1), whole.draws[:2])


def test_more_coordinates_than_a_block_are_still_one_frame():
    dim = 700
    rng = np.random.default_rng(1)
    matrix = np.eye(dim) + 0.1 * rng.standard_normal((dim, dim)) / np.sqrt(dim)
    model, start = sg.models.Gaussian(np.zeros(dim), 1.0), rng.standard_normal(dim)
    inverse = np.linalg.inv(matrix)
    own = OPTIONS | {"draws": 10, "chains": 1}
    found = sg.sample(model, sg.SGHMC(0.2, scale=matrix), init=start, **own)
    plain = sg.sample(
        sg.models.Gaussian(np.zeros(dim), inverse @ inverse.T), sg.SGHMC(0.2), init=inverse @ start, **own
    )
    np.testing.assert_allclose(found.draws, from_units(matrix, plain.draws), rtol=1e-6, atol=1e-8)


def test_a_gradient_in_python_may_have_a_frame_and_ask_and_tell_the_same_bits():
    inverse = np.linalg.inv(COV)
    potential = sg.Potential(lambda theta: inverse @ (theta - MEAN), dim=3)
    own, sampler = OPTIONS | {"init": np.zeros(3)}, sg.SGMGTD(0.05, scale=S)
    one, other = (sg.sample(m, sampler, **own) for m in (potential, sg.models.Gaussian(MEAN, COV)))
    np.testing.assert_allclose(one.draws, other.draws, rtol=1e-7, atol=1e-9)
    state = sampler.init(np.zeros(3), seed=5, gradient_variance=0.0)  # exact gradients, as a run knows by itself
    for row in one.draws[0]:
        state = sampler.step(state, inverse @ (state.theta - MEAN))
        assert np.array_equal(state.theta, row)


def test_the_law_is_right_where_one_number_for_all_does_not_get_there():
    cov = np.array([[1.0, 0.9999], [0.9999, 1.0]])
    model = sg.models.Gaussian(np.zeros(2), cov)
    options = {"draws": 4000, "warmup": 500, "chains": 16, "seed": 1, "progress": False, "warn": False}
    framed = sg.sample(model, sg.SGHMC(0.3, scale=np.linalg.cholesky(cov)), init=np.zeros(2), **options)
    plain = sg.sample(model, sg.SGHMC(0.3, scale=0.01), init=np.zeros(2), **options)
    errors = [abs(np.cov(t.draws.reshape(-1, 2).T) - cov).max() for t in (framed, plain)]
    assert errors[0] < 0.03 < 0.3 < errors[1]
    assert abs(framed.kinetic_temperature.mean() - 1.0) < 0.02
    assert abs(framed.configurational_temperature.mean() - 1.0) < 0.02


def test_the_report_is_in_the_units_of_the_frame():
    H = np.linalg.inv(COV)
    exact = np.linalg.eigvalsh(S.T @ H @ S)[-1]
    assert largest_curvature(lambda x: H @ x, np.zeros(3), S) == pytest.approx(exact, rel=1e-2)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    model = sg.models.LogisticRegression(X, rng.random(50) < 0.5)
    theta = np.array([0.1, 0.2, -0.3])
    singles = slope_in_units(S, np.stack([model.gradient(theta, np.array([i])) for i in range(50)]))
    np.testing.assert_allclose(noise_variance(model, theta, 5, "replacement", scale=S), singles.var(axis=0) / 5)
    trace = sg.sample(model, sg.SGHMC(0.05, scale=S), 200, batch_size=5, seed=0, progress=False, warn=False)
    said = str(trace.bias_report())
    assert "column " in said
    assert " of scale minibatches" in said


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        (np.ones((2, 3)), "square matrix"),
        (np.ones((2, 2)), "can be inverted"),
        (np.array([[1.0, np.nan], [0.0, 1.0]]), "scale"),
        (np.ones((2, 2, 2)), "square matrix"),
    ],
)
def test_what_is_no_frame_is_refused(scale, words):
    with pytest.raises(ValueError, match=words):
        sg.SGHMC(0.1, scale=scale)


def test_a_frame_of_another_size_is_refused_and_so_is_one_on_a_gpu():
    model = sg.models.Gaussian(MEAN, COV)
    with pytest.raises(ValueError, match=r"scale has shape \(2, 2\); give .* 3 coordinates"):
        sg.sample(model, sg.SGHMC(0.1, scale=np.eye(2)), 10, progress=False)
    with pytest.raises(ValueError, match="matrix, which couples"):
        sg.sample(model, sg.SGHMC(0.1, scale=np.eye(3)), 10, progress=False, device="cuda")
    trace = sg.sample(model, sg.SGHMC(0.1, scale=np.eye(3)), 10, progress=False, warn=False, device="auto")
    assert trace.info["device"] == "cpu"


def test_the_sampler_shows_it_and_owns_its_copy():
    given = S.copy()
    sampler = sg.SGHMC(0.1, scale=given)
    given[:] = 0.0
    assert np.array_equal(sampler.scale, S)
    assert sampler == sg.SGHMC(0.1, scale=S)
    assert sampler != sg.SGHMC(0.1, scale=S.T)
