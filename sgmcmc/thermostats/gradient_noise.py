"""What gradient noise does to the friction and to θ, given its variance V per coordinate in the chain's units.

A kick of size h carries gradient noise of variance V into the momentum as an extra diffusion hV/2, which the friction must take
out: μ = σ_p + hV/(2T). A fixed μ = σ_p pulls ξ back whenever ξ is resampled or σ_ξ > 0, and the chain runs hot. Where θ has a
drift −σ_θ ∇U of its own, the same noise also enters θ (`crosstalk`).

V comes from one of two places, and the type of `Dynamics.noise` says which:

    KnownNoise      0 for exact gradients, 2B for added noise, measured on the rows of minibatches, or told by the caller
    InferredNoise   the balance of energies (`energy_balance.py`), with its standard error: ask and tell, random functions

With minibatches V is measured on every seventh step, in two halves of the rows: (N/n₁ Σ₁ − N/n₂ Σ₂)² n₁n₂/n² has the mean V.
"""

from __future__ import annotations

from typing import NamedTuple

from sgmcmc.compiler.open_functions import LOOP, implements, leaf, open_function
from sgmcmc.compiler.precision import like, zero
from sgmcmc.thermostats.nose_hoover import PerChain, PerCoordinate

__all__ = [
    "LEARN_EVERY",
    "Crosstalk",
    "InferredNoise",
    "KnownNoise",
    "NoCrosstalk",
    "crosstalk",
    "crosstalk_of",
    "crosstalk_rate",
    "follow_step_size",
    "is_learning_step",
    "learning_gain",
    "put_in",
]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

LEARN_EVERY = 7  # steps; coprime to the usual resampling periods, so that it meets all their phases alike
LARGEST_CROSSTALK = 0.9  # at 1 there is no θ-noise left to take away; `sample` warns far below


class KnownNoise(NamedTuple):
    """V is known: the state has it, and no step changes it but one that has measured it.

    Examples
    --------
    >>> sg.SGNHT(0.1).dynamics(dim=1).noise
    KnownNoise()
    """


class InferredNoise(NamedTuple):
    """V is inferred from the balance of energies.

    Examples
    --------
    >>> sg.SGMGTD(0.1, a=2).dynamics(dim=1, inferred=True).noise
    InferredNoise()
    """


class NoCrosstalk(NamedTuple):
    """θ has no noise of its own, or the gradient is taken as exact: nothing to compensate. A type, so that no kernel looks."""


class Crosstalk(NamedTuple):
    """θ has noise of its own, and V is known or inferred."""


@leaf
def is_learning_step(step):
    """Whether V is learnt in this step."""
    return step % LEARN_EVERY == 0


@leaf
def learning_gain(exemplar, step):
    """The weight of this step's sample in running means whose weights grow like t: 1 at first, 2/k for the k-th later."""
    return like(exemplar, 2) / like(exemplar, step // LEARN_EVERY + 2)


@open_function
def put_in(thermostat, variance, i, dim, sample, gain):
    """Put one sample of V of coordinate i into the running mean: its own, or the mean over coordinates of a chain."""


@implements(put_in)
def _(thermostat, variance, i, dim, sample, gain):
    return None


@implements(put_in, PerCoordinate)
def _(thermostat, variance, i, dim, sample, gain):
    variance[i] += gain * (sample - variance[i])


@implements(put_in, PerChain)
def _(thermostat, variance, i, dim, sample, gain):
    if i == 0:
        variance[0] -= gain * variance[0]
    variance[0] += gain * sample / like(sample, dim)


@leaf
def crosstalk_rate(sigma_theta, temperature, h):
    """c/V of a step of size h."""
    return 0.5 * sigma_theta * h / temperature


@leaf
def crosstalk_of(rate, variance):
    """c = σ_θ hV/(2T), at most 0.9."""
    c = rate * variance
    return c if c < LARGEST_CROSSTALK else like(c, LARGEST_CROSSTALK)


@open_function(on=2)
def crosstalk(kind, thermostat, rate, variance, i):
    """c = σ_θ D_B/T of coordinate i, where D_B = hV/2 is the diffusion that gradient noise brings into p.

    The same noise enters θ through −σ_θ ∇U: it adds σ_θ² D_B to the diffusion of θ and correlates it with that of p by
    σ_θ D_B. With D = [[σ_θT, σ_θD_B], [σ_θD_B, σ_pT + D_B]] in all, exp(−H/T) is invariant for the drift −(D + Q)∇H/T, Q
    antisymmetric. The coefficients of ∇U are given, −σ_θ and −1; so θ has (1 − c) of its noise injected and moves with
    (1 − 2c) K'(p). This is exact for small steps; in steps of size h the variance of θ stays too large by about ½ c h σ_θ U''.
    """


@implements(crosstalk)
def _(kind, thermostat, rate, variance, i):
    return zero(rate)


@implements(crosstalk, Crosstalk, PerCoordinate)
def _(kind, thermostat, rate, variance, i):
    return crosstalk_of(rate, variance[i])


@implements(crosstalk, Crosstalk, PerChain)
def _(kind, thermostat, rate, variance, i):
    return crosstalk_of(rate, variance[0])


@open_function(inline=True, fastmath=LOOP)
def follow_step_size(noise, state, temperature, before, h):
    """ξ ← ξ + (h − h_before) V/(2T): where the step size changes, so does the friction that balances the gradient noise.

    Only where V is known: an error of an inferred V would move ξ, and a moved ξ the inference.
    """


@implements(follow_step_size, InferredNoise)
def _(noise, state, temperature, before, h):
    return None


@implements(follow_step_size, KnownNoise)
def _(noise, state, temperature, before, h):
    if h != before and h > 0.0 and before > 0.0:
        change = 0.5 * (h - before) / temperature
        for i in range(state.xi.size):
            state.xi[i] += change * state.variance[i]
