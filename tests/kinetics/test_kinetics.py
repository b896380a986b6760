"""Kinetics against formulas in 60 digits, against quadrature, and draws against their law."""

from __future__ import annotations

import math
import pickle
from typing import Any, NamedTuple

import mpmath as mp
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import sgmcmc as sg
from sgmcmc import kinetics as kin
from sgmcmc.dispatch import implements, leaf, loop
from sgmcmc.kernels import kernel
from sgmcmc.kinetics import (
    Gaussian,
    LinearMonomial,
    MonomialGamma,
    Relativistic,
    RootMonomial,
    acceptance,
    curvature,
    draw,
    energy,
    friction_flow,
    inverse_mass,
    log_normaliser,
    specialise,
    velocity,
    velocity_and_excess,
    with_momentum_law,
)
from sgmcmc.rng import stream

mp.mp.dps = 60
JIT = not numba.config.DISABLE_JIT
FINE = 64 if JIT else 16  # points per factor e in quadratures; the trapezium rule has converged with 16


class Quartic(NamedTuple):
    """A user's kinetics with nothing but the three functions: K = p²/2 + p⁴/4."""

    weight: float = 1.0


@implements(energy, Quartic)
def _(kinetics, p):
    return kinetics.weight * (0.5 * p * p + 0.25 * p * p * p * p)


@implements(velocity, Quartic)
def _(kinetics, p):
    return kinetics.weight * (p + p * p * p)


@implements(curvature, Quartic)
def _(kinetics, p):
    return kinetics.weight * (1.0 + 3.0 * p * p)


@loop
def _evaluate(kinetics, p, temperature, out):
    for i in range(p.size):
        out[0, i] = energy(kinetics, p[i])
        out[1, i] = velocity(kinetics, p[i])
        out[2, i] = curvature(kinetics, p[i])
        out[3, i] = inverse_mass(kinetics, p[i])
        out[4, i], out[5, i] = velocity_and_excess(kinetics, p[i], temperature)


@loop
def _hot(kinetics, p, temperature, v, excess):
    for i in range(p.size):
        v[i], excess[i] = velocity_and_excess(kinetics, p[i], temperature)


@loop
def _flow(kinetics, p, rate_time, out):
    for i in range(p.size):
        out[i] = friction_flow(kinetics, p[i], rate_time)


@loop
def _draws(kinetics, temperature, source, step, out):
    for i in range(out.size):
        out[i] = draw(kinetics, temperature, source, step, i)


@numba.njit(error_model="numpy")
def evaluate(kinetics, p, temperature, out):
    _evaluate(kinetics, p, temperature, out)


@numba.njit(error_model="numpy")
def hot(kinetics, p, temperature, v, excess):
    _hot(kinetics, p, temperature, v, excess)


@numba.njit(error_model="numpy")
def flow(kinetics, p, rate_time, out):
    _flow(kinetics, p, rate_time, out)


@numba.njit(error_model="numpy")
def draws(kinetics, temperature, source, step, out):
    _draws(kinetics, temperature, source, step, out)


def cast(kinetics: Any, dtype: Any) -> Any:
    return type(kinetics)._make(dtype(x) for x in kinetics)


def table(kinetics: Any, p: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    """energy, velocity, curvature, inverse mass, velocity, excess at every p, compiled in the precision of p."""
    out = np.empty((6, p.size), p.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        evaluate(cast(kinetics, p.dtype.type), p, p.dtype.type(temperature), out)
    return out


def flowed(kinetics: Any, p: np.ndarray, rate_time: float) -> np.ndarray:
    out = np.empty_like(p)
    with np.errstate(over="ignore"):
        flow(cast(kinetics, p.dtype.type), p, p.dtype.type(rate_time), out)
    return out


def sample(kinetics: Any, temperature: float, n: int, dtype: Any = np.float64, seed: int = 20240) -> np.ndarray:
    out = np.empty(n if JIT else n // 100, dtype)
    draws(kinetics, dtype(temperature), stream(seed, 3), 17, out)
    return out


# ------------------------------------------------------------------------------------------------ formulas in 60 digits


def exact_monomial(k: MonomialGamma, p: float) -> tuple[Any, Any, Any, Any]:
    """(K, K', K'', K'/p) by the textbook formulas, in 60 digits."""
    a, c, r, m = (mp.mpf(float(x)) for x in k)
    size = abs(mp.mpf(float(p)))
    s = size ** (1 / a) / m
    stiff = mp.isinf(c)
    t = mp.mpf(1) if stiff else mp.tanh(c * s / 2)
    sech2 = mp.mpf(0) if stiff else mp.sech(c * s / 2) ** 2
    first = size ** (1 / a - 1) * t**r / (a * m)
    second = (1 / a) * (1 / a - 1) * size ** (1 / a - 2) * t**r / m
    if not stiff:
        second += size ** (2 / a - 2) * r * t ** (r - 1) * (c / 2) * sech2 / (a * m) ** 2
    return exact_energy(r, c, s), mp.sign(p) * first, second, first / size


def exact_energy(r: Any, c: Any, s: Any) -> Any:
    if mp.isinf(c) or c * s > 400:
        return s
    if r == int(r):
        t = mp.tanh(c * s / 2)
        base, order = (mp.mpf(0), 0) if int(r) % 2 == 0 else (2 / c * mp.log(1 + mp.exp(-c * s)), 1)
        return s + base + sum(2 / c * (1 - t ** (j - 1)) / (j - 1) for j in range(order + 2, int(r) + 1, 2))
    ends = [c * s / 2, c * s / 2 + 1, c * s / 2 + 5, c * s / 2 + 30]
    with mp.workdps(25):
        return s + 2 / c * mp.quad(lambda v: 1 - mp.tanh(v) ** r, ends)


def exact_gaussian(k: Gaussian, p: float) -> tuple[Any, Any, Any, Any]:
    m, p = mp.mpf(float(k.mass)), mp.mpf(float(p))
    return p * p / (2 * m), p / m, 1 / m, 1 / m


def exact_relativistic(k: Relativistic, p: float) -> tuple[Any, Any, Any, Any]:
    m, c, p = mp.mpf(float(k.mass)), mp.mpf(float(k.speed)), mp.mpf(float(p))
    g = mp.sqrt(1 + (p / (m * c)) ** 2)
    return m * c * c * g, p / (m * g), 1 / (m * g**3), 1 / (m * g)


def exact(k: Any, p: float) -> tuple[Any, Any, Any, Any]:
    if isinstance(k, Gaussian):
        return exact_gaussian(k, p)
    if isinstance(k, Relativistic):
        return exact_relativistic(k, p)
    if isinstance(k, LinearMonomial):
        k = MonomialGamma._make((1.0, k.softening, 1.0, k.mass))
    if isinstance(k, RootMonomial):
        k = MonomialGamma._make((2.0, k.softening, 3.0, k.mass))
    return exact_monomial(k, p)


CASES = [
    (Gaussian(), 1e-15),
    (Gaussian(2.5), 1e-15),
    (Relativistic(), 1e-15),
    (Relativistic(0.3, 4.0), 2e-15),
    (LinearMonomial(3.0, 1.0), 1e-12),
    (LinearMonomial(0.7, 2.5), 1e-12),
    (RootMonomial(3.0, 1.0), 1e-12),
    (RootMonomial(5.0, 0.6), 1e-12),
    (MonomialGamma(1.0), 1e-12),
    (MonomialGamma(2.0), 1e-12),
    (MonomialGamma(2.0, softening=5.0, order=2.0, mass=1.7), 1e-12),
    (MonomialGamma(0.5, mass=2.0), 1e-12),
    (MonomialGamma(1.5), 1e-11),
    (MonomialGamma(1.3, softening=2.0, order=1.3, mass=0.4), 1e-11),
    (MonomialGamma(0.7, softening=40.0), 1e-11),
    (MonomialGamma(4.0), 1e-11),
    (MonomialGamma(2.0, softening=math.inf), 1e-11),
    (MonomialGamma(1.0, softening=math.inf, mass=3.0), 1e-11),
]
MODERATE = [1e-8, 1e-3, 0.03, 0.2, 0.7, 1.0, 1.9, 4.0, 11.0, 60.0, 300.0, 1e4, 1e8]
EXTREME = {
    np.float64: [1e-300, 1e-200, 1e-100, 1e-30, 1e30, 1e100, 1e300],
    np.float32: [1e-37, 1e-25, 1e-15, 1e20, 1e37],
}


def largest_error(k: Any, dtype: Any, truth: Any = None) -> float:
    """The largest relative error of all functions over all p; K'' is measured against K'/p where it changes its sign."""
    info = np.finfo(dtype)
    nothing = 1e-90 if dtype is np.float64 else 1e-12  # to a thermostat
    p = np.array([s * x for x in MODERATE + EXTREME[dtype] for s in (1.0, -1.0)], dtype)
    got, worst = table(k, p, 1.3), 0.0
    for i, value in enumerate(p):
        e, v, curve, im = exact(cast(k if truth is None else truth, dtype), value)
        excess = v * v - mp.mpf(float(dtype(1.3))) * curve
        scales = (e, v, max(abs(curve), im / 10) if bends(k) else curve, im, v, max(v * v + abs(curve) * 1.3, nothing))
        for mine, want, scale in zip(got[:, i], (e, v, curve, im, v, excess), scales, strict=True):
            assert not np.isnan(mine), (k, value)
            if abs(want) > info.max or abs(scale) < info.tiny / info.eps:
                continue
            worst = max(worst, float(abs(mp.mpf(float(mine)) - want) / abs(scale)))
    return worst


def bends(k: Any) -> bool:
    return not isinstance(k, Gaussian | Relativistic | LinearMonomial) and getattr(k, "a", 2.0) > 1.0


@pytest.mark.parametrize(("k", "tolerance"), CASES, ids=str)
def test_formulas_hold_from_1e_minus_300_to_1e_300_in_double_precision(k, tolerance):
    assert largest_error(k, np.float64) < tolerance


@pytest.mark.parametrize(("k", "tolerance"), CASES, ids=str)
def test_formulas_hold_over_the_range_of_single_precision(k, tolerance):
    assert largest_error(k, np.float32) < (1e-6 if tolerance < 1e-14 else 1e-5)


def test_the_error_measure_sees_a_softening_that_is_off_by_one_in_ten_thousand():
    assert largest_error(RootMonomial(3.0003, 1.0), np.float32, truth=RootMonomial(3.0, 1.0)) > 5e-5


# ------------------------------------------------------------------------------------------------- what must hold at 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("k", "_tolerance"), CASES, ids=str)
def test_at_zero_everything_is_finite_and_the_inverse_mass_is_the_curvature(k, _tolerance, dtype):
    e, v, curve, im, again, excess = table(k, np.zeros(1, dtype), 2.0)[:, 0].astype(float)
    assert v == again == 0.0
    assert np.isfinite(e)
    assert im == pytest.approx(curve, rel=1e-6)
    assert excess == pytest.approx(-2.0 * curve, rel=1e-6)


@pytest.mark.parametrize("a", [1.0, 1.5, 2.0, 3.0])
def test_the_smooth_family_has_the_curvature_of_its_formula_at_zero(a):
    k = MonomialGamma(a, mass=1.4)
    expected = (k.softening / 2) ** (2 * a - 1) / (a * k.mass ** (2 * a))
    assert curvature(k, 0.0) == pytest.approx(expected, rel=1e-13)
    assert curvature(k, 1e-40) == pytest.approx(expected, rel=1e-11)


def test_default_softening_keeps_the_curvature_of_a_2_and_is_continuous_there():
    assert MonomialGamma(2.0).softening == 3.0
    assert MonomialGamma(2.0 + 1e-9).softening == pytest.approx(3.0, abs=1e-7)
    for a in (2.5, 3.0, 5.0):
        assert curvature(MonomialGamma(a), 0.0) == pytest.approx(1.6875, rel=1e-12)


def test_not_a_number_stays_visible():
    for k in (Gaussian(), Relativistic(), LinearMonomial(3.0, 1.0), RootMonomial(3.0, 1.0), MonomialGamma(1.5)):
        out = table(k, np.array([np.nan]))
        assert np.isnan(out[[0, 1, 4, 5]]).all(), k
        assert np.isnan(flowed(k, np.array([np.nan]), 0.1)).all(), k


# ----------------------------------------------------------------------------------------- one function, several forms


MONOMIALS = st.builds(
    lambda a, c, extra, m: MonomialGamma(a, c, max(0.0, a - 1.0) + extra, m),
    st.floats(0.5, 4.0),
    st.floats(0.2, 20.0),
    st.floats(0.1, 4.0),
    st.floats(0.2, 5.0),
)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(MONOMIALS, st.floats(0.01, 50.0))
def test_velocity_and_curvature_are_the_derivatives_of_the_energy(k, p):
    h = 1e-3 * p
    e, v, curve, im, _, _ = table(k, p + h * np.array([-2.0, -1.0, 0.0, 1.0, 2.0]))
    steep = max(1.0, k.softening * p ** (1 / k.a) / k.mass / k.a) ** 5  # fifth derivatives on the scale of p
    assert (8 * (e[3] - e[1]) - (e[4] - e[0])) / (12 * h) == pytest.approx(v[2], rel=1e-9 * steep, abs=1e-11 * e[2] / p)
    assert (8 * (v[3] - v[1]) - (v[4] - v[0])) / (12 * h) == pytest.approx(
        curve[2], rel=1e-8 * steep, abs=1e-9 * steep * im[2]
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(MONOMIALS, st.floats(1e-6, 1e6))
def test_kinetics_are_even_and_their_inverse_mass_is_velocity_over_momentum(k, p):
    right, left = table(k, np.array([p, -p])).T
    assert (right[[0, 2, 3, 5]] == left[[0, 2, 3, 5]]).all()
    assert (right[[1, 4]] == -left[[1, 4]]).all()
    assert right[3] == pytest.approx(right[1] / p, rel=1e-12)
    assert right[5] == pytest.approx(right[1] ** 2 - right[2], rel=1e-10, abs=1e-12 * (right[1] ** 2 + right[3]))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.floats(0.2, 20.0), st.floats(0.2, 5.0))
def test_special_forms_equal_the_general_one(c, m):
    p = np.array([0.0, 1e-9, 0.01, 0.3, 1.0, -2.0, 7.0, 30.0, -500.0])
    for special, general in (
        (LinearMonomial(c, m), MonomialGamma(1.0, c, 1.0, m)),
        (RootMonomial(c, m), MonomialGamma(2.0, c, 3.0, m)),
    ):
        mine, theirs = table(special, p, 1.7), table(general, p, 1.7)
        scale = np.maximum(np.abs(theirs), [[0.0], [0.0], [0.1], [0.0], [0.0], [1.0]] * theirs[3])
        assert (np.abs(mine - theirs) <= 3e-13 * scale + 1e-15 * np.abs(theirs[3])).all()


def test_the_form_of_a_kinetics_is_chosen_from_its_values_and_others_are_their_own():
    stiff, other, power = MonomialGamma(1.0, math.inf), MonomialGamma(2.0, order=2.0), MonomialGamma(1.5)
    for own in (stiff, MonomialGamma(2.0, math.inf), other, power, Gaussian(), Quartic()):
        assert specialise(own) is own
    assert specialise(MonomialGamma(1.0, 5.0, mass=2.0)) == LinearMonomial(5.0, 2.0)
    assert specialise(MonomialGamma(2.0, 5.0, mass=2.0)) == RootMonomial(5.0, 2.0)


def test_what_kernels_are_compiled_for_is_that_form():
    forms = {1.0: LinearMonomial, 2.0: RootMonomial, 1.5: MonomialGamma, 3.0: MonomialGamma}
    for a, form in forms.items():
        for preset in (sg.SGMGT, sg.SGMGTD):
            assert type(preset(0.01, a).dynamics(3).kinetics) is form
            assert type(preset(0.01, a).kinetics) is MonomialGamma  # what the user sees
    assert type(sg.SGMGTD(0.01, 1.0, softening=math.inf).dynamics(3).kinetics) is MonomialGamma


def test_a_one_half_is_the_gaussian_of_half_the_mass():
    p = np.array([0.0, 1e-5, 0.3, -1.7, 40.0])
    assert table(MonomialGamma(0.5, mass=2.0), p) == pytest.approx(table(Gaussian(1.0), p), rel=1e-13)


def test_plain_python_and_compiled_code_agree():
    p = np.array([0.0, 1e-5, 0.3, -1.7, 40.0])
    for k in (
        Gaussian(2.0),
        Relativistic(0.5, 2.0),
        LinearMonomial(3.0, 1.0),
        RootMonomial(3.0, 2.0),
        MonomialGamma(1.5),
    ):
        plain = [[float(f(k, x)) for x in p] for f in (energy, velocity, curvature, inverse_mass)]
        assert table(k, p)[:4] == pytest.approx(np.array(plain), rel=1e-14)


# -------------------------------------------------------------------------------------------------------- friction flow


def test_the_flow_of_a_1_solves_its_differential_equation():
    k = LinearMonomial(2.4, 1.7)
    p = np.array([1e-12, 1e-3, 0.4, -1.3, 5.0, 80.0])
    for rate_time in (-2.0, -0.1, 0.0, 0.3, 4.0):
        for start, end in zip(p, flowed(k, p, rate_time), strict=True):
            y = mp.asinh(
                mp.sinh(mp.mpf(1.2) / mp.mpf(1.7) * start) * mp.exp(-rate_time * mp.mpf(1.2) / mp.mpf(1.7) ** 2)
            )
            assert end == pytest.approx(float(y * mp.mpf(1.7) / mp.mpf(1.2)), rel=1e-14)
    path = integrate.solve_ivp(lambda t, q: [-float(velocity(k, q[0]))], (0.0, 1.5), [2.0], rtol=1e-11, atol=1e-13)
    assert flowed(k, np.array([2.0]), 1.5)[0] == pytest.approx(path.y[0, -1], rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [Gaussian(1.7), LinearMonomial(2.4, 1.7)], ids=str)
def test_exact_flows_compose(k, dtype):
    p = np.array([1e-12, -0.3, 2.0, 30.0, 1e30], dtype)
    twice, once = flowed(k, flowed(k, p, 0.7), 0.5), flowed(k, p, 1.2)
    assert twice == pytest.approx(once, rel=1e-6 if dtype is np.float32 else 2e-15)


@pytest.mark.parametrize("k", [RootMonomial(3.0, 0.8), Relativistic(0.5, 1.0), MonomialGamma(1.5), Quartic()], ids=str)
def test_friction_flow_is_second_order(k):
    p = np.array([0.3, -0.9, 1.5])

    def after(steps: int) -> np.ndarray:
        q = p
        for _ in range(steps):
            q = flowed(k, q, 0.2 / steps)
        return q

    truth = after(512)
    errors = [np.abs(after(n) - truth).max() for n in (4, 8, 16)]
    assert 3.5 < errors[0] / errors[1] < 4.6
    assert 3.5 < errors[1] / errors[2] < 4.6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("k", "_tolerance"), CASES, ids=str)
def test_friction_flow_has_no_not_a_number_and_friction_always_slows(k, _tolerance, dtype):
    p = np.array([s * x for x in [0.0, *MODERATE, *EXTREME[dtype]] for s in (1.0, -1.0)], dtype)
    for rate_time in (-0.1, 0.0, 0.01, 1.0, 100.0):
        q = flowed(k, p, rate_time)
        assert not np.isnan(q).any()
        assert (q[p == 0.0] == 0.0).all()
        assert (np.sign(q) * np.sign(p) >= 0.0).all()
        slack = 1.0 + 8 * np.finfo(dtype).eps
        assert (np.abs(q) <= np.abs(p) * slack).all() if rate_time >= 0.0 else (np.abs(q) * slack >= np.abs(p)).all()


# ---------------------------------------------------------------------------------------------------- the momentum law


LAWS = [
    Gaussian(1.5),
    Relativistic(),
    Relativistic(0.4, 3.0),
    MonomialGamma(1.0),
    MonomialGamma(2.0, mass=0.7),
    MonomialGamma(2.0, softening=5.0, order=2.0),
    MonomialGamma(1.5, mass=1.3),
    MonomialGamma(0.7),
]
TEMPERATURES = (0.1, 1.0, 4.0)


def law(k: Any, temperature: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(p, weights of dp/p, functions of p) for p = e^y on a uniform grid, on which the trapezium rule is exact to 1e-10."""
    p = np.exp(np.arange(-35.0, 16.0, 1.0 / FINE))
    values = table(k, p, temperature)
    log_weight = np.log(p) - values[0] / temperature
    return p, np.exp(log_weight - log_weight.max()), values


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("k", [*LAWS, MonomialGamma(3.0), MonomialGamma(1.0, softening=0.5)], ids=str)
def test_the_virial_is_the_temperature_and_the_thermostat_has_nothing_to_do(k, temperature):
    p, weight, (_, v, curve, _, _, excess) = law(k, temperature)
    scale = (weight * np.abs(curve)).sum() * temperature
    assert (weight * p * v).sum() / weight.sum() == pytest.approx(temperature, rel=1e-9)
    if not (isinstance(k, MonomialGamma) and k.order < 2 * k.a - 1):  # else K'' is unbounded, and the grid too coarse
        assert abs((weight * excess).sum()) < 1e-9 * scale
        assert abs((weight * (v * v - 1.01 * temperature * curve)).sum()) > 1e-3 * scale


def fit(k: Any, temperature: float, momenta: np.ndarray) -> float:
    """The p-value of a Kolmogorov–Smirnov test of momenta against exp(−K/T)."""
    p, weight, _ = law(k, temperature)
    cumulative = integrate.cumulative_simpson(weight, dx=1.0 / FINE, initial=0.0)
    half = 0.5 * np.interp(np.abs(momenta.astype(float)), p, cumulative / cumulative[-1])
    return float(stats.kstest(0.5 + np.sign(momenta) * half, "uniform").pvalue)


# 8 laws and a user's, 3 temperatures and 2 precisions: 54 tests, with a false alarm in 1 of 10,000 families
ALARM = 1e-4 / 54


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [*LAWS, Quartic()], ids=str)
def test_draws_follow_the_momentum_law_at_every_temperature(k, dtype):
    for temperature in TEMPERATURES:
        momenta = sample(in_precision(with_momentum_law(k, temperature), dtype), temperature, 20_000, dtype)
        assert momenta.dtype == dtype
        assert fit(k, temperature, momenta) > ALARM, temperature


def in_precision(k: Any, dtype: Any) -> Any:
    fields = (
        in_precision(x, dtype) if isinstance(x, tuple) else x.astype(dtype) if isinstance(x, np.ndarray) else dtype(x)
        for x in k
    )
    return type(k)._make(fields)


@pytest.mark.skipif(not JIT, reason="needs many draws")
def test_the_fit_rejects_stiff_momenta_and_a_forgotten_temperature():
    for k in (MonomialGamma(2.0), MonomialGamma(1.0), MonomialGamma(1.5)):
        stiff = sample(MonomialGamma(k.a, softening=math.inf), 1.0, 20_000)
        assert fit(k, 1.0, stiff) < ALARM
    for k in LAWS:
        assert fit(k, 4.0, sample(k, 1.0, 20_000)) < ALARM
    assert fit(Gaussian(), 1.0, np.abs(sample(Gaussian(), 1.0, 20_000))) < ALARM


def test_draws_have_an_address():
    for k in (Gaussian(), Relativistic(), MonomialGamma(1.0), MonomialGamma(2.0), MonomialGamma(1.5)):
        one, other = sample(k, 1.0, 1000, seed=1), sample(k, 1.0, 1000, seed=2)
        assert len(np.unique(np.concatenate((one, other)))) == 2 * one.size
        assert draw(k, 1.0, stream(1, 3), 17, 5) == pytest.approx(one[5], rel=1e-12)


@kernel
def filled(k, temperature, p, at, step, first):
    kin.fill_momenta(k, temperature, p, at, step, first)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [*LAWS, Quartic()], ids=str)
def test_momenta_drawn_together_are_those_drawn_one_by_one(k, dtype):
    law, temperature = in_precision(with_momentum_law(k, 0.7), dtype), dtype(0.7)
    together = np.full(500 if JIT else 20, 7.0, dtype)
    filled(law, temperature, together, stream(1, 3), 17, 40)
    alone = [draw(law, temperature, stream(1, 3), 17, 40 + i) for i in range(0, together.size, 10)]
    assert np.isfinite(together).all()
    np.testing.assert_allclose(together[::10], alone, rtol=1e-12 if dtype is np.float64 else 2e-5, atol=0.0)


# -------------------------------------------------------------------------------------------- normaliser and acceptance


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize(
    "k", [*LAWS, MonomialGamma(2.0, softening=math.inf), Quartic(), RootMonomial(2.0, 1.5)], ids=str
)
def test_log_normaliser_is_the_log_of_the_integral(k, temperature):
    p = np.exp(np.arange(-38.0, 18.0, 1.0 / FINE))
    integral = 2.0 / FINE * (p * np.exp(-table(k, p)[0] / temperature)).sum()
    assert log_normaliser(k, temperature) == pytest.approx(math.log(integral), abs=1e-10)


@pytest.mark.parametrize(
    ("case", "expected"), [((1, 3, 1), 0.883), ((2, 5, 2), 0.984), ((2, 5, 3), 0.978), ((2, 1, 3), 0.472)]
)
def test_mean_acceptance_from_the_stiff_law_is_the_published_figure(case, expected):
    a, c, r = case
    stiff, soft = MonomialGamma(a, math.inf), MonomialGamma(a, c, r)
    found = math.exp(log_normaliser(soft, 1.0) - log_normaliser(stiff, 1.0))
    assert round(found, 3) == expected
    assert acceptance(soft, 1.0) >= found  # the best tangent does no worse


@pytest.mark.parametrize("temperature", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("k", [*LAWS[1:5], LAWS[7], MonomialGamma(4.0)], ids=str)
def test_draws_are_accepted_often_at_every_temperature(k, temperature):
    assert 0.3 < acceptance(k, temperature) <= 1.0 + 1e-12


@pytest.mark.skipif(not JIT, reason="needs many draws")
def test_acceptance_is_what_a_simulation_finds():
    rng = np.random.default_rng(5)
    for k, temperature in ((MonomialGamma(2.0), 0.3), (MonomialGamma(1.5, softening=1.0), 1.0)):
        s0, slope = (float(x) for x in kin.momentum_law.tangent(k, temperature))
        s = temperature / slope * rng.gamma(k.a, size=20_000)
        e = table(k, (np.append(s, s0) * k.mass) ** k.a)[0]
        accept = np.exp(-(e[:-1] - e[-1] - slope * (s - s0)) / temperature)
        z = (accept.mean() - acceptance(k, temperature)) / (accept.std() / math.sqrt(s.size))
        assert abs(z) < 5.0
        assert accept.max() <= 1.0 + 1e-12
        assert abs(accept.mean() - acceptance(k, 1.1 * temperature)) > 5.0 * accept.std() / math.sqrt(s.size)


# ------------------------------------------------------------------------------------------------ your own kinetics


class Mine(NamedTuple):
    """A kinetics whose energy is chosen by a number, to try the table."""

    kind: float


@leaf
def _log1p_square(p):
    return math.log1p(0.5 * p * p)


@implements(energy, Mine)
def _(kinetics, p):
    if kinetics.kind == 1.0:
        return 0.5 * p * p
    if kinetics.kind == 2.0:
        return 1.5 * _log1p_square(p)  # Student's t with 2 degrees of freedom
    if kinetics.kind == 3.0:
        return 0.4 * _log1p_square(p)  # no finite integral
    if kinetics.kind == 4.0:
        return 0.5 * p * p + 0.1 * p  # not even
    return 0.5 * p * p - np.log(abs(p))  # infinite at 0


@pytest.mark.parametrize(("kind", "dist"), [(1.0, stats.norm), (2.0, stats.t(2))])
def test_tabulated_quantiles_are_the_exact_ones_far_into_the_tails(kind, dist):
    t = with_momentum_law(Mine(kind), 1.0)
    tail = np.arange(1, t.size.size) / t.density
    assert t.size[0] == 0.0
    assert t.size[1:] == pytest.approx(dist.isf(0.5 * np.exp(-tail)), rel=1e-7)


def test_a_kinetics_with_a_draw_keeps_it():
    for k in (*LAWS, kin.Overdamped()):
        assert with_momentum_law(k, 2.0) is k


@pytest.mark.parametrize(
    ("kind", "words"), [(3.0, "no finite integral"), (4.0, "is not even"), (5.0, "not a number above -inf")]
)
def test_an_impossible_momentum_law_is_refused_with_its_reason(kind, words):
    with pytest.raises(ValueError, match=words):
        with_momentum_law(Mine(kind), 1.0)


def test_a_users_kinetics_gets_the_rest_for_free():
    p = np.array([0.0, 0.5, -2.0])
    _, v, _, im, again, excess = table(Quartic(2.0), p, 1.5)
    assert im == pytest.approx(2.0 * (1.0 + p**2))
    assert (again == v).all()
    assert excess == pytest.approx(v**2 - 3.0 * (1.0 + 3.0 * p**2))
    tabulated = with_momentum_law(Quartic(2.0), 1.5)
    for f in (energy, velocity, curvature, inverse_mass):
        assert f(tabulated, 0.7) == f(Quartic(2.0), 0.7)
    assert velocity_and_excess(tabulated, 0.7, 1.5) == velocity_and_excess(Quartic(2.0), 0.7, 1.5)
    assert friction_flow(tabulated, 0.7, 0.1) == friction_flow(Quartic(2.0), 0.7, 0.1)
    assert log_normaliser(tabulated, 1.5) == log_normaliser(Quartic(2.0), 1.5)


# ----------------------------------------------------------------------------------------------------------- at the door


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Gaussian(0.0), ValueError, "mass=0.0 is out of range"),
        (lambda: Gaussian(math.nan), ValueError, "mass=nan"),
        (lambda: Gaussian("1"), TypeError, "mass='1' is not a number"),
        (lambda: Relativistic(speed=-1.0), ValueError, "speed=-1.0 is out of range; give a number above 0"),
        (lambda: MonomialGamma(0.4), ValueError, "a=0.4 is out of range; give a number from 0.5"),
        (lambda: MonomialGamma(2.0, softening=0.0), ValueError, "softening=0.0 is out of range; .* or inf for none"),
        (lambda: MonomialGamma(2.0, softening=math.nan), ValueError, "softening=nan"),
        (lambda: MonomialGamma(2.0, order=1.0), ValueError, "order=1.0 is too low for a=2; give a number above a - 1"),
        (lambda: MonomialGamma(2.0, order=-1.0), ValueError, "order=-1.0"),
        (lambda: MonomialGamma(2.0, mass=math.inf), ValueError, "mass=inf"),
        (lambda: MonomialGamma(True), TypeError, "a=True is not a number"),
        (lambda: with_momentum_law(Quartic(), 0.0), ValueError, "temperature=0.0"),
        (lambda: energy(kin.Overdamped(), 1.0), TypeError, "energy has no implementation for Overdamped"),
    ],
)
def test_bad_input_is_refused_by_name(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_values_print_themselves_and_survive_pickling():
    k = MonomialGamma(2, softening=5, mass=np.float32(0.5))
    assert repr(k) == "MonomialGamma(a=2.0, softening=5.0, order=3.0, mass=0.5)"
    assert all(type(x) is float for x in k)
    for value in (k, Gaussian(2.0), Relativistic(1.0, 3.0), LinearMonomial(3.0, 1.0), kin.Overdamped()):
        again = pickle.loads(pickle.dumps(value))
        assert again == value
        assert type(again) is type(value)


# -------------------------------------------------------------------------------------------------------- machine code


def has_avx2() -> bool:
    import llvmlite.binding as llvm

    return bool(llvm.get_host_cpu_features().get("avx2", False))


@pytest.mark.skipif(not JIT or not has_avx2(), reason="needs compiled code for AVX2")
@pytest.mark.parametrize(
    "k", [Gaussian(), LinearMonomial(3.0, 1.0), RootMonomial(3.0, 1.0), MonomialGamma(1.5), Relativistic()], ids=repr
)
def test_single_precision_stays_single_and_loops_are_packed(k):
    p = np.linspace(-1.0, 1.0, 64, dtype=np.float32)
    v, excess = np.empty_like(p), np.empty_like(p)
    hot(cast(k, np.float32), p, np.float32(1.0), v, excess)
    signature = hot.nopython_signatures[-1].args
    code = hot.inspect_asm(signature)
    assert "cvtss2sd" not in code
    products = [line for line in code.splitlines() if "ps\t" in line and ("vmul" in line or "vfm" in line)]
    assert any("ymm" in line or "zmm" in line for line in products)


def test_plain_python_stays_in_single_precision_too():
    one = np.float32(1.0)
    for k in (Gaussian(), LinearMonomial(3.0, 1.0), RootMonomial(3.0, 1.0), MonomialGamma(1.5), Relativistic()):
        single = cast(k, np.float32)
        for p in (np.float32(0.0), np.float32(1e-37), np.float32(0.5), np.float32(1e30)):
            with np.errstate(over="ignore"):  # the energy of 1e30 is no float32
                found = [f(single, p) for f in (energy, velocity, curvature, inverse_mass)]
                found += [*velocity_and_excess(single, p, one), friction_flow(single, p, one)]
            assert all(x.dtype == np.float32 for x in found), (k, p)
        assert draw(single, one, stream(1), 0, 0).dtype == np.float32
