"""Updates as the papers write them, in their own letters, against the process of this package.

Each function takes an error `off` in the injected noise (1 is none) and returns the largest difference between the
paper's formula and `Reference`, the process in plain NumPy. `test_reference.py` compares the compiled kernels with it.
"""

from __future__ import annotations

import numpy as np
import pytest

import sgmcmc as sg
from sgmcmc.integrators import Euler, SymmetricSplitting
from sgmcmc.kinetics import MonomialGamma, energy, specialise
from sgmcmc.testing.reference import Reference
from sgmcmc.testing.targets import SKEW

H, A, COPIES, DIM = 0.07, 1.3, 5, 3


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def started(sampler):
    """The sampler in NumPy, and copies of its state away from 0."""
    subject, rng = Reference(sampler), np.random.default_rng(1)
    sizes = sampler.sizes(DIM)
    parts = (rng.standard_normal((COPIES, n)) + 0.1 for n in (sizes.theta, sizes.p, sizes.xi))
    return subject, subject.start(*parts)


def one_step(subject, state, step=0, before=0.0, h=H):
    """The gradient and the normals of a step, and the state after it."""
    gradient, noise = SKEW.gradient(state.theta), subject.draw_noise(state, 2, step)
    return gradient, noise, subject.move(state, gradient, noise, before, h, step, 2)


def gap(state, **expected):
    return max(float(np.abs(getattr(state, name) - value).max()) for name, value in expected.items())


def welling_and_teh(off=1.0):
    """SGLD, equation 4: Δθ = −(ε/2) ∇U + η with η ~ N(0, ε); ε = 2h."""
    epsilon = 2.0 * H
    subject, state = started(sg.SGLD(H, integrator=Euler()))
    g, noise, after = one_step(subject, state)
    return gap(after, theta=state.theta - 0.5 * epsilon * g + off * np.sqrt(epsilon) * noise.theta)


def chen_fox_and_guestrin(off=1.0):
    """SGHMC, momentum form: Δθ = v, Δv = −η ∇U − αv + N(0, 2(α − β̂)η); v = hp, η = h², α = hA, β̂ = hB̂."""
    estimate = 0.4
    subject, state = started(sg.SGHMC(H, A, estimate, integrator=Euler()))
    g, noise, after = one_step(subject, state)
    eta, alpha, beta, v = H**2, H * A, H * estimate, H * state.p
    moved = v - eta * g - alpha * v + off * np.sqrt(2.0 * (alpha - beta) * eta) * noise.p
    return gap(after, theta=state.theta + v, p=moved / H)


def ding_et_al(off=1.0):
    """SGNHT, one ξ: dθ = p dt, dp = −∇U dt − ξp dt + √(2A) dW, dξ = (p·p/d − 1) dt; an Euler step."""
    subject, state = started(sg.SGNHT(H, A, per="chain", integrator=Euler()))
    g, noise, after = one_step(subject, state)
    p = state.p - H * g - H * state.xi * state.p + off * np.sqrt(2.0 * A * H) * noise.p
    xi = state.xi + H * ((state.p**2).sum(axis=1, keepdims=True) / DIM - 1.0)
    return gap(after, theta=state.theta + H * state.p, p=p, xi=xi)


def velocity_and_curvature(a, c, p):
    """K' and K'' of the published softened kinetics of mass 1, by ψ = tanh(cs/2) as a logistic function."""
    s = np.abs(p) ** (1.0 / a)
    psi = 2.0 * sigmoid(c * s) - 1.0
    slope = 2.0 * c * sigmoid(c * s) * (1.0 - sigmoid(c * s))  # dψ/ds
    if a == 1:
        return np.sign(p) * psi, slope
    size = np.abs(p)
    return np.sign(p) * psi**2 / (2.0 * s), 0.5 * psi * slope / size - 0.25 * psi**2 / size**1.5


def zhang_et_al(off=1.0, a=1):
    """SGMGT-D, published kinetics, Euler: all three lines with F = (ξ − σ_p)²/(2γ), so that σ_p + γF' = ξ."""
    c, sigma_theta, sigma_p, sigma_xi, gamma = 5.0, 0.2, A, 0.3, 0.8
    parts = {"sigma_theta": sigma_theta, "sigma_p": sigma_p, "sigma_xi": sigma_xi, "gamma": gamma}
    never = {"resample_momentum": None, "resample_thermostat": None}
    h = lambda step: H  # noqa: E731  not a constant: the published K'' is stiff, of which there would be a warning
    sampler = sg.SGMGTD(h, a, c, order=a, center="fixed", integrator=Euler(), **parts, **never)
    subject, state = started(sampler)
    g, noise, after = one_step(subject, state)
    v, bend = velocity_and_curvature(a, c, state.p)
    slope_of_f = (state.xi - sigma_p) / gamma
    theta = state.theta + H * v - H * sigma_theta * g + np.sqrt(2.0 * sigma_theta * H) * noise.theta
    p = state.p - H * g - H * (sigma_p + gamma * slope_of_f) * v + off * np.sqrt(2.0 * sigma_p * H) * noise.p
    xi = state.xi + H * gamma * (v**2 - bend) - H * sigma_xi * slope_of_f + np.sqrt(2.0 * sigma_xi * H) * noise.xi
    return gap(after, theta=theta, p=p, xi=xi)


def zhang_et_al_with_longer_tails(off=1.0):
    return zhang_et_al(off, a=2)


def chen_ding_and_carin(off=1.0):
    """Symmetric splitting, their letters A B O B A: drift, friction, gradient and noise, friction, drift.

    Here a step starts at the gradient, so a step of theirs begins half a drift and half a friction flow earlier.
    """
    subject, state = started(sg.SGNHT(H, A, per="chain", integrator=SymmetricSplitting()))
    theta, p, xi = state.theta.copy(), state.p.copy(), state.xi.copy()

    def drift_and_friction():
        nonlocal theta, p, xi
        theta, xi = theta + 0.5 * H * p, xi + 0.5 * H * ((p**2).mean(axis=1, keepdims=True) - 1.0)  # A
        p = np.exp(-0.5 * H * xi) * p  # B

    drift_and_friction()
    ours = subject.start(theta, p, xi)
    worst = 0.0
    for step in range(3):
        g, noise, ours = one_step(subject, ours, step, before=H)
        p = p - H * g + off * np.sqrt(2.0 * A * H) * noise.p  # O
        p = np.exp(-0.5 * H * xi) * p  # B
        theta, xi = theta + 0.5 * H * p, xi + 0.5 * H * ((p**2).mean(axis=1, keepdims=True) - 1.0)  # A
        drift_and_friction()
        worst = max(worst, gap(ours, theta=theta, p=p, xi=xi))
    return worst


def leimkuhler_and_shang(off=1.0):
    """BADODAB: kick, drift, thermostat, Ornstein–Uhlenbeck step, thermostat, drift, kick; one ξ, thermal mass d."""
    subject, ours = started(sg.SGNHT(H, A, per="chain"))
    theta, p, xi = ours.theta.copy(), ours.p.copy(), ours.xi.copy()
    force, before, worst = SKEW.gradient(theta), 0.0, 0.0
    for step in range(3):
        _g, noise, ours = one_step(subject, ours, step, before)
        before = H
        p = p - 0.5 * H * force  # B
        theta = theta + 0.5 * H * p  # A
        xi = xi + 0.5 * H * ((p**2).sum(axis=1, keepdims=True) - DIM) / DIM  # D
        decay = np.exp(-H * xi)
        p = decay * p + off * np.sqrt(A * (1.0 - decay**2) / xi) * noise.p  # O
        xi = xi + 0.5 * H * ((p**2).sum(axis=1, keepdims=True) - DIM) / DIM  # D
        theta = theta + 0.5 * H * p  # A
        worst = max(worst, gap(ours, theta=theta, p=p, xi=xi))  # ours has the last half kick still to come
        force = SKEW.gradient(theta)
        p = p - 0.5 * H * force  # B
    return worst


def leimkuhler_and_matthews(off=1.0):
    """θ_{n+1} = θ_n − h ∇U(θ_n) + √(2hT) (R_n + R_{n+1})/2."""
    T = 0.6
    subject, state = started(sg.SGLD(H, T))
    _g, noise, state = one_step(subject, state)
    theta, before, worst = state.theta.copy(), noise.theta, 0.0
    for step in range(1, 4):
        g, noise, state = one_step(subject, state, step, before=H)
        theta = theta - H * g + off * np.sqrt(2.0 * H * T) * 0.5 * (before + noise.theta)
        before = noise.theta
        worst = max(worst, gap(state, theta=theta))
    return worst


def softened_kinetics(off=1.0):
    """−p + (2/c) log(1 + e^{cp}) for a = 1, and √|p| + 4/(c(1 + e^{c√|p|})) for a = 2, of mass 1."""
    worst = 0.0
    for c in (1.0, 3.0, 5.0):
        for p in (-4.0, -0.3, 1e-3, 0.7, 6.0):
            s = np.sqrt(abs(p))
            one, two = -p + 2.0 / (c * off) * np.log1p(np.exp(c * p)), s + 4.0 / (c * off * (1.0 + np.exp(c * s)))
            kinetics = MonomialGamma(1.0, c, 1.0), MonomialGamma(2.0, c, 2.0)
            worst = max(worst, abs(energy(specialise(kinetics[0]), p) - one), abs(energy(kinetics[1], p) - two))
    return float(worst)


PAPERS = (
    welling_and_teh,
    chen_fox_and_guestrin,
    ding_et_al,
    zhang_et_al,
    zhang_et_al_with_longer_tails,
    chen_ding_and_carin,
    leimkuhler_and_shang,
    leimkuhler_and_matthews,
    softened_kinetics,
)


@pytest.mark.parametrize("paper", PAPERS, ids=lambda f: f.__name__)
def test_the_update_of_the_paper_is_that_of_the_process(paper):
    assert paper() < 1e-12


@pytest.mark.parametrize("paper", PAPERS, ids=lambda f: f.__name__)
def test_a_number_that_is_off_by_a_thousandth_is_seen(paper):
    assert paper(1.001) > 1e-5
