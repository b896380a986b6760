"""One-step invariance by quadrature: orders without randomness, and wrong samplers whose order is 1."""

from __future__ import annotations

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.integrators import Euler
from sgmcmc.testing.quadrature import check_order, quadrature_defects, quadrature_slope
from sgmcmc.testing.targets import GAUSSIAN, QUARTIC, SKEW
from sgmcmc.testing.under_test import Kernel, standard_subjects


@pytest.mark.parametrize("name", ["SGLD", "SGHMC", "SGNHT"])
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_the_defect_of_a_splitting_falls_like_the_third_power_of_h(name, temperature):
    finding = check_order(standard_subjects(0.1, temperature)[name], QUARTIC if temperature == 1.0 else SKEW, 0.04)
    assert finding.passed, finding


@pytest.mark.parametrize("name", ["SGLD, Euler", "SGHMC, Euler", "SGNHT, Euler"])
def test_the_defect_of_euler_falls_like_the_square_of_h_and_no_faster(name):
    slope, _ = quadrature_slope(standard_subjects(0.1, 1.0, euler=True)[name], QUARTIC, 0.04)
    assert 1.9 < slope.value < 2.1


class Faint(Kernel):
    """A sampler whose noise is half a per cent too small."""

    def with_(self, **changes):
        return Faint(super().with_(**changes).sampler, self.name)

    def move(self, state, gradient, noise, *rest):
        return super().move(state, gradient, noise._replace(p=0.995 * noise.p), *rest)


def test_half_a_per_cent_of_noise_is_seen_as_an_order_of_one():
    finding = check_order(Faint(sg.SGHMC(0.1)), QUARTIC, 0.02)
    assert not finding.passed
    assert finding.figure == pytest.approx(1.0, abs=0.2)


def test_more_nodes_change_nothing():
    subject = standard_subjects(0.1)["SGNHT"]
    few, many = (quadrature_defects(subject, QUARTIC, 0.05, nodes) for nodes in (5, 6))
    np.testing.assert_allclose(list(few.values()), list(many.values()), rtol=1e-3, atol=1e-12)


def test_baoab_keeps_the_second_moment_of_a_gaussian_better_than_euler():
    exact = quadrature_defects(Kernel(sg.SGHMC(0.1)), GAUSSIAN, 0.1)["θ²"]
    euler = quadrature_defects(Kernel(sg.SGHMC(0.1, integrator=Euler())), GAUSSIAN, 0.1)["θ²"]
    assert abs(exact) < 1e-4 < abs(euler)


def test_too_many_variables_are_one_sentence():
    with pytest.raises(ValueError, match="too many for a product of rules"):
        quadrature_defects(standard_subjects(0.1)["SGMGT-D, a = 1"], QUARTIC, 0.1)
