"""For the scripts beside this file: targets whose truth is known, how far draws are off, the paper's own scheme, tables kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import sgmcmc as sg
from sgmcmc import datasets
from sgmcmc.evidence.experiments.exact import logistic_posterior
from sgmcmc.evidence.experiments.logistic import BATCH, DATA, PRIOR, distance
from sgmcmc.tuning import find_scale


class Target(NamedTuple):
    """A model, the spread of its coordinates, its largest curvature in these units, and how far draws are off."""

    model: Any
    scale: Any
    steepest: float
    error: Callable[[Any], float]
    options: dict[str, Any]


def wells() -> Target:
    """Five wells in one dimension at T = 2 with gradient noise; total variation of the shares of the wells."""
    model = sg.models.FiveWell()
    theta = np.linspace(-3.0, 3.5, 20_001)
    density = np.exp([-model.energy(np.array([x])) / 2.0 for x in theta])
    edges = np.array([-np.inf, *model.BARRIERS, np.inf])
    place = np.searchsorted(edges, theta) - 1
    exact = np.bincount(place, density, len(edges) - 1) / density.sum()

    def error(draws: Any) -> float:
        found = np.bincount(np.searchsorted(edges, draws.ravel()) - 1, minlength=len(exact)) / draws.size
        return 0.5 * float(np.abs(found - exact).sum())

    return Target(model, 1.0, 150.0, error, {"gradient_noise": 10.0, "temperature": 2.0})


def mixture(dim: int = 100) -> Target:
    """Three round Gaussians in 100 dimensions, 5 standard deviations apart, with weights 0.5, 0.3, 0.2; as for the wells."""
    means = np.zeros((3, dim))
    means[1, :2], means[2, :2] = (5.0, 0.0), (2.5, 4.33)
    model = sg.models.GaussianMixture(means, 1.0, [0.5, 0.3, 0.2])

    def error(draws: Any) -> float:
        flat = draws.reshape(-1, dim)
        nearest = ((flat[:, None, :2] - means[None, :, :2]) ** 2).sum(axis=2).argmin(axis=1)
        # 0.6 % of a component is nearer to another: that much is no error
        return 0.5 * float(np.abs(np.bincount(nearest, minlength=3) / len(flat) - [0.5, 0.3, 0.2]).sum())

    return Target(model, 1.0, 1.0, error, {})


def regression(letter: str, draws: int) -> tuple[Any, Any]:
    """The model of the first fold, as in the experiments, and so many draws of its exact posterior from each of eight chains."""
    train, _ = datasets.fold(datasets.load(DATA[letter]), 0, 0)
    model = sg.models.LogisticRegression(train.X, train.y, prior=sg.priors.Gaussian(PRIOR), intercept=True)
    return model, logistic_posterior(np.column_stack((np.ones(len(train.X)), train.X)), train.y, PRIOR, draws, seed=0)


def logistic(letter: str) -> Target:
    """The error of mean and sd, as in the experiments."""
    model, truth = regression(letter, 2000)
    pilot = find_scale(model)
    options = {"batch_size": max(BATCH, model.n_rows // 8)}
    return Target(model, pilot.scale, pilot.steepest, lambda d: distance(d.reshape(-1, d.shape[2]), truth), options)


TARGETS: dict[str, Callable[[], Target]] = {
    "wells": wells,
    "mixture": mixture,
    **{letter: (lambda letter=letter: logistic(letter)) for letter in DATA},
}
NAMES = {"wells": "five wells, gradient noise", "mixture": "mixture in 100 dimensions"} | {
    letter: f"logistic regression, {name}" for letter, name in DATA.items()
}


def paper(
    step_size: float,
    a: float = 1.0,
    softening: float = 3.0,
    sigma_theta: float = 0.1,
    sigma_p: float = 1.0,
    sigma_xi: float = 0.1,
    resample_momentum: int = 100,
    resample_thermostat: int = 100,
    temperature: float = 1.0,
    scale: Any = 1.0,
) -> sg.Sampler:
    """SGMGT-D as published: Euler steps, the published softening, a fixed centre of the thermostat."""
    return sg.SGMGTD(
        step_size, a, softening, sigma_theta, sigma_p, sigma_xi, None, resample_momentum, resample_thermostat, temperature,
        order=a, center="fixed", integrator=sg.integrators.Euler(), scale=scale,
    )  # fmt: skip


def with_error(values: Any, mark: str = "") -> str:
    """The mean, between `mark`s, ± its standard error, for a table."""
    return f"{mark}{values.mean():.3g}{mark} ± {values.std() / np.sqrt(len(values)):.1g}"


def kept(file: Path, name: str, rows: list[dict[str, Any]]) -> pd.DataFrame:
    """The table of all targets so far, with these rows in place of what there was of this one."""
    new = pd.DataFrame(rows)
    new.insert(0, "target", name)
    print(new.to_string(), flush=True)
    if file.exists():
        before = pd.read_csv(file, dtype={"a": str})
        new = pd.concat([before[before["target"] != name], new], ignore_index=True)
    new.to_csv(file, index=False)
    return new
