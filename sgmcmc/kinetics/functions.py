"""What a kinetics can do: open functions on its type, and what follows for any type from three of them.

A kinetics K(p) is an even function of one momentum; the momentum law at temperature T is exp(−K(p)/T). A new kinetics
gives `energy`, `velocity` and `curvature`. The rest has a fallback here, and `tabulated` gives it a momentum law.
Every function takes and returns scalars of one precision, float32 or float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sgmcmc.compiler.open_functions import LOOP, implements, leaf, open_function
from sgmcmc.compiler.precision import like
from sgmcmc.elementary import exp

__all__ = [
    "acceptance",
    "arrival",
    "bounded_inverse_mass",
    "curvature",
    "draw",
    "energy",
    "fill_momenta",
    "fill_one_by_one",
    "friction_flow",
    "halfway",
    "inverse_mass",
    "log_normaliser",
    "specialise",
    "velocity",
    "velocity_and_excess",
]


@open_function(elementwise=True)
def energy(kinetics: Any, p: Any) -> Any:
    """Returns the kinetic energy K(p).

    Parameters
    ----------
    kinetics : NamedTuple
    p : float or array

    Returns
    -------
    float or array

    Examples
    --------
    >>> sg.kinetics.energy(sg.kinetics.Gaussian(mass=2.0), 4.0)
    4.0
    """


@open_function(elementwise=True)
def velocity(kinetics: Any, p: Any) -> Any:
    """Returns the velocity K'(p).

    Parameters
    ----------
    kinetics : NamedTuple
    p : float or array

    Returns
    -------
    float or array

    Examples
    --------
    >>> sg.kinetics.velocity(sg.kinetics.Gaussian(mass=2.0), 4.0)
    2.0
    """


@open_function(elementwise=True)
def curvature(kinetics: Any, p: Any) -> Any:
    """Returns the second derivative K''(p), an inverse mass.

    Parameters
    ----------
    kinetics : NamedTuple
    p : float or array

    Returns
    -------
    float or array

    Examples
    --------
    >>> sg.kinetics.curvature(sg.kinetics.Gaussian(mass=2.0), 4.0)
    0.5
    """


@open_function(elementwise=True)
def inverse_mass(kinetics: Any, p: Any) -> Any:
    """Returns the inverse mass K'(p)/p, even and not negative; its limit K''(0) at p = 0.

    Parameters
    ----------
    kinetics : NamedTuple
    p : float or array

    Returns
    -------
    float or array

    Examples
    --------
    >>> sg.kinetics.inverse_mass(sg.kinetics.Gaussian(mass=2.0), 0.0)
    0.5
    """


@open_function
def velocity_and_excess(kinetics: Any, p: Any, temperature: Any) -> Any:
    """Returns K'(p) and K'(p)² − T K''(p), whose mean under the momentum law is 0: what the thermostat is driven by.

    Parameters
    ----------
    kinetics : NamedTuple
    p, temperature : float

    Returns
    -------
    velocity, excess : float

    Examples
    --------
    >>> sg.kinetics.velocity_and_excess(sg.kinetics.Gaussian(), 2.0, 1.0)
    (2.0, 3.0)
    """


@open_function
def friction_flow(kinetics: Any, p: Any, rate_time: Any) -> Any:
    """Returns the momentum to which dp = −f K'(p) dt takes p within a time τ.

    Parameters
    ----------
    kinetics : NamedTuple
    p, rate_time : float
        `rate_time` is f τ, of either sign.

    Returns
    -------
    float

    Examples
    --------
    >>> float(sg.kinetics.friction_flow(sg.kinetics.Gaussian(), 2.0, 0.0))
    2.0
    """


@open_function(inline=False)
def draw(kinetics: Any, temperature: Any, stream: Any, step: Any, index: Any) -> Any:
    """Returns an exact draw of p from exp(−K(p)/T), at the address (stream, step, index).

    Parameters
    ----------
    kinetics : NamedTuple
    temperature : float
    stream : Stream, of `sgmcmc.rng.stream(seed, chain)`
    step, index : int

    Returns
    -------
    float

    Examples
    --------
    >>> from sgmcmc.rng import stream
    >>> round(float(sg.kinetics.draw(sg.kinetics.Gaussian(), 1.0, stream(1), 0, 0)), 3)
    1.567
    """


@open_function(inline=False, fastmath=LOOP)
def fill_momenta(kinetics: Any, temperature: Any, p: Any, stream: Any, step: Any, first: Any) -> Any:
    """p[i] = the `draw` at (stream, step, first + i), for all i."""


@open_function
def log_normaliser(kinetics: Any, temperature: Any) -> Any:
    """Returns log ∫ exp(−K(p)/T) dp, in plain Python.

    Parameters
    ----------
    kinetics : NamedTuple
    temperature : float

    Returns
    -------
    float

    Examples
    --------
    >>> sg.kinetics.log_normaliser(sg.kinetics.Gaussian(mass=1.0 / (2.0 * np.pi)), 1.0)
    0.0
    """


@open_function
def acceptance(kinetics: Any, temperature: Any) -> Any:
    """The mean acceptance of the rejection step in `draw` (1 where nothing is rejected), in plain Python."""


@open_function
def specialise(kinetics: Any) -> Any:
    """The form of a kinetics that kernels are compiled for, chosen from its values: another type with the same laws, or itself.

    Called in plain Python, once for a run, so that a kernel holds one form alone.
    """


@implements(fill_momenta)
def fill_one_by_one(kinetics: Any, temperature: Any, p: Any, stream: Any, step: Any, first: Any) -> None:
    """For any kinetics; and on a GPU for all of them, where a thread has no vectors to fill."""
    for i in range(p.size):
        p[i] = draw(kinetics, temperature, stream, step, first + i)


@implements(inverse_mass)
def _(kinetics: Any, p: Any) -> Any:
    safe = p if p != 0.0 else p + 1.0
    return velocity(kinetics, safe) / safe if p != 0.0 else curvature(kinetics, p)


@implements(velocity_and_excess)
def _(kinetics: Any, p: Any, temperature: Any) -> Any:
    v = velocity(kinetics, p)
    return v, v * v - temperature * curvature(kinetics, p)


@leaf
def _bounded(x: Any) -> Any:
    """x, but at most 40 in size: e^±40 is as good as never and for ever, and still a float32."""
    below = like(x, 40.0) if x > 40.0 else x
    return like(x, -40.0) if below < -40.0 else below


@leaf
def _capped(x: Any) -> Any:
    return x if x < 1e30 else like(x, 1e30)


# The midpoint rule for the friction flow, second order and stable for every step: q = p e^{−½ fτ K'(p)/p} is half way, then
# p ← p e^{−fτ K'(q)/q}. Where K'(p)/p has no bound (stiff laws, near 0) it is taken as 1e30, and q is kept from 0 and infinity.


@leaf
def bounded_inverse_mass(kinetics: Any, p: Any) -> Any:
    """K'(p)/p, at most 1e30."""
    return _capped(inverse_mass(kinetics, p))


@leaf
def halfway(p: Any, rate_time: Any, inverse: Any) -> Any:
    """q, from p and K'(p)/p."""
    return p * exp(_bounded(-0.5 * rate_time * inverse))


@leaf
def arrival(p: Any, rate_time: Any, inverse: Any) -> Any:
    """p after the flow, from p and K'(q)/q; backwards it grows by e^80 at most, as 0 times infinity would be NaN."""
    exponent = -rate_time * inverse
    return p * exp(like(exponent, 80.0) if exponent > 80.0 else exponent)


@implements(friction_flow)
def _(kinetics: Any, p: Any, rate_time: Any) -> Any:
    q = halfway(p, rate_time, bounded_inverse_mass(kinetics, p))
    return arrival(p, rate_time, bounded_inverse_mass(kinetics, q))


@implements(specialise)
def _(kinetics: Any) -> Any:
    return kinetics


@implements(acceptance)
def _(kinetics: Any, temperature: Any) -> Any:
    return 1.0


@implements(log_normaliser)
def _(kinetics: Any, temperature: Any) -> Any:
    # ∫ exp(−K/T) dp = 2 ∫ exp(y − K(e^y)/T) dy with y = log p: the trapezium rule converges exponentially.
    y = np.arange(-300.0, 690.0, 1.0 / 16.0)
    with np.errstate(all="ignore"):
        log_weight = y - np.array([energy(kinetics, p) for p in np.exp(y)]) / temperature
    top = log_weight.max()
    return float(top + np.log(np.exp(log_weight - top).sum() / 8.0))
