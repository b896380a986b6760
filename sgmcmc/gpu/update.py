"""Ask and tell on a device: the step of a chain whose arrays and gradient are in GPU memory.

The gradient is read in place, through ``__cuda_array_interface__``, on its owner's stream; states are device arrays with the
same interface. Coordinates are independent, so the thermostat must be one per coordinate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sgmcmc.compiler.open_functions import loop
from sgmcmc.gpu.normals import fill_step_noise
from sgmcmc.integrators.preconditioning import part
from sgmcmc.integrators.state import Dynamics, Moment, Noise, State
from sgmcmc.integrators.step import advance_block
from sgmcmc.thermostats import couples_coordinates

__all__ = ["advance_four", "advance_stretch", "is_device_array", "launch_step", "stretch", "uploaded"]

BLOCK = 128  # threads per block, unless the device prefers another size


def is_device_array(value: Any) -> bool:
    """Whether an array is in GPU memory."""
    return hasattr(value, "__cuda_array_interface__")


def uploaded(value: Any, upload: Any) -> Any:
    """A part with its arrays on the device, recursively."""
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return type(value)._make(uploaded(v, upload) for v in value)
    if isinstance(value, tuple):
        return tuple(uploaded(v, upload) for v in value)
    return upload(value) if isinstance(value, np.ndarray) else value


@loop
def stretch(state: Any, sizes: Any, low: Any, high: Any) -> Any:
    """The coordinates low … high − 1 of a state, with their ξ and its arrays; one ξ per chain belongs to all coordinates."""
    c, d = min(low, sizes.xi), min(high, sizes.xi)
    e, f = min(low, sizes.loss), min(high, sizes.loss)
    return State(
        state.theta[low:high],
        state.p[min(low, sizes.p) : min(high, sizes.p)],
        state.xi[c:d],
        state.variance[c:d],
        state.loss[e:f],
        state.bend[e:f],
        state.span[e:f],
        state.pending[min(low, sizes.pending) : min(high, sizes.pending)],
    )


@loop
def advance_stretch(
    dynamics: Any, own: Any, gradient: Any, noise: Any, stream: Any, step: Any, before: Any, h: Any, low: Any
) -> Any:
    """A step of the coordinates from `low` on, a multiple of 4, whose state is `own`. Returns their Σ p K'(p)."""
    high, a, c = low + own.theta.size, min(low, noise.p.size), min(low, noise.xi.size)
    normals = Noise(noise.p[a : a + own.p.size], noise.theta[low:high], noise.xi[c : c + own.xi.size])
    fill_step_noise(dynamics, normals, stream, step, low)
    moment = Moment(step, before, h, low)
    return advance_block(dynamics, part(dynamics.scale, low, high), own, gradient[low:high], normals, stream, moment)


@loop
def advance_four(
    dynamics: Any,
    sizes: Any,
    state: Any,
    gradient: Any,
    noise: Any,
    stream: Any,
    step: Any,
    before: Any,
    h: Any,
    low: Any,
) -> Any:
    """A step of the coordinates low … low + 3, as far as they exist."""
    own = stretch(state, sizes, low, min(low + 4, sizes.theta))
    return advance_stretch(dynamics, own, gradient, noise, stream, step, before, h, low)


class Device:
    """A device that launches updates; tests use another one, without a GPU."""

    def __init__(self) -> None:
        from sgmcmc.gpu import kernel_cache, runtime, update_kernel

        self.upload, self.download, self.adopt = runtime.upload, runtime.download, runtime.adopt
        self.duplicate, self._current, self._stream_of_place = (
            runtime.duplicate,
            runtime.current,
            runtime.stream_of_place,
        )
        self._blocks: dict[Any, int] = {}
        self._block_size = kernel_cache.block_size
        self._launch, self.kernel, self._simulated = runtime.launch, update_kernel.update_kernel, runtime.simulated

    def holds(self, array: Any) -> bool:
        """Whether an array is in this kind of memory."""
        return self._simulated or is_device_array(array)

    def launch(self, threads: int, arguments: tuple[Any, ...], stream: Any) -> None:
        key = threads, self._current(), arguments[2].theta.dtype, type(arguments[5])  # precision, and moments or none
        if key not in self._blocks:
            self._blocks[key] = self._block_size(self.kernel, arguments, threads, BLOCK)
        self._launch(self.kernel, threads, self._blocks[key], arguments, stream)

    def stream_of(self, array: Any) -> Any:
        """The stream of the owner of an array, if its interface names one."""
        return self._stream_of_place(*self.place_of(array))

    def place_of(self, array: Any) -> tuple[int, Any]:
        """Device and stream of an array: work with equal values is sequential, and may share memory."""
        return self._current(), array.__cuda_array_interface__.get("stream")


def upload_state(state: State, device: Any) -> State:
    """The arrays of a chain on the device; empty ones get one number, as device memory cannot be empty."""
    return State(*(device.upload(a if a.size > 0 else np.zeros(1, a.dtype)) for a in state))


def check_gradient(gradient: Any, theta: Any, device: Any) -> None:
    """Refuse a gradient of the wrong length or precision, or on another device than the chain."""
    if not device.holds(theta):
        raise ValueError("gradient lives on a GPU, the state on the host; start with the init of an array on the GPU")
    shape, given = tuple(gradient.__cuda_array_interface__["shape"]), gradient.__cuda_array_interface__["typestr"]
    if shape != theta.shape or np.dtype(given) != theta.dtype:
        raise ValueError(f"gradient has shape {shape} and dtype {np.dtype(given)}; give {theta.shape} of {theta.dtype}")


def check(sampler: Any) -> None:
    """Refuse a sampler with a part that looks at all coordinates together."""
    if np.ndim(sampler.scale) == 2:
        raise ValueError("scale is a matrix, which couples all coordinates, and cannot run on a GPU; give a 1-D array")
    for part_of, value in (("thermostat", sampler.thermostat), ("integrator", sampler.integrator)):
        if couples_coordinates(value):
            raise ValueError(
                f"{part_of}={value!r} looks at all coordinates together and cannot run on device arrays; give one that takes "
                "each coordinate by itself, such as NoseHoover(per='coordinate')"
            )


def launch_step(
    device: Any, dynamics: Dynamics, sizes: State, state: State, gradient: Any, noise: Noise, *more: Any
) -> None:
    """One step, in place; `more` is moments, the random stream, the number of the step, the step size before and its own."""
    threads = (sizes.theta + 3) // 4
    arguments = (dynamics, sizes, state, device.adopt(gradient, False), noise, *more)
    device.launch(threads, arguments, device.stream_of(gradient))
