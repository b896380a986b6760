"""What does not compile in a function of a user's is said in a few lines: the user's own line, Numba's reason, a remedy."""

from __future__ import annotations

import linecache
import subprocess
import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc import thermostats
from sgmcmc.dispatch import leaf
from sgmcmc.integrators import advance
from sgmcmc.integrators.flows import kick
from sgmcmc.kernels import kernel
from sgmcmc.kinetics import curvature, energy, velocity
from sgmcmc.potentials import add_gradient
from sgmcmc.priors import Flat, slope
from sgmcmc.thermostats import FixedFriction, NoseHoover, PerCoordinate, friction

if numba.config.DISABLE_JIT:
    pytest.skip("nothing is compiled", allow_module_level=True)

LINES = linecache.getlines(__file__)
DATA = (np.ones((5, 2)), np.ones(5))
SGHMC = sg.SGHMC(0.1)


def line_of(words):
    """The number of the one line of this file that ends in a comment with these words."""
    (found,) = (n for n, line in enumerate(LINES, 1) if line.rstrip().endswith(f"# {words}"))
    return found


def run(model, sampler=SGHMC, dtype=np.float64):
    return sg.sample(model, sampler, draws=2, warmup=0, chains=1, seed=1, dtype=dtype, progress=False, warn=False)


def message(call, *arguments, **options):
    with pytest.raises(TypeError) as caught:
        call(*arguments, **options)
    assert type(caught.value) is TypeError
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    return str(caught.value)


def is_told(text, words, *reasons):
    """The place and the source of the line with these words, the reasons, and no more than eight lines."""
    number = line_of(words)
    assert f'File "{__file__}", line {number}\n    {LINES[number - 1].strip()}' in text
    assert len(text.splitlines()) <= 8
    assert max(map(len, text.splitlines())) < 270
    for reason in reasons:
        assert reason in text


# ------------------------------------------------------------------------------------------------------------ gradients


@numba.njit
def adds_text(theta):
    doubled = 2.0 * theta
    return doubled + "a"  # adds text


@numba.njit
def helper(x):
    return x.nothing  # in a helper


@numba.njit
def asks_a_helper(theta):
    return helper(theta)


def closure(inner):
    @numba.njit
    def outer(theta, out):
        out[:] = inner(theta)

    return outer


@numba.njit
def fills_with_text(theta, data, rows, out):
    X, _ = data
    out[:] = X[rows].sum(axis="a")  # an axis by name


@numba.njit
def mixes_precisions(theta):
    return np.dot(np.eye(2), theta)  # a matrix of float64


@numba.njit(cache=True)
def kept_on_disk(theta):
    return theta + np.exp("a")  # exp of text


@numba.njit
def without_a_name(theta):
    return theta * not_there  # noqa: F821  not defined


@numba.njit
def with_a_file(theta):  # opens a file
    with open("nothing") as file:
        return theta + len(file.read())


@numba.njit
def asks_numpy(theta):
    return np.linalg.no_such_function(theta)  # not in NumPy


@numba.njit
def multiplies_precisions(theta):
    return np.eye(2) @ theta.astype(np.float32)  # a product of two precisions


bare = numba.njit(lambda theta: theta @ "a")  # a lambda


@pytest.mark.parametrize(
    ("gradient", "data", "dtype", "words", "reasons"),
    [
        (adds_text, None, np.float64, "adds text", ["adds_text(array(float64, 1d, C))", "No implementation of add("]),
        (asks_a_helper, None, np.float64, "in a helper", ["Unknown attribute 'nothing' of type array(float64, 1d, C)"]),
        (closure(helper), None, np.float64, "in a helper", ["outer(array(float64, 1d, C), array(float64, 1d, C))"]),
        (
            fills_with_text,
            DATA,
            np.float64,
            "an axis by name",
            ["(array(float64, 2d, C), array(", "int64, 1d, C)"],
        ),
        (
            mixes_precisions,
            None,
            np.float32,
            "a matrix of float64",
            ["float32, 1d, C)", "must all have the same dtype"],
        ),
        (kept_on_disk, None, np.float64, "exp of text", ["can't resolve ufunc exp for types"]),
        (without_a_name, None, np.float64, "noqa: F821  not defined", ["name 'not_there' is not defined"]),
        (with_a_file, None, np.float64, "opens a file", ["construct is not supported"]),
        (asks_numpy, None, np.float64, "not in NumPy", ["has no attribute 'no_such_function'"]),
        (
            multiplies_precisions,
            None,
            np.float64,
            "a product of two precisions",
            ["Numba: '@' arguments must all have the same"],
        ),
        (bare, None, np.float64, "a lambda", ["gradient <lambda>(", "No implementation of matmul("]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_gradient_that_does_not_compile_is_told_by_its_own_line(gradient, data, dtype, words, reasons):
    text = message(run, sg.Potential(gradient, dim=2, data=data), dtype=dtype)
    is_told(text, words, "gradient ", "run it without @numba.njit", *reasons)


def test_all_that_numba_says_is_in_the_log(caplog):
    with caplog.at_level("DEBUG", logger="sgmcmc"):
        message(run, sg.Potential(adds_text, dim=2))
    assert "Failed in nopython mode pipeline" in caplog.text
    assert "No match for registered cases" in caplog.text


def test_a_gradient_is_told_outside_of_a_run_too():
    is_told(message(sg.Potential(adds_text, dim=2).gradient, [0.0, 0.0]), "adds text")


def test_an_energy_that_does_not_compile_is_told_by_its_own_line():
    model = sg.Potential(right, dim=2, energy=adds_text)
    is_told(message(model.energy, [0.0, 0.0]), "adds text", "energy adds_text")


@numba.njit
def right(theta):
    return theta + 0.0 * np.eye(2)[0, 1]


@numba.njit
def a_pair(theta):
    return theta[0], theta[1]


@numba.njit
def whole_numbers(theta):
    return np.zeros(2, np.int64)


@numba.njit("float32[::1](float32[::1])")
def of_one_precision(theta):
    return theta + np.float32(0.0)


def test_a_gradient_that_returns_no_array_is_refused_in_one_sentence():
    text = message(run, sg.Potential(a_pair, dim=2))
    assert text.startswith(
        "gradient a_pair(array(float64, 1d, C)) returns UniTuple(float64 x 2); return array(float64, 1d"
    )
    assert "\n" not in text


def test_a_signature_of_another_precision_is_told():
    model = sg.Potential(of_one_precision, dim=2)
    text = message(run, model)
    assert "was compiled for other types only: (array(float32, 1d, C)); write @numba.njit without a signature" in text
    run(model, dtype=np.float32)


@pytest.mark.parametrize("gradient", [right, whole_numbers])
def test_a_right_gradient_runs(gradient):
    assert np.isfinite(run(sg.Potential(gradient, dim=2)).draws).all()


def test_a_function_without_a_file_is_told_by_the_number_of_its_line():
    program = (
        "import numba, sgmcmc as sg\n@numba.njit\ndef wrong(theta):\n    return theta + 'a'\n"
        "sg.sample(sg.Potential(wrong, dim=2), sg.SGHMC(0.1), progress=False, warn=False)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert (
        'File "<string>", line 4\n    (the source is not in a file)\n  Numba: No implementation of add(' in done.stderr
    )
    assert len(done.stderr.splitlines()) < 50  # Python's traceback, without Numba's frames


def test_a_function_without_a_module_is_told():
    scope = {}
    exec("def wrong(theta):\n    return theta + 'a'\n", scope)
    text = message(run, sg.Potential(numba.njit(scope["wrong"]), dim=2))
    assert 'File "<string>", line 2' in text


def raises_later(theta):
    if (theta != 0.0).any():
        raise KeyError("mine")
    return theta


def test_what_a_plain_python_gradient_raises_is_left_as_it_is():
    with pytest.raises(KeyError, match="mine"):
        run(sg.Potential(raises_later, dim=2))


# ---------------------------------------------------------------------------------------------------------------- parts


def kinetics_with(its_velocity):
    """A kinetics of a class of its own: what was compiled for another tells nothing of it."""

    class Own(NamedTuple):
        pass

    sg.implements(energy, Own)(lambda kinetics, p: 0.5 * p * p)
    sg.implements(curvature, Own)(lambda kinetics, p: 1.0)
    sg.implements(velocity, Own)(its_velocity)
    return Own()


def ask_and_tell(sampler):
    state = sampler.init(np.zeros(2))
    return sampler.step(state, state.theta)


@leaf
def own_leaf(x):
    return x.nothing  # in a leaf


def calls_a_leaf(kinetics, p):
    return own_leaf(p)


def text_or_number(kinetics, p):
    return "a" if p > 0.0 else p  # text or a number


def wrong_field(kinetics, p):
    return kinetics.mass * p  # not a field


def no_name(kinetics, p):
    return p * not_there  # noqa: F821  not defined either


def not_numpy(kinetics, p):
    return np.linalg.no_such_function(p)  # nor in NumPy


def two_numbers(kinetics, p):  # returns two
    return p, p


def nothing(kinetics, p):  # returns nothing
    p + 1.0


@pytest.mark.parametrize(
    ("its_velocity", "words", "reasons"),
    [
        (
            calls_a_leaf,
            "in a leaf",
            ["own_leaf(float64) does not compile", "Unknown attribute 'nothing' of type float64"],
        ),
        (
            text_or_number,
            "text or a number",
            ["velocity(Own, float64) does not compile", "Cannot unify Literal[str](a) and float64"],
        ),
        (wrong_field, "not a field", ["Unknown attribute 'mass' of type Own()"]),
        (no_name, "noqa: F821  not defined either", ["name 'not_there' is not defined"]),
        (not_numpy, "nor in NumPy", ["has no attribute 'no_such_function'"]),
        (
            two_numbers,
            "returns two",
            ["velocity(Own, float64) returns UniTuple(float64 x 2), which its caller cannot use"],
        ),
        (nothing, "returns nothing", ["velocity(Own, float64) returns none, which its caller cannot use"]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_kinetics_that_does_not_compile_is_told_by_its_own_line(its_velocity, words, reasons):
    is_told(message(ask_and_tell, sg.Sampler(0.1, kinetics=kinetics_with(its_velocity))), words, *reasons)


def test_a_right_kinetics_runs_and_so_does_one_that_was_mended():
    sampler = sg.Sampler(0.1, kinetics=kinetics_with(wrong_field))
    message(ask_and_tell, sampler)
    sg.implements(velocity, type(sampler.kinetics))(lambda kinetics, p: p)
    assert ask_and_tell(sampler).step == 1


class OwnIntegrator(NamedTuple):
    pass


@sg.implements(advance, OwnIntegrator)
def _(integrator, kinetics, scale, dynamics, state, gradient, noise, stream, moment):
    kick(state.p, gradient, 1.0, scale, moment.h, 1.0)  # a number for normals
    return moment.h


class OwnThermostat(PerCoordinate):
    __slots__ = ()


@sg.implements(friction, OwnThermostat)
def _(thermostat, sigma_p, xi, i):
    return xi.nothing  # not in xi


class OwnModel(NamedTuple):
    prior: object = Flat()
    dim: int = 2


@sg.implements(add_gradient, OwnModel)
def _(model, theta, rows, out):
    out[model.dim - 1 :] += theta["a"]  # theta by name


class OwnPrior(NamedTuple):
    pass


@sg.implements(slope, OwnPrior)
def _(prior, x):
    return x + "a"  # slope and text


@pytest.mark.parametrize(
    ("call", "words", "reasons"),
    [
        (
            lambda: ask_and_tell(sg.Sampler(0.1, integrator=OwnIntegrator())),
            "a number for normals",
            ["advance(OwnIntegrator, Gaussian, float64, Dynamics,", "No implementation of getitem(float64, int64)"],
        ),
        (
            lambda: ask_and_tell(sg.Sampler(0.1, thermostat=OwnThermostat(1.0, 0.0))),
            "not in xi",
            ["friction(OwnThermostat, float64, array(float64, 1d, C), int64)", "Unknown attribute 'nothing'"],
        ),
        (lambda: run(OwnModel()), "theta by name", ["add_gradient(OwnModel, array(float64, 1d, C), array("]),
        (
            lambda: run(sg.Potential(right, dim=2, prior=OwnPrior())),
            "slope and text",
            ["slope(OwnPrior, float64)", "No implementation of add(float64, "],
        ),
    ],
    ids=["integrator", "thermostat", "model", "prior"],
)
def test_a_part_that_does_not_compile_is_told_by_its_own_line(call, words, reasons):
    is_told(message(call), words, *reasons)


@kernel
def of_ours(p):
    return kick(p, p, p, 1.0, 1.0, 1.0, 1.0)


of_ours.py_func.__module__ = "sgmcmc.integrators.step"


def test_an_error_in_the_package_itself_is_not_rewritten():
    with pytest.raises(numba.errors.TypingError, match="No implementation of function"):
        of_ours(np.zeros(2))


# ------------------------------------------------------------------------------------------- what has no implementation


class Bare(NamedTuple):
    """A part that can do nothing."""


class OnlyEnergy(NamedTuple):
    """A kinetics of which two thirds are missing."""


sg.implements(energy, OnlyEnergy)(lambda kinetics, p: 0.5 * p * p)


class OnlyFriction(NamedTuple):
    """A thermostat that cannot drift."""


sg.implements(friction, OnlyFriction)(lambda thermostat, sigma_p, xi, i: sigma_p)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: sg.Sampler(0.1, kinetics=Bare()),
            "energy has no implementation for Bare; give one with @implements(energy, Bare)",
        ),
        (
            lambda: sg.Sampler(0.1, kinetics=OnlyEnergy()),
            "velocity has no implementation for OnlyEnergy; give one with @implements(",
        ),
        (
            lambda: sg.Sampler(0.1, thermostat=Bare()),
            "friction has no implementation for Bare; give one with @implements(friction",
        ),
        (
            lambda: sg.Sampler(0.1, thermostat=OnlyFriction()),
            "drive has no implementation for OnlyFriction; give one with",
        ),
        (
            lambda: sg.Sampler(0.1, integrator=Bare()),
            "advance has no implementation for Bare, Gaussian; give one with @implements(",
        ),
        (lambda: sg.Sampler(Bare()), "step_size=Bare() is not a number; give a number above 0"),
        (lambda: run(Bare()), "Bare has no gradient; give one with @implements(add_gradient, Bare)"),
        (lambda: run(OwnModel(Bare())), "slope has no implementation for Bare; give one with @implements(slope, Bare)"),
    ],
)
def test_a_part_without_its_implementation_is_refused_in_one_sentence(call, words):
    with pytest.raises(TypeError) as caught:
        call()
    text = str(caught.value)
    assert text.startswith(words)
    assert "\n" not in text


def test_what_only_a_kernel_can_see_to_be_missing_is_one_sentence_too():
    text = message(ask_and_tell, sg.Sampler(0.1, kinetics=kinetics_with(lambda kinetics, p: slope(kinetics, p))))
    assert text == "slope has no implementation for Own; give one with @implements(slope, Own)"


@pytest.mark.parametrize("thermostat", [FixedFriction(), NoseHoover(), NoseHoover(per="chain")])
@pytest.mark.parametrize(
    "kinetics", [sg.kinetics.Gaussian(), sg.kinetics.MonomialGamma(1.0), sg.kinetics.Relativistic()]
)
def test_the_parts_of_the_package_lack_nothing(kinetics, thermostat):
    sg.Sampler(0.01, kinetics=kinetics, thermostat=thermostat)
    assert thermostats.friction.key_for((type(thermostat),)) is not None
