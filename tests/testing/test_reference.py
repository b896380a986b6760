"""Two programs, one mathematics: the compiled kernels against the same process in NumPy, on the same normals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgmcmc.integrators import BAOAB, Euler, SymmetricSplitting
from sgmcmc.kinetics import Gaussian, MonomialGamma, Relativistic
from sgmcmc.samplers import Sampler
from sgmcmc.testing import laws, reference_kinetics
from sgmcmc.testing.reference import Reference
from sgmcmc.testing.statistics import kolmogorov
from sgmcmc.testing.targets import SKEW
from sgmcmc.testing.under_test import Kernel
from sgmcmc.thermostats import NoseHoover

few = settings(derandomize=True, deadline=None, max_examples=12)
positive = st.floats(0.2, 3.0)
fixed = NoseHoover(1.0, center="fixed")
KINETICS = {
    "Gaussian": st.builds(Gaussian, positive),
    "Relativistic": st.builds(Relativistic, positive, positive),
    "MonomialGamma": st.one_of(
        st.builds(MonomialGamma, st.sampled_from([1.0, 2.0]), positive, st.none(), st.floats(0.7, 1.5)),
        st.builds(lambda a, c, more: MonomialGamma(a, c, a + more), st.floats(0.5, 3.0), positive, st.floats(0.0, 2.0)),
    ),
}
# A few combinations of types that meet every branch: a combination costs a compilation, its numbers cost nothing.
COMBINATIONS = [
    (BAOAB(), None, None, False),
    (BAOAB(), "Gaussian", None, False),
    (BAOAB(), "Gaussian", "coordinate", False),
    (SymmetricSplitting(), "MonomialGamma", "coordinate", False),
    (SymmetricSplitting(), "Relativistic", "chain", True),
    (Euler(), None, None, False),
    (Euler(), "MonomialGamma", "coordinate", False),
    (Euler(), "Gaussian", "chain", True),
]


@st.composite
def samplers(draw, integrator, kinetics, per, array_scale):
    """Any sampler of these parts."""
    temperature = draw(positive)
    numbers = {
        "sigma_theta": draw(st.sampled_from([0.0, 0.3, 1.2])) if kinetics else draw(positive),
        "sigma_p": draw(positive),
        "sigma_xi": draw(st.sampled_from([0.0, 0.4])) if per else 0.0,
        "temperature": temperature,
        "scale": draw(st.lists(positive, min_size=3, max_size=3).map(np.array)) if array_scale else draw(positive),
        "resample_thermostat": draw(st.sampled_from([None, 2])) if per else None,
    }
    numbers["noise_estimate"] = draw(st.floats(0.0, 0.9)) * numbers["sigma_p"] * temperature if kinetics else 0.0
    return Sampler(
        lambda step: 1e-3,  # not a constant: the numbers here may be stiff, which is of no concern
        kinetics=draw(KINETICS[kinetics]) if kinetics else None,
        thermostat=NoseHoover(draw(positive), per, draw(st.sampled_from(["fixed", "adaptive"]))) if per else None,
        integrator=integrator,
        **numbers,
    )


def gap(one: Reference | Kernel, two: Kernel, seed: int, steps: int = 5) -> float:
    """The largest relative difference of the states of two subjects over some steps of unequal size."""
    rng = np.random.default_rng(seed)
    sizes = two.sampler.sizes(3)
    theta, p, xi = (rng.standard_normal((8, n)) for n in (3, sizes.p, sizes.xi))
    a, b = one.start(theta, p, xi), two.start(theta, p, xi)
    if two.sampler.wants_variance:  # of gradient noise: where the centre is, and the compensation in θ
        a.variance[:] = b.variance[:] = rng.exponential(20.0, b.variance.shape)
    before, worst = 0.0, 0.0
    for step, h in enumerate(rng.uniform(0.01, 0.08, steps)):
        noise = two.draw_noise(b, seed, step)
        a = one.move(a, SKEW.gradient(a.theta), noise, before, h, step, seed)
        b = two.move(b, SKEW.gradient(b.theta), noise, before, h, step, seed)
        before = h
        for x, y in ((a.theta, b.theta), (a.p, b.p), (a.xi, b.xi), (a.pending, b.pending)):
            worst = max(worst, float(np.max(np.abs(x - y) / (1.0 + np.abs(y)), initial=0.0)))
    return worst


@pytest.mark.parametrize("parts", COMBINATIONS, ids=lambda c: f"{type(c[0]).__name__}, {c[1]}, {c[2]}")
def test_the_compiled_kernel_agrees_with_the_reference_to_rounding(parts):
    @few
    @given(samplers(*parts), st.integers(0, 1000))
    def check(sampler, seed):
        assert gap(Reference(sampler), Kernel(sampler), seed) < 1e-11

    check()


@few
@given(st.one_of(*KINETICS.values()), positive)
def test_kinetics_and_momentum_laws_agree(kinetics, temperature):
    p = np.linspace(-6.0, 6.0, 24)  # without 0, where a published form may have no second derivative
    mine = [
        f(kinetics, p) for f in (reference_kinetics.energy, reference_kinetics.velocity, reference_kinetics.curvature)
    ]
    np.testing.assert_allclose(mine, laws.kinetic(kinetics, p), rtol=1e-10, atol=1e-12)


def test_resampled_momenta_follow_the_same_law():
    sampler = Sampler(0.1, MonomialGamma(2.0), fixed, resample_momentum=1, temperature=0.6)
    for subject in (Reference(sampler), Kernel(sampler)):
        state = subject.start(np.zeros((4000, 2)))
        state = subject.move(state, np.zeros((4000, 2)), subject.draw_noise(state, 3, 0), 0.0, 0.0, 0, 3)
        assert kolmogorov(state.p, laws.momentum_law(sampler.kinetics, 0.6).cdf) > 1e-5
        assert kolmogorov(subject.draw_momenta(state, 4), laws.momentum_law(sampler.kinetics, 0.6).cdf) > 1e-5


def test_a_reference_with_an_error_of_1e_9_does_not_agree():
    from sgmcmc.evidence.validation.faults import LoudNoise

    sampler = Sampler(0.1, MonomialGamma(1.0), fixed, temperature=0.6)
    assert gap(Reference(sampler), Kernel(sampler), 1) < 1e-11
    assert gap(LoudNoise(sampler, size=1e-9), Kernel(sampler), 1) > 1e-11


@pytest.mark.parametrize("wrong", ["center", "crosstalk"])
def test_a_reference_that_knows_nothing_of_gradient_noise_does_not_agree(wrong):
    sampler = Sampler(
        0.1, MonomialGamma(1.0), NoseHoover(1.0, center="adaptive"), sigma_theta=0.3, sigma_xi=0.4, temperature=0.6
    )
    deaf = Reference(sampler)
    assert gap(deaf, Kernel(sampler), 1) < 1e-11
    setattr(deaf, wrong, lambda s: 1.0 if wrong == "center" else 0.0)
    assert gap(deaf, Kernel(sampler), 1) > 1e-4
