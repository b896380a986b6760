"""Wrong thermostats: the reference with one method wrong in the drift, the noise, the law or the start of ξ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sgmcmc.evidence.validation.faults import Wrong
from sgmcmc.integrators.state import State
from sgmcmc.testing import reference_kinetics as kinetic

Array = NDArray[np.float64]


# ---- the thermostat's drift ------------------------------------------------------------------------------------------


class NoCurvature(Wrong):
    """ξ is driven by K'² alone."""

    def excess(self, p: Array) -> Array:
        return self.shared(self.velocity(p) ** 2 - (1.0 - self.size) * self.T * self.curvature(p))


class FlippedThermostat(Wrong):
    """ξ is driven by TK'' − K'²."""

    def excess(self, p: Array) -> Array:
        return (1.0 - 2.0 * self.size) * super().excess(p)


class ColdThermostat(Wrong):
    """ξ is driven by K'² − K'', whatever T is."""

    def excess(self, p: Array) -> Array:
        return self.shared(self.velocity(p) ** 2 - self.blend(self.T, 1.0) * self.curvature(p))


class VirialThermostat(Wrong):
    """ξ is driven by pK' − T, whose mean is 0 too: right for p²/2 only."""

    def excess(self, p: Array) -> Array:
        right: Array = super().excess(p)
        wrong: Array = self.blend(right, self.shared(p * self.velocity(p) - self.T))
        return wrong


class NormForSquare(Wrong):
    """‖v‖/d where the mean of v² is meant."""

    def excess(self, p: Array) -> Array:
        v = self.velocity(p)
        norm = np.sqrt((v**2).sum(axis=1, keepdims=True)) / p.shape[1]
        wrong: Array = self.blend((v**2).mean(axis=1, keepdims=True), norm) - self.shared(self.T * self.curvature(p))
        return wrong


class SumForMean(Wrong):
    """ξ is driven by a sum over coordinates, but has the law that goes with the mean."""

    def shared(self, excess: Array) -> Array:
        wrong: Array = self.blend(excess.mean(axis=1, keepdims=True), excess.sum(axis=1, keepdims=True))
        return wrong


class NoGamma(Wrong):
    """γ forgotten in the drift of ξ."""

    def thermostat_rate(self) -> float:
        return float(self.blend(super().thermostat_rate(), 1.0))


class ShortChainRule(Wrong):
    """K'' without the factor r that differentiating tanh^r brings."""

    def curvature(self, p: Array) -> Array:
        k = self.sampler.kinetics
        outer = kinetic.velocity(k, p) / np.where(p == 0.0, 1.0, p) * (1.0 / k.a - 1.0)
        right = super().curvature(p)
        wrong: Array = self.blend(right, outer + (right - outer) / k.order)
        return wrong


# ---- ξ's own noise, its law, its start -------------------------------------------------------------------------------


class WideThermostatDraw(Wrong):
    """ξ resampled with standard deviation γ√T for √(γT)."""

    def draw_thermostat(self, state: State, normals: Array) -> Array:
        right = np.sqrt(self.thermostat_variance(state))
        xi: Array = self.center(state) + self.blend(right, self.thermostat_width(state) * np.sqrt(self.T)) * normals
        return xi


class ColdThermostatNoise(Wrong):
    """The noise of ξ, and its fresh draws, without T."""

    def thermostat_variance(self, state: State) -> float:
        return self.thermostat_width(state) * float(self.blend(self.T, 1.0))


class UncentredThermostat(Wrong):
    """ξ is pulled to 0 instead of σ_p."""

    def center(self, s: State) -> Array:
        return (1.0 - self.size) * super().center(s)


class UnpulledThermostat(Wrong):
    """σ_ξ brings noise to ξ, but not the drift that balances it."""

    def relax_thermostat(self, s: State, normals: Array, tau: float) -> None:
        before = s.xi.copy()
        super().relax_thermostat(s, normals, tau)
        right = s.xi.copy()
        wrong = before + np.sqrt(2.0 * self.sampler.sigma_xi * self.T * tau) * normals
        s.xi[:] = self.blend(right, wrong)


class ZeroThrownAway(Wrong):
    """`xi or default`: a start at 0 becomes σ_p."""

    def start_of_thermostat(self, xi: Array | None) -> Array | float:
        if xi is None or np.any(xi):
            return super().start_of_thermostat(xi)
        return self.size * self.sampler.sigma_p
