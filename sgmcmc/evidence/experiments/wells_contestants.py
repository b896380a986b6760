"""The samplers of the experiment on five wells, and the settings each is tuned over."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from sgmcmc.evidence.experiments.harness import Contestant

__all__ = ["NOISE", "contestants", "heirs", "thermal_mass"]


NOISE = 1.0  # B: gradients come with N(0, 2B)


def _sgld(step_size: float) -> Any:
    import sgmcmc as sg

    return sg.SGLD(step_size)


def _sghmc(step_size: float, friction: float) -> Any:
    import sgmcmc as sg

    return sg.SGHMC(step_size, friction, noise_estimate=min(NOISE * step_size, 0.9 * friction))


def _sgnht(step_size: float, diffusion: float, gamma: float) -> Any:
    import sgmcmc as sg

    return sg.SGNHT(step_size, diffusion, gamma)


def thermal_mass(kinetics: Any) -> float:
    """M with E K'(p)² = 1/M at T = 1: the mass of the Gaussian kinetics that moves as far in a step."""
    from sgmcmc.kinetics import energy, velocity

    root = np.linspace(0.0, 60.0, 4001)[1:]  # p = s², which resolves the softened tip and reaches the tails
    weight = np.exp(-energy(kinetics, root**2)) * root
    return float(weight.sum() / (weight * velocity(kinetics, root**2) ** 2).sum())


def _monomial(a: float, order: float | None, softening: float) -> float:
    from sgmcmc.kinetics import MonomialGamma

    return thermal_mass(MonomialGamma(a, softening, order))


def _sgmgt(
    a: float, order: float | None, step_size: float, diffusion: float, gamma: float, softening: float, period: float
) -> Any:
    import sgmcmc as sg

    fresh, mass = max(1, round(period)), _monomial(a, order, softening)
    root = mass**0.5
    return sg.SGMGT(step_size * root, a, softening, diffusion * root, gamma * mass, fresh, fresh, order=order)


def _sgmgtd(
    a: float,
    order: float | None,
    step_size: float,
    sigma_p: float,
    gamma: float,
    softening: float,
    period: float,
    sigma_theta: float,
) -> Any:
    import sgmcmc as sg

    fresh, mass = max(1, round(period)), _monomial(a, order, softening)
    root = mass**0.5
    return sg.SGMGTD(
        step_size * root,
        a,
        softening,
        sigma_theta / root,
        sigma_p * root,
        0.1 * root,
        gamma * mass,
        fresh,
        fresh,
        order=order,
    )


def contestants() -> list[Contestant]:
    """Every sampler with the ranges of its own parameters; the published a = 2 form beside the smooth one."""
    h, friction, gamma, c, period = (0.003, 0.3), (0.1, 10.0), (0.1, 10.0), (0.1, 10.0), (5.0, 5000.0)
    found = [
        Contestant("SGLD", _sgld, {"step_size": (3e-4, 0.1)}),
        Contestant("SGHMC", _sghmc, {"step_size": h, "friction": friction}),
        Contestant("SGNHT", _sgnht, {"step_size": h, "diffusion": friction, "gamma": gamma}),
    ]
    forms = (("a = 1", 1.0, None), ("a = 2", 2.0, None), ("a = 2, published form", 2.0, 2.0))
    shared = {"gamma": gamma, "softening": c, "period": period}
    for name, a, order in forms:
        ranges = {"step_size": h, "diffusion": friction, **shared}
        found.append(Contestant(f"SGMGT, {name}", partial(_sgmgt, a, order), ranges))
    for name, a, order in forms:
        ranges = {"step_size": h, "sigma_p": friction, **shared, "sigma_theta": (0.001, 1.0)}
        found.append(Contestant(f"SGMGT-D, {name}", partial(_sgmgtd, a, order), ranges))
    return found


def heirs(contestant: Contestant, best: dict[str, dict[str, float]]) -> list[dict[str, float]]:
    """Where a sampler is nearly one that it contains: SGMGT with strongly softened, hence nearly Gaussian, momenta is SGNHT,
    and SGMGT-D with little noise on θ is SGMGT."""
    name, _, form = contestant.name.partition(", ")
    if name == "SGMGT" and "SGNHT" in best:
        return [best["SGNHT"] | {"softening": 0.1, "period": 5000.0}]
    if name == "SGMGT-D" and f"SGMGT, {form}" in best:
        own = best[f"SGMGT, {form}"] | {"sigma_theta": 0.001}
        return [{"sigma_p" if key == "diffusion" else key: value for key, value in own.items()}]
    return []
