"""The five samplers of the literature, each a composition of parts that can be written by hand.

`U` is the negative log posterior, T the temperature; every formula holds per coordinate. All of them cost one gradient per
step and leave exp(−U(θ)/T) invariant for θ, up to the error of the integrator: h² for the default ones, h for Euler. That
is with exact gradients, or with gradient noise that the sampler absorbs; each docstring says what it does with the rest.
"""

from __future__ import annotations

from typing import Any

from sgmcmc import checks
from sgmcmc.kinetics import Gaussian, MonomialGamma
from sgmcmc.samplers.sampler import Sampler, StepSize
from sgmcmc.thermostats import FixedFriction, NoseHoover, PerChain, PerCoordinate, has_variables

__all__ = ["SGHMC", "SGLD", "SGMGT", "SGMGTD", "SGNHT"]


def SGLD(step_size: StepSize, temperature: float = 1.0, *, integrator: Any = None, scale: Any = 1.0) -> Sampler:
    """Stochastic gradient Langevin dynamics: a noisy gradient step, no momentum.

    SDE: dθ = −∇U dt + √(2T) dW. Invariant law: exp(−U/T).
    Order 2 for θ with the default integrator, which takes the gradient halfway through the noise and records that
    point (Leimkuhler and Matthews 2013); ``integrator=Euler()`` is the textbook scheme, θ ← θ − h∇U + √(2hT) n, of
    order 1. h is the whole step: some papers write ε/2. Gradient noise of variance V heats by a factor 1 + hV/(2T).

    Parameters
    ----------
    step_size : float, schedule or function of the step
    temperature : float, above 0
    integrator, scale : as for Sampler

    Returns
    -------
    Sampler

    References
    ----------
    Welling and Teh, ICML 2011, equation 4.

    Examples
    --------
    >>> sg.SGLD(0.1) == sg.Sampler(0.1, kinetics=None, sigma_theta=1.0, sigma_p=0.0)
    True
    """
    return Sampler(
        step_size,
        kinetics=None,
        integrator=integrator,
        sigma_theta=1.0,
        sigma_p=0.0,
        temperature=temperature,
        scale=scale,
    )


def SGHMC(
    step_size: StepSize,
    friction: float = 1.0,
    noise_estimate: float = 0.0,
    temperature: float = 1.0,
    *,
    integrator: Any = None,
    scale: Any = 1.0,
) -> Sampler:
    """Stochastic gradient Hamiltonian Monte Carlo: momentum with a constant friction.

    SDE: dθ = p dt, dp = −∇U dt − A p dt + √(2(AT − B̂)) dW, A the friction. Invariant law: exp(−(U + p²/2)/T).
    Order 2; with the default BAOAB the law of θ is exact for Gaussian targets. Gradient noise of variance V is extra
    diffusion hV/2: it heats by a factor 1 + hV/(2AT) unless `noise_estimate` B̂ = hV/2 takes it off the injected noise.

    Parameters
    ----------
    step_size : float, schedule or function of the step
    friction : float, above 0
    noise_estimate : float, from 0 to friction·temperature
    temperature : float, above 0
    integrator, scale : as for Sampler

    Returns
    -------
    Sampler

    References
    ----------
    Chen, Fox and Guestrin, ICML 2014, equation 13.

    Examples
    --------
    >>> sg.SGHMC(0.1, friction=2.0, noise_estimate=0.5) == sg.Sampler(0.1, sigma_p=2.0, noise_estimate=0.5)
    True
    """
    checks.number("friction", friction, 0.0, 1e300, open_low=True)
    return Sampler(
        step_size,
        kinetics=Gaussian(),
        integrator=integrator,
        sigma_p=friction,
        noise_estimate=noise_estimate,
        temperature=temperature,
        scale=scale,
    )


def SGNHT(
    step_size: StepSize,
    diffusion: float = 1.0,
    gamma: float | None = None,
    temperature: float = 1.0,
    *,
    per: str = "coordinate",
    integrator: Any = None,
    scale: Any = 1.0,
) -> Sampler:
    """Stochastic gradient Nosé–Hoover thermostat: the friction finds out how much gradient noise there is.

    SDE: dθ = p dt, dp = −∇U dt − ξp dt + √(2AT) dW, dξ = γ(p² − T) dt, A the diffusion, γ = 1/T if not given.
    Invariant law: exp(−(U + p²/2 + (ξ − A)²/(2γ))/T). White gradient noise of any constant size is absorbed: ξ settles
    at A + hV/(2T). Order 2 (BADODAB). `per="chain"` shares one ξ, driven by the mean of p² − T, as in the reference.

    Parameters
    ----------
    step_size : float, schedule or function of the step
    diffusion : float, above 0
    gamma : float or None, 1/T by default; 0 is a constant friction
    temperature : float, above 0
    per : "coordinate" or "chain"
    integrator, scale : as for Sampler

    Returns
    -------
    Sampler

    References
    ----------
    Ding et al., NeurIPS 2014; one ξ per coordinate: Zhang et al., ICML 2017, with a = 1/2.

    Examples
    --------
    >>> sg.SGNHT(0.1, diffusion=2.0) == sg.Sampler(0.1, thermostat=sg.thermostats.NoseHoover(1.0), sigma_p=2.0)
    True
    """
    return Sampler(
        step_size,
        kinetics=Gaussian(),
        thermostat=_thermostat(gamma, per, None, temperature),
        integrator=integrator,
        sigma_p=checks.number("diffusion", diffusion, 0.0, 1e300, open_low=True),
        temperature=temperature,
        scale=scale,
    )


def SGMGT(
    step_size: StepSize,
    a: float = 1.0,
    softening: float | None = None,
    diffusion: float = 1.0,
    gamma: float | None = None,
    resample_momentum: int | None = 100,
    resample_thermostat: int | None = 100,
    temperature: float = 1.0,
    *,
    order: float | None = None,
    mass: float = 1.0,
    per: str = "coordinate",
    center: str | None = None,
    integrator: Any = None,
    scale: Any = 1.0,
) -> Sampler:
    """Stochastic gradient monomial gamma thermostat: a heavy-tailed momentum that crosses barriers more easily.

    SDE: dθ = K'(p) dt, dp = −∇U dt − ξK'(p) dt + √(2AT) dW, dξ = γ(K'(p)² − T K''(p)) dt, with the softened monomial
    K = |p|^{1/a}/m, A the diffusion, γ = 1/T if not given; p and ξ are drawn afresh every so many steps. Invariant law:
    exp(−(U + K + (ξ − μ)²/(2γ))/T). Order 2 (symmetric splitting). Gradient noise is absorbed as in SGNHT; μ adapts.

    Parameters
    ----------
    step_size : float, schedule or function of the step
    a, softening : as for kinetics.MonomialGamma
    diffusion : float, above 0
    gamma : float or None, 1/T by default; 0 is a constant friction
    resample_momentum, resample_thermostat : int or None, steps between fresh draws of p and of ξ
    temperature : float, above 0
    order, mass : as for kinetics.MonomialGamma
    per, center : as for thermostats.NoseHoover
    integrator, scale : as for Sampler

    Returns
    -------
    Sampler

    References
    ----------
    Zhang, Chen, Gan, Henao and Carin, ICML 2017.

    Examples
    --------
    >>> sg.SGMGT(0.1, a=2) == sg.SGMGTD(0.1, a=2, sigma_theta=0.0, sigma_xi=0.0)
    True
    """
    checks.number("diffusion", diffusion, 0.0, 1e300, open_low=True)
    thermostat = _thermostat(gamma, per, center, temperature)
    return Sampler(
        step_size,
        kinetics=MonomialGamma(a, softening, order, mass),
        thermostat=thermostat,
        integrator=integrator,
        sigma_p=diffusion,
        temperature=temperature,
        scale=scale,
        resample_momentum=resample_momentum,
        resample_thermostat=None if not has_variables(thermostat) else resample_thermostat,
    )


def SGMGTD(
    step_size: StepSize,
    a: float = 1.0,
    softening: float | None = None,
    sigma_theta: float = 0.1,
    sigma_p: float = 1.0,
    sigma_xi: float = 0.1,
    gamma: float | None = None,
    resample_momentum: int | None = 100,
    resample_thermostat: int | None = 100,
    temperature: float = 1.0,
    *,
    order: float | None = None,
    mass: float = 1.0,
    per: str = "coordinate",
    center: str | None = None,
    integrator: Any = None,
    scale: Any = 1.0,
) -> Sampler:
    """SGMGT with diffusion: noise, and the drift that balances it, on θ, p and ξ alike.

    SDE: dθ = −σ_θ∇U dt + K'(p) dt + √(2σ_θT) dW₁, dp = −∇U dt − ξK'(p) dt + √(2σ_pT) dW₂,
    dξ = γ(K'(p)² − T K''(p)) dt − (σ_ξ/γ)(ξ − μ) dt + √(2σ_ξT) dW₃. Invariant law: exp(−(U + K + (ξ − μ)²/(2γ))/T).
    Order 2 for θ with one gradient (symmetric splitting, gradient halfway through the θ-noise). Gradient noise in p is
    absorbed by ξ, whose centre μ adapts. Of variance V, it also adds hσ_θ²V/2 to the diffusion of θ, correlated with
    that of p; the adaptive centre compensates this to leading order (`thermostats.crosstalk`), a fixed one does not.

    Parameters
    ----------
    step_size : float, schedule or function of the step
    a, softening : as for kinetics.MonomialGamma
    sigma_theta, sigma_p, sigma_xi : float, diffusion of θ, p and ξ
    gamma : float or None, 1/T by default; 0 is a constant friction
    resample_momentum, resample_thermostat : int or None, steps between fresh draws of p and of ξ
    temperature : float, above 0
    order, mass : as for kinetics.MonomialGamma
    per, center : as for thermostats.NoseHoover
    integrator, scale : as for Sampler

    Returns
    -------
    Sampler

    References
    ----------
    Zhang, Chen, Gan, Henao and Carin, ICML 2017 (the D is for diffusion).

    Examples
    --------
    >>> sg.SGMGTD(0.1, a=2)
    Sampler(step_size=0.1, kinetics=MonomialGamma(a=2.0, softening=3.0, order=3.0, mass=1.0),
    thermostat=NoseHoover(gamma=1.0, ...), integrator=..., sigma_theta=0.1, sigma_xi=0.1, resample_momentum=100, ...)
    """
    thermostat = _thermostat(gamma, per, center, temperature)
    fixed = not has_variables(thermostat)
    return Sampler(
        step_size,
        kinetics=MonomialGamma(a, softening, order, mass),
        thermostat=thermostat,
        integrator=integrator,
        sigma_theta=sigma_theta,
        sigma_p=sigma_p,
        sigma_xi=0.0 if fixed else sigma_xi,
        temperature=temperature,
        scale=scale,
        resample_momentum=resample_momentum,
        resample_thermostat=None if fixed else resample_thermostat,
    )


def _thermostat(
    gamma: float | None, per: str, center: str | None, temperature: float
) -> FixedFriction | PerCoordinate | PerChain:
    """gamma = 0 switches the thermostat off: the friction then stays at σ_p.

    None is 1/T, which makes Var ξ = 1 at every temperature. With γ = 1 at T = 4 and h = 0.1 the thermostat is so fast that
    its discretisation costs 0.9 % of the variance of θ (docs/stationary-variance.md); with γ = 1/4 it costs 0.05 %.
    """
    if gamma is None:
        return NoseHoover(1.0 / checks.number("temperature", temperature, 0.0, 1e300, open_low=True), per, center)
    if checks.number("gamma", gamma, 0.0, 1e300) == 0.0:
        return FixedFriction()
    return NoseHoover(gamma, per, center)
