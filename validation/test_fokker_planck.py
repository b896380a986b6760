"""The drift and the diffusion of the real kernels leave exp(−H/T) invariant: pointwise to round-off, and on grids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sgmcmc as sg
from sgmcmc.evidence.validation import finite_volume
from sgmcmc.integrators import Euler
from sgmcmc.kinetics import Gaussian, MonomialGamma, Relativistic
from sgmcmc.testing import fokker_planck
from sgmcmc.testing.laws import kinetic
from sgmcmc.testing.targets import MIXTURE, TARGETS, Target
from sgmcmc.testing.under_test import Kernel
from sgmcmc.thermostats import NoseHoover

few = settings(max_examples=25, deadline=None, derandomize=True, database=None)
positive = st.floats(0.1, 5.0)


@st.composite
def kinetics(draw: Any) -> Any:
    kind = draw(st.sampled_from(["Gaussian", "monomial", "published", "Relativistic"]))
    mass = draw(st.floats(0.3, 3.0))
    if kind == "Gaussian":
        return Gaussian(mass)
    if kind == "Relativistic":
        return Relativistic(mass, draw(st.floats(0.5, 3.0)))
    a = draw(st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0]))
    return MonomialGamma(a, draw(st.floats(1.0, 5.0)), a if kind == "published" and a >= 1 else None, mass)


def coupled(dim: int) -> Target:
    """U = θ'Aθ/2 + Σ θ⁴/4 with a full matrix A; `hessian` is the diagonal."""
    root = np.random.default_rng(3).normal(size=(dim, dim))
    A = np.eye(dim) + root @ root.T / dim
    return Target(
        "coupled quartic",
        lambda x: 0.5 * x**2 + 0.25 * x**4,  # only for the places of the points
        lambda x: x @ A + x**3,
        lambda x: np.diag(A) + 3.0 * x**2,
    )


@few
@given(
    kinetics(),
    st.sampled_from(TARGETS),
    st.floats(0.5, 4.0),
    positive,
    positive,
    positive,
    positive,
    st.integers(0, 99),
)
def test_residual_is_zero_for_every_composition(kinetics, target, T, sigma_theta, sigma_p, sigma_xi, gamma, seed):
    for per, dim in (("coordinate", 1), ("coordinate", 3), ("chain", 5)):
        sampler = sg.Sampler(
            1e-30,
            kinetics=kinetics,
            thermostat=NoseHoover(gamma, per, "fixed"),
            integrator=Euler(),
            sigma_theta=sigma_theta * (seed % 2),
            sigma_p=sigma_p,
            sigma_xi=sigma_xi * (seed % 3 > 0),
            temperature=T,
        )
        report = fokker_planck.check_stationarity(sampler, target, dim, points=8, seed=seed)
        assert report.passed, report


@few
@given(
    kinetics(),
    st.floats(0.5, 4.0),
    st.floats(0.0, 2.0),
    positive,
    st.lists(st.floats(0.2, 3.0), min_size=5, max_size=5),
)
def test_residual_is_zero_without_thermostat_on_a_coupled_target_with_scales(kinetics, T, sigma_theta, sigma_p, scale):
    target = coupled(5)
    for thermostat, s in ((None, 1.0), (NoseHoover(0.7, "chain", "fixed"), np.array(scale))):
        sampler = sg.Sampler(
            1e-30,
            kinetics=kinetics,
            thermostat=thermostat,
            integrator=Euler(),
            sigma_theta=sigma_theta,
            sigma_p=sigma_p,
            temperature=T,
            scale=s,
        )
        report = fokker_planck.check_stationarity(sampler, target, 5, points=8)
        assert report.passed, report


@few
@given(st.sampled_from(TARGETS), st.floats(0.5, 4.0), positive, st.integers(1, 5))
def test_residual_is_zero_without_momentum(target, T, sigma_theta, dim):
    sampler = sg.Sampler(1.0, kinetics=None, integrator=Euler(), sigma_theta=sigma_theta, sigma_p=0.0, temperature=T)
    report = fokker_planck.check_stationarity(sampler, target, dim, points=16)
    assert report.passed, report


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_derivatives_of_the_targets_are_those_of_their_energies(target):
    x = np.linspace(-2.0, 2.0, 41) + 0.01
    first, second = fokker_planck.derivatives(target.energy, x, np.ones_like(x))
    np.testing.assert_allclose(target.gradient(x), first, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(target.hessian(x), second, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("make", [sg.SGLD, sg.SGHMC, sg.SGNHT, sg.SGMGT, sg.SGMGTD], ids=lambda f: f.__name__)
def test_presets_with_their_default_integrators_have_the_same_generator(make):
    report = fokker_planck.check_stationarity(make(0.1, temperature=1.7), MIXTURE, 2, points=8)
    assert len(report.findings) == 3
    assert report.passed, report


# ---- wrong samplers ------------------------------------------------------------------------------------------------------


class Claims(Kernel):
    """A kernel with other parameters than it claims to have."""

    def __init__(self, sampler: sg.Sampler, truth: dict[str, Any]) -> None:
        super().__init__(sampler)
        self.truth = truth

    def with_(self, **changes: Any) -> Claims:
        import dataclasses

        return Claims(dataclasses.replace(self.sampler, **changes), self.truth)

    def move(self, *args: Any) -> Any:
        return super().with_(**self.truth).move(*args)


class WithoutCurvature(Kernel):
    """A thermostat driven by K'² alone."""

    def __init__(self, sampler: sg.Sampler, share: float = 1.0) -> None:
        super().__init__(sampler)
        self.share = share

    def with_(self, **changes: Any) -> WithoutCurvature:
        return WithoutCurvature(super().with_(**changes).sampler, self.share)

    def move(self, state, gradient, noise, before, h, step=1, seed=0):
        after = super().move(state, gradient, noise, before, h, step, seed)
        bend = kinetic(self.sampler.kinetics, state.p)[2]
        after.xi[:] += self.share * h * self.sampler.thermostat.gamma * self.sampler.temperature * bend
        return after


def right(**changes: Any) -> sg.Sampler:
    common = {
        "kinetics": MonomialGamma(2.0),
        "thermostat": NoseHoover(1.0, "coordinate", "fixed"),
        "integrator": Euler(),
    }
    return sg.Sampler(0.1, **{**common, "sigma_theta": 0.3, "sigma_xi": 0.5, "temperature": 1.5, **changes})


wrong = {
    "missing curvature": WithoutCurvature(right()),
    "curvature off by 1e-6": WithoutCurvature(right(), 1e-6),
    "temperature off by 1e-6": Claims(right(), {"temperature": 1.5 * (1 + 1e-6)}),
    "temperature ignored": Claims(right(), {"temperature": 1.0}),
    "gamma off by 1e-6": Claims(right(), {"thermostat": NoseHoover(1.0 + 1e-6, "coordinate", "fixed")}),
    "noise of xi off by 1e-6": Claims(right(), {"sigma_xi": 0.5 * (1 + 1e-6)}),
    "other kinetics": Claims(right(), {"kinetics": MonomialGamma(2.0, 3.001)}),
    "one thermostat per chain, noise off by 1 %": Claims(
        right(thermostat=NoseHoover(1.0, "chain", "fixed")), {"sigma_p": 1.01}
    ),
}


@pytest.mark.parametrize("name", [n for n in wrong if n != "noise of xi off by 1e-6"])
def test_wrong_processes_have_a_residual(name):
    report = fokker_planck.check_stationarity(wrong[name], MIXTURE, 1)
    assert not report.passed
    assert report.findings[0].figure > 10 * fokker_planck.TOLERANCE


def test_another_noise_of_xi_is_another_process_with_the_same_law():
    assert fokker_planck.check_stationarity(wrong["noise of xi off by 1e-6"], MIXTURE, 1).passed


def test_splitting_with_another_generator_is_seen():
    from sgmcmc.testing.under_test import standard_subjects

    class Off(Kernel):
        def with_(self, **changes):
            return (Kernel if "integrator" in changes else Off)(super().with_(**changes).sampler)

        def move(self, state, gradient, noise, before, h, step=1, seed=0):
            after = super().move(state, gradient, noise, before, h, step, seed)
            after.p[:] *= 1.0 - 1e-6 * h
            return after

    subject = Off(standard_subjects()["SGMGT, a = 1"].sampler)
    assert [f.passed for f in fokker_planck.check_stationarity(subject, MIXTURE, 1)] == [True, False, True]


# ---- grids ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("T", [1.0, 2.5])
@pytest.mark.parametrize("name", list(finite_volume.planes()))
def test_null_vector_of_the_generator_is_the_target(name, T):
    plane = finite_volume.planes(T)[name]
    cells = (200, 400) if len(plane.variables) == 1 else (72, 96)
    order, distances = finite_volume.order_of_distance(plane, cells)
    assert 1.8 < order < 2.2
    assert distances[-1] < 0.02


def test_null_vector_of_a_wrong_generator_is_not():
    good = finite_volume.planes(2.5)["SGMGT-D a = 1, (p, ξ)"]
    for subject in (
        WithoutCurvature(good.subject.sampler, 0.1),
        Claims(good.subject.sampler, {"temperature": 2.2}),
        Claims(good.subject.sampler, {"thermostat": NoseHoover(0.9, "coordinate", "fixed")}),
    ):
        order, distances = finite_volume.order_of_distance(good._replace(subject=subject), (48, 96))
        assert order < 0.8
        assert distances[-1] > 0.01
