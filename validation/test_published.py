"""The published a = 2 kinetics has an unbounded curvature, which throws the thermostat off; the smooth order 3 has not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgmcmc.evidence.validation import published
from sgmcmc.kinetics import Gaussian, MonomialGamma
from sgmcmc.testing.laws import kinetic, momentum_law
from sgmcmc.testing.marginals import drawn_momenta

few = settings(max_examples=10, deadline=None, derandomize=True, database=None)


@few
@given(st.floats(1.0, 8.0), st.floats(0.5, 4.0))
def test_second_moment_of_the_published_curvature_grows_like_a_logarithm(c, T):
    rough = published.published(c)
    predicted = 2.0 * momentum_law(rough, T).density([0.0])[0] * (c * c / 16.0) ** 2
    assert published.growth_per_log(rough, T) == pytest.approx(predicted, rel=1e-3)
    assert published.curvature_exponent(rough) == pytest.approx(-0.5, abs=1e-3)


@few
@given(st.floats(0.5, 3.0), st.floats(1.0, 4.0))
def test_smooth_curvature_is_bounded_by_its_value_at_0_for_every_a(a, c):
    kinetics = MonomialGamma(a, c, 2.0 * a - 1.0)
    p = np.concatenate(([0.0], np.geomspace(1e-12, 1e3, 400)))
    top = (0.5 * c) ** (2.0 * a - 1.0) / a
    bend = kinetic(kinetics, p)[2]
    assert bend[0] == pytest.approx(top, rel=1e-12)
    assert bend.max() <= top * (1.0 + 1e-12)
    assert abs(published.growth_per_log(kinetics)) < 1e-6


def test_published_curvature_has_a_tail_index_of_2_and_another_order_another_index():
    """K'' ~ |p|^{(r+1)/a − 2}: the index is −1/exponent = 2 for r = 2, and 4/3 for r = 1.5: the estimate tells them apart."""
    for order, index in ((2.0, 2.0), (1.5, 4.0 / 3.0)):
        kinetics = MonomialGamma(2.0, 3.0, order)
        found, error = published.hill(kinetic(kinetics, drawn_momenta(kinetics, 1.5, 1_000_000, 3))[2])
        assert abs(found - index) < 5.0 * error
    assert abs(found - 2.0) > 5.0 * error


def test_published_form_loses_chains_and_the_smooth_form_none():
    rough = published.run(published.published(5.0), steps=600, copies=300, temperature=1.5)
    fine = published.run(published.smooth(3.0), steps=600, copies=300, temperature=1.5)
    gaussian = published.run(Gaussian(), steps=600, copies=300, temperature=1.5)
    assert rough.lost > 0.1
    assert fine.lost == gaussian.lost == 0.0
    assert rough.variance > 1.3
    assert fine.variance == pytest.approx(1.0, abs=0.25)


def test_standard_evidence_passes():
    failures = [f for f in published.findings("quick", seed=1) if not f.passed]
    assert not failures
