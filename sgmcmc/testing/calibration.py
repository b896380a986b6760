"""Calibration of posteriors: simulation-based calibration and Geweke's joint test, for models with priors.

Both rest on one fact: if θ comes from the prior and y from p(y | θ), then θ is a draw from the posterior of y.

* Simulation-based calibration (Talts et al. 2018, https://arxiv.org/abs/1804.06788): the rank of θ among draws of a sampler
  from the posterior of y is uniform.
* Geweke (2004, https://doi.org/10.1198/016214504000001132): going on with θ by a few steps of the sampler and with y by a
  new simulation, in turn, leaves the law of (θ, y) as it was; what is wrong with the steps adds up.

A sampler with step size h has a bias of order h² (h for Euler, for minibatches, and where θ itself gets noise that is cut
off between rounds). Everything is run at h and at h/2 on the same data sets for the same time, and extrapolated to h = 0.

A problem (see problems.py) says how θ and a model with its data are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc.integrators import order
from sgmcmc.samplers import Sampler
from sgmcmc.testing.problems import Problem, linear, logistic, softmax, tamper
from sgmcmc.testing.report import Finding, Report, within
from sgmcmc.testing.statistics import p_bound, z_bound, z_of_mean

__all__ = ["Calibration", "check_calibration", "figure", "findings", "geweke", "sbc"]

Array = NDArray[np.float64]
DRAWS = 15  # posterior draws for a rank: 16 ranks
TIME = 10.0  # between draws and before the first, in units of the sampler's time
ROUNDS, ROUND = 5, 1.0  # of Geweke's test, and how long each is


def _runner(
    sampler: Sampler, warmup: int, thin: int, draws: int, batch_size: int | None
) -> Callable[[Any, Array, int, int], Array]:
    """A function of (model, θ, seed, chain): draws of one chain from θ, in one piece, by the loop of `sgmcmc.sample`.

    p and ξ start in their laws.
    """
    from sgmcmc.minibatch import FullData, as_minibatch
    from sgmcmc.potentials import laid_out
    from sgmcmc.rng import stream
    from sgmcmc.run import loop_compiled, plan, scheduler

    steps = plan.make_plan(sampler.schedule, draws, warmup, thin)

    def run(model: Any, theta: Array, seed: int, k: int) -> Array:
        rows = as_minibatch(batch_size, "replacement", model.n_rows)
        weight = 1.0 if isinstance(rows, FullData) else model.n_rows / rows.size
        gradient = loop_compiled.Gradient(rows, model.n_rows, weight, 0.0, np.inf)
        job = scheduler.Job(
            loop_compiled.run_chunk, sampler.dynamics(theta.size), laid_out(model), gradient, steps, np.float64
        )
        state = sampler.start(theta)
        if state.xi.size:
            spread = np.sqrt(sampler.thermostat.gamma * sampler.temperature)
            state.xi[:] += spread * np.random.default_rng((seed, k)).standard_normal(state.xi.size)
        out = np.empty((draws, theta.size))
        chain = scheduler.Chain(k, stream(seed, k), state, 0, 0.0, out, np.zeros(theta.size), fresh=True)
        if job.advance(chain, job.buffers(theta.size)[0], steps.steps) < steps.steps:
            raise FloatingPointError(f"chain {k} diverged in step {chain.diverged}; take a smaller step size")
        return out

    return run


def _halved(sampler: Sampler) -> tuple[Sampler, Sampler]:
    h = float(sampler.schedule.step_sizes(np.array([0]))[0])
    return replace(sampler, step_size=h), replace(sampler, step_size=0.5 * h)


def _steps(sampler: Sampler, time: float) -> int:
    return max(1, round(time / float(sampler.schedule.step_sizes(np.array([0]))[0])))


class Calibration(NamedTuple):
    """Ranks of θ and its loss among posterior draws (step size, data set, quantity), and draws about the exact posterior."""

    ranks: NDArray[np.int64]
    whitened: Array | None  # (step size, data set, draw, dim): standard normal, where the posterior is known


def sbc(
    problem: Problem,
    sampler: Sampler,
    datasets: int = 400,
    batch_size: int | None = None,
    seed: int = 0,
    time: float = TIME,
) -> Calibration:
    """Ranks at h and h/2. Chains start at the true θ, which is in the posterior, and forget it before the first draw."""
    rng, runs = np.random.default_rng(seed), []
    for s in _halved(sampler):
        thin = _steps(s, time)
        runs.append(_runner(s, thin, thin, DRAWS, batch_size))
    ranks, whitened = [], []
    for k in range(datasets):
        theta = problem.prior(rng)
        model = problem.simulate(theta, rng)
        draws = [run(model, theta, seed, k) for run in runs]
        x = np.stack(draws)
        by_loss = (problem.loss(model, x) < problem.loss(model, theta)).sum(axis=1)
        ranks.append(np.concatenate(((x < theta).sum(axis=1), by_loss[:, None]), axis=1))
        if problem.posterior is not None:
            mean, covariance = problem.posterior(model)
            root = np.linalg.cholesky(covariance)
            whitened.append(np.linalg.solve(root, (x - mean).reshape(-1, theta.size).T).T.reshape(x.shape))
    return Calibration(np.stack(ranks, axis=1), np.stack(whitened, axis=1) if whitened else None)


def geweke(
    problem: Problem, sampler: Sampler, copies: int = 400, batch_size: int | None = None, seed: int = 0
) -> Array:
    """θ, θ² and the loss after rounds of simulations and steps, less those before, at h and h/2: (2, copies, 2 dim + 1)."""
    changes = []
    for s in _halved(sampler):
        rng, rows = np.random.default_rng(seed), []
        run = _runner(s, _steps(s, ROUND) - 1, 1, 1, batch_size)
        for k in range(copies):
            first = theta = problem.prior(rng)
            model = problem.simulate(theta, rng)
            before = problem.loss(model, theta)
            for r in range(ROUNDS):
                model = problem.simulate(theta, rng) if r else model
                theta = run(model, theta, seed + 1000 * (r + 1), k)[0]
            more = problem.loss(model, theta) - before  # with the data that θ was drawn from: still the joint law
            rows.append(np.concatenate((theta - first, theta**2 - first**2, [more])))
        changes.append(rows)
    return np.array(changes)


def _extrapolated(values: Array, order: int) -> Array:
    """From h and h/2 to 0: (2^order · half − whole)/(2^order − 1)."""
    f = 2.0**order
    extrapolated: Array = (f * values[1] - values[0]) / (f - 1.0)
    return extrapolated


def _worst(values: Array) -> float:
    """The z of largest size among the columns of independent values whose mean should be 0."""
    return max((z_of_mean(column) for column in values.T), key=abs)


def _uniformity(ranks: NDArray[np.int64], order: int) -> float:
    """The smallest p of χ² tests that histograms of ranks, extrapolated to h = 0, are flat; times their number.

    `ranks` is (step size, data set, quantity). At a finite h a minibatch has a bias that enough data sets see, so a test of
    the ranks themselves would not do. Two neighbouring ranks make a bin. The null law gives the scatter at each h, the
    data sets the correlation c between both; estimating the whole covariance gave 2.8 times the false alarms at 1e-3.
    """
    from scipy.stats import chi2

    bins, n, f = (DRAWS + 1) // 2, ranks.shape[1], 2.0**order
    p = []
    for column in np.moveaxis(ranks, 2, 0):
        cells = (column[:, :, None] // 2 == np.arange(bins)) - 1.0 / bins
        c = float((cells[0] * cells[1]).sum() * bins / (n * (bins - 1)))
        scatter = (f**2 + 1.0 - 2.0 * f * c) / (f - 1.0) ** 2
        square = float((_extrapolated(cells, order).mean(axis=0) ** 2).sum() * n * bins / scatter)
        p.append(float(chi2.sf(square, bins - 1)))
    return min(1.0, min(p) * len(p))


def check_calibration(
    problem: Problem,
    sampler: Sampler,
    *,
    datasets: int = 400,
    batch_size: int | None = None,
    seed: int = 0,
    time: float = TIME,
    name: str = "",
    family: int = 1,
) -> Report:
    """Ranks, Geweke's test and, where the posterior is known, its moments.

    Parameters
    ----------
    problem : Problem, of `sgmcmc.testing.problems`
    sampler : Sampler
    datasets : int
    batch_size : int, optional
    seed : int
    time : float
        How long a chain runs between draws: several times what it takes to forget.
    name : str
    family : int
        So many calls share the false-alarm budget.

    Returns
    -------
    Report

    Examples
    --------
    >>> from sgmcmc.testing.problems import linear
    >>> sg.testing.check_calibration(linear(), sg.SGLD(0.1), datasets=4, time=1.0)
    Calibration: sampler on linear regression: 4 checks, passed
    """
    power = 1 if batch_size is not None or order(sampler.integrator) == 1 else 2
    subject = f"{name or 'sampler'} on {problem.name}" + (
        f", batches of {batch_size}" if batch_size is not None else ""
    )
    subject += f", T = {sampler.temperature:g}" if sampler.temperature != 1.0 else ""
    detail = f"{datasets} data sets, order {power} in h, seed {seed}"
    result, allowed = sbc(problem, sampler, datasets, batch_size, seed, time), p_bound(4 * family)
    p = _uniformity(result.ranks, power)
    found = [Finding("ranks uniform at h → 0, p", subject, p, f"> {allowed:.2g}", p > allowed, detail)]

    def judge(check: str, values: Array, k: int) -> None:
        bound = z_bound(4 * family * values.shape[2])
        at = f"z at h {_worst(values[0]):.1f}, at h/2 {_worst(values[1]):.1f}; {detail}"
        found.append(within(check, subject, _worst(_extrapolated(values, k)), bound, at))

    u = (result.ranks + 0.5) / (DRAWS + 1) - 0.5
    judge("moments of ranks at h → 0, z", np.concatenate((u, u**2 - (1 - (DRAWS + 1) ** -2) / 12), axis=2), power)
    if result.whitened is not None:
        w = result.whitened
        judge("exact posterior at h → 0, z", np.concatenate((w.mean(axis=2), (w**2).mean(axis=2) - 1), axis=2), power)
    cut_off = sampler.sigma_theta > 0.0
    judge(
        "Geweke's joint test at h → 0, z", geweke(problem, sampler, datasets, batch_size, seed), 1 if cut_off else power
    )
    return Report(f"Calibration: {subject}", found)


def findings(profile: str = "quick", seed: int = 0) -> Iterator[Finding]:
    """Three regressions, with full gradients and minibatches, at T = 1 and 2; three faults that must be seen."""
    from sgmcmc.samplers.presets import SGHMC, SGLD, SGMGT, SGMGTD, SGNHT

    full, h = profile == "full", 0.1
    datasets = 1000 if full else 200
    cases: list[tuple[Problem, str, Sampler, int | None]] = [
        (linear(), "SGHMC", SGHMC(h), None),
        (linear(), "SGHMC", SGHMC(0.025 if full else 0.05), 4),
        (logistic(2), "SGHMC", SGHMC(h, temperature=2.0), None),
        (softmax(), "SGNHT", SGNHT(h), None),
    ]
    if full:
        cases += [(make(), "SGNHT", SGNHT(h), None) for make in (linear, logistic)]
        cases += [(softmax(), "SGMGT, a = 1", SGMGT(h), None)]
        cases += [(make(), "SGMGT-D, a = 1", SGMGTD(h), None) for make in (linear, logistic)]
        cases += [(logistic(), "SGLD", SGLD(0.02), None), (logistic(), "SGNHT", SGNHT(0.025), 6)]
    common: dict[str, Any] = {"datasets": datasets, "seed": seed, "time": 10.0 if full else 5.0, "family": len(cases)}
    for problem, name, sampler, batch in cases:
        yield from check_calibration(problem, sampler, batch_size=batch, name=name, **common)
    for problem, sampler, what in _faults():
        report = check_calibration(problem, sampler, name="SGHMC", **common)
        caught = [f.check for f in report.failures]
        yield Finding("calibration rejects, checks", what, len(caught), "≥ 1", bool(caught), "; ".join(caught))


def _faults() -> Iterator[tuple[Problem, Sampler, str]]:
    """What a minibatch of a quarter of the rows makes of the posterior where N/n = 4 is put wrongly; and a wrong T."""
    from sgmcmc.priors import Gaussian
    from sgmcmc.samplers.presets import SGHMC

    right = SGHMC(0.1)
    yield tamper(linear(), lambda m: m._replace(prior=Gaussian(0.5)), "fault"), right, "prior scaled by N/n = 4"
    yield tamper(linear(), lambda m: m._replace(noise=2.0), "fault"), right, "N/n = 4 forgotten"
    yield linear(), replace(right, temperature=1.5), "temperature 1.5 for 1"


def figure(axes: Any = None, datasets: int = 200, seed: int = 0) -> Any:
    """Histograms of the ranks of three regressions at h/2, with the band that holds 99 % of right counts; (1, 3) axes."""
    import matplotlib.pyplot as plt
    from scipy.stats import binom

    from sgmcmc.samplers.presets import SGHMC, SGNHT

    if axes is None:
        axes = plt.subplots(1, 3, figsize=(9.0, 2.6), sharey=True, layout="constrained")[1]
    cases = ((linear(), SGHMC(0.1)), (logistic(), SGHMC(0.1)), (softmax(), SGNHT(0.1)))
    for ax, (problem, sampler) in zip(np.ravel(axes), cases, strict=True):
        ranks = sbc(problem, sampler, datasets, seed=seed, time=5.0).ranks[1]
        low, high = (binom.ppf(q, datasets, 1 / (DRAWS + 1)) for q in (0.005, 0.995))
        ax.axhspan(low, high, color="0.9", zorder=0)
        for column in ranks.T:
            ax.step(np.arange(DRAWS + 1), np.bincount(column, minlength=DRAWS + 1), where="mid", linewidth=0.8)
        ax.set(title=problem.name, xlabel="rank of θ among draws", ylim=(0, None))
    np.ravel(axes)[0].set_ylabel("data sets")
    return axes
