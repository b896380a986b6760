"""Posteriors: θ from runs of `sgmcmc.sample` on models with known answers, by z-scores with honest standard errors.

One-dimensional laws and a logistic posterior of two coefficients, all by quadrature, so that there is no noise in the reference.
Steps are small, so that the bias of order h² stays below the standard error. It need not be: on the five wells, where U''
reaches 345, SGLD at h = 0.01 has E[θU']/T = 1.09 (z = 9.6), at h = 0.005 and 0.0025 it has 1.01 and 0.99 (|z| ≤ 1.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.samplers import Sampler
from sgmcmc.samplers.presets import SGHMC, SGLD, SGMGT, SGMGTD, SGNHT
from sgmcmc.testing.laws import Law
from sgmcmc.testing.report import Finding, Report, within
from sgmcmc.testing.statistics import z_bound, z_of_chains
from sgmcmc.testing.targets import FIVE_WELLS, GAUSSIAN, MIXTURE, QUARTIC, Target

__all__ = ["PROBLEMS", "Problem", "check_posterior", "findings", "statistics_of"]

Array = NDArray[np.float64]
FAMILY = 500  # z-scores in the whole of this evidence, at most: |z| < 5.2


class Problem(NamedTuple):
    """A model with its law: statistics of θ with their exact means."""

    name: str
    model: Callable[[], Any]
    statistics: Callable[[float], dict[str, tuple[Callable[[Array], Array], float]]]  # of the temperature
    size: float = 1.0  # the scale of θ, for the step
    step: float = 1.0  # how small a step it needs, relative to a Gaussian of this size
    law: Callable[[float], Law] | None = None  # of one coordinate; chains start in it


def _below(edge: float) -> Callable[[Array], Array]:
    return lambda x: (x < edge).astype(float)


def statistics_of(target: Target, temperature: float) -> dict[str, tuple[Callable[[Array], Array], float]]:
    """θ, θ², the virial θU'/T, and the probability of three intervals that split the law into quarters, or wells."""
    law = target.law(temperature)
    functions: dict[str, Callable[[Array], Array]] = {
        "E[θ]": lambda x: x,
        "E[θ²]": lambda x: x**2,
        "E[θU']/T": lambda x: x * target.gradient(x) / temperature,
    }
    answers = {name: (f, law.mean(f)) for name, f in functions.items()}
    for q in (0.25, 0.5, 0.75):
        edge = float(law.quantile(q))
        answers[f"P(θ < {edge:.3f})"] = (_below(edge), q)
    return answers


def _quartic() -> Any:
    import numba

    from sgmcmc.potentials import Potential

    @numba.njit  # type: ignore[untyped-decorator]
    def gradient(theta: Any, out: Any) -> None:
        for i in range(theta.size):
            out[i] = theta[i] + theta[i] ** 3

    return Potential(gradient, dim=1)


def _mixture() -> Any:
    from sgmcmc.models import GaussianMixture

    return GaussianMixture([[-1.0], [1.5]], [0.6, 1.0], [0.7, 0.3])  # MIXTURE


def _gaussian() -> Any:
    from sgmcmc.models import Gaussian

    return Gaussian([0.0], [1.0])


def _wells() -> Any:
    from sgmcmc.models import FiveWell

    return FiveWell()


@cache
def _rows() -> tuple[Array, Array]:
    """Forty rows of two columns, correlated, with labels."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(40, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    y = (rng.random(40) < 1.0 / (1.0 + np.exp(-(X @ np.array([1.5, -0.7]))))).astype(float)
    return X, y


def _logistic() -> Any:
    from sgmcmc.models import LogisticRegression
    from sgmcmc.priors import Gaussian

    return LogisticRegression(*_rows(), prior=Gaussian(1.5))


def _logistic_statistics(temperature: float) -> dict[str, tuple[Callable[[Array], Array], float]]:
    """Means and second moments of both coefficients, by the trapezium rule on a grid: exponentially accurate."""
    X, y = _rows()
    grid = np.linspace(-8.0, 8.0, 401)
    theta = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1)
    logit = theta @ X.T
    energy = (np.logaddexp(0.0, logit) - y * logit).sum(axis=-1) + 0.5 * (theta**2).sum(axis=-1) / 1.5**2
    weight = np.exp(-(energy - energy.min()) / temperature)
    weight /= weight.sum()
    functions: dict[str, Callable[[Array], Array]] = {
        "E[θ₁]": lambda x: x[..., 0],
        "E[θ₂]": lambda x: x[..., 1],
        "E[θ₁²]": lambda x: x[..., 0] ** 2,
        "E[θ₂²]": lambda x: x[..., 1] ** 2,
        "E[θ₁θ₂]": lambda x: x[..., 0] * x[..., 1],
    }
    return {name: (f, float((weight * f(theta)).sum())) for name, f in functions.items()}


PROBLEMS = {
    p.name: p
    for p in (
        Problem("Gaussian", _gaussian, lambda T: statistics_of(GAUSSIAN, T), law=GAUSSIAN.law),
        Problem("quartic", _quartic, lambda T: statistics_of(QUARTIC, T), law=QUARTIC.law, step=0.5),
        Problem("asymmetric mixture", _mixture, lambda T: statistics_of(MIXTURE, T), law=MIXTURE.law),
        Problem("five wells", _wells, lambda T: statistics_of(FIVE_WELLS, T), step=0.25, law=FIVE_WELLS.law),
        Problem("logistic posterior", _logistic, _logistic_statistics, size=0.4),
    )
}


def check_posterior(
    sampler: Sampler, problem: Problem | str, draws: int = 5_000, chains: int = 64, seed: int = 0, thin: int = 4
) -> Report:
    """z of every statistic of a problem, from a run of `sgmcmc.sample`."""
    problem = PROBLEMS[problem] if isinstance(problem, str) else problem
    name = f"{problem.name}, {sampler!r}"
    return Report(f"Posterior: {name}", _posterior(sampler, problem, draws, chains, seed, thin, name))


def _posterior(
    sampler: Sampler, problem: Problem, draws: int, chains: int, seed: int, thin: int, name: str
) -> Iterator[Finding]:
    from sgmcmc.run.sample import sample

    init = None
    if problem.law is not None:  # wells of the right shares from the start; elsewhere a warm-up does
        init = problem.law(sampler.temperature).draw(chains, np.random.default_rng(seed))[:, None]
    trace = sample(
        problem.model(),
        sampler,
        draws,
        warmup=draws * thin // 10,
        chains=chains,
        thin=thin,
        seed=seed,
        init=init,
        threads=1,
        progress=False,
        warn=False,
    )
    theta = np.asarray(trace.draws, float)
    bound = z_bound(FAMILY)
    for what, (function, truth) in problem.statistics(sampler.temperature).items():
        x = function(theta)
        x = x[..., 0] if x.ndim == 3 else x
        size = x.var() * chains / x.mean(axis=1).var(ddof=1)  # effective, by the scatter of the chains' means
        detail = f"{x.mean():.5g}, exact {truth:.5g}, ESS {size:.2g}, seed {seed}"
        yield within(f"posterior: z of {what}", name, z_of_chains(x, truth), bound, detail)


def samplers_for(problem: Problem, temperature: float) -> dict[str, Sampler]:
    """The five samplers at a step that suits the problem, plain of resampling in some, with it in others."""
    h = 0.08 * problem.step
    common: dict[str, Any] = {"temperature": temperature, "scale": problem.size}
    return {
        "SGMGT, a = 1": SGMGT(h, a=1, center="fixed", **common),
        "SGLD": SGLD(0.5 * h * problem.step, **common),  # overdamped: stable while h U'' < 2, not its root
        "SGHMC": SGHMC(h, **common),
        "SGNHT": SGNHT(h, **common),
        "SGMGT, a = 2": SGMGT(h, a=2, center="fixed", **common),
        "SGMGT-D, a = 1": SGMGTD(h, a=1, center="fixed", **common),
        "SGMGT-D, a = 2": SGMGTD(h, a=2, sigma_theta=0.3, center="fixed", **common),
    }


QUICK = {  # one sampler for each problem: every pair has a kernel of its own to compile, unless another topic has it too
    "Gaussian": "SGNHT",
    "quartic": "SGLD",
    "asymmetric mixture": "SGMGT, a = 1",
    "five wells": "SGNHT",
    "logistic posterior": "SGHMC",
}


def findings(profile: str = "quick", seed: int = 0) -> Iterator[Finding]:
    """Every problem by one sampler (quick) or by all, at T = 1 and 2 in turn (full); five wells at T = 4, to be left often."""
    full = profile == "full"
    for problem in PROBLEMS.values():
        for k, name in enumerate(samplers_for(problem, 1.0)):
            if not full and name != QUICK[problem.name]:
                continue
            T = 4.0 if problem.name == "five wells" else 1.0 + k % 2
            sampler = samplers_for(problem, T)[name]
            what = f"{problem.name}, T = {T:g}, {name}"
            yield from _posterior(sampler, problem, 8_000 if full else 3_000, 64, seed, 4, what)
