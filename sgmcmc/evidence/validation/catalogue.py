"""The catalogue of wrong samplers, what each is a version of, and the right ones that stand beside them.

No parameter of the samplers is 1, so that no error hides behind a factor that happens to do nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.evidence.validation import faults, thermostat_faults
from sgmcmc.integrators import Euler
from sgmcmc.kinetics import Gaussian, MonomialGamma, Relativistic
from sgmcmc.samplers import Sampler
from sgmcmc.testing.reference import Reference
from sgmcmc.testing.under_test import Kernel, standard_subjects
from sgmcmc.thermostats import NoseHoover

__all__ = ["BASES", "MUTANTS", "Mutant", "right_ones"]

Array = NDArray[np.float64]
T = 0.6
COMMON: dict[str, Any] = {"sigma_p": 1.8, "temperature": T, "scale": 0.8}
STEERED: dict[str, Any] = {"thermostat": NoseHoover(0.7, center="fixed"), **COMMON}
DIFFUSE: dict[str, Any] = {"sigma_theta": 0.3, "sigma_xi": 0.5, **STEERED}
SHARED: dict[str, Any] = {**COMMON, "thermostat": NoseHoover(0.7, "chain", "fixed"), "sigma_xi": 0.5}

BASES: dict[str, tuple[Sampler, int]] = {  # with the number of coordinates
    "SGLD": (Sampler(0.02, None, sigma_theta=0.7, sigma_p=0.0, temperature=T, scale=0.8), 1),
    "SGHMC": (Sampler(0.02, Gaussian(1.3), **COMMON), 1),
    "SGHMC, B̂": (Sampler(0.02, Gaussian(1.3), noise_estimate=0.3, **COMMON), 1),
    "SGNHT": (Sampler(0.02, Gaussian(1.3), **STEERED), 1),
    "SGNHT per chain": (Sampler(0.02, Gaussian(1.3), **SHARED), 3),
    "SGMGT, a = 1": (Sampler(0.02, MonomialGamma(1.0, 2.5, mass=1.2), **STEERED), 1),
    "SGMGT, a = 2": (Sampler(0.02, MonomialGamma(2.0, 2.5, mass=1.2), **STEERED), 1),
    "SGMGT-D, a = 1": (Sampler(0.02, MonomialGamma(1.0, 2.5, mass=1.2), **DIFFUSE), 1),
    "SGMGT-D, a = 2": (Sampler(0.02, MonomialGamma(2.0, 2.5, mass=1.2), **DIFFUSE), 1),
    "SGMGT, a = 1, Euler": (Sampler(0.02, MonomialGamma(1.0, 2.5, mass=1.2), integrator=Euler(), **STEERED), 1),
    "relativistic": (Sampler(0.02, Relativistic(1.3, 0.8), **STEERED), 1),
}


class Mutant(NamedTuple):
    """A wrong sampler: what is wrong, with which sampler, by how much."""

    name: str
    base: str
    kind: Any
    size: float = 1.0

    @property
    def dim(self) -> int:
        return BASES[self.base][1] if self.base in BASES else 1

    def make(self, size: float) -> Any:
        """The candidate with an error of this size."""
        if self.base in BASES:
            return self.kind(BASES[self.base][0], self.name, size)
        return self.kind(self.name, size)


class Regression:
    """The estimated gradient of a linear regression: (N/n) Σ_rows ∇(−log p(y_i | θ)) + ∇(−log prior)."""

    n_rows, dim = 6, 2

    def __init__(self, name: str = "regression in NumPy", size: float = 0.0) -> None:
        rng = np.random.default_rng(5)
        self.name, self.size = name, size
        self.X, self.y, self.noise, self.prior = rng.standard_normal((6, 2)), rng.standard_normal(6), 0.7, 1.6

    def weight(self, n: int) -> float:
        return self.n_rows / n

    def prior_weight(self, n: int) -> float:
        return 1.0

    def gradient(self, theta: Array, rows: Any) -> Array:
        rows = np.arange(self.n_rows) if rows is None else rows
        X, y, n = self.X[rows], self.y[rows], len(rows)
        slope: Array = self.weight(n) * X.T @ (X @ theta - y) / self.noise**2
        return slope + self.prior_weight(n) * theta / self.prior**2

    def energy(self, theta: Array) -> float:
        """U: what the gradient from all rows is the derivative of."""
        misfit = self.X @ theta - self.y
        return float(0.5 * (misfit @ misfit) / self.noise**2 + 0.5 * (theta @ theta) / self.prior**2)


class MeanForSum(Regression):
    """The mean over rows, where their sum is meant, with and without minibatches."""

    def weight(self, n: int) -> float:
        return float(super().weight(n) / self.n_rows**self.size)


class RowLeftOut(Regression):
    """The last row has no part in any gradient."""

    def __init__(self, name: str = "", size: float = 0.0) -> None:
        super().__init__(name, size)
        self.share = np.ones(self.n_rows)
        self.share[-1] -= size

    def gradient(self, theta: Array, rows: Any) -> Array:
        rows = np.arange(self.n_rows) if rows is None else np.asarray(rows)
        X, y, n = self.X[rows], self.y[rows], len(rows)
        slope: Array = self.weight(n) * X.T @ (self.share[rows] * (X @ theta - y)) / self.noise**2
        return slope + self.prior_weight(n) * theta / self.prior**2


class SumForgotten(Regression):
    """The sum over a minibatch, without N/n."""

    def weight(self, n: int) -> float:
        return float((self.n_rows / n) ** (1.0 - self.size))


class PriorScaled(Regression):
    """The prior, too, times N/n."""

    def prior_weight(self, n: int) -> float:
        return float((self.n_rows / n) ** self.size)


class OwnModel:
    """A model of this package as an estimator."""

    def __init__(self, name: str, model: Any) -> None:
        self.name, self.model, self.n_rows, self.dim = name, model, model.n_rows, model.dim

    def gradient(self, theta: Array, rows: Any) -> Array:
        from sgmcmc.potentials import gradient_of

        return gradient_of(self.model, theta, rows)

    def energy(self, theta: Array) -> float:
        from sgmcmc.potentials import energy_of

        return energy_of(self.model, theta)


MUTANTS = (
    Mutant("K'' missing from the thermostat", "SGMGT, a = 1", thermostat_faults.NoCurvature),
    Mutant("thermostat's sign flipped", "SGNHT", thermostat_faults.FlippedThermostat),
    Mutant("thermostat's drift ignores T", "SGMGT, a = 2", thermostat_faults.ColdThermostat),
    Mutant("thermostat driven by pK' − T", "SGMGT, a = 1", thermostat_faults.VirialThermostat),
    Mutant("‖v‖ for ‖v‖²", "SGNHT per chain", thermostat_faults.NormForSquare),
    Mutant("thermostat driven by sum, not mean", "SGNHT per chain", thermostat_faults.SumForMean),
    Mutant("γ forgotten in ξ's drift", "SGNHT", thermostat_faults.NoGamma),
    Mutant("K'' without the factor r", "SGMGT, a = 2", thermostat_faults.ShortChainRule),
    Mutant("fresh ξ: γ for √γ", "SGMGT, a = 1", thermostat_faults.WideThermostatDraw),
    Mutant("noise of ξ ignores T", "SGMGT-D, a = 1", thermostat_faults.ColdThermostatNoise),
    Mutant("ξ pulled to 0, not σ_p", "SGMGT-D, a = 2", thermostat_faults.UncentredThermostat),
    Mutant("noise on ξ without its drift", "SGMGT-D, a = 1", thermostat_faults.UnpulledThermostat),
    Mutant("ξ = 0 at the start thrown away", "SGNHT", thermostat_faults.ZeroThrownAway),
    Mutant("friction off by 5 %", "SGHMC", faults.StrongFriction, 0.05),
    Mutant("friction σ_p + ξ", "SGNHT", faults.DoubleFriction),
    Mutant("noise off by 5 %", "SGMGT, a = 1", faults.LoudNoise, 0.05),
    Mutant("noise off by 5 %, Euler", "SGMGT, a = 1, Euler", faults.LoudNoise, 0.05),
    Mutant("noise h instead of √h", "SGMGT, a = 2", faults.NoiseLikeTime),
    Mutant("noise ∝ friction, not √friction", "SGHMC", faults.NoiseLikeFriction),
    Mutant("noise ignores T", "SGHMC", faults.ColdNoise),
    Mutant("B̂ subtracted twice", "SGHMC, B̂", faults.EstimateTwice),
    Mutant("first-order O step", "SGHMC", faults.FirstOrderO),
    Mutant("first-order O step, thermostat", "SGNHT", faults.FirstOrderO),
    Mutant("friction before the drift only", "SGMGT, a = 1", faults.Lopsided),
    Mutant("mass ignored in the velocity", "SGHMC", faults.MasslessVelocity),
    Mutant("K' stiff, momenta softened", "SGMGT, a = 2", faults.StiffVelocity),
    Mutant("half a kick missing", "SGHMC", faults.HalfKickMissing),
    Mutant("scale forgotten in the gradient", "SGMGT, a = 1", faults.ScaleNotInGradient),
    Mutant("scale forgotten in θ's noise", "SGLD", faults.ScaleNotInNoise),
    Mutant("σ_θ drift with the wrong sign", "SGMGT-D, a = 1", faults.WeakPull, 2.0),
    Mutant("σ_θ drift missing", "SGMGT-D, a = 2", faults.WeakPull),
    Mutant("drift ε/2, noise of ε", "SGLD", faults.WeakPull, 0.5),
    Mutant("gradient before θ's noise", "SGLD", faults.FrozenGradient),
    Mutant("gradient before θ's noise, SGMGT-D", "SGMGT-D, a = 1", faults.FrozenGradient),
    Mutant("variance of θ's noise halved", "SGLD", faults.HalfVariance),
    Mutant("fresh momenta ignore T", "SGMGT, a = 1", faults.ColdMomenta),
    Mutant("fresh momenta T·p for √T·p", "SGHMC", faults.MomentaTimesT),
    Mutant("stiff momenta, softened K", "SGMGT, a = 2", faults.StiffMomenta),
    Mutant("fresh momenta |p|", "relativistic", faults.OneSidedMomenta),
    Mutant("same normals for p and θ", "SGMGT-D, a = 1", faults.SharedByVariables),
    Mutant("same normals in two steps", "SGNHT", faults.SharedBySteps),
    Mutant("same normals in all chains", "SGLD", faults.SharedByChains),
    Mutant("normals correlated between coordinates", "SGNHT", faults.SharedByCoordinates, 0.1),
    Mutant("a schedule that is not listened to", "SGHMC", faults.OwnStep),
    Mutant("mean over rows, not sum", "regression", MeanForSum),
    Mutant("a row left out of every gradient", "regression", RowLeftOut),
    Mutant("N/n forgotten", "regression", SumForgotten),
    Mutant("prior times N/n", "regression", PriorScaled),
)


def right_ones(profile: str = "quick") -> Iterator[tuple[str, Any, int]]:
    """(name, candidate, coordinates): every sampler of the catalogue in NumPy, the standard ones through their kernels.

    In full also the standard ones in NumPy, at several temperatures and with Euler's scheme; the catalogue through its
    kernels; and the package's own regressions.
    """
    for name, (sampler, dim) in BASES.items():
        yield f"{name}, reference", Reference(sampler, name), dim
    yield "minibatches, reference", Regression(), 1
    if profile == "quick":
        yield from _standard(T, False, False)
        return
    yield from _standard(1.0, False, False)
    yield from _standard(2.0, False, True)
    yield from _standard(2.0, True, True)
    yield from _kernels_of_the_catalogue()


def _standard(temperature: float, euler: bool, both: bool) -> Iterator[tuple[str, Any, int]]:
    for name, kernel in standard_subjects(0.1, temperature, euler).items():
        yield f"{name}, T = {temperature:g}, kernel", kernel, 1
        if both:
            yield f"{name}, T = {temperature:g}, reference", Reference(kernel.sampler, name), 1


def _kernels_of_the_catalogue() -> Iterator[tuple[str, Any, int]]:
    from sgmcmc.models import LinearRegression, LogisticRegression

    for name, (sampler, dim) in BASES.items():
        yield f"{name}, kernel", Kernel(sampler, name), dim
    data = Regression()
    yield "minibatches, linear regression", OwnModel("linear", LinearRegression(data.X, data.y, data.noise)), 1
    yield "minibatches, logistic regression", OwnModel("logistic", LogisticRegression(data.X, data.y > 0.0)), 1
