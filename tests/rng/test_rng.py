"""Random numbers: known answers, one number per address, the right laws, and the same bits whatever the block.

Random checks have fixed seeds and are z-scores, or p-values turned into z, with |z| < 5: for the about 300 checks of
this file the false-alarm budget is 2e-4.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
from scipy import stats

from sgmcmc import rng
from sgmcmc.compiler.open_functions import LOOP

PRECISIONS = [np.float32, np.float64]
LIMIT = 5.0
P_LIMIT = 2.0 * stats.norm.sf(LIMIT)
KNOWN_ANSWERS = [  # Random123, kat_vectors, philox4x32 10
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@numba.njit(error_model="numpy", fastmath=set(LOOP))
def compiled_philox(c0, c1, c2, c3, k0, k1):
    return rng.philox(c0, c1, c2, c3, k0, k1)


@numba.njit(error_model="numpy", fastmath=set(LOOP))
def fill_normals(out, stream, step, purpose, first):
    rng.fill_normals(out, stream, step, purpose, first)


@numba.njit(error_model="numpy", fastmath=set(LOOP))
def fill_integers(out, n, stream, step, purpose):
    rng.fill_integers(out, n, stream, step, purpose)


@numba.njit(error_model="numpy", fastmath=set(LOOP))
def fill_integers_of_steps(out, size, n, stream, step, purpose):
    rng.fill_integers_of_steps(out, size, n, stream, step, purpose)


@numba.njit(error_model="numpy", fastmath=set(LOOP))
def fill_gammas(out, shape, stream, step, purpose):
    for i in range(out.size):
        out[i] = rng.log_gamma_variate(shape, stream, step, i, purpose)


@numba.njit(error_model="numpy", fastmath=set(LOOP))
def fill_uniforms(out, stream, step, purpose):
    for i in range(out.size):
        w0, w1, _, _ = rng.words(stream, step, i, purpose, 0)
        out[i] = rng.uniform(w0, w1, out[i])


@numba.njit(error_model="numpy", fastmath=set(LOOP))
def words(stream, step, index, purpose, attempt):
    return rng.words(stream, step, index, purpose, attempt)


def normals(precision, shape, stream, step=0, purpose=rng.NOISE_P, first=0):
    out = np.full(shape, np.nan, precision)
    fill_normals(out, stream, step, purpose, first)
    return out


def integers(size, n, stream, step=0):
    out = np.full(size, -1, np.int64)
    fill_integers(out, n, stream, step, rng.MINIBATCH)
    return out


@pytest.mark.parametrize(("size", "n"), [(1, 10), (6, 1000), (16, 3_000_000_000), (64, 2**32), (16, 2**31 + 1)])
def test_rows_of_many_steps_at_once_are_those_of_each_step(size, n):
    steps, first, own = 70, 2**33 + 5, rng.stream(3, 4)
    together = np.full(steps * size, -7, np.int64)
    fill_integers_of_steps(together, size, n, own, first, rng.MINIBATCH)
    alone = np.stack([integers(size, n, own, first + s) for s in range(steps)])
    np.testing.assert_array_equal(together.reshape(steps, size), alone)
    assert (np.diff(alone, axis=0) != 0).any()  # steps differ, so that a wrong step would be seen


# ---------------------------------------------------------------------------------------------------------- the address


@pytest.mark.parametrize("philox", [rng.philox, compiled_philox], ids=["python", "compiled"])
@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_philox_gives_the_known_answers_of_random123(philox, counter, key, answer):
    arguments = [np.uint32(c) for c in (*counter, *key)]
    assert tuple(int(w) for w in philox(*arguments)) == answer


def test_a_stream_holds_the_halves_of_its_seed_and_its_chain():
    assert rng.stream(0x0123456789ABCDEF, 7) == (0x89ABCDEF, 0x01234567, 7)
    assert all(type(v) is np.uint32 for v in rng.stream(2**64 - 1, 2**32 - 1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, 0), r"seed=-1 is out of range; give a whole number from 0 to 18446744073709551615"),
        ((2**64, 0), r"seed=18446744073709551616 is out of range"),
        ((1.5, 0), r"seed=1.5 is not a whole number"),
        ((1, 2**32), r"chain=4294967296 is out of range"),
    ],
)
def test_a_bad_seed_or_chain_is_named(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        rng.stream(*arguments)


def test_words_are_philox_of_the_documented_counter():
    step, index, purpose, attempt, chain = 0xABCD_12345678, 0x9ABCDEF0, 9, 255, 0xFEDCBA98
    counter = (index, 0x12345678, chain, purpose | attempt << 8 | 0xABCD << 16)
    wanted = rng.philox(*counter, 0x33221100, 0x77665544)
    stream = rng.stream(0x7766554433221100, chain)
    assert words(stream, step, index, purpose, attempt) == wanted
    assert rng.words(stream, step, index, purpose, attempt) == wanted


def test_no_two_addresses_share_their_words():
    corners = {
        "seed": [0, 1, 2**32, 2**64 - 1],
        "chain": [0, 1, 2**32 - 1],
        "step": [0, 1, 2**16, 2**32 - 1, 2**32, 2**32 + 1, 2**40, 2**48 - 1],
        "index": [0, 1, 2**16, 2**32 - 1],
        "purpose": [1, 2, 9],
        "attempt": [0, 1, 2, 255],
    }
    seen = set()
    for seed, chain, *address in itertools.product(*corners.values()):
        seen.add(tuple(int(w) for w in words(rng.stream(seed, chain), *address)))
    assert len(seen) == np.prod([len(values) for values in corners.values()])


# ------------------------------------------------------------------------------------------------------ blocks of normals


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_normal_has_the_same_bits_in_whatever_block_it_is_drawn(precision):
    stream, steps, n, first_step = rng.stream(5, 2), 150, 300, 2**32 - 75
    table = normals(precision, (steps, n), stream, first_step)
    assert np.isfinite(table).all()
    shapes = [(1, 1), (1, 2), (1, 3), (1, 5), (2, 7), (3, 25), (7, 4), (8, 64), (9, 63), (33, 31), (70, 2), (150, 1)]
    shapes += [(1, 257), (5, 129), (64, 6), (65, 9), (130, 3), (1, 67), (2, 90)]
    for (rows, columns), first, shift in itertools.product(shapes, [0, 4, 24], [0, 13]):
        rows = min(rows, steps - shift)
        block = normals(precision, (rows, columns), stream, first_step + shift, first=first)
        assert np.array_equal(block, table[shift : shift + rows, first : first + columns]), (
            rows,
            columns,
            first,
            shift,
        )


@pytest.mark.parametrize("precision", PRECISIONS)
def test_single_normals_from_words_have_the_bits_of_the_fill(precision):
    stream, per_call = rng.stream(11, 4), 4 if precision is np.float32 else 2

    @numba.njit(error_model="numpy")
    def one_by_one(stream, step, index, like):
        w0, w1, w2, w3 = rng.words(stream, step, index, 1, 0)
        return rng.normal_pair(w0, w1, w2, w3, like), rng.normal_pair(w2, w3, w0, w1, like)

    table = normals(precision, (3, 72), stream, 10)
    for s, index in itertools.product(range(3), range(72 // per_call)):
        pairs = np.ravel(one_by_one(stream, 10 + s, index, precision(0)))[:per_call]
        assert np.array_equal(pairs.astype(precision), table[s, per_call * index : per_call * (index + 1)])


def test_a_fill_writes_nothing_beside_its_block_and_takes_empty_blocks():
    frame = np.full((6, 40), 7.0, np.float32)
    fill_normals(frame[1:3], rng.stream(1), 0, rng.NOISE_P, 0)
    assert (frame[[0, 3, 4, 5]] == 7.0).all()
    for shape in [(0, 5), (5, 0), (0, 0)]:
        assert normals(np.float32, shape, rng.stream(1)).shape == shape


AVX2 = llvm.get_host_cpu_features().get("avx2", False)


@pytest.mark.skipif(not AVX2, reason="the processor has no AVX2")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_fill_is_vectorised_and_stays_in_its_precision(precision):
    normals(precision, (2, 8), rng.stream(1))
    code = {sig[0].dtype: text for sig, text in fill_normals.inspect_asm().items()}[
        numba.from_dtype(np.dtype(precision))
    ]
    assert len(re.findall(r"vpmuludq\s.*%[yz]mm", code)) > 40
    assert re.search(r"vsqrtp[sd]\s.*%[yz]mm", code)
    assert not re.search(r"[\s$](?:log|sin|cos|exp)f?\b", code)
    if precision is np.float32:
        assert not re.search(r"cvt(?:ss2sd|sd2ss|ps2pd|pd2ps)|\sv(?:add|mul|div|sqrt)[sp]d\s", code)


# ------------------------------------------------------------------------------------------------------------- the laws


def normal_scores(z):
    """z-scores of the first four moments, of Kolmogorov and Smirnov's distance and of the counts in the tails."""
    z = np.asarray(z, np.float64).ravel()
    n = z.size
    scores = {
        "mean": z.mean() * np.sqrt(n),
        "variance": (np.mean(z**2) - 1) * np.sqrt(n / 2),
        "third moment": np.mean(z**3) * np.sqrt(n / 15),
        "fourth moment": (np.mean(z**4) - 3) * np.sqrt(n / 96),
        "distance": stats.norm.isf(max(stats.kstest(z, "norm").pvalue, 1e-300) / 2),
    }
    for edge in (3.0, 4.0, 4.8):
        for side in (-1, 1):
            p, count = stats.norm.sf(edge), int((side * z > edge).sum())
            scores[f"beyond {side * edge}"] = stats.norm.isf(max(stats.binomtest(count, n, p).pvalue, 1e-300) / 2)
    return scores


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("shape", [(16, 65536), (262144, 3)])
def test_normals_have_the_moments_the_distribution_and_the_tails_of_a_normal(precision, shape):
    scores = normal_scores(normals(precision, shape, rng.stream(2024)))
    assert max(np.abs(list(scores.values()))) < LIMIT, scores


@pytest.mark.parametrize("column", range(4))
def test_each_of_the_four_normals_of_a_call_is_normal(column):
    scores = normal_scores(normals(np.float32, (1, 2**20), rng.stream(8))[0, column::4])
    assert max(np.abs(list(scores.values()))) < LIMIT, scores


def test_the_test_of_normality_rejects_a_wrong_scale_a_shift_and_short_tails():
    z = normals(np.float64, (16, 65536), rng.stream(2024))
    uniforms = np.random.default_rng(1).random((12, z.size))
    for wrong in (1.006 * z, z + 0.006, uniforms.sum(axis=0) - 6.0, np.clip(z, -4.0, 4.0)):
        assert max(np.abs(list(normal_scores(wrong).values()))) > LIMIT


def test_extreme_words_give_finite_normals_and_uniforms_inside_the_open_interval():
    ends = [np.uint32(0), np.uint32(1), np.uint32(0x3FFFFFFF), np.uint32(0x80000000), np.uint32(0xFFFFFFFF)]
    for w in itertools.product(ends, repeat=4):
        for precision in PRECISIONS:
            assert all(abs(z) < 9.5 for z in rng.normal_pair(*w, precision(0)))
            u = rng.uniform(w[0], w[1], precision(0))
            assert type(u) is precision
            assert 0 < u < 1
    zero, full = np.uint32(0), np.uint32(0xFFFFFFFF)
    assert rng.uniform(zero, zero, np.float32(0)) == 2.0**-24
    assert rng.uniform(full, full, np.float32(0)) == np.float32(1 - 2.0**-24)
    assert rng.uniform(zero, zero, np.float64(0)) == 2.0**-53
    assert rng.uniform(full, full, np.float64(0)) == 1 - 2.0**-53
    assert 6.6 < max(map(abs, rng.normal_pair(zero, zero, zero, zero, np.float32(0)))) < 6.67


@pytest.mark.parametrize("precision", PRECISIONS)
def test_uniforms_are_uniform(precision):
    u = np.zeros(2**18, precision)
    fill_uniforms(u, rng.stream(3), 4, rng.USER)
    assert stats.kstest(u.astype(np.float64), "uniform").pvalue > P_LIMIT
    assert abs(u.astype(np.float64).mean() - 0.5) * np.sqrt(12 * u.size) < LIMIT
    assert stats.kstest(u.astype(np.float64) ** 1.02, "uniform").pvalue < P_LIMIT  # the negative control


def correlation_scores(a, b):
    """z-scores of the correlations of the values and of their squares."""
    a, b = np.ravel(a).astype(np.float64), np.ravel(b).astype(np.float64)
    return [np.sqrt(a.size) * np.corrcoef(f(a), f(b))[0, 1] for f in (np.asarray, np.square)]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_neighbouring_chains_steps_coordinates_seeds_and_purposes_are_uncorrelated(precision):
    shape, stream = (256, 512), rng.stream(1, 1)
    z = normals(precision, shape, stream)
    scores = [
        *correlation_scores(z, normals(precision, shape, rng.stream(1, 2))),
        *correlation_scores(z, normals(precision, shape, rng.stream(2, 1))),
        *correlation_scores(z, normals(precision, shape, rng.stream(1 + 2**32, 1))),
        *correlation_scores(z, normals(precision, shape, stream, step=2**32)),
        *correlation_scores(z, normals(precision, shape, stream, purpose=rng.NOISE_THETA)),
        *correlation_scores(z, normals(precision, shape, stream, first=512)),
        *correlation_scores(z[1:], z[:-1]),
    ]
    for lag in range(1, 9):
        scores += correlation_scores(z[:, lag:], z[:, :-lag])
    assert max(np.abs(scores)) < LIMIT


def test_the_test_of_independence_rejects_a_weak_link():
    z, other = (normals(np.float64, (256, 512), rng.stream(1, chain)) for chain in (1, 2))
    assert abs(correlation_scores(z, other + 0.02 * z)[0]) > LIMIT
    assert abs(correlation_scores(z, other * (1.0 + 0.1 * np.abs(z)))[1]) > LIMIT


# ------------------------------------------------------------------------------------------------------------- integers


def chi_square_score(counts, probabilities):
    p = stats.chisquare(counts, probabilities * counts.sum()).pvalue
    return stats.norm.isf(max(p, 1e-300) / 2)


AWKWARD = [2, 3, 7, 10, 1000, 2**31 + 1, 3 * 2**30, 2**32 - 1, 2**32, 2**32 + 1, 3 * 2**60, 2**62]


def cells(draws, n):
    """Counts in at most 96 equal ranges of 0..n - 1, and how likely each is."""
    k = min(n, 96)
    edges = [-(-n * i // k) for i in range(k + 1)]  # exact in Python's integers
    counts = np.array([np.count_nonzero((draws >= low) & (draws < high)) for low, high in itertools.pairwise(edges)])
    return counts, np.array([(high - low) / n for low, high in itertools.pairwise(edges)])


@pytest.mark.parametrize("n", AWKWARD)
def test_integers_are_uniform_also_for_awkward_n(n):
    draws = integers(60_000, n, rng.stream(6))
    assert draws.min() >= 0
    assert draws.max() < n
    assert chi_square_score(*cells(draws, n)) < LIMIT
    if n > 2:
        assert chi_square_score(np.bincount(draws % 3), residues(n)) < LIMIT


def residues(n):
    """How likely the remainders 0, 1 and 2 of a division by 3 are."""
    return np.array([(n - r + 2) // 3 / n for r in range(3)])


def test_the_test_of_uniformity_rejects_the_remainder_and_a_missing_rejection():
    word = np.array([[int(w) for w in words(rng.stream(6), 0, i, 7, 0)] for i in range(15_000)]).ravel()
    n = 3 * 2**30
    assert chi_square_score(*cells(word % n, n)) > LIMIT
    multiplied = (word * n) >> 32  # Lemire's product without the rejection: each third number twice as likely
    assert chi_square_score(np.bincount(multiplied % 3), residues(n)) > LIMIT


def test_one_possible_integer_is_always_zero_and_no_draws_are_none():
    assert (integers(1001, 1, rng.stream(1)) == 0).all()
    assert integers(0, 5, rng.stream(1)).size == 0


@pytest.mark.parametrize("n", [10, 3 * 2**30, 2**31 + 1, 3 * 2**60 + 1])
def test_an_integer_does_not_depend_on_how_many_are_drawn(n):
    long = integers(203, n, rng.stream(9), step=2**33)
    for size in (1, 2, 3, 4, 5, 31, 64, 202):
        assert np.array_equal(integers(size, n, rng.stream(9), step=2**33), long[:size])


@pytest.mark.parametrize("n", [1, 10, 3 * 2**30, 2**32, 3 * 2**60 + 1])
def test_a_single_integer_is_the_one_of_the_fill(n):
    @numba.njit(error_model="numpy")
    def one_by_one(out, n, stream):
        for i in range(out.size):
            out[i] = rng.integer_below(n, stream, 0, i, rng.MINIBATCH)

    singles = np.empty(41, np.int64)
    one_by_one(singles, n, rng.stream(9))
    assert np.array_equal(singles, integers(41, n, rng.stream(9)))


@pytest.mark.parametrize("n", [10, 3 * 2**30, 3 * 2**60 + 1])
def test_integers_are_lemires_product_with_rejection_in_exact_arithmetic(n):
    stream, bits = rng.stream(4), 32 if n <= 2**32 else 64
    per_call = 128 // bits
    for i, value in enumerate(integers(50, n, stream)):
        for attempt in range(256):
            w = [int(word) for word in words(stream, 0, i // per_call, rng.MINIBATCH, attempt)]
            j = i % per_call
            word = w[j] if bits == 32 else (w[2 * j] << 32) | w[2 * j + 1]
            if word * n % 2**bits >= 2**bits % n:
                break
        assert value == word * n >> bits


# --------------------------------------------------------------------------------------------------------------- gammas


def gamma_score(draws, shape):
    p = stats.kstest(draws.astype(np.float64), lambda x: stats.loggamma.cdf(x, shape)).pvalue
    return stats.norm.isf(max(p, 1e-300) / 2)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("shape", [0.001, 0.01, 0.3, 1.0, 2.5, 20.0, 1e4])
def test_gamma_variates_have_the_gamma_law(shape, precision):
    draws = np.empty(40_000, precision)
    fill_gammas(draws, precision(shape), rng.stream(12), 3, rng.MOMENTUM)
    assert np.isfinite(draws).all()
    assert gamma_score(draws, shape) < LIMIT
    assert gamma_score(draws, 1.15 * shape) > LIMIT  # the negative control


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_shape_that_is_not_positive_gives_nan_and_comes_to_an_end(precision):
    for shape in (np.nan, 0.0, -0.5, -3.0):
        assert np.isnan(rng.log_gamma_variate(precision(shape), rng.stream(1), 0, 0, rng.USER))
        draws = np.zeros(3, precision)
        fill_gammas(draws, precision(shape), rng.stream(1), 0, rng.USER)
        assert np.isnan(draws).all()


# --------------------------------------------------------------------------------------------------------- plain Python

SCRIPT = """
import sys
import numpy as np
from sgmcmc import rng
s = rng.stream(0x0123456789ABCDEF, 3)
out = {}
for name, precision in (("single", np.float32), ("double", np.float64)):
    for shape in ((3, 70), (70, 3)):
        z = np.empty(shape, precision)
        rng.fill_normals(z, s, 2**32 - 2, rng.NOISE_P, 4)
        out[f"normals {name} {shape[0]}"] = z
    gammas = [rng.log_gamma_variate(precision(a), s, 1, i, rng.MOMENTUM) for a in (0.01, 0.5, 3.0) for i in range(20)]
    assert {type(g) for g in gammas} == {precision}
    out[f"gammas {name}"] = np.array(gammas)
for n in (1, 10, 2**31 + 1, 2**32 - 1, 2**32, 3 * 2**60 + 1):
    i = np.empty(41, np.int64)
    rng.fill_integers(i, n, s, 5, rng.MINIBATCH)
    out[f"integers {n}"] = i
np.savez(sys.argv[1], **out)
"""


def test_plain_python_gives_the_same_integers_and_the_same_normals_to_rounding(tmp_path):
    path = str(tmp_path / "python.npz")
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-W", "error", "-c", SCRIPT, path], check=True, env=environment)
    stream = rng.stream(0x0123456789ABCDEF, 3)
    with np.load(path) as python:
        for n in (1, 10, 2**31 + 1, 2**32 - 1, 2**32, 3 * 2**60 + 1):
            assert np.array_equal(python[f"integers {n}"], integers(41, n, stream, step=5))
        for name, precision, error in (("single", np.float32, 1e-6), ("double", np.float64, 2e-15)):
            for shape in ((3, 70), (70, 3)):
                wanted = normals(precision, shape, stream, 2**32 - 2, first=4)
                np.testing.assert_allclose(python[f"normals {name} {shape[0]}"], wanted, rtol=error, atol=error)
            gammas = np.empty((3, 20), precision)
            for row, shape in zip(gammas, (0.01, 0.5, 3.0), strict=True):
                fill_gammas(row, precision(shape), stream, 1, rng.MOMENTUM)
            np.testing.assert_allclose(python[f"gammas {name}"], gammas.ravel(), rtol=10 * error, atol=10 * error)
