"""Running moments are those of the positions that the loop saw, in double precision, on the host.

The same through PTX is in test_cuda_ptx, in the simulator in test_cuda_simulator, on a GPU in test_gpu.
"""

from __future__ import annotations

import numpy as np
import pytest
from cuda_cases import GAUSS, Foreign

import sgmcmc as sg
from sgmcmc.moments import welford

SAMPLER = sg.SGNHT(0.1)


def loop(dim: int, kind: type, steps: int, moments: sg.Moments | None) -> np.ndarray:
    """The positions after each step of a chain around 100."""
    state = SAMPLER.init(np.full(dim, 100.0, kind), seed=4)
    seen = []
    for _ in range(steps):
        state = SAMPLER.step(state, state.theta - kind(100.0), moments=moments)
        seen.append(state.theta)
    return np.array(seen)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("dim", [7, 600])  # one block of coordinates, and more than one
def test_they_are_the_mean_and_the_variance_of_the_positions_that_the_loop_saw(dim, kind):
    moments = sg.Moments()
    seen = loop(dim, kind, 200, moments)
    assert moments.count == 200
    assert moments.mean.dtype == moments.variance.dtype == np.float64
    np.testing.assert_allclose(moments.mean, seen.mean(0, dtype=float), rtol=1e-12)
    np.testing.assert_allclose(moments.variance, seen.astype(float).var(0), rtol=1e-12)
    shifted = np.concatenate([[np.full(dim, 100.0)], seen[:-1]])  # where the gradients were taken: one step earlier
    assert np.abs(shifted.mean(0) / moments.mean - 1.0).min() > 1e-9
    assert np.abs(shifted.var(0) / moments.variance - 1.0).min() > 1e-9


def test_a_chain_does_not_notice_them():
    np.testing.assert_array_equal(loop(7, np.float64, 20, sg.Moments()), loop(7, np.float64, 20, None))


def test_they_are_of_the_positions_that_sample_records():
    trace = sg.sample(GAUSS, SAMPLER, draws=30, warmup=5, chains=1, seed=3, init=np.zeros((1, 3)), progress=False)
    state, moments = SAMPLER.init(np.zeros(3), seed=3), sg.Moments()
    for t in range(35):
        gradient = (state.theta - GAUSS.mean) / GAUSS.covariance
        state = SAMPLER.step(state, gradient, inplace=True, moments=moments if t >= 5 else None)
    np.testing.assert_allclose(moments.mean, trace.draws[0].mean(0), rtol=1e-12)
    np.testing.assert_allclose(moments.variance, trace.draws[0].var(0), rtol=1e-12)


def last_error(kind: type) -> float:
    """How far off the mean of 300 000 numbers near 1000 is, in units of their spread, if accumulated in this precision."""
    numbers = np.random.default_rng(1).normal(1000.5, 0.1, 300_000).astype(kind)
    numbers[:1000] -= kind(0.5)  # the start of a chain that is still on its way
    mean, variance = kind(0.0), kind(0.0)
    one = kind(1.0)
    for n, x in enumerate(numbers, 1):
        mean, variance = welford(one / kind(n), mean, variance, x)
    return abs(float(mean) - numbers.mean(dtype=float)) / 0.1


def test_single_precision_would_not_do():
    assert last_error(np.float64) < 1e-7
    assert last_error(np.float32) > 1e-3


def test_one_step_has_no_variance():
    moments = sg.Moments()
    seen = loop(7, np.float64, 1, moments)
    np.testing.assert_array_equal(moments.mean, seen[0])
    assert (moments.variance == 0.0).all()


def test_what_does_not_fit_is_refused_and_does_not_count():
    moments, state = sg.Moments(), SAMPLER.init(np.zeros(7))
    with pytest.raises(ValueError, match="no moments before the first step"):
        _ = moments.mean
    with pytest.raises(TypeError, match=r"moments=True cannot be updated; give a value of sg.Moments\(\)"):
        SAMPLER.step(state, state.theta, moments=True)
    with pytest.raises(ValueError, match="gradient has shape"):
        SAMPLER.step(state, np.zeros(3), moments=moments)
    assert moments.count == 0
    SAMPLER.step(state, state.theta, moments=moments)
    longer = SAMPLER.init(np.zeros(8))
    with pytest.raises(ValueError, match="moments are of 7 coordinates, the chain has 8"):
        SAMPLER.step(longer, longer.theta, moments=moments)
    with pytest.raises(ValueError, match="moments live on the host, the chain on a GPU"):
        moments.next(7, True, np.array)
    elsewhere = sg.Moments()
    elsewhere.next(7, True, np.array)
    with pytest.raises(ValueError, match="moments live on a GPU, the chain on the host"):
        SAMPLER.step(state, state.theta, moments=elsewhere)
    assert (moments.count, elsewhere.count) == (1, 1)


def test_a_state_on_a_gpu_wants_a_gradient_there():
    state = SAMPLER.init(np.zeros(7))
    there = state._replace(arrays=state.arrays._replace(theta=Foreign(np.zeros(7))))
    with pytest.raises(ValueError, match="state lives on a GPU, the gradient on the host"):
        SAMPLER.step(there, np.zeros(7))
