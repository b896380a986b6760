"""U: drift, friction and noise together, solved exactly for Gaussian kinetics with a constant friction.

With a = f/m, z = aτ and E = (1 − e^{−z})/z, e₂ = (1 − e^{−2z})/(2z), over a time τ:

    p ← e^{−z} p + √(2Dτ e₂) n₁
    φ ← φ + (τ/m) E p + (τ/m) √(Dτ/2) E²/√e₂ n₁ + (τ/m) √(2Dτ (g − E⁴/(4e₂))) n₂,   g = (z − 2(1 − e^{−z}) + ½(1 − e^{−2z}))/z³

(Paulin, Whalley, Chada, Leimkuhler 2024, in the form with D and m.) g loses its digits for small z and is a series there.
"""

from __future__ import annotations

import math

from sgmcmc.compiler.open_functions import LOOP, implements, leaf, open_function
from sgmcmc.compiler.precision import like, zero
from sgmcmc.elementary import expm1
from sgmcmc.integrators.preconditioning import at
from sgmcmc.integrators.state import note
from sgmcmc.kinetics import Gaussian, Overdamped
from sgmcmc.thermostats import FixedFriction

__all__ = ["joint_flow"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@open_function(on=2, fastmath=LOOP, apart=True)
def joint_flow(kinetics, thermostat, scale, dynamics, state, noise, diffusion, first, share, tau):
    """U over a time tau. Returns the mean of Σ p K'(p) at its beginning and at its end."""


@leaf
def relative_decay(z):
    """(1 − e^{−z})/z, 1 at z = 0."""
    safe = z if z != 0.0 else like(z, 1)
    return -expm1(-safe) / safe if z != 0.0 else like(z, 1)


@leaf
def third_order_rest(z):
    """g(z) = (z − 2(1 − e^{−z}) + ½(1 − e^{−2z}))/z³, 1/3 at z = 0."""
    short = abs(z) < 0.3
    safe = like(z, 1) if short else z
    direct = (safe + 2.0 * expm1(-safe) - 0.5 * expm1(-2.0 * safe)) / (safe * safe * safe)
    # Σ_k (−z)^k (2^{k+2} − 2)/(k + 3)!; what is left out is 3e-16 at z = 0.3
    series = like(z, 1.2527583625467223e-08)
    series = -9.394540644540644e-08 + z * series
    series = 6.574572546794769e-07 + z * series
    series = -4.2713844797178134e-06 + z * series
    series = 2.5603254769921436e-05 + z * series
    series = -0.00014054232804232804 + z * series
    series = 0.0006999559082892416 + z * series
    series = -0.003125 + z * series
    series = 0.012301587301587301 + z * series
    series = -0.041666666666666664 + z * series
    series = 0.11666666666666667 + z * series
    series = -0.25 + z * series
    series = 0.3333333333333333 + z * series
    return series if short else direct


@implements(joint_flow, Gaussian, FixedFriction)
def _(kinetics, thermostat, scale, dynamics, state, noise, diffusion, first, share, tau):
    theta, p, inverse = state.theta, state.p, 1.0 / kinetics.mass
    z = dynamics.sigma_p * tau * inverse
    E, e2 = relative_decay(z), relative_decay(2.0 * z)
    decay, reach = expm1(-z), tau * inverse
    own = math.sqrt(2.0 * diffusion * tau * e2)
    common = reach * math.sqrt(0.5 * diffusion * tau / e2) * E * E
    rest = reach * math.sqrt(2.0 * diffusion * tau * (third_order_rest(z) - 0.25 * E * E * E * E / e2))
    virial = zero(tau)
    for i in range(p.size):
        q = (p[i] + decay * p[i]) + own * noise.p[i]
        theta[i] += at(scale, i) * (reach * E * p[i] + common * noise.p[i] + rest * noise.theta[i])
        virial = note(dynamics.layout, i, virial, 0.5 * inverse * (p[i] * p[i] + q * q), first, share)
        p[i] = q
    return virial


@implements(joint_flow, Overdamped, FixedFriction)
def _(kinetics, thermostat, scale, dynamics, state, noise, diffusion, first, share, tau):
    return zero(tau)
