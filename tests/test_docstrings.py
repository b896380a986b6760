"""Docstrings of the public names are in numpydoc form, each with an example that runs; `help` and `dir` show what is public."""

from __future__ import annotations

import pydoc
from typing import Any, NamedTuple

import docstrings
import pytest

import sgmcmc as sg
from sgmcmc.dispatch import OpenFunction

SURFACE = docstrings.surface()

# Open functions that users call or implement; all others are called by compiled code alone, and one sentence says what they do.
OPEN_FOR_USERS = {
    *(f"sgmcmc.kinetics.{name}" for name in ("energy", "velocity", "curvature", "inverse_mass", "velocity_and_excess")),
    *(f"sgmcmc.kinetics.{name}" for name in ("friction_flow", "draw", "log_normaliser")),
    *(f"sgmcmc.priors.{name}" for name in ("energy", "slope")),
    "sgmcmc.minibatch.choose",
}

# One sentence each, too. Made by other functions and read by kernels:
ONE_SENTENCE = {
    *(f"sgmcmc.integrators.{name}" for name in ("Dynamics", "Moment", "Noise", "State")),
    *(f"sgmcmc.thermostats.{name}" for name in ("Center", "Crosstalk", "NoCrosstalk", "has_variables")),
    # a protocol, with one method
    "sgmcmc.schedules.Schedule",
    # in a file of more than 300 lines; made by `NoseHoover`, and of thermostat=None
    *(f"sgmcmc.thermostats.{name}" for name in ("FixedFriction", "PerChain", "PerCoordinate")),
    # in files of 298 lines, which have no room for more (at most 300)
    *(f"sgmcmc.datasets.{name}" for name in ("Corpus", "Labelled", "Sequences", "data_folder", "fold", "load")),
    *(f"sgmcmc.transforms.{name}" for name in ("Above", "Below", "Bounded", "Ordered")),
    *(f"sgmcmc.transforms.{name}" for name in ("Positive", "Real", "Simplex", "Transform")),
}

# Made by `constrained`, `from_jax` and `from_torch`; the constructor they inherit is that of Potential.
MADE_BY_FUNCTIONS = {"sgmcmc.adapters.AutodiffPotential", "sgmcmc.adapters.Constrained"}


def is_short(name: str, value: Any) -> bool:
    open_for_kernels = isinstance(value, OpenFunction) and name not in OPEN_FOR_USERS
    return open_for_kernels or name in ONE_SENTENCE


def in_full() -> dict[str, Any]:
    return {n: v for n, v in SURFACE.items() if not is_short(n, v)}


# ---- form ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", in_full())
def test_a_public_docstring_is_in_numpydoc_form(name):
    assert docstrings.problems(SURFACE[name], wants_parameters=name not in MADE_BY_FUNCTIONS) == []


@pytest.mark.parametrize("name", [n for n, v in SURFACE.items() if is_short(n, v)])
def test_a_short_docstring_is_a_sentence(name):
    text = docstrings.docstring(SURFACE[name])
    assert [*docstrings.problems_of_summary(text), *docstrings.stray_items(text)] == []


def test_no_exemption_is_left_over():
    whole = {n for n, v in SURFACE.items() if docstrings.problems(v) == []}
    assert whole & (ONE_SENTENCE | MADE_BY_FUNCTIONS) == set()
    assert set(SURFACE) >= OPEN_FOR_USERS


def test_most_of_the_surface_is_in_full():
    assert len(in_full()) > 120


@pytest.mark.parametrize("name", [n for n, v in SURFACE.items() if isinstance(v, type)])
def test_methods_list_nothing_in_prose_which_the_site_would_run_together(name):
    own = [getattr(SURFACE[name], method) for method in docstrings.public_methods(SURFACE[name])]
    assert [item for method in own for item in docstrings.stray_items(docstrings.docstring(method))] == []


GOOD = """Returns x plus y.

Parameters
----------
x : float
y : float
    The other one.

Returns
-------
float

Examples
--------
>>> 1 + 1
2
"""


def documented_by(text: str | None) -> Any:
    def add(x: float, y: float = 0.0) -> float:
        return x + y

    add.__doc__ = text
    return add


def test_a_good_docstring_has_no_problem():
    assert docstrings.problems(documented_by(GOOD)) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "no docstring"),
        ("", "no docstring"),
        (GOOD.replace("y.\n", "y\n", 1), "full stop"),
        (GOOD.replace("y.\n\n", "y.\n", 1), "no empty line"),
        (GOOD.replace("Parameters", "Arguments").replace("------\n", "-----\n", 1), "unknown section Arguments"),
        (GOOD.replace("x : float\ny", "y"), "its signature has ['x', 'y']"),
        (GOOD.replace("x : float", "z : float\nx : float"), "documents the parameters ['z', 'x', 'y']"),
        (GOOD.replace("x : float\ny : float\n    The other one.", "y : float\nx : float"), "parameters ['y', 'x']"),
        (GOOD.replace("x : float", "x"), "x has no type"),
        (GOOD.replace("\nReturns\n-------\nfloat\n", ""), "what it returns"),
        (GOOD.replace(">>> 1 + 1\n2", "Add."), "no example"),
        (GOOD.partition("Examples")[0], "no example"),
        (GOOD.replace("y.\n\nParameters", "y.\n\nz: another one.\n\nParameters", 1), "z is listed outside"),
        ("Adds.\n\nExamples\n--------\n>>> 2\n2\n\nReturns\n-------\nfloat\n", "in the order Examples, Returns"),
    ],
)
def test_a_bad_docstring_is_reported(text, problem):
    assert problem in "; ".join(docstrings.problems(documented_by(text)))


def test_fields_of_a_part_are_parameters():
    class Part(NamedTuple):
        """A part."""

        size: float

    assert docstrings.parameters_of(Part) == ["size"]
    assert docstrings.docstring(type("Silent", (Part,), {})) == ""  # a class does not inherit a docstring here


# ---- examples -----------------------------------------------------------------------------------------------------------


def test_every_example_runs_and_gives_what_it_shows():
    assert docstrings.run_in_a_process() == {}


@pytest.mark.slow
def test_every_example_gives_the_same_when_it_is_compiled():
    assert docstrings.run_in_a_process("--compiled") == {}


@pytest.mark.parametrize("example", [">>> 1 + 1\n3", ">>> nothing", ">>> sg.SGLD(-1.0)"])
def test_a_wrong_example_is_reported(example):
    wrong = documented_by(GOOD.replace(">>> 1 + 1\n2", example))
    assert list(docstrings.run_examples({"right": documented_by(GOOD), "wrong": wrong})) == ["wrong"]


def test_an_example_of_a_method_goes_on_from_that_of_its_class():
    first, second = (
        documented_by(GOOD.replace(">>> 1 + 1\n2", ">>> x = 1")),
        documented_by(GOOD.replace("1 + 1", "x + 1")),
    )
    assert docstrings.run_examples({"Box": first, "Box.open": second}) == {}
    assert list(docstrings.run_examples({"Box": first, "Other.open": second})) == ["Other.open"]


# ---- help and dir -------------------------------------------------------------------------------------------------------

PARTS = [
    sg.kinetics.Gaussian,
    sg.kinetics.MonomialGamma,
    sg.kinetics.Relativistic,
    sg.priors.Laplace,
    sg.schedules.Cyclical,
    sg.minibatch.Blocks,
    sg.Sampler,
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_help_on_a_part_shows_its_parameters_first(part):
    shown = pydoc.render_doc(part, renderer=pydoc.plaintext)
    assert "Alias for field number" not in shown
    assert 0 < shown.index("Parameters\n") < shown.index("Methods defined here")


def test_help_on_a_function_shows_its_parameters():
    for function in (sg.SGNHT, sg.thermostats.NoseHoover, sg.sample, sg.kinetics.energy):
        assert "Parameters\n" in pydoc.render_doc(function, renderer=pydoc.plaintext)


def test_a_field_has_the_text_of_its_parameter():
    assert sg.kinetics.Relativistic.speed.__doc__ == "float, above 0: c."
    assert sg.kinetics.MonomialGamma.a.__doc__.startswith("float: 1/2 is Gaussian")


def test_dir_lists_the_public_names_and_the_documented_modules_alone():
    assert set(dir(sg)) == {*sg.__all__, *docstrings.MODULES}
    assert set(dir(sg.models)) == set(sg.models.__all__)
    assert [name for name in dir(sg) if getattr(sg, name, None) is None] == []
