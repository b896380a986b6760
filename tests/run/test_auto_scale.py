"""Equivariance: in units 2^k times as large every draw is the same bits, times 2^k, by every chain loop.

Multiplying by a power of two rounds nothing, so nothing but a number that ought to have a unit, and has none, can tell the units
apart. On GPUs a step is that of the CPU's loop (tests/gpu/test_cuda_simulator.py).
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.integrators import threaded as spread
from sgmcmc.run import sharding
from sgmcmc.schedules import Cyclical

UNITS = [2.0**-10, 2.0**10]
RNG = np.random.default_rng(2)
X = RNG.normal(size=(300, 3))
Y = X @ [1.0, -1.0, 0.5] + RNG.normal(size=300)
ROWS = RNG.normal(size=(3000, 40))
TARGETS = RNG.normal(size=3000)
LONG = spread.LONG + spread.PIECE + 77


def sgmgtd(s, a=1.0, h=0.05, **options):
    """SGMGT-D in units of s: θ = s θ', t = s t'."""
    resampled = {"resample_momentum": 7, "resample_thermostat": 11}
    kept = resampled | options
    return sg.SGMGTD(h * s, a, None, 0.3 * s, 0.8 / s, 0.2 / s**3, 0.7 / s**2, **kept)


def gaussian(s, d):
    return sg.models.Gaussian(np.linspace(-1.0, 1.0, d) * s, np.linspace(0.5, 2.0, d) * s**2)


def linear(s, x=X, y=Y):
    return sg.models.LinearRegression(x / s, y, prior=sg.priors.Gaussian(8.0 * s))


def in_python(s):
    def gradient(theta, data, rows):
        x, y = data[0][rows], data[1][rows]
        return x.T @ (x @ theta - y)

    return sg.Potential(gradient, dim=3, data=(X / s, Y), prior=sg.priors.Gaussian(8.0 * s))


CASES = {
    "lanes": (lambda s: gaussian(s, 3), sgmgtd, {}),
    "lanes, noise": (lambda s: gaussian(s, 3), sgmgtd, {"noise": 4.0}),
    "lanes, a = 2": (lambda s: gaussian(s, 3), lambda s: sgmgtd(s, 2.0), {"noise": 4.0}),
    "lanes, minibatch": (linear, lambda s: sgmgtd(s, h=0.01), {"batch_size": 20}),
    "loop": (lambda s: gaussian(s, 20), sgmgtd, {"noise": 4.0}),
    "loop, one thermostat": (linear, lambda s: sgmgtd(s, h=0.01, per="chain"), {"batch_size": 20}),
    "rows by two threads": (lambda s: linear(s, ROWS, TARGETS), lambda s: sgmgtd(s, h=0.001), {"batch_size": 1000, "threads": 2}),
    "coordinates by two threads": (lambda s: gaussian(s, LONG), sgmgtd, {"noise": 1.0, "threads": 2}),
    "Python": (in_python, lambda s: sgmgtd(s, h=0.01), {"batch_size": 20}),
}  # fmt: skip


def drawn(name, s, dtype):
    make, sampler, options = CASES[name]
    model, given = make(s), dict(options)
    if "noise" in given:
        given["gradient_noise"] = given.pop("noise") / s**2
    chains = 1 if "threads" in given else 3
    common = {"chains": chains, "warmup": 30, "seed": 3, "init": np.full(model.dim, 0.5 * s), "dtype": dtype}
    return sg.sample(model, sampler(s), 12, progress=False, warn=False, **(common | given))


SINGLE = ["lanes, noise", "coordinates by two threads"]


@pytest.mark.parametrize(("name", "dtype"), [*((n, np.float64) for n in CASES), *((n, np.float32) for n in SINGLE)])
def test_units_are_powers_of_two_and_no_bit_of_the_draws_is_another(name, dtype, monkeypatch):
    sharded_tasks = []
    for kind in (sharding.ShardedTask, sharding.CoordinateShardedTask):
        make = kind.__init__
        monkeypatch.setattr(
            kind, "__init__", lambda self, *a, make=make, kind=kind: (sharded_tasks.append(kind), make(self, *a))[1]
        )
    one = drawn(name, 1.0, dtype)
    assert np.ptp(one.draws) > 0.0
    assert "threads" not in CASES[name][2] or sharded_tasks  # it was not the loop after all
    for s in UNITS:
        other = drawn(name, s, dtype)
        np.testing.assert_array_equal(other.draws / dtype(s), one.draws)
        np.testing.assert_array_equal(other.final["variance"] * dtype(s) ** 2, one.final["variance"])
        np.testing.assert_array_equal(other.kinetic_temperature, one.kinetic_temperature)
        np.testing.assert_array_equal(other.configurational_temperature, one.configurational_temperature)


@pytest.mark.parametrize("known", [None, 4.0])
def test_ask_and_tell_does_not_know_the_units_either(known):
    def path(s):
        variance = None if known is None else known / s**2
        sampler, rng = sgmgtd(s), np.random.default_rng(1)
        state = sampler.init(np.full(3, s), seed=2, gradient_variance=variance)
        for _ in range(200):
            state = sampler.step(state, state.theta / s**2 + 2.0 / s * rng.standard_normal(3))
        return state.theta / s, state.arrays.variance * s**2

    for s in UNITS:
        for one, other in zip(path(s), path(1.0), strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_step_size_of_a_cycle_has_the_units_of_theta():
    def draws(s):
        made = dataclasses.replace(sgmgtd(s), step_size=Cyclical(0.05 * s, 20))
        model, noise = gaussian(s, 3), {"gradient_noise": 4.0 / s**2}
        return sg.sample(
            model, made, 12, warmup=30, chains=3, seed=3, init=np.full(3, s), progress=False, warn=False, **noise
        )

    for s in UNITS:
        np.testing.assert_array_equal(draws(s).draws / s, draws(1.0).draws)


def test_a_number_without_its_unit_is_seen():
    """The control: σ_ξ that is not converted."""

    def draws(s):
        made = dataclasses.replace(sgmgtd(s), sigma_xi=0.2)
        run = {"chains": 3, "warmup": 30, "seed": 3, "init": np.full(3, s), "progress": False, "warn": False}
        return sg.sample(gaussian(s, 3), made, 12, **run).draws / s

    assert (draws(2.0) != draws(1.0)).any()
