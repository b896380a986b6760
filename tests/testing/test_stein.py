"""Kernel Stein discrepancy and well occupancy: right derivatives, honest p-values, power, and what each is blind to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

import sgmcmc as sg
from sgmcmc.testing import stein
from sgmcmc.testing.statistics import z_bound
from sgmcmc.testing.targets import GAUSSIAN, MIXTURE
from sgmcmc.testing.under_test import standard_subjects


def kernel(x, y, c, beta):
    return (c**2 + ((x - y) ** 2).sum()) ** beta


def by_differences(x, s, y, t, c, beta, e=1e-4):
    """u(x, y) from the kernel alone, by central differences."""
    steps = e * np.eye(x.size)
    dx = np.array([kernel(x + d, y, c, beta) - kernel(x - d, y, c, beta) for d in steps]) / (2 * e)
    dy = np.array([kernel(x, y + d, c, beta) - kernel(x, y - d, c, beta) for d in steps]) / (2 * e)
    mixed = sum(
        kernel(x + d, y + d, c, beta)
        - kernel(x + d, y - d, c, beta)
        - kernel(x - d, y + d, c, beta)
        + kernel(x - d, y - d, c, beta)
        for d in steps
    ) / (4 * e * e)
    return s @ t * kernel(x, y, c, beta) + s @ dy + t @ dx + mixed


@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.integers(1, 6), st.floats(0.3, 3.0), st.floats(-0.9, -0.1), st.integers(0, 1000))
def test_the_stein_kernel_has_the_derivatives_of_its_kernel(dim, c, beta, seed):
    x, s, y, t = np.random.default_rng(seed).standard_normal((4, 3, dim))
    u = stein.stein(x, s, y, t, c, beta)
    for i in range(3):
        for j in range(3):
            assert u[i, j] == pytest.approx(
                by_differences(x[i], s[i], y[j], t[j], c, beta), abs=3e-6 * c ** (2 * beta - 4)
            )


def test_the_mean_of_the_stein_kernel_under_the_law_is_zero_by_quadrature():
    law = MIXTURE.law(1.7)
    x = law.x[::8, None]  # a rule of 4000 points would be 32000² pairs; Gauss's panels of one node each are rough
    weights = law.density(x[:, 0]) * np.gradient(x[:, 0])
    y = np.array([[-1.3], [0.1], [2.0]])
    u = stein.stein(y, -MIXTURE.gradient(y) / 1.7, x, -MIXTURE.gradient(x) / 1.7)
    assert np.abs(u @ weights).max() < 1e-4 * np.abs(u).max()


def test_blocks_give_the_discrepancy_of_the_whole_matrix():
    x = np.random.default_rng(1).standard_normal((1300, 2))
    u = stein.stein(x, -x, x, -x)
    assert stein.ksd(x, -x) == pytest.approx(np.sqrt(u.mean()), rel=1e-10)
    assert stein.ksd_test(x, -x, flip=0.5, bootstraps=10).ksd == pytest.approx(stein.ksd(x, -x), rel=1e-10)
    assert stein.ksd_test(x.reshape(50, 26, 2), -x.reshape(50, 26, 2), bootstraps=10).ksd == pytest.approx(
        stein.ksd(x, -x)
    )


def test_shapes_that_differ_are_refused():
    with pytest.raises(ValueError, match=r"give arrays of one shape"):
        stein.ksd(np.zeros((3, 2)), np.zeros((3, 1)))


# ------------------------------------------------------------------------------------------------- p-values, right and wrong


def autoregression(chains, draws, dim, rho, rng):
    x = rng.standard_normal((chains, draws, dim))
    for t in range(1, draws):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * x[:, t]
    return x


CASES = {
    "independent draws": (1, 200, 0.0, 0.5),
    "many short chains": (60, 8, 0.7, None),
    "two long chains": (2, 400, 0.6, None),
}


@pytest.mark.parametrize("case", CASES)
def test_p_values_are_uniform_under_the_null(case):
    chains, draws, rho, flip = CASES[case]
    p = []
    for seed in range(60):
        x = autoregression(chains, draws, 2, rho, np.random.default_rng(seed))
        p.append(stein.ksd_test(x, -x, flip=flip, bootstraps=400, seed=seed).p)
    assert kstest(p, "uniform").pvalue > 1e-3, np.sort(p)


def test_independent_signs_for_dependent_draws_are_rejected():
    p = []
    for seed in range(40):
        x = autoregression(2, 400, 2, 0.9, np.random.default_rng(seed))
        p.append(stein.ksd_test(x, -x, flip=0.5, bootstraps=400, seed=seed).p)
    assert kstest(p, "uniform").pvalue < 1e-6, np.sort(p)


def test_a_fitted_tail_goes_on_where_counting_ends():
    values = np.random.default_rng(0).chisquare(5, 4000)
    from scipy.stats import chi2

    for at in (20.0, 25.0, 30.0):
        assert np.log10(stein._tail(values, at)) == pytest.approx(np.log10(chi2.sf(at, 5)), abs=0.4)


@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_a_run_at_a_wrong_temperature_is_rejected_and_a_right_one_is_not(temperature):
    right = stein.run_copies(standard_subjects(0.1, temperature)["SGHMC"], GAUSSIAN, 1000, 2, 50, 3, 5)
    hot = stein.run_copies(standard_subjects(0.1, 1.3 * temperature)["SGHMC"], GAUSSIAN, 1000, 2, 50, 3, 5)
    assert stein.ksd_test(right, -GAUSSIAN.gradient(right) / temperature, bootstraps=500).p > 1e-3
    assert stein.ksd_test(hot, -GAUSSIAN.gradient(hot) / temperature, bootstraps=500).p < 1e-5


def test_scores_come_from_the_gradient_of_a_model():
    model = sg.models.Gaussian(np.zeros(2), np.array([[2.0, 0.5], [0.5, 1.0]]))
    x = np.random.default_rng(0).standard_normal((2, 5, 2))
    scores = stein.scores_of(model, x, temperature=2.0)
    assert scores.shape == x.shape
    assert np.allclose(scores[1, 3], -model.gradient(x[1, 3]) / 2.0, rtol=1e-12)


# -------------------------------------------------------------------------------------------------------------------- wells


def test_the_discrepancy_is_blind_to_masses_of_far_modes_and_occupancy_is_not():
    p, z = [], []
    for seed in range(40):
        x, score, law = stein.far_modes(300, 0.8, seed)
        p.append(stein.ksd_test(x, score, flip=0.5, bootstraps=300, seed=seed).p)
        z.append(stein.occupancy(x, law, [0.0]).z[0])
    assert kstest(p, "uniform").pvalue > 1e-3
    assert np.abs(z).min() > z_bound(1)


def test_right_masses_pass_the_occupancy():
    z = [stein.occupancy(x, law, [0.0]).z[0] for x, _, law in (stein.far_modes(300, 0.5, s) for s in range(40))]
    assert np.abs(z).max() < z_bound(40)
    assert kstest(z, "norm").pvalue > 1e-3


def test_a_chain_that_never_leaves_its_well_fails_only_if_there_are_enough_chains():
    law = stein.far_modes(1, 0.5, 0)[2]
    one = stein.occupancy(np.full((1, 1000), -8.0), law, [0.0])
    many = stein.occupancy(np.full((100, 10), -8.0), law, [0.0])
    assert abs(one.z[0]) < 2.0 < 9.9 < abs(many.z[0])
    assert one.expected == pytest.approx([0.5, 0.5])


def test_the_masses_of_five_wells_are_the_published_ones():
    masses = np.diff(stein.FIVE_WELLS.law().cdf([-99.0, *stein.WELL_EDGES, 99.0]))
    assert masses == pytest.approx([0.0275, 0.1462, 0.4510, 0.3292, 0.0460], abs=1e-4)


def test_the_standard_evidence_passes():
    found = list(stein.findings("quick", 3))
    assert len(found) >= 8
    assert [f for f in found if not f.passed] == []
