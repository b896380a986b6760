"""On a real GPU. Collected everywhere; skipped, with the reason, where there is none. None of these has ever run."""

from __future__ import annotations

import os

import numpy as np
import pytest
from cuda_cases import GAUSS, LOGISTIC, RUN, SAMPLERS, WIDE, block_runs, runs

import sgmcmc as sg
from sgmcmc.engines import cuda, cuda_state

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module", autouse=True)
def _device():
    found = cuda_state.find_state()
    if found.state != cuda_state.READY:
        if "gpu" in os.environ.get("SGMCMC_REQUIRE", "").split(","):
            pytest.fail(f"SGMCMC_REQUIRE has gpu, but {found}")
        pytest.skip(f"no GPU: {found}")


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("name", list(runs(np.float64)))
def test_the_device_takes_the_steps_of_the_cpu(name, kind):
    steps_are_the_cpus(*runs(kind)[name], kind)


def steps_are_the_cpus(model, sampler, options, kind):
    here, there = sg.sample(model, sampler, **options), sg.sample(model, sampler, **options, device="cuda")
    tolerance = 1e-11 if kind is np.float64 else 1e-4
    np.testing.assert_allclose(there.draws, here.draws, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("name", list(block_runs(np.float64)))
def test_a_block_takes_the_steps_of_the_cpu(name, kind, monkeypatch):
    monkeypatch.setattr(cuda, "takes_a_block", lambda *_: True)
    steps_are_the_cpus(*block_runs(kind)[name], kind)


def test_a_second_run_gives_the_same_bits():
    one, two = (sg.sample(LOGISTIC, SAMPLERS["SGMGTD"], **RUN, batch_size=7, device="cuda") for _ in range(2))
    np.testing.assert_array_equal(one.draws, two.draws)


@pytest.mark.parametrize("block", [32, 128, 256])
def test_the_launch_shape_does_not_matter(block, monkeypatch):
    options = RUN | {"chains": 1000, "device": "cuda"}
    one = sg.sample(GAUSS, sg.SGNHT(0.1), **options)
    monkeypatch.setattr(cuda.Fleet.__init__, "__defaults__", (None, block))
    np.testing.assert_array_equal(sg.sample(GAUSS, sg.SGNHT(0.1), **options).draws, one.draws)


@pytest.mark.parametrize("block", [32, 64, 96])
def test_the_size_of_a_block_that_shares_a_chain_does_not_matter(block, monkeypatch):
    options = RUN | {"chains": 500, "batch_size": 70, "device": "cuda"}
    one = sg.sample(WIDE, sg.SGNHT(0.02), **options)
    monkeypatch.setattr(cuda.Fleet.__init__, "__defaults__", (None, block))
    np.testing.assert_array_equal(sg.sample(WIDE, sg.SGNHT(0.02), **options).draws, one.draws)


def test_auto_takes_the_device():
    assert sg.sample(GAUSS, sg.SGNHT(0.1), **RUN, device="auto").info["device"] == "cuda"
