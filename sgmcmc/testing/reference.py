"""The process of this package written a second time, in plain NumPy, from its equations.

`Reference` moves copies of a chain as `Kernel` does, on the same normals, and must agree with it to rounding: two programs
with nothing in common but the mathematics. It is made of small methods, so that a wrong sampler (see mutants.py) is a
subclass with one method wrong. A splitting is read flow by flow off the cycle of its word, cut at the gradient, with
w = (h_before + h)/2:

    BNFAFNB   θ += pending − wσ_θg;  X(w);  p += −wg + √(2Dw) n;  F(h/2) A(h) F(h/2);   θ += pending = ½√(2σ_θTh) n
    BAOAB     θ += pending − wσ_θg;  X(w);  p += −wg;             A(h/2) O(h) A(h/2);   θ += pending = ½√(2σ_θTh) n
    Euler     all drifts at the old state

with A: θ += τK'(p), ξ += τγ(K'² − TK'');  F: dp = −ξK'(p)dt;  O: F and noise;  X: the Ornstein–Uhlenbeck process of ξ.
Gradient noise of variance V, which the state has, moves the centre of ξ to σ_p − B̂/T + hV/(2T) and ξ with it where h changes;
with c = σ_θhV/(2T), A moves θ by (1 − 2c)τK'(p), and pending is √(1 − c) times as large.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators import is_explicit
from sgmcmc.integrators.state import Noise, State
from sgmcmc.kinetics import Gaussian, Overdamped
from sgmcmc.samplers import Sampler
from sgmcmc.testing import reference_kinetics as kinetic
from sgmcmc.testing.under_test import describe
from sgmcmc.thermostats import n_variables, sharers

__all__ = ["Reference"]

Array = NDArray[np.float64]
P, THETA, XI, FRESH, BEGIN = range(5)  # what a random number is for: part of its address


class Reference:
    """A sampler of this package in NumPy: a `Subject`, with its own random numbers, addressed by (seed, step, purpose).

    Parameters
    ----------
    sampler : Sampler
    name : str, optional

    Examples
    --------
    >>> sg.testing.Reference(sg.SGHMC(0.1)).start(np.zeros((5, 2))).theta.shape
    (5, 2)
    """

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

    # ---- a step --------------------------------------------------------------------------------------------------------

    def start(self, theta: Array, p: Array | None = None, xi: Array | None = None) -> State:
        copies, dim = np.shape(theta)
        sizes = self.sampler.sizes(dim)
        zeros = {name: np.zeros((copies, size)) for name, size in zip(State._fields, sizes, strict=True)}
        state = State(**zeros)
        state.theta[:] = theta
        state.xi[:] = self.start_of_thermostat(xi)
        if p is not None:
            state.p[:] = p
        return state

    def start_of_thermostat(self, xi: Array | None) -> Array | float:
        return self.sampler.sigma_p if xi is None else xi

    def move(
        self, state: State, gradient: Array, noise: Noise, before: float, h: float, step: int = 1, seed: int = 0
    ) -> State:
        s, self.h = State(*(a.copy() for a in state)), h
        if h != before and before > 0.0 and h > 0.0 and s.xi.size:
            s.xi[:] += 0.5 * (h - before) * s.variance / self.T
        force = self.scaled(gradient)
        if is_explicit(self.sampler.integrator):
            self.euler(s, force, noise, h, step, seed)
            return s
        w = self.kick_time(before, h)
        if s.pending.size:
            self.end_diffusion(s, force, w)
        if not isinstance(self.sampler.kinetics, Overdamped):
            self.follow(s, force, noise, before, h, step, seed)
        if s.pending.size:
            self.begin_diffusion(s, noise.theta, h)
        return s

    def follow(self, s: State, force: Array, noise: Noise, before: float, h: float, step: int, seed: int) -> None:
        """The flows of the word, one after another, with fresh momenta at the middle of the cycle."""
        cycle, normals = self.sampler.integrator.cycle, [noise.p, noise.theta]
        resampling = self.is_turn(self.sampler.resample_momentum, step)
        in_middle = not any("X" in f.letters for f in cycle.flows)  # then ξ gets its noise there
        for i, f in enumerate(cycle.flows):
            tau, is_middle = f.before * before + f.own * h, i == cycle.middle
            halves = 2 if is_middle and (f.letters == "A" or (resampling and f.letters == "U")) else 1
            for half in range(halves):
                if half == 1:
                    if in_middle:
                        self.move_thermostat(s, noise.xi, tau, step)
                    if resampling:
                        self.refresh(s, step, seed)
                if halves == 2:
                    self.drift(s, 0.5 * tau)
                elif is_middle and f.letters == "O" and resampling:
                    self.refresh(s, step, seed)
                else:
                    self.flow(s, f.letters, tau, force, noise, normals, step, cycle.middle is None or i < cycle.middle)
        if cycle.middle is None and resampling:
            self.refresh(s, step, seed)

    def flow(
        self,
        s: State,
        letters: str,
        tau: float,
        force: Array,
        noise: Noise,
        normals: list[Array],
        step: int,
        first: bool,
    ) -> None:
        """Flows that commute, of which each is one letter."""
        if "X" in letters:
            self.move_thermostat(s, noise.xi, tau, step)
        if "B" in letters:
            self.kick(s, force, tau)
        if "N" in letters:
            self.add_noise(s, normals.pop(0), tau)
        if letters == "F":
            self.apply_friction(s, tau, first)
        if letters == "A":
            self.drift(s, tau)
        if letters == "O":
            self.ou_step(s, normals.pop(0), tau)
        if letters == "U":
            self.joint(s, normals, tau)

    def joint(self, s: State, normals: list[Array], tau: float) -> None:
        """U: the Gaussian law of (φ, p) after a time τ, by the exponential of its drift and the integral of its covariance."""
        from scipy.linalg import cholesky, expm

        m, D = self.sampler.kinetics.mass, self.injected()
        drift = np.array([[0.0, 1.0 / m], [0.0, -self.sampler.sigma_p / m]])
        block = np.zeros((4, 4))  # Van Loan: expm of [[−A, Q], [0, Aᵀ]] has the covariance in it
        block[:2, :2], block[2:, 2:], block[1, 3] = -drift, drift.T, 2.0 * D
        whole = expm(block * tau)
        move = whole[2:, 2:].T
        covariance = move @ whole[:2, 2:]
        root = cholesky(covariance[::-1, ::-1], lower=True) if tau > 0.0 and D > 0.0 else np.zeros((2, 2))  # p first
        p = s.p.copy()
        s.p[:] = move[1, 1] * p + root[0, 0] * normals[0]
        s.theta[:] += self.scale * (move[0, 1] * p + root[1, 0] * normals[0] + root[1, 1] * normals[1])

    def euler(self, s: State, force: Array, noise: Noise, h: float, step: int, seed: int) -> None:
        if isinstance(self.sampler.kinetics, Overdamped):
            self.pull(s, force, h)
            s.theta[:] += self.scale * self.amplitude_theta(h) * noise.theta
            return
        p, friction = s.p.copy(), np.copy(self.friction(s))
        if s.xi.size:
            pull = self.sampler.sigma_xi * (s.xi - self.center(s)) / self.thermostat_width(s)
            heat = h * (self.thermostat_rate() * self.excess(p) - pull)
            s.xi[:] += heat + self.amplitude_xi(s, h) * noise.xi
        self.pull(s, force, h)
        s.theta[:] += self.scale * (h * self.velocity(p) + self.amplitude_theta(h) * noise.theta)
        s.p[:] -= h * friction * self.velocity(p)
        self.kick(s, force, h)
        self.add_noise(s, noise.p, h)
        if s.xi.size and self.is_turn(self.sampler.resample_thermostat, step):
            s.xi[:] = self.draw_thermostat(s, noise.xi)
        if self.is_turn(self.sampler.resample_momentum, step):
            self.refresh(s, step, seed)
