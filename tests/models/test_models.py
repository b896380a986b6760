"""Models: gradients against formulas written apart from them, known answers, and what they refuse."""

from __future__ import annotations

import itertools
import os
import pickle
import re
import subprocess
import sys

import mpmath
import numba
import numpy as np
import pytest
from llvmlite import binding
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit, log_expit, log_softmax, logsumexp, softmax
from scipy.stats import multivariate_normal, norm

import sgmcmc as sg
from sgmcmc import priors
from sgmcmc.models import FiveWell, Gaussian, GaussianMixture, LinearRegression, LogisticRegression, SoftmaxRegression
from sgmcmc.potentials import add_gradient, check_gradient, estimate, full_energy, full_gradient, laid_out
from sgmcmc.samplers import in_precision

RNG = np.random.default_rng(20240)
N, D, K = 43, 7, 5  # none a multiple of 4, so that remainders of unrolled loops are used
X = RNG.normal(0.3, 1.5, (N, D))
BINARY = RNG.integers(0, 2, N)
LABELS = RNG.permutation(np.arange(N) % K)
RESPONSE = RNG.normal(0.0, 2.0, N)
ROOT = RNG.normal(0.0, 1.0, (D, D))
COV = ROOT @ ROOT.T + 0.1 * np.eye(D)
MEAN = RNG.normal(0.0, 1.0, D)
VARIANCES = np.geomspace(0.01, 9.0, D)
MEANS = np.array([[0.0, 0.0], [2.0, 2.0], [-2.0, 2.0], [2.0, -2.0], [-2.0, -2.5]])
WEIGHTS = np.array([0.2, 0.3, 0.1, 0.25, 0.15])
SCALES = np.array([0.7, 0.5, 0.9, 1.1, 0.3])
COEFFICIENTS = np.array([-0.47, -0.83, -0.71, -0.02, 0.24, 0.01, 0.27, -0.37, 0.87, -0.37])

MODELS = {
    "gaussian": Gaussian(MEAN, COV),
    "diagonal": Gaussian(MEAN, VARIANCES),
    "mixture": GaussianMixture(MEANS, SCALES, WEIGHTS),
    "five wells": FiveWell(),
    "linear": LinearRegression(X, RESPONSE, noise=0.7, prior=priors.Gaussian(2.0, 0.5)),
    "logistic": LogisticRegression(X, BINARY, prior=priors.Gaussian(1.5)),
    "softmax": SoftmaxRegression(X, LABELS, prior=priors.Laplace(0.8)),
}
WITH_DATA = ["linear", "logistic", "softmax"]


def five_well_energy(t):
    i = np.arange(1, 11)
    return 0.75 * t**2 + 1.5 * np.exp(-(COEFFICIENTS @ np.sin(i * np.pi * (t + 4) / 4)))


def five_well_slope(t):
    i = np.arange(1, 11)
    inside = i * np.pi * (t + 4) / 4
    return 1.5 * t - 1.5 * np.exp(-(COEFFICIENTS @ np.sin(inside))) * (COEFFICIENTS * i * np.pi / 4) @ np.cos(inside)


def numpy_energy(name, t):
    """U written with NumPy and SciPy alone."""
    if name == "gaussian":
        return -multivariate_normal(MEAN, COV).logpdf(t)
    if name == "diagonal":
        return -norm(MEAN, np.sqrt(VARIANCES)).logpdf(t).sum()
    if name == "mixture":
        return -logsumexp(norm(MEANS, SCALES[:, None]).logpdf(t).sum(axis=1), b=WEIGHTS)
    if name == "five wells":
        return five_well_energy(t[0])
    if name == "linear":
        return -norm(X @ t, 0.7).logpdf(RESPONSE).sum() - norm(0.5, 2.0).logpdf(t).sum()
    if name == "logistic":
        return -log_expit((2 * BINARY - 1) * (X @ t)).sum() - norm(0.0, 1.5).logpdf(t).sum()
    logits = log_softmax(X @ t.reshape(D, K), axis=1)
    return -logits[np.arange(N), LABELS].sum() + (abs(t) / 0.8 + np.log(1.6)).sum()


def numpy_gradient(name, t, rows=slice(None), weight=1.0):
    """∇U, or its estimate from rows, written with NumPy alone."""
    if name == "gaussian":
        return np.linalg.solve(COV, t - MEAN)
    if name == "diagonal":
        return (t - MEAN) / VARIANCES
    if name == "mixture":
        level = norm(MEANS, SCALES[:, None]).logpdf(t).sum(axis=1) + np.log(WEIGHTS)
        return softmax(level) @ ((t - MEANS) / SCALES[:, None] ** 2)
    if name == "five wells":
        return np.array([five_well_slope(t[0])])
    x = X[rows]
    if name == "linear":
        return weight * x.T @ (x @ t - RESPONSE[rows]) / 0.49 + (t - 0.5) / 4.0
    if name == "logistic":
        return weight * x.T @ (expit(x @ t) - BINARY[rows]) + t / 2.25
    residual = softmax(x @ t.reshape(D, K), axis=1) - np.eye(K)[LABELS[rows]]
    return weight * (x.T @ residual).ravel() + np.sign(t) / 0.8


def cast(value, dtype):
    """A model with its floats in another precision, as the engine makes it."""
    if isinstance(value, tuple):
        return value._make(cast(v, dtype) for v in value)
    if isinstance(value, np.ndarray):
        return value.astype(dtype) if value.dtype.kind == "f" else value
    return dtype(value) if isinstance(value, float) else value


def points(name, count=5):
    return np.random.default_rng(7).normal(0.0, 0.8, (count, MODELS[name].dim))


# ----------------------------------------------------------------------------------------------------------- gradients


@pytest.mark.parametrize("name", MODELS)
def test_energy_is_minus_the_log_density_of_scipy(name):
    for t in points(name):
        assert np.isclose(MODELS[name].energy(t), numpy_energy(name, t), rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_gradient_is_that_of_the_numpy_formula(name):
    for t in points(name):
        expected = numpy_gradient(name, t)
        assert np.allclose(MODELS[name].gradient(t), expected, rtol=1e-12, atol=1e-12 * abs(expected).max())


@pytest.mark.parametrize("name", MODELS)
def test_single_precision_gradient_and_energy_are_close_and_stay_single(name):
    model = cast(MODELS[name], np.float32)
    for t in points(name).astype(np.float32):
        rows, out = np.arange(MODELS[name].n_rows), np.zeros(t.size, np.float32)
        full_gradient(model, t, rows, np.float32(1.0), out)
        expected = numpy_gradient(name, t.astype(np.float64))
        assert np.allclose(out, expected, rtol=2e-5, atol=2e-6 * abs(expected).max())
        level = numpy_energy(name, t.astype(np.float64))
        assert np.isclose(full_energy(model, t, rows, np.float32(1.0)), level, rtol=2e-5, atol=1e-5)
    assert full_energy.nopython_signatures[-1].return_type.name == "float32"


@pytest.mark.parametrize("name", MODELS)
def test_gradient_is_the_derivative_of_the_energy(name):
    assert check_gradient(MODELS[name]) < 1e-8


def test_five_well_gradient_is_that_of_mpmath():
    def energy(t):
        angle = mpmath.pi * (t + 4) / 4
        series = sum(mpmath.mpf(str(c)) * mpmath.sin((i + 1) * angle) for i, c in enumerate(COEFFICIENTS))
        return mpmath.mpf("0.75") * t**2 + mpmath.mpf("1.5") * mpmath.exp(-series)

    for t in np.linspace(-3.0, 3.0, 13):
        with mpmath.workdps(40):
            expected = float(mpmath.diff(energy, mpmath.mpf(t)))
        assert np.isclose(FiveWell().gradient([t])[0], expected, rtol=1e-12, atol=1e-12)


def test_logistic_energy_and_gradient_survive_huge_margins():
    model = LogisticRegression([[1.0], [1.0]], [0, 1], prior=priors.Flat())
    assert model.energy([800.0]) == 800.0
    assert model.gradient([800.0])[0] == 1.0
    assert model.gradient([-800.0])[0] == -1.0


def test_mixture_and_softmax_survive_far_away_points():
    assert np.allclose(MODELS["mixture"].gradient([1e6, 0.0]), ([1e6, 0.0] - MEANS[3]) / SCALES[3] ** 2, rtol=1e-12)
    theta = np.zeros(D * K)
    theta[:K] = 1e5 * np.arange(K)
    assert np.isfinite(MODELS["softmax"].gradient(theta)).all()
    assert np.isfinite(MODELS["softmax"].energy(theta))


@pytest.mark.parametrize("name", MODELS)
def test_nan_in_theta_is_nan_in_the_gradient(name):
    theta = np.zeros(MODELS[name].dim)
    theta[-1] = np.nan
    assert np.isnan(MODELS[name].gradient(theta)).any()


# ---------------------------------------------------------------------------------------------------------- minibatches


@pytest.mark.parametrize("name", WITH_DATA)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 11])
def test_minibatch_estimate_is_that_of_the_numpy_formula_also_for_repeated_rows(name, n):
    rows = np.random.default_rng(n).integers(0, N, n)
    rows[-1] = rows[0]
    t = points(name)[0]
    assert np.allclose(MODELS[name].gradient(t, rows), numpy_gradient(name, t, rows, N / n), rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("name", WITH_DATA)
def test_average_over_all_single_row_batches_is_the_full_gradient(name):
    model, t = MODELS[name], points(name)[1]
    average = np.mean([model.gradient(t, [i]) for i in range(N)], axis=0)
    assert np.allclose(average, model.gradient(t), rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("name", WITH_DATA)
def test_a_prior_scaled_by_n_would_be_seen(name):
    model, t = MODELS[name], points(name)[1]
    prior = np.array([priors.slope(model.prior, x) for x in t])
    wrong = np.mean([N * (numpy_gradient(name, t, [i]) - prior) + N * prior for i in range(N)], axis=0)
    assert not np.allclose(wrong, model.gradient(t), rtol=1e-2, atol=1e-2)


# -------------------------------------------------------------------------------------------------------- known answers


def test_five_well_constants_are_those_of_quadrature():
    def integral(f, low=-6.0, high=6.0):
        edges = [low, *(b for b in (-4.0, -2.0, *FiveWell.BARRIERS, 3.0) if low < b < high), high]
        pairs = itertools.pairwise(edges)
        return sum(quad(lambda t: f(t) * np.exp(-five_well_energy(t)), a, b, epsabs=1e-13)[0] for a, b in pairs)

    z = integral(lambda t: 1.0)
    assert abs(z - FiveWell.Z) < 1e-10
    assert abs(integral(lambda t: t) / z - FiveWell.MEAN) < 1e-10
    assert abs(integral(lambda t: t * t) / z - FiveWell.SECOND_MOMENT) < 1e-10
    assert abs(integral(lambda t: 1.0, high=0.0) / z - FiveWell.BELOW_ZERO) < 1e-10
    assert abs(integral(lambda t: five_well_slope(t) ** 2) / z - FiveWell.SQUARED_GRADIENT) < 1e-8
    edges = [-6.0, *FiveWell.BARRIERS, 6.0]
    masses = [integral(lambda t: 1.0, a, b) / z for a, b in itertools.pairwise(edges)]
    assert np.allclose(masses, FiveWell.MASSES, rtol=0.0, atol=6e-9)
    for place in (*FiveWell.WELLS, *FiveWell.BARRIERS):
        assert abs(brentq(five_well_slope, place - 0.01, place + 0.01, xtol=1e-13) - place) < 1e-9
    assert np.allclose([FiveWell().mean[0], FiveWell().cov[0, 0]], [-0.01948505, 0.60351591], rtol=0.0, atol=1e-8)


def test_wells_are_minima_and_barriers_are_maxima():
    for places, sign in ((FiveWell.WELLS, 1.0), (FiveWell.BARRIERS, -1.0)):
        for t in places:
            assert sign * (FiveWell().gradient([t + 0.02])[0] - FiveWell().gradient([t - 0.02])[0]) > 0.0


def test_exact_posterior_of_linear_regression_has_no_gradient_and_the_right_curvature():
    model = MODELS["linear"]
    mean, cov = model.posterior()
    assert np.allclose(model.gradient(mean), 0.0, atol=1e-11)
    step = np.random.default_rng(3).normal(size=D)
    assert np.allclose(cov @ (model.gradient(mean + step) - model.gradient(mean)), step, rtol=1e-10)


def test_gaussian_knows_its_moments():
    assert np.array_equal(MODELS["gaussian"].mean, MEAN)
    assert np.allclose(MODELS["gaussian"].cov, COV, rtol=1e-15)
    assert np.array_equal(MODELS["diagonal"].cov, np.diag(VARIANCES))
    assert isinstance(MODELS["diagonal"], Gaussian)
    assert Gaussian().dim == 1
    assert np.array_equal(Gaussian(2.0, np.eye(3)).mean, [2.0, 2.0, 2.0])
    assert np.array_equal(Gaussian([1.0, 2.0], 4.0).cov, 4.0 * np.eye(2))
    assert Gaussian([1.0], [[4.0]]).energy([3.0]) == pytest.approx(-norm(1.0, 2.0).logpdf(3.0), rel=1e-15)


def test_ill_conditioned_gaussian_is_still_accurate():
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    cov = turn @ np.diag([1e-6, 1e-3, 1.0, 1e3]) @ turn.T
    t = np.array([0.1, -0.2, 0.3, 0.4])
    with mpmath.workdps(50):
        expected = np.array(mpmath.lu_solve(mpmath.matrix(0.5 * (cov + cov.T)), mpmath.matrix(t)).tolist(), dtype=float)
    assert np.allclose(Gaussian(0.0, cov).gradient(t), expected.ravel(), rtol=1e-5)


def test_moments_of_the_mixture_are_those_of_its_components():
    model = MODELS["mixture"]
    second = sum(w * (s**2 * np.eye(2) + np.outer(m, m)) for w, s, m in zip(WEIGHTS, SCALES, MEANS, strict=True))
    assert np.allclose(model.mean, WEIGHTS @ MEANS, rtol=1e-15)
    assert np.allclose(model.cov, second - np.outer(model.mean, model.mean), rtol=1e-13)
    assert np.allclose(GaussianMixture(MEANS, 1.0).weights, 0.2)
    assert np.allclose(GaussianMixture(MEANS, 1.0, [2, 3, 1, 2.5, 1.5]).weights, WEIGHTS)


# ------------------------------------------------------------------------------------------------- design and prediction


def test_intercept_and_standardising_make_the_matrix_by_hand():
    by_hand = np.column_stack((np.ones(N), (X - X.mean(axis=0)) / X.std(axis=0)))
    model = LogisticRegression(X, BINARY, intercept=True, standardise=True)
    assert model.dim == D + 1
    assert np.allclose(model.X, by_hand, rtol=1e-13, atol=1e-14)
    assert np.array_equal(LogisticRegression(X, BINARY, intercept=True).X[:, 1:], X)
    t = np.random.default_rng(2).normal(size=D + 1)
    fresh = np.random.default_rng(3).normal(size=(4, D))
    scaled = np.column_stack((np.ones(4), (fresh - X.mean(axis=0)) / X.std(axis=0)))
    assert np.allclose(model.predict(t, fresh), expit(scaled @ t), rtol=1e-13)


def test_prediction_of_draws_is_the_average_of_predictions():
    draws = np.random.default_rng(4).normal(size=(2, 3, D))
    fresh = np.random.default_rng(5).normal(size=(6, D))
    for name in ("linear", "logistic"):
        each = [MODELS[name].predict(t, fresh) for t in draws.reshape(-1, D)]
        assert np.allclose(MODELS[name].predict(draws, fresh), np.mean(each, axis=0), rtol=1e-13)
    assert np.allclose(MODELS["linear"].predict(draws[0, 0], fresh), fresh @ draws[0, 0])
    wide = np.random.default_rng(6).normal(size=(3, D * K))
    each = [softmax(fresh @ t.reshape(D, K), axis=1) for t in wide]
    assert np.allclose(MODELS["softmax"].predict(wide, fresh), np.mean(each, axis=0), rtol=1e-12)


def test_the_users_arrays_are_left_alone():
    raw, labels = X.copy(), BINARY.copy()
    LogisticRegression(raw, labels, intercept=True, standardise=True).gradient(np.ones(D + 1))
    assert np.array_equal(raw, X)
    assert np.array_equal(labels, BINARY)


def test_labels_may_be_bool_and_classes_may_be_more_than_seen():
    assert np.array_equal(LogisticRegression(X, BINARY.astype(bool)).y, BINARY)
    assert SoftmaxRegression(X, LABELS, classes=9).dim == 9 * D


# ---------------------------------------------------------------------------------------------- values, speed, no compiler


def test_models_print_one_line_without_arrays():
    assert repr(MODELS["logistic"]) == "LogisticRegression(43 rows, 7 parameters, prior=Gaussian(scale=1.5, mean=0.0))"
    assert repr(MODELS["softmax"]) == "SoftmaxRegression(43 rows, 35 parameters, prior=Laplace(scale=0.8))"
    assert repr(MODELS["diagonal"]) == "Gaussian(7 parameters)"
    assert repr(MODELS["mixture"]) == "GaussianMixture(5 components, 2 parameters)"
    assert repr(MODELS["five wells"]) == "FiveWell(1 parameter)"


@pytest.mark.parametrize("name", MODELS)
def test_models_survive_pickling(name):
    copy = pickle.loads(pickle.dumps(MODELS[name]))
    t = points(name)[0]
    assert type(copy) is type(MODELS[name])
    assert np.array_equal(copy.gradient(t), MODELS[name].gradient(t))


@pytest.mark.skipif("avx2" not in binding.get_host_cpu_features().flatten(), reason="asks for AVX2 instructions")
def test_logistic_loops_are_vectorised():
    @numba.njit(error_model="numpy")
    def run(model, theta, rows, weight, out):
        estimate(model, theta, rows, weight, out)

    for dtype, packed, other in ((np.float64, "pd", "ss"), (np.float32, "ps", "sd|pd")):
        theta, out = np.zeros(D, dtype), np.zeros(D, dtype)
        run(cast(MODELS["logistic"], dtype), theta, np.arange(4), dtype(1.0), out)
        text = run.inspect_asm(run.signatures[-1])
        assert len(re.findall(rf"vfmadd\d+{packed}\s.*%[yz]mm", text)) >= 8
        assert not re.search(rf"v(mul|add|fmadd\d+)({other})\s", text)


def test_a_model_works_without_the_compiler():
    code = """
import numpy as np
from sgmcmc.models import LogisticRegression, GaussianMixture
from sgmcmc.potentials import full_gradient
assert not hasattr(full_gradient, "signatures")
X = np.arange(12.0).reshape(6, 2) / 7.0 - 0.5
model = LogisticRegression(X, [0, 1, 1, 0, 1, 0])
print(*model.gradient([0.3, -0.2], rows=[0, 1, 2, 3, 5]), model.energy([0.3, -0.2]), *GaussianMixture(X).gradient([0.1, 0.2]))
single = LogisticRegression._make([model.X.astype("f"), model.y.astype("f"), model.prior._make(map(np.float32, model.prior)),
                                   model.columns])
out = np.zeros(2, np.float32)
full_gradient(single, np.array([0.3, -0.2], np.float32), np.arange(6), np.float32(1.0), out)
print(*out)
"""
    command = [sys.executable, "-W", "error", "-c", code]
    plain = subprocess.run(
        command, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=True
    )
    matrix = np.arange(12.0).reshape(6, 2) / 7.0 - 0.5
    model = LogisticRegression(matrix, [0, 1, 1, 0, 1, 0])
    expected = [*model.gradient([0.3, -0.2], rows=[0, 1, 2, 3, 5]), model.energy([0.3, -0.2])]
    expected += [*GaussianMixture(matrix).gradient([0.1, 0.2]), *model.gradient([0.3, -0.2])]
    found = [float(v) for v in plain.stdout.split()]
    assert np.allclose(found[:5], expected[:5], rtol=1e-13)
    assert np.allclose(found[5:], expected[5:], rtol=1e-5)


# --------------------------------------------------------------------------------------------------------------- errors

BAD_X = X.copy()
BAD_X[3, 2] = np.nan
CONSTANT = X.copy()
CONSTANT[:, 4] = 2.5


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: LogisticRegression(X[0], BINARY), ValueError, r"X has 1 dimension\(s\) and shape \(7,\); give 2"),
        (
            lambda: LogisticRegression(X[:0], []),
            ValueError,
            r"X has shape \(0, 7\); give at least one row and one column",
        ),
        (
            lambda: LogisticRegression(X, BINARY[:-1]),
            ValueError,
            r"y has 42 value\(s\) for 43 row\(s\) of X; give one per",
        ),
        (lambda: LogisticRegression(BAD_X, BINARY), ValueError, r"X has a non-finite value, nan at index \(3, 2\)"),
        (lambda: LogisticRegression(X.astype(str), BINARY), TypeError, "X has dtype <U32; give real numbers"),
        (lambda: LogisticRegression(X, 2 * BINARY - 1), ValueError, r"labels must be 0 or 1; got values \[-1, 1\]"),
        (lambda: LogisticRegression(X, RESPONSE), ValueError, r"labels must be 0 or 1; got values \[.*, \.\.\.\]"),
        (
            lambda: LogisticRegression(X, BINARY[:, None]),
            ValueError,
            r"y has 2 dimension\(s\) and shape \(43, 1\); give 1",
        ),
        (lambda: LogisticRegression(X, BINARY, 10.0), TypeError, "prior=10.0 is a float, not a prior"),
        (lambda: LogisticRegression(X, BINARY, intercept=1), TypeError, "intercept=1 is neither True nor False"),
        (
            lambda: LogisticRegression(CONSTANT, BINARY, standardise=True),
            ValueError,
            r"X has constant column\(s\) \[4\] that cannot be standardised; leave them out, and use intercept=True",
        ),
        (lambda: MODELS["logistic"].predict(np.zeros(D), X[:, 1:]), ValueError, r"X has 6 column\(s\); .* made with 7"),
        (
            lambda: MODELS["logistic"].predict(np.zeros(6), X),
            ValueError,
            r"theta has shape \(6,\); give \(7,\), or draws",
        ),
        (
            lambda: LinearRegression(X, RESPONSE, noise=0.0),
            ValueError,
            "noise=0.0 is out of range; give a number above 0",
        ),
        (
            lambda: LinearRegression(X, RESPONSE, prior=priors.Flat()).posterior(),
            TypeError,
            r"prior=Flat\(\) has no exact",
        ),
        (lambda: SoftmaxRegression(X, LABELS - 1), ValueError, r"whole numbers from 0 to 3; got values \[-1\]"),
        (lambda: SoftmaxRegression(X, LABELS, classes=4), ValueError, r"whole numbers from 0 to 3; got values \[4\]"),
        (
            lambda: SoftmaxRegression(X, LABELS + 0.5),
            ValueError,
            r"labels must be whole numbers from 0 to 4; got values",
        ),
        (lambda: SoftmaxRegression(X, LABELS, classes=1), ValueError, "classes=1 is out of range"),
        (
            lambda: Gaussian(MEAN, COV[:-1, :-1]),
            ValueError,
            r"mean has shape \(7,\) and cov \(6, 6\); give mean \(d,\), and",
        ),
        (lambda: Gaussian(MEAN[:3], VARIANCES), ValueError, r"mean has shape \(3,\) and cov \(7,\)"),
        (lambda: Gaussian([], 1.0), ValueError, r"mean has shape \(0,\) and cov \(\)"),
        (lambda: Gaussian(MEAN, ROOT), ValueError, "cov is not symmetric, entries differ from their mirror by up to"),
        (lambda: Gaussian(MEAN, -COV), ValueError, "cov is not positive definite, its smallest eigenvalue is -"),
        (lambda: Gaussian(MEAN, np.zeros((D, D))), ValueError, "cov is not positive definite"),
        (lambda: Gaussian(0.0, [1.0, -2.0]), ValueError, "cov has a variance of -2; give variances above 0"),
        (lambda: Gaussian(np.nan, 1.0), ValueError, "mean has a non-finite value"),
        (lambda: GaussianMixture(MEANS[0]), ValueError, r"means has 1 dimension\(s\)"),
        (lambda: GaussianMixture(MEANS[:0]), ValueError, r"means has shape \(0, 2\); give at least one component"),
        (
            lambda: GaussianMixture(MEANS, SCALES[:2]),
            ValueError,
            r"scales has shape \(2,\); give \(5,\), one per component",
        ),
        (lambda: GaussianMixture(MEANS, 0.0), ValueError, "scales has a value of 0; give numbers above 0"),
        (
            lambda: GaussianMixture(MEANS, 1.0, -WEIGHTS),
            ValueError,
            "weights has a value of -0.3; give numbers above 0",
        ),
        (lambda: MODELS["logistic"].energy(np.zeros(3)), ValueError, r"theta has shape \(3,\); give \(7,\)"),
        (lambda: MODELS["logistic"].gradient(["a"] * D), TypeError, "theta has dtype <U1; give real numbers"),
        (
            lambda: MODELS["logistic"].gradient(np.zeros(D), [N]),
            ValueError,
            "rows run from 43 to 43; the data have rows 0",
        ),
        (lambda: MODELS["logistic"].gradient(np.zeros(D), [-1]), ValueError, "rows run from -1 to -1"),
        (
            lambda: MODELS["logistic"].gradient(np.zeros(D), [0.5]),
            ValueError,
            r"rows has shape \(1,\) and dtype float64",
        ),
        (lambda: MODELS["logistic"].gradient(np.zeros(D), []), ValueError, r"rows has shape \(0,\)"),
        (
            lambda: FiveWell().gradient([0.0], [0]),
            ValueError,
            "rows were given, but FiveWell has no data; leave rows=None",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 63, 64, 65, 130])
@pytest.mark.parametrize("name", ["logistic", "linear"])
def test_the_gradient_of_any_number_of_rows_is_the_sum_of_theirs(name, count):
    model, theta = MODELS[name], points(name)[0]
    rows = np.random.default_rng(count).integers(0, model.n_rows, count)
    weight = model.n_rows / count
    prior = model.gradient(theta, rows[:1]) - model.n_rows * by_hand(model, theta, rows[:1])
    expected = weight * by_hand(model, theta, rows) + prior
    np.testing.assert_allclose(model.gradient(theta, rows), expected, rtol=1e-11, atol=1e-11)


def by_hand(model, theta, rows):
    from sgmcmc.models.predictor import loss_slope

    return sum(loss_slope(model, model.X[i] @ theta, i) * model.X[i] for i in rows)


@numba.njit
def _add(model, theta, rows, out):
    add_gradient(model, theta, rows, out)


@pytest.mark.parametrize("columns", [1, 3, 16, 25, 63, 64, 70])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-5), (np.float64, 1e-13)])
def test_columns_of_zeros_change_no_gradient_and_only_fill_vectors(columns, dtype, tolerance):
    rng = np.random.default_rng(columns)
    X, y = rng.normal(size=(50, columns)), rng.integers(0, 2, 50)
    model = in_precision(LogisticRegression(X, y), dtype)
    wide = laid_out(model)
    assert (wide is model) == (columns * np.dtype(dtype).itemsize % 64 == 0 or columns > 64)
    theta, rows = rng.normal(size=columns).astype(dtype), np.array([3, 3, 41, 0, 7])
    expected = 1.0 + by_hand(model, theta, rows)
    for each in (model, wide):
        out = np.ones(columns, dtype)
        _add(each, theta, rows, out)
        np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)
    if wide is not model:  # the control: columns in the wrong places would be seen
        assert wide.X.ctypes.data % 64 == 0  # no vector lies across two lines
        out = np.ones(columns, dtype)
        _add(wide._replace(X=np.roll(wide.X, 1, axis=1)), theta, rows, out)
        assert np.abs(out - expected).max() > 0.01


def test_large_data_are_not_copied_to_fill_vectors():
    model = sg.models.LinearRegression(np.ones((1 << 17, 3)), np.zeros(1 << 17))
    assert laid_out(model) is model


def test_room_on_the_stack_is_an_array_in_python_too():
    from sgmcmc.compiler.intrinsics import ROOM, room

    for kind in (np.float32, np.float64):
        assert room(kind(1.0)).dtype == kind
        assert room(kind(1.0)).shape == (ROOM,)


@pytest.mark.parametrize("make", [LogisticRegression, LinearRegression])
def test_data_in_single_precision_are_kept_so_and_a_run_in_it_copies_nothing(make):
    single = make(X.astype(np.float32), BINARY.astype(np.float32))
    double = make(X.astype(np.float32).astype(np.float64), BINARY)
    assert in_precision(single, np.float32).X is single.X
    assert in_precision(double, np.float32).X is not double.X  # what the test would see
    theta = np.linspace(-1.0, 1.0, X.shape[1])
    np.testing.assert_allclose(single.gradient(theta), double.gradient(theta), rtol=1e-12)
    assert single.energy(theta) == pytest.approx(double.energy(theta), rel=1e-12)
    options = {
        "draws": 20,
        "warmup": 0,
        "chains": 1,
        "batch_size": 4,
        "seed": 1,
        "dtype": np.float32,
        "progress": False,
    }
    runs = [sg.sample(model, sg.SGNHT(1e-2), **options).draws for model in (single, double)]
    np.testing.assert_array_equal(*runs)
