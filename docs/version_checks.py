"""What docs/versions.py runs in every environment, each in a process of its own; the last line says what was found, as JSON.

    python docs/version_checks.py versions | samplers | gradient | kinetics

Chains are short, but long enough that a wrong mean or variance is seen: |z| < 6 over 64 chains.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

import sgmcmc as sg
from sgmcmc.compiler import waiting
from sgmcmc.elementary import softplus, tanh
from sgmcmc.kinetics import curvature, energy, velocity

PACKAGES = ("numba", "llvmlite", "numpy", "scipy", "pandas", "matplotlib", "tqdm", "arviz-stats")
PRESETS = {
    "SGLD": sg.SGLD(0.02),
    "SGHMC": sg.SGHMC(0.1),
    "SGNHT": sg.SGNHT(0.1),
    "SGMGT": sg.SGMGT(0.1, a=2),
    "SGMGTD": sg.SGMGTD(0.05, a=2),
}
MEAN, VARIANCE = np.array([1.0, -2.0, 0.5]), np.array([1.1, 2.3, 0.7])  # no powers of two: every product is rounded


class LogCosh(NamedTuple):
    """K = log(2 cosh p): a kinetics of one's own, as on docs/composing.md."""


@sg.implements(energy, LogCosh)
def _(kinetics: Any, p: Any) -> Any:
    return abs(p) + softplus(-2.0 * abs(p))


@sg.implements(velocity, LogCosh)
def _(kinetics: Any, p: Any) -> Any:
    return tanh(p)


@sg.implements(curvature, LogCosh)
def _(kinetics: Any, p: Any) -> Any:
    return 1.0 - tanh(p) * tanh(p)


@numba.njit
def own_gradient(theta: Any, data: Any, rows: Any, out: Any) -> None:
    """Linear regression with noise of sd 1."""
    X, y = data
    for i in rows:
        z = 0.0
        for j in range(theta.size):
            z += X[i, j] * theta[j]
        for j in range(theta.size):
            out[j] += (z - y[i]) * X[i, j]


def samplers() -> dict[str, Any]:
    """The five presets on a built-in model: the law that they should have, and the same bits step by step."""
    model = sg.models.Gaussian(MEAN, VARIANCE)
    for sampler in (*PRESETS.values(), sg.SGMGTD(0.1, a=2, center="fixed"), sg.SGMGTD(0.1, a=1.5)):
        same_bits_by_ask_and_tell(model, sampler)
    return {name: right(model, sampler, MEAN, VARIANCE) for name, sampler in PRESETS.items()}


def same_bits_by_ask_and_tell(model: Any, sampler: Any) -> None:
    """`step` and the loop of `sample` are two kernels; LLVM must not round them in two ways."""
    trace = sg.sample(model, sampler, 300, warmup=0, chains=3, seed=11, init=MEAN, progress=False, warn=False)
    for chain in range(3):
        state = sampler.init(MEAN, seed=11, chain=chain, gradient_variance=0.0)
        for t in range(300):
            state = sampler.step(state, model.gradient(state.theta))
            if not np.array_equal(state.theta, trace.draws[chain, t]):
                raise ValueError(f"{sampler} differs from its steps by ask and tell: chain {chain}, step {t}")


def kinetics() -> dict[str, Any]:
    sampler = sg.Sampler(0.1, kinetics=LogCosh(), thermostat=sg.thermostats.NoseHoover())
    return {"LogCosh": right(sg.models.Gaussian(MEAN, VARIANCE), sampler, MEAN, VARIANCE)}


def gradient() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, -1.0, 0.5] + rng.normal(size=200)
    covariance = np.linalg.inv(X.T @ X + np.eye(3))
    model = sg.Potential(own_gradient, dim=3, data=(X, y), prior=sg.priors.Gaussian(1.0))
    return {"SGNHT": right(model, sg.SGNHT(0.1, scale=200**-0.5), covariance @ X.T @ y, np.diag(covariance))}


def right(model: Any, sampler: Any, mean: Any, variance: Any) -> str:
    """A digest of the draws; an error if their means or variances are off."""
    options: dict[str, Any] = {"chains": 64, "seed": 1, "init": mean, "progress": False, "warn": False}
    draws = sg.sample(model, sampler, 200, warmup=500, thin=10, **options).draws
    for what, found, truth in (("mean", draws, mean), ("variance", (draws - mean) ** 2, variance)):
        chains = found.mean(axis=1)
        z = (chains.mean(axis=0) - truth) / (chains.std(axis=0, ddof=1) / math.sqrt(len(chains)))
        allowed = 6.0 if what == "mean" else 6.0 + 0.03 * truth / (chains.std(axis=0, ddof=1) / math.sqrt(len(chains)))
        if not (abs(z) < allowed).all():  # a step of finite length leaves up to 3 % in a variance
            raise ValueError(f"the {what} of {sampler} is off by {abs(z).max():.1f} standard errors")
    return hashlib.sha256(draws.tobytes()).hexdigest()[:12]


def versions() -> dict[str, str]:
    return {"python": sys.version.split()[0]} | {name: version(name) for name in PACKAGES}


def main() -> None:
    compiled: list[str] = []
    waiting.compiles = compiled.append  # what would be said to who waits
    what = {"versions": versions, "samplers": samplers, "gradient": gradient, "kinetics": kinetics}[sys.argv[1]]
    found = what()
    facts = {"compiled": len(compiled), "seconds": time.process_time(), "from": str(Path(sg.__file__).parent)}
    print(json.dumps(facts | {"found": found}))


if __name__ == "__main__":
    main()
