"""Problems whose truth is drawn: a prior for θ, and a model with data simulated at θ.

At a temperature T = 2, 3, … a model has every row T times and a prior of variance 1/T of the true one: U is then T times as
large, and exp(−U/T) the posterior again.

Ranks of θ alone cannot see a sampler that takes no notice of the data: draws from the prior have uniform ranks too (Modrák et
al. 2023, https://doi.org/10.1214/23-BA1404). Hence the loss, a quantity of θ and y together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Problem", "linear", "logistic", "softmax", "tamper"]

Array = NDArray[np.float64]


class Problem(NamedTuple):
    """How θ is drawn from its prior, and a model with data from p(y | θ)."""

    name: str
    prior: Callable[[np.random.Generator], Array]
    simulate: Callable[[Array, np.random.Generator], Any]
    loss: Callable[
        [Any, Array], Array
    ]  # −log p(y | θ) up to a constant, at draws (…, dim), from the model's data alone
    posterior: Callable[[Any], tuple[Array, Array]] | None = (
        None  # its mean and covariance, from the model's data alone
    )


def _design(rows: int, columns: int) -> Array:
    return np.random.default_rng(2017).standard_normal((rows, columns))


def _repeat(temperature: int, X: Array, y: Array) -> tuple[Array, Array, Any]:
    """Data and standard normal prior whose U is `temperature` times as large."""
    from sgmcmc.priors import Gaussian

    return np.repeat(X, temperature, axis=0), np.repeat(y, temperature), Gaussian(temperature**-0.5)


def linear(temperature: int = 1, rows: int = 8) -> Problem:
    """y ~ N(x·θ, 1) with two coefficients, whose exact posterior is known too."""
    from sgmcmc.models import LinearRegression

    def simulate(theta: Array, rng: np.random.Generator) -> Any:
        X, y, prior = _repeat(temperature, design, design @ theta + rng.standard_normal(rows))
        return LinearRegression(X, y, 1.0, prior)

    def posterior(model: Any) -> tuple[Array, Array]:
        covariance = np.linalg.inv(model.X.T @ model.X / temperature + np.eye(2))
        return covariance @ (model.X.T @ model.y / temperature), covariance

    def loss(model: Any, theta: Array) -> Array:
        squares: Array = ((model.y - theta @ model.X.T) ** 2).sum(axis=-1)
        return squares

    design = _design(rows, 2)
    return Problem("linear regression", lambda rng: rng.standard_normal(2), simulate, loss, posterior)


def logistic(temperature: int = 1, rows: int = 12) -> Problem:
    """Two coefficients."""
    from sgmcmc.models import LogisticRegression

    def simulate(theta: Array, rng: np.random.Generator) -> Any:
        y = rng.random(rows) < 1.0 / (1.0 + np.exp(-design @ theta))
        return LogisticRegression(*_repeat(temperature, design, y.astype(float)))

    def loss(model: Any, theta: Array) -> Array:
        z = theta @ model.X.T
        value: Array = (np.logaddexp(0.0, z) - model.y * z).sum(axis=-1)
        return value

    design = 1.5 * _design(rows, 2)
    return Problem("logistic regression", lambda rng: rng.standard_normal(2), simulate, loss)


def softmax(temperature: int = 1, rows: int = 12) -> Problem:
    """Two features and three classes: six coefficients."""
    from sgmcmc.models import SoftmaxRegression

    def simulate(theta: Array, rng: np.random.Generator) -> Any:
        z = design @ theta.reshape(2, 3) + rng.gumbel(size=(rows, 3))  # the largest has the law of softmax
        return SoftmaxRegression(*_repeat(temperature, design, z.argmax(axis=1)), classes=3)

    def loss(model: Any, theta: Array) -> Array:
        z = np.einsum("nf,...fk->...nk", model.X, theta.reshape(*theta.shape[:-1], 2, 3))
        chosen = z[..., np.arange(len(model.y)), model.y]
        value: Array = (np.log(np.exp(z).sum(axis=-1)) - chosen).sum(axis=-1)
        return value

    design = _design(rows, 2)
    return Problem("softmax regression", lambda rng: rng.standard_normal(6), simulate, loss)


def tamper(problem: Problem, change: Callable[[Any], Any], what: str) -> Problem:
    """The problem with a fault in its model: a negative control."""
    name = f"{problem.name}, {what}"
    return problem._replace(name=name, simulate=lambda theta, rng: change(problem.simulate(theta, rng)))
