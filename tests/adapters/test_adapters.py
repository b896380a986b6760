"""Models by JAX and PyTorch: the same gradients and draws as the built-in model, on the CPU, in both precisions."""

from __future__ import annotations

import importlib.util
import pickle
import subprocess
import sys

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.transforms import Positive, Simplex


def needs(library):
    missing = importlib.util.find_spec(library) is None
    return pytest.mark.skipif(missing, reason=f'{library} is not installed; pip install "sgmcmc[{library}]"')


LIBRARIES = [pytest.param("jax", marks=needs("jax")), pytest.param("torch", marks=needs("torch"))]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = RNG.random(60) < 1 / (1 + np.exp(-X @ [1.0, -2.0, 0.5, 0.0]))
SIGNS = 2.0 * Y - 1.0
BUILT_IN = sg.models.LogisticRegression(X, Y, prior=sg.priors.Gaussian(2.0))
START = np.zeros(4)


class Jax:
    """What a JAX user writes."""

    make = staticmethod(lambda *args, **options: sg.from_jax(*args, **options))

    @staticmethod
    def array(value):
        return np.asarray(value)

    @staticmethod
    def per_row(w, batch):
        import jax

        return jax.nn.log_sigmoid(batch["sign"] * (batch["x"] @ w))

    @staticmethod
    def square(w):
        return (w**2).sum()

    @staticmethod
    def log(x):
        import jax.numpy as jnp

        return jnp.log(x)


class Torch:
    """What a PyTorch user writes."""

    make = staticmethod(lambda *args, **options: sg.from_torch(*args, **options))

    @staticmethod
    def array(value):
        import torch

        return torch.as_tensor(value)

    @staticmethod
    def per_row(w, batch):
        import torch

        return torch.nn.functional.logsigmoid(batch["sign"] * (batch["x"] @ w))

    @staticmethod
    def square(w):
        return (w**2).sum()

    @staticmethod
    def log(x):
        import torch

        return torch.log(x)


SIDES = {"jax": Jax, "torch": Torch}


def data(side):
    return {"x": side.array(X), "sign": side.array(SIGNS)}


def per_row(side):
    return side.make(side.per_row, side.array(START), data(side), prior=sg.priors.Gaussian(2.0))


def as_sum(side):
    def function(w, batch):
        return side.per_row(w, batch).sum()

    return side.make(function, side.array(START), data(side), prior=sg.priors.Gaussian(2.0))


def own_prior(side):
    return side.make(side.per_row, side.array(START), data(side), log_prior=lambda w: -side.square(w) / 8.0)


def whole(side):
    def function(w, batch):
        rows = batch["sign"].shape[0]
        return 60 / rows * side.per_row(w, batch).sum() - side.square(w) / 8.0

    return side.make(function, side.array(START), data(side), whole=True)


FORMS = [per_row, as_sum, own_prior, whole]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)
def test_every_form_has_the_gradient_of_the_built_in_model(library, form):
    model = form(SIDES[library])
    assert (model.dim, model.n_rows) == (4, 60)
    for _ in range(3):
        theta, rows = RNG.normal(size=4), RNG.integers(0, 60, 7)
        np.testing.assert_allclose(model.gradient(theta), BUILT_IN.gradient(theta), rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(model.gradient(theta, rows), BUILT_IN.gradient(theta, rows), rtol=1e-11, atol=1e-11)
    assert sg.check_gradient(model) < 1e-6
    assert sg.check_gradient(model, rows=[0, 5, 5]) < 1e-6


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)
def test_draws_are_those_of_the_built_in_model(library, form):
    options = {"warmup": 3, "chains": 2, "batch_size": 8, "seed": 5, "progress": False}
    sampler = sg.SGNHT(0.05, scale=0.3)
    expected = sg.sample(BUILT_IN, sampler, 20, **options).draws
    found = sg.sample(form(SIDES[library]), sampler, 20, **options).draws
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("library", LIBRARIES)
def test_precision_is_that_of_the_run_or_as_told(library):
    side, theta = SIDES[library], RNG.normal(size=4)
    rows = np.arange(60)

    def error(model, dtype):
        out = np.zeros(4, dtype)
        model.estimate(theta.astype(dtype), rows, dtype(1.0), out)
        return np.abs(out - BUILT_IN.gradient(theta)).max()

    model = per_row(side)
    assert error(model, np.float64) < 1e-12
    assert 1e-9 < error(model, np.float32) < 1e-3
    narrow = side.make(side.per_row, side.array(START), data(side), prior=sg.priors.Gaussian(2.0), dtype=np.float32)
    assert 1e-9 < error(narrow, np.float64) < 1e-3
    trace = sg.sample(model, sg.SGNHT(0.05), 5, warmup=0, chains=1, seed=1, dtype=np.float32, progress=False)
    assert trace.draws.dtype == np.float32


def mean(side):
    return lambda w, batch: side.per_row(w, batch).mean()


def prior_inside(side):
    return lambda w, batch: side.per_row(w, batch).sum() - side.square(w) / 8.0


def unscaled(side):
    return lambda w, batch: side.per_row(w, batch).sum() - side.square(w) / 8.0


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("wrong", "options", "message"),
    [
        (mean, {}, "not the mean, and leave the prior to prior="),
        (prior_inside, {}, "not the mean, and leave the prior to prior="),
        (unscaled, {"whole": True}, "multiply the sum by N/n"),
    ],
)
def test_a_mean_for_a_sum_a_prior_inside_or_a_missing_weight_is_refused(library, wrong, options, message):
    side = SIDES[library]
    with pytest.raises(ValueError, match=message):
        side.make(wrong(side), side.array(START), data(side), **options)


@pytest.mark.parametrize("library", LIBRARIES)
def test_without_data_the_function_is_all_there_is(library):
    side = SIDES[library]
    model = side.make(lambda w: -2.0 * side.square(w), side.array(START))
    assert model.n_rows == 0
    np.testing.assert_allclose(model.gradient(np.arange(4.0)), 4.0 * np.arange(4.0))
    assert sg.check_gradient(model) < 1e-8


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_wrong_energy_is_seen_by_check_gradient(library):
    with pytest.raises(ValueError, match="finite differences of the energy give"):
        sg.check_gradient(per_row(SIDES[library]), energy=lambda theta, data, rows: np.sum(theta**4))


@pytest.mark.parametrize("library", LIBRARIES)
def test_named_parameters_with_bounds_come_back_by_name(library):
    """A mixture weight and a scale: the density is written in them, the chain does not see their bounds."""
    side = SIDES[library]

    def log_density(parameters):  # Gamma(3) and Dirichlet(2, 3, 4)
        s, p = parameters["s"], parameters["p"]
        return 2 * side.log(s) - s + (side.array(np.array([1.0, 2.0, 3.0])) * side.log(p)).sum()

    given = {"p": side.array(np.full(3, 1 / 3)), "s": side.array(np.array(1.0))}
    model = sg.constrained(side.make(log_density, given), {"s": Positive(), "p": Simplex()})
    assert model.labels == ("p[0]", "p[1]", "p[2]", "s")
    assert sg.check_gradient(model) < 1e-7
    trace = sg.sample(model, sg.SGHMC(0.2), 20, warmup=0, chains=2, init=model.flatten(given), progress=False)
    assert trace.names == ("unconstrained.p[0]", "unconstrained.p[1]", "unconstrained.s")
    assert "p" not in trace
    assert model.constrain(trace)["p"].shape == (2, 20, 3)
    drawn = model.unflatten(trace.draws)
    assert tuple(drawn["p"].shape) == (2, 20, 3)
    np.testing.assert_allclose(np.asarray(drawn["p"]).sum(axis=-1), 1.0, rtol=1e-12)
    with pytest.raises(ValueError, match="unknown name 'q'; the model has p, s"):
        sg.constrained(side.make(log_density, given), {"q": Positive()})


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log_density": 3}, "log_density=3 is not a function"),
        ({"log_prior": 3}, "log_prior=3 is not a function"),
        ({"parameters": np.arange(4)}, "int64; give .*floats"),
        ({"parameters": {}}, "parameters holds no number"),
        ({"data": ()}, "data holds no array"),
        ({"data": {"x": X, "sign": SIGNS[:5]}}, "has 5 rows|has 60 rows"),
        ({"data": {"x": X[:0], "sign": SIGNS[:0]}}, "give arrays with at least one row"),
        ({"whole": True}, "leave prior and log_prior out"),
        ({"whole": 1}, "neither True nor False"),
        ({"dtype": np.int32}, "choose one of 'float32', 'float64'"),
        ({"dtype": "wide"}, "choose one of 'float32', 'float64'"),
        ({"prior": 2.0}, "not a prior"),
        ({"log_density": lambda w, batch: batch["x"] * w}, r"returned shape \(.*return one number, or one per row"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_refused_in_one_sentence(library, change, message):
    side = SIDES[library]
    given = {"log_density": side.per_row, "parameters": START, "data": {"x": X, "sign": SIGNS}} | change
    if isinstance(given["parameters"], np.ndarray):
        given["parameters"] = side.array(given["parameters"])
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        side.make(**({"prior": sg.priors.Gaussian(2.0)} | given))
    assert "\n" not in str(caught.value)


# ---- names -------------------------------------------------------------------------------------------------------------

NET = {"b": np.zeros(3), "s": np.array(0.5), "w": 0.1 * np.ones((4, 3))}


def named(side):
    """The same sum of squares, once by the library and once by hand with the same declaration."""
    tree = {name: side.array(value) for name, value in NET.items()}
    model = side.make(lambda net: -0.5 * sum(side.square(part) for part in net.values()), tree)
    by_hand = sg.Potential(lambda theta: theta, parameters={name: value.shape for name, value in NET.items()})
    return model, by_hand


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_trace_has_the_names_and_shapes_that_a_declaration_gives(library, tmp_path):
    options = {"draws": 10, "warmup": 0, "chains": 2, "seed": 3, "progress": False}
    model, by_hand = named(SIDES[library])
    trace, wanted = (sg.sample(m, sg.SGHMC(0.2), **options) for m in (model, by_hand))
    assert trace["w"].shape == (2, 10, 4, 3)
    assert np.array_equal(trace["w"], np.asarray(model.unflatten(trace.draws)["w"]))
    assert np.array_equal(trace["w[0,1]"], trace["w"][:, :, 0, 1])
    assert trace.layout == wanted.layout
    assert list(trace.summary().index) == list(wanted.names) == list(model.labels)
    assert model.unpack(trace.draws)["s"].shape == (2, 10)
    again = pickle.loads(pickle.dumps(trace))
    trace.save(tmp_path / "trace.npz")
    assert again.layout == sg.Trace.load(tmp_path / "trace.npz").layout == trace.layout


@pytest.mark.parametrize("library", LIBRARIES)
def test_arviz_has_the_variables_by_name(library):
    pytest.importorskip("arviz_base")
    model, _ = named(SIDES[library])
    tree = sg.sample(model, sg.SGHMC(0.2), 10, warmup=0, chains=2, seed=3, progress=False).to_arviz()
    posterior = tree["posterior"]
    assert {name: posterior[name].shape[2:] for name in posterior.data_vars} == {"b": (3,), "s": (), "w": (4, 3)}
    assert posterior["w"].dims[2:] == ("w_dim_0", "w_dim_1")


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_empty_array_among_the_parameters_stays_where_it_is(library, tmp_path):
    side = SIDES[library]
    given = {"a": side.array(np.zeros((0, 3))), "b": side.array(np.zeros(2))}
    model = side.make(lambda net: -side.square(net["b"]) - side.square(net["a"]), given)
    trace = sg.sample(model, sg.SGHMC(0.2), 5, warmup=0, chains=1, seed=1, progress=False)
    assert trace["a"].shape == (1, 5, 0, 3)
    assert trace.names == ("b[0]", "b[1]")
    assert tuple(model.unflatten(trace.draws)["a"].shape) == (1, 5, 0, 3)
    trace.save(tmp_path / "trace.npz")
    assert sg.Trace.load(tmp_path / "trace.npz").layout == trace.layout


@needs("jax")
def test_two_leaves_of_one_name_get_their_whole_paths():
    tree = {"a": {"b": np.zeros(2)}, "a.b": np.ones(3)}
    model = sg.from_jax(lambda t: -(t["a"]["b"] ** 2).sum() - (t["a.b"] ** 2).sum(), tree)
    assert model.layout.shapes == {"['a']['b']": (2,), "['a.b']": (3,)}
    assert model.unflatten(np.arange(5.0))["a.b"].tolist() == [2.0, 3.0, 4.0]


@needs("torch")
def test_keys_of_a_dictionary_that_are_no_texts_come_back_as_they_were():
    import torch

    model = sg.from_torch(lambda t: -(t[0] ** 2).sum() - t[1] ** 2, {0: torch.zeros(2), 1: torch.tensor(1.0)})
    assert model.labels == ("0[0]", "0[1]", "1")
    assert list(model.unflatten(np.zeros(3))) == [0, 1]
    with pytest.raises(ValueError, match="two arrays the same name: 0, 0; rename one"):
        sg.from_torch(lambda t: t[0].sum() + t["0"].sum(), {0: torch.zeros(2), "0": torch.zeros(2)})


# ---- checkpoints -------------------------------------------------------------------------------------------------------


def squares(side, factor=1.0, shift=0.0, **options):
    """A model that differs from the first one in one fact."""
    return side.make(
        lambda w, batch: -factor * ((batch - w[0]) ** 2), side.array(START[:1]), side.array(X[:, 0] + shift), **options
    )


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_checkpoint_of_another_function_data_or_prior_is_refused(library, tmp_path):
    side = SIDES[library]
    options = {"draws": 5, "warmup": 0, "chains": 1, "seed": 1, "progress": False}
    options |= {"checkpoint": tmp_path / "run.npz", "resume": True}
    trace = sg.sample(squares(side), sg.SGHMC(0.1), **options)
    again = sg.sample(squares(side), sg.SGHMC(0.1), **options)
    assert np.array_equal(again.draws, trace.draws)
    others = {
        "model.log_density": squares(side, factor=2.0),
        "model.data": squares(side, shift=1.0),
        "model.log_prior": squares(side, log_prior=side.square),
        "model.prior": squares(side, prior=sg.priors.Gaussian(1.0)),
        "model.dtype": squares(side, dtype=np.float32),
        "model.transforms": sg.constrained(squares(side), {"theta": Positive()}),
    }
    for name, other in others.items():
        with pytest.raises(ValueError, match=f"belongs to another run: {name}"):
            sg.sample(other, sg.SGHMC(0.1), **options)


@needs("torch")
def test_a_checkpoint_knows_what_a_module_keeps_fixed(tmp_path):
    import torch

    def model(fixed):
        net = torch.nn.Linear(4, 1)
        torch.nn.init.zeros_(net.weight)
        net.bias = torch.nn.Parameter(torch.full((1,), fixed), requires_grad=False)
        return sg.from_torch(lambda module, batch: -(module(batch)[:, 0] ** 2), net, X)

    options = {"draws": 5, "warmup": 0, "chains": 1, "seed": 1, "progress": False}
    options |= {"checkpoint": tmp_path / "run.npz", "resume": True}
    trace = sg.sample(model(0.5), sg.SGHMC(0.01), **options)
    assert np.array_equal(sg.sample(model(0.5), sg.SGHMC(0.01), **options).draws, trace.draws)
    with pytest.raises(ValueError, match=r"belongs to another run: model\.fixed"):
        sg.sample(model(0.6), sg.SGHMC(0.01), **options)


# ---- JAX alone ---------------------------------------------------------------------------------------------------------

LAYERS = {"hidden": {"b": np.zeros(3), "w": 0.1 * np.ones((4, 3))}, "out": [0.1 * np.ones(3)]}


@needs("jax")
def test_a_pytree_is_flattened_compiled_once_and_comes_back():
    import jax.numpy as jnp

    traced = []

    def log_likelihood(net, batch):
        traced.append(batch[0].shape)
        hidden = jnp.tanh(batch[0] @ net["hidden"]["w"] + net["hidden"]["b"])
        return -0.5 * (batch[1] - hidden @ net["out"][0]) ** 2

    model = sg.from_jax(log_likelihood, LAYERS, (X, SIGNS), prior=sg.priors.Gaussian(1.0))
    assert model.dim == 18
    assert model.labels[:4] == ("hidden.b[0]", "hidden.b[1]", "hidden.b[2]", "hidden.w[0,0]")
    assert sg.check_gradient(model, rows=[0, 1, 2]) < 1e-6
    del traced[:]
    start = model.flatten(LAYERS)
    options = {"warmup": 0, "chains": 2, "batch_size": 10, "init": start, "progress": False}
    # Without warnings, as a theta that seems to run away would be looked at by all rows.
    trace = sg.sample(model, sg.SGNHT(0.01), 30, warn=False, **options)
    assert traced == [(10, 4)]  # once, for all steps and chains
    drawn = model.unflatten(trace.draws)
    assert drawn["hidden"]["w"].shape == (2, 30, 4, 3)
    assert (drawn["out"][0] == trace.draws[..., 15:]).all()
    assert (model.flatten(model.unflatten(start)) == start).all()
    with pytest.raises(ValueError, match="parameters have the form"):
        model.flatten(LAYERS["hidden"])


def jax_square(w):
    return -(w**2).sum()


@needs("jax")
def test_a_jax_model_survives_a_pickle():
    model = sg.from_jax(jax_square, START)
    model.gradient(START)
    again = pickle.loads(pickle.dumps(model))
    assert (again.gradient(np.arange(4.0)) == 2.0 * np.arange(4.0)).all()
    assert repr(again) == "<model by JAX: 4 parameters, prior=Flat(), not compiled>"


# ---- PyTorch alone -----------------------------------------------------------------------------------------------------


@needs("torch")
def test_a_module_is_given_as_it_is_and_keeps_its_own_parameters():
    import torch

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1))
    net.eval()
    net[2].requires_grad_(False)
    before = {name: value.clone() for name, value in net.state_dict().items()}

    def log_likelihood(module, batch):
        x, y = batch
        return -torch.nn.functional.soft_margin_loss(module(x)[:, 0], y, reduction="none")

    model = sg.from_torch(log_likelihood, net, (X, SIGNS), log_prior=lambda module: -module[0].weight.square().sum())
    assert tuple(model.layout.axes) == ("0.weight", "0.bias", "3.weight", "3.bias")
    assert sg.check_gradient(model, rows=[0, 1]) < 1e-6
    trace = sg.sample(
        model, sg.SGNHT(0.01), 10, warmup=0, chains=1, batch_size=10, init=model.flatten(net), progress=False
    )
    assert all((value == before[name]).all() for name, value in net.state_dict().items())
    drawn = model.unflatten(trace.draws)
    assert tuple(drawn["0.weight"].shape) == (1, 10, 3, 4)
    net.load_state_dict(model.unflatten(trace.draws[0, -1]), strict=False)
    np.testing.assert_allclose(net[0].weight.detach(), drawn["0.weight"][0, -1], rtol=1e-6)


@needs("torch")
def test_a_module_that_couples_its_rows_is_refused():
    import torch

    net = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Softmax(dim=0))

    def log_likelihood(module, batch):
        return module(batch).log().sum()

    with pytest.raises(ValueError, match="the first must be the sum of the others"):
        sg.from_torch(log_likelihood, net, X)


def torch_square(w):
    return -(w**2).sum()


@needs("torch")
def test_a_torch_model_survives_a_pickle_and_a_cut_graph_is_refused():
    import torch

    model = pickle.loads(pickle.dumps(sg.from_torch(torch_square, torch.zeros(4))))
    assert (model.gradient(np.arange(4.0)) == 2.0 * np.arange(4.0)).all()
    cut = sg.from_torch(lambda w: -(w.detach() ** 2).sum(), torch.zeros(4))
    with pytest.raises(TypeError, match="in a way that PyTorch can follow"):
        cut.gradient(START)


# ---- without either ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("library", "name"), [("jax", "JAX"), ("torch", "PyTorch")])
def test_without_the_library_an_import_error_says_what_to_install(library, name, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf'needs {name}; pip install "sgmcmc\[{library}\]"'):
        getattr(sg, f"from_{library}")(lambda theta: theta, START)


def test_importing_the_package_imports_neither():
    code = "import sys, sgmcmc; assert not {'jax', 'torch'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
