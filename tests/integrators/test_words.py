"""Words of flows: what they mean, which make no sense, that each is the process it should be, and flows of one's own."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.integrators import BAOAB, Splitting, SymmetricSplitting, flow, step_of_word
from sgmcmc.integrators.splitting import form_for
from sgmcmc.integrators.words import cycle_of
from sgmcmc.kinetics import Gaussian, MonomialGamma, Relativistic
from sgmcmc.testing.invariance import measure_order
from sgmcmc.testing.lyapunov import LinearStep
from sgmcmc.testing.reference import Reference
from sgmcmc.testing.targets import QUARTIC
from sgmcmc.testing.under_test import Kernel
from sgmcmc.thermostats import NoseHoover, couples_coordinates

PALINDROMES = ["BAOAB", "OABAO", "ABOBA", "OBABO", "AOBOA", "BOAOB", "BNFAFNB", "AFBNFA"]


def times(word, own=""):
    """A cycle as text: the letters with their time before and in the step."""
    return [(f.letters, f.before, f.own) for f in cycle_of(word, own).flows]


def test_a_word_is_a_cycle_that_is_cut_at_the_gradient():
    assert times("BAOAB") == [("BX", 0.5, 0.5), ("A", 0, 0.5), ("O", 0, 1), ("A", 0, 0.5)]
    assert times("BNFAFNB") == [("BNX", 0.5, 0.5), ("F", 0, 0.5), ("A", 0, 1), ("F", 0, 0.5)]
    assert times("OBABO") == [("B", 0.5, 0), ("O", 0.5, 0.5), ("B", 0, 0.5), ("A", 0, 1)]
    assert times("BOAOB") == [("BX", 0.5, 0.5), ("O", 0, 0.5), ("A", 0, 1), ("O", 0, 0.5)]
    assert times("UBU") == [("BX", 0.5, 0.5), ("U", 0, 1)]
    assert times("BAO") == [("BX", 0, 1), ("A", 0, 1), ("O", 0, 1)]
    assert times("BAXOAB") == [("B", 0, 1), ("A", 0, 0.5), ("X", 0, 1), ("O", 0, 1), ("A", 0, 0.5)]
    assert times("BAWAOAWAB", "W")[2] == ("W", 0, 0.5)


@pytest.mark.parametrize(
    ("one", "other"), [("BAOAB", "OABAO"), ("OBABO", "ABOBA"), ("BOAOB", "AOBOA"), ("BNFAFNB", "AFBNFA")]
)
def test_turns_of_a_word_are_one_cycle(one, other):
    assert cycle_of(one) == cycle_of(other)


@pytest.mark.parametrize("word", [*PALINDROMES, "UBU", "BAO", "BNFA"])
def test_every_letter_has_the_whole_step_in_all(word):
    for letter in set(word):
        shares = [f.before + f.own for f in cycle_of(word).flows if letter in f.letters]
        assert sum(shares) == pytest.approx(1.0)


def test_order_and_cost_are_said():
    assert repr(Splitting("BAOAB")) == "Splitting('BAOAB': order 2, 1 gradient per step)"
    assert repr(Splitting("BAO")) == "Splitting('BAO': order 1, 1 gradient per step)"
    assert [Splitting(word).normals for word in ("BAOAB", "BOAOB", "UBU", "BNFAFNB")] == [1, 2, 2, 1]
    assert sg.SGHMC(0.1, integrator="OBABO").integrator == Splitting("OBABO")
    assert Splitting("OBABO") != Splitting("BAOAB")
    assert Splitting("BNFAFNB") == SymmetricSplitting()
    assert BAOAB() == Splitting("BAOAB")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("", "is not a word of flows"),
        ("BAOAC", "unknown letter 'C'; there are A drift, B gradient kick"),
        ("AO", "has no B, the gradient kick"),
        ("BO", "has no A, the drift"),
        ("BAB", "has no friction and no noise"),
        ("BNAB", "has only one of F and N"),
        ("BAFOAB", "has O, which is F and N together"),
        ("BUOUB", "has U, which is A and O together"),
        ("BABAO", "needs more than one gradient a step"),
        ("BAXOXAB", "has X in 2 places"),
    ],
)
def test_a_word_that_makes_no_sense_is_refused_in_one_sentence(word, said):
    with pytest.raises(ValueError, match=said) as refused:
        Splitting(word)
    assert "\n" not in str(refused.value)


def test_words_that_do_not_go_with_a_sampler_are_refused():
    with pytest.raises(ValueError, match="has U, which is solved for kinetics=Gaussian"):
        sg.SGNHT(0.1, integrator="UBU")
    with pytest.raises(ValueError, match=r"two normals for each momentum, and sigma_theta=0\.1"):
        sg.SGMGTD(0.1, integrator="BOAOB")
    with pytest.raises(ValueError, match="more than two normals"):
        sg.SGHMC(0.1, integrator="BOAOAOB")
    with pytest.raises(ValueError, match="no middle at which gradient noise could be inferred"):
        sg.SGMGT(0.1, integrator="BAO").init(np.zeros(2))
    assert sg.SGMGT(0.1, integrator="BAO").init(np.zeros(2), gradient_variance=0.0).theta.tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="is not a letter for a flow of your own"):
        Splitting("BAOAB", A=Gaussian())
    with pytest.raises(ValueError, match="does not have the letter W"):
        Splitting("BAOAB", W=Turn(0.1))


def test_threads_that_ask_for_a_word_at_once_get_one_class():
    words = ["AFABNFAA", "OAABAAO", "FFABNAFF", "OABAOBO"[:5]]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: type(Splitting(words[i % len(words)])), range(64)))
    assert len(set(found)) == len(set(words))


def test_overdamped_dynamics_take_any_word():
    model = sg.models.Gaussian(np.zeros(2), 1.0)
    options = {"draws": 10, "chains": 2, "seed": 1, "progress": False, "warn": False}
    found = [sg.sample(model, sg.SGLD(0.1, integrator=word), **options).draws for word in ("BAOAB", "UBU", "BOAOB")]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_a_word_survives_a_pickle_and_another_process_finds_its_class():
    for integrator in (
        Splitting("BOAOB"),
        form_for(Splitting("BOAOB"), False, False, True),
        Splitting("BAWOWAB", W=Turn(0.3)),
    ):
        again = pickle.loads(pickle.dumps(integrator))
        assert again == integrator
        assert type(again) is type(integrator)


# ---- each word is the process that the NumPy reference reads off its cycle ----------------------------------------------

CASES = {
    **{
        word: sg.Sampler(0.1, Gaussian(1.3), NoseHoover(0.7), word, 0.0, 1.2, 0.3)
        for word in ("OBABO", "BOAOB", "BAO", "BAXOAB")
    },
    "OBABO, a = 1": sg.SGMGTD(0.1, 1.0, integrator="OBABO", resample_momentum=2, resample_thermostat=3),
    "OBABO, relativistic": sg.Sampler(0.1, Relativistic(1.3, 0.8), None, "OBABO", 0.4, 0.9, resample_momentum=2),
    "BAOAB, a = 1.5": sg.SGMGTD(0.1, 1.5, integrator="BAOAB", resample_momentum=2),
    "BNFA": sg.Sampler(0.1, MonomialGamma(1.0), NoseHoover(), "BNFA", 0.2, 1.0, resample_momentum=2),
    "FANB": sg.Sampler(0.1, MonomialGamma(2.0), NoseHoover(), "FANB", 0.2, 1.0),
    "UBU": sg.Sampler(0.1, Gaussian(2.0), None, "UBU", 0.0, 1.7, temperature=1.3),
    "UBU, fresh momenta": sg.Sampler(0.1, Gaussian(2.0), None, "UBU", 0.0, 1.7, resample_momentum=2),
}


@pytest.mark.parametrize("name", CASES)
def test_a_word_is_what_the_reference_reads_off_its_cycle(name):
    rng, sampler = np.random.default_rng(1), CASES[name]
    kernel, reference = Kernel(sampler), Reference(sampler)
    p = rng.normal(size=(50, 3))
    xi = rng.normal(1.0, 0.5, (50, 3)) if sampler.sizes(3).xi else None
    one = kernel.start(rng.normal(size=(50, 3)), p, xi)
    two = type(one)(*(a.copy() for a in one))
    if sampler.wants_variance:
        one.variance[:] = two.variance[:] = 0.3
    before = 0.0
    for step, h in enumerate((0.1, 0.1, 0.07, 0.1)):
        noise = reference.draw_noise(one, 3, step)
        gradient = rng.normal(size=one.theta.shape)
        two = reference.move(two, gradient, noise, before, h, step)
        one = kernel.move(one, gradient, noise, before, h, step)  # it uses the normals up
        before = h
        if sampler.resample_momentum and (step + 1) % sampler.resample_momentum == 0:
            assert not np.array_equal(one.p, two.p)  # each has fresh momenta of its own
            two.p[:], two.theta[:] = one.p, one.theta
            if two.xi.size:
                two.xi[:] = one.xi
        for a, b in zip(one, two, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_the_reference_sees_a_flow_that_is_left_out():
    sampler = CASES["BOAOB"]
    kernel = Kernel(sampler)
    wrong = Reference(sampler.__class__(0.1, Gaussian(1.3), NoseHoover(0.7), "BAOAB", 0.0, 1.2, 0.3))
    one = kernel.start(np.ones((5, 3)), np.ones((5, 3)), np.ones((5, 3)))
    noise = wrong.draw_noise(one, 3, 0)
    moved = wrong.move(one, one.theta, noise, 0.1, 0.1, 0), kernel.move(one, one.theta, noise, 0.1, 0.1, 0)
    assert np.abs(moved[0].theta - moved[1].theta).max() > 1e-3


# ---- the law that each leaves, with no Monte Carlo -----------------------------------------------------------------------


@pytest.mark.parametrize("word", ["BAOAB", "OBABO", "BOAOB", "BNFAFNB", "UBU", "BAO"])
def test_on_a_gaussian_the_bias_of_the_variance_has_the_order_of_the_word(word):
    biases = []
    for h in (0.1, 0.05, 0.025):
        step = LinearStep(Kernel(sg.SGHMC(h, 1.5, integrator=word)), 1.7)
        biases.append(abs(float(step.stationary_covariance()[0, 0]) * 1.7 - 1.0))
    if word == "BAOAB":  # exact where the gradient is taken
        assert max(biases) < 1e-12
        return
    order = np.log2(biases[1] / biases[2])
    assert order == pytest.approx(Splitting(word).order, abs=0.1)


@pytest.mark.parametrize(
    "sampler", [sg.SGMGTD(0.1, integrator="OBABO", center="fixed"), sg.SGNHT(0.1, integrator="BOAOB")]
)
def test_the_one_step_defect_has_the_order_of_the_word(sampler):
    slope = measure_order(Kernel(sampler).with_(resample_momentum=None, resample_thermostat=None), QUARTIC)
    assert slope.high > 1.9


# ---- a flow of one's own -------------------------------------------------------------------------------------------------


class Turn(NamedTuple):
    """A rotation of (p₀, p₁): it leaves exp(−p²/2m) invariant, as a magnetic field does."""

    rate: float


@sg.implements(flow, Turn)
def _(own, tau, kinetics, scale, dynamics, state, gradient, noise, stream, moment):
    c, s = np.cos(own.rate * tau), np.sin(own.rate * tau)
    p = state.p
    first = p[0]
    p[0] = c * first - s * p[1]
    p[1] = s * first + c * p[1]


class Stretch(NamedTuple):
    """The wrong twin: it makes p₀ longer."""

    rate: float


@sg.implements(flow, Stretch)
def _(own, tau, kinetics, scale, dynamics, state, gradient, noise, stream, moment):
    state.p[0] = state.p[0] * (1.0 + own.rate * tau)


MODEL = sg.models.Gaussian(np.array([0.3, -0.2]), np.array([[1.0, 0.5], [0.5, 2.0]]))


def python_gradient(theta):
    return np.linalg.solve([[1.0, 0.5], [0.5, 2.0]], theta - [0.3, -0.2])


def variances(own, model=MODEL, **options):
    sampler = sg.SGHMC(0.1, 1.0, integrator=Splitting("BAWOWAB", W=own))
    trace = sg.sample(
        model, sampler, 6000, warmup=300, chains=32, seed=3, thin=2, progress=False, warn=False, **options
    )
    return trace


def test_a_flow_of_ones_own_runs_compiled_and_in_python_with_the_same_bits():
    trace = variances(Turn(2.0))
    np.testing.assert_allclose(trace.draws.var(axis=(0, 1)), [1.0, 2.0], rtol=0.05)
    in_python = sg.Potential(python_gradient, dim=2)
    short = {"draws": 20, "warmup": 5, "chains": 2, "seed": 3, "progress": False, "warn": False}
    sampler = sg.SGHMC(0.1, 1.0, integrator=Splitting("BAWOWAB", W=Turn(2.0)))
    one, two = (sg.sample(m, sampler, init=np.zeros(2), **short).draws for m in (MODEL, in_python))
    np.testing.assert_allclose(one, two, rtol=1e-9)
    assert couples_coordinates(sampler.integrator)


def test_the_wrong_twin_is_seen():
    assert abs(variances(Stretch(1.0)).draws[..., 0].var() - 1.0) > 0.1


# ---- fused loops are the words that they stand for -----------------------------------------------------------------------


FUSED = {
    "A O A": sg.SGHMC(0.1, 1.3),
    "A O A, thermostat": sg.SGNHT(0.1, 1.3, 0.7),
    "F A F": sg.SGMGTD(0.1, 1.0, center="fixed", resample_momentum=5, resample_thermostat=7),
}


PLAIN = {"BAOAB": "AAOAAB", "BNFAFNB": "FFAFFBN"}  # the same cycles by words of their own: kernels are kept by the word


@pytest.mark.parametrize("name", FUSED)
def test_fused_loops_take_the_step_of_their_letters(name, monkeypatch):
    sampler = FUSED[name]
    word = sampler.integrator.word
    assert cycle_of(PLAIN[word]) == cycle_of(word)
    assert "fused" in sampler.dynamics(3).integrator.source  # and so it stays: a class is made once
    monkeypatch.setattr(step_of_word, "PEEPHOLES", {})
    plain = replace(sampler, integrator=Splitting(PLAIN[word]))
    assert "fused" not in plain.dynamics(3).integrator.source
    rng = np.random.default_rng(2)
    one, two = sampler.init(np.ones(40), seed=3), plain.init(np.ones(40), seed=3)
    for _ in range(20):
        gradient = rng.normal(size=40)
        one, two = sampler.step(one, gradient), plain.step(two, gradient)
    np.testing.assert_allclose(one.theta, two.theta, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(one.p, two.p, rtol=1e-11, atol=1e-13)
