"""Names and shapes of parameters: declared with the model, there again in the trace, its table, its pictures and its file."""

from __future__ import annotations

import pickle
import time
import tracemalloc
from typing import NamedTuple

import numba
import numpy as np
import pandas as pd
import pytest

import sgmcmc as sg
from sgmcmc.parameters import Layout, layout_of_model
from sgmcmc.trace import Trace, archive

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 2)), RNG.integers(0, 2, 60)
DECLARED = {"w": (2, 3), "b": (3,), "s": ()}


@numba.njit
def pull(theta, out):
    for j in range(theta.size):
        out[j] = theta[j] - j


def plain_pull(theta):
    return theta - np.arange(theta.size)


def run(model, draws=20, **options):
    return sg.sample(model, sg.SGLD(0.1), draws=draws, warmup=0, chains=2, seed=1, progress=False, **options)


# ---- the layout ------------------------------------------------------------------------------------------------------


def test_a_layout_cuts_theta_into_blocks_row_by_row():
    layout = Layout.read(DECLARED)
    assert layout.dim == 10
    assert layout.names[:6] == tuple(f"w[{i},{j}]" for i in range(2) for j in range(3))
    assert layout.names[6:] == ("b[0]", "b[1]", "b[2]", "s")
    theta = np.arange(20.0).reshape(2, 10)
    parts = layout.unpack(theta)
    assert [parts[name].shape for name in DECLARED] == [(2, 2, 3), (2, 3), (2,)]
    assert parts["w"][1].tolist() == [[10.0, 11.0, 12.0], [13.0, 14.0, 15.0]]
    assert parts["s"].tolist() == [9.0, 19.0]
    assert list(layout.positions("b")) == [6, 7, 8]
    assert list(layout.positions("w[1,2]")) == [5]


def test_an_axis_may_have_names():
    layout = Layout.read({"w": (["age", "height"], 2)})
    assert layout.names == ("w[age,0]", "w[age,1]", "w[height,0]", "w[height,1]")
    assert layout.shapes == {"w": (2, 2)}


def test_a_layout_cuts_and_joins_and_refuses_other_shapes():
    layout = Layout.read({"a": (), "b": (2, 2)})
    vector = np.arange(10.0).reshape(2, 5)
    pieces = layout.split(vector)
    assert [p.shape for p in pieces] == [(2,), (2, 2, 2)]
    assert (layout.join(pieces) == vector).all()
    assert layout.names == ("a", "b[0,0]", "b[0,1]", "b[1,0]", "b[1,1]")
    with pytest.raises(ValueError, match=r"b has shape \(3,\); give \(2, 2\)"):
        layout.join([1.0, np.zeros(3)])
    with pytest.raises(ValueError, match="1 arrays were given; give 2: a, b"):
        layout.join([1.0])


LAYOUTS = [
    {"w": (2, 3), "b": (["x", "y"], 2), "s": ()},
    {"s": (), "none": (0, 3), "w": (12,)},
    {"w": (["a,b", "a"], ["c", "d"]), "v[0]": (2,)},  # names from which the place cannot be read
    {"w": (["0", "[1]"],), "w.b": (1, 1, 1)},
]


@pytest.mark.parametrize("declared", LAYOUTS, ids=str)
def test_names_made_one_by_one_are_those_made_all_at_once_and_are_found_again(declared):
    names = Layout.read(declared, least=0).names
    every = tuple(names)
    assert len(names) == len(every) == len(set(every))
    assert names[:] == every == tuple(names[i] for i in range(len(names)))
    assert names[-1] == every[-1]
    assert names[1:3] == every[1:3]
    assert [names.find(name) for name in every] == [names.index(name) for name in every] == list(range(len(every)))
    assert names == every
    assert every == names
    assert names != every[::-1]
    assert names != every[1:]
    assert hash(names) == hash(every)
    with pytest.raises(IndexError):
        names[len(names)]


@pytest.mark.parametrize(
    "wrong", ["w", "w[2,0]", "w[0]", "w[0,0,0]", "w[00,0]", "w[-1,0]", "w[0,0", "w[٠,0]", "v", "", 3]
)
def test_what_is_no_name_is_not_found(wrong):
    names = Layout.read({"w": (2, 3), "b": ()}).names
    assert wrong not in names
    assert "w[1,2]" in names
    with pytest.raises(ValueError, match="is not the name of a parameter here"):
        names.index(wrong)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({}, TypeError, r"parameters=\{\} is not a declaration; give names and shapes"),
        (["w"], TypeError, "is not a declaration"),
        ({"": (2,)}, TypeError, "parameters has the name ''"),
        ({3: (2,)}, TypeError, "parameters has the name 3"),
        ({"w": 3}, TypeError, r"parameters\['w'\]=3 is not a shape; give \(\), \(3,\)"),
        ({"w": "ab"}, TypeError, "is not a shape"),
        ({"w": (0,)}, ValueError, r"parameters\['w'\]=0 is out of range; give a whole number of at least 1"),
        ({"w": (2.5,)}, TypeError, "is not a whole number"),
        ({"w": (["a", "a"],)}, ValueError, "give names that differ"),
        ({"w": (2,), "w[0]": ()}, ValueError, "gives two parameters the same name"),
        ({"w": (["a,b", "a"], ["c", "b,c"])}, ValueError, "gives two parameters the same name"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused_in_a_sentence(wrong, error, message):
    with pytest.raises(error, match=message):
        Layout.read(wrong)


# ---- a model of one's own --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gradient", [pull, plain_pull], ids=["compiled", "python"])
def test_a_potential_gives_its_parameters_back_by_name(gradient):
    model = sg.Potential(gradient, parameters=DECLARED)
    assert model.dim == 10
    trace = run(model)
    assert trace["w"].shape == (2, 20, 2, 3)
    assert np.array_equal(trace["w"], trace.draws[:, :, :6].reshape(2, 20, 2, 3))
    assert np.array_equal(trace["w[1,0]"], trace.draws[:, :, 3])
    assert np.array_equal(trace["s"], trace.draws[:, :, 9])
    assert trace.parameters == {"w": (2, 3), "b": (3,), "s": ()}
    assert list(trace.summary().index) == list(trace.names)
    assert list(trace.to_dataframe().columns)[5] == "w[1,2]"
    assert "w" in trace
    assert "w[1,2]" in trace
    assert "w[2,2]" not in trace


@pytest.mark.parametrize("gradient", [pull, plain_pull], ids=["compiled", "python"])
def test_names_change_nothing_about_the_draws_and_survive_a_pickle(gradient):
    named, bare = sg.Potential(gradient, parameters=DECLARED), sg.Potential(gradient, dim=10)
    assert np.array_equal(run(named).draws, run(bare).draws)
    again = pickle.loads(pickle.dumps(named))
    assert run(again).names == run(named).names
    assert run(bare).names[:2] == ("theta[0]", "theta[1]")


def test_dim_and_parameters_exclude_each_other():
    with pytest.raises(TypeError, match="neither dim nor parameters was given; give the length of θ as dim="):
        sg.Potential(pull)
    with pytest.raises(TypeError, match="dim=10 and parameters were both given"):
        sg.Potential(pull, dim=10, parameters=DECLARED)


def test_a_model_unpacks_theta():
    parts = sg.Potential(pull, parameters=DECLARED).unpack(np.arange(10.0))
    assert parts["b"].tolist() == [6.0, 7.0, 8.0]
    with pytest.raises(ValueError, match=r"theta has shape \(9,\); give \(10,\)"):
        sg.Potential(pull, parameters=DECLARED).unpack(np.zeros(9))


def test_what_a_trace_does_not_have_is_a_key_error_that_says_what_it_has():
    trace = run(sg.Potential(pull, parameters=DECLARED))
    with pytest.raises(KeyError, match="name='v' is unknown; choose one of 'w', 'b', 's', 'w"):
        trace["v"]
    with pytest.raises(TypeError, match="name=0 is not a text"):
        trace[0]


class Odd(NamedTuple):
    parameters: float = 1.0  # a field of this name is the model's own business
    dim: int = 2


class Declares(NamedTuple):
    @property
    def dim(self):
        return 3

    @property
    def parameters(self):
        return {"a": (), "b": (3,)}


def test_a_field_called_parameters_is_left_alone_and_a_wrong_count_is_refused():
    assert layout_of_model(Odd(), 2).names == ("theta[0]", "theta[1]")
    with pytest.raises(ValueError, match="parameters of Declares are 4 numbers; its dim is 3"):
        layout_of_model(Declares(), 3)


# ---- regressions -----------------------------------------------------------------------------------------------------


def test_regressions_take_the_names_of_columns():
    model = sg.models.LogisticRegression(X, Y, intercept=True, names=["age", "height"])
    assert layout_of_model(model, 3).names == ("intercept", "age", "height")
    trace = run(pickle.loads(pickle.dumps(model)))
    assert trace["height"].shape == (2, 20)
    assert np.array_equal(trace["height"], trace.draws[:, :, 2])
    assert sg.models.LinearRegression(X, Y * 1.0, names=["a", "b"]).names == ("a", "b")


def test_the_columns_of_a_data_frame_are_names():
    frame = pd.DataFrame(X, columns=["age", "height"])
    assert run(sg.models.LogisticRegression(frame, Y)).names == ("age", "height")
    numbered = pd.DataFrame(X)
    assert run(sg.models.LogisticRegression(numbered, Y)).names == ("theta[0]", "theta[1]")


def test_names_of_columns_change_nothing_about_the_draws():
    with_names = run(sg.models.LogisticRegression(X, Y, names=["a", "b"]), batch_size=10)
    assert np.array_equal(with_names.draws, run(sg.models.LogisticRegression(X, Y), batch_size=10).draws)


def test_softmax_regression_has_a_matrix_or_a_row_per_name():
    assert sg.models.SoftmaxRegression(X, Y).parameters == {"W": (2, 2)}
    trace = run(sg.models.SoftmaxRegression(X, Y, classes=3, names=["age", "height"]))
    assert trace["height"].shape == (2, 20, 3)
    assert trace.names[4] == "height[1]"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a"], r"names=\['a'\] does not name the columns of X; give 2 text\(s\)"),
        ("ab", "does not name the columns"),
        (["a", 3], "does not name the columns"),
        (["a", "a"], "names has 'a' twice"),
        (["a", "intercept"], "names has 'intercept' twice; give names that differ from 'intercept' too"),
    ],
)
def test_names_that_do_not_fit_are_refused(names, message):
    with pytest.raises(ValueError, match=message):
        sg.models.LogisticRegression(X, Y, intercept=True, names=names)


def test_models_with_matrices_say_so():
    pixels = sg.models.DRBM(RNG.random((5, 4)), np.array([0, 1, 2, 0, 1]), hidden=2)
    layout = layout_of_model(pixels, pixels.dim)
    W, U, c, d = pixels.split(np.arange(float(pixels.dim)))
    parts = layout.unpack(np.arange(float(pixels.dim)))
    assert all(np.array_equal(parts[n], a) for n, a in {"W": W, "U": U, "c": c, "d": d}.items())


# ---- files -----------------------------------------------------------------------------------------------------------


def test_names_and_shapes_are_saved_and_loaded(tmp_path):
    declared = {"w": (["age", "height"], 3), "b": ()}
    draws = np.random.default_rng(1).normal(size=(2, 9, 7))
    trace = Trace(draws, {}, np.ones(2), np.ones(2), {}, parameters=declared)
    trace.save(tmp_path / "t.npz")
    again = Trace.load(tmp_path / "t.npz")
    assert again.layout == trace.layout
    assert again.names[2] == "w[age,2]"
    assert np.array_equal(again["w"], trace["w"])


OLD_HEADERS = [
    {"names": ["w[age,0]", "w[age,1]", "b"], "parameters": {"w": [["age"], 2], "b": []}},  # names and declaration
    {"names": ["w[age,0]", "w[age,1]", "b"]},  # names alone
]


@pytest.mark.parametrize("header", OLD_HEADERS, ids=["declared", "names"])
def test_files_that_hold_every_name_still_load(header, tmp_path):
    draws = RNG.normal(size=(2, 9, 3))
    arrays = {"draws": draws, "kinetic_temperature": np.ones(2), "configurational_temperature": np.ones(2)}
    archive.write(tmp_path / "old.npz", {"format": "sgmcmc.trace", "version": 1, "info": {}} | header, arrays)
    again = Trace.load(tmp_path / "old.npz")
    assert again.names == ("w[age,0]", "w[age,1]", "b")
    assert np.array_equal(again["w[age,1]"], draws[:, :, 1])
    assert ("w" in again) == ("parameters" in header)


def seconds_and_bytes(work):
    tracemalloc.start()
    begin = time.process_time()
    work()
    spent = time.process_time() - begin
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return spent, peak


def test_a_million_parameters_cost_no_million_names(tmp_path):
    """Measured on one machine: made, 1.4 s and 134 MB with every name, 0.01 s and 1 MB without; the file 64 MB and 8 MB."""
    draws = np.zeros((1, 1, 1_000_000), np.float32)
    path = tmp_path / "t.npz"

    def use():
        trace = Trace(draws, {}, np.ones(1), np.ones(1), {}, parameters={"w": (1000, 1000)})
        trace.save(path)
        again = Trace.load(path)
        assert again.names[-1] == "w[999,999]"
        assert "w[1000,0]" not in again
        assert again["w[999,0]"].shape == (1, 1)

    spent, peak = seconds_and_bytes(use)
    every, names = seconds_and_bytes(lambda: list(Layout.read({"w": (1000, 1000)}).names))  # what it would cost
    assert path.stat().st_size < 1.01 * draws.nbytes
    assert peak < 3 * draws.nbytes < 0.25 * names
    assert spent < 0.5 * every


def test_a_trace_pickles_without_its_model():
    trace = run(sg.Potential(pull, parameters=DECLARED))
    assert trace.model is not None
    again = pickle.loads(pickle.dumps(trace))
    assert again.model is None
    assert np.array_equal(again["w"], trace["w"])


def test_names_given_by_hand_are_numbers_of_their_own():
    trace = Trace(np.zeros((1, 5, 2)), {}, np.ones(1), np.ones(1), {}, ("a", "b"))
    assert trace.parameters == {"a": (), "b": ()}
    with pytest.raises(ValueError, match="parameters are 3 numbers; draws has 2"):
        Trace(np.zeros((1, 5, 2)), {}, np.ones(1), np.ones(1), {}, parameters={"a": (3,)})
