"""Samplers: one stochastic process, put together from parts.

State Γ = (θ, p, ξ), target exp(−H/T) with H = U(θ) + K(p) + F(ξ), F(ξ) = (ξ − μ)²/(2γ), per coordinate:

    dθ = −σ_θ ∇U dt + K'(p) dt                          + √(2 σ_θ T) dW₁
    dp = −∇U dt − ξ K'(p) dt                            + √(2 σ_p T) dW₂
    dξ = γ (K'(p)² − T K''(p)) dt − (σ_ξ/γ)(ξ − μ) dt    + √(2 σ_ξ T) dW₃

Without a thermostat the friction ξ is the constant σ_p; without kinetics only the first line is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from sgmcmc import checks
from sgmcmc.integrators import BAOAB, SymmetricSplitting
from sgmcmc.integrators.flows import is_exact
from sgmcmc.integrators.preconditioning import at
from sgmcmc.integrators.splitting import form_for
from sgmcmc.integrators.state import Dynamics, OneChain
from sgmcmc.kinetics import (
    Gaussian,
    Overdamped,
    curvature,
    energy,
    specialise,
    with_momentum_law,
)
from sgmcmc.samplers.arguments import (
    as_word,
    checked_scale,
    in_precision,
    is_same,
    part_or_default,
    seen_by_kernels,
    show_value,
)
from sgmcmc.samplers.ask_and_tell import AskAndTell, ChainState
from sgmcmc.samplers.composition import check_composition, check_parts, warn_if_stiff
from sgmcmc.schedules import Constant, Schedule, as_schedule
from sgmcmc.thermostats import (
    Crosstalk,
    FixedFriction,
    InferredNoise,
    KnownNoise,
    NoCrosstalk,
    n_variables,
)

__all__ = ["ChainState", "Sampler"]

StepSize = float | Schedule | Callable[[Any], Any]


@dataclass(frozen=True, eq=False, repr=False)
class Sampler(AskAndTell):
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
        self._set("integrator", part_or_default("integrator", as_word(self.integrator), default))
        for name in ("sigma_theta", "sigma_p", "sigma_xi", "noise_estimate"):
            self._set(name, checks.number(name, getattr(self, name), 0.0, 1e300))
        self._set("temperature", checks.number("temperature", self.temperature, 0.0, 1e300, open_low=True))
        self._set("scale", checked_scale(self.scale))
        for name in ("resample_momentum", "resample_thermostat"):
            if getattr(self, name) is not None:
                self._set(name, checks.integer(name, getattr(self, name), 1))
        check_parts(self)
        check_composition(self)
        self._decide_center()
        warn_if_stiff(self)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _decide_center(self) -> None:
        """An adaptive centre where something pulls ξ to it, or where it moves with the step size; elsewhere it is never used."""
        if getattr(self.thermostat, "adaptive", 0.0) < 0.0:
            used = self.sigma_xi > 0.0 or self.resample_thermostat is not None or self.has_schedule
            self._set("thermostat", self.thermostat._replace(adaptive=float(used)))

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
            form_for(
                self.integrator,
                middle=self.resample_momentum is not None or (inferred and self.wants_variance),
                theta_noise=self.sigma_theta > 0.0,
                xi_noise=self.sigma_xi > 0.0 or self.resample_thermostat is not None,
            ),
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
