"""Elementary functions: accurate against mpmath, right at the ends of the range, vectorised, never in a wider precision."""

from __future__ import annotations

import math
import re

import llvmlite.binding as llvm
import mpmath
import numba
import numpy as np
import pytest

from sgmcmc import elementary
from sgmcmc.compiler.open_functions import LOOP

PRECISIONS = [np.float32, np.float64]
REFERENCES = {
    "exp": mpmath.exp,
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "log1p": mpmath.log1p,
    "tanh": mpmath.tanh,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "exp_of_ordinary": mpmath.exp,
    "expm1_of_ordinary": mpmath.expm1,
    "asinh_of_ordinary": mpmath.asinh,
}
# Units in the last place. Measured maxima over 10 times these points: 1.0, 2.1, 0.8, 1.3, 2.4, 1.9, 1.6.
LIMITS = {"exp": 1.2, "expm1": 2.3, "log": 1.0, "log1p": 1.6, "tanh": 2.6, "sigmoid": 2.1, "softplus": 1.8}
LIMITS |= {"exp_of_ordinary": 1.2, "expm1_of_ordinary": 2.3, "asinh_of_ordinary": 3.0}
POINTS = 1000


def compiled(function):
    @numba.njit(error_model="numpy", fastmath=set(LOOP))
    def apply(x, out):
        for i in range(out.size):
            out[i] = function(x[i])

    return apply


def applied(function, x):
    out = np.empty_like(x)
    compiled(function)(x, out)
    return out


def ulps(values, wanted, precision):
    """Distances to the true values in units of the last place, of the smallest float where that is larger."""
    info = np.finfo(precision)
    errors = []
    for value, true in zip(values, wanted, strict=True):
        exponent = max(mpmath.frexp(true)[1] - 1, info.minexp) if true != 0 else info.minexp
        errors.append(float(abs(mpmath.mpf(float(value)) - true) * mpmath.mpf(2) ** (info.nmant - exponent)))
    return np.array(errors)


def points(name, precision):
    rng = np.random.default_rng(7)
    info = np.finfo(precision)
    top = float(np.log(info.max))
    bottom = float(np.log(float(info.smallest_subnormal)))
    tiny = rng.choice([-1, 1], POINTS) * np.exp2(rng.uniform(info.minexp, 0, POINTS))
    near = rng.uniform(-2, 2, 2 * POINTS)
    wide = {
        "exp": rng.uniform(bottom, top, POINTS),
        "expm1": rng.uniform(-50, top, POINTS),
        "tanh": rng.uniform(-25, 25, POINTS),
        "sigmoid": rng.uniform(bottom, -bottom, POINTS),
        "softplus": rng.uniform(bottom, -bottom, POINTS),
        "log": np.exp2(rng.uniform(info.minexp - info.nmant, info.maxexp - 0.01, POINTS)),
        "log1p": np.exp2(rng.uniform(info.minexp, info.maxexp - 0.01, POINTS)),
        "exp_of_ordinary": rng.uniform(2.0 - top, top - 2.0, POINTS),
        "expm1_of_ordinary": rng.uniform(-50, top - 2.0, POINTS),
        "asinh_of_ordinary": np.exp(rng.uniform(-80, 41, POINTS)),
    }[name]
    if name == "asinh_of_ordinary":
        near, tiny = abs(near), abs(tiny)
    if name == "log":
        near, tiny = rng.uniform(0.4, 2.5, 2 * POINTS), 1.0 + rng.uniform(-1e-3, 1e-3, POINTS)
    if name == "log1p":
        near = np.concatenate([rng.uniform(-0.999, 3.0, 2 * POINTS), np.exp2(rng.uniform(-20, 0, POINTS)) - 1.0])
    return np.concatenate([wide, near, tiny]).astype(precision)


def worst(name, function, precision):
    x = points(name, precision)
    x = x[(x > -1) if name == "log1p" else (x > 0) if name == "log" else slice(None)]
    with mpmath.workdps(40):
        wanted = [REFERENCES[name](mpmath.mpf(float(v))) for v in x]
        errors = ulps(applied(function, x), wanted, precision)
    at = int(np.argmax(errors))
    return errors[at], x[at]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", list(LIMITS))
def test_functions_are_within_about_two_ulp_of_mpmath_over_the_whole_range(name, precision):
    error, at = worst(name, getattr(elementary, name), precision)
    assert error <= LIMITS[name], f"{name}({at!r}) is {error:.2f} ulp off"


def test_the_accuracy_test_rejects_a_coefficient_with_a_wrong_last_digit():
    @numba.njit
    def log1p_with_slip(x):
        return elementary.log1p(x) * (1.0 + 6.0e-16)

    error, _ = worst("log1p", log1p_with_slip, np.float64)
    assert error > 2.0 * LIMITS["log1p"]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_power_is_within_two_ulp_even_where_the_exponent_is_hundreds(precision):
    rng = np.random.default_rng(3)
    info = np.finfo(precision)
    base = np.exp2(rng.uniform(info.minexp - info.nmant, info.maxexp - 0.01, POINTS))
    x = np.concatenate([base, rng.uniform(0.5, 2, POINTS), 1 + rng.uniform(-1e-3, 1e-3, POINTS)]).astype(precision)
    x = x[x != 1]
    size = 0.99 * np.log(float(info.max))
    y = (rng.uniform(-size, size, x.size) / np.log(x.astype(np.float64))).astype(precision)
    out = np.empty_like(x)

    @numba.njit(error_model="numpy")
    def powers(x, y, out):
        for i in range(out.size):
            out[i] = elementary.power(x[i], y[i])

    powers(x, y, out)
    with mpmath.workdps(40):
        wanted = [mpmath.mpf(float(a)) ** mpmath.mpf(float(b)) for a, b in zip(x, y, strict=True)]
        errors = ulps(out, wanted, precision)
        naive = ulps(np.exp(y * np.log(x)), wanted, precision)
    assert errors.max() <= 1.8
    assert naive.max() > 20  # what the test would see without the logarithm of twice the precision


@pytest.mark.parametrize("precision", PRECISIONS)
def test_sine_and_cosine_of_an_eighth_turn_are_within_one_and_a_half_ulp(precision):
    t = np.concatenate([np.linspace(-0.125, 0.125, 2001), [1e-30, -1e-30]]).astype(precision)

    @numba.njit(error_model="numpy")
    def both(t, s, c):
        for i in range(t.size):
            s[i], c[i] = elementary.sin_cos_eighth(t[i])

    s, c = np.empty_like(t), np.empty_like(t)
    both(t, s, c)
    with mpmath.workdps(40):
        angles = [2 * mpmath.pi * mpmath.mpf(float(v)) for v in t]
        assert ulps(s, [mpmath.sin(a) for a in angles], precision).max() <= 1.5
        assert ulps(c, [mpmath.cos(a) for a in angles], precision).max() <= 1.5


@pytest.mark.parametrize("precision", PRECISIONS)
def test_sine_and_cosine_of_many_turns_are_within_two_ulp(precision):
    t = np.concatenate([np.linspace(-3.0, 3.0, 3001), [0.25, 0.5, 0.75, 1e-30, -1e-30, 1000.3, -99_999.7, 1e6 / 3]])
    t = t.astype(precision)

    @numba.njit(error_model="numpy")
    def both(t, s, c):
        for i in range(t.size):
            s[i], c[i] = elementary.sin_cos_turns(t[i])

    s, c = np.empty_like(t), np.empty_like(t)
    both(t, s, c)
    with mpmath.workdps(40):
        angles = [2 * mpmath.pi * mpmath.mpf(float(v)) for v in t]
        rough = [precision(2 * np.pi) * v for v in t]  # an angle in radians has lost what the test looks at
        zeros = np.array([abs(mpmath.sin(a)) < 1e-20 or abs(mpmath.cos(a)) < 1e-20 for a in angles])
        wanted = [mpmath.sin(a) for a in angles], [mpmath.cos(a) for a in angles]
        errors = [
            ulps(x[~zeros], [w for w, z in zip(y, zeros, strict=True) if not z], precision)
            for x, y in zip((s, c), wanted, strict=True)
        ]
        assert max(e.max() for e in errors) <= 2.0
        naive = ulps(
            np.sin(np.array(rough))[~zeros], [w for w, z in zip(wanted[0], zeros, strict=True) if not z], precision
        )
        assert naive.max() > 20
    exact = [0.0, 1.0, -1.0]
    assert np.isin(s[zeros & (np.abs(t) > 1e-3)], exact).all()
    assert np.isin(c[zeros & (np.abs(t) > 1e-3)], exact).all()


INF, NAN = math.inf, math.nan
ENDS = {
    "exp": [(-INF, 0), (-1e4, 0), (0, 1), (1e4, INF), (INF, INF), (NAN, NAN)],
    "expm1": [(-INF, -1), (-1e4, -1), (0, 0), (1e-30, 1e-30), (-1e-30, -1e-30), (1e4, INF), (INF, INF), (NAN, NAN)],
    "log": [(-INF, NAN), (-1, NAN), (0, -INF), (-0.0, -INF), (1, 0), (INF, INF), (NAN, NAN)],
    "log1p": [(-INF, NAN), (-2, NAN), (-1, -INF), (0, 0), (1e-30, 1e-30), (-1e-30, -1e-30), (INF, INF), (NAN, NAN)],
    "tanh": [(-INF, -1), (-50, -1), (0, 0), (1e-30, 1e-30), (-1e-30, -1e-30), (50, 1), (INF, 1), (NAN, NAN)],
    "sigmoid": [(-INF, 0), (-1e4, 0), (0, 0.5), (50, 1), (INF, 1), (NAN, NAN)],
    "softplus": [(-INF, 0), (-1e4, 0), (1e4, 1e4), (1e30, 1e30), (INF, INF), (NAN, NAN)],
}
POWERS = [
    *[(0, 2, 0), (0, 0, 1), (0, -1, INF), (0, INF, 0), (INF, 2, INF), (INF, 0, 1), (INF, -2, 0), (1, 1e30, 1)],
    *[(1, INF, 1), (2, INF, INF), (2, -INF, 0), (0.5, INF, 0), (0.5, -INF, INF), (2, 1e30, INF), (2, -1e30, 0)],
    *[(3, 0, 1), (4, 0.5, 2), (2, 10, 1024), (-1, 2, NAN), (-INF, 2, NAN), (NAN, 0, NAN), (1, NAN, NAN), (0, NAN, NAN)],
]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", list(ENDS))
def test_the_ends_of_the_range_are_exact_compiled_and_in_plain_python(name, precision):
    function = getattr(elementary, name)
    x = np.array([a for a, _ in ENDS[name]], precision)
    wanted = np.array([b for _, b in ENDS[name]], precision)
    plain = [function(v) for v in x]
    assert {type(v) for v in plain} == {precision}
    np.testing.assert_array_equal(np.array(plain), wanted)
    np.testing.assert_array_equal(applied(function, x), wanted)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", [name for name in LIMITS if name not in ENDS])
def test_functions_of_ordinary_numbers_keep_zero_and_nan(name, precision):
    function, x = getattr(elementary, name), np.array([0, NAN], precision)
    with np.errstate(all="ignore"):  # in plain Python the bits of NaN overflow as an integer
        wanted = np.array([function(precision(0)), NAN], precision)
        np.testing.assert_array_equal([function(v) for v in x], wanted)
    np.testing.assert_array_equal(applied(function, x), wanted)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_powers_at_the_ends_are_exact_compiled_and_in_plain_python(precision):
    x, y, wanted = (np.array(column, precision) for column in zip(*POWERS, strict=True))
    power = numba.njit(error_model="numpy")(lambda a, b: elementary.power(a, b))
    np.testing.assert_array_equal([elementary.power(a, b) for a, b in zip(x, y, strict=True)], wanted)
    np.testing.assert_array_equal([power(a, b) for a, b in zip(x, y, strict=True)], wanted)


def test_exp_underflows_gradually_and_overflows_at_the_largest_float():
    x = np.array([-708.5, -720.0, -744.0, -745.1, 709.782712893384, 709.7827128933841])
    out = applied(elementary.exp, x)
    np.testing.assert_allclose(out[:4], np.exp(x[:4]), rtol=1e-15, atol=1.5 * 5e-324)
    assert np.isfinite(out[4])
    assert out[5] == np.inf


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", list(LIMITS))
def test_plain_python_and_compiled_code_agree_to_the_last_bits(name, precision):
    x = points(name, precision)[::25]
    function = getattr(elementary, name)
    # One ulp of the intermediate results: the compiler may fuse a product and a sum, Python does not.
    np.testing.assert_allclose(
        applied(function, x), np.array([function(v) for v in x]), rtol=5 * np.finfo(precision).eps, atol=0
    )


def test_a_python_float_counts_as_double_precision():
    assert type(elementary.exp(1.0)) is np.float64
    assert abs(elementary.log(elementary.exp(1.0)) - 1.0) < 1e-15


CALLS = re.compile(r"[\s$@*]_*(?:exp|expm1|log|log1p|pow|tanh|sin|cos|ldexp|frexp)f?\b(?!:)")
WIDER = re.compile(r"cvt(?:ss2sd|sd2ss|ps2pd|pd2ps)|\sv(?:add|sub|mul|div|sqrt|fn?m(?:add|sub)\d+)[sp]d\s")
PACKED = re.compile(r"\sv(?:mul|fn?m(?:add|sub)\d+)p[sd]\s.*%[yz]mm")
AVX2 = llvm.get_host_cpu_features().get("avx2", False)


def assembly(name, precision):
    function = getattr(elementary, name)
    number = numba.from_dtype(np.dtype(precision))
    if name == "power":
        kernel = numba.njit(error_model="numpy", fastmath=set(LOOP))(_apply_power)
    elif name in ("sin_cos_eighth", "sin_cos_turns"):
        kernel = numba.njit(error_model="numpy", fastmath=set(LOOP))(_apply_turns if "turns" in name else _apply_turn)
    else:
        kernel = compiled(function)
    kernel.compile((number[::1], number[::1]))
    return "\n".join(kernel.inspect_asm().values())


def _apply_power(x, out):
    for i in range(out.size):
        out[i] = elementary.power(x[i], out[i])


def _apply_turn(x, out):
    for i in range(out.size):
        s, c = elementary.sin_cos_eighth(x[i])
        out[i] = s + c


def _apply_turns(x, out):
    for i in range(out.size):
        s, c = elementary.sin_cos_turns(x[i])
        out[i] = s + c


@pytest.mark.skipif(not AVX2, reason="the processor has no AVX2")
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", elementary.__all__)
def test_a_loop_is_vectorised_without_a_call_and_without_a_wider_precision(name, precision):
    code = assembly(name, precision)
    assert PACKED.search(code), "no packed instruction on 256-bit registers"
    assert not CALLS.search(code), CALLS.search(code)
    if precision is np.float32:
        assert not WIDER.search(code), WIDER.search(code)


@pytest.mark.skipif(not AVX2, reason="the processor has no AVX2")
def test_the_vectorisation_test_sees_a_call_and_a_double():
    @numba.njit(error_model="numpy", fastmath=set(LOOP))
    def naive(x, out):
        for i in range(out.size):
            out[i] = np.float32(math.exp(np.float64(x[i])))

    naive.compile((numba.float32[::1], numba.float32[::1]))
    code = "\n".join(naive.inspect_asm().values())
    assert CALLS.search(code)
    assert WIDER.search(code)
    assert not PACKED.search(code)
