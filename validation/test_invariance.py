"""One-step invariance from exact starts: every sampler keeps its law up to the order of its integrator; wrong ones do not."""

from __future__ import annotations

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.integrators import Euler
from sgmcmc.testing.invariance import (
    check_invariance,
    findings,
    invariance_z,
    measure_order,
    one_step_defects,
)
from sgmcmc.testing.statistics import z_bound
from sgmcmc.testing.targets import GAUSSIAN, QUARTIC, SKEW
from sgmcmc.testing.under_test import Kernel, standard_subjects

SPLITTINGS = list(standard_subjects())
BOUND = z_bound(15 * 14 * 3 * 9)


class Claims(Kernel):
    """A sampler that claims to be another one: the law is taken from the claim, the step from the deed."""

    def __init__(self, claim, deed):
        super().__init__(claim, "pretender")
        self.deed = Kernel(deed)

    def move(self, *arguments, **options):
        return self.deed.move(*arguments, **options)


def test_the_standard_findings_pass():
    found = list(findings("quick"))
    assert len(found) == 28
    assert [f for f in found if not f.passed] == []


@pytest.mark.parametrize("name", SPLITTINGS)
@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_nothing_of_first_order_is_left_at_small_steps_over_fresh_seeds(name, temperature):
    for seed, target in enumerate((GAUSSIAN, QUARTIC, SKEW)):
        subject = standard_subjects(0.1, temperature)[name]
        z, phi = invariance_z(subject, target, seed=100 + seed)
        assert z < BOUND, (z, phi, target.name, seed)


def test_the_order_of_euler_is_one_and_that_of_the_splitting_two():
    euler = measure_order(sg.SGHMC(0.1, integrator=Euler()), QUARTIC)
    splitting = measure_order(sg.SGHMC(0.1), QUARTIC)
    assert euler.low < 1.1
    assert euler.high > 0.9
    assert splitting.low < 2.2
    assert splitting.high > 1.8


def test_several_coordinates_with_one_thermostat_keep_their_law():
    subject = Kernel(sg.SGNHT(0.1, temperature=2.0, per="chain"))
    z, phi = invariance_z(subject, SKEW, dim=2, log2_points=12)
    assert z < BOUND, (z, phi)


@pytest.mark.parametrize(
    ("claim", "deed"),
    [
        (sg.SGHMC(0.1, 1.0), sg.SGHMC(0.1, 1.0, noise_estimate=0.05)),  # 5 % too little noise
        (sg.SGHMC(0.1, 1.0, temperature=2.0), sg.SGHMC(0.1, 1.0)),  # the temperature ignored
        (sg.SGLD(0.1, 1.0), sg.SGLD(0.1, 1.05)),
        (sg.SGNHT(0.1, 1.0, gamma=1.0), sg.SGNHT(0.1, 1.05, gamma=1.0)),
        (standard_subjects()["SGMGT-D, a = 1"].sampler, standard_subjects(temperature=1.05)["SGMGT-D, a = 1"].sampler),
    ],
    ids=["noise", "temperature", "sgld", "diffusion", "sgmgtd"],
)
def test_a_sampler_that_is_off_by_five_per_cent_is_rejected(claim, deed):
    z, phi = invariance_z(Claims(claim, deed))
    assert z > BOUND, (z, phi)


def test_a_wrong_sampler_has_a_wrong_order_and_fails_the_report():
    wrong = Claims(sg.SGHMC(0.1, 1.0), sg.SGHMC(0.1, 1.0, noise_estimate=0.2))
    assert measure_order(wrong).high < 1.0
    report = check_invariance(wrong, [SKEW])
    assert not report.passed
    assert check_invariance(sg.SGHMC(0.1, 1.0), [SKEW]).passed


def test_defects_have_small_standard_errors():
    defects = one_step_defects(standard_subjects()["SGHMC"], SKEW, 0.05)
    assert dict(zip(defects.names, defects.error, strict=True))["θ²"] < 1e-5
    assert np.isfinite(defects.values).all()
