"""Samplers are compositions: the same parts written out, one part swapped, one part of your own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import sgmcmc as sg
from sgmcmc.elementary import softplus, tanh
from sgmcmc.kinetics import curvature, energy, velocity

rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 3))
y = rng.random(1000) < 1.0 / (1.0 + np.exp(-X @ [1.0, -2.0, 0.5]))
model = sg.models.LogisticRegression(X, y)


def show(name, sampler):
    trace = sg.sample(model, sampler, draws=2000, warmup=10_000, thin=20, batch_size=100, seed=1, progress=False)
    table = trace.summary()
    print(f"{name:<10} sd {table['sd'].to_numpy().round(3)}  least ESS {table['ess_bulk'].min():.0f}")


# A preset is a composition: these two are equal.
parts = sg.Sampler(
    step_size=0.05,
    kinetics=sg.kinetics.MonomialGamma(a=1),
    thermostat=sg.thermostats.NoseHoover(gamma=1.0),
    scale=0.1,
    sigma_theta=0.1,
    sigma_xi=0.1,
    resample_momentum=100,
    resample_thermostat=100,
)
assert parts == sg.SGMGTD(0.05, a=1, scale=0.1)
show("SGMGT-D", parts)


class LogCosh(NamedTuple):
    """A kinetics of your own: K = log(2 cosh p), whose velocities stay below 1."""


@sg.implements(energy, LogCosh)
def _(kinetics, p):
    return abs(p) + softplus(-2.0 * abs(p))


@sg.implements(velocity, LogCosh)
def _(kinetics, p):
    return tanh(p)


@sg.implements(curvature, LogCosh)
def _(kinetics, p):
    return 1.0 - tanh(p) * tanh(p)


show("log cosh", sg.Sampler(0.05, kinetics=LogCosh(), thermostat=sg.thermostats.NoseHoover(), scale=0.1))
