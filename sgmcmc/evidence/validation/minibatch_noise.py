"""Minibatch noise on linear regression, against its exact stationary covariance.

With constant friction and Gaussian kinetics a step is linear in the state x = (θ, p, pending noise), the gradient and the
normals: x' = M x + G g + N n, where M, G and N are read off the real kernel by probing. The gradient of a batch is
g = A_t θ − b_t, with A_t and b_t means over the rows of the batch plus the prior's share. Batches are independent, hence the
mean and the covariance of x solve linear equations, the noise being multiplicative:

    m = M m + G (Ā m_θ − b̄),     Σ = E[(M + G A_t S) Σ (M + G A_t S)ᵀ] + G Cov(A_t m_θ − b_t) Gᵀ + N Nᵀ,     S x = θ

For n of N rows, E over batches is that over single rows, with variances divided by n, and, without replacement, multiplied by
(N − n)/(N − 1). No limit of small steps or large batches is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators import Euler
from sgmcmc.integrators.state import Noise
from sgmcmc.models.linear import LinearRegression
from sgmcmc.priors import Gaussian
from sgmcmc.samplers import Sampler
from sgmcmc.testing.report import Finding
from sgmcmc.testing.statistics import z_bound, z_of_mean
from sgmcmc.testing.under_test import Kernel, Subject

__all__ = ["LinearMap", "findings", "linear_map", "measured_z", "stationary_law", "without_weight", "worst_z"]

Array = NDArray[np.float64]


class LinearMap(NamedTuple):
    """x' = M x + G g + N n for the state x = (θ, p, pending)."""

    M: Array
    G: Array
    N: Array


def linear_map(subject: Subject, dim: int) -> LinearMap:
    """The matrices of a step in the middle of a run, from one step of many copies that differ in one entry each."""
    sizes = subject.sampler.sizes(dim)
    if sizes.xi:
        raise ValueError("a thermostat makes the step nonlinear; give a sampler with constant friction")
    lengths = [sizes.theta, sizes.p, sizes.pending, dim, sizes.p, dim]  # the state, the gradient, normals of p and θ
    width = sum(lengths)
    theta, p, pending, gradient, noise_p, noise_theta = np.split(
        np.vstack([np.zeros(width), np.eye(width)]), np.cumsum(lengths)[:-1], axis=1
    )
    state = subject.start(theta, p)._replace(pending=pending.copy())
    noise = Noise(noise_p.copy(), noise_theta.copy(), np.zeros((width + 1, 0)))
    h = float(subject.sampler.schedule.step_sizes(np.array([0]))[0])
    after = subject.move(state, gradient, noise, h, h, step=1, seed=0)
    x = np.concatenate([after.theta, after.p, after.pending], axis=1)
    columns = (x[1:] - x[0]).T
    n = sum(lengths[:3])
    return LinearMap(columns[:, :n], columns[:, n : n + dim], columns[:, n + dim :])


def stationary_law(
    model: LinearRegression, subject: Subject, batch_size: int, replacement: bool = True
) -> tuple[Array, Array]:
    """The exact mean and covariance of θ in the long run, of a sampler with constant friction on minibatches."""
    M, G, N = linear_map(subject, model.dim)
    rows, dim, size = model.n_rows, model.dim, len(M)
    S = np.eye(dim, size)
    if not isinstance(model.prior, Gaussian):
        raise TypeError(f"prior={model.prior!r} makes the gradient nonlinear; give priors.Gaussian")
    tau = 1.0 / model.prior.scale**2
    a = rows / model.noise**2 * model.X[:, :, None] * model.X[:, None, :]  # one row's estimate of A, and of b
    b = rows / model.noise**2 * model.X * model.y[:, None]
    mean_a, mean_b = a.mean(axis=0) + tau * np.eye(dim), b.mean(axis=0) + tau * model.prior.mean
    m = np.linalg.solve(np.eye(size) - M - G @ mean_a @ S, -G @ mean_b)
    spread = (1.0 if replacement else (rows - batch_size) / (rows - 1.0)) / batch_size
    wobble = np.einsum("ij,rjk,kl->ril", G, a - a.mean(axis=0), S)
    residual = (a @ m[:dim] - b) @ G.T
    kick = np.cov(residual.T, bias=True).reshape(size, size) * spread + N @ N.T
    mean_map = M + G @ mean_a @ S
    second = np.kron(mean_map, mean_map) + spread * np.mean([np.kron(w, w) for w in wobble], axis=0)
    if np.abs(np.linalg.eigvals(second)).max() >= 1.0:
        raise ValueError("the second moment grows without bound: take a smaller step or a larger batch")
    covariance = np.linalg.solve(np.eye(size * size) - second, kick.ravel()).reshape(size, size)
    return m[:dim], covariance[:dim, :dim]


def measured_z(draws: Array, mean: Array, covariance: Array) -> Array:
    """z of every mean and every product of (chain, draw, coordinate) draws against an exact mean and covariance."""
    off = draws - mean
    scores = [z_of_mean(off[..., i].mean(axis=1)) for i in range(mean.size)]
    for i, j in zip(*np.tril_indices(mean.size), strict=True):
        scores.append(z_of_mean((off[..., i] * off[..., j]).mean(axis=1), covariance[i, j]))
    return np.array(scores)


def worst_z(
    model: LinearRegression,
    sampler: Sampler,
    batch_size: int,
    kind: str,
    seed: int = 0,
    *,
    run: LinearRegression | None = None,
    claimed: str | None = None,
    draws: int = 400,
) -> float:
    """The largest |z| of a run against the exact law; 256 chains.

    For controls: `run` is the (wrong) model that is run in the place of `model`, `claimed` the (wrong) kind of minibatch for
    which the law is computed.
    """
    from sgmcmc.run.sample import sample

    kind_of_law = kind if claimed is None else claimed
    mean, covariance = stationary_law(model, Kernel(sampler), batch_size, kind_of_law == "replacement")
    trace = sample(
        model if run is None else run,
        sampler,
        draws=draws,
        thin=5,
        warmup=500,
        chains=256,
        batch_size=batch_size,
        minibatch=kind,
        seed=seed,
        init=mean,
        progress=False,
        warn=False,
        threads=1,
    )
    return float(np.abs(measured_z(trace.draws, mean, covariance)).max())


def example() -> LinearRegression:
    """24 rows, two correlated columns, an intercept's worth of misfit: minibatch noise that is far from isotropic."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(24, 2)) @ np.array([[1.0, 0.6], [0.0, 0.7]])
    y = X @ np.array([1.0, -0.5]) + 0.4 + rng.standard_t(4, size=24)
    return LinearRegression(X, y, noise=1.0, prior=Gaussian(0.5))


def without_weight(model: LinearRegression, batch_size: int, prior_too: bool = False) -> LinearRegression:
    """The model with which a right sampler does what a wrong one does with `model`.

    N/n forgotten: the data count n/N as much. With `prior_too` instead: N/n is applied to the prior as well.
    """
    ratio = model.n_rows / batch_size
    if prior_too:
        return LinearRegression(model.X, model.y, model.noise, Gaussian(model.prior.scale / np.sqrt(ratio)))
    return LinearRegression(model.X, model.y, model.noise * np.sqrt(ratio), model.prior)


def _samplers(profile: str) -> dict[str, Sampler]:
    from sgmcmc.samplers.presets import SGHMC, SGLD

    found = {"SGLD": SGLD(0.012), "SGHMC, T = 2": SGHMC(0.06, temperature=2.0)}
    if profile == "full":
        found |= {
            "SGLD, T = 0.5": SGLD(0.012, temperature=0.5),
            "SGHMC": SGHMC(0.06, friction=2.0, noise_estimate=0.2),
            "SGLD, Euler": SGLD(0.012, integrator=Euler()),
            "SGHMC, Euler, T = 0.5": SGHMC(0.02, friction=3.0, temperature=0.5, integrator=Euler()),
        }
    return found


def findings(profile: str = "quick", seed: int = 0) -> Iterator[Finding]:
    """Runs against the exact law, and the wrong samplers that the same comparison rejects."""
    model, batch, checks = example(), 8, 100
    bound, draws = z_bound(checks), 400 if profile == "quick" else 4000
    for name, sampler in _samplers(profile).items():
        for kind in ("replacement", "no-replacement"):
            z = worst_z(model, sampler, batch, kind, seed, draws=draws)
            label = f"{name}, {kind}, 8 of 24 rows"
            yield Finding("minibatch noise: exact mean and covariance (max |z|)", label, z, f"< {bound:.2f}", z < bound)
    sampler = _samplers("quick")["SGLD"]
    controls: dict[str, dict[str, Any]] = {
        "N/n forgotten": {"run": without_weight(model, batch)},
        "prior scaled by N/n": {"run": without_weight(model, batch, prior_too=True)},
        "law of batches without replacement for batches with": {"claimed": "no-replacement"},
    }
    for name, wrong in controls.items():
        z = worst_z(model, sampler, batch, "replacement", seed, draws=draws, **wrong)
        yield Finding("minibatch noise: wrong sampler is rejected (max |z|)", name, z, f"> {bound:.2f}", z > bound)
