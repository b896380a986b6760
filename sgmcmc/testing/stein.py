"""Kernel Stein discrepancy: how far draws are from a law of which only the score s(x) = ∇ log π(x) = −∇U(x)/T is known.

With the inverse multiquadric kernel k(x, y) = (c² + ‖x − y‖²)^β, β = −1/2, which sees tails that others miss (Gorham and
Mackey 2017, https://arxiv.org/abs/1703.01717), the squared discrepancy is the mean of

    u(x, y) = s(x)·s(y) k + s(x)·∇_y k + s(y)·∇_x k + Σ_i ∂²k/∂x_i∂y_i

over all pairs of draws. Its law under the null follows from the wild bootstrap (Chwialkowski, Strathmann and Gretton 2016,
https://arxiv.org/abs/1602.02964): the mean of W_i W_j u(x_i, x_j) with random signs W that change as slowly as the draws.

A score does not know how much mass a far mode has, so neither does the discrepancy: there, ask `occupancy`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sgmcmc.testing.laws import Law
from sgmcmc.testing.report import Finding, within
from sgmcmc.testing.statistics import p_bound, z_bound, z_of_chains
from sgmcmc.testing.targets import FIVE_WELLS, GAUSSIAN, MIXTURE, QUARTIC, SKEW, Target
from sgmcmc.testing.under_test import Subject, exact_start, standard_subjects

__all__ = ["Discrepancy", "Occupancy", "findings", "ksd", "ksd_test", "occupancy", "run_copies", "scores_of", "stein"]

Array = NDArray[np.float64]
BLOCK = 512  # rows of the matrix u at a time
FEW = 20  # with fewer bootstrapped values beyond the measured one, their count is replaced by a fitted tail


def stein(x: Array, s: Array, y: Array, t: Array, c: float = 1.0, beta: float = -0.5) -> Array:
    """u(x_i, y_j), where s and t are the scores at x and y; all arrays are (n, dim)."""
    r2 = np.maximum((x**2).sum(1)[:, None] + (y**2).sum(1) - 2.0 * x @ y.T, 0.0)
    base = c**2 + r2
    k = base**beta
    slope = 2.0 * beta * k / base  # ∇_x k = slope (x − y) = −∇_y k
    cross = (t * -y).sum(1) + x @ t.T - (s * x).sum(1)[:, None] + s @ y.T  # (t − s)·(x − y)
    trace = -slope * x.shape[1] - 2.0 * (beta - 1.0) * slope * r2 / base
    u: Array = (s @ t.T) * k + slope * cross + trace
    return u


def _rows(draws: ArrayLike, scores: ArrayLike) -> tuple[Array, Array, int]:
    """Draws and scores as (n, dim) about their common mean, and the number of chains."""
    x, s = np.asarray(draws, float), np.asarray(scores, float)
    if x.shape != s.shape or x.ndim not in (2, 3):
        raise ValueError(
            f"draws {x.shape} and scores {s.shape}: give arrays of one shape, (draw, dim) or (chain, draw, dim)"
        )
    flat = x.reshape(-1, x.shape[-1])
    return flat - flat.mean(axis=0), s.reshape(flat.shape), 1 if x.ndim == 2 else len(x)


def ksd(draws: ArrayLike, scores: ArrayLike, c: float = 1.0, beta: float = -0.5) -> float:
    """Returns the kernel Stein discrepancy of draws; 0 in the limit if they come from π.

    Parameters
    ----------
    draws, scores : array (…, dim)
        The scores are ∇ log π at each draw.
    c, beta : float, of the kernel

    Returns
    -------
    float

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(500, 1))
    >>> round(sg.testing.ksd(x, -x), 2), round(sg.testing.ksd(x + 0.5, -(x + 0.5)), 2)
    (0.06, 0.4)
    """
    x, s, _ = _rows(draws, scores)
    parts = range(0, len(x), BLOCK)
    total = sum(float(stein(x[i : i + BLOCK], s[i : i + BLOCK], x, s, c, beta).sum()) for i in parts)
    return float(np.sqrt(max(total, 0.0))) / len(x)


class Discrepancy(NamedTuple):
    """The discrepancy with the probability of one so large, or larger, if the draws come from the law."""

    ksd: float
    p: float
    flip: float  # how likely a sign was to change from draw to draw; 0: one sign per chain


def ksd_test(
    draws: ArrayLike,
    scores: ArrayLike,
    *,
    flip: float | None = None,
    bootstraps: int = 2000,
    c: float = 1.0,
    beta: float = -0.5,
    seed: int = 0,
) -> Discrepancy:
    """Test draws against their scores by a wild bootstrap, which allows for draws that depend on each other.

    p-values below FEW/bootstraps come from a Pearson III law with mean, variance and skewness of the bootstrapped
    values.

    Parameters
    ----------
    draws, scores : array (draw, dim) or (chain, draw, dim); chains must be independent
    flip : float, optional
        Probability that the sign W changes from a draw to the next: 0.5 for independent draws, 0 for one sign per
        chain. None: 0 if there are at least 30 chains, else such that signs last five times as long as the scores
        correlate.
    bootstraps, c, beta, seed : of the bootstrap, of the kernel, of the random signs

    Returns
    -------
    Discrepancy

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(500, 1))
    >>> sg.testing.ksd_test(x, -x, bootstraps=200).p > 0.01, sg.testing.ksd_test(x + 0.5, -(x + 0.5)).p < 1e-6
    (True, True)
    """
    x, s, chains = _rows(draws, scores)
    if flip is None:
        flip = 0.0 if chains >= 30 else 0.1 / _correlation_time(s.reshape(chains, -1, s.shape[1]))
    length = len(x) // chains
    group = length if flip == 0.0 else 1  # draws that share a sign for certain
    starts = np.arange(0, len(x), group)
    rng = np.random.default_rng(seed)
    n_groups = starts.size // chains
    first = rng.integers(0, 2, (chains, 1, bootstraps)) * 2.0 - 1.0
    flips = 1.0 - 2.0 * (rng.random((chains, n_groups - 1, bootstraps)) < flip)
    w = np.cumprod(np.concatenate((first, flips), axis=1), axis=1).reshape(-1, bootstraps)
    value, copies = 0.0, np.zeros(bootstraps)
    per_block = max(1, BLOCK // group)
    for i in range(0, starts.size, per_block):
        rows = slice(i * group, min((i + per_block) * group, len(x)))
        u = np.add.reduceat(stein(x[rows], s[rows], x, s, c, beta), starts, axis=1)
        u = np.add.reduceat(u, np.arange(0, rows.stop - rows.start, group), axis=0)
        value += float(u.sum())
        copies += (w[i : i + per_block] * (u @ w)).sum(axis=0)
    return Discrepancy(float(np.sqrt(max(value, 0.0))) / len(x), _tail(copies, value), float(flip))


def _correlation_time(s: Array) -> float:
    """Of the slowest coordinate of the scores (chain, draw, dim), in draws, at least 1."""
    from sgmcmc import diagnostics

    sizes = [diagnostics.ess(s[:, :, j], "mean") for j in range(s.shape[2])]
    return max(1.0, float(s.shape[0] * s.shape[1] / np.nanmin(sizes)))


def _tail(values: Array, observed: float) -> float:
    """P(value ≥ observed): counted where there is enough to count, else by the fitted tail."""
    beyond = int((values >= observed).sum())
    if beyond >= FEW:
        return (1.0 + beyond) / (1.0 + values.size)
    from scipy.stats import pearson3, skew

    return float(pearson3.sf(observed, skew(values), values.mean(), values.std()))


def scores_of(model: Any, draws: ArrayLike, temperature: float = 1.0) -> Array:
    """−∇U/T of a model at draws (…, dim)."""
    from sgmcmc.potentials import gradient_of

    x = np.asarray(draws, float)
    flat = x.reshape(-1, x.shape[-1])
    return -np.stack([gradient_of(model, row) for row in flat]).reshape(x.shape) / temperature


class Occupancy(NamedTuple):
    """The masses of wells: measured, true, and z of their difference."""

    observed: Array
    expected: Array
    z: Array


def occupancy(draws: ArrayLike, law: Law, edges: ArrayLike) -> Occupancy:
    """Returns masses of the wells between `edges` among draws against quadrature, z by chains or by ESS.

    A well that is always or never seen says nothing about its own scatter; there a chain counts as one draw.

    Parameters
    ----------
    draws : array (chain, draw)
    law : Law
    edges : array, between the wells

    Returns
    -------
    Occupancy

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(4, 500))
    >>> sg.testing.occupancy(x, sg.testing.Law(lambda x: x**2 / 2), edges=[0.0]).expected.round(6)
    array([0.5, 0.5])
    """
    x = np.asarray(draws, float)
    cuts = np.concatenate(([-np.inf], np.asarray(edges, float), [np.inf]))
    expected = np.diff(np.concatenate(([0.0], law.cdf(cuts[1:-1]), [1.0])))
    observed, z = np.empty(expected.size), np.empty(expected.size)
    for i, mass in enumerate(expected):
        inside = ((x >= cuts[i]) & (x < cuts[i + 1])).astype(float)
        observed[i] = inside.mean()
        constant = np.ptp(inside) == 0.0
        z[i] = (observed[i] - mass) / np.sqrt(mass * (1.0 - mass) / len(x)) if constant else z_of_chains(inside, mass)
    return Occupancy(observed, expected, z)


WELL_EDGES = (-1.5572, -0.6864, 0.2277, 1.1426)  # barriers of the five wells; the last one takes what is beyond


def run_copies(
    subject: Subject, target: Target, copies: int, draws: int, thin: int, dim: int, seed: int, exact: bool = True
) -> Array:
    """Draws (copies, draws, dim) of a sampler that starts in its law, or else at 0."""
    rng = np.random.default_rng(seed)
    sizes = subject.sampler.sizes(dim)
    state = exact_start(subject, target, rng.random((copies, sizes.theta + sizes.p + sizes.xi)), dim)
    if not exact:
        state.theta[:] = 0.0
    h, kept, before = float(subject.sampler.schedule.step_sizes(np.array([0]))[0]), np.empty((copies, draws, dim)), 0.0
    for t in range(draws * thin):
        noise = subject.draw_noise(state, seed, t + 1)
        state = subject.move(state, target.gradient(state.theta), noise, before, h, t + 1, seed)
        before = h
        if t % thin == thin - 1:
            kept[:, t // thin] = state.theta
    return kept


def findings(profile: str = "quick", seed: int = 0) -> Iterator[Finding]:
    """Samplers pass, at two temperatures; a temperature 20 % off and wrong masses of wells do not."""
    full = profile == "full"
    names = tuple(standard_subjects()) if full else ("SGHMC", "SGMGT-D, a = 1")
    copies, draws = (1000, 4) if full else (300, 4)
    cases = [(n, t, T) for n in names for t, T in ((SKEW, 1.0), (QUARTIC, 0.5))]
    allowed = p_bound(len(cases) + 2)
    for name, target, T in cases:
        x = run_copies(standard_subjects(0.1, T)[name], target, copies, draws, 40, 2, seed)
        result = ksd_test(x, -target.gradient(x) / T, seed=seed)
        subject = f"{name} on {target.name}, T = {T:g}"
        detail = f"KSD {result.ksd:.3g}, {copies} chains × {draws} draws, seed {seed}"
        yield _p_above("kernel Stein discrepancy, p", subject, result.p, allowed, detail)
    hot = run_copies(standard_subjects(0.1, 1.2)["SGHMC"], GAUSSIAN, 2000, 2, 50, 3, seed)
    p = ksd_test(hot, -GAUSSIAN.gradient(hot), bootstraps=1000, seed=seed).p
    check = "kernel Stein discrepancy rejects T = 1.2, p"
    yield Finding(check, f"SGHMC on {GAUSSIAN.name}", p, f"< {allowed:.2g}", p < allowed, f"seed {seed}")
    x, score, law = far_modes(1000, 0.8, seed)
    p = ksd_test(x, score, flip=0.5, bootstraps=1000, seed=seed).p
    subject = "two modes with weights 0.8 and 0.2 for 0.5 and 0.5"
    check = "kernel Stein discrepancy is blind to masses of far modes, p"
    yield _p_above(check, subject, p, allowed, f"seed {seed}")
    z, limit = abs(float(occupancy(x, law, [0.0]).z[0])), z_bound(1)
    yield Finding("occupancy sees masses of far modes, |z|", subject, z, f"> {limit:.3g}", z > limit, f"seed {seed}")
    yield from _wells(names, full, seed)


def _p_above(check: str, subject: str, p: float, allowed: float, detail: str) -> Finding:
    return Finding(check, subject, p, f"> {allowed:.2g}", p > allowed, detail)


def far_modes(n: int, weight: float, seed: int) -> tuple[Array, Array, Law]:
    """Draws of two normals at ±8, the left one with this weight, their scores and the law with equal weights."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 1)) + np.where(rng.random((n, 1)) < weight, -8.0, 8.0)
    score = -x + 8.0 * np.tanh(8.0 * x)
    return x, score, Law(lambda y: 0.5 * (y**2 + 64.0) - np.logaddexp(8.0 * y, -8.0 * y), scale=8.0)


def _wells(names: tuple[str, ...], full: bool, seed: int) -> Iterator[Finding]:
    """Every chain starts at 0 and must find the masses.

    At T = 1 the barriers of the five wells are 10 T high, and a chain leaves the middle once in some 10⁵ steps: too rarely.
    """
    bound = z_bound(2 * len(names) + 5 * (2 if full else 1))
    for name in names:
        x = run_copies(standard_subjects(0.1)[name], MIXTURE, 300, 60, 10, 1, seed, exact=False)[:, 30:, 0]
        yield _worst(occupancy(x, MIXTURE.law(), [0.2]), f"{name} on {MIXTURE.name}", bound, seed)
    x = run_copies(standard_subjects(0.03, 3.0)["SGHMC"], FIVE_WELLS, 300, 60, 50, 1, seed, exact=False)[:, 30:, 0]
    yield _worst(occupancy(x, FIVE_WELLS.law(3.0), WELL_EDGES), "SGHMC on five wells, T = 3", bound, seed)
    if full:
        import sgmcmc as sg

        options: dict[str, Any] = {"warmup": 20_000, "chains": 200, "thin": 100, "threads": 1, "progress": False}
        trace = sg.sample(sg.models.FiveWell(), sg.SGHMC(0.03, temperature=2.0), 300, seed=seed, warn=False, **options)
        found = occupancy(trace.draws[:, :, 0], FIVE_WELLS.law(2.0), WELL_EDGES)
        yield _worst(found, "SGHMC on five wells, T = 2", bound, seed)


def _worst(found: Occupancy, subject: str, bound: float, seed: int) -> Finding:
    masses = ", ".join(f"{o:.4f} for {e:.4f}" for o, e in zip(found.observed, found.expected, strict=True))
    z = float(found.z[np.abs(found.z).argmax()])
    return within("occupancy of wells, worst z", subject, z, bound, f"{masses}; seed {seed}")
