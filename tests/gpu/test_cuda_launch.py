"""Launch shapes: what a device is asked, what it is asked it with, and that nobody is warned. No GPU: the driver is a fake."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from cuda_cases import GAUSS
from cuda_compiling import PtxKernels, need_ptx, ptx_in_place_of_a_gpu

import sgmcmc as sg
from sgmcmc.run.gpu import chains as gpu_chains


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    need_ptx()


class Kernel:
    """A compiled kernel, as far as `block_size` can tell."""

    def typeof_pyval(self, value):
        return type(value)

    def compile(self, types):
        assert types == (int, float)
        return SimpleNamespace(_codelibrary=SimpleNamespace(get_cufunc=lambda: "machine code"))


def block_size(monkeypatch, active, threads=100_000, default=64):
    """The block size on a device with 10 multiprocessors that hold active(block) blocks each."""
    from sgmcmc.gpu import kernel_cache

    def blocks(function, block, shared):
        assert (function, shared) == ("machine code", 0)
        return active(block)

    device = SimpleNamespace(MULTIPROCESSOR_COUNT=10)
    context = SimpleNamespace(device=device, get_active_blocks_per_multiprocessor=blocks)
    monkeypatch.setattr(kernel_cache.cuda, "current_context", lambda: context)
    return kernel_cache.block_size(Kernel(), (1, 2.0), threads, default)


def occupancy(registers, most_blocks=16, most_threads=2048):
    """NVIDIA's rule, for 65536 registers that are dealt out to warps in units of 256."""

    def active(block):
        warps = 65536 // (-(-registers * 32 // 256) * 256)
        return min(most_blocks, most_threads // block, warps * 32 // block)

    return active


def test_it_is_the_smallest_block_with_most_threads_unless_the_default_is_as_good(monkeypatch):
    assert block_size(monkeypatch, occupancy(128)) == 64  # 512 threads with 32, 64, 128, 256 and 512
    assert block_size(monkeypatch, occupancy(32)) == 128  # 16 blocks of 64 leave half of it empty
    assert block_size(monkeypatch, occupancy(32), default=256) == 256
    assert (
        block_size(monkeypatch, occupancy(200), default=128) == 32
    )  # 10 warps: 320 threads, but 256 with blocks of 128


def test_few_threads_take_the_default(monkeypatch):
    assert block_size(monkeypatch, occupancy(32), threads=640) == 64
    assert block_size(monkeypatch, occupancy(32), threads=641) == 128


def test_a_driver_that_cannot_tell_is_no_obstacle(monkeypatch):
    def broken(block):
        raise RuntimeError("CUDA_ERROR_NOT_SUPPORTED")

    assert block_size(monkeypatch, broken) == 64


def test_without_a_device_it_is_the_default():
    from numba import cuda

    from sgmcmc.gpu.kernel_cache import block_size

    if cuda.is_available():
        pytest.skip("there is a device")
    assert block_size(Kernel(), (1, 2.0), 10**6, 128) == 128


def test_a_small_grid_is_no_reason_for_a_warning():
    from numba import cuda

    from sgmcmc.gpu.runtime import shaped

    @cuda.jit
    def nothing():
        pass

    with pytest.warns(Warning, match="Grid size 1 will likely result in GPU under-utilization"):
        nothing[1, 32]
    assert shaped(nothing, 2, 32, 0).griddim == (2, 1, 1)  # warnings are errors here


class NoTimeAtAll(PtxKernels):
    """Launches that are over at once: every chain has taken its steps, nowhere."""

    counts: list[int]

    def launch(self, kernel, threads, block, arguments):
        chunk, done = arguments[3], arguments[-1]
        self.counts.append(int(chunk.steps))
        done[:] = chunk.steps


def test_chunks_do_not_shrink_because_there_are_many_chains(monkeypatch):
    kernels = NoTimeAtAll()
    kernels.counts = []
    account = gpu_chains.DeviceTask._account

    def slow(task, *rest):
        time.sleep(0.3)  # longer than a chunk shall last
        account(task, *rest)

    monkeypatch.setattr(gpu_chains.DeviceTask, "_account", slow)
    with ptx_in_place_of_a_gpu(kernels):
        sg.sample(GAUSS, sg.SGNHT(0.1), draws=200, warmup=0, chains=1, progress=False, device="cuda")
    # the first compiles; a chunk is at most 64 times as long as the one before
    assert kernels.counts == [0, 1, 64, 135]
