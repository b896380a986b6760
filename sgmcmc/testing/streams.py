"""Streams: random numbers at different addresses are independent, and a run is a function of its arguments alone.

Words are put through the battery of random_battery.py along every part of an address: index, step, chain, seed, purpose. Normals
are correlated, themselves and their squares, between chains, steps, coordinates, purposes and seeds. Runs are repeated
with other threads, in pieces, and among more chains: the same bits.

Policy for single precision. A float32 run takes its normals from other words than a float64 run (four to an address for
two), so with one seed the two are independent runs of one law, and the law is what must agree. Given the same normals, a
float32 trajectory follows the float64 one to DRIFT·√steps·2^-23 relative to the size of θ until chaos, if there is any,
takes over: checked over 100 steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc import rng
from sgmcmc.integrators.state import Noise, State
from sgmcmc.testing.random_battery import BATTERY, battery
from sgmcmc.testing.report import Finding, Report, within
from sgmcmc.testing.statistics import p_bound, z_bound, z_of_mean
from sgmcmc.testing.targets import QUARTIC
from sgmcmc.testing.under_test import standard_subjects

__all__ = ["AXES", "check_streams", "check_words", "crosstalk", "findings", "normals_along", "words_along"]

Array = NDArray[Any]
Words = NDArray[np.uint32]
AXES = ("index", "step", "chain", "seed", "purpose")
DRIFT = 50.0  # how far float32 may drift in 100 steps, in units of √100 · 2^-23
STREAMS = 24


def words_along(axis: str, count: int, seed: int = 0) -> Words:
    """`count` words of the package's stream, along one part of their addresses, four to an address.

    Along the index they come out of the compiled kernel that chooses minibatches, as whole numbers below 2^32; along the
    others from the same function in plain NumPy, which `findings` compares with the compiled one bit for bit.
    """
    i = np.arange(-(-count // 4), dtype=np.uint64)
    own: Any = rng.stream(seed)
    zero = np.zeros_like(i)
    if axis == "index":
        return _compiled_words(seed, 0, 0, count)
    if axis == "step":
        lanes = rng.words(own, i, zero, rng.NOISE_P, 0)
    elif axis == "chain":
        lanes = rng.words(own._replace(chain=i), zero, zero, rng.NOISE_P, 0)
    elif axis == "seed":
        lanes = rng.words(own._replace(key0=(np.uint64(seed) + i) & np.uint64(0xFFFFFFFF)), zero, zero, rng.NOISE_P, 0)
    elif axis == "purpose":
        lanes = rng.words(own, i // np.uint64(8), zero, np.uint64(1) + i % np.uint64(8), 0)
    else:
        raise ValueError(f"axis={axis!r} is unknown; choose one of {', '.join(AXES)}")
    return np.stack(lanes, axis=1).ravel()[:count]


def _compiled_words(seed: int, chain: int, step: int, count: int) -> Words:
    from sgmcmc.minibatch import WithReplacement
    from sgmcmc.run.loop_python import choose_rows

    out = np.empty(count, np.int64)
    choose_rows(WithReplacement(count), 1 << 32, rng.stream(seed, chain), np.int64(step), np.empty(0, np.int64), out)
    return out.astype(np.uint32)


def normals_along(axis: str, n: int, seed: int = 0, dtype: Any = np.float64) -> Array:
    """Compiled normals that differ in one part of their address only: an array (stream, n)."""
    from sgmcmc.run.loop_python import draw_normals

    def one(shape: tuple[int, int], seed: int = seed, chain: int = 0, purpose: int = rng.NOISE_P) -> Array:
        out = np.empty(shape, dtype)
        draw_normals(out, rng.stream(seed, chain), np.int64(0), purpose)
        return out

    if axis == "coordinate":
        return one((n, STREAMS)).T
    if axis == "step":
        return one((STREAMS, n))
    if axis == "chain":
        return np.stack([one((n // 8, 8), chain=k).ravel() for k in range(STREAMS)])
    if axis == "seed":
        return np.stack([one((n // 8, 8), seed=seed + k).ravel() for k in range(STREAMS)])
    return np.stack([one((n // 8, 8), purpose=k).ravel() for k in range(rng.NOISE_P, rng.USER + 1)])


def crosstalk(normals: Array) -> float:
    """The largest |z| among all correlations of streams (stream, n), of their squares, and of neighbours in each."""
    x = np.asarray(normals, float)
    worst = 0.0
    for y in (x, (x**2 - 1.0) / np.sqrt(2.0)):
        between = y @ y.T / np.sqrt(y.shape[1])
        inside = (y[:, 1:] * y[:, :-1]).sum(axis=1) / np.sqrt(y.shape[1] - 1)
        worst = max(worst, float(np.abs(np.triu(between, 1)).max()), float(np.abs(inside).max()))
    return worst


def _crosstalk_checks(streams: int) -> int:
    return streams * (streams - 1) + 2 * streams


def check_words(words: Words, subject: str = "words", family: int = 1) -> Report:
    """The battery on words of any generator; `family` is how many such sequences are judged together."""
    allowed = p_bound(14 * family)
    found = []
    for name, values in battery(words).items():
        p = min(values)
        found.append(Finding(f"{name}, p", subject, p, f"> {allowed:.2g}", p > allowed, f"{words.size} words"))
    return Report(f"Random words: {subject}", found)


def check_streams(seed: int = 0, profile: str = "quick") -> Report:
    """Checks whether the random numbers of a seed are independent, and runs reproducible.

    Parameters
    ----------
    seed : int
    profile : "quick" or "full"

    Returns
    -------
    Report

    Examples
    --------
    >>> sg.testing.check_streams(seed=1).passed
    True
    """
    return Report(f"Streams of seed {seed}", findings(profile, seed))


def findings(profile: str = "quick", seed: int = 0) -> Iterator[Finding]:
    """The battery along every part of the address, crosstalk of normals, runs repeated otherwise, both precisions."""
    full = profile == "full"
    yield from _words(1 << 23 if full else 1 << 20, seed)
    yield from _normals(1 << 18 if full else 1 << 15, seed)
    yield from _repeated(seed)
    yield from _precisions(full, seed)


def _words(count: int, seed: int) -> Iterator[Finding]:
    plain = rng.words(rng.stream(seed, 3), 5, np.arange(1000, dtype=np.uint64), rng.MINIBATCH, 0)
    differ = int((np.stack(plain, axis=1).ravel() != _compiled_words(seed, 3, 5, 4000)).sum())
    yield _none("words of compiled and plain code that differ", "Philox", differ, f"of 4000, seed {seed}")
    for axis in AXES:
        yield from check_words(words_along(axis, count, seed), f"Philox along the {axis}, seed {seed}", len(AXES))
    counter = battery(np.arange(1 << 18, dtype=np.uint32))
    caught = sum(min(p) < 1e-6 for p in counter.values())
    bound = f"≥ {len(BATTERY) - 1}"
    yield Finding("tests that reject a bare counter", "0, 1, 2, …", caught, bound, caught >= len(BATTERY) - 1)


def _normals(n: int, seed: int) -> Iterator[Finding]:
    axes = ("coordinate", "step", "chain", "seed", "purpose")
    bound = z_bound(2 * len(axes) * _crosstalk_checks(STREAMS))
    for dtype in (np.float64, np.float32):
        for axis in axes:
            z = crosstalk(normals_along(axis, n, seed, dtype))
            detail = f"{n} normals per stream, seed {seed}"
            yield within(f"normals correlated between {axis}s, largest |z|", np.dtype(dtype).name, z, bound, detail)
    twice = normals_along("chain", n, seed)
    twice[7] = twice[3]
    z = crosstalk(twice)
    yield Finding("crosstalk sees a key used twice, |z|", "chain 7 = chain 3", z, f"> {bound:.3g}", z > bound)


def _none(check: str, subject: str, count: int, detail: str = "") -> Finding:
    return Finding(check, subject, count, "= 0", count == 0, detail)


def _runs(seed: int) -> Callable[..., Any]:
    """A run of linear regression in minibatches, whose other arguments are still open."""
    import sgmcmc as sg
    from sgmcmc.testing.problems import linear

    problem, generator = linear(), np.random.default_rng(seed)
    model = problem.simulate(problem.prior(generator), generator)

    def run(**options: Any) -> Any:
        settings: dict[str, Any] = {"warmup": 50, "chains": 5, "batch_size": 4, "seed": seed, "progress": False}
        return sg.sample(model, sg.SGHMC(0.1), warn=False, **(settings | options))

    return run


def _repeated(seed: int) -> Iterator[Finding]:
    run = _runs(seed)
    whole = run(draws=200, threads=1)
    subject = f"SGHMC on linear regression in minibatches, seed {seed}"
    for threads in (2, 5):
        other = run(draws=200, threads=threads)
        yield _none(f"draws that differ with {threads} threads", subject, int((other.draws != whole.draws).sum()))
    pieces = [run(draws=1, threads=1)]
    for draws in (2, 60, 137):
        pieces.append(run(draws=draws, warmup=0, init=pieces[-1]))
    cut = np.concatenate([p.draws for p in pieces], axis=1)
    yield _none("draws that differ in a run of four pieces", subject, int((cut != whole.draws).sum()))
    more = run(draws=200, chains=9).draws[:5]
    yield _none("draws that differ among more chains", subject, int((more != whole.draws).sum()))
    other = run(draws=200, threads=1, seed=seed + 1)
    same = float((other.draws == whole.draws).mean())
    yield Finding("share of equal draws with another seed", subject, same, "< 0.01", same < 0.01)


def trajectory(sampler: Any, dtype: Any, steps: int, dim: int = 8, seed: int = 0) -> Array:
    """θ after each step on the quartic, in a precision, with normals and start of double precision rounded to it."""
    from sgmcmc.testing import batch_step

    generator = np.random.default_rng(seed)
    one = sampler.start(generator.standard_normal(dim).astype(dtype))
    one.p[:] = generator.standard_normal(dim)[: one.p.size]
    state = State(*(a[None].copy() for a in one))
    dynamics, h, before, path = sampler.dynamics(dim, dtype), dtype(0.05), dtype(0.0), np.empty((steps, dim))
    for t in range(steps):
        normals = [generator.standard_normal((1, dim)).astype(dtype)[:, : a.shape[1]] for a in (*state[:3],)]
        noise = Noise(*(np.ascontiguousarray(z) for z in (normals[1], normals[0], normals[2])))
        gradient = (state.theta + state.theta**3).astype(dtype)
        batch_step.move(dynamics, state, gradient, noise, rng.stream(seed), np.int64(t + 1), before, h)
        before, path[t] = h, state.theta[0]
    return path


def _precisions(full: bool, seed: int) -> Iterator[Finding]:
    for name in ("SGLD", "SGHMC", "SGMGT-D, a = 2") if full else ("SGHMC",):
        sampler = standard_subjects(0.05, 0.8)[name].sampler
        single, double = (trajectory(sampler, d, 100, seed=seed) for d in (np.float32, np.float64))
        drift = float(np.abs(single - double).max() / np.abs(double).max()) / (10.0 * 2.0**-23)
        detail = f"in units of √steps·2^-23 of the largest |θ|; 8 coordinates, {QUARTIC.name}, T = 0.8, seed {seed}"
        yield within("float32 against float64 over 100 steps", name, drift, DRIFT, detail)
    run = _runs(seed)
    many: dict[str, Any] = {"chains": 400, "warmup": 100, "thin": 20, "batch_size": None}
    draws = [run(draws=5, dtype=d, **many).draws.astype(float) for d in (np.float32, np.float64)]
    center = draws[1].mean(axis=(0, 1))
    bound = z_bound(2 * center.size)
    for power, what in ((1, "mean"), (2, "variance")):
        means = [((x - center) ** power).mean(axis=1) for x in draws]
        z = max((z_of_mean(a - b) for a, b in zip(means[0].T, means[1].T, strict=True)), key=abs)
        detail = f"400 chains each, seed {seed}"
        yield within(f"{what} in float32 against float64, z", "SGHMC on linear regression", z, bound, detail)
