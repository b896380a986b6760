"""What is put to the test: anything that moves states on given gradients and given normals.

`Kernel` is a sampler of this package, through its compiled kernel. The table of wrong samplers uses `Reference`, the same
process written a second time in NumPy, with one fault (see reference.py). Both have the methods of `Subject`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators.state import Noise, State
from sgmcmc.kinetics import Overdamped
from sgmcmc.rng import stream
from sgmcmc.samplers import Sampler
from sgmcmc.testing.laws import Law, momentum_law, thermostat_law
from sgmcmc.testing.targets import Target
from sgmcmc.thermostats import sharers

__all__ = ["Kernel", "Subject", "describe", "exact_start", "laws_of", "plain", "standard_subjects"]

Array = NDArray[np.float64]


class Subject(Protocol):
    """A sampler under test. `sampler` is what it claims to be: the law it should leave invariant follows from that."""

    name: str
    sampler: Sampler

    def with_(self, **changes: Any) -> Subject:
        """The same thing with other parameters of the sampler."""

    def start(self, theta: Array, p: Array | None = None, xi: Array | None = None) -> State:
        """Copies of a chain at θ (copies, dim), with p and ξ if given (else 0 and σ_p); nothing pending."""

    def draw_noise(self, state: State, seed: int, step: int) -> Noise:
        """The normals that a run with this seed uses in this step, copy k being its chain k."""

    def draw_momenta(self, state: State, seed: int) -> Array:
        """The momenta that a run with this seed starts with."""

    def move(self, state: State, gradient: Array, noise: Noise, before: float, h: float, step: int, seed: int) -> State:
        """The states after one step of size h, the last one having been of size `before` (0 at the beginning)."""


class Kernel:
    """A sampler of this package, through the kernel that `sgmcmc.sample` runs.

    Parameters
    ----------
    sampler : Sampler
    name : str, optional

    Examples
    --------
    >>> state = sg.testing.Kernel(sg.SGNHT(0.1)).start(np.zeros((5, 2)))
    >>> state.theta.shape, state.xi.shape
    ((5, 2), (5, 2))
    """

    def __init__(self, sampler: Sampler, name: str | None = None) -> None:
        self.sampler = sampler
        self.name = describe(sampler) if name is None else name

    def with_(self, **changes: Any) -> Kernel:
        return Kernel(replace(self.sampler, **changes), self.name)

    def start(self, theta: Array, p: Array | None = None, xi: Array | None = None) -> State:
        theta = np.array(theta, float)
        one = self.sampler.start(theta[0])
        state = State(*(np.repeat(a[None], len(theta), axis=0) for a in one))
        state.theta[:] = theta
        if p is not None:
            state.p[:] = p
        if xi is not None:
            state.xi[:] = xi
        return state

    def _dynamics(self, state: State) -> Any:
        return self.sampler.dynamics(state.theta.shape[1])

    def draw_noise(self, state: State, seed: int, step: int) -> Noise:
        from sgmcmc.testing import batch_step

        noise = Noise(np.zeros_like(state.p), np.zeros_like(state.theta), np.zeros_like(state.xi))
        numbers = self._dynamics(state)._replace(kinetics=0, thermostat=0, integrator=0)  # one kernel for all of them
        batch_step.draw_noise(numbers, noise, stream(seed), np.int64(step))
        return noise

    def draw_momenta(self, state: State, seed: int) -> Array:
        from sgmcmc.testing import batch_step

        p: Array = np.zeros_like(state.p)
        if p.size:
            batch_step.draw_momenta(self._dynamics(state)._replace(thermostat=0, integrator=0), p, stream(seed))
        return p

    def move(
        self, state: State, gradient: Array, noise: Noise, before: float, h: float, step: int = 1, seed: int = 0
    ) -> State:
        from sgmcmc.testing import batch_step

        after = State(*(a.copy() for a in state))
        gradient = np.ascontiguousarray(gradient, float)
        batch_step.move(
            self._dynamics(state), after, gradient, noise, stream(seed), np.int64(step), float(before), float(h)
        )
        return after


def laws_of(sampler: Sampler, target: Target, dim: int = 1) -> tuple[Law, Law | None, Law | None]:
    """The laws of θ, p and ξ that a sampler claims to leave invariant; None where it has no such variable."""
    T = sampler.temperature
    theta = target.law(T)
    if isinstance(sampler.kinetics, Overdamped):
        return theta, None, None
    p = momentum_law(sampler.kinetics, T)
    thermostat = sampler.thermostat
    if not sampler.sizes(dim).xi:
        return theta, p, None
    return theta, p, thermostat_law(sampler.sigma_p, thermostat.gamma, T, float(sharers(thermostat, dim)))


def exact_start(subject: Subject, target: Target, uniforms: Array, dim: int = 1) -> State:
    """Copies in their invariant law, by its quantiles at `uniforms` (copies, variables): θ, p, ξ in turn."""
    sizes = subject.sampler.sizes(dim)
    theta, p, xi = laws_of(subject.sampler, target, dim)
    u = np.asarray(uniforms)
    scale = np.broadcast_to(subject.sampler.scale, (dim,))
    parts = np.split(u[:, : sizes.theta + sizes.p + sizes.xi], np.cumsum([sizes.theta, sizes.p]), axis=1)
    return subject.start(
        theta.quantile(parts[0]) * np.ones_like(scale),
        None if p is None else p.quantile(parts[1]),
        None if xi is None else xi.quantile(parts[2]),
    )


def describe(sampler: Sampler) -> str:
    """A short name: what it is composed of."""
    kinetics, thermostat = sampler.kinetics, sampler.thermostat
    words = [type(sampler.integrator).__name__]
    words.append("overdamped" if isinstance(kinetics, Overdamped) else repr(kinetics))
    if sampler.sizes(1).xi:
        words.append(f"thermostat per {getattr(thermostat, 'per', type(thermostat).__name__)}")
    sigmas = [f"{n}={getattr(sampler, f'sigma_{s}'):g}" for n, s in (("σ_θ", "theta"), ("σ_p", "p"), ("σ_ξ", "xi"))]
    words += [s for s in sigmas if not s.endswith("=0")]
    if sampler.temperature != 1.0:
        words.append(f"T={sampler.temperature:g}")
    return ", ".join(words)


def plain(subject: Subject) -> Subject:
    """The same process without what happens every so many steps, and without an estimate of gradient noise."""
    changes: dict[str, Any] = {"resample_momentum": None, "resample_thermostat": None, "noise_estimate": 0.0}
    if hasattr(subject.sampler.thermostat, "adaptive"):
        changes["thermostat"] = subject.sampler.thermostat._replace(adaptive=0.0)
    return subject.with_(**changes)


def standard_subjects(h: float = 0.1, temperature: float = 1.0, euler: bool = False) -> dict[str, Kernel]:
    """The five samplers with the monomial parameters a = 1 and 2, without resampling and with a fixed centre.

    So a step is a function of the state, the gradient and the normals, and leaves its law invariant up to the order of the
    integrator.
    """
    from sgmcmc.integrators import Euler
    from sgmcmc.samplers.presets import SGHMC, SGLD, SGMGT, SGMGTD, SGNHT

    common: dict[str, Any] = {"temperature": temperature, "integrator": Euler() if euler else None}
    plain: dict[str, Any] = {"resample_momentum": None, "resample_thermostat": None, "center": "fixed"}
    samplers = {
        "SGLD": SGLD(h, **common),
        "SGHMC": SGHMC(h, **common),
        "SGNHT": SGNHT(h, **common),
        "SGMGT, a = 1": SGMGT(h, a=1, **common, **plain),
        "SGMGT, a = 2": SGMGT(h, a=2, **common, **plain),
        "SGMGT-D, a = 1": SGMGTD(h, a=1, **common, **plain),
        "SGMGT-D, a = 2": SGMGTD(h, a=2, **common, **plain),
    }
    suffix = ", Euler" if euler else ""
    return {name + suffix: Kernel(sampler, name + suffix) for name, sampler in samplers.items()}
