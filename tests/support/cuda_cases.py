"""What the CUDA tests run: samplers by kinetics, integrator and thermostat, and models, all of three coordinates or so."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, NamedTuple

import numba
import numpy as np
from own_parts import Mirror, PerGroup, Strided

import sgmcmc as sg
from sgmcmc.dispatch import implements
from sgmcmc.integrators import BAOAB, Euler, Splitting, SymmetricSplitting
from sgmcmc.kinetics import curvature, energy, velocity
from sgmcmc.potentials import add_gradient
from sgmcmc.thermostats import couples_coordinates

rng = np.random.default_rng(3)
X = rng.normal(size=(22, 3))
Y = (rng.random(22) < 0.5).astype(float)


class Quartic(NamedTuple):
    """A kinetics of one's own, whose momentum law is tabulated: K = p²/2 + p⁴/4."""

    bend: float


@implements(energy, Quartic)
def _(kinetics, p):
    return 0.5 * p * p + 0.25 * kinetics.bend * p * p * p * p


@implements(velocity, Quartic)
def _(kinetics, p):
    return p + kinetics.bend * p * p * p


@implements(curvature, Quartic)
def _(kinetics, p):
    return 1.0 + 3.0 * kinetics.bend * p * p


class Ring(NamedTuple):
    """A model of one's own: U = (|θ|² − r²)²/4."""

    radius: float
    dim: int


@implements(add_gradient, Ring, allocates=False)
def _(model, theta, rows, out):
    square = theta[0] - theta[0]
    for j in range(theta.size):
        square += theta[j] * theta[j]
    for j in range(theta.size):
        out[j] += (square - model.radius * model.radius) * theta[j]


@numba.njit
def residuals(theta, data, rows, out):
    X, y = data
    for i in rows:
        r = -y[i]
        for j in range(theta.size):
            r += X[i, j] * theta[j]
        for j in range(theta.size):
            out[j] += r * X[i, j]


@numba.njit
def bowl(theta, out):
    for j in range(theta.size):
        out[j] = theta[j]


KINETICS = {
    "gaussian": sg.kinetics.Gaussian(1.5),
    "laplace": sg.kinetics.MonomialGamma(1.0),
    "root": sg.kinetics.MonomialGamma(2.0),
    "general": sg.kinetics.MonomialGamma(1.5),
    "relativistic": sg.kinetics.Relativistic(1.0, 2.0),
    "own": Quartic(0.5),
}
INTEGRATORS = {"euler": Euler(), "symmetric": SymmetricSplitting(), "baoab": BAOAB()}
THERMOSTATS: dict[str, Any] = {
    "fixed": None,
    "coordinate": sg.thermostats.NoseHoover(1.0),
    "chain": sg.thermostats.NoseHoover(1.0, per="chain"),
}


def sampler(kinetics: str, integrator: str, thermostat: str) -> sg.Sampler:
    """Everything is in it that the parts allow: all noises, fresh momenta and thermostats within a few steps."""
    steered = THERMOSTATS[thermostat] is not None
    return sg.Sampler(
        0.05,
        kinetics=KINETICS[kinetics],
        integrator=INTEGRATORS[integrator],
        thermostat=THERMOSTATS[thermostat],
        sigma_theta=0.1,
        sigma_xi=0.2 if steered else 0.0,
        resample_momentum=3,
        resample_thermostat=4 if steered else None,
        temperature=0.8,
        scale=np.array([1.0, 0.5, 2.0]),
    )


LOGISTIC = sg.models.LogisticRegression(X, Y)
GAUSS = sg.models.Gaussian([1.0, -2.0, 0.5], [1.0, 4.0, 0.25])
SAMPLERS = {"-".join(names): sampler(*names) for names in itertools.product(KINETICS, INTEGRATORS, THERMOSTATS)}
SAMPLERS |= {
    f"overdamped-{name}": sg.Sampler(0.05, kinetics=None, sigma_theta=1.0, integrator=integrator)
    for name, integrator in INTEGRATORS.items()
}
SAMPLERS |= {
    "SGLD": sg.SGLD(0.1),
    "SGHMC": sg.SGHMC(0.1, 2.0, noise_estimate=0.5),
    "SGNHT": sg.SGNHT(0.1),
    "SGMGT": sg.SGMGT(0.05, a=1.0, resample_momentum=3, resample_thermostat=4),
    "SGMGTD": sg.SGMGTD(0.05, a=2.0, resample_momentum=3, resample_thermostat=4),
    "decay": sg.SGNHT(sg.schedules.PolynomialDecay(0.1)),
    "cyclical": sg.SGNHT(sg.schedules.Cyclical(0.1, 4)),
    "OBABO": sg.SGMGTD(0.05, a=1.0, resample_momentum=3, resample_thermostat=4, integrator="OBABO"),
    "UBU": sg.SGHMC(0.1, 2.0, integrator="UBU"),
    "own thermostat": sg.Sampler(0.05, thermostat=PerGroup(0.8, 2), sigma_xi=0.2, resample_thermostat=4),
    "own flow": sg.SGNHT(0.1, integrator=Splitting("BAWOWAB", W=Mirror(0.7))),
}

MODELS = {
    "dense": (sg.models.Gaussian([1.0, -2.0, 0.5], np.cov(X.T)), {}),
    "mixture": (sg.models.GaussianMixture(X[:4], [0.5, 1.0, 1.5, 2.0]), {}),
    "five wells": (sg.models.FiveWell(), {}),
    "linear": (sg.models.LinearRegression(X, Y, 0.7, prior=sg.priors.Laplace(2.0)), {"batch_size": 5}),
    "logistic": (sg.models.LogisticRegression(X, Y), {"batch_size": 7}),
    "different rows": (sg.models.LogisticRegression(X, Y), {"batch_size": 6, "minibatch": "no-replacement"}),
    "shuffled rows": (sg.models.LogisticRegression(X, Y), {"batch_size": 6, "minibatch": "shuffle"}),
    "all rows": (sg.models.LogisticRegression(X, Y, prior=sg.priors.LogGamma(2.0)), {}),
    "softmax": (sg.models.SoftmaxRegression(X, np.arange(22) % 3), {"batch_size": 5}),
    "ring": (Ring(1.5, 3), {}),
    "own with data": (sg.Potential(residuals, 3, (X, Y), prior=sg.priors.Gaussian(2.0)), {"batch_size": 5}),
    "own without": (sg.Potential(bowl, 3), {}),
    "noisy": (GAUSS, {"gradient_noise": 0.5, "clip_gradient": 1.0}),
    "thinned": (GAUSS, {"thin": 2}),
    "own rows": (sg.models.LogisticRegression(X, Y), {"batch_size": 6, "minibatch": Strided(5)}),
}

RUN = {"draws": 5, "warmup": 3, "chains": 3, "seed": 2**40 + 8, "init": 0.5, "threads": 1, "progress": False}
RUN |= {"warn": False}  # numbers are compared, whatever they say of the posterior


def runs(kind: Any) -> dict[str, tuple[Any, sg.Sampler, dict[str, Any]]]:
    """(model, sampler, options) by name."""
    common = RUN | {"dtype": kind}
    found = {f"sampler {name}": (GAUSS, one, common) for name, one in SAMPLERS.items()}
    found |= measured_runs(kind, LOGISTIC, MODELS["own with data"][0], np.array([1.0, 0.5, 2.0]), common)
    return found | {f"model {name}": (model, sg.SGNHT(0.02), common | more) for name, (model, more) in MODELS.items()}


LENGTH = 10  # not a multiple of four

# The variance of gradient noise is measured on two halves of the rows, on every seventh step: here three times.
STEERED = {
    "coordinate": sg.SGMGTD(0.05, a=2.0, resample_momentum=3, resample_thermostat=4),
    "chain": sg.Sampler(0.05, sigma_p=1.0, sigma_xi=0.2, thermostat=sg.thermostats.NoseHoover(1.0, per="chain")),
}
ROWS = list(itertools.product((1, 2, 5, 16), ("replacement", "no-replacement"), ("coordinate",)))
ROWS += [(1, "shuffle", "coordinate"), (1, "shuffle", "chain"), (5, "shuffle", "chain"), (2, "replacement", "chain")]
NOISY = {"gradient_noise": 0.5, "clip_gradient": 3.0}


def measured_runs(
    kind: Any, model: Any, own: Any, scale: Any, common: dict[str, Any]
) -> dict[str, tuple[Any, sg.Sampler, dict[str, Any]]]:
    """Runs that measure the variance of their gradient noise, by name; `own` is a model of one's own."""
    common = common | {"dtype": kind, "warmup": 12}
    found = {
        f"measured {size} rows, {rule}, {which}": (
            model,
            STEERED[which],
            common | {"batch_size": size, "minibatch": rule},
        )
        for size, rule, which in ROWS
    }
    scaled = dataclasses.replace(STEERED["coordinate"], scale=scale)
    found["measured, noisy, clipped, scaled"] = model, scaled, common | NOISY | {"batch_size": 5}
    for size in (1, 5):
        found[f"measured, own, {size} rows"] = own, STEERED["coordinate"], common | {"batch_size": size}
    return found


def longer(one: sg.Sampler) -> sg.Sampler:
    """The sampler for a vector of this length."""
    return dataclasses.replace(one, scale=np.linspace(0.5, 2.0, LENGTH)) if isinstance(one.scale, np.ndarray) else one


# ---- a block of threads per chain: more features than one group of four, more rows than fit between two barriers ---------

WIDE_X = rng.normal(size=(90, LENGTH))
WIDE_Y = (rng.random(90) < 0.5).astype(float)
WIDE = sg.models.LogisticRegression(WIDE_X, WIDE_Y)
LONG_X = rng.normal(size=(2600, 17))  # the CPU sums 2500 of these rows in five parts, and compares two with three
LONG = sg.models.LinearRegression(LONG_X, LONG_X[:, 0] + rng.normal(size=2600), 1.0)
BLOCK_MODELS = {
    "linear": (sg.models.LinearRegression(WIDE_X, WIDE_Y, 0.7, prior=sg.priors.Laplace(2.0)), {"batch_size": 5}),
    "different rows": (WIDE, {"batch_size": 6, "minibatch": "no-replacement"}),
    "shuffled rows": (WIDE, {"batch_size": 6, "minibatch": "shuffle"}),
    "two strips": (WIDE, {"batch_size": 70}),
    "all rows": (WIDE, {}),
    "softmax": (sg.models.SoftmaxRegression(WIDE_X, np.arange(90) % 3), {"batch_size": 30}),
    "too many classes": (sg.models.SoftmaxRegression(WIDE_X[:, :2], np.arange(90) % 65), {"batch_size": 2}),
    "ring": (Ring(1.5, LENGTH), {}),
    "own with data": (sg.Potential(residuals, LENGTH, (WIDE_X, WIDE_Y)), {"batch_size": 5}),
    "noisy": (WIDE, {"batch_size": 5, "gradient_noise": 0.5, "clip_gradient": 1.0}),
    "thinned": (WIDE, {"batch_size": 5, "thin": 2}),
}


def block_runs(kind: Any) -> dict[str, tuple[Any, sg.Sampler, dict[str, Any]]]:
    """(model, sampler, options) by name, for a block of threads per chain."""
    common = RUN | {"dtype": kind, "chains": 2}
    kinds = itertools.product(("gaussian", "laplace", "root"), INTEGRATORS, THERMOSTATS)
    names = ["-".join(each) for each in kinds] + ["SGLD", "overdamped-baoab", "cyclical"]
    found = {f"sampler {n}": (WIDE, longer(SAMPLERS[n]), common | {"batch_size": 5}) for n in names}
    more = {f"model {n}": (model, sg.SGNHT(0.02), common | rest) for n, (model, rest) in BLOCK_MODELS.items()}
    more |= measured_runs(kind, WIDE, BLOCK_MODELS["own with data"][0], np.linspace(0.5, 2.0, LENGTH), common)
    once = common | {"chains": 1, "draws": 2, "warmup": 0}
    steered = STEERED["coordinate"]
    more["measured, halves of two strips"] = BLOCK_MODELS["softmax"][0], steered, once | {"batch_size": 60}
    if kind is np.float64:  # a sum of 2500 rows in another order is another in single precision
        more["measured, halves of unequal size"] = LONG, sg.SGMGTD(0.002, a=2.0), once | {"batch_size": 2500}
    return found | more


class Foreign:
    """A device array of another library, as far as anybody can tell; its memory is the host's."""

    def __init__(self, array: Any) -> None:
        self.array = np.array(array)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        data = (self.array.ctypes.data, False)
        return {"shape": self.array.shape, "typestr": self.array.dtype.str, "data": data, "version": 3}


SINGLY = {n: longer(s) for n, s in SAMPLERS.items() if not couples_coordinates(s.thermostat)}


def walk(one: sg.Sampler, kind: Any, place: Any, steps: int = 9, moments: Any = None) -> list[Any]:
    """The states of a chain with ∇U = θ − 1, whose arrays `place` puts somewhere."""
    state = one.init(place(np.linspace(-1.0, 1.0, LENGTH).astype(kind)), seed=2**40 + 3, chain=5)
    found = []
    for _ in range(steps):
        state = one.step(state, place(np.asarray(state.theta) - kind(1.0)), moments=moments)
        found.append([np.array(a) for a in state.arrays])
    return found


def moments_error(moments: Any, states: list[Any]) -> float:
    """How far running moments are from NumPy's of the states of a walk, relative to the largest number."""
    seen = np.array([state[0] for state in states], np.float64)
    off = [np.asarray(moments.mean) - seen.mean(0), np.asarray(moments.variance) - seen.var(0)]
    assert moments.count == len(states)
    assert np.asarray(moments.variance).min() > 0.0
    return float(np.abs(off).max() / np.abs(seen).max())
