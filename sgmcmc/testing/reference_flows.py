"""The flows of the process in plain NumPy, each a small method, and the numbers they need: what `Reference` puts together.

A wrong sampler of the validation suite is a subclass with one of these methods wrong.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators.state import Noise, State
from sgmcmc.kinetics import Gaussian
from sgmcmc.samplers import Sampler
from sgmcmc.testing import reference_kinetics as kinetic
from sgmcmc.testing.under_test import describe
from sgmcmc.thermostats import n_variables, sharers

__all__ = ["BEGIN", "FRESH", "THETA", "XI", "P", "ReferenceFlows"]

Array = NDArray[np.float64]
P, THETA, XI, FRESH, BEGIN = range(5)  # what a random number is for: part of its address


class ReferenceFlows:
    """The numbers and the flows of a sampler, with random numbers addressed by (seed, step, purpose)."""

    def __init__(self, sampler: Sampler, name: str | None = None) -> None:
        self.sampler, self.h = sampler, 0.0  # the size of the step that is being taken
        self.name = describe(sampler) if name is None else name
        self.T, self.scale = sampler.temperature, np.asarray(sampler.scale)

    def with_(self, **changes: Any) -> Self:
        return type(self)(replace(self.sampler, **changes), self.name)

    # ---- random numbers --------------------------------------------------------------------------------------------

    def generator(self, seed: int, step: int, purpose: int) -> np.random.Generator:
        return np.random.default_rng((seed, step, purpose))

    def normals(self, shape: tuple[int, ...], seed: int, step: int, purpose: int) -> Array:
        return self.generator(seed, step, purpose).standard_normal(shape)

    def draw_noise(self, state: State, seed: int, step: int) -> Noise:
        return Noise(
            self.normals(state.p.shape, seed, step, P),
            self.normals(state.theta.shape, seed, step, THETA),
            self.normals(state.xi.shape, seed, step, XI),
        )

    def draw_momenta(self, state: State, seed: int) -> Array:
        return self.draw_momentum(self.generator(seed, 0, BEGIN).random(state.p.shape))

    def draw_momentum(self, u: Array) -> Array:
        """p from exp(−K/T), by its quantiles."""
        return kinetic.law(self.sampler.kinetics, self.T).quantile(u)

    def draw_thermostat(self, state: State, normals: Array) -> Array:
        """ξ from N(μ, vT)."""
        xi: Array = self.center(state) + np.sqrt(self.thermostat_variance(state)) * normals
        return xi

    # ---- gradient noise ----------------------------------------------------------------------------------------------

    def center(self, s: State) -> Array:
        """μ, where ξ is pulled to."""
        known = (
            self.sampler.noise_estimate if self.sampler.wants_variance else 0.0
        )  # a fixed centre trusts the estimate
        return np.asarray(self.sampler.sigma_p + (0.5 * self.h * s.variance - known) / self.T)

    def crosstalk(self, s: State) -> Array | float:
        """c of every coordinate."""
        if s.variance.size == 0:
            return 0.0
        c: Array = np.minimum(0.5 * self.sampler.sigma_theta * self.h * s.variance / self.T, 0.9)
        return c

    # ---- parts of the drift and of the noise -------------------------------------------------------------------------

    def velocity(self, p: Array) -> Array:
        return kinetic.velocity(self.sampler.kinetics, p)

    def curvature(self, p: Array) -> Array:
        return kinetic.curvature(self.sampler.kinetics, p)

    def friction(self, state: State) -> Any:
        """The friction on p: ξ, or σ_p without a thermostat."""
        return state.xi if state.xi.size else self.sampler.sigma_p

    def friction_flow(self, p: Array, rate_time: Any) -> Array:
        return kinetic.friction_flow(self.sampler.kinetics, p, rate_time)

    def excess(self, p: Array) -> Array:
        """What drives the thermostat: K'² − TK'', or its mean over the coordinates."""
        excess = self.velocity(p) ** 2 - self.T * self.curvature(p)
        return self.shared(excess)

    def shared(self, excess: Array) -> Array:
        dim = excess.shape[1]
        return excess if n_variables(self.sampler.thermostat, dim) == dim else excess.mean(axis=1, keepdims=True)

    def thermostat_rate(self) -> float:
        return float(self.sampler.thermostat.gamma)

    def thermostat_width(self, state: State) -> float:
        """v with F = (ξ − μ)²/(2v)."""
        return float(self.sampler.thermostat.gamma / sharers(self.sampler.thermostat, state.theta.shape[1]))

    def thermostat_variance(self, state: State) -> float:
        return self.thermostat_width(state) * self.T

    def injected(self) -> float:
        """D = σ_pT − B̂."""
        return self.sampler.sigma_p * self.T - self.sampler.noise_estimate

    def amplitude_p(self, tau: float) -> float:
        return float(np.sqrt(2.0 * self.injected() * tau))

    def amplitude_theta(self, tau: float) -> float:
        return float(np.sqrt(2.0 * self.sampler.sigma_theta * self.T * tau))

    def amplitude_xi(self, state: State, tau: float) -> float:
        temperature = self.thermostat_variance(state) / self.thermostat_width(state)
        return float(np.sqrt(2.0 * self.sampler.sigma_xi * temperature * tau))

    def kick_time(self, before: float, h: float) -> float:
        return 0.5 * (before + h)

    def scaled(self, gradient: Array) -> Array:
        """The gradient for φ = θ/s."""
        force: Array = self.scale * gradient
        return force

    def is_turn(self, period: int | None, step: int) -> bool:
        return period is not None and (step + 1) % period == 0

    # ---- the letters, in place ---------------------------------------------------------------------------------------

    def kick(self, s: State, force: Array, tau: float) -> None:
        s.p[:] -= tau * force

    def add_noise(self, s: State, normals: Array, tau: float) -> None:
        s.p[:] += self.amplitude_p(tau) * normals

    def apply_friction(self, s: State, tau: float, first: bool = True) -> None:
        """F; `first` is whether it stands before the middle of the cycle."""
        s.p[:] = self.friction_flow(s.p, tau * self.friction(s))

    def drift(self, s: State, tau: float) -> None:
        s.theta[:] += (1.0 - 2.0 * self.crosstalk(s)) * self.scale * tau * self.velocity(s.p)
        if s.xi.size:
            s.xi[:] += tau * self.thermostat_rate() * self.excess(s.p)

    def ou_step(self, s: State, normals: Array, tau: float) -> None:
        """O: p ← e^{−λτ}p + √((D/λ)(1 − e^{−2λτ})) n with λ = f/m, or a friction flow on either side of the noise."""
        if not isinstance(self.sampler.kinetics, Gaussian):
            self.apply_friction(s, 0.5 * tau)
            self.add_noise(s, normals, tau)
            self.apply_friction(s, 0.5 * tau)
            return
        rate = np.asarray(self.friction(s) / self.sampler.kinetics.mass)
        safe = np.where(rate == 0.0, 1.0, rate)
        lasting = np.where(rate == 0.0, tau, -np.expm1(-2.0 * safe * tau) / (2.0 * safe))
        s.p[:] = np.exp(-rate * tau) * s.p + self.amplitude_p(1.0) * np.sqrt(lasting) * normals

    def relax_thermostat(self, s: State, normals: Array, tau: float) -> None:
        """X: rate σ_ξ/v, variance vT."""
        decay = np.exp(-self.sampler.sigma_xi * tau / self.thermostat_width(s))
        spread = np.sqrt(self.thermostat_variance(s) * (1.0 - decay**2))
        s.xi[:] = self.center(s) + decay * (s.xi - self.center(s)) + spread * normals

    def move_thermostat(self, s: State, normals: Array, tau: float, step: int) -> None:
        if s.xi.size and self.is_turn(self.sampler.resample_thermostat, step):
            s.xi[:] = self.draw_thermostat(s, normals)
        elif s.xi.size and self.sampler.sigma_xi > 0.0:
            self.relax_thermostat(s, normals, tau)

    def pull(self, s: State, force: Array, tau: float) -> None:
        """θ's own drift, −σ_θg."""
        s.theta[:] -= self.scale * tau * self.sampler.sigma_theta * force

    def end_diffusion(self, s: State, force: Array, tau: float) -> None:
        s.theta[:] += self.scale * s.pending
        self.pull(s, force, tau)

    def begin_diffusion(self, s: State, normals: Array, tau: float) -> None:
        s.pending[:] = 0.5 * self.amplitude_theta(tau) * np.sqrt(1.0 - self.crosstalk(s)) * normals
        s.theta[:] += self.scale * s.pending

    def refresh(self, s: State, step: int, seed: int) -> None:
        s.p[:] = self.draw_momentum(self.generator(seed, step, FRESH).random(s.p.shape))
