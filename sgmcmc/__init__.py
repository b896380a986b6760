"""Stochastic-gradient MCMC you can trust: modular samplers on NumPy and Numba.

import sgmcmc as sg

model = sg.models.LogisticRegression(X, y, prior=sg.priors.Gaussian(scale=10.0))
trace = sg.sample(model, sg.SGMGTD(step_size=1e-3, a=2), draws=5000, warmup=1000, chains=4, batch_size=16, seed=1)
trace.summary()
"""

__version__ = "0.1.0"

from typing import TYPE_CHECKING

from sgmcmc._lazy import lazily

if TYPE_CHECKING:
    from sgmcmc import adapters as adapters
    from sgmcmc import datasets, integrators, kinetics, minibatch, models, priors, schedules, thermostats, transforms
    from sgmcmc import diagnostics as diagnostics
    from sgmcmc import parameters as parameters
    from sgmcmc import trace as trace
    from sgmcmc.adapters import constrained, from_jax, from_torch
    from sgmcmc.checks import DivergenceError, RunWarning
    from sgmcmc.compiler.open_functions import implements
    from sgmcmc.datasets.out_of_core import Chunks
    from sgmcmc.moments import Moments
    from sgmcmc.potentials import Potential, check_gradient
    from sgmcmc.run.sample import sample
    from sgmcmc.samplers import Sampler
    from sgmcmc.samplers.presets import SGHMC, SGLD, SGMGT, SGMGTD, SGNHT
    from sgmcmc.trace import Trace
    from sgmcmc.trace.consensus import consensus

__all__ = [
    "SGHMC",
    "SGLD",
    "SGMGT",
    "SGMGTD",
    "SGNHT",
    "Chunks",
    "DivergenceError",
    "Moments",
    "Potential",
    "RunWarning",
    "Sampler",
    "Trace",
    "check_gradient",
    "compare",
    "consensus",
    "constrained",
    "datasets",
    "estimators",
    "from_jax",
    "from_torch",
    "implements",
    "integrators",
    "kinetics",
    "minibatch",
    "models",
    "priors",
    "sample",
    "schedules",
    "testing",
    "thermostats",
    "transforms",
    "tune",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "": (
            "adapters",
            "comparison",
            "datasets",
            "diagnostics",
            "estimators",
            "integrators",
            "kinetics",
            "minibatch",
            "models",
            "parameters",
            "priors",
            "schedules",
            "testing",
            "thermostats",
            "trace",
            "transforms",
            "tuning",
        ),
        "adapters": ("constrained", "from_jax", "from_torch"),
        "checks": ("DivergenceError", "RunWarning"),
        "datasets.out_of_core": ("Chunks",),
        "comparison": ("compare",),
        "dispatch": ("implements",),
        "moments": ("Moments",),
        "potentials": ("Potential", "check_gradient"),
        "samplers.presets": ("SGHMC", "SGLD", "SGMGT", "SGMGTD", "SGNHT"),
        "samplers": ("Sampler",),
        "run.sample": ("sample",),
        "trace.consensus": ("consensus",),
        "trace": ("Trace",),
        "tuning": ("tune",),
    },
)
