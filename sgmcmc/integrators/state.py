"""What a step works on: the parts and numbers of a sampler, the arrays of a chain, its normals, and where in the run it is."""

from __future__ import annotations

from typing import Any, NamedTuple

import sgmcmc.thermostats as thermostats
from sgmcmc.compiler.open_functions import LOOP, implements, leaf, open_function

__all__ = [
    "Dynamics",
    "Moment",
    "Noise",
    "OneChain",
    "State",
    "advance",
    "center_now",
    "injected",
    "is_turn",
    "note",
    "order",
]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


class Dynamics(NamedTuple):
    """What the kernels know of a sampler: its parts and its numbers, in the precision of the run."""

    kinetics: Any
    thermostat: Any
    integrator: Any
    scale: Any  # a number, DiagonalScale, MatrixScale, or a part of your own
    sigma_theta: float
    sigma_p: float
    sigma_xi: float
    temperature: float
    noise_estimate: float
    resample_momentum: int  # period in steps; 0 is never
    resample_thermostat: int
    n_normals: int  # how many normals of each coordinate the friction and noise on p take in a step
    noise: Any  # thermostats.KnownNoise or InferredNoise: where the variance of the gradient noise comes from
    crosstalk: Any  # thermostats.Crosstalk or NoCrosstalk: whether it is compensated in θ
    layout: Any  # OneChain, or lanes.ManyChains


class State(NamedTuple):
    """One chain between two steps. Arrays that a sampler does not use are empty."""

    theta: Any  # where the next gradient is to be taken; also the draw
    p: Any
    xi: Any
    variance: Any  # V of the gradient noise, in the chain's units: where ξ is pulled to depends on it
    loss: Any  # running mean of the energy per step that friction takes out beyond the injected noise, if V is inferred
    bend: Any  # running mean of ½w²K'', w the time of the kick, if V is inferred
    span: Any  # running mean of h K'', if V is inferred
    pending: Any  # the half of the θ-noise that is still to come


class Noise(NamedTuple):
    """Standard normals for one step and one block of coordinates."""

    p: Any
    theta: Any  # of θ's own noise; or the second ones of a word that takes two for p
    xi: Any


class Moment(NamedTuple):
    """Where in the run a step is: its number, the step size before it and its own, and its block's first coordinate."""

    step: Any
    before: float
    h: float
    first: Any


class OneChain(NamedTuple):
    """The arrays are those of one chain: sums over coordinates are sums over elements."""


@open_function(on=2, fastmath=LOOP)
def advance(integrator, kinetics, scale, dynamics, state, gradient, noise, stream, moment):
    """One step of a block of coordinates, in place. Returns Σ p K'(p) at a point of symmetry (0 without momentum).

    `kinetics` and `scale` are those of `dynamics`, in the form and for the coordinates of this block.
    """


@open_function
def order(integrator):
    """The order in h of an integrator's bias; None where an integrator of your own does not say. Called in plain Python."""


@implements(order)
def _(integrator):
    return None


@open_function(fastmath=LOOP)  # a sum that may not be reordered would keep its loop from being vectorised
def note(layout, i, total, value, first, share):
    """Add p K'(p) of element i, `value`, to the sum of a chain, which is returned.

    For many chains side by side it is kept element by element, with the weight `share`; `first` is whether this drift is the
    first of its step. For one chain the caller multiplies the sum by `share`.
    """


@implements(note)
def _(layout, i, total, value, first, share):
    return total + value


@leaf
def center_now(dynamics, moment):
    """Where ξ is pulled to in this step."""
    d = dynamics
    return thermostats.center_of(d.thermostat, d.sigma_p, d.noise_estimate, d.temperature, moment.h)


@leaf
def is_turn(period, step):
    """Whether something that happens every `period` steps (0: never) happens in this one."""
    return period > 0 and (step + 1) % max(period, 1) == 0


@leaf
def injected(dynamics):
    """D = σ_p T − B̂: the diffusion that is left to inject when gradient noise already brings B̂."""
    return dynamics.sigma_p * dynamics.temperature - dynamics.noise_estimate
