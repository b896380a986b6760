"""Momenta, thermostats and parameters have the laws that they should have; wrong ones are rejected."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sgmcmc as sg
from sgmcmc.dispatch import implements
from sgmcmc.evidence.validation import posterior_runs
from sgmcmc.kinetics import Gaussian, MonomialGamma, Relativistic, curvature, energy, velocity
from sgmcmc.testing import marginals
from sgmcmc.testing.targets import GAUSSIAN, MIXTURE, QUARTIC
from sgmcmc.testing.under_test import Kernel, standard_subjects
from sgmcmc.thermostats import NoseHoover

few = settings(max_examples=8, deadline=None, derandomize=True, database=None)


class Quartic(NamedTuple):
    """A user's kinetics with nothing but the three functions: K = w (p²/2 + p⁴/4)."""

    weight: float = 1.0


@implements(energy, Quartic)
def _(kinetics, p):
    return kinetics.weight * (0.5 * p * p + 0.25 * p * p * p * p)


@implements(velocity, Quartic)
def _(kinetics, p):
    return kinetics.weight * (p + p * p * p)


@implements(curvature, Quartic)
def _(kinetics, p):
    return kinetics.weight * (1.0 + 3.0 * p * p)


@few
@given(
    st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0]),
    st.floats(1.0, 5.0),
    st.booleans(),
    st.floats(0.3, 3.0),
    st.floats(0.3, 3.0),
)
def test_monomial_gamma_momenta(a, c, published, mass, T):
    report = marginals.check_momentum_law(MonomialGamma(a, c, a if published and a >= 1 else None, mass), T, 50_000)
    assert report.passed, report


@pytest.mark.parametrize("T", [0.4, 1.0, 2.5])
@pytest.mark.parametrize(
    "kinetics",
    [
        Gaussian(0.5),
        Gaussian(3.0),
        Relativistic(1.5, 2.0),
        Relativistic(0.3, 0.5),
        MonomialGamma(2.0, np.inf),
        Quartic(0.7),
    ],
    ids=repr,
)
def test_momenta_of_every_other_kinetics(kinetics, T):
    report = marginals.check_momentum_law(kinetics, T, 50_000)
    assert report.passed, report


def test_momenta_of_another_temperature_mass_or_softening_are_rejected(monkeypatch):
    true = marginals.drawn_momenta
    for kinetics, other, T in (
        (MonomialGamma(2.0), MonomialGamma(2.0), 1.02),
        (MonomialGamma(2.0), MonomialGamma(2.0, np.inf), 1.0),  # stiff momenta for softened kinetics
        (Gaussian(1.0), Gaussian(1.02), 1.0),
        (MonomialGamma(1.0), MonomialGamma(1.0, 3.2), 1.0),
    ):
        monkeypatch.setattr(marginals, "drawn_momenta", lambda k, t, n, s, other=other, T=T: true(other, T, n, s))
        assert not marginals.check_momentum_law(kinetics, 1.0, 400_000).passed


def test_rejection_rate_of_another_proposal_is_seen(monkeypatch):
    right = marginals.acceptance
    monkeypatch.setattr(marginals, "acceptance", lambda k, T: right(k, 4.0 * T))
    failures = marginals.check_momentum_law(MonomialGamma(2.0), 0.4, 400_000).failures
    assert [f.check.split(":")[0] for f in failures] == ["rejection", "rejection"]


@pytest.mark.parametrize("name", list(standard_subjects()))
def test_copies_stay_in_their_law(name):
    report = marginals.check_marginals(standard_subjects(0.02, 1.7)[name], MIXTURE, 0.02, 60, 10_000, 1)
    assert report.passed, report


@pytest.mark.parametrize("per", ["coordinate", "chain"])
@pytest.mark.parametrize("changes", [{"sigma_xi": 0.8}, {"resample_thermostat": 50}], ids=["noise", "resampled"])
def test_thermostats_find_their_law_from_one_value(per, changes):
    sampler = sg.Sampler(
        0.05, Gaussian(), NoseHoover(0.7, per, "fixed"), sigma_p=1.2, temperature=1.5, **changes
    )  # fmt: skip
    for xi in (None, 4.0):
        report = marginals.check_marginals(sampler, QUARTIC, 0.05, 500, 4_000, 3, xi=xi)
        assert report.passed, report


class Hot(Kernel):
    """A kernel with other parameters than it claims to have."""

    def move(self, *args):
        return self.with_(**self.truth).move(*args)


@pytest.mark.parametrize(
    ("truth", "guilty"),
    [
        ({"temperature": 1.75}, {"θ", "p", "ξ"}),
        ({"sigma_p": 1.3}, {"ξ"}),
        ({"thermostat": NoseHoover(0.9, "coordinate", "fixed"), "resample_thermostat": 50}, {"ξ"}),
        ({"kinetics": MonomialGamma(1.0, 8.0)}, {"p"}),
    ],
    ids=["temperature", "centre", "law of fresh ξ", "softening"],
)
def test_copies_of_a_wrong_sampler_leave_their_law(truth, guilty):
    sampler = sg.Sampler(
        0.05, MonomialGamma(1.0), NoseHoover(0.7, "coordinate", "fixed"), temperature=1.5, sigma_xi=0.5, sigma_p=1.1
    )
    subject = Hot(sampler)
    subject.truth = truth
    failures = marginals.check_marginals(subject, GAUSSIAN, 0.05, 400, 20_000).failures
    assert guilty <= {f.check.split()[2].strip(":") for f in failures}


@pytest.mark.parametrize("problem", list(posterior_runs.PROBLEMS))
def test_runs_have_the_law_of_the_posterior(problem):
    T = 4.0 if problem == "five wells" else 1.0
    sampler = posterior_runs.samplers_for(posterior_runs.PROBLEMS[problem], T)["SGMGT, a = 1"]
    report = posterior_runs.check_posterior(sampler, problem, 2_000)
    assert report.passed, report


def test_run_at_another_temperature_has_another_law():
    problem = posterior_runs.PROBLEMS["quartic"]
    sampler = posterior_runs.samplers_for(problem, 1.0)["SGMGT, a = 1"]
    hotter = problem._replace(statistics=lambda T: problem.statistics(0.8 * T))
    assert not posterior_runs.check_posterior(sampler, hotter, 2_000).passed
