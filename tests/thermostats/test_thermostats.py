"""Thermostats: the law of the friction, how it relaxes, is resampled, and where its centre goes.

Statistical checks use p-values above 1e-6, or |z| < 6, in fewer than 30 places: a false alarm once in 30,000 runs.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

import sgmcmc as sg
from sgmcmc import thermostats
from sgmcmc.integrators import Moment
from sgmcmc.integrators.state import OneChain
from sgmcmc.kinetics import Gaussian, MonomialGamma, specialise
from sgmcmc.samplers import ask_and_tell as samplers
from sgmcmc.samplers import in_precision
from sgmcmc.thermostats import (
    Center,
    FixedFriction,
    InferredNoise,
    KnownNoise,
    NoseHoover,
    PerChain,
    PerCoordinate,
    friction,
    power_and_bend,
)

LIMIT = 6.0

# ---- values -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("per", ["coordinate", "chain"])
@pytest.mark.parametrize("center", [None, "fixed", "adaptive"])
def test_a_thermostat_prints_as_the_call_that_makes_it(per, center):
    value = NoseHoover(0.7, per, center)
    assert repr(value) == f"NoseHoover(gamma=0.7, per={per!r}, center={center!r})"
    assert eval(repr(value)) == value
    assert (value.gamma, value.per, value.center) == (0.7, per, center)
    assert type(value) is {"coordinate": PerCoordinate, "chain": PerChain}[per]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"gamma": 0.0}, ValueError, "gamma=0.0 is out of range; give a number above 0"),
        ({"gamma": -1.0}, ValueError, "gamma=-1.0 is out of range"),
        ({"gamma": np.inf}, ValueError, "gamma=inf is out of range"),
        ({"gamma": np.nan}, ValueError, "gamma=nan is out of range"),
        ({"gamma": "1"}, TypeError, "gamma='1' is not a number"),
        ({"per": "chains"}, ValueError, "per='chains' is unknown; choose one of 'coordinate', 'chain'"),
        ({"center": "adapt"}, ValueError, "center='adapt' is unknown; choose one of 'adaptive', 'fixed', None"),
    ],
)
def test_what_is_no_thermostat_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        NoseHoover(**options)


def test_there_are_as_many_frictions_as_the_thermostat_says():
    assert [thermostats.n_variables(t, 7) for t in (FixedFriction(), NoseHoover(), NoseHoover(per="chain"))] == [
        0,
        7,
        1,
    ]


def test_the_friction_of_a_coordinate_is_its_own_the_chains_or_a_constant():
    xi = np.array([3.0, 4.0])
    assert friction(FixedFriction(), 2.0, xi[:0], 1) == 2.0
    assert friction(NoseHoover(), 2.0, xi, 1) == 4.0
    assert friction(NoseHoover(per="chain"), 2.0, xi[:1], 1) == 3.0


# ---- resampling ---------------------------------------------------------------------------------------------------------

TINY = 1e-9  # so short a step that ξ ends where it was drawn


def resampled(center, gamma, temperature, dim=20_000):
    sampler = sg.SGMGT(
        TINY, gamma=gamma, diffusion=center, temperature=temperature, resample_thermostat=1, center="fixed"
    )
    return sampler.step(sampler.init(np.zeros(dim), seed=4), np.zeros(dim)).xi


@pytest.mark.parametrize(("gamma", "temperature"), [(1.0, 1.0), (0.6, 2.5), (3.0, 0.1)])
def test_resampled_frictions_are_normal_around_the_centre_with_variance_gamma_t(gamma, temperature):
    z = (resampled(1.3, gamma, temperature) - 1.3) / np.sqrt(gamma * temperature)
    assert stats.kstest(z, "norm").pvalue > 1e-6
    assert stats.kstest(1.1 * z, "norm").pvalue < 1e-6
    assert stats.kstest(z + 0.1, "norm").pvalue < 1e-6


def test_a_refresh_that_forgets_the_temperature_is_seen():
    z = (resampled(1.3, 0.6, 2.5) - 1.3) / np.sqrt(0.6)
    assert stats.kstest(z, "norm").pvalue < 1e-6


def test_a_friction_for_the_whole_chain_has_a_variance_as_much_smaller_as_it_has_coordinates(monkeypatch):
    for kernel in ("update_once", "draw_momenta"):  # as plain Python: one more type would take long to compile
        monkeypatch.setattr(samplers, kernel, getattr(samplers, kernel).py_func)
    sampler = sg.Sampler(
        TINY, thermostat=NoseHoover(0.8, "chain", "fixed"), sigma_p=1.3, temperature=2.0, resample_thermostat=1
    )
    state, found = sampler.init(np.zeros(5), seed=1), []
    for _ in range(500):
        state = sampler.step(state, np.zeros(5), inplace=True)
        found.append(state.xi[0])
    squares = (np.array(found) - 1.3) ** 2
    assert abs((squares.mean() / (0.8 * 2.0 / 5) - 1.0) / np.sqrt(2.0 / 500)) < LIMIT
    assert abs((squares.mean() / (0.8 * 2.0) - 1.0) / np.sqrt(2.0 / 500)) > LIMIT  # the law of one per coordinate


# ---- relaxation ---------------------------------------------------------------------------------------------------------

both = pytest.mark.parametrize(
    "thermostat", [NoseHoover(0.7), NoseHoover(0.7, per="chain")], ids=["coordinate", "chain"]
)


def relax(thermostat, start, normal, tau, sigma_xi=0.3, temperature=2.0, center=1.5, dim=4):
    xi = np.full(thermostats.n_variables(thermostat, dim), start)
    normals = np.full(dim, normal)
    here = Center(center - 0.5, 0.25), np.full(dim, 2.0)  # μ = base + rate V
    thermostats.relax(thermostat, xi, *here, normals, dim, sigma_xi, temperature, tau, OneChain())
    assert (xi == xi[0]).all()
    return xi[0]


@both
@pytest.mark.parametrize("tau", [1e-6, 0.1, 30.0])
def test_the_friction_relaxes_exponentially_to_its_centre_and_its_law_stays(thermostat, tau):
    v = 0.7 if thermostat.per == "coordinate" else 0.7 / 4
    decay = np.exp(-0.3 * tau / v)
    assert relax(thermostat, 2.5, 0.0, tau) - 1.5 == pytest.approx(decay, rel=1e-12, abs=1e-15)
    spread = relax(thermostat, 1.5, 1.0, tau) - 1.5
    # N(μ, vT) goes to a mean of μ and a variance decay² vT + spread², which must be vT again
    assert decay**2 * v * 2.0 + spread**2 == pytest.approx(v * 2.0, rel=1e-10)


@both
def test_two_relaxations_are_one_of_twice_the_time(thermostat):
    once = relax(thermostat, 2.5, 0.0, 0.2)
    assert relax(thermostat, once, 0.0, 0.2) == pytest.approx(relax(thermostat, 2.5, 0.0, 0.4), rel=1e-13)
    one, two = (relax(thermostat, 1.5, 1.0, tau) - 1.5 for tau in (0.2, 0.4))
    decay = relax(thermostat, 2.5, 0.0, 0.2) - 1.5
    assert one**2 * (1.0 + decay**2) == pytest.approx(two**2, rel=1e-12)


def test_relaxation_within_a_run_keeps_the_law_of_the_friction():
    # h so small that only X moves ξ: with σ_ξ w/γ large it forgets its start in one step, with the law N(μ, γT).
    sampler = sg.SGMGTD(TINY, sigma_theta=0.0, sigma_xi=4e9, gamma=0.5, temperature=2.0, center="fixed", sigma_p=1.3)
    state = sampler.step(sampler.init(np.zeros(20_000), seed=2), np.zeros(20_000))
    z = (state.xi - 1.3) / np.sqrt(0.5 * 2.0)
    assert stats.kstest(z, "norm").pvalue > 1e-6
    assert stats.kstest(1.1 * z, "norm").pvalue < 1e-6


def test_a_fixed_friction_has_nothing_to_relax_or_to_resample():
    nothing, center = np.empty(0), Center(1.0, 0.0)
    thermostats.relax(FixedFriction(), nothing, center, nothing, nothing, 3, 0.0, 1.0, 0.1, OneChain())
    thermostats.resample(FixedFriction(), nothing, center, nothing, nothing, 3, 1.0)


# ---- the centre ---------------------------------------------------------------------------------------------------------

H, B, DIM = 0.05, 2.0, 200


def with_gradient_noise(center, temperature=1.0, steps=12_000):
    """A run whose gradient noise has the variance 2B/h, an extra diffusion B in p."""
    return sg.sample(
        sg.models.Gaussian(np.zeros(DIM), 1.0),
        sg.SGMGT(H, center=center, temperature=temperature, gamma=1.0),
        draws=10,
        thin=100,
        warmup=steps - 1000,
        chains=4,
        seed=1,
        gradient_noise=B / H,
        progress=False,
    )


def z_score(values, truth):
    return (values.mean() - truth) / (values.std() / np.sqrt(values.size))


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_with_an_adaptive_centre_theta_keeps_its_temperature_in_spite_of_gradient_noise(temperature):
    trace = with_gradient_noise("adaptive", temperature)
    assert (trace.final["variance"] == 2.0 * B / H).all()  # what was added is known
    assert abs(z_score((trace.draws**2).mean(axis=1), temperature)) < LIMIT


def test_a_fixed_centre_knows_of_no_noise_and_the_chain_runs_hot():
    trace = with_gradient_noise("fixed")
    assert (trace.final["variance"] == 0.0).all()
    assert z_score((trace.draws**2).mean(axis=1), 1.0) > LIMIT


def test_the_gain_of_learning_vanishes_like_two_over_t():
    gains = np.array([thermostats.learning_gain(1.0, t) for t in range(0, 10**6, thermostats.LEARN_EVERY)])
    assert gains[0] == 1.0  # the first sample is all there is
    assert gains[-1] * 1e6 / (2 * thermostats.LEARN_EVERY) == pytest.approx(1.0, rel=2e-3)
    samples = np.random.default_rng(0).exponential(1.0, 1000)
    mean = 0.0
    for sample, gain in zip(samples, gains, strict=False):
        mean += gain * (sample - mean)
    assert mean == pytest.approx(np.average(samples, weights=np.arange(1, 1001)), rel=1e-12)


def test_the_gain_in_single_precision_is_the_gain_in_double_rounded():
    steps = [*range(0, 10**5, 7), *range(2**24 - 5000, 2**24 - 1000, 7)]
    gains = [thermostats.learning_gain(np.float32(1.0), t) for t in steps]
    assert gains == [np.float32(thermostats.learning_gain(1.0, t)) for t in steps]


def test_only_a_sampler_that_infers_the_noise_learns_from_the_balance_of_energies():
    adaptive, fixed = NoseHoover(center="adaptive"), NoseHoover(center="fixed")
    learning = [t for t in range(30) if thermostats.is_learning(InferredNoise(), adaptive, t)]
    assert learning == list(range(0, 30, thermostats.LEARN_EVERY))
    for noise, thermostat in ((InferredNoise(), fixed), (KnownNoise(), adaptive), (InferredNoise(), FixedFriction())):
        assert not any(thermostats.is_learning(noise, thermostat, t) for t in range(20))


@pytest.mark.parametrize("per", ["coordinate", "chain"])
def test_the_variance_is_learnt_from_the_balance_of_friction_and_noise(per):
    h, T = 0.1, 2.0
    sampler = sg.Sampler(h, thermostat=NoseHoover(center="adaptive", per=per), sigma_p=1.0, temperature=T)
    state = sampler.start(np.zeros(3), inferred=True)
    state.p[:], state.xi[:] = np.sqrt(T), 5.0  # K'² = T K'' exactly, so that the friction 5 = σ_p + hV/(2T) balances
    center = thermostats.center_of(sampler.thermostat, 1.0, 0.0, T, h)

    def learn(steps):
        for step in steps:
            moment = Moment(step, h, h, 0)
            thermostats.learn(InferredNoise(), sampler.thermostat, Gaussian(), T, T, center, state, 0.0, 0.0, moment)

    learn([0])
    assert (state.variance < 0.5 * 4.0 * 2.0 * T / h).all()  # one sample says little
    learn(range(7, 300_000, thermostats.LEARN_EVERY))
    np.testing.assert_allclose(state.variance, 4.0 * 2.0 * T / h, rtol=1e-3)
    state.xi[:] = -5.0  # a balance that would need less friction than the injected noise asks for
    learn(range(300_000, 900_000, thermostats.LEARN_EVERY))
    assert (state.variance == 0.0).all()


@pytest.mark.parametrize("h", [lambda t: 0.05, lambda t: 0.08 / (1.0 + 0.1 * (t % 50))], ids=["constant", "cycles"])
def test_the_balance_of_energies_finds_the_noise_that_was_added_and_none_where_there_is_none(h):
    """Ask and tell with gradient noise of known size; with steps that change by a factor of six, too."""
    sampler = sg.SGMGT(h, a=1.0, resample_momentum=37, resample_thermostat=37)
    for variance, seed in ((0.0, 1), (40.0, 2)):
        state, rng = sampler.init(np.zeros(400), seed=seed), np.random.default_rng(seed)
        for _ in range(12_000):
            noise = np.sqrt(variance) * rng.standard_normal(400)
            state = sampler.step(state, state.theta + noise, inplace=True)
        used, raw = state.arrays.variance, state.arrays.loss / state.arrays.bend
        if variance == 0.0:
            assert (used == 0.0).mean() > 0.9  # within two standard errors of 0 counts as 0
            assert (raw > 0.0).mean() < 0.7
        else:
            # Measured 1 % too much: steps that are not small. Shrunk by its standard error, it is less.
            assert abs(z_score(raw, variance)) < LIMIT or abs(raw.mean() / variance - 1.0) < 0.02
            assert abs(z_score(raw, 0.9 * variance)) > LIMIT
            assert 0.85 * variance < used.mean() < raw.mean()


def test_the_crosstalk_of_theta_noise_is_that_of_the_variance():
    variance, rate = np.array([40.0, 0.0, 1e9]), thermostats.crosstalk_rate(0.1, 2.0, 0.05)
    theirs = thermostats.Crosstalk()
    found = [thermostats.crosstalk(theirs, NoseHoover(), rate, variance, i) for i in range(3)]
    assert found == pytest.approx([0.1 * 0.05 * 40.0 / 4.0, 0.0, 0.9], rel=1e-14)  # σ_θ hV/(2T), below 1
    assert thermostats.crosstalk(theirs, NoseHoover(per="chain"), rate, variance[:1], 2) == found[0]
    assert thermostats.crosstalk(theirs, FixedFriction(), rate, variance[:0], 0) == 0.0


def test_the_friction_follows_the_step_size():
    sampler = sg.SGNHT(lambda t: 0.1 / (1 + t))
    state = sampler.start(np.zeros(2))
    state.xi[:], state.variance[:] = 3.0, [0.0, 40.0]
    thermostats.follow_step_size(KnownNoise(), state, 2.0, 0.1, 0.05)
    np.testing.assert_allclose(state.xi, [3.0, 3.0 - 0.05 * 40.0 / 4.0], rtol=1e-14)
    thermostats.follow_step_size(KnownNoise(), state, 2.0, 0.0, 0.05)  # a first step has none before it
    np.testing.assert_allclose(state.xi, [3.0, 2.5], rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("a", [1.0, 1.5, 2.0])
def test_what_a_centre_is_learnt_from_is_finite_at_any_friction(a, dtype):
    """A momentum that friction has brought to next to nothing, traced back: e^(any) times 0 is 0."""
    kinetics = in_precision(MonomialGamma(a, 3.0, 2.0 * a - 1.0), dtype)
    for rate, p in itertools.product((10.0, 4e4, 1e7, -1e7), (0.0, 6e-43, -1e-10, 0.5, -300.0)):
        with np.errstate(over="ignore"):  # of what a select then leaves out
            found = power_and_bend(
                specialise(kinetics), *(dtype(x) for x in (p, rate, abs(rate), 0.01, 1.0, 1e-3, 1e-3))
            )
        assert np.isfinite(found).all(), (rate, p, found)
