"""Transforms: Jacobians against finite differences, densities by quadrature, draws against exact laws; each with a wrong twin."""

from __future__ import annotations

import itertools
import pickle

import numba
import numpy as np
import pytest
from scipy import stats

import sgmcmc as sg
from sgmcmc import diagnostics
from sgmcmc.priors import Gaussian
from sgmcmc.transforms import Above, Below, Bounded, Ordered, Positive, Real, Simplex

RNG = np.random.default_rng(1)
TRANSFORMS = [
    (Real(), (3,)),
    (Positive(), (2, 2)),
    (Above(-2.0), (3,)),
    (Below(5.0), (3,)),
    (Bounded(-1.0, 3.0), (3,)),
    (Bounded(), ()),
    (Ordered(), (4,)),
    (Ordered(), (2, 3)),
    (Simplex(), (2,)),
    (Simplex(), (5,)),
    (Simplex(), (2, 3)),
]
IDS = [f"{t!r}{shape}" for t, shape in TRANSFORMS]


def differences(function, u):
    """∂ function / ∂u, by central differences; last axes are those of u."""
    columns, h = [], 1e-5
    for place in itertools.product(*map(range, u.shape)):
        step = np.zeros(u.shape)
        step[place] = h
        columns.append((np.asarray(function(u + step)) - np.asarray(function(u - step))) / (2 * h))
    return np.stack(columns, axis=-1)


def independent(transform, x):
    """Coordinates of x that determine it: a simplex has one too many."""
    return x[..., :-1].ravel() if isinstance(transform, Simplex) else np.ravel(x)


def points(transform, shape):
    return [RNG.normal(0.0, 1.5, transform.free_shape(shape)) for _ in range(5)]


@pytest.mark.parametrize(("transform", "shape"), TRANSFORMS, ids=IDS)
def test_there_and_back_again(transform, shape):
    for u in points(transform, shape):
        x = transform.forward(u)
        assert x.shape == shape
        np.testing.assert_allclose(transform.inverse(x), u, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(("transform", "shape"), TRANSFORMS, ids=IDS)
def test_pull_back_is_the_transpose_of_the_jacobian(transform, shape):
    for u in points(transform, shape):
        slope = RNG.normal(size=shape)
        expected = differences(lambda v, s=slope: np.sum(s * transform.forward(v)), u)
        np.testing.assert_allclose(transform.pull_back(u, slope).ravel(), expected, rtol=2e-8, atol=1e-8)


@pytest.mark.parametrize(("transform", "shape"), TRANSFORMS, ids=IDS)
def test_log_jacobian_is_the_log_determinant_and_its_slope_the_derivative(transform, shape):
    for u in points(transform, shape):
        matrix = differences(lambda v: independent(transform, transform.forward(v)), u)
        expected = np.linalg.slogdet(matrix.reshape(u.size, u.size))[1]
        assert np.sum(transform.log_jacobian(u)) == pytest.approx(expected, rel=1e-6, abs=1e-7)
        slope = differences(lambda v: np.sum(transform.log_jacobian(v)), u)
        np.testing.assert_allclose(transform.log_jacobian_slope(u).ravel(), slope, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(("transform", "shape"), TRANSFORMS, ids=IDS)
def test_leading_axes_are_draws(transform, shape):
    u = RNG.normal(size=(2, 3, *transform.free_shape(shape)))
    for function in (transform.forward, transform.log_jacobian_slope):
        np.testing.assert_allclose(function(u)[1, 2], function(u[1, 2]), rtol=1e-14)
    np.testing.assert_allclose(
        transform.pull_back(u, transform.forward(u))[1, 0], transform.pull_back(u[1, 0], transform.forward(u[1, 0]))
    )


@pytest.mark.parametrize("transform", [Bounded(-1.0, 3.0), Simplex()], ids=repr)
def test_far_out_nothing_overflows(transform):
    for size in (50.0, 700.0):
        u = np.array([size, -size])
        with np.errstate(all="raise", under="ignore"):
            for value in (transform.forward(u), transform.log_jacobian(u), transform.log_jacobian_slope(u)):
                assert np.isfinite(value).all()


# ---- change of variables: the density of u must have the integral 1 ------------------------------------------------------

LAWS = {
    "gamma": (Positive(), (), lambda x: stats.gamma(2.5).pdf(x)),
    "above": (Above(-2.0), (), lambda x: stats.expon(-2.0).pdf(x)),
    "below": (Below(5.0), (), lambda x: stats.expon().pdf(5.0 - x)),
    "beta": (Bounded(-1.0, 3.0), (), lambda x: stats.beta(2, 3, -1.0, 4.0).pdf(x)),
    "dirichlet": (Simplex(), (3,), lambda x: 60 * x[..., 0] * x[..., 1] ** 2),
    "ordered": (Ordered(), (2,), lambda x: 2 * stats.norm.pdf(x).prod(axis=-1)),
}


def integral(transform, shape, density, with_jacobian):
    """∫ p(x(u)) |det| du by the trapezoidal rule on a wide grid."""
    free = transform.free_shape(shape)
    axis = np.linspace(-40.0, 40.0, 4001 if free == () else 1201)
    if free == ():
        u, cell = axis, axis[1] - axis[0]
        size = np.exp(transform.log_jacobian(u))
    else:
        u = np.stack(np.meshgrid(*[axis] * free[0], indexing="ij"), axis=-1)
        cell = (axis[1] - axis[0]) ** free[0]
        size = np.exp(transform.log_jacobian(u).sum(axis=-1))
    return float(np.sum(density(transform.forward(u)) * (size if with_jacobian else 1.0)) * cell)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.filterwarnings("ignore:overflow")
def test_a_density_keeps_its_integral_and_loses_it_without_the_jacobian(law):
    transform, shape, density = LAWS[law]
    if law == "dirichlet":  # Γ(6)/(Γ(2)Γ(3)Γ(1)) = 60, in the first two coordinates
        assert density(np.array([0.2, 0.3, 0.5])) == pytest.approx(stats.dirichlet([2, 3, 1]).pdf([0.2, 0.3, 0.5]))
    assert integral(transform, shape, density, with_jacobian=True) == pytest.approx(1.0, abs=1e-6)
    assert abs(integral(transform, shape, density, with_jacobian=False) - 1.0) > 0.05


# ---- models ------------------------------------------------------------------------------------------------------------


def slopes(x):
    """−∇log density of (s, q, p₁…p₃): s ~ Gamma(3), q ~ Beta(2, 3) on (−1, 3), p ~ Dirichlet(2, 3, 4)."""
    s, q, p = x[0], x[1], x[2:]
    return np.concatenate([[1 - 2 / s], [-1 / (q + 1) + 2 / (3 - q)], -np.array([1, 2, 3]) / p])


def energy(x):
    s, q, p = x[0], x[1], x[2:]
    return s - 2 * np.log(s) - np.log(q + 1) - 2 * np.log(3 - q) - np.sum(np.array([1, 2, 3]) * np.log(p))


NAMES = {"s": Positive(), "q": Bounded(-1.0, 3.0), "p": Simplex(3)}
MEANS = np.array([3.0, -1 + 4 * 0.4, 2 / 9, 3 / 9, 4 / 9])


def model():
    return sg.constrained(sg.Potential(slopes, dim=5, energy=energy), NAMES)


class Forgetful(Positive):
    """Positive without its Jacobian."""

    def log_jacobian(self, u):
        return np.zeros_like(u)

    def log_jacobian_slope(self, u):
        return np.zeros_like(u)


class HalfForgetful(Positive):
    """A log-Jacobian whose slope is missing."""

    def log_jacobian_slope(self, u):
        return np.zeros_like(u)


def test_the_gradient_of_a_constrained_model_is_that_of_its_energy_and_a_wrong_one_is_seen():
    assert model().dim == 4
    assert sg.check_gradient(model()) < 1e-7
    assert sg.check_gradient(model(), energy=energy) < 1e-7
    wrong = sg.constrained(sg.Potential(slopes, dim=5, energy=energy), NAMES | {"s": HalfForgetful()})
    with pytest.raises(ValueError, match=r"gradient\[0\] is"):
        sg.check_gradient(wrong)


def z_scores(built, seed=3):
    trace = sg.sample(built, sg.SGHMC(0.25), 6000, warmup=500, thin=2, chains=1, seed=seed, progress=False)
    x = built.constrain(trace).draws
    errors = [diagnostics.mcse(x[:, :, j]) for j in range(5)]
    return (x.mean(axis=(0, 1)) - MEANS) / errors


def test_draws_of_constrained_parameters_have_the_exact_means_and_without_the_jacobian_not():
    z = z_scores(model())
    assert np.abs(z).max() < 5.2, z
    wrong = sg.constrained(sg.Potential(slopes, dim=5), NAMES | {"s": Forgetful()})
    assert abs(z_scores(wrong)[0]) > 10


def test_a_trace_of_constrained_parameters_has_names_and_stays_inside():
    built = model()
    trace = sg.sample(built, sg.SGHMC(0.2), 50, warmup=0, chains=2, seed=1, progress=False)
    shown = built.constrain(trace)
    assert shown.names == ("s", "q", "p[0]", "p[1]", "p[2]")
    assert shown["p"].shape == (2, 50, 3)
    free = ("unconstrained.s", "unconstrained.q", "unconstrained.p[0]", "unconstrained.p[1]")
    assert trace.names == free
    assert not set(free) & set(shown.names)
    parts = built.unflatten(trace.draws)
    assert parts["p"].shape == (2, 50, 3)
    assert parts["s"].shape == (2, 50)
    np.testing.assert_allclose(parts["p"].sum(axis=-1), 1.0, rtol=1e-12)
    assert (parts["s"] > 0).all()
    assert ((parts["q"] > -1) & (parts["q"] < 3)).all()
    more = sg.sample(built, sg.SGHMC(0.2), 5, warmup=0, chains=2, init=trace, progress=False)
    assert more.n_draws == 5


def test_a_model_that_declares_its_parameters_is_told_only_the_bounds():
    inner = sg.Potential(slopes, parameters={"s": (), "q": (), "p": (3,)}, energy=energy)
    built = sg.constrained(inner, {"p": Simplex(), "q": Bounded(-1.0, 3.0), "s": Positive()})  # in any order
    u = RNG.normal(size=4)
    assert (built.gradient(u) == model().gradient(u)).all()
    assert built.labels == model().labels
    assert type(sg.constrained(inner, {"s": Positive()}).transforms[2]) is Real
    with pytest.raises(ValueError, match="unknown name 'r'; the model has s, q, p"):
        sg.constrained(inner, {"r": Positive()})
    one = sg.constrained(sg.Potential(lambda theta: theta, dim=3), {"theta": Positive()})
    assert one.labels == ("theta[0]", "theta[1]", "theta[2]")


def test_flatten_is_where_a_run_starts():
    given = {"s": 2.0, "q": 0.5, "p": np.array([0.2, 0.3, 0.5])}
    u = model().flatten(given)
    back = model().unflatten(u)
    for name, value in given.items():
        np.testing.assert_allclose(back[name], value, rtol=1e-12)


@numba.njit
def scale_gradient(theta, data, rows, out):
    """−log N(y | 0, s²) by s."""
    for i in rows:
        out[0] += 1.0 / theta[0] - data[i] ** 2 / theta[0] ** 3


def scale_energy(theta, data, rows):
    return np.sum(np.log(theta[0]) + 0.5 * (data[rows] / theta[0]) ** 2)


def test_compiled_models_data_minibatches_and_priors_pass_through():
    y = np.random.default_rng(0).normal(0.0, 2.0, 40)
    inner = sg.Potential(scale_gradient, dim=1, data=y, prior=Gaussian(5.0), energy=scale_energy)
    built = sg.constrained(inner, {"s": Positive()})
    assert built.n_rows == 40
    assert sg.check_gradient(built) < 1e-8
    assert sg.check_gradient(built, rows=[1, 5, 7]) < 1e-8
    for dtype in (np.float64, np.float32):
        trace = sg.sample(
            built, sg.SGNHT(0.1, scale=0.2), 20, warmup=0, chains=1, batch_size=8, seed=1, dtype=dtype, progress=False
        )
        assert trace.draws.dtype == dtype
        assert np.isfinite(trace.draws).all()
    logistic = sg.models.LogisticRegression(np.eye(3), np.array([0, 1, 1]))
    assert sg.check_gradient(sg.constrained(logistic, {"w": Ordered(3)})) < 1e-8


def test_a_constrained_model_survives_a_pickle():
    built = sg.constrained(sg.Potential(slopes, dim=5), NAMES)
    again = pickle.loads(pickle.dumps(built))
    u = RNG.normal(size=4)
    assert (again.gradient(u) == built.gradient(u)).all()
    assert "s: Positive" in repr(again)


def test_a_checkpoint_of_other_bounds_or_of_another_model_inside_is_refused(tmp_path):
    options = {"draws": 5, "warmup": 0, "chains": 1, "seed": 1, "progress": False}
    options |= {"checkpoint": tmp_path / "run.npz", "resume": True}
    built = sg.constrained(sg.Potential(lambda x: x, dim=1), {"s": Positive()})
    trace = sg.sample(built, sg.SGHMC(0.1), **options)
    assert np.array_equal(sg.sample(built, sg.SGHMC(0.1), **options).draws, trace.draws)
    with pytest.raises(ValueError, match=r"another run: model\.transforms"):
        sg.sample(sg.constrained(sg.Potential(lambda x: x, dim=1), {"s": Above(1.0)}), sg.SGHMC(0.1), **options)
    with pytest.raises(ValueError, match=r"another run: model\.inner\.gradient_function"):
        sg.sample(sg.constrained(sg.Potential(lambda x: 2 * x, dim=1), {"s": Positive()}), sg.SGHMC(0.1), **options)


BAD = [
    (lambda: Bounded(1.0, 1.0), "high=1.0 is out of range; give a number above 1"),
    (lambda: Bounded(0.0, np.inf), "high=inf is out of range"),
    (lambda: Above(np.nan), "low=nan is out of range"),
    (lambda: Simplex(0), "shape=0 is out of range"),
    (lambda: sg.constrained(sg.Potential(slopes, dim=5), {"s": Positive()}), "transforms name 1 numbers; the model has 5"),
    (lambda: sg.constrained(sg.Potential(slopes, dim=5), {"s": Real(4), "p": Simplex()}), r"Simplex\(.*shape \(\); give"),
    (lambda: sg.constrained(sg.Potential(slopes, dim=5), {"s": "positive"}), "give a dictionary of names and values"),
    (lambda: sg.constrained(np.zeros(3), {"s": Real(3)}), "the model is a ndarray"),
    (lambda: model().flatten({"s": -1.0, "q": 0.5, "p": [0.2, 0.3, 0.5]}), "outside of Positive"),
    (lambda: model().flatten({"s": 1.0, "q": 4.0, "p": [0.2, 0.3, 0.5]}), "outside of Bounded"),
    (lambda: model().flatten({"s": 1.0, "q": 0.5, "p": [0.2, 0.3, 0.6]}), "outside of Simplex"),
    (lambda: Ordered().inverse(np.array([1.0, 1.0])), "outside of Ordered"),
    (lambda: model().flatten({"s": 1.0}), "parameters are s; give s, q, p"),
    (lambda: model().unflatten(np.zeros(5)), "give floats with a last axis of 4"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), BAD, ids=[m for _, m in BAD])
def test_what_is_wrong_is_refused_in_one_sentence(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
