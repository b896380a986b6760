"""Potentials: a user's own function or NamedTuple as a model, the check of gradients, and what is refused."""

from __future__ import annotations

import math
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from scipy.special import expit

import sgmcmc
from sgmcmc import priors
from sgmcmc.dispatch import implements
from sgmcmc.models import FiveWell, LogisticRegression
from sgmcmc.potentials import (
    Model,
    Potential,
    PythonPotential,
    add_energy,
    add_gradient,
    add_prior_gradient,
    check_gradient,
    check_model,
    dim_of,
    energy_of,
    full_gradient,
    gradient_of,
    prior_energy,
    prior_of,
    rows_of,
)

RNG = np.random.default_rng(5)
N, D = 30, 3
X = RNG.normal(0.0, 1.0, (N, D))
Y = RNG.integers(0, 2, N).astype(np.float64)
THETA = np.array([0.4, -0.7, 1.1])
PRIOR = priors.Gaussian(2.0, 0.3)
MODEL = LogisticRegression(X, Y, prior=PRIOR)


@numba.njit
def residual(z, y):
    return 1.0 / (1.0 + math.exp(-z)) - y


@numba.njit
def adding(theta, data, rows, out):
    X, y = data
    for i in rows:
        r = residual(np.dot(X[i], theta), y[i])
        for j in range(theta.size):
            out[j] += r * X[i, j]


@numba.njit
def assigning(theta, data, rows, out):
    X, y = data
    for j in range(theta.size):
        total = 0.0
        for i in rows:
            total += residual(np.sum(X[i] * theta), y[i]) * X[i, j]
        out[j] = total


@numba.njit
def returning(theta, data, rows):
    X, y = data
    total = np.zeros(theta.size)
    for i in rows:
        total += residual(np.sum(X[i] * theta), y[i]) * X[i]
    return total


def python_returning(theta, data, rows):
    X, y = data
    return X[rows].T @ (expit(X[rows] @ theta) - y[rows])


def python_filling(theta, data, rows, out):
    out += python_returning(theta, data, rows)


def nll(theta, data, rows):
    X, y = data
    z = X[rows] @ theta
    return float(np.sum(np.logaddexp(0.0, z) - y[rows] * z))


@numba.njit
def quartic(theta, out):
    for j in range(theta.size):
        out[j] = theta[j] + theta[j] ** 3


@numba.njit
def quartic_returned(theta):
    return theta + theta**3


FORMS = [adding, assigning, returning, python_returning, python_filling]
FREE = [quartic, quartic_returned, lambda theta: theta + theta**3]


def potential(function, **options):
    return Potential(function, D, data=(X, Y), prior=PRIOR, **options)


# ------------------------------------------------------------------------------------------------- the user's functions


@pytest.mark.parametrize("function", FORMS, ids=lambda f: f.__name__)
def test_every_form_of_function_gives_the_gradient_of_the_built_in_model(function):
    model = potential(function, energy=nll)
    rows = np.array([3, 3, 7, 29, 0])
    assert (model.dim, model.n_rows, model.prior) == (D, N, PRIOR)
    assert np.allclose(model.gradient(THETA), MODEL.gradient(THETA), rtol=1e-12)
    assert np.allclose(model.gradient(THETA, rows), MODEL.gradient(THETA, rows), rtol=1e-12)
    assert np.isclose(model.energy(THETA), MODEL.energy(THETA), rtol=1e-13)
    assert isinstance(model, Potential)
    assert model.compiled == (function in FORMS[:3])


@pytest.mark.parametrize("function", FREE, ids=["filling", "returning", "python"])
def test_functions_without_data_give_the_whole_gradient(function):
    model = Potential(function, 2, energy=lambda theta: float(np.sum(theta**2 / 2 + theta**4 / 4)))
    assert (model.n_rows, model.prior) == (0, priors.Flat())
    assert np.allclose(model.gradient([1.0, -2.0]), [2.0, -10.0], rtol=1e-15)
    assert check_gradient(model) < 1e-9
    with_prior = Potential(function, 2, prior=priors.Gaussian(0.5))
    assert np.allclose(with_prior.gradient([1.0, -2.0]), [6.0, -18.0], rtol=1e-15)


@pytest.mark.parametrize("function", FORMS[:3], ids=lambda f: f.__name__)
def test_add_gradient_adds_even_if_the_function_assigns(function):
    out = np.full(D, 100.0)
    add_gradient(potential(function), THETA, np.arange(N), out)
    expected = 100.0 + X.T @ (expit(X @ THETA) - Y)
    assert np.allclose(out, expected, rtol=1e-13)

    @numba.njit
    def compiled(model, theta, rows, out):
        add_gradient(model, theta, rows, out)

    out[:] = 100.0
    compiled(potential(function), THETA, np.arange(N), out)
    assert np.allclose(out, expected, rtol=1e-13)


def test_a_potential_runs_in_single_precision():
    model = potential(adding)
    single = model._make((PRIOR._make(map(np.float32, PRIOR)), D, (X.astype(np.float32), Y.astype(np.float32)), N))
    out = np.zeros(D, np.float32)
    full_gradient(single, THETA.astype(np.float32), np.arange(N), np.float32(1.0), out)
    assert np.allclose(out, MODEL.gradient(THETA), rtol=1e-5, atol=1e-5)


def test_python_gradient_sum_has_neither_weight_nor_prior():
    out = np.full(D, 7.0)
    for function in (python_returning, python_filling):
        potential(function).gradient_sum(THETA, np.array([1, 2]), out)
        assert np.allclose(out, python_returning(THETA, (X, Y), [1, 2]), rtol=1e-15)


def test_data_may_be_one_array_hold_numbers_or_have_names():
    class Named(NamedTuple):
        values: Any
        power: float

    @numba.njit
    def plain(theta, data, rows):
        return theta * rows.size - data[rows].sum()

    @numba.njit
    def tupled(theta, data, rows):
        return theta * rows.size - data[0][rows].sum() * data[1]

    @numba.njit
    def named(theta, data, rows):
        return theta * rows.size - data.values[rows].sum() * data.power

    for function, data in ((plain, Y), (tupled, (Y, 1)), (named, Named(Y, 1.0)), (plain, np.asfortranarray(Y))):
        model = Potential(function, 1, data=data)
        assert model.n_rows == N
        assert np.isclose(model.gradient([0.5])[0], 0.5 * N - Y.sum())
    assert Potential(plain, 1, data=Y, n_rows=10).gradient([0.5])[0] == 5.0 - Y[:10].sum()


def test_looking_at_a_function_compiles_nothing():
    @numba.njit
    def inner(x):
        return 2.0 * x

    @numba.njit
    def outer(theta):
        return inner(theta)

    Potential(outer, 2)
    assert outer.signatures == []
    assert inner.signatures == []


def test_parameters_with_defaults_do_not_count():
    scale = 3.0
    assert Potential(lambda theta, s=scale: s * theta, 2).gradient([1.0, 2.0]).tolist() == [3.0, 6.0]


def test_a_gradient_that_is_not_finite_at_zero_is_no_error():
    @numba.njit
    def logarithmic(theta):
        return 1.0 / theta

    for function in (logarithmic, lambda theta: 1.0 / theta, lambda theta: np.array([1 / float(t) for t in theta])):
        assert Potential(function, 2).gradient([2.0, 4.0]).tolist() == [0.5, 0.25]
    assert Potential(lambda theta: np.array([math.log(t) for t in theta]), 1).gradient([1.0])[0] == 0.0


def test_equal_functions_share_a_class_and_different_ones_do_not():
    def make(factor, **options):
        @numba.njit(**options)
        def gradient(theta):
            return factor * theta

        return Potential(gradient, 1)

    assert type(make(2.0)) is type(make(2.0))
    assert type(make(2.0)) is not type(make(3.0))
    assert type(make(2.0)) is not type(make(2.0, fastmath=True))
    assert (make(2.0).gradient([1.0])[0], make(3.0).gradient([1.0])[0]) == (2.0, 3.0)


def test_potentials_survive_pickling():
    for function in (adding, python_returning):
        model = potential(function, energy=nll)
        copy = pickle.loads(pickle.dumps(model))
        assert np.array_equal(copy.gradient(THETA), model.gradient(THETA))
        assert copy.energy(THETA) == model.energy(THETA)


def test_a_pickled_potential_works_in_a_process_that_never_made_it(tmp_path):
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(potential(adding)))
    code = f"import pickle; print(pickle.load(open('model.pkl', 'rb')).gradient({THETA.tolist()}).tolist())"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert np.allclose(eval(done.stdout), potential(adding).gradient(THETA), rtol=1e-15)


def test_potentials_print_one_line():
    assert repr(potential(adding)) == "Potential(adding, 30 rows, 3 parameters, prior=Gaussian(scale=2.0, mean=0.3))"
    assert repr(Potential(quartic, 1)) == "Potential(quartic, 1 parameter, prior=Flat())"
    assert repr(potential(python_filling)) == (
        "Potential(python_filling, 30 rows, 3 parameters, prior=Gaussian(scale=2.0, mean=0.3), not compiled)"
    )
    assert isinstance(potential(python_filling), PythonPotential)


USER_SCRIPT = """
import sys
import numba
import numpy as np
from sgmcmc.potentials import Potential, full_gradient

@numba.njit
def helper(x):
    return {factor} * x

@numba.njit
def gradient(theta, data, rows, out):
    for i in rows:
        out[0] += helper(theta[0] - data[i])

model = Potential(gradient, 1, data=np.arange(4.0))
print(model.gradient([0.5])[0], sum(full_gradient.stats.cache_hits.values()))
"""


def test_a_second_process_finds_the_kernel_and_an_edited_function_does_not(tmp_path):
    # A copy of the package: its cache is empty, and its fingerprint cannot change under the test.
    shutil.copytree(
        Path(sgmcmc.__file__).parent, tmp_path / "sgmcmc", ignore=shutil.ignore_patterns("__pycache__", "*.nb?")
    )
    script = tmp_path / "user.py"

    def run(factor):
        script.write_text(USER_SCRIPT.format(factor=factor))
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, "-W", "error", str(script)]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        value, hits = done.stdout.split()
        return float(value), int(hits)

    assert run(1.0) == (-4.0, 0)
    assert run(1.0) == (-4.0, 1)
    assert run(3.0) == (-12.0, 0)


# ------------------------------------------------------------------------------------------------ the user's NamedTuple


class Poisson(NamedTuple):
    counts: Any
    dim: int = 1

    @property
    def n_rows(self):
        return len(self.counts)


@implements(add_gradient, Poisson)
def _(model, theta, rows, out):
    for i in rows:
        out[0] += math.exp(theta[0]) - model.counts[i]


@implements(add_energy, Poisson)
def _(model, theta, rows):
    total = 0.0
    for i in rows:
        total += math.exp(theta[0]) - model.counts[i] * theta[0]
    return total


class PoissonWithPrior(NamedTuple):
    counts: Any
    prior: Any
    dim: int = 1


implements(add_gradient, PoissonWithPrior)(add_gradient.implementations[(Poisson,)])
implements(add_energy, PoissonWithPrior)(add_energy.implementations[(Poisson,)])


class Bowl(NamedTuple):
    dim: int


@implements(add_gradient, Bowl)
def _(model, theta, rows, out):
    for j in range(theta.size):
        out[j] += theta[j]


COUNTS = np.array([2.0, 0.0, 5.0])


def test_a_namedtuple_without_prior_has_a_flat_one():
    model = Poisson(COUNTS)
    check_model(model)
    assert prior_of(model) == priors.Flat()
    assert (dim_of(model), rows_of(model)) == (1, 3)
    assert np.isclose(gradient_of(model, [0.5])[0], 3 * math.exp(0.5) - 7.0, rtol=1e-15)
    assert np.isclose(gradient_of(model, [0.5], [2])[0], 3 * (math.exp(0.5) - 5.0), rtol=1e-15)
    assert check_gradient(model) < 1e-9
    assert prior_of(potential(python_returning)) == PRIOR
    assert gradient_of(Bowl(2), [1.0, 2.0]).tolist() == [1.0, 2.0]


def test_a_namedtuple_with_a_field_prior_has_that_one():
    model = PoissonWithPrior(COUNTS, priors.Gaussian(0.5))
    out = np.zeros(1)
    add_prior_gradient(model, np.array([0.25]), out)
    assert out[0] == 1.0
    assert prior_energy(model, np.array([0.25])) == priors.energy(priors.Gaussian(0.5), 0.25)
    assert rows_of(model) == 0
    assert gradient_of(model, [0.25])[0] == 1.0


@pytest.mark.parametrize("rows", [None, [0, 4, 4]])
def test_the_library_adds_the_prior_once(rows):
    flat = Potential(adding, D, data=(X, Y))
    difference = potential(adding).gradient(THETA, rows) - flat.gradient(THETA, rows)
    assert np.allclose(difference, (THETA - 0.3) / 4.0, rtol=1e-11)


# ---------------------------------------------------------------------------------------------------- check_gradient


def test_right_gradients_pass():
    for function in FORMS:
        assert check_gradient(potential(function), energy=nll) < 1e-8
        assert check_gradient(potential(function, energy=nll), theta=THETA, rows=[1, 5]) < 1e-8
    assert check_gradient(FiveWell(), energy=lambda theta: FiveWell().energy(theta)) < 1e-8


def test_a_gradient_at_its_zero_passes():
    model = Potential(quartic, 2, energy=lambda theta: float(np.sum(theta**2 / 2 + theta**4 / 4)))
    assert check_gradient(model, theta=[0.0, 0.0]) == 0.0


def flipped(theta, data, rows):
    return python_returning(theta, data, rows) * [1.0, -1.0, 1.0]


def doubled(theta, data, rows):
    return python_returning(theta, data, rows) * [2.0, 1.0, 1.0]


def slightly_off(theta, data, rows):
    return python_returning(theta, data, rows) * [1.0, 1.0, 1.0 + 1e-4]


def prior_again(theta, data, rows):
    return python_returning(theta, data, rows) + (theta - 0.3) / 4.0


@pytest.mark.parametrize(
    ("function", "worst"), [(flipped, "1"), (doubled, "0"), (slightly_off, "2"), (prior_again, "[012]")]
)
def test_wrong_gradients_are_named_by_their_worst_coordinate(function, worst):
    expected = (
        rf"gradient\[{worst}\] is .*, but finite differences of the energy give .* \(relative error .*tolerance 1e-05"
    )
    with pytest.raises(ValueError, match=expected):
        check_gradient(potential(function, additive=False), energy=nll)  # else a prior inside is refused before


def test_a_wrong_slope_of_a_users_prior_is_seen():
    class Wrong(NamedTuple):
        scale: float

    implements(priors.energy, Wrong)(priors.energy.implementations[(priors.Laplace,)])
    implements(priors.slope, Wrong)(lambda prior, x: 0.0 * x + 1.0 / prior.scale)
    with pytest.raises(ValueError, match="coordinates disagree"):
        check_gradient(Potential(adding, D, data=(X, Y), prior=Wrong(2.0)), theta=THETA, energy=nll)


def test_a_sign_error_in_a_small_coordinate_among_large_ones_is_seen():
    scales = np.array([1e4, 1.0, 1e-2])

    def energy(theta):
        return float(np.sum(scales * theta**2) / 2)

    assert check_gradient(Potential(lambda theta: scales * theta, 3), energy=energy) < 1e-8
    with pytest.raises(ValueError, match=r"gradient\[2\]"):
        check_gradient(Potential(lambda theta: scales * theta * [1.0, 1.0, -1.0], 3), energy=energy)


# --------------------------------------------------------------------------------------------------------------- errors


@numba.njit
def too_short(theta):
    return theta[1:]


class NoDim(NamedTuple):
    x: float


class Hidden(NamedTuple):
    dim: int = 1

    @property
    def prior(self):
        return PRIOR


implements(add_gradient, Hidden)(add_gradient.implementations[(Bowl,)])


class Dimensionless(NamedTuple):
    x: float


implements(add_gradient, Dimensionless)(add_gradient.implementations[(Bowl,)])


class MixedWithoutDim(Dimensionless, Model):
    __slots__ = ()


class OnlySlope(NamedTuple):
    x: float = 0.0


@implements(priors.slope, OnlySlope)
def _(prior, x):
    return 0.0 * x


@numba.njit
def out_of_bounds(theta, data, rows, out):
    out[theta.size] = 1.0


@numba.njit
def returns_nothing(theta):
    theta + 1.0


def noisy(theta):
    noisy.calls += 1
    return float(np.sum(theta**2) / 2) + 1e-3 * math.sin(1e3 * noisy.calls)


noisy.calls = 0


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Potential(3, 2), TypeError, "gradient=3 is not a function"),
        (lambda: Potential(quartic, 0), ValueError, "dim=0 is out of range; give a whole number of at least 1"),
        (lambda: Potential(quartic, 2.0), TypeError, "dim=2.0 is not a whole number"),
        (
            lambda: potential(quartic),
            TypeError,
            r"gradient has 2 parameter\(s\), \(theta, out\); with data give \(theta, data, rows\) and return the gradient, "
            r"or \(theta, data, rows, out\) and fill out",
        ),
        (
            lambda: Potential(adding, D),
            TypeError,
            r"gradient has 4 parameter\(s\), \(theta, data, rows, out\); without data give \(theta\) and return",
        ),
        (lambda: Potential(lambda *args: args[0], 2), TypeError, r"gradient takes \*args; name its parameters"),
        (
            lambda: Potential(returns_nothing, 2),
            TypeError,
            "gradient returned None; return the gradient, or take one more",
        ),
        (lambda: Potential(lambda theta: None, 2), TypeError, "gradient returned None"),
        (
            lambda: Potential(lambda theta: theta[:1], 2),
            ValueError,
            r"returned shape \(1,\); return \(2,\), one number per",
        ),
        (lambda: Potential(lambda theta: 1.0, 2), ValueError, r"gradient returned shape \(\); return \(2,\)"),
        (
            lambda: Potential(lambda theta: ["a", "b"], 2),
            TypeError,
            "gradient returned list of dtype <U1; return an array",
        ),
        (
            lambda: potential(out_of_bounds),
            IndexError,
            r"out of bounds at theta = 0 with dim=3 and rows \[0, 29\] of 30",
        ),
        (lambda: Potential(adding, D, (X, Y), n_rows=N + 1), IndexError, r"with dim=3 and rows \[0, 30\] of 31"),
        (lambda: Potential(adding, D + 1, (X, Y)), ValueError, "gradient mixes shapes at theta = 0 with dim=4 "),
        (
            lambda: Potential(lambda theta: theta[5], 2),
            IndexError,
            "gradient goes out of bounds at theta = 0 with dim=2 ",
        ),
        (lambda: Potential(lambda theta, out: undefined, 2), NameError, "undefined"),  # noqa: F821
        (
            lambda: Potential(adding, D, [X, Y]),
            TypeError,
            "data is a list; give an array of numbers, or a tuple of arrays",
        ),
        (lambda: Potential(adding, D, (X, "y")), TypeError, r"data\[1\] is a str; give an array of numbers"),
        (
            lambda: Potential(adding, D, (1.0, 2)),
            ValueError,
            "data holds no array with rows; give at least one, or n_rows",
        ),
        (lambda: Potential(quartic, D, n_rows=5), ValueError, "n_rows=5 was given without data; leave n_rows=None"),
        (lambda: potential(adding, n_rows=0), ValueError, "n_rows=0 is out of range"),
        (lambda: Potential(adding, D, (X, Y), prior=10.0), TypeError, "prior=10.0 is a float, not a prior"),
        (
            lambda: potential(adding, energy=lambda t: 0.0),
            TypeError,
            r"energy has 1 parameter\(s\), \(t\); with data give",
        ),
        (
            lambda: potential(adding).energy(THETA),
            TypeError,
            r"Potential\(adding, .*\) has no energy; give Potential\(",
        ),
        (
            lambda: Potential(too_short, 10_001).gradient(np.zeros(10_001)),  # too long to be looked at beforehand
            ValueError,
            "gradient returned an array of another length than theta",
        ),
        (lambda: check_gradient(potential(adding)), TypeError, "has no energy"),
        (lambda: check_gradient(potential(adding), theta=[1.0], energy=nll), ValueError, r"theta has shape \(1,\)"),
        (
            lambda: check_gradient(MODEL, energy=lambda t: 0.0, rows=[1]),
            ValueError,
            "rows and energy cannot be combined",
        ),
        (lambda: check_gradient(MODEL, tolerance=0.0), ValueError, "tolerance=0.0 is out of range"),
        (lambda: check_gradient(MODEL, energy=lambda t: math.nan), ValueError, "is not finite at theta="),
        (lambda: check_gradient(Potential(lambda t: t, 1), energy=noisy), ValueError, "do not settle at coordinate 0"),
        (
            lambda: check_gradient(Bowl(2)),
            TypeError,
            r"Bowl has no energy; give one with @implements\(add_energy, Bowl\)",
        ),
        (
            lambda: energy_of(PoissonWithPrior(COUNTS, OnlySlope()), [0.0]),
            TypeError,
            r"OnlySlope has no energy; give one with @implements\(energy, OnlySlope\)",
        ),
        (
            lambda: check_model(np.zeros(3)),
            TypeError,
            "the model is a ndarray; give one of sgmcmc.models, a Potential, or",
        ),
        (
            lambda: check_model(NoDim(1.0)),
            TypeError,
            r"NoDim has no gradient; give one with @implements\(add_gradient, No",
        ),
        (
            lambda: check_model(Hidden()),
            TypeError,
            "Hidden.prior is not a field, so compiled code cannot see it; make it a",
        ),
        (
            lambda: check_model(Dimensionless(1.0)),
            TypeError,
            "Dimensionless has no dim; give it a field or a property dim",
        ),
        (lambda: MixedWithoutDim(1.0).dim, TypeError, "MixedWithoutDim has no dim"),
        (lambda: check_model(Bowl(0)), ValueError, "Bowl.dim=0 is out of range"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
