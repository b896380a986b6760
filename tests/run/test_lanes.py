"""Packs: chains side by side draw what each would draw alone, and what the loop of one chain draws, to rounding."""

from __future__ import annotations

import copy

import numba
import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.dispatch import loop
from sgmcmc.integrators.lanes import LARGEST, fits_lanes
from sgmcmc.kernels import kernel
from sgmcmc.potentials import fill_gradients, full_gradient, scratch_rows
from sgmcmc.rng import NOISE_P, Lanes, fill_normals, stream
from sgmcmc.run import lanes, loop_lanes, scheduler
from sgmcmc.run.arguments import as_settings
from sgmcmc.run.chains import put_on_own_lines
from sgmcmc.run.lanes import MOST_LANES
from sgmcmc.run.plan import make_plan
from sgmcmc.run.starts import start
from sgmcmc.samplers import in_precision

MIXTURE = sg.models.GaussianMixture([[0.0, 0.0], [2.0, 2.0], [-2.0, 1.0]], [0.7, 0.5, 1.0], [0.5, 0.3, 0.2])
SPACE = sg.models.GaussianMixture([[0.0, 1.0, 0.5], [2.0, -1.0, 0.0]], 0.8)
DENSE = sg.models.Gaussian([1.0, -1.0, 0.5], [[1.0, 0.3, 0.1], [0.3, 2.0, -0.2], [0.1, -0.2, 0.5]])
DIAGONAL = sg.models.Gaussian(np.arange(5.0), np.arange(1.0, 6.0))
MODELS = {"mixture": MIXTURE, "mixture in space": SPACE, "dense": DENSE, "diagonal": DIAGONAL}
MODELS |= {"five wells": sg.models.FiveWell()}
SAMPLERS = {
    "SGLD": sg.SGLD(0.05),
    "SGLD, Euler": sg.SGLD(0.05, integrator=sg.integrators.Euler()),
    "SGHMC": sg.SGHMC(0.1, friction=1.0),
    "SGNHT": sg.SGNHT(0.1),
    "SGNHT, resampled": sg.Sampler(
        0.1, thermostat=sg.thermostats.NoseHoover(1.0), sigma_xi=0.2, sigma_theta=0.1, resample_momentum=4, scale=0.5
    ),
    "SGMGT": sg.SGMGT(0.05, a=1, resample_momentum=7),
    "SGMGT-D": sg.SGMGTD(0.05, a=2, resample_momentum=5, resample_thermostat=11),
    "SGMGT-D, a = 1.5": sg.SGMGTD(0.05, a=1.5, scale=np.array([0.5, 2.0])),
}


@numba.njit
def bowl(theta, out):
    for j in range(theta.size):
        out[j] = theta[j]


by_sampler = pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
by_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def run(model, sampler, **options):
    settings = {"draws": 40, "warmup": 9, "thin": 3, "chains": 3, "seed": 5, "progress": False} | options
    return sg.sample(model, sampler, **settings)


@pytest.fixture
def one_by_one(monkeypatch):
    """Turn lanes off: every chain through the loop of loop_compiled.py."""
    return lambda: monkeypatch.setattr(lanes, "lane_groups", lambda *args: None)


@by_dtype
@by_sampler
def test_a_chain_draws_the_same_alone_and_in_lane_groups_of_any_width(sampler, dtype):
    many = run(MIXTURE, sampler, chains=70, dtype=dtype, gradient_noise=0.5, clip_gradient=20.0)
    for chains in (1, 2, 9, 40):
        few = run(MIXTURE, sampler, chains=chains, dtype=dtype, gradient_noise=0.5, clip_gradient=20.0, threads=1)
        np.testing.assert_array_equal(few.draws, many.draws[:chains])
        np.testing.assert_array_equal(few.kinetic_temperature, many.kinetic_temperature[:chains])
        np.testing.assert_array_equal(few.configurational_temperature, many.configurational_temperature[:chains])
        for name, value in few.final.items():
            np.testing.assert_array_equal(value, many.final[name][:chains], err_msg=name)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@by_dtype
def test_single_numbers_and_vectors_of_any_width_give_the_same_bits_for_long(model, dtype):
    """A group of one chain has no vectors; one of five has eight lanes, three of them idle; one of 64 fills them all."""
    options = {"draws": 100, "thin": 20, "warmup": 0, "dtype": dtype, "threads": 1, "gradient_noise": 0.3}
    many = run(model, SAMPLERS["SGNHT"], chains=64, **options).draws
    assert np.isfinite(many).all()
    for chains in (1, 2, 3, 5, 16):
        np.testing.assert_array_equal(run(model, SAMPLERS["SGNHT"], chains=chains, **options).draws, many[:chains])


@by_sampler
def test_a_lane_group_takes_the_steps_of_the_loop_of_one_chain(sampler, one_by_one):
    options = {"draws": 20, "warmup": 0, "thin": 1, "chains": 11, "gradient_noise": 0.5}
    together = run(MIXTURE, sampler, **options)
    one_by_one()
    apart = run(MIXTURE, sampler, **options)
    np.testing.assert_allclose(together.draws, apart.draws, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(together.configurational_temperature, apart.configurational_temperature, rtol=1e-9)
    if (
        sampler.resample_momentum is None
    ):  # the step that draws momenta afresh measures both halves of A, the other the second
        np.testing.assert_allclose(together.kinetic_temperature, apart.kinetic_temperature, rtol=1e-9)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@by_dtype
def test_gradients_of_lanes_are_those_of_the_model(model, dtype):
    rng, width = np.random.default_rng(0), 24
    theta = rng.normal(size=(model.dim, width)).astype(dtype)
    out, scratch = np.full_like(theta, np.nan), np.full((int(scratch_rows(model)), width), np.nan, dtype)
    fill(in_precision(model, dtype), theta, scratch, out)
    rows, expected = np.empty(0, np.int64), np.empty(model.dim)
    for lane in range(width):
        full_gradient(model, theta[:, lane].astype(np.float64), rows, 1.0, expected)
        np.testing.assert_allclose(out[:, lane], expected, rtol=2e-5 if dtype is np.float32 else 1e-12, atol=1e-5)


@loop
def _fill(model, theta, scratch, out):
    fill_gradients(model, theta, scratch, out)


@kernel
def fill(model, theta, scratch, out):
    _fill(model, theta, scratch, out)


@kernel
def normals(out, own, step):
    fill_normals(out, own, step, NOISE_P, 0)


@by_dtype
@pytest.mark.parametrize("dim", [1, 2, 3, 4, 6, 9])
@pytest.mark.parametrize("live", [1, 3, 8, 13])
def test_normals_of_a_lane_are_those_of_its_chain(dim, live, dtype):
    width, steps, numbers = 16, 70, np.arange(100, 116, dtype=np.uint32)
    key = stream(3)
    lanes = Lanes(key.key0, key.key1, numbers, np.int64(4), np.int64(live))
    out = np.full((steps, dim * width), np.nan, dtype)
    normals(out, lanes, np.int64(2**32 - 5))
    for lane in range(live):
        own = np.empty((steps, dim), dtype)
        normals(own, stream(3, int(numbers[lane])), np.int64(2**32 - 5))
        np.testing.assert_array_equal(out.reshape(steps, dim, width)[:, :, lane], own)
    assert np.isfinite(out).all()  # lanes without a chain follow the first one


def test_a_chain_that_diverges_is_named_with_its_step_and_leaves_its_neighbours_alone(one_by_one):
    sampler, p = SAMPLERS["SGNHT"], np.zeros((12, 5))
    calm = run(DIAGONAL, sampler, chains=12, init={"theta": np.zeros(5), "p": p})
    p[4] = 1e200  # its friction will be infinite
    init = {"theta": np.zeros(5), "p": p}
    together = run(DIAGONAL, sampler, chains=12, init=init, on_divergence="drop")
    np.testing.assert_array_equal(together.draws, np.delete(calm.draws, 4, axis=0))
    with pytest.raises(sg.DivergenceError, match="chain 4 left the finite numbers in step 0,"):
        run(DIAGONAL, sampler, chains=12, init=init)
    one_by_one()
    assert (
        together.info["diverged"] == run(DIAGONAL, sampler, chains=12, init=init, on_divergence="drop").info["diverged"]
    )


def test_a_swapped_lane_would_be_seen():
    """A test of the first test: the chains of a lane group differ, and so do their random numbers."""
    draws = run(MIXTURE, SAMPLERS["SGNHT"], chains=MOST_LANES).draws
    assert len(np.unique(draws[:, -1, 0])) == MOST_LANES


def test_a_run_that_was_interrupted_in_different_steps_goes_on_in_groups_of_equal_steps():
    whole = run(MIXTURE, SAMPLERS["SGNHT"], chains=5, draws=60)
    trace = run(MIXTURE, SAMPLERS["SGNHT"], chains=5, draws=20)
    later = run(MIXTURE, SAMPLERS["SGNHT"], chains=5, draws=30)
    for values in (trace.final, later.final):
        assert set(values) == set(whole.final)
    for name in trace.final:  # as after Ctrl-C: two chains are further than the others
        trace.final[name][[1, 3]] = later.final[name][[1, 3]]
    rest = run(MIXTURE, SAMPLERS["SGNHT"], chains=5, init=trace, warmup=0, draws=30)
    np.testing.assert_array_equal(rest.draws, whole.draws[:, 30:])


def test_who_is_packed_does_not_depend_on_the_number_of_chains():
    def tasks(model, sampler, chains):
        seen = []
        plan = make_plan(sampler.schedule, 1, 0, 1)
        gradient = sg.run.loop_compiled.Gradient(sg.minibatch.FullData(), 0, 1.0, 0.0, np.inf)
        job = scheduler.Job(None, sampler.dynamics(model.dim), model, gradient, plan, np.float64)
        out = np.empty((chains, 1, model.dim))
        for i in range(chains):
            state = sampler.start(np.zeros(model.dim))
            seen.append(scheduler.Chain(i, stream(1, i), state, 0, 0.0, out[i], np.zeros(model.dim)))
        return lanes.lane_groups(job, seen, 2, out)

    for chains in (1, 3, 200):
        assert sum(len(p.chains) for p in tasks(MIXTURE, SAMPLERS["SGNHT"], chains)) == chains
        assert tasks(sg.models.Gaussian(np.zeros(LARGEST + 1)), SAMPLERS["SGNHT"], chains) is None
        assert tasks(sg.Potential(bowl, 3), SAMPLERS["SGNHT"], chains) is None  # it has no gradients for lanes
    shared = sg.Sampler(0.1, thermostat=sg.thermostats.NoseHoover(per="chain"))
    euler = sg.SGHMC(0.1, integrator=sg.integrators.Euler())
    assert not fits_lanes(shared.dynamics(2), 2)
    assert not fits_lanes(euler.dynamics(2), 2)


def test_a_run_in_several_chunks_is_compiled_for_once(monkeypatch):

    monkeypatch.setattr("sgmcmc.run.job.CHUNK_SECONDS", 1e-12)  # chunks of one step
    before = len(loop_lanes.run_lanes.signatures)
    sg.sample(sg.models.FiveWell(), sg.SGLD(0.0123), 7, warmup=2, chains=3, progress=False, seed=1, clip_gradient=50.0)
    several = len(loop_lanes.run_lanes.signatures)
    monkeypatch.undo()
    sg.sample(sg.models.FiveWell(), sg.SGLD(0.0123), 7, warmup=0, chains=3, progress=False, seed=1, clip_gradient=50.0)
    assert several <= before + 1
    assert len(loop_lanes.run_lanes.signatures) == several


def begun(init):
    """Three chains of two coordinates before their first step."""
    given = {"draws": 5, "warmup": 0, "chains": 3, "thin": 1, "dtype": np.float64, "device": "cpu", "threads": 1}
    given |= {"batch_size": None, "minibatch": "replacement", "on_divergence": "raise"}
    given |= {"gradient_noise": 0.0, "clip_gradient": None}
    return start(as_settings(sg.models.Gaussian([0.0, 0.0], 1.0), sg.SGNHT(0.1), init, given), init, 1)


def assert_no_shared_lines(chains):
    lines = [{a.ctypes.data // 128 for a in (*c.state, c.origin, c.sums) if a.size} for c in chains]
    assert not lines[0] & lines[1]
    assert not lines[1] & lines[2]


def test_chains_that_are_set_apart_write_to_their_herd_and_to_no_line_of_another():
    chains = begun(np.arange(6.0).reshape(3, 2))
    stale = chains[0].state.theta
    put_on_own_lines(chains)
    for i, chain in enumerate(chains):
        chain.state.theta[:] += 10.0
        np.testing.assert_array_equal(chain.arrays.states.theta[i], [10.0 + 2 * i, 11.0 + 2 * i])
        assert np.shares_memory(chain.sums, chain.arrays.sums)
        assert np.shares_memory(chain.origin, chain.arrays.origins)
    np.testing.assert_array_equal(stale, [0.0, 1.0])  # the control: a view from before would miss all that
    assert_no_shared_lines(chains)


def test_chains_without_a_herd_are_set_apart_too():
    first = sg.sample(sg.models.Gaussian([0.0, 0.0], 1.0), sg.SGNHT(0.1), 5, warmup=0, chains=3, seed=1, progress=False)
    chains = begun(first)
    before = [c.state.theta.copy() for c in chains]
    put_on_own_lines(chains)
    for chain, theta in zip(chains, before, strict=True):
        np.testing.assert_array_equal(chain.state.theta, theta)
    assert_no_shared_lines(chains)


def test_a_chain_of_a_herd_sees_its_row_and_can_be_copied():
    chain = begun(np.arange(6.0).reshape(3, 2))[1]
    twin = copy.copy(chain)
    assert twin.state.theta.tolist() == chain.state.theta.tolist() == [2.0, 3.0]
    assert np.shares_memory(twin.state.theta, chain.arrays.states.theta)
    assert int(chain.stream.chain) == 1
    assert not hasattr(chain, "no_such_thing")
