"""What is wrong is refused at the door: in one sentence, before anything is compiled."""

from __future__ import annotations

import re
import time
from typing import NamedTuple

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.kinetics import MonomialGamma
from sgmcmc.potentials import PythonPotential
from sgmcmc.run import lanes, scheduler
from sgmcmc.samplers import ask_and_tell as samplers

GAUSS = sg.models.Gaussian(np.zeros(3), np.array([1.0, 2.0, 3.0]))
X = np.arange(12.0).reshape(6, 2) / 10.0
Y = np.array([0, 1, 0, 1, 1, 0])
LOGISTIC = sg.models.LogisticRegression(X, Y)
SGNHT, SGLD = sg.SGNHT(0.1), sg.SGLD(0.1)
STATE = SGNHT.start(np.zeros(3))


def sample(model=GAUSS, sampler=SGNHT, **options):
    return sg.sample(model, sampler, **({"draws": 10, "warmup": 0, "progress": False} | options))


def trace(**changes):
    """A trace as a run of SGNHT with 4 chains would leave it, made by hand."""
    final = {name: np.stack([a] * 4) for name, a in STATE._asdict().items()}
    final |= {"step": np.full(4, 10), "before": np.full(4, 0.1)}
    parts = {"draws": np.zeros((4, 10, 3)), "info": {"seed": 1, "sampler": repr(SGNHT)}, "final": final} | changes
    nothing = np.zeros(len(parts["draws"]))
    return sg.Trace(parts["draws"], parts["info"], nothing, nothing, parts["final"])


class NoGradient(NamedTuple):
    dim: int = 3


def ask(**options):
    return SGNHT.init(**({"theta": np.zeros(3)} | options))


def wrong_length(theta):
    return np.zeros(theta.size + 1)


def forgetful(theta):
    theta.sum()


class Changing:
    """A gradient that is right on the first look and wrong afterwards."""

    def __init__(self, later):
        self.later, self.calls = later, 0

    def __call__(self, theta):
        self.calls += 1
        return theta if self.calls == 1 else self.later


def potential(gradient, **options):
    return sg.Potential(gradient, **({"dim": 3} | options))


SAMPLE = [
    # the run
    (lambda: sample(draws=0), ValueError, "draws=0 is out of range; give a whole number of at least 1"),
    (lambda: sample(draws=10.0), TypeError, "draws=10.0 is not a whole number; give a whole number of at least 1"),
    (lambda: sample(draws=True), TypeError, "draws=True is not a whole number"),
    (lambda: sample(draws="10"), TypeError, "draws='10' is not a whole number"),
    (lambda: sample(warmup=-1), ValueError, "warmup=-1 is out of range; give a whole number of at least 0"),
    (lambda: sample(chains=0), ValueError, "chains=0 is out of range; give a whole number from 1 to 4294967295"),
    (lambda: sample(chains=2.5), TypeError, "chains=2.5 is not a whole number"),
    (lambda: sample(thin=0), ValueError, "thin=0 is out of range; give a whole number of at least 1"),
    (lambda: sample(threads=0), ValueError, "threads=0 is out of range; give a whole number of at least 1"),
    (lambda: sample(threads=1.5), TypeError, "threads=1.5 is not a whole number"),
    (
        lambda: sample(seed=-1),
        ValueError,
        "seed=-1 is out of range; give a whole number from 0 to 18446744073709551615",
    ),
    (lambda: sample(seed=2**64), ValueError, "seed=18446744073709551616 is out of range"),
    (lambda: sample(seed=1.0), TypeError, "seed=1.0 is not a whole number"),
    (
        lambda: sample(dtype=np.int64),
        ValueError,
        "dtype=<class 'numpy.int64'> is unknown; choose np.float32 or np.float64",
    ),
    (lambda: sample(dtype="float16"), ValueError, "dtype='float16' is unknown; choose np.float32 or np.float64"),
    (lambda: sample(dtype="double double"), ValueError, "dtype='double double' is unknown"),
    (lambda: sample(device="gpu"), ValueError, "device='gpu' is unknown; choose one of 'cpu', 'cuda', 'auto'"),
    (
        lambda: sample(on_divergence="ignore"),
        ValueError,
        "on_divergence='ignore' is unknown; choose one of 'raise', 'drop'",
    ),
    (lambda: sample(gradient_noise=-1.0), ValueError, "gradient_noise=-1.0 is out of range; give a number from 0"),
    (lambda: sample(gradient_noise=np.nan), ValueError, "gradient_noise=nan is out of range"),
    (lambda: sample(clip_gradient=0.0), ValueError, "clip_gradient=0.0 is out of range; give a number above 0"),
    (lambda: sample(clip_gradient="5"), TypeError, "clip_gradient='5' is not a number; give a number above 0"),
    # the minibatch
    (
        lambda: sample(LOGISTIC, batch_size=7),
        ValueError,
        "batch_size=7 is larger than the data set of 6 rows; choose 1 to 6",
    ),
    (lambda: sample(LOGISTIC, batch_size=0), ValueError, "batch_size=0 is out of range"),
    (lambda: sample(LOGISTIC, batch_size=0.5), TypeError, "batch_size=0.5 is not a whole number"),
    (
        lambda: sample(batch_size=2),
        ValueError,
        "batch_size=2 was given, but the model has no data rows; leave batch_size out",
    ),
    (
        lambda: sample(LOGISTIC, batch_size=2, minibatch="epochs"),
        ValueError,
        "minibatch='epochs' is unknown; choose one of 'replacement', 'no-replacement', 'shuffle'",
    ),
    # the sampler
    (lambda: sample(sampler="SGNHT"), TypeError, "sampler='SGNHT' is not a Sampler; give SGLD(...)"),
    (lambda: sample(sampler=sg.SGNHT), TypeError, "is not a Sampler; give SGLD(...), SGHMC(...), SGNHT(...)"),
    (lambda: sample(sampler=0.1), TypeError, "sampler=0.1 is not a Sampler"),
    (
        lambda: sample(sampler=sg.SGNHT(0.1, scale=[1.0, 2.0])),
        ValueError,
        "scale has shape (2,); give one number, one for each",
    ),
    (
        lambda: sample(sampler=sg.SGNHT(lambda t: -0.1)),
        ValueError,
        "step_size function gave -0.1 at step 0; it must be",
    ),
    (lambda: sample(sampler=sg.SGNHT(lambda t: np.nan)), ValueError, "step_size function gave nan at step 0"),
    # the model
    (
        lambda: sample(np.zeros(3)),
        TypeError,
        "the model is a ndarray; give one of sgmcmc.models, a Potential, or a NamedTuple",
    ),
    (lambda: sample(sg.models.Gaussian), TypeError, "the model is a type; give one of sgmcmc.models"),
    (lambda: sample(lambda theta: theta), TypeError, "the model is a function; give one of sgmcmc.models, a Potential"),
    (
        lambda: sample(NoGradient()),
        TypeError,
        "NoGradient has no gradient; give one with @implements(add_gradient, NoGradient)",
    ),
    # where chains start
    (lambda: sample(init=np.zeros(4)), ValueError, "init['theta'] has shape (4,); give (3,) or (4, 3)"),
    (lambda: sample(init=np.zeros((2, 3))), ValueError, "init['theta'] has shape (2, 3); give (3,) or (4, 3)"),
    (lambda: sample(init=[0.0, np.nan, 0.0]), ValueError, "init['theta'] has a non-finite value, nan at index (1,)"),
    (lambda: sample(init="zeros"), TypeError, "init['theta'] has dtype <U5; give real numbers"),
    (lambda: sample(init=np.zeros(3) * 1j), TypeError, "init['theta'] has dtype complex128; give real numbers"),
    (lambda: sample(init={"x": 1.0}), ValueError, "init has the unknown key 'x'; its keys are 'theta', 'p' and 'xi'"),
    (lambda: sample(init={1: 1.0}), ValueError, "init has the unknown key 1; its keys are 'theta', 'p' and 'xi'"),
    (lambda: sample(init={"p": np.zeros(2)}), ValueError, "init['p'] has shape (2,); give (3,) or (4, 3)"),
    (lambda: sample(init={"xi": np.zeros(2)}), ValueError, "init['xi'] has shape (2,); give (3,) or (4, 3)"),
    (
        lambda: sample(sampler=sg.SGNHT(0.1, per="chain"), init={"xi": np.zeros(3)}),
        ValueError,
        "init['xi'] has shape (3,); give (1,) or (4, 1)",
    ),
    (
        lambda: sample(sampler=SGLD, init={"p": 1.0}),
        ValueError,
        "init['p'] was given, but the sampler has no momentum; leave it out",
    ),
    (
        lambda: sample(sampler=sg.SGHMC(0.1), init={"xi": 1.0}),
        ValueError,
        "init['xi'] was given, but the sampler has no thermostat; leave it out",
    ),
    (
        lambda: sample(init=trace(), chains=3),
        ValueError,
        "init is a trace of 4 chains, 3 coordinates and dtype float64",
    ),
    (
        lambda: sample(init=trace(), dtype=np.float32),
        ValueError,
        "the run has chains=4, 3 coordinates and dtype float32",
    ),
    (lambda: sample(LOGISTIC, init=trace()), ValueError, "the run has chains=4, 2 coordinates and dtype float64"),
    (
        lambda: sample(sampler=SGLD, init=trace()),
        ValueError,
        "init is a trace of Sampler(step_size=0.1, kinetics=Gaussian",
    ),
    (lambda: sample(init=trace(final={})), ValueError, "init is a trace without 'theta' in its final state"),
]

SAMPLERS = [
    (lambda: sg.SGNHT(0.0), ValueError, "step_size=0.0 is out of range; give a number above 0"),
    (lambda: sg.SGNHT(-0.1), ValueError, "step_size=-0.1 is out of range"),
    (lambda: sg.SGLD(np.nan), ValueError, "step_size=nan is out of range"),
    (lambda: sg.SGLD(np.inf), ValueError, "step_size=inf is out of range"),
    (lambda: sg.SGLD("0.1"), TypeError, "step_size='0.1' is not a number"),
    (lambda: sg.SGLD(None), TypeError, "step_size=None is not a number"),
    (lambda: sg.SGLD(True), TypeError, "step_size=True is not a number"),
    (lambda: sg.SGLD(0.1, temperature=0.0), ValueError, "temperature=0.0 is out of range; give a number above 0"),
    (lambda: sg.SGHMC(0.1, temperature=-1.0), ValueError, "temperature=-1.0 is out of range"),
    (lambda: sg.SGNHT(0.1, temperature=0.0), ValueError, "temperature=0.0 is out of range"),
    (lambda: sg.SGMGT(0.1, temperature="hot"), TypeError, "temperature='hot' is not a number"),
    (lambda: sg.SGHMC(0.1, friction=0.0), ValueError, "friction=0.0 is out of range; give a number above 0"),
    (lambda: sg.SGHMC(0.1, 1.0, 2.0), ValueError, "noise_estimate=2 is more than sigma_p·temperature = 1"),
    (lambda: sg.SGHMC(0.1, noise_estimate=-1.0), ValueError, "noise_estimate=-1.0 is out of range"),
    (lambda: sg.SGNHT(0.1, diffusion=0.0), ValueError, "diffusion=0.0 is out of range; give a number above 0"),
    (lambda: sg.SGMGT(0.1, diffusion=-1.0), ValueError, "diffusion=-1.0 is out of range"),
    (lambda: sg.SGNHT(0.1, gamma=-1.0), ValueError, "gamma=-1.0 is out of range"),
    (lambda: sg.SGNHT(0.1, per="all"), ValueError, "per='all' is unknown; choose one of 'coordinate', 'chain'"),
    (
        lambda: sg.SGMGT(0.1, center="moving"),
        ValueError,
        "center='moving' is unknown; choose one of 'adaptive', 'fixed'",
    ),
    (lambda: sg.SGMGT(0.1, a=0.3), ValueError, "a=0.3 is out of range; give a number from 0.5 to 20"),
    (lambda: sg.SGMGT(0.1, softening=0.0), ValueError, "softening=0.0 is out of range"),
    (lambda: sg.SGMGTD(0.1, sigma_theta=-0.1), ValueError, "sigma_theta=-0.1 is out of range"),
    (lambda: sg.SGMGTD(0.1, sigma_p=np.nan), ValueError, "sigma_p=nan is out of range"),
    (lambda: sg.SGMGTD(0.1, sigma_xi="0.1"), TypeError, "sigma_xi='0.1' is not a number"),
    (
        lambda: sg.SGMGTD(0.1, resample_momentum=0),
        ValueError,
        "resample_momentum=0 is out of range; give a whole number",
    ),
    (lambda: sg.SGMGTD(0.1, resample_thermostat=1.5), TypeError, "resample_thermostat=1.5 is not a whole number"),
    (
        lambda: sg.SGNHT(0.1, scale=0.0),
        ValueError,
        "scale=0.0; give one number above 0, a 1-D array of them, or a square matrix",
    ),
    (
        lambda: sg.SGNHT(0.1, scale=[1.0, -1.0]),
        ValueError,
        "scale of shape (2,) goes down to -1; give one number above 0",
    ),
    (
        lambda: sg.SGNHT(0.1, scale=np.ones((2, 2))),
        ValueError,
        "scale of shape (2, 2) has singular values from 2 down to",
    ),
    (lambda: sg.SGNHT(0.1, scale=[1.0, np.inf]), ValueError, "scale has a non-finite value, inf at index (1,)"),
    (
        lambda: sg.SGNHT(0.1, integrator=("BAOAB",)),
        TypeError,
        "integrator=('BAOAB',) is not a part; give a value of sgmcmc.integrators",
    ),
    (
        lambda: sg.Sampler(0.1, kinetics="Gaussian"),
        TypeError,
        "kinetics='Gaussian' is not a part; give a value of sgmcmc.kinetics",
    ),
    (lambda: sg.Sampler(0.1, kinetics=MonomialGamma), TypeError, "is not a part; give a value of sgmcmc.kinetics"),
    (
        lambda: sg.Sampler(0.1, thermostat=1.0),
        TypeError,
        "thermostat=1.0 is not a part; give a value of sgmcmc.thermostats",
    ),
    # ask and tell
    (lambda: ask(theta=[0.0, np.nan]), ValueError, "theta has a non-finite value, nan at index (1,)"),
    (lambda: ask(theta=np.zeros((2, 3))), ValueError, "theta has 2 dimension(s) and shape (2, 3); give 1 dimension(s)"),
    (lambda: ask(theta="start"), TypeError, "theta has dtype <U5; give real numbers"),
    (lambda: ask(seed=-1), ValueError, "seed=-1 is out of range"),
    (lambda: ask(chain=-1), ValueError, "chain=-1 is out of range"),
    (
        lambda: ask(dtype=np.int32),
        ValueError,
        "dtype=<class 'numpy.int32'> is unknown; choose np.float32 or np.float64",
    ),
    (
        lambda: SGNHT.step(samplers.ChainState(STATE, None, 0, 0.0), np.zeros(4)),
        ValueError,
        "gradient has shape (4,); give one number for each of the 3 coordinates",
    ),
]

MODELS = [
    (
        lambda: sg.models.LogisticRegression(X[:, 0], Y),
        ValueError,
        "X has 1 dimension(s) and shape (6,); give 2 dimension(s)",
    ),
    (
        lambda: sg.models.LogisticRegression(X, Y[:5]),
        ValueError,
        "y has 5 value(s) for 6 row(s) of X; give one per row",
    ),
    (lambda: sg.models.LogisticRegression(X, 2 * Y), ValueError, "labels must be 0 or 1; got values [0, 2]"),
    (lambda: sg.models.LogisticRegression(X, 2 * Y - 1), ValueError, "labels must be 0 or 1; got values [-1, 1]"),
    (
        lambda: sg.models.LogisticRegression(X * np.nan, Y),
        ValueError,
        "X has a non-finite value, nan at index (0, 0); clean",
    ),
    (lambda: sg.models.LogisticRegression(X.astype(str), Y), TypeError, "give real numbers"),
    (lambda: sg.models.LogisticRegression(X[:0], Y[:0]), ValueError, "X has shape (0, 2); give at least one row"),
    (lambda: sg.models.LogisticRegression(X, Y, prior=10.0), TypeError, "prior"),
    (
        lambda: sg.models.Gaussian(np.zeros(3), np.ones(2)),
        ValueError,
        "mean has shape (3,) and cov (2,); give mean (d,)",
    ),
    (
        lambda: sg.models.Gaussian(np.zeros(2), [1.0, -1.0]),
        ValueError,
        "cov has a variance of -1; give variances above 0",
    ),
    (lambda: sg.models.Gaussian(np.zeros(2), [[1.0, 2.0], [2.0, 1.0]]), ValueError, "cov is not positive definite"),
    # functions of the user's
    (
        lambda: potential(wrong_length),
        ValueError,
        "gradient returned shape (4,); return (3,), one number per coordinate",
    ),
    (
        lambda: potential(forgetful),
        TypeError,
        "gradient returned None; return the gradient, or take one more parameter, out",
    ),
    (lambda: potential(lambda theta: "up"), TypeError, "gradient returned str"),
    (lambda: potential(3.0), TypeError, "gradient=3.0 is not a function"),
    (
        lambda: potential(lambda a, b, c: a),
        TypeError,
        "gradient has 3 parameter(s), (a, b, c); without data give (theta)",
    ),
    (lambda: potential(lambda theta: theta, data=X), TypeError, "gradient has 1 parameter(s), (theta); with data give"),
    (
        lambda: potential(lambda theta: theta, dim=0),
        ValueError,
        "dim=0 is out of range; give a whole number of at least 1",
    ),
    (lambda: potential(lambda theta: theta, dim=2.0), TypeError, "dim=2.0 is not a whole number"),
]

CASES = SAMPLE + SAMPLERS + MODELS


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch):
    """No step is taken and nothing is compiled while an input is being refused."""

    def fail(*args, **options):
        raise AssertionError("a kernel was called before the input was checked")

    monkeypatch.setattr(scheduler.Job, "advance", fail)
    monkeypatch.setattr(lanes.LaneGroup, "advance", fail)
    monkeypatch.setattr(samplers, "update_once", fail)
    monkeypatch.setattr(samplers, "draw_momenta", fail)


@pytest.mark.parametrize(("call", "error", "message"), CASES, ids=[c[2][:50] for c in CASES])
def test_bad_input_is_refused_in_one_sentence_that_says_what_came_and_what_is_allowed(call, error, message):
    begin = time.perf_counter()
    with pytest.raises(error, match=re.escape(message)) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert 20 < len(text) < 400
    assert not text.endswith(".")
    assert time.perf_counter() - begin < 1.0


def test_the_guard_of_these_tests_sees_a_run():
    with pytest.raises(AssertionError, match="a kernel was called"):
        sample()
    with pytest.raises(AssertionError, match="a kernel was called"):
        ask()


@pytest.mark.parametrize(
    ("later", "error", "message"),
    [
        (None, TypeError, "gradient returned None; return the gradient"),
        (np.zeros(4), ValueError, "gradient returned shape (4,); return (3,)"),
        (1.0, ValueError, "gradient returned shape (); return (3,)"),
        (np.zeros(3) * 1j, TypeError, "dtype complex128; return an array of real numbers"),
    ],
)
def test_a_gradient_that_goes_wrong_later_ends_the_run_in_one_sentence(later, error, message, monkeypatch):
    monkeypatch.undo()
    model = potential(Changing(later))
    assert isinstance(model, PythonPotential)
    with pytest.raises(error, match=re.escape(message)):
        sample(model, chains=1)


def test_what_was_handed_in_is_not_changed(monkeypatch):
    monkeypatch.undo()
    init = {"theta": np.ones(3), "p": np.ones((2, 3)), "xi": np.ones(3)}
    scale = np.array([1.0, 2.0, 3.0])
    sg.sample(GAUSS, sg.SGNHT(0.1), 5, warmup=0, chains=2, init=init, progress=False)
    assert set(init) == {"theta", "p", "xi"}
    assert all((value == 1.0).all() for value in init.values())
    sg.SGNHT(0.1, scale=scale).dynamics(3)
    assert scale.tolist() == [1.0, 2.0, 3.0]


def test_more_chains_than_memory_can_hold_are_refused_at_once():
    model = sg.models.Gaussian(np.zeros(3), 1.0)
    with pytest.raises(ValueError, match=r"chains=2147483648 with 3 coordinates need .* GiB .*; ask for fewer chains"):
        sg.sample(model, sg.SGNHT(0.1), 10, chains=2**31, progress=False)
