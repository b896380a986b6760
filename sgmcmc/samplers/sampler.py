"""Samplers: one stochastic process, put together from parts.

State Γ = (θ, p, ξ), target exp(−H/T) with H = U(θ) + K(p) + F(ξ), F(ξ) = (ξ − μ)²/(2γ), per coordinate:

    dθ = −σ_θ ∇U dt + K'(p) dt                          + √(2 σ_θ T) dW₁
    dp = −∇U dt − ξ K'(p) dt                            + √(2 σ_p T) dW₂
    dξ = γ (K'(p)² − T K''(p)) dt − (σ_ξ/γ)(ξ − μ) dt    + √(2 σ_ξ T) dW₃

Without a thermostat the friction ξ is the constant σ_p; without kinetics only the first line is left.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from sgmcmc import checks
from sgmcmc.gpu import update as device_step
from sgmcmc.integrators import BAOAB, Splitting, SymmetricSplitting, advance
from sgmcmc.integrators.euler import halves_theta_noise
from sgmcmc.integrators.flows import is_exact
from sgmcmc.integrators.joint import joint_flow
from sgmcmc.integrators.preconditioning import at
from sgmcmc.integrators.splitting import uninterrupted
from sgmcmc.integrators.state import Dynamics, Noise, OneChain, State
from sgmcmc.integrators.step import draw_momenta, noise_buffers, update_once
from sgmcmc.integrators.threaded import is_long, update_spread
from sgmcmc.kinetics import (
    Gaussian,
    MonomialGamma,
    Overdamped,
    curvature,
    energy,
    specialise,
    velocity,
    with_momentum_law,
)
from sgmcmc.moments import Moments, NoMoments
from sgmcmc.rng import Stream, stream
from sgmcmc.samplers.arguments import (
    checked_scale,
    contiguous_array,
    in_precision,
    is_same,
    part_or_default,
    precision,
    seen_by_kernels,
    show_value,
)
from sgmcmc.schedules import Constant, Schedule, as_schedule, longest_of, sizes_of
from sgmcmc.thermostats import (
    Crosstalk,
    FixedFriction,
    InferredNoise,
    KnownNoise,
    NoCrosstalk,
    drive,
    friction,
    has_variables,
    n_variables,
    relax,
    resample,
)
from sgmcmc.threads import usable_cores

__all__ = ["ChainState", "Sampler"]

_OTHER_STATE = "state was made by another kind of sampler; start with the init of this one"
StepSize = float | Schedule | Callable[[Any], Any]


@dataclass(frozen=True, eq=False, repr=False)
class Sampler:
    """A sampler composed by hand; SGLD, SGHMC, SGNHT, SGMGT and SGMGTD are such compositions.

    Parameters
    ----------
    step_size : float, schedule or callable
        A number, a schedule of `sgmcmc.schedules` or of your own, or a function of the step number.
    kinetics : NamedTuple, optional
        A value of `sgmcmc.kinetics`, a type of your own, or None for overdamped dynamics (no momentum).
    thermostat : NamedTuple, optional
        `sgmcmc.thermostats.NoseHoover(...)`, a type of your own, or None for the constant friction sigma_p.
    integrator : str or NamedTuple, optional
        A word of flows such as "OBABO", a value of `sgmcmc.integrators`, or a type of your own; None is BAOAB for Gaussian
        kinetics, SymmetricSplitting otherwise.
    sigma_theta, sigma_p, sigma_xi : float
        Diffusion of θ, p and ξ; each brings its own drift, so that the law stays right.
    temperature : float, above 0
        T; the target is exp(−U/T).
    scale : float, array, NamedTuple or "auto"
        A number, or an array with one entry per coordinate: the chain runs in θ/scale (diagonal preconditioning); or a
        square matrix S: it runs in S⁻¹θ, for posteriors whose coordinates depend on each other (2 d² products a step); or a
        type of your own with `at`.
        "auto": `sample` measures it before the run, so that the posterior has a spread of about 1 and 0.1 is a usual
        step.
    noise_estimate : float
        B̂, the diffusion that gradient noise brings by itself (h/2 times its variance); so much less is injected.
    resample_momentum, resample_thermostat : int or None
        Draw p, ξ afresh from their invariant laws every so many steps; None is never.

    Examples
    --------
    >>> sg.Sampler(0.1, kinetics=sg.kinetics.Relativistic(), integrator=sg.integrators.Euler())
    Sampler(step_size=0.1, kinetics=Relativistic(mass=1.0, speed=1.0), integrator=Euler())
    """

    step_size: StepSize
    kinetics: Any = Gaussian()  # noqa: RUF009  a NamedTuple is immutable
    thermostat: Any = None
    integrator: Any = None
    sigma_theta: float = 0.0
    sigma_p: float = 1.0
    sigma_xi: float = 0.0
    temperature: float = 1.0
    scale: Any = 1.0
    noise_estimate: float = 0.0
    resample_momentum: int | None = None
    resample_thermostat: int | None = None

    def __post_init__(self) -> None:
        as_schedule(self.step_size)
        self._set("kinetics", part_or_default("kinetics", self.kinetics, Overdamped()))
        self._set("thermostat", part_or_default("thermostat", self.thermostat, FixedFriction()))
        default = BAOAB() if isinstance(self.kinetics, Overdamped) or is_exact(self.kinetics) else SymmetricSplitting()
        given = Splitting(self.integrator) if isinstance(self.integrator, str) else self.integrator
        self._set("integrator", part_or_default("integrator", given, default))
        for name in ("sigma_theta", "sigma_p", "sigma_xi", "noise_estimate"):
            self._set(name, checks.number(name, getattr(self, name), 0.0, 1e300))
        self._set("temperature", checks.number("temperature", self.temperature, 0.0, 1e300, open_low=True))
        self._set("scale", checked_scale(self.scale))
        for name in ("resample_momentum", "resample_thermostat"):
            if getattr(self, name) is not None:
                self._set(name, checks.integer(name, getattr(self, name), 1))
        self._check_parts()
        self._check_composition()
        self._decide_center()
        self._warn_if_stiff()

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_parts(self) -> None:
        """A part of your own lacks nothing that a kernel would ask of it."""
        if not isinstance(self.kinetics, Overdamped):
            for function in (energy, velocity, curvature):
                function.require(self.kinetics)
        for function in (n_variables, friction, drive, relax, resample):
            function.require(self.thermostat)
        advance.require(self.integrator, self.kinetics)
        if "U" in getattr(self.integrator, "word", "") and not joint_flow.has(self.kinetics, self.thermostat):
            raise ValueError(
                f"integrator={self.integrator!r} has U, which is solved for kinetics=Gaussian() with thermostat=None; "
                "give these, or a word with A and O"
            )
        if self._n_normals > 1 and self.sigma_theta > 0.0:
            raise ValueError(
                f"integrator={self.integrator!r} takes two normals for each momentum, and sigma_theta={self.sigma_theta:g} "
                "would need a third; give sigma_theta=0, or a word with one of N, O such as 'BAOAB'"
            )

    def _check_composition(self) -> None:
        if self.noise_estimate > self.sigma_p * self.temperature:
            raise ValueError(
                f"noise_estimate={self.noise_estimate:g} is more than sigma_p·temperature = "
                f"{self.sigma_p * self.temperature:g}, all the noise there is to inject; raise the friction or lower it"
            )
        if not has_variables(self.thermostat):
            for name in ("sigma_xi", "resample_thermostat"):
                if getattr(self, name):
                    raise ValueError(
                        f"{name}={getattr(self, name)} needs a thermostat; give thermostat=NoseHoover(...)"
                    )
        if isinstance(self.kinetics, Overdamped):
            if self.sigma_theta == 0.0:
                raise ValueError("sigma_theta=0.0 without kinetics leaves nothing that moves; give sigma_theta above 0")
            if has_variables(self.thermostat) or self.resample_momentum:
                raise ValueError(
                    "kinetics=None has no momentum for a thermostat or resample_momentum to act on; leave them out"
                )
        elif self.sigma_theta + self.sigma_p == 0.0 and not self.resample_momentum:
            raise ValueError(
                "sigma_theta=0, sigma_p=0 and no resample_momentum leave no noise; give one of them above 0"
            )

    def _decide_center(self) -> None:
        """An adaptive centre where something pulls ξ to it, or where it moves with the step size; elsewhere it is never used."""
        if getattr(self.thermostat, "adaptive", 0.0) < 0.0:
            used = self.sigma_xi > 0.0 or self.resample_thermostat is not None or self.has_schedule
            self._set("thermostat", self.thermostat._replace(adaptive=float(used)))

    def _warn_if_stiff(self) -> None:
        """A kinetics is a spring of stiffness K'', at most that near p = 0, and the step must resolve how friction stops it.

        (Whether it resolves how the posterior's forces move it, h²U''K'', is seen when there are draws: `bias.foreseen`.)
        """
        longest = longest_of(self.schedule)
        if not isinstance(self.kinetics, MonomialGamma) or longest is None:
            return
        stiffness = self.stiffest * longest * self.sigma_p
        if not stiffness <= 0.3 * (1.0 + 1e-9):
            units = (
                "" if not isinstance(self.scale, float) or self.scale != 1.0 else '; or scale="auto" with step_size=0.1'
            )
            warnings.warn(
                f"step_size·sigma_p·max K'' = {stiffness:.2g}: above 0.3 the variance may be off by some per cent; take a "
                f"smaller step, a smaller softening, a larger mass or less friction{units}",
                UserWarning,
                stacklevel=4,
            )

    @property
    def _n_normals(self) -> int:
        return int(getattr(self.integrator, "normals", 1))

    @property
    def schedule(self) -> Any:
        return as_schedule(self.step_size)

    @property
    def has_schedule(self) -> bool:
        """Whether the step size changes in the course of a run."""
        return not isinstance(self.schedule, Constant)

    @property
    def wants_variance(self) -> bool:
        """Whether the variance of the gradient noise enters the dynamics: its centre is adaptive."""
        return bool(getattr(self.thermostat, "adaptive", 0.0) > 0.0)

    @cached_property
    def stiffest(self) -> float:
        """The largest K'', that at p = 0 for the smooth kinetics; NaN if it is so large that its formula overflows."""
        with np.errstate(all="ignore"):
            bends = [float(curvature(self.kinetics, p)) for p in (1e-12, *np.geomspace(1e-3, 30.0, 40))]
        return max(bends) if np.isfinite(bends).all() else float("nan")

    @cached_property
    def bend(self) -> float:
        """E[K''] over the momenta, an inverse mass; 0 without kinetics. A sum over log p, right to about 1e-3."""
        if not self.sizes(1).p:
            return 0.0

        def weights(p: NDArray[np.float64]) -> NDArray[np.float64]:
            K = np.array([float(energy(self.kinetics, x)) for x in p])
            return np.asarray(np.nan_to_num(np.exp((np.nanmin(K) - K) / self.temperature) * p))

        with np.errstate(all="ignore"):
            coarse = np.geomspace(1e-8, 1e12, 21)
            found = np.flatnonzero((w := weights(coarse)) > 1e-6 * w.max())
            p = np.geomspace(0.1 * coarse[found[0]], 10.0 * coarse[found[-1]], 5 * (found[-1] - found[0] + 2) + 1)
            bends = np.nan_to_num([float(curvature(self.kinetics, x)) for x in p], posinf=0.0, neginf=0.0)
            w = weights(p)
        return float((w * bends).sum() / w.sum())

    @property
    def relaxation(self) -> float:
        """About how fast friction alone lets a momentum forget: σ_p E[K'']."""
        return self.sigma_p * max(self.bend, 0.0)

    def __repr__(self) -> str:
        shown = []
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, FixedFriction | Overdamped):
                value = None
            if field.name in ("step_size", "kinetics", "integrator") or not is_same(value, field.default):
                shown.append(f"{field.name}={show_value(value)}")
        return f"Sampler({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sampler):
            return NotImplemented
        return all(is_same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        """What was given, for a pickle or a copy; what was worked out from it can be worked out again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    # ---- what the kernels see --------------------------------------------------------------------------------------

    def dynamics(self, dim: int, dtype: DTypeLike = np.float64, inferred: bool = False) -> Dynamics:
        """Returns the parts and numbers of this sampler in the precision of a run, for `dim` coordinates.

        Parameters
        ----------
        dim : int
        dtype : np.float32 or np.float64
        inferred : bool, whether the variance of the gradient noise is inferred from the balance of energies, or known
        """
        value = Dynamics(
            self._kinetics_with_law,
            self.thermostat,
            self.integrator
            if self.resample_momentum or (inferred and self.wants_variance)
            else uninterrupted(self.integrator),
            seen_by_kernels(self.scale_values(dim)),
            self.sigma_theta,
            self.sigma_p,
            self.sigma_xi,
            self.temperature,
            self.noise_estimate,
            0 if self.resample_momentum is None else self.resample_momentum,
            0 if self.resample_thermostat is None else self.resample_thermostat,
            self._n_normals,
            InferredNoise() if inferred else KnownNoise(),
            Crosstalk() if self.sigma_theta > 0.0 and self.wants_variance else NoCrosstalk(),
            OneChain(),
        )
        return in_precision(value, dtype)  # type: ignore[no-any-return]

    @cached_property
    def _kinetics_with_law(self) -> Any:
        return with_momentum_law(specialise(self.kinetics), self.temperature)  # for your own a table, made once

    # ---- ask and tell ----------------------------------------------------------------------------------------------

    def init(
        self,
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
        self, theta: NDArray[Any], p: Any = None, xi: Any = None, variance: Any = None, inferred: bool = False
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

    def scale_values(self, dim: int) -> Any:
        """The scale of `dim` coordinates: a number, one for each coordinate, or a matrix."""
        if isinstance(self.scale, str):
            raise ValueError("scale='auto' is measured by sample before its run; give numbers here")
        if isinstance(self.scale, tuple):
            return np.array([float(at(self.scale, i)) for i in range(dim)])
        if isinstance(self.scale, np.ndarray) and self.scale.shape not in ((dim,), (dim, dim)):
            raise ValueError(
                f"scale has shape {self.scale.shape}; give one number, one for each of {dim} coordinates, or a matrix"
            )
        return self.scale

    def variance_in_units(self, variance: ArrayLike, dim: int) -> NDArray[np.float64]:
        """The variance of gradient noise that is independent in every coordinate of θ, in the chain's units, one per ξ."""
        given = checks.finite_array("gradient_variance", variance)
        if given.shape not in ((), (dim,)) or not (given >= 0.0).all():
            raise ValueError(
                f"gradient_variance has shape {given.shape} and goes down to {given.min(initial=0.0):g}; give one number "
                f"of at least 0, or one for each of {dim} coordinates"
            )
        each = np.broadcast_to(given, (dim,))
        scale = np.asarray(self.scale_values(dim))
        own = each @ scale**2 if scale.ndim == 2 else each * scale**2
        return np.asarray(own if n_variables(self.thermostat, dim) == dim else own.mean(keepdims=True))

    def sizes(self, dim: int, inferred: bool = False) -> State:
        """The lengths of a chain's arrays; the kernels trust them."""
        momentum = 0 if isinstance(self.kinetics, Overdamped) else dim
        n_xi = int(n_variables(self.thermostat, dim))
        n_balance = n_xi if inferred else 0
        half_noise = self.sigma_theta > 0.0 and halves_theta_noise(self.integrator)
        return State(dim, momentum, n_xi, n_xi, n_balance, n_balance, n_balance, dim if half_noise else 0)

    def fits(self, state: State, least: int = 0, inferred: bool = False) -> bool:
        """Whether these are the arrays of a chain of such a sampler; on a device none is shorter than 1."""
        wanted = self.sizes(state.theta.size, inferred)
        return State(*(a.size for a in state)) == State(*(max(n, least) for n in wanted))

    def step(
        self, state: ChainState, gradient: ArrayLike, inplace: bool = False, moments: Moments | None = None
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
            return self._step_on_device(state, gradient, inplace, moments)
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

    def _dynamics_on_host(self, dim: int, dtype: Any, inferred: bool) -> Dynamics:
        """`dynamics`, kept for the next step: a long `scale` is not converted every time."""
        found = self._on_host.get((dim, dtype, inferred))
        if found is None:
            found = self.dynamics(dim, dtype, inferred)
            self._on_host.clear()
            self._on_host[dim, dtype, inferred] = found
        return found

    @cached_property
    def _on_host(self) -> dict[Any, Dynamics]:
        return {}

    @cached_property
    def _device(self) -> Any:
        return device_step.Device()

    @cached_property
    def _on_device(self) -> dict[Any, Any]:
        return {}  # what a device holds of this sampler, by size, precision, device and stream

    def _step_on_device(self, state: ChainState, gradient: Any, inplace: bool, moments: Moments | None) -> ChainState:
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
