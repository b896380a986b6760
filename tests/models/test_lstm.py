"""Recurrent networks: gradients against energies, a textbook LSTM and torch; padding, carried states, memory, bad input."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
from scipy.special import expit, log_softmax

import sgmcmc as sg
from sgmcmc.models import LSTM, lstm_pass

PRIOR = sg.priors.Gaussian(0.7)


def music(hidden=5, layers=1, length=None, threads=1):
    rng = np.random.default_rng(0)
    frames = rng.random((29, 6)) < 0.3
    return LSTM(frames, [0, 7, 10, 22, 29], hidden, layers, length, prior=PRIOR, threads=threads)


def language(hidden=5, layers=2, length=4, threads=1):
    rng = np.random.default_rng(1)
    text = rng.integers(0, 11, 40)
    return LSTM(text, None, hidden, layers, length, words=11, embedding=3, prior=PRIOR, threads=threads)


MODELS = {
    "music": music,
    "music, two layers, pieces": lambda: music(layers=2, length=5),
    "language": language,
    "language, one layer, whole": lambda: language(layers=1, length=None),
}


def point(model, seed=3, scale=0.8):
    return scale * np.random.default_rng(seed).standard_normal(model.dim)


def differences(model, theta):
    """Central differences of the energy in all coordinates, with an error of order h⁴."""
    found = np.empty(model.dim)
    for k in range(model.dim):
        at = [model.energy(theta + s * 1e-3 * np.eye(1, model.dim, k)[0]) for s in (-2, -1, 1, 2)]
        found[k] = (at[0] - 8.0 * at[1] + 8.0 * at[2] - at[3]) / 12e-3
    return found


@pytest.mark.parametrize("name", MODELS)
def test_the_gradient_is_that_of_the_energy(name):
    model = MODELS[name]()
    theta = point(model)
    expected = differences(model, theta)
    error = np.abs(model.gradient(theta) - expected).max() / np.abs(expected).max()
    assert error < 1e-6


def test_a_gradient_that_does_not_go_back_through_time_is_seen(monkeypatch):
    """The negative control of all tests of gradients: the product with the recurrent weights is left out."""
    right = lstm_pass.backward_steps
    monkeypatch.setattr(lstm_pass, "backward_steps", lambda gates, R, *rest: right(gates, 0.0 * R, *rest))
    model = music()
    theta = point(model)
    expected = differences(model, theta)
    assert np.abs(model.gradient(theta) - expected).max() / np.abs(expected).max() > 1e-2


def textbook(model, theta):
    """−log p of every step, one sequence, one step and one unit after the other, as in the definition."""
    parts, found = model.split(theta), []
    for begin, stop, fresh in zip(model._begins, model._stops, model._fresh, strict=True):
        h, c = (np.zeros((model.layers, model.hidden)) for _ in range(2))
        for n in range(begin, stop):
            if model.words is None:
                x = np.zeros(model.x.shape[1]) if fresh and n == begin else model.x[n - 1].astype(float)
            else:
                x = parts["embedding"][model.x[n - 1]]
            for layer in range(model.layers):
                z = x @ parts[f"input_{layer}"] + h[layer] @ parts[f"recurrent_{layer}"] + parts[f"bias_{layer}"]
                i, f, g, o = np.split(z, 4)
                c[layer] = expit(f) * c[layer] + expit(i) * np.tanh(g)
                x = h[layer] = expit(o) * np.tanh(c[layer])
            logits = x @ parts["output"] + parts["output_bias"]
            if model.words is None:
                y = model.x[n]
                found.append(-(y * np.log(expit(logits)) + (1 - y) * np.log(expit(-logits))).sum())
            else:
                found.append(-log_softmax(logits)[model.x[n]])
    return np.array(found)


@pytest.mark.parametrize("name", MODELS)
def test_probabilities_are_those_of_the_textbook(name):
    model = MODELS[name]()
    theta = point(model)
    expected = textbook(model, theta)
    np.testing.assert_allclose(model.losses(theta), expected, rtol=1e-12)
    np.testing.assert_allclose(model.losses(theta, batch=2), expected, rtol=1e-12)  # other rows beside it: no matter
    out = np.zeros(model.dim)
    loss = model.loss_and_gradient(theta, np.arange(model.n_rows), out)
    assert loss == pytest.approx(expected.sum(), rel=1e-12)
    assert model.steps == expected.size


def test_long_sequences_are_predicted_with_their_state_carried_on(monkeypatch):
    from sgmcmc.models import lstm

    model = music(layers=2)
    theta = point(model)
    expected = model.losses(theta)
    monkeypatch.setattr(lstm, "WINDOW", 3)
    np.testing.assert_allclose(model.losses(theta), expected, rtol=1e-12)
    pieces = model.on(model.x, model.offsets, length=3).losses(theta)
    assert np.abs(pieces - expected).max() > 1e-3  # those start from zero, and it shows


@pytest.mark.parametrize("make", [music, language])
def test_padding_changes_nothing(make):
    """The gradient of rows of several lengths is the sum of those of each row alone."""
    model = make(length=None) if make is music else make()
    theta, together = point(model), np.zeros(model.dim)
    assert len(set(model.sizes)) > 1
    model.gradient_sum(theta, np.arange(model.n_rows), together)
    alone, total = np.zeros(model.dim), np.zeros(model.dim)
    for row in range(model.n_rows):
        model.gradient_sum(theta, np.array([row]), alone)
        total += alone
    np.testing.assert_allclose(together, total, rtol=1e-11, atol=1e-11)
    model.gradient_sum(theta, np.arange(model.n_rows)[::-1].copy(), alone)
    np.testing.assert_allclose(together, alone, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("make", [music, language])
def test_threads_change_nothing(make):
    one, two = make(threads=1), make(threads=2)
    theta = point(one)
    np.testing.assert_allclose(one.gradient(theta), two.gradient(theta), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(one.losses(theta), two.losses(theta), rtol=1e-13)


@pytest.mark.parametrize("make", [music, language])
def test_it_agrees_with_torch(make):
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    model = make(layers=2)
    theta = torch.tensor(point(model), requires_grad=True)
    parts, first = {}, 0
    for name, shape in model.parameters.items():
        size = int(np.prod(shape))
        parts[name] = theta[first : first + size].reshape(shape)
        first += size
    size = model.x.shape[1] if model.words is None else model.embedding
    net = torch.nn.LSTM(size, model.hidden, 2).double()
    weights = {f"weight_ih_l{n}": parts[f"input_{n}"].T for n in range(2)}
    weights |= {f"weight_hh_l{n}": parts[f"recurrent_{n}"].T for n in range(2)}
    weights |= {f"bias_ih_l{n}": parts[f"bias_{n}"] for n in range(2)}
    weights |= {f"bias_hh_l{n}": torch.zeros(4 * model.hidden).double() for n in range(2)}
    total = 0.0
    for begin, stop, fresh in zip(model._begins, model._stops, model._fresh, strict=True):
        seen = begin if fresh else begin - 1
        before, now = torch.tensor(model.x[seen : stop - 1]), torch.tensor(model.x[begin:stop])
        if model.words is None:
            x = torch.cat([torch.zeros(1, size), before]) if fresh else before
            h, _ = torch.func.functional_call(net, weights, x.double()[:, None])
            logits = h[:, 0] @ parts["output"] + parts["output_bias"]
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, now.double(), reduction="sum")
        else:
            h, _ = torch.func.functional_call(net, weights, parts["embedding"][before][:, None])
            logits = h[:, 0] @ parts["output"] + parts["output_bias"]
            loss = torch.nn.functional.cross_entropy(logits, now, reduction="sum")
        total = total + loss
    total.backward()
    out = np.zeros(model.dim)
    loss = model.loss_and_gradient(theta.detach().numpy(), np.arange(model.n_rows), out)
    assert loss == pytest.approx(total.item(), rel=1e-12)
    np.testing.assert_allclose(out, theta.grad.numpy(), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("make", [music, language])
def test_float32_stays_float32_and_is_near(make):
    model = make()
    theta = point(model)
    out = np.zeros(model.dim, np.float32)
    model.gradient_sum(theta.astype(np.float32), np.arange(model.n_rows), out)
    exact = np.zeros(model.dim)
    model.gradient_sum(theta, np.arange(model.n_rows), exact)
    assert np.abs(out - exact).max() < 1e-5 * np.abs(exact).max()
    assert model.losses(theta.astype(np.float32)).dtype == np.float64


@pytest.mark.parametrize("make", [music, language])
def test_a_step_takes_no_memory(make):
    model = make(hidden=256, length=4)
    theta, out = model.init(1).astype(np.float32), np.zeros(model.dim, np.float32)
    rows = np.arange(4)
    sampler = sg.SGMGTD(1e-4)
    state = sampler.init(theta, seed=1)
    for _ in range(3):
        model.estimate(state.theta, rows, np.float32(2.0), out)
        state = sampler.step(state, out, inplace=True)
    buffers = {name: flat.ctypes.data for name, flat in model._pass(theta.dtype)._flat.items()}
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(5):
            model.estimate(state.theta, rows, np.float32(2.0), out)
        tracemalloc.reset_peak()
        model.estimate(state.theta, rows, np.float32(2.0), out)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    smallest = min(flat.nbytes for name, flat in model._pass(theta.dtype)._flat.items() if name.startswith("gates"))
    assert peak < smallest  # views and lists of Python's, less than the smallest of the large buffers
    assert buffers == {name: flat.ctypes.data for name, flat in model._pass(theta.dtype)._flat.items()}


def test_minibatches_are_unbiased():
    model = language(length=3)
    theta = point(model)
    parts = [model.gradient(theta, rows) for rows in np.split(np.arange(model.n_rows), model.n_rows)]
    np.testing.assert_allclose(np.mean(parts, axis=0), model.gradient(theta), rtol=1e-9, atol=1e-9)


def test_every_step_is_in_one_row_and_pieces_are_of_like_length():
    model = music(length=5)
    assert model.sizes.max() <= 5
    covered = np.concatenate([np.arange(a, b) for a, b in zip(model._begins, model._stops, strict=True)])
    np.testing.assert_array_equal(covered, np.arange(29))
    text = language(length=4)
    assert list(text.sizes) == [4] * 9 + [3]  # the first word is seen, not predicted


def test_the_start_has_the_frequencies_of_the_data():
    model = music(hidden=50)
    theta = model.init(1)
    model.split(theta)["output"][:] = 0.0
    share = model.x.mean(axis=0)
    static = -(share * np.log(share) + (1 - share) * np.log(1 - share)).sum()
    assert model.losses(theta).mean() == pytest.approx(static, rel=0.01)
    assert model.split(theta)["bias_0"][50:100].min() == 1.0


def test_probabilities_of_keys_are_those_of_the_frames():
    model = music(length=5)
    theta, keys = point(model), np.zeros(model.x.shape)
    losses = model.losses(theta, keys=keys)
    product = np.where(model.x > 0, keys, 1.0 - keys).prod(axis=1)
    np.testing.assert_allclose(-np.log(product), losses, rtol=1e-9)
    np.testing.assert_allclose(losses, model.losses(theta), rtol=1e-12)


def test_predictions_are_averages_of_probabilities():
    model = language()
    draws = np.stack([point(model, k) for k in range(3)])
    expected = np.mean([np.exp(-model.losses(d)) for d in draws], axis=0)
    np.testing.assert_allclose(model.predict(draws), expected, rtol=1e-12)


def test_it_can_be_sampled_sent_elsewhere_and_has_the_published_size():
    model = music()
    again = pickle.loads(pickle.dumps(model))
    theta = point(model)
    np.testing.assert_array_equal(again.gradient(theta), model.gradient(theta))
    trace = sg.sample(model, sg.SGNHT(0.01), draws=4, warmup=2, chains=2, batch_size=2, seed=1, progress=False)
    assert trace["recurrent_0"].shape == (2, 4, 5, 20)
    published = LSTM(np.arange(10_000), words=10_000, hidden=200, layers=2, embedding=300, length=20)
    assert published.dim == 5_731_600
    assert "10000 words" in repr(published)
    assert "6 keys" in repr(model)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": np.zeros((3, 2, 2))}, r"x has shape \(3, 2, 2\); give frames"),
        ({"x": np.full((4, 2), 0.5)}, "other than 0 and 1"),
        ({"x": [1]}, "at least 2 words"),
        ({"x": [1, -2, 3]}, "x has the word -2"),
        ({"x": [1, 2, 3], "words": 3}, "words=3"),
        ({"x": np.zeros((4, 2)), "words": 3}, "leave words=None"),
        ({"x": np.zeros((4, 2)), "offsets": [0, 2, 2, 4]}, "rise from 0 to 4"),
        ({"x": [1, 2, 3], "offsets": [0, 1, 3]}, "by at least 2"),
        ({"x": [1, 2, 3], "hidden": 0}, "hidden=0"),
    ],
)
def test_bad_input_is_one_sentence(arguments, message):
    with pytest.raises(ValueError, match=message):
        LSTM(**arguments)
