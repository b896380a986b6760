"""Ask and tell: a sampler without a loop. `init` gives a state, `step` takes the gradient at it and gives the next one."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from sgmcmc import checks
from sgmcmc.gpu import update as device_step
from sgmcmc.integrators.euler import halves_theta_noise
from sgmcmc.integrators.state import Dynamics, Noise, State
from sgmcmc.integrators.step import draw_momenta, noise_buffers, update_once
from sgmcmc.integrators.threaded import is_long, update_spread
from sgmcmc.kinetics import Overdamped
from sgmcmc.moments import Moments, NoMoments
from sgmcmc.rng import Stream, stream
from sgmcmc.samplers.arguments import contiguous_array, precision
from sgmcmc.schedules import sizes_of
from sgmcmc.thermostats import n_variables
from sgmcmc.threads import usable_cores

__all__ = ["AskAndTell", "ChainState"]

_OTHER_STATE = "state was made by another kind of sampler; start with the init of this one"


class ChainState(NamedTuple):
    """What the next step of a chain needs. Evaluate the gradient at `theta`, which is also the draw."""

    arrays: State
    stream: Stream
    step: int
    before: float  # the step size of the last step
    inferred: bool = False  # whether the variance of the gradient noise is inferred on the way

    @property
    def theta(self) -> NDArray[Any]:
        return self.arrays.theta  # type: ignore[no-any-return]

    @property
    def p(self) -> NDArray[Any]:
        return self.arrays.p  # type: ignore[no-any-return]

    @property
    def xi(self) -> NDArray[Any]:
        return self.arrays.xi  # type: ignore[no-any-return]


class AskAndTell:
    """The methods of a sampler for those who own the loop; `self` is a `Sampler`."""

    def init(
        self: Any,
        theta: ArrayLike,
        seed: int = 0,
        chain: int = 0,
        dtype: DTypeLike | None = None,
        gradient_variance: ArrayLike | None = None,
    ) -> ChainState:
        """Returns the start of one chain: `state.theta` is where the first gradient is wanted.

        Parameters
        ----------
        theta : array (dim,), where the chain starts
        seed, chain : int, the address of its random numbers
        dtype : np.float32 or np.float64; None is that of theta
        gradient_variance : float or array, optional
            Variance of the noise in the gradients to come, a number or one per coordinate; 0 for exact gradients. None:
            it is inferred on the way from the balance of energies, and counts as far as it is known. (It matters to
            samplers with an adaptive centre, such as SGMGT and SGMGT-D, and to no others.)

        Returns
        -------
        ChainState

        Examples
        --------
        >>> sg.SGNHT(0.1).init(np.zeros(2), seed=1).theta
        array([0., 0.])
        """
        on_device = device_step.is_device_array(theta)
        theta = checks.any_array("theta", self._device.download(self._device.adopt(theta)) if on_device else theta)
        if dtype is None:
            dtype = theta.dtype if theta.dtype in (np.float32, np.float64) else np.float64
        start = checks.finite_array("theta", theta, 1).astype(precision(dtype))
        inferred = gradient_variance is None and self.wants_variance
        if inferred and not getattr(self.integrator, "infers_noise", True):
            raise ValueError(
                f"integrator={self.integrator!r} has no middle at which gradient noise could be inferred; give gradient_variance="
            )
        own, state = stream(seed, chain), self.start(start, variance=gradient_variance, inferred=inferred)
        if state.p.size:
            draw_momenta(self.dynamics(start.size, start.dtype), state.p, own)
        if on_device:
            device_step.check(self)
            state = device_step.upload_state(state, self._device)
        return ChainState(state, own, 0, 0.0, inferred)

    def start(
        self: Any, theta: NDArray[Any], p: Any = None, xi: Any = None, variance: Any = None, inferred: bool = False
    ) -> State:
        """Arrays for a chain from θ, or for many from (…, dim); p is 0 (still to be drawn) and ξ = σ_p, unless they are given.

        `variance` is that of the gradient noise, in units of θ; None is 0.
        """
        sizes = self.sizes(theta.shape[-1], inferred)

        def filled(size: int, value: float = 0.0) -> NDArray[Any]:
            return np.full((*theta.shape[:-1], size), value, theta.dtype)

        state = State(
            theta.copy(),
            filled(sizes.p),
            filled(sizes.xi, self.sigma_p),
            filled(sizes.variance),
            filled(sizes.loss),
            filled(sizes.bend),
            filled(sizes.span),
            filled(sizes.pending),
        )
        if p is not None:
            state.p[:] = p
        if xi is not None:
            state.xi[:] = xi
        if variance is not None and self.wants_variance:
            state.variance[:] = self.variance_in_units(variance, theta.shape[-1])
        return state

    def sizes(self: Any, dim: int, inferred: bool = False) -> State:
        """The lengths of a chain's arrays; the kernels trust them."""
        momentum = 0 if isinstance(self.kinetics, Overdamped) else dim
        n_xi = int(n_variables(self.thermostat, dim))
        n_balance = n_xi if inferred else 0
        half_noise = self.sigma_theta > 0.0 and halves_theta_noise(self.integrator)
        return State(dim, momentum, n_xi, n_xi, n_balance, n_balance, n_balance, dim if half_noise else 0)

    def fits(self: Any, state: State, least: int = 0, inferred: bool = False) -> bool:
        """Whether these are the arrays of a chain of such a sampler; on a device none is shorter than 1."""
        wanted = self.sizes(state.theta.size, inferred)
        return State(*(a.size for a in state)) == State(*(max(n, least) for n in wanted))

    def step(
        self: Any, state: ChainState, gradient: ArrayLike, inplace: bool = False, moments: Moments | None = None
    ) -> ChainState:
        """Returns the state one step later, given the gradient of U at `state.theta`.

        Parameters
        ----------
        state : ChainState, from `init` or `step`
        gradient : array (dim,)
            One with ``__cuda_array_interface__`` stays where it is: the state then lives on the device too.
        inplace : bool, whether the arrays of `state` are reused
        moments : Moments, optional
            Takes the position that the step arrives at into a running mean and variance.

        Returns
        -------
        ChainState

        Examples
        --------
        >>> sampler = sg.SGNHT(0.1)
        >>> state = sampler.init(np.zeros(2), seed=1)
        >>> sampler.step(state, gradient=state.theta).step
        1
        """
        if not isinstance(state, ChainState):
            raise TypeError(f"state={checks.show(state)} is no state of a chain; give what init or step returned")
        if not isinstance(inplace, bool | np.bool_):
            raise TypeError(f"inplace={checks.show(inplace)} is neither True nor False")
        theta = state.arrays.theta
        if moments is not None and not isinstance(moments, Moments):
            raise TypeError(f"moments={checks.show(moments)} cannot be updated; give a value of sg.Moments(), or None")
        if device_step.is_device_array(gradient):
            return self._step_on_device(state, gradient, inplace, moments)  # type: ignore[no-any-return]
        if device_step.is_device_array(theta):
            raise ValueError("state lives on a GPU, the gradient on the host; give one with __cuda_array_interface__")
        g = contiguous_array("gradient", gradient, theta.dtype)
        if g.shape != theta.shape:
            raise ValueError(f"gradient has shape {g.shape}; give one number for each of the {theta.size} coordinates")
        if not self.fits(state.arrays, inferred=state.inferred):
            raise ValueError(_OTHER_STATE)
        arrays = state.arrays if inplace else State(*(a.copy() for a in state.arrays))
        dynamics = self._dynamics_on_host(theta.size, theta.dtype, state.inferred)
        h = theta.dtype.type(sizes_of(self.schedule, np.array([state.step]))[0])
        place = (state.stream, np.int64(state.step), theta.dtype.type(state.before), h)
        running = NoMoments() if moments is None else moments.next(theta.size, False, np.array)
        if is_long(dynamics, theta.size):
            update_spread(dynamics, arrays, g, running, *place, usable_cores())
        else:
            update_once(dynamics, arrays, g, noise_buffers(dynamics, theta.size, theta.dtype), running, *place)
        return ChainState(arrays, state.stream, state.step + 1, float(h), state.inferred)

    def _dynamics_on_host(self: Any, dim: int, dtype: Any, inferred: bool) -> Dynamics:
        """`dynamics`, kept for the next step: a long `scale` is not converted every time."""
        found = self._on_host.get((dim, dtype, inferred))
        if found is None:
            found = self.dynamics(dim, dtype, inferred)
            self._on_host.clear()
            self._on_host[dim, dtype, inferred] = found
        return found  # type: ignore[no-any-return]

    @cached_property
    def _on_host(self) -> dict[Any, Dynamics]:
        return {}

    @cached_property
    def _device(self) -> Any:
        return device_step.Device()

    @cached_property
    def _on_device(self) -> dict[Any, Any]:
        return {}  # what a device holds of this sampler, by size, precision, device and stream

    def _step_on_device(
        self: Any, state: ChainState, gradient: Any, inplace: bool, moments: Moments | None
    ) -> ChainState:
        theta, device = state.arrays.theta, self._device
        dim, kind = theta.size, theta.dtype
        device_step.check_gradient(gradient, theta, device)
        if not self.fits(state.arrays, least=1, inferred=state.inferred):
            raise ValueError(_OTHER_STATE)
        key = dim, kind, state.inferred, *device.place_of(gradient)
        if key not in self._on_device:
            dynamics = self.dynamics(dim, kind, state.inferred)
            room = Noise(*(device.upload(np.zeros(dim, kind)) for _ in range(3)))
            self._on_device[key] = device_step.uploaded(dynamics, device.upload), room
        dynamics, room = self._on_device[key]
        own_stream = device.stream_of(gradient)
        arrays = state.arrays if inplace else State(*(device.duplicate(a, own_stream) for a in state.arrays))
        h = kind.type(sizes_of(self.schedule, np.array([state.step]))[0])
        place = (state.stream, np.int64(state.step), kind.type(state.before), h)
        running = NoMoments() if moments is None else moments.next(dim, True, device.upload)
        device_step.launch_step(
            device, dynamics, self.sizes(dim, state.inferred), arrays, gradient, room, running, *place
        )
        return ChainState(arrays, state.stream, state.step + 1, float(h), state.inferred)
