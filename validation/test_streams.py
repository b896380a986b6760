"""Random streams: the battery is honest and sees bad generators; addresses are independent; runs are reproducible."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

import sgmcmc as sg
from sgmcmc import rng
from sgmcmc.testing import random_battery, streams
from sgmcmc.testing.problems import linear
from sgmcmc.testing.under_test import standard_subjects

SIZE = 1 << 18


def lcg(n):
    """The quick and dirty generator of Numerical Recipes: x ← 1664525 x + 1013904223 mod 2^32."""
    multiplier, constant, x = 1, 0, np.zeros(n, np.uint64)
    # blocks that double: x_{i+m} = A_m x_i + C_m
    x[0], filled, multiplier, constant = 1, 1, 1664525, 1013904223
    while filled < n:
        more = min(filled, n - filled)
        x[filled : filled + more] = (multiplier * x[:more] + constant) & np.uint64(0xFFFFFFFF)
        constant = (multiplier * constant + constant) % 2**32
        multiplier = multiplier * multiplier % 2**32
        filled += more
    return x.astype(np.uint32)


def xorshift(n):
    """Marsaglia's 32-bit xorshift: linear over bits."""
    out, x = np.empty(n, np.uint32), 2463534242
    for i in range(n):
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
        out[i] = x
    return out


def philox(n):
    return streams.words_along("index", n, seed=77)


def rotated(w):
    """The bits of each word in another order: as many ones."""
    return (w << np.uint32(13)) | (w >> np.uint32(19))


BAD = {
    "counter": (lambda n: np.arange(n, dtype=np.uint32), "monobit"),
    "spread counter": (lambda n: np.arange(n, dtype=np.uint32) * np.uint32(2654435769), "gap"),
    "congruential": (lcg, "birthday spacings"),
    "congruential, low bits": (lcg, "runs"),
    "xorshift": (xorshift, "matrix rank"),
    "a key used twice": (lambda n: np.tile(philox(n // 2), 2), "collision"),
    "addresses used twice": (lambda n: np.repeat(philox(n // 2).reshape(-1, 4), 2, axis=0).ravel(), "avalanche"),
    "a stuck bit": (lambda n: philox(n) | np.uint32(1 << 9), "bit frequency"),
    "bits that lean": (
        lambda n: philox(n) | (philox(2 * n)[n:] & philox(3 * n)[2 * n :] & np.uint32(0x01010101)),
        "monobit",
    ),
    "equal bytes in neighbours": (
        lambda n: np.where(np.arange(n) % 32 == 1, np.roll(philox(n), 1), philox(n)),
        "serial pairs",
    ),
    "weights that follow": (
        lambda n: np.where(np.arange(n) % 8 == 1, rotated(np.roll(philox(n), 1)), philox(n)),
        "Hamming weight",
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_generator_is_rejected_by_name(bad):
    make, test = BAD[bad]
    report = streams.check_words(make(1 << 20 if test == "serial pairs" else SIZE), bad)
    assert f"{test}, p" in [f.check for f in report.failures], report.to_markdown()


def test_every_test_rejects_some_bad_generator():
    assert {test for _, test in BAD.values()} == set(random_battery.BATTERY)


def test_p_values_of_the_battery_are_uniform_for_another_good_generator():
    found: dict[str, list[list[float]]] = {}
    for seed in range(40):
        w = np.random.default_rng(seed).integers(0, 2**32, SIZE, dtype=np.uint32)
        for name, p in random_battery.battery(w).items():
            found.setdefault(name, []).append(p)
    for name, p in found.items():
        for column in np.array(p).T:
            assert kstest(column, "uniform").pvalue > 1e-4, (name, np.sort(column))


def test_too_few_words_are_refused():
    with pytest.raises(ValueError, match="at least 262144"):
        random_battery.battery(np.zeros(1000, np.uint32))


@pytest.mark.parametrize("axis", streams.AXES)
@pytest.mark.parametrize("seed", [1, 2**40 + 12345])
def test_philox_passes_the_battery_along_every_part_of_an_address(axis, seed):
    report = streams.check_words(streams.words_along(axis, SIZE, seed), axis, family=2 * len(streams.AXES))
    assert report.passed, report


@pytest.mark.parametrize("axis", streams.AXES)
def test_the_words_along_an_axis_are_those_of_the_address(axis):
    w = streams.words_along(axis, 64, seed=6).reshape(16, 4)
    for i in (0, 3, 15):
        own, step, index, purpose = rng.stream(6), 0, 0, rng.NOISE_P
        if axis == "index":
            index, purpose = i, rng.MINIBATCH
        elif axis == "step":
            step = i
        elif axis == "chain":
            own = rng.stream(6, i)
        elif axis == "seed":
            own = rng.stream(6 + i)
        else:
            step, purpose = i // 8, 1 + i % 8
        assert tuple(w[i]) == rng.words(own, step, index, purpose, 0)


def test_crosstalk_is_honest_and_sees_a_small_correlation():
    z = np.random.default_rng(0).standard_normal((24, 1 << 14))
    assert streams.crosstalk(z) < 5.2
    tilted = z.copy()
    tilted[5] += 0.08 * z[6]
    assert streams.crosstalk(tilted) > 7.0
    loud = z * np.where(np.arange(z.shape[1]) % 2 == 0, 1.1, 0.9)  # uncorrelated, but loud together
    assert streams.crosstalk(loud) > 5.2


# ----------------------------------------------------------------------------------------------------------- reproducible


def short_run(**options):
    generator = np.random.default_rng(0)
    problem = linear()
    model = problem.simulate(problem.prior(generator), generator)
    given = {"draws": 300, "warmup": 10, "chains": 4, "batch_size": 4, "seed": 8, "progress": False}
    return sg.sample(model, sg.SGHMC(0.1), **(given | options)).draws


@pytest.mark.parametrize("seconds", [1e-9, 1e-4, 10.0])
def test_draws_do_not_depend_on_the_length_of_chunks(monkeypatch, seconds):
    whole = short_run(threads=1)
    monkeypatch.setattr("sgmcmc.run.job.CHUNK_SECONDS", seconds)
    assert np.array_equal(short_run(threads=1), whole)
    assert np.array_equal(short_run(threads=3), whole)


def test_single_precision_drifts_from_double_as_the_policy_allows():
    sampler = standard_subjects(0.05)["SGHMC"].sampler
    single, double = (streams.trajectory(sampler, d, 100, seed=5) for d in (np.float32, np.float64))
    drift = np.abs(single - double).max() / np.abs(double).max()
    assert 0.0 < drift < streams.DRIFT * 10.0 * 2.0**-23
    colder = standard_subjects(0.05)["SGHMC"].with_(sigma_p=1.01).sampler
    other = streams.trajectory(colder, np.float64, 100, seed=5)
    assert np.abs(other - double).max() / np.abs(double).max() > streams.DRIFT * 10.0 * 2.0**-23


def test_the_standard_evidence_passes():
    report = streams.check_streams(3)
    assert len(report.findings) > 60
    assert report.passed, report
