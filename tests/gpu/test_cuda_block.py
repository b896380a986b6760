"""A block of threads per chain, as PTX: the steps of the CPU whatever the launch shape, and no barrier is missing.

A race is what this tier is for: threads run between barriers in three orders, and results that depend on the order are one.
"""

from __future__ import annotations

import dataclasses
import functools
import re

import numpy as np
import pytest
from cuda_cases import BLOCK_MODELS, GAUSS, LOGISTIC, RUN, SAMPLERS, Ring
from cuda_compiling import (
    PtxKernels,
    assemble,
    assert_same_steps,
    launch_arguments,
    need_ptx,
    ptx_in_place_of_a_gpu,
    ptx_of,
)
from numba import cuda as numba_cuda
from ptx_cpu import ORDERS, Module

import sgmcmc as sg
from sgmcmc.gpu.update import uploaded
from sgmcmc.integrators import State
from sgmcmc.kinetics import specialise
from sgmcmc.run.coordinate_temperatures import MEASURED, ORIGIN
from sgmcmc.run.gpu import chains as gpu_chains

PRECISIONS = {np.float64: 1e-12, np.float32: 1e-5}
FEATURES = 70
rng = np.random.default_rng(4)
X = rng.normal(size=(200, FEATURES))
WIDE = sg.models.LogisticRegression(X, (rng.random(200) < 0.5).astype(float))
CLASSES = sg.models.SoftmaxRegression(X[:, :15], np.arange(200) % 5)


def fitted(name: str, dim: int) -> sg.Sampler:
    """A sampler of the cases, for so many coordinates."""
    return dataclasses.replace(SAMPLERS[name], scale=np.linspace(0.5, 2.0, dim))


CASES = {
    "SGLD": (WIDE, sg.SGLD(0.01), {"batch_size": 50}),
    "SGMGTD": (WIDE, SAMPLERS["SGMGTD"], {"batch_size": 50}),
    "chain": (WIDE, fitted("root-symmetric-chain", FEATURES), {"batch_size": 150, "minibatch": "no-replacement"}),
    "softmax": (CLASSES, sg.SGNHT(0.02), {"batch_size": 40, "minibatch": "shuffle"}),
}


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    need_ptx()


@pytest.mark.parametrize("kind", list(PRECISIONS))
@pytest.mark.parametrize("name", list(CASES))
def test_a_block_takes_the_steps_of_the_cpu_without_spills_and_single_precision_stays_single(name, kind):
    model, sampler, more = CASES[name]
    options, kernels = RUN | more | {"dtype": kind, "chains": 2}, PtxKernels()
    here = sg.sample(model, sampler, **options)
    with ptx_in_place_of_a_gpu(kernels, block=32):
        there = sg.sample(model, sampler, **options, device="cuda")
    assert_same_steps(here, there, PRECISIONS[kind])
    for each in ("kinetic_temperature", "configurational_temperature"):
        np.testing.assert_allclose(getattr(there, each), getattr(here, each), rtol=1e-4)
    (ptx,) = kernels.sources
    assert "bar.red.and" in ptx
    assert (".f64" in ptx) == (kind is np.float64)
    made = assemble(ptx, "sm_80")
    assert made.spills == 0, made
    assert made.shared == 2432 * np.dtype(kind).itemsize  # what cuda_block says


def test_a_block_is_assembled_for_newer_devices_too():
    model, sampler, more = CASES["SGMGTD"]
    ptx = ptx_of(*launch_arguments(model, sampler, RUN | more), capability=(9, 0))
    assert "sm_90" in ptx
    assert assemble(ptx, "sm_90").spills == 0


def test_which_chains_take_a_block():
    def takes(model, *shape, kinetics=SAMPLERS["SGNHT"].kinetics, dtype=np.float64):
        return gpu_chains.takes_a_block(model, kinetics, dtype, *shape)

    assert takes(WIDE, FEATURES, 50, 4)
    assert not takes(LOGISTIC, 3, 7, 4)  # too little work
    assert not takes(WIDE, FEATURES, 50, 1 << 14)  # a thread each fills the device
    assert takes(WIDE, FEATURES, 500, 1 << 14)
    assert not takes(GAUSS, 10**6, 10**6, 4)  # no gradient to share
    many = sg.models.SoftmaxRegression(X, np.arange(200) % 65)
    assert not takes(many, many.dim, 200, 4)  # a row does not fit in shared memory
    for a in (1.0, 2.0):
        assert takes(WIDE, FEATURES, 50, 4, kinetics=specialise(sg.kinetics.MonomialGamma(a)))
    general = sg.kinetics.MonomialGamma(1.5)
    assert not takes(WIDE, FEATURES, 50, 4, kinetics=general)  # it would spill
    assert takes(WIDE, FEATURES, 50, 4, kinetics=general, dtype=np.float32)


# ---- one launch at a time ------------------------------------------------------------------------------------------------


class Launch:
    """A kernel and the arguments of a launch of four steps; every run has memory of its own."""

    def __init__(self, model, sampler, more) -> None:
        self.kernel, arguments = launch_arguments(model, sampler, RUN | more | {"warmup": 0})
        common, state, scratch, chunk, key0, key1, _, numbers, out, done = (
            arguments  # of no steps: `sample` compiles first
        )
        four = {
            "step_sizes": np.full(4, 0.02),
            "phases": np.array([ORIGIN, MEASURED, MEASURED, MEASURED]),
            "steps": np.int64(4),
            "kept": np.arange(4),
            "recorded": np.int64(4),
        }
        chunk, out = chunk._replace(**four, fresh=True), np.zeros((4, *out.shape[1:]))
        self.arguments = common, state, scratch, chunk, key0, key1, np.arange(numbers.size), numbers, out, done
        self.ptx = ptx_of(self.kernel, self.arguments)

    def run(self, module, block=32, order="ascending", change=lambda arguments: arguments):
        """All that the launch leaves behind."""
        arguments = change(uploaded(self.arguments, np.array))
        _, state, scratch, *_, out, done = arguments
        module.launch(done.size, block, arguments, order)
        return [*state, scratch.gradient, scratch.rows, scratch.sums, out, done]


def same(one, two) -> bool:
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, two, strict=True))


@functools.cache
def launch_of_a_thermostat() -> Launch:
    return Launch(WIDE, SAMPLERS["SGNHT"], {"batch_size": 150})


def test_the_bits_do_not_depend_on_the_launch_shape():
    case = launch_of_a_thermostat()
    module = Module(case.ptx)
    first = case.run(module)
    assert first[-1].tolist() == [4, 4, 4]
    for block in (7, 64, 128, 192):
        assert same(first, case.run(module, block)), block


ORDERED = {
    "logistic": (WIDE, SAMPLERS["SGNHT"], {"batch_size": 150}),
    "softmax, one thermostat": (
        CLASSES,
        fitted("gaussian-baoab-chain", 75),
        {"batch_size": 40, "minibatch": "shuffle"},
    ),
    "alone": (Ring(1.5, 10), SAMPLERS["SGLD"], {}),
    "measured": (WIDE, SAMPLERS["SGMGTD"], {"batch_size": 150}),
    "measured, one row": (WIDE, SAMPLERS["SGMGTD"], {"batch_size": 1, "minibatch": "no-replacement"}),
    "measured alone": (BLOCK_MODELS["own with data"][0], SAMPLERS["SGMGTD"], {"batch_size": 5}),
}


@pytest.mark.parametrize("name", list(ORDERED))
def test_the_bits_do_not_depend_on_the_order_of_the_threads(name, monkeypatch):
    monkeypatch.setattr(gpu_chains, "takes_a_block", lambda *_: True)
    case = launch_of_a_thermostat() if name == "logistic" else Launch(*ORDERED[name])
    module = Module(case.ptx)
    first = case.run(module)
    assert np.isfinite(first[-2]).all()
    assert "measured" not in name or first[State._fields.index("variance")].min() > 0.0
    for order in ORDERS:
        assert same(first, case.run(module, order=order)), order


BARRIER = re.compile(r"bar\.(?:sync\s+0|red\.and\.pred\s+(%p\d+), 0, (%p\d+))\s*;")
BARRIERS = {0: "rows", 1: "partial sums", 2: "errors", 3: "gradient", 4: "the step, and whether it is finite"}


def without_barrier(ptx: str, which: int) -> str:
    """The PTX without one of its barriers; each thread then hears itself alone."""
    found = list(BARRIER.finditer(ptx))
    assert len(found) == len(BARRIERS)
    a, b = found[which].span()
    answer, own = found[which].groups()
    return ptx[:a] + ("" if answer is None else f"mov.pred {answer}, {own};") + ptx[b:]


@pytest.mark.parametrize("which", list(BARRIERS), ids=list(BARRIERS.values()))
def test_a_missing_barrier_is_seen_by_the_order_of_the_threads(which):
    case = launch_of_a_thermostat()
    module = Module(without_barrier(case.ptx, which))
    first = case.run(module)
    assert not all(same(first, case.run(module, order=order)) for order in ORDERS)


def one_gradient_for_all(arguments):
    """The arguments of a launch whose chains write their gradients to the same place."""
    common, state, scratch, *rest = arguments
    same_place = np.lib.stride_tricks.as_strided(
        scratch.gradient, scratch.gradient.shape, (0, scratch.gradient.itemsize)
    )
    return common, state, scratch._replace(gradient=same_place), *rest


def test_chains_that_share_memory_are_seen_by_the_order_of_the_blocks():
    case = launch_of_a_thermostat()
    module = Module(ptx_of(case.kernel, one_gradient_for_all(case.arguments)))
    first = case.run(module, change=one_gradient_for_all)
    assert not all(same(first, case.run(module, order=order, change=one_gradient_for_all)) for order in ORDERS)


# ---- what runs it --------------------------------------------------------------------------------------------------------


def sum_in_shared_memory(x, out):
    part = numba_cuda.shared.array(8, x.dtype)
    lane = numba_cuda.threadIdx.x
    part[lane] = x[lane]
    fine = numba_cuda.syncthreads_and(np.int32(x[lane] < 9.0))
    total = part[0] - part[0]
    for i in range(8):
        total += part[i]
    out[lane] = total if fine == 1 else -total


@pytest.mark.parametrize("order", list(ORDERS))
@pytest.mark.parametrize("largest", [8.0, 9.0])
def test_threads_meet_at_barriers_and_agree(order, largest):
    x, out = np.arange(1.0, 9.0), np.zeros(8)
    x[5] = largest
    Module(ptx_of(sum_in_shared_memory, (x, out))).launch(1, 8, (x, out), order)
    np.testing.assert_array_equal(out, x.sum() if largest < 9.0 else -x.sum())


def leaves_early(x):
    lane = numba_cuda.threadIdx.x
    if lane > x[0]:
        return
    numba_cuda.syncthreads()
    x[lane] += 1.0


def test_a_barrier_that_not_all_threads_reach_is_an_error():
    kernel = Module(ptx_of(leaves_early, (np.full(4, 9.0),)))
    kernel.launch(1, 4, (np.full(4, 9.0),))
    with pytest.raises(AssertionError, match="some threads of a block were done"):
        kernel.launch(1, 4, (np.full(4, 1.0),))
