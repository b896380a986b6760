"""Samplers as compositions: presets, defaults, printing, and what cannot be put together."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc import integrators, kinetics, schedules, thermostats
from sgmcmc.integrators import BAOAB, Euler, State, SymmetricSplitting
from sgmcmc.kinetics import Gaussian, MonomialGamma, Overdamped, Relativistic
from sgmcmc.thermostats import FixedFriction, NoseHoover, PerChain, PerCoordinate

EVERY_100 = {"resample_momentum": 100, "resample_thermostat": 100}

# Each preset beside the composition that its docstring promises.
COMPOSITIONS = [
    (sg.SGLD(0.1), sg.Sampler(0.1, kinetics=None, sigma_theta=1.0, sigma_p=0.0)),
    (
        sg.SGLD(0.1, 0.5, integrator=Euler(), scale=2.0),
        sg.Sampler(0.1, None, integrator=Euler(), sigma_theta=1.0, sigma_p=0.0, temperature=0.5, scale=2.0),
    ),
    (sg.SGHMC(0.1), sg.Sampler(0.1)),
    (sg.SGHMC(0.1, 3.0, 0.5, 2.0), sg.Sampler(0.1, sigma_p=3.0, noise_estimate=0.5, temperature=2.0)),
    (sg.SGNHT(0.1), sg.Sampler(0.1, thermostat=NoseHoover())),
    (
        sg.SGNHT(0.1, diffusion=2.0, gamma=0.3),
        sg.Sampler(0.1, thermostat=NoseHoover(0.3, center="fixed"), sigma_p=2.0),
    ),
    (sg.SGMGT(0.1), sg.Sampler(0.1, MonomialGamma(1.0), NoseHoover(), **EVERY_100)),
    (
        sg.SGMGT(0.05, 2.0, 4.0, diffusion=0.7, gamma=2.0, resample_momentum=None, order=4.0, mass=3.0),
        sg.Sampler(0.05, MonomialGamma(2.0, 4.0, 4.0, 3.0), NoseHoover(2.0), sigma_p=0.7, resample_thermostat=100),
    ),
    (
        sg.SGMGTD(0.1),
        sg.Sampler(0.1, MonomialGamma(1.0), NoseHoover(), sigma_theta=0.1, sigma_p=1.0, sigma_xi=0.1, **EVERY_100),
    ),
    (
        sg.SGMGTD(0.1, 2.0, 2.0, 0.2, 0.5, 0.3, 1.5, 50, 70, 1.0, center="fixed"),
        sg.Sampler(
            0.1,
            MonomialGamma(2.0, 2.0),
            NoseHoover(1.5, center="fixed"),
            sigma_theta=0.2,
            sigma_p=0.5,
            sigma_xi=0.3,
            resample_momentum=50,
            resample_thermostat=70,
        ),
    ),
]
NAMES = [
    "SGLD",
    "SGLD-more",
    "SGHMC",
    "SGHMC-more",
    "SGNHT",
    "SGNHT-more",
    "SGMGT",
    "SGMGT-more",
    "SGMGTD",
    "SGMGTD-more",
]


@pytest.mark.parametrize(("preset", "by_hand"), COMPOSITIONS, ids=NAMES)
def test_a_preset_is_the_composition_that_its_docstring_says(preset, by_hand):
    assert preset == by_hand
    assert repr(preset) == repr(by_hand)
    assert preset.dynamics(3) == by_hand.dynamics(3)


@pytest.mark.parametrize("which", [0, 2, 4, 6, 9], ids=lambda i: NAMES[i])
def test_a_preset_and_its_composition_draw_the_same(which):
    states = []
    for sampler in COMPOSITIONS[which]:
        state = sampler.init(np.array([1.0, -1.0, 0.3]), seed=2)
        for _ in range(210):
            state = sampler.step(state, np.tanh(state.theta), inplace=True)
        states.append(state)
    for name in State._fields:
        np.testing.assert_array_equal(*(getattr(s.arrays, name) for s in states), err_msg=name)
    assert np.abs(states[0].theta - np.array([1.0, -1.0, 0.3])).min() > 1e-3


def test_samplers_that_differ_in_anything_are_not_equal():
    base = sg.SGMGTD(0.1)
    others = [
        sg.SGMGTD(0.15),
        sg.SGMGTD(0.1, a=2.0),
        sg.SGMGTD(0.1, sigma_theta=0.2),
        sg.SGMGTD(0.1, temperature=1.5, gamma=1.0),
        sg.SGMGTD(0.1, scale=np.ones(3)),
        sg.SGMGTD(0.1, center="fixed"),
        sg.SGMGTD(0.1, per="chain"),
        sg.SGMGTD(0.1, resample_thermostat=None),
        sg.SGMGTD(0.1, integrator=Euler()),
        sg.SGMGTD(schedules.PolynomialDecay(0.1)),
    ]
    for one in others:
        assert base != one
    assert base != "SGMGTD"


# ---- defaults -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", [sg.SGMGT, sg.SGMGTD])
def test_monomial_gamma_samplers_resample_every_100_steps(preset):
    sampler = preset(0.1)
    assert (sampler.resample_momentum, sampler.resample_thermostat) == (100, 100)


@pytest.mark.parametrize(
    ("sampler", "center"),
    [
        (sg.SGNHT(0.1), "fixed"),
        (sg.SGMGT(0.1), "adaptive"),
        (sg.SGMGT(0.1, resample_thermostat=None), "fixed"),
        (sg.SGMGT(0.1, center="fixed"), "fixed"),
        (sg.SGMGTD(0.1), "adaptive"),
        (sg.SGMGTD(0.1, resample_thermostat=None), "adaptive"),
        (sg.SGMGTD(0.1, resample_thermostat=None, sigma_xi=0.0), "fixed"),
        (sg.SGMGTD(0.1, center="fixed"), "fixed"),
        (sg.SGNHT(sg.schedules.Cyclical(0.1, 100)), "adaptive"),  # it moves with the step size
        (sg.Sampler(0.1, thermostat=NoseHoover(center="adaptive")), "adaptive"),
    ],
)
def test_the_centre_adapts_where_something_pulls_the_friction_to_it(sampler, center):
    assert sampler.thermostat.center == center


def test_integrators_are_chosen_by_the_kinetics():
    assert [s.integrator for s in (sg.SGLD(0.1), sg.SGHMC(0.1), sg.SGNHT(0.1))] == [BAOAB()] * 3
    assert [s.integrator for s in (sg.SGMGT(0.1), sg.SGMGTD(0.1))] == [SymmetricSplitting()] * 2
    assert sg.Sampler(0.1, Relativistic()).integrator == SymmetricSplitting()
    assert type(sg.SGNHT(0.1, integrator=Euler()).integrator) is Euler


@pytest.mark.parametrize("preset", [sg.SGNHT, sg.SGMGT, sg.SGMGTD])
def test_gamma_is_one_over_the_temperature_unless_it_is_given_and_0_is_no_thermostat(preset):
    assert preset(0.1, temperature=4.0).thermostat.gamma == 0.25
    assert preset(0.1, temperature=4.0, gamma=2.0).thermostat.gamma == 2.0
    without = preset(0.1, gamma=0.0)
    assert isinstance(without.thermostat, FixedFriction)
    assert (without.sigma_xi, without.resample_thermostat) == (0.0, None)


def test_none_is_no_kinetics_and_no_thermostat():
    sampler = sg.SGLD(0.1)
    assert isinstance(sampler.kinetics, Overdamped)
    assert isinstance(sampler.thermostat, FixedFriction)


@pytest.mark.parametrize(
    ("sampler", "sizes"),
    [
        (sg.SGLD(0.1), (5, 0, 0, 0, 0, 5)),
        (sg.SGLD(0.1, integrator=Euler()), (5, 0, 0, 0, 0, 0)),
        (sg.SGHMC(0.1), (5, 5, 0, 0, 0, 0)),
        (sg.SGNHT(0.1), (5, 5, 5, 5, 5, 0)),
        (sg.SGNHT(0.1, per="chain"), (5, 5, 1, 1, 1, 0)),
        (sg.SGMGTD(0.1), (5, 5, 5, 5, 5, 5)),
    ],
)
def test_a_state_has_the_arrays_that_the_sampler_needs(sampler, sizes):
    *first, balance, last = sizes
    for inferred in (False, True):
        state, n = sampler.start(np.zeros(5, np.float32), inferred=inferred), balance if inferred else 0
        assert tuple(a.size for a in state) == (*first, n, n, n, last) == tuple(sampler.sizes(5, inferred))
        assert {a.dtype for a in state} == {np.dtype(np.float32)}
        assert sampler.fits(state, inferred=inferred)


def test_a_thermostat_starts_at_its_centre():
    state = sg.SGMGTD(0.1, sigma_p=0.7).start(np.zeros(2))
    assert (state.xi == 0.7).all()
    assert (state.variance == 0.0).all()
    assert (sg.SGNHT(0.1).start(np.zeros(2), xi=0.0).xi == 0.0).all()  # a zero is a value too


# ---- printing and keeping -----------------------------------------------------------------------------------------------

NAMESPACE = {"array": np.array}
for _module in (integrators, kinetics, schedules, thermostats, sg):
    NAMESPACE |= {name: getattr(_module, name) for name in _module.__all__}
NAMESPACE["Gaussian"] = kinetics.Gaussian

PRINTED = [one for one, _ in COMPOSITIONS] + [
    sg.SGNHT(schedules.PolynomialDecay(0.1, 0.5, 10.0), per="chain"),
    sg.SGMGT(schedules.Cyclical(0.1, 100, 0.3), center="adaptive"),
    sg.SGNHT(0.1, scale=np.array([0.1, 1.0 / 3.0, 1e9])),
    sg.SGHMC(0.1, scale=0.3),
    sg.SGMGTD(0.1, gamma=0.0),
    sg.Sampler(0.1, Relativistic(2.0, 3.0), integrator=Euler()),
]


@pytest.mark.parametrize("sampler", PRINTED, ids=range(len(PRINTED)))
def test_a_sampler_prints_as_the_expression_that_makes_it(sampler):
    text = repr(sampler)
    assert "\n" not in text
    assert eval(text, dict(NAMESPACE)) == sampler


def test_what_is_printed_is_what_was_chosen():
    assert repr(sg.SGHMC(0.1, friction=2.0)) == (
        "Sampler(step_size=0.1, kinetics=Gaussian(mass=1.0), integrator=Splitting('BAOAB'), sigma_p=2.0)"
    )
    assert "kinetics=None" in repr(sg.SGLD(0.1))


@pytest.mark.parametrize("sampler", PRINTED, ids=range(len(PRINTED)))
def test_a_sampler_survives_pickling(sampler):
    sampler.dynamics(3)
    assert pickle.loads(pickle.dumps(sampler)) == sampler


def test_a_sampler_cannot_be_changed():
    with pytest.raises(AttributeError):
        sg.SGNHT(0.1).sigma_p = 2.0
    units = np.ones(3)
    sampler = sg.SGNHT(0.1, scale=units)
    units[0] = 5.0
    assert (sampler.scale == 1.0).all()


# ---- warnings -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: sg.SGMGT(0.1, a=2.0, softening=5.0),  # K''(0) = 7.8
        lambda: sg.SGMGT(0.3),  # K''(0) = 1.5
        lambda: sg.SGMGTD(0.02, sigma_p=11.0),
        lambda: sg.Sampler(0.3, MonomialGamma(1.0)),
    ],
)
def test_a_step_too_long_for_the_kinetics_is_warned_of(make):
    with pytest.warns(UserWarning, match="above 0.3 the variance may be off"):
        make()


def test_a_step_that_is_short_enough_is_not():
    sg.SGMGT(0.1, a=2.0)
    sg.SGMGT(0.19)
    sg.SGMGTD(0.02, sigma_p=9.0)
    sg.SGNHT(3.0)  # the Gaussian has no such spring


# ---- what does not fit together -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise_estimate": 2.0}, "noise_estimate=2 is more than sigma_p·temperature = 1"),
        ({"noise_estimate": 0.6, "temperature": 0.5}, "noise_estimate=0.6 is more than"),
        ({"sigma_xi": 0.1}, "sigma_xi=0.1 needs a thermostat"),
        ({"resample_thermostat": 10}, "resample_thermostat=10 needs a thermostat"),
        ({"kinetics": None}, "sigma_theta=0.0 without kinetics"),
        ({"kinetics": None, "sigma_theta": 1.0, "thermostat": NoseHoover()}, "kinetics=None has no momentum"),
        ({"kinetics": None, "sigma_theta": 1.0, "resample_momentum": 5}, "kinetics=None has no momentum"),
        ({"sigma_p": 0.0}, "leave no noise"),
        ({"sigma_p": 0.0, "thermostat": NoseHoover()}, "leave no noise"),
    ],
)
def test_what_does_not_fit_together_is_refused(options, message):
    with pytest.raises(ValueError, match=message) as caught:
        sg.Sampler(0.1, **options)
    assert "\n" not in str(caught.value)


def test_resampled_momenta_are_noise_enough():
    assert sg.Sampler(0.1, sigma_p=0.0, resample_momentum=10).sigma_p == 0.0
    assert sg.Sampler(0.1, sigma_p=0.0, sigma_theta=1.0).sigma_p == 0.0


def test_a_thermostat_is_per_coordinate_or_per_chain():
    assert isinstance(sg.SGNHT(0.1).thermostat, PerCoordinate)
    assert isinstance(sg.SGNHT(0.1, per="chain").thermostat, PerChain)
    assert isinstance(sg.SGMGTD(0.1, per="chain").thermostat, PerChain)


def test_the_state_of_another_kind_of_sampler_is_refused():
    state = sg.SGNHT(0.1).init(np.zeros(3))
    for other in (sg.SGLD(0.1), sg.SGHMC(0.1), sg.SGMGTD(0.1), sg.SGNHT(0.1, per="chain")):
        with pytest.raises(ValueError, match="state was made by another kind of sampler"):
            other.step(state, np.zeros(3))


def test_numbers_are_given_to_the_kernels_in_the_precision_of_the_run():
    dynamics = sg.SGMGTD(0.1, scale=[1.0, 2.0]).dynamics(2, np.float32)
    assert type(dynamics.sigma_theta) is np.float32
    assert type(dynamics.kinetics.softening) is np.float32
    assert type(dynamics.thermostat.gamma) is np.float32
    assert dynamics.scale.values.dtype == np.float32
    assert type(dynamics.resample_momentum) is int
    assert Gaussian() == sg.SGNHT(0.1).kinetics
