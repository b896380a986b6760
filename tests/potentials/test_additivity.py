"""Gradients of users that are no sums over rows, and data whose rows do not go together, are refused when a model is made."""

from __future__ import annotations

import pickle

import numba
import numpy as np
import pytest

import sgmcmc as sg

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 3))
Y = RNG.normal(size=100)


def right(theta, data, rows):
    X, y = data
    return X[rows].T @ (X[rows] @ theta - y[rows])


def mean(theta, data, rows):
    return right(theta, data, rows) / len(rows)


def ignoring(theta, data, rows):
    return right(theta, data, np.arange(len(data[1])))


def with_prior(theta, data, rows):
    return right(theta, data, rows) + theta


def filling_mean(theta, data, rows, out):
    out[:] = mean(theta, data, rows)


@numba.njit
def compiled(theta, data, rows, out):
    X, y = data
    for i in rows:
        z = -y[i]
        for j in range(theta.size):
            z += X[i, j] * theta[j]
        for j in range(theta.size):
            out[j] += z * X[i, j]


@numba.njit
def compiled_mean(theta, data, rows, out):
    compiled(theta, data, rows, out)
    for j in range(out.size):
        out[j] /= rows.size


@numba.njit
def compiled_ignoring(theta, data, rows):
    X, y = data
    return X.T @ (X @ theta - y)


MEAN = "return the sum over rows, not the mean, and leave the prior to prior=; or say additive=False"
IGNORES = "it ignores rows, or is a mean; return the sum over rows; or say additive=False"


@pytest.mark.parametrize(
    ("function", "remedy"),
    [
        (mean, MEAN),
        (filling_mean, MEAN),
        (compiled_mean, MEAN),
        (with_prior, MEAN),
        (ignoring, IGNORES),
        (compiled_ignoring, IGNORES),
    ],
)
def test_a_gradient_that_is_no_sum_over_its_rows_is_refused(function, remedy):
    with pytest.raises(ValueError, match=r"gradient\[\d\] over rows 0 and 99 is .*, over each alone .* and ") as caught:
        sg.Potential(function, dim=3, data=(X, Y))
    assert str(caught.value).endswith(remedy)
    model = sg.Potential(function, dim=3, data=(X, Y), additive=False)
    assert pickle.loads(pickle.dumps(model)).n_rows == 100
    if not numba.extending.is_jitted(function):
        sg.Potential(function, dim=3, data=(X[:1], Y[:1]))  # of one row nothing can be told


def mean_energy(theta, data, rows):
    return 0.5 * np.mean((data[0][rows] @ theta - data[1][rows]) ** 2)


def test_finite_differences_do_not_see_a_mean_whose_energy_is_one():
    model = sg.Potential(mean, dim=3, data=(X, Y), energy=mean_energy, additive=False)
    assert sg.check_gradient(model) < 1e-5  # why the check above is there


def positive(theta, data, rows):
    if (theta <= 0.0).any():
        raise ValueError("theta must be positive")
    return len(rows) / theta - data[rows].sum()


def infinite(theta, data, rows):
    return np.full(theta.size, np.inf)


def hinge(theta, data, rows):
    """Zero unless θ is far from 0."""
    return np.where(abs(theta) > 100.0, float(len(rows)), 0.0)


def single(theta, data, rows):
    x = data[rows].astype(np.float32)
    return (x.T @ (x @ theta.astype(np.float32))).astype(np.float32)


RIGHT = {
    "sum": (right, (X, Y)),
    "compiled": (compiled, (X, Y)),
    "float32 data": (right, (X.astype(np.float32), Y.astype(np.float32))),
    "large": (right, (1e6 * X, 1e150 * Y)),
    "small": (right, (1e-160 * X, Y)),
    "too large": (right, (1e200 * X, Y)),
    "single precision": (single, 1e4 * X),
    "whole numbers": (right, (np.arange(300).reshape(100, 3), np.arange(100))),
    "infinite": (infinite, X),
    "zero": (hinge, X),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_gradients_and_those_that_cannot_be_judged_are_accepted(name):
    function, data = RIGHT[name]
    assert sg.Potential(function, dim=3, data=data).n_rows == 100


def test_a_gradient_with_bounds_is_judged_where_it_is_defined():
    def mean_of_positive(theta, data, rows):
        return positive(theta, data, rows) / len(rows)

    def defined(function):
        return lambda theta, data, rows: np.zeros(2) if not theta.any() else function(theta, data, rows)

    assert sg.Potential(defined(positive), dim=2, data=Y).n_rows == 100
    with pytest.raises(ValueError, match="not the mean"):
        sg.Potential(defined(mean_of_positive), dim=2, data=Y)


def test_the_look_at_a_function_compiles_nothing_and_takes_few_calls():
    calls = []

    def counted(theta, data, rows):
        calls.append(len(rows))
        return right(theta, data, rows)

    sg.Potential(counted, dim=3, data=(X, Y))
    assert calls == [2, 2, 1, 1]
    function = numba.njit(compiled.py_func)
    sg.Potential(function, dim=3, data=(X, Y))
    assert function.signatures == []


def test_additive_is_true_or_false():
    with pytest.raises(TypeError, match="additive='no' is neither True nor False"):
        sg.Potential(right, dim=3, data=(X, Y), additive="no")


# ---- rows of the data ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [right, compiled])
@pytest.mark.parametrize("other", [10, 0])
def test_arrays_of_different_lengths_are_refused(function, other):
    with pytest.raises(
        ValueError, match=rf"data\[0\] has 100, data\[1\] has {other}; give as many in each, or .*n_rows="
    ):
        sg.Potential(function, dim=3, data=(X, Y[:other]))
    assert sg.Potential(function, dim=3, data=(X, Y)).n_rows == 100


def test_arrays_of_different_lengths_are_accepted_with_n_rows():
    def gradient(theta, data, rows):
        values, table = data
        return len(rows) * theta - table[values[rows]].sum()

    data = (np.arange(100) % 7, np.arange(7.0))
    with pytest.raises(ValueError, match="different numbers of rows"):
        sg.Potential(gradient, dim=1, data=data)
    assert sg.Potential(gradient, dim=1, data=data, n_rows=100).n_rows == 100


def test_lists_and_numbers_beside_arrays_are_no_rows():
    def gradient(theta, data, rows):
        return len(rows) * theta * data[1][0] - data[0][rows].sum() * data[2]

    assert sg.Potential(gradient, dim=1, data=(Y, [2.0, 3.0], 1.5)).n_rows == 100
