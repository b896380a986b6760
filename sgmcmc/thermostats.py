"""Thermostats: what the friction on the momentum is, and how it is steered.

The thermostat variable ξ *is* the friction: dp = −∇U dt − ξ K'(p) dt + …, with dξ = γ (K'² − T K'') dt − (σ_ξ/γ)(ξ − μ) dt
+ √(2 σ_ξ T) dW. Its invariant law is N(μ, γT). With exact gradients μ = σ_p. Unknown gradient noise shifts the mean of ξ; a
fixed μ then pulls ξ back whenever it is resampled or σ_ξ > 0, and the chain runs hot. ``center="adaptive"`` learns μ from the
balance of friction and noise, with a gain that vanishes like 1/t, so that E[K'² − T K''] = 0 whatever the gradient noise is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from sgmcmc import checks
from sgmcmc.dispatch import LOOP, implements, leaf, like, open_function
from sgmcmc.elementary import exp, exp_of_ordinary, expm1, expm1_of_ordinary, log1p_of_ordinary, tanh
from sgmcmc.kinetics import LinearMonomial, energy, friction_flow, velocity_and_excess

__all__ = ["FixedFriction", "NoseHoover", "PerChain", "PerCoordinate"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


class FixedFriction(NamedTuple):
    """No thermostat: the friction is σ_p, a constant (as in SGHMC)."""


class _Steered(NamedTuple):
    gamma: float
    adaptive: float  # 1 adaptive centre, 0 fixed centre, −1 not decided yet: the sampler decides


class _NoseHoover(_Steered):
    __slots__ = ()
    per = ""

    @property
    def center(self) -> str | None:
        return None if self.adaptive < 0 else ("adaptive" if self.adaptive else "fixed")

    def __repr__(self) -> str:
        return f"NoseHoover(gamma={self.gamma!r}, per={self.per!r}, center={self.center!r})"


class PerCoordinate(_NoseHoover):
    """A Nosé–Hoover thermostat with a friction ξ_j for every coordinate (the paper's)."""

    __slots__ = ()
    per = "coordinate"


class PerChain(_NoseHoover):
    """A Nosé–Hoover thermostat with one friction ξ per chain, driven by the mean over coordinates (Ding et al. 2014)."""

    __slots__ = ()
    per = "chain"


def NoseHoover(gamma: float = 1.0, per: str = "coordinate", center: str | None = None) -> PerCoordinate | PerChain:
    """A friction that steers itself so that the kinetic temperature is right in spite of unknown gradient noise.

    SDE: dξ = γ (K'(p)² − T K''(p)) dt − (σ_ξ/γ)(ξ − μ) dt + √(2 σ_ξ T) dW, per coordinate, or with the mean of the first term
    over coordinates. Invariant law: ξ ~ N(μ, γT) per coordinate, N(μ, γT/d) per chain of d coordinates.

    Parameters
    ----------
    gamma : how fast the friction answers; above 0.
    per : "coordinate" (one ξ for each) or "chain" (one ξ for all).
    center : "fixed" (μ = σ_p, the paper's), "adaptive" (μ is learnt, with vanishing gain), or None: adaptive where it
        matters (σ_ξ > 0 or ξ is resampled), fixed otherwise.
    """
    checks.number("gamma", gamma, 0.0, open_low=True)
    checks.number("gamma", gamma, 0.0, 1e300)
    checks.one_of("per", per, ("coordinate", "chain"))
    checks.one_of("center", center, ("adaptive", "fixed", None))
    kind = PerCoordinate if per == "coordinate" else PerChain
    return kind._make((float(gamma), {None: -1.0, "fixed": 0.0, "adaptive": 1.0}[center]))


def variables(thermostat: Any, dim: int) -> int:
    """How many thermostat variables a chain of `dim` coordinates has."""
    if isinstance(thermostat, FixedFriction):
        return 0
    return dim if isinstance(thermostat, PerCoordinate) else 1


# ---- compiled ---------------------------------------------------------------------------------------------------------


@open_function
def friction(thermostat, sigma_p, xi, i):
    """The friction that acts on coordinate i."""


@implements(friction, FixedFriction)
def _(thermostat, sigma_p, xi, i):
    return sigma_p


@implements(friction, PerCoordinate)
def _(thermostat, sigma_p, xi, i):
    return xi[i]


@implements(friction, PerChain)
def _(thermostat, sigma_p, xi, i):
    return xi[0]


@open_function
def sharers(thermostat, dim):
    """How many coordinates share one ξ: its law is N(μ, γT/sharers)."""


@implements(sharers, PerCoordinate)
def _(thermostat, dim):
    return like(thermostat.gamma, 1)


@implements(sharers, PerChain)
def _(thermostat, dim):
    return like(thermostat.gamma, dim)


LEARN_EVERY = 7  # steps; coprime to the usual resampling periods, so that it meets all their phases alike
MEMORY = 1000.0  # steps that the first guess μ = σ_p is worth


@leaf
def learning_gain(exemplar, step):
    """The weight of the sample at this step in running means whose weights grow like t: 2/t in the long run, per step."""
    gain = like(exemplar, 2 * LEARN_EVERY) / (like(exemplar, step) + MEMORY)
    return gain if gain < 1.0 else like(exemplar, 1)


@open_function(inline=False, fastmath=LOOP, apart=True)
def learn(thermostat, kinetics, temperature, floor, state, back, ahead, step):
    """Let the centre follow the friction that balances the noise, whatever its sources are.

    In a stationary state friction and resampling take out of the momentum what all the noise D puts in: E[ξ K'²] + heat of
    resampling = D E[K'']. The centre is μ = D/T. Running means of both sides give D even while ξ is held away from μ; the
    mean of ξ itself would not, since ξ is being pulled to the very μ that it should teach. `back` and `ahead` are the times
    of the friction flow that came before and will come after this moment, between two kicks of noise (0 in schemes without).
    """


@open_function(fastmath=LOOP, apart=True)
def relax(thermostat, xi, center, normals, dim, sigma_xi, temperature, tau):
    """The exact Ornstein–Uhlenbeck step of ξ over a time tau: rate σ_ξ/v, variance vT, v = γ/sharers."""


@open_function(inline=False, fastmath=LOOP, apart=True)
def resample(thermostat, xi, center, normals, dim, temperature):
    """An exact draw of ξ from its invariant law N(μ, vT)."""


@open_function
def crosstalk(thermostat, sigma_theta, sigma_p, center, i):
    """c = σ_θ D_B/T, where D_B = (μ − σ_p) T is the diffusion that gradient noise was found to bring into p.

    The same noise enters θ through −σ_θ ∇U: it adds σ_θ² D_B to the diffusion of θ and correlates it with that of p by
    σ_θ D_B. The law is restored, to leading order, by injecting 1 − c of the θ-noise and moving θ with (1 − 2c) K'(p).
    The estimate scatters to both sides of the truth, and so does c: cut off at 0 it would cool θ where there is no noise.
    """


@leaf
def found_noise(center, sigma_p):
    """D_B/T = μ − σ_p, shrunk to 0 where it is not clearly away from it.

    Within some per cent of σ_p it says more about the step size and the scatter of μ than about gradient noise.
    """
    x, doubt = center - sigma_p, 0.05 * sigma_p
    size = x * x + doubt * doubt
    return x * x * x / size if size > 0.0 else x


@implements(crosstalk)
def _(thermostat, sigma_theta, sigma_p, center, i):
    return sigma_theta - sigma_theta


@leaf
def crosstalk_at(thermostat, sigma_theta, sigma_p, center):
    """`crosstalk` where the centre is at this number."""
    return thermostat.adaptive * min(max(sigma_theta * found_noise(center, sigma_p), -0.5), 0.5)


@implements(crosstalk, PerCoordinate)
def _(thermostat, sigma_theta, sigma_p, center, i):
    return crosstalk_at(thermostat, sigma_theta, sigma_p, center[i])


@implements(crosstalk, PerChain)
def _(thermostat, sigma_theta, sigma_p, center, i):
    return crosstalk_at(thermostat, sigma_theta, sigma_p, center[0])


@open_function
def note_center(thermostat, sigma_theta, sigma_p, center):
    """Called where a run begins and where the centre has been learnt, for thermostats that keep what follows from it."""


@implements(note_center)
def _(thermostat, sigma_theta, sigma_p, center):
    return None


@open_function
def is_learning(thermostat, step):
    """Whether this step is one of those from which an adaptive centre is learnt."""


@implements(is_learning, FixedFriction)
def _(thermostat, step):
    return False


@implements(is_learning, _NoseHoover)
def _(thermostat, step):
    return thermostat.adaptive > 0.0 and step % LEARN_EVERY == 0


@implements(learn, FixedFriction)
def _(thermostat, kinetics, temperature, floor, state, back, ahead, step):
    return None


@leaf
def second_difference(kinetics, p, width):
    """(K(p + w) − 2K(p) + K(p − w))/w²: with w = √3 σ, 2/σ² times the energy that a normal kick of size σ brings, to order σ⁴."""
    outside = energy(kinetics, p + width) + energy(kinetics, p - width)
    return (outside - 2.0 * energy(kinetics, p)) / (width * width)


@open_function
def power_and_bend(kinetics, p, friction, center, bend, temperature, back, ahead):
    """What friction takes out of the kinetic energy per unit of time, and what noise brings for each unit of D.

    ξ K'² and K''(p) in the limit of small steps. In a step that is not small, friction takes K at the beginning of its flow
    minus K at its end, and a kick of size √(2Dτ) may be wider than the well of K'' around p = 0. (At a = 2, friction 2,
    h = 0.1 the limit would put the centre 2.7 % too low, and θ would be 0.7 % too hot.) The kick starts where the flow ends;
    where no flow follows, `bend`, the running mean, is left as it is.
    """


@leaf
def kick_width(center, temperature, back, ahead):
    """√3 √(2Dτ), as half of τ is max(back, ahead)."""
    return math.sqrt(12.0 * center * temperature * max(back, ahead))


@implements(power_and_bend)
def _(kinetics, p, friction, center, bend, temperature, back, ahead):
    width = kick_width(center, temperature, back, ahead)
    if width < 0.03:  # there the limit is good enough, and differences would be round-off in float32
        v, excess = velocity_and_excess(kinetics, p, temperature)
        return friction * v * v, (v * v - excess) / temperature
    begin, end = friction_flow(kinetics, p, -friction * back), friction_flow(kinetics, p, friction * ahead)
    power = (energy(kinetics, begin) - energy(kinetics, end)) / (back + ahead)
    return power, second_difference(kinetics, end, width) if ahead > 0.0 else bend


@leaf
def _bounded(x):
    """x, but at most 40 in size: for more the step is far too long, and products of two e^x must not overflow."""
    below = like(x, 40.0) if x > 40.0 else x
    return like(x, -40.0) if below < -40.0 else below


# For a = 1, with y = k|p| and z = tanh²y, K = (2/c) log(2 cosh y), and the flow multiplies sinh y by e^{∓λ}. So, with no
# differences of energies, which in float32 would be round-off at small steps,
#
#     cosh²y ← cosh²y (1 + (e^{∓2λ} − 1) z)
#     K(p + w) − 2 K(p) + K(p − w) = (2/c) log(1 + sinh²(kw) (1 − z))


@implements(power_and_bend, LinearMonomial)
def _(kinetics, p, friction, center, bend, temperature, back, ahead):
    t = tanh(0.5 * kinetics.softening * (1.0 / kinetics.mass) * p)
    return power_and_bend_of_tanh(kinetics, t * t, 1.0 - t * t, friction, center, bend, temperature, back, ahead)


@leaf
def power_and_bend_of_tanh(kinetics, z, complement, friction, center, bend, temperature, back, ahead):
    """`power_and_bend` for a = 1, given z and 1 − z."""
    inverse = 1.0 / kinetics.mass
    k = 0.5 * kinetics.softening * inverse
    width = kick_width(center, temperature, back, ahead)
    small = width < 0.03
    grown, shrunk = _bounded(2.0 * friction * back * k * inverse), _bounded(-2.0 * friction * ahead * k * inverse)
    at_end = 1.0 / (complement + exp_of_ordinary(shrunk) * z)  # cosh²y here over cosh²y where the flow ends
    rise = expm1_of_ordinary(grown) - expm1_of_ordinary(shrunk)
    one = like(width, 1)
    span = one if small else back + ahead  # 0 in schemes without a flow, whose width is 0
    lost = log1p_of_ordinary(rise * z * at_end) / (kinetics.softening * span)
    w = one if small else (width if width * k < 20.0 else 20.0 / k)
    e = expm1_of_ordinary(_bounded(2.0 * k * w))
    sinh_squared = 0.25 * e * e / (1.0 + e)
    brought = log1p_of_ordinary(sinh_squared * complement * at_end) * (2.0 / kinetics.softening) / (w * w)
    power = friction * z * inverse * inverse if small else lost
    return power, (k * inverse * complement if small else brought) if ahead > 0.0 or small else bend


@implements(relax, FixedFriction)
def _(thermostat, xi, center, normals, dim, sigma_xi, temperature, tau):
    return None


@implements(resample, FixedFriction)
def _(thermostat, xi, center, normals, dim, temperature):
    return None


@leaf
def follow(state, i, loss, bend, temperature, floor, gain):
    """Put one sample of ξ K'² and K'' into the running means, and the centre where they say.

    The injected noise alone asks for μ = σ_p − B̂/T. Half of that is the floor, which keeps an unlucky start from running
    away; a floor at the whole would cool the chain, since the scatter of the estimate would then be one-sided.
    """
    state.loss[i] += gain * (loss - state.loss[i])
    state.bend[i] += gain * (bend - state.bend[i])
    found = max(0.5 * floor, state.loss[i] / (temperature * state.bend[i]))
    state.center[i] = found if state.bend[i] > 0.0 else state.center[i]  # K'' can be negative where K is concave


@open_function
def account(thermostat, loss, i, dim, heat, step, h):
    """Enter the energy `heat` that fresh momenta took out of coordinate i into the balance that `learn` keeps."""


@implements(account)
def _(thermostat, loss, i, dim, heat, step, h):
    return None


@leaf
def power_share(thermostat, dim, heat, step, h):
    """What the energy `heat` adds to the running mean of the power that a thermostat takes out."""
    # A sample of `learn` stands for LEARN_EVERY steps; so much power is the heat, spread over them.
    power = heat / (h * like(h, LEARN_EVERY)) if h > 0.0 else h
    return thermostat.adaptive * learning_gain(h, step) / sharers(thermostat, dim) * power


@implements(account, PerCoordinate)
def _(thermostat, loss, i, dim, heat, step, h):
    loss[i] += power_share(thermostat, dim, heat, step, h)


@implements(account, PerChain)
def _(thermostat, loss, i, dim, heat, step, h):
    loss[0] += power_share(thermostat, dim, heat, step, h)


@implements(learn, PerCoordinate)
def _(thermostat, kinetics, temperature, floor, state, back, ahead, step):
    gain = learning_gain(thermostat.gamma, step)
    for i in range(state.p.size):
        power, bend = power_and_bend(
            kinetics, state.p[i], state.xi[i], state.center[i], state.bend[i], temperature, back, ahead
        )
        follow(state, i, power, bend, temperature, floor, gain)


@implements(learn, PerChain)
def _(thermostat, kinetics, temperature, floor, state, back, ahead, step):
    gain = learning_gain(thermostat.gamma, step)
    powers, bends = gain - gain, gain - gain
    for i in range(state.p.size):
        power, bend = power_and_bend(
            kinetics, state.p[i], state.xi[0], state.center[0], state.bend[0], temperature, back, ahead
        )
        powers += power
        bends += bend
    n = like(gain, state.p.size)
    follow(state, 0, powers / n, bends / n, temperature, floor, gain)


@leaf
def relaxation(v, sigma_xi, temperature, tau):
    """(what is left of ξ − μ after a time tau, the size of the noise that has come in its place)."""
    rate = sigma_xi * tau / v
    return exp(-rate), math.sqrt(-v * temperature * expm1(-2.0 * rate))


@implements(relax, _NoseHoover)
def _(thermostat, xi, center, normals, dim, sigma_xi, temperature, tau):
    decay, spread = relaxation(thermostat.gamma / sharers(thermostat, dim), sigma_xi, temperature, tau)
    for i in range(xi.size):
        xi[i] = relaxed(xi[i], center[i], decay, spread, normals[i])


@leaf
def relaxed(xi, center, decay, spread, normal):
    """μ + decay (ξ − μ) + spread n."""
    return center + decay * (xi - center) + spread * normal


@implements(resample, _NoseHoover)
def _(thermostat, xi, center, normals, dim, temperature):
    spread = math.sqrt(thermostat.gamma * temperature / sharers(thermostat, dim))
    for i in range(xi.size):
        xi[i] = center[i] + spread * normals[i]


@leaf
def euler_step(thermostat, dynamics, state, noise, i, excess, h):
    """ξ_i after an explicit Euler step. A fresh draw that falls due replaces it, so its noise is not used twice."""
    v = thermostat.gamma / sharers(thermostat, state.theta.size)
    pull = dynamics.sigma_xi * (state.xi[i] - state.center[i]) / v
    amplitude = math.sqrt(2.0 * dynamics.sigma_xi * dynamics.temperature * h)
    return state.xi[i] + h * (thermostat.gamma * excess - pull) + amplitude * noise.xi[i]


@open_function
def euler_own(thermostat, dynamics, state, noise, i, excess, h):
    """Explicit Euler for the ξ of coordinate i, if it has one."""


@open_function
def euler_shared(thermostat, dynamics, state, noise, mean_excess, h):
    """Explicit Euler for the one ξ of a chain, if that is what it has."""


@implements(euler_own)
def _(thermostat, dynamics, state, noise, i, excess, h):
    return None


@implements(euler_own, PerCoordinate)
def _(thermostat, dynamics, state, noise, i, excess, h):
    state.xi[i] = euler_step(thermostat, dynamics, state, noise, i, excess, h)


@implements(euler_shared)
def _(thermostat, dynamics, state, noise, mean_excess, h):
    return None


@implements(euler_shared, PerChain)
def _(thermostat, dynamics, state, noise, mean_excess, h):
    state.xi[0] = euler_step(thermostat, dynamics, state, noise, 0, mean_excess, h)
