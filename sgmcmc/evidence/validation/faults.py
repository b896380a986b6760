"""Deliberately wrong samplers: the reference with one method wrong, and a size of the error.

Most are errors that published code has had. `size` 0 is the right sampler; where an error has no natural size, the update lies
the fraction `size` of the way from the right one to the wrong one, so that 1 is the error in full.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators.state import Noise, State
from sgmcmc.samplers import Sampler
from sgmcmc.testing import reference_kinetics as kinetic
from sgmcmc.testing.reference import Reference
from sgmcmc.testing.reference_flows import THETA, XI, P

Array = NDArray[np.float64]


class Wrong(Reference):
    """A sampler with an error of this size."""

    def __init__(self, sampler: Sampler, name: str | None = None, size: float = 1.0) -> None:
        super().__init__(sampler, name)
        self.size = size

    def with_(self, **changes: Any) -> Self:
        return type(self)(replace(self.sampler, **changes), self.name, self.size)

    def blend(self, right: Any, wrong: Any) -> Any:
        return right + self.size * (wrong - right)


# ---- friction and the noise of p -------------------------------------------------------------------------------------


class StrongFriction(Wrong):
    """Friction too large by the fraction `size`, with the noise as it was."""

    def friction(self, state: State) -> Any:
        return (1.0 + self.size) * super().friction(state)


class DoubleFriction(Wrong):
    """σ_p + ξ, though ξ is the whole friction already."""

    def friction(self, state: State) -> Any:
        return super().friction(state) + self.size * self.sampler.sigma_p


class LoudNoise(Wrong):
    """The noise of p too large by the fraction `size`."""

    def amplitude_p(self, tau: float) -> float:
        return (1.0 + self.size) * super().amplitude_p(tau)


class NoiseLikeTime(Wrong):
    """√(2D)·h for √(2Dh)."""

    def amplitude_p(self, tau: float) -> float:
        return float(self.blend(super().amplitude_p(tau), super().amplitude_p(1.0) * tau))


class NoiseLikeFriction(Wrong):
    """Noise proportional to the friction instead of its root."""

    def amplitude_p(self, tau: float) -> float:
        return float(super().amplitude_p(tau) * self.blend(1.0, np.sqrt(self.sampler.sigma_p)))


class ColdNoise(Wrong):
    """√(2σ_ph) for √(2σ_pTh)."""

    def injected(self) -> float:
        return float(self.sampler.sigma_p * self.blend(self.T, 1.0) - self.sampler.noise_estimate)


class EstimateTwice(Wrong):
    """B̂ taken off the injected noise twice."""

    def injected(self) -> float:
        return super().injected() - self.size * self.sampler.noise_estimate


class FirstOrderO(Wrong):
    """p ← (1 − λh)p + √(2Dh) n in the place of the exact Ornstein–Uhlenbeck step."""

    def ou_step(self, s: State, normals: Array, tau: float) -> None:
        p = s.p.copy()
        super().ou_step(s, normals, tau)
        rate = self.friction(s) / self.sampler.kinetics.mass
        s.p[:] = self.blend(s.p.copy(), (1.0 - rate * tau) * p + self.amplitude_p(tau) * normals)


class Lopsided(Wrong):
    """All of the friction before the drift, none after: each step is right to first order only."""

    def apply_friction(self, s: State, tau: float, first: bool = True) -> None:
        super().apply_friction(s, tau * (1.0 + self.size if first else 1.0 - self.size), first)


# ---- K' and the gradient ---------------------------------------------------------------------------------------------


class MasslessVelocity(Wrong):
    """dθ = p dt, whatever the mass."""

    def velocity(self, p: Array) -> Array:
        wrong: Array = self.blend(super().velocity(p), p)
        return wrong


class StiffVelocity(Wrong):
    """K' of the law without softening, with momenta of the softened one."""

    def velocity(self, p: Array) -> Array:
        stiff = self.sampler.kinetics._replace(softening=np.inf)
        wrong: Array = self.blend(super().velocity(p), kinetic.velocity(stiff, p))
        return wrong


class HalfKickMissing(Wrong):
    """The half of the kick that belongs to the step before is left out."""

    def kick(self, s: State, force: Array, tau: float) -> None:
        super().kick(s, force, (1.0 - 0.5 * self.size) * tau)


class ScaleNotInGradient(Wrong):
    """θ = sφ, but the gradient by θ is taken for that by φ."""

    def scaled(self, gradient: Array) -> Array:
        force: Array = self.blend(super().scaled(gradient), gradient)
        return force


# ---- θ's own diffusion -----------------------------------------------------------------------------------------------


class WeakPull(Wrong):
    """The drift −σ_θ∇U times 1 − size: 1 has none, 2 the wrong sign, ½ takes ε for ε/2."""

    def pull(self, s: State, force: Array, tau: float) -> None:
        super().pull(s, force, (1.0 - self.size) * tau)


class FrozenGradient(Wrong):
    """The gradient is taken before any of the noise instead of halfway through."""

    def begin_diffusion(self, s: State, normals: Array, tau: float) -> None:
        half = 0.5 * self.amplitude_theta(tau) * normals
        s.theta[:] += self.scale * (1.0 - self.size) * half
        s.pending[:] = (1.0 + self.size) * half


class ScaleNotInNoise(Wrong):
    """The noise of θ is not multiplied by its scale."""

    def amplitude_theta(self, tau: float) -> float:
        amplitude = super().amplitude_theta(tau)
        return float(self.blend(amplitude, amplitude / float(self.scale)))


class HalfVariance(Wrong):
    """√(σ_θTh) for √(2σ_θTh)."""

    def amplitude_theta(self, tau: float) -> float:
        return float(super().amplitude_theta(tau) * self.blend(1.0, np.sqrt(0.5)))


# ---- fresh momenta ---------------------------------------------------------------------------------------------------


class ColdMomenta(Wrong):
    """Fresh momenta from exp(−K), whatever T is."""

    def draw_momentum(self, u: Array) -> Array:
        wrong: Array = self.blend(super().draw_momentum(u), kinetic.law(self.sampler.kinetics, 1.0).quantile(u))
        return wrong


class MomentaTimesT(Wrong):
    """T times a draw at temperature 1, where √T is meant."""

    def draw_momentum(self, u: Array) -> Array:
        one = kinetic.law(self.sampler.kinetics, 1.0).quantile(u)
        wrong: Array = self.blend(super().draw_momentum(u), self.T * one)
        return wrong


class StiffMomenta(Wrong):
    """Fresh momenta of the law without softening."""

    def draw_momentum(self, u: Array) -> Array:
        stiff = kinetic.law(self.sampler.kinetics._replace(softening=np.inf), self.T)
        wrong: Array = self.blend(super().draw_momentum(u), stiff.quantile(u))
        return wrong


class OneSidedMomenta(Wrong):
    """|p| for p."""

    def draw_momentum(self, u: Array) -> Array:
        p = super().draw_momentum(u)
        wrong: Array = self.blend(p, np.abs(p))
        return wrong


# ---- random numbers used twice: `size` is the correlation ------------------------------------------------------------


class SharedByVariables(Wrong):
    """The normals of p are used for θ again."""

    def draw_noise(self, state: State, seed: int, step: int) -> Noise:
        noise = super().draw_noise(state, seed, step)
        return noise._replace(theta=self.size * noise.p + np.sqrt(1.0 - self.size**2) * noise.theta)


class SharedBySteps(Wrong):
    """Every second step uses the normals of the one before."""

    def draw_noise(self, state: State, seed: int, step: int) -> Noise:
        own, used = super().draw_noise(state, seed, step), super().draw_noise(state, seed, step - step % 2)
        again = self.size if step % 2 else 0.0
        return Noise(*(again * b + np.sqrt(1.0 - again**2) * a for a, b in zip(own, used, strict=True)))


class SharedByChains(Wrong):
    """All chains use the same normals."""

    def draw_noise(self, state: State, seed: int, step: int) -> Noise:
        noise = super().draw_noise(state, seed, step)
        common = [self.normals((1, n.shape[1]), seed, step, 10 + k) for n, k in zip(noise, (P, THETA, XI), strict=True)]
        return Noise(*(self.size * b + np.sqrt(1.0 - self.size**2) * a for a, b in zip(noise, common, strict=True)))


class SharedByCoordinates(Wrong):
    """The normals of all coordinates have a part in common: `size` is their correlation."""

    def draw_noise(self, state: State, seed: int, step: int) -> Noise:
        noise = super().draw_noise(state, seed, step)
        common = [self.normals((len(n), 1), seed, step, 20 + k) for n, k in zip(noise, (P, THETA, XI), strict=True)]
        pairs = zip(noise, common, strict=True)
        return Noise(*(np.sqrt(self.size) * b + np.sqrt(1.0 - self.size) * a for a, b in pairs))


class OwnStep(Wrong):
    """A schedule that is not listened to: steps of 0.05, whatever the size that was asked for."""

    def move(
        self, state: State, gradient: Array, noise: Noise, before: float, h: float, step: int = 1, seed: int = 0
    ) -> State:
        return super().move(state, gradient, noise, before, float(self.blend(h, 0.05)), step, seed)
