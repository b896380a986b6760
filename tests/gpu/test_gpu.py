"""On a real GPU. Collected everywhere; skipped, with the reason, where there is none. None of these has ever run on one.

``NUMBA_ENABLE_CUDASIM=1 SGMCMC_GPU_TESTS=simulator pytest -n0 tests/gpu/test_gpu.py`` runs them, few and small, in Numba's
simulator: that shows that the tests themselves are in order, and no more.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cuda_cases import GAUSS, LOGISTIC, RUN, SAMPLERS, SINGLY, WIDE, Foreign, block_runs, moments_error, runs, walk
from cuda_laws import findings

import sgmcmc as sg
from sgmcmc.gpu import availability
from sgmcmc.rng.philox4x32 import philox
from sgmcmc.run import scheduler
from sgmcmc.run.gpu import chains as gpu_chains

pytestmark = pytest.mark.gpu
SIMULATED = os.environ.get("SGMCMC_GPU_TESTS") == "simulator"
KINDS = [np.float64, np.float32]
TOLERANCE = {np.float64: 1e-11, np.float32: 1e-4}
RUNS = ["sampler SGNHT", "model logistic"] if SIMULATED else list(runs(np.float64))
WALKS = ["SGNHT"] if SIMULATED else list(SINGLY)
CHAINS = 7 if SIMULATED else 1000
ROOT = Path(__file__).parents[2]
no_simulator = pytest.mark.skipif(SIMULATED, reason="needs hardware, or hours in the simulator")


@pytest.fixture(scope="module", autouse=True)
def _device():
    found = availability.find_state()
    if found.state != (availability.SIMULATOR if SIMULATED else availability.READY):
        if "gpu" in os.environ.get("SGMCMC_REQUIRE", "").split(","):
            pytest.fail(f"SGMCMC_REQUIRE has gpu, but {found}")
        pytest.skip(f"no GPU: {found}")


class OnDevice(Foreign):
    """A device array that NumPy can read: `walk` works out its gradients on the host."""

    def __init__(self, array, stream=0):
        if SIMULATED:
            super().__init__(array)
        else:
            from numba import cuda as device

            self.array = device.to_device(array, stream=stream)

    @property
    def __cuda_array_interface__(self):
        return super().__cuda_array_interface__ if SIMULATED else self.array.__cuda_array_interface__


def on_host(array):
    from sgmcmc.gpu.runtime import download

    return download(array)


def device_walk(one, kind, steps=9, moments=None, stream=0):
    """`walk` on device arrays."""
    state = one.init(OnDevice(np.linspace(-1.0, 1.0, 10).astype(kind)), seed=2**40 + 3, chain=5)
    found = []
    for _ in range(steps):
        state = one.step(state, OnDevice(on_host(state.theta) - kind(1.0), stream), moments=moments)
        found.append([on_host(a) for a in state.arrays])
    return found


# ---- words and steps ----------------------------------------------------------------------------------------------------

KNOWN = [  # counter, key, answer: Random123's known-answer tests of Philox4x32-10
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_philox_gives_the_known_answers_bit_for_bit(counter, key, answer):
    from numba import cuda as device

    from sgmcmc.gpu.runtime import download, launch, upload

    @device.jit
    def words(out):
        w = philox(out[0], out[1], out[2], out[3], out[4], out[5])
        out[0], out[1], out[2], out[3] = w[0], w[1], w[2], w[3]

    out = upload(np.array(counter + key, np.uint32))
    launch(words, 1, 1, (out,))
    assert download(out)[:4].tolist() == answer


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", RUNS)
def test_the_device_takes_the_steps_of_the_cpu(name, kind):
    steps_are_the_cpus(*runs(kind)[name], kind)


def steps_are_the_cpus(model, sampler, options, kind):
    here, there = sg.sample(model, sampler, **options), sg.sample(model, sampler, **options, device="cuda")
    np.testing.assert_allclose(there.draws, here.draws, rtol=TOLERANCE[kind], atol=TOLERANCE[kind])
    for part, value in here.final.items():
        np.testing.assert_allclose(there.final[part], value, rtol=TOLERANCE[kind], atol=TOLERANCE[kind], err_msg=part)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", WALKS)
def test_the_update_of_device_arrays_is_that_of_the_host(name, kind):
    here, there = walk(SINGLY[name], kind, lambda array: array), device_walk(SINGLY[name], kind)
    for old, new in zip(here, there, strict=True):
        for a, b in zip(old, new, strict=True):
            np.testing.assert_allclose(b[: a.size], a, rtol=TOLERANCE[kind], atol=TOLERANCE[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_running_moments_stay_on_the_device_and_are_those_of_the_states(kind):
    moments = sg.Moments()
    states = device_walk(SINGLY["SGNHT"], kind, steps=9 if SIMULATED else 100, moments=moments)
    assert SIMULATED or hasattr(moments.mean, "__cuda_array_interface__")
    home = sg.Moments()
    home.count, home._arrays = moments.count, (on_host(moments.mean), on_host(moments.variance))
    assert moments_error(home, states) < 1e-13
    assert moments_error(home, states[:-1] + states[:1]) > 1e-4


# ---- launches, streams and devices --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("name", list(block_runs(np.float64)))
def test_a_block_takes_the_steps_of_the_cpu(name, kind, monkeypatch):
    monkeypatch.setattr(gpu_chains, "takes_a_block", lambda *_: True)
    steps_are_the_cpus(*block_runs(kind)[name], kind)


def test_a_second_run_gives_the_same_bits():
    one, two = (sg.sample(LOGISTIC, SAMPLERS["SGMGTD"], **RUN, batch_size=7, device="cuda") for _ in range(2))
    np.testing.assert_array_equal(one.draws, two.draws)
    for first, second in zip(*(device_walk(SINGLY["SGMGTD"], np.float32) for _ in range(2)), strict=True):
        np.testing.assert_array_equal(np.concatenate(first), np.concatenate(second))


@pytest.mark.parametrize("block", [32, 128, 256])
def test_the_block_size_does_not_matter(block, monkeypatch):
    options = RUN | {"chains": CHAINS, "device": "cuda"}
    one = sg.sample(GAUSS, sg.SGNHT(0.1), **options)
    states = device_walk(SINGLY["SGNHT"], np.float64)
    monkeypatch.setattr(gpu_chains.DeviceTask.__init__, "__defaults__", (None, block))
    np.testing.assert_array_equal(sg.sample(GAUSS, sg.SGNHT(0.1), **options).draws, one.draws)
    other = sg.SGNHT(0.1)
    monkeypatch.setattr(other._device, "_block_size", lambda *_: block)
    for first, second in zip(states, device_walk(other, np.float64), strict=True):
        np.testing.assert_array_equal(np.concatenate(first), np.concatenate(second))


@no_simulator
def test_the_driver_tells_a_block_size(monkeypatch):
    from sgmcmc.gpu import kernel_cache

    asked, real = [], kernel_cache.cuda.current_context

    class Context:
        def __init__(self, context):
            self.context, self.device = context, context.device

        def get_active_blocks_per_multiprocessor(self, *arguments):
            asked.append(self.context.get_active_blocks_per_multiprocessor(*arguments))
            return asked[-1]

    monkeypatch.setattr(kernel_cache.cuda, "current_context", lambda: Context(real()))
    sg.sample(GAUSS, sg.SGNHT(0.1), **RUN | {"chains": 100_000, "device": "cuda"})
    assert len(asked) >= len(kernel_cache.BLOCKS)
    assert max(asked) >= 1


@no_simulator
def test_the_step_is_taken_on_the_stream_of_the_gradient():
    from numba import cuda as device

    stream, one = device.stream(), sg.SGNHT(0.1)
    here, there = walk(one, np.float64, lambda array: array), device_walk(one, np.float64, stream=stream)
    gradient = OnDevice(np.zeros(10), stream)
    assert one._device.place_of(gradient)[1] is not None
    state = one.step(one.init(OnDevice(np.zeros(10))), gradient)
    assert state.theta.__cuda_array_interface__["stream"] == gradient.__cuda_array_interface__["stream"]
    np.testing.assert_allclose(there[-1][0], here[-1][0], rtol=1e-11)


@no_simulator
def test_chains_on_two_streams_do_not_disturb_each_other():
    from numba import cuda as device

    one, dim = sg.SGNHT(0.1), 1_000_000
    streams = [device.stream(), device.stream()]

    def both(order):
        states = [one.init(OnDevice(np.zeros(dim)), seed=s) for s in order]
        gradients = [OnDevice(np.ones(dim), streams[s]) for s in order]
        for _ in range(20):
            states = [one.step(s, g, inplace=True) for s, g in zip(states, gradients, strict=True)]
        device.synchronize()
        return {s: on_host(state.theta) for s, state in zip(order, states, strict=True)}

    together, alone = both([0, 1]), both([0]) | both([1])
    for s in (0, 1):
        np.testing.assert_array_equal(together[s], alone[s])


@no_simulator
def test_draws_do_not_depend_on_how_many_devices_there_are(monkeypatch):
    from sgmcmc.run.gpu import kernels as gpu_kernels

    every = gpu_kernels.devices()
    if len(every) < 2:
        pytest.skip("there is one GPU")
    options = RUN | {"chains": CHAINS, "device": "cuda"}
    whole = sg.sample(GAUSS, sg.SGNHT(0.1), **options)
    monkeypatch.setattr(gpu_kernels, "devices", lambda: every[:1])
    np.testing.assert_array_equal(sg.sample(GAUSS, sg.SGNHT(0.1), **options).draws, whole.draws)


@no_simulator
def test_another_process_finds_the_kernel_on_disk(tmp_path):
    script = (
        "import sgmcmc as sg; from sgmcmc.run.gpu import kernels\n"
        "sg.sample(sg.models.Gaussian([0.0], [1.0]), sg.SGNHT(0.1), draws=2, device='cuda', progress=False)\n"
        "print(sum(kernels.chain_kernel.stats.cache_hits.values()))"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", script]
    hits = [int(subprocess.run(command, env=environment, capture_output=True, check=True).stdout) for _ in range(2)]
    assert hits == [0, 1]


@pytest.mark.parametrize("block", [32, 64, 96])
def test_the_size_of_a_block_that_shares_a_chain_does_not_matter(block, monkeypatch):
    options = RUN | {"chains": 500, "batch_size": 70, "device": "cuda"}
    one = sg.sample(WIDE, sg.SGNHT(0.02), **options)
    monkeypatch.setattr(gpu_chains.DeviceTask.__init__, "__defaults__", (None, block))
    np.testing.assert_array_equal(sg.sample(WIDE, sg.SGNHT(0.02), **options).draws, one.draws)


def test_auto_takes_the_device():
    chosen = sg.sample(GAUSS, sg.SGNHT(0.1), **RUN, device="auto").info["device"]
    assert chosen == ("cpu" if SIMULATED else "cuda")  # never the simulator


# ---- what goes wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_a_chain_that_diverges_is_dropped_as_on_the_cpu():
    start = np.array([[0.5] * 3] * 6 + [[1e308] * 3])
    options = RUN | {"chains": 7, "init": start, "on_divergence": "drop"}
    here, there = (sg.sample(GAUSS, sg.SGNHT(3.0), **options, device=device) for device in ("cpu", "cuda"))
    assert here.info["diverged"] == there.info["diverged"] != {}
    assert there.draws.shape == here.draws.shape
    with pytest.raises(sg.DivergenceError, match="chain 6 left the finite numbers"):
        sg.sample(GAUSS, sg.SGNHT(3.0), **RUN | {"chains": 7, "init": start}, device="cuda")


def test_an_interruption_keeps_the_draws_so_far_and_a_run_can_go_on(monkeypatch):
    from sgmcmc.run.gpu import kernels as gpu_kernels

    first = gpu_kernels.devices()[:1]
    calls, real = [], scheduler.wait

    def wait(*args, **options):
        calls.append(None)
        if len(calls) == 9:
            raise KeyboardInterrupt
        return real(*args, **options)

    options = RUN | {"draws": 12, "device": "cuda"}
    whole = sg.sample(GAUSS, sg.SGNHT(0.1), **options)
    monkeypatch.setattr(gpu_kernels, "devices", lambda: first)
    monkeypatch.setattr(scheduler, "wait", wait)
    monkeypatch.setattr(gpu_chains, "CHUNK_SECONDS", 1e-12)  # a step per chunk
    part = sg.sample(GAUSS, sg.SGNHT(0.1), **options)
    monkeypatch.undo()
    assert part.info["interrupted"]
    assert 0 < part.n_draws < 12
    np.testing.assert_array_equal(part.draws, whole.draws[:, : part.n_draws])
    rest = sg.sample(GAUSS, sg.SGNHT(0.1), **options | {"draws": 2, "warmup": 0, "init": part})
    np.testing.assert_array_equal(rest.draws, whole.draws[:, part.n_draws : part.n_draws + 2])


# ---- laws ---------------------------------------------------------------------------------------------------------------


@no_simulator
@pytest.mark.parametrize("kind", KINDS)
def test_the_marginals_are_right_after_a_long_run(kind):
    found = findings(kind, chains=4096, draws=1000)
    assert {name: size for name, size in found.items() if not size < 1.0} == {}


@no_simulator
def test_a_sampler_at_another_temperature_is_rejected():
    found = findings(np.float32, temperature=1.15, chains=4096)
    assert {name for name, size in found.items() if size > 1.0} >= {"variance 0", "variance 1", "kinetic temperature"}
