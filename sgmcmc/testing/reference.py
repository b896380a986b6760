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

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators import is_explicit
from sgmcmc.integrators.state import Noise, State
from sgmcmc.kinetics import Overdamped
from sgmcmc.testing.reference_flows import ReferenceFlows

__all__ = ["Reference"]

Array = NDArray[np.float64]


class Reference(ReferenceFlows):
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
