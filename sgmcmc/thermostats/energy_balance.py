"""The variance of gradient noise from the balance of energies, where it cannot be measured: ask and tell, random functions.

In a stationary state friction and resampling take out of the momentum what all the noise puts in: over a step of size h,

    E[h ξ K'²] + heat of resampling = (hD + w²V/2) E[K''],   D the diffusion that is injected, w the time of the kick.

Running means of what is taken out beyond D (`loss`, an energy per step) and of ½w²K'' (`bend`) give V, for any sequence of step
sizes. What is taken out beyond D is a martingale with the quadratic variation 2μT·h K'' T a step, up to a bounded term: hence
the standard error, with the running mean of h K'' (`span`). V counts only as far as it is known: not at all within two
standard errors of 0. Measured on N(0, 1/1500), where a friction of 1 is 0.026 in natural units, the raw estimate scatters by
more than the truth for the first 10⁵ steps; used as it is, it took 14 % off the variance of θ.
"""

from __future__ import annotations

import math

from sgmcmc.compiler.open_functions import LOOP, implements, leaf, open_function
from sgmcmc.compiler.precision import like, zero
from sgmcmc.elementary import exp_of_ordinary, expm1_of_ordinary, log1p_of_ordinary, tanh
from sgmcmc.kinetics import LinearMonomial, energy, friction_flow, velocity_and_excess
from sgmcmc.thermostats.gradient_noise import LEARN_EVERY, InferredNoise, is_learning_step, learning_gain
from sgmcmc.thermostats.nose_hoover import PerChain, PerCoordinate, at_center

__all__ = ["account", "follow", "is_learning", "learn", "mean_bend", "power_and_bend", "power_and_bend_of_tanh"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@open_function(on=2)
def is_learning(noise, thermostat, step):
    """Whether this step is one of those from which V is inferred."""


@implements(is_learning)
def _(noise, thermostat, step):
    return False


def _is_learning(noise, thermostat, step):
    return thermostat.adaptive > 0.0 and is_learning_step(step)


@open_function(on=2, inline=False, fastmath=LOOP, apart=True)
def learn(noise, thermostat, kinetics, temperature, diffusion, center, state, back, ahead, moment):
    """Put this step into the balance of energies, and V where it says.

    `diffusion` is D, `back` and `ahead` are the times of the friction flow that came before and will come after this moment,
    between two kicks of noise (0 in schemes without).
    """


@implements(learn)
def _(noise, thermostat, kinetics, temperature, diffusion, center, state, back, ahead, moment):
    return None


@open_function(on=2)
def account(noise, thermostat, loss, i, dim, heat, step):
    """Enter the energy `heat` that fresh momenta took out of coordinate i into the balance that `learn` keeps."""


@implements(account)
def _(noise, thermostat, loss, i, dim, heat, step):
    return None


for _kind in (PerCoordinate, PerChain):
    implements(is_learning, InferredNoise, _kind)(_is_learning)


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


@leaf
def follow(state, i, power, bend, temperature, diffusion, center, sharers, moment):
    """Put one sample of ξ K'² and K'' into the running means, and V where they say."""
    h, w, gain = moment.h, 0.5 * (moment.before + moment.h), learning_gain(moment.h, moment.step)
    state.loss[i] += gain * (h * (power - diffusion * bend) - state.loss[i])
    state.bend[i] += gain * (0.5 * w * w * bend - state.bend[i])
    state.span[i] += gain * (h * bend - state.span[i])
    state.variance[i] = known_part(
        state.loss[i],
        state.bend[i],
        state.span[i],
        at_center(center, state.variance[i]),
        temperature,
        sharers,
        moment.step,
    )


@leaf
def known_part(loss, bend, span, friction, temperature, sharers, step):
    """V = loss/bend, shrunk by its standard error: V (1 − (2 se/V)²), and 0 within two standard errors.

    A sample every 7 steps stands for 7 if the power changes slowly, and for itself alone if it does not: hence 1/7 + μ span.
    Weights that grow like t make ¾ as many samples.
    """
    n, apart = 0.75 * like(loss, step // LEARN_EVERY + 1) * sharers, like(loss, LEARN_EVERY)
    error = 2.0 * temperature * temperature * friction * span * (1.0 / apart + friction * span) / n  # of loss, squared
    known = loss > 0.0 and bend > 0.0 and loss * loss > 4.0 * error
    safe = loss * bend if known else like(loss, 1)
    return (loss * loss - 4.0 * error) / safe if known else like(loss, 0)


@leaf
def mean_bend(state, i, h):
    """K'' as the running means have it."""
    return state.span[i] / h if h > 0.0 else state.span[i]


@implements(account, InferredNoise, PerCoordinate)
def _(noise, thermostat, loss, i, dim, heat, step):
    loss[i] += thermostat.adaptive * learning_gain(heat, step) * heat / like(heat, LEARN_EVERY)


@implements(account, InferredNoise, PerChain)
def _(noise, thermostat, loss, i, dim, heat, step):
    loss[0] += thermostat.adaptive * learning_gain(heat, step) * heat / like(heat, LEARN_EVERY * dim)


@implements(learn, InferredNoise, PerCoordinate)
def _(noise, thermostat, kinetics, temperature, diffusion, center, state, back, ahead, moment):
    for i in range(state.p.size):
        friction, before = at_center(center, state.variance[i]), mean_bend(state, i, moment.h)
        power, bend = power_and_bend(kinetics, state.p[i], state.xi[i], friction, before, temperature, back, ahead)
        follow(state, i, power, bend, temperature, diffusion, center, like(power, 1), moment)


@implements(learn, InferredNoise, PerChain)
def _(noise, thermostat, kinetics, temperature, diffusion, center, state, back, ahead, moment):
    powers, bends = zero(moment.h), zero(moment.h)
    friction, before = at_center(center, state.variance[0]), mean_bend(state, 0, moment.h)
    for i in range(state.p.size):
        power, bend = power_and_bend(kinetics, state.p[i], state.xi[0], friction, before, temperature, back, ahead)
        powers += power
        bends += bend
    n = like(powers, state.p.size)
    follow(state, 0, powers / n, bends / n, temperature, diffusion, center, n, moment)
