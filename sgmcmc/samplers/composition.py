"""Whether the parts of a sampler go together: each combination that makes no sense is refused with one sentence."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from sgmcmc.integrators import advance
from sgmcmc.integrators.joint import joint_flow
from sgmcmc.kinetics import MonomialGamma, Overdamped, curvature, energy, velocity
from sgmcmc.schedules import longest_of
from sgmcmc.thermostats import drive, friction, has_variables, n_variables, relax, resample

if TYPE_CHECKING:
    from sgmcmc.samplers.sampler import Sampler

__all__ = ["check_composition", "check_parts", "warn_if_stiff"]


def check_parts(sampler: Sampler) -> None:
    """A part of your own lacks nothing that a kernel would ask of it."""
    if not isinstance(sampler.kinetics, Overdamped):
        for function in (energy, velocity, curvature):
            function.require(sampler.kinetics)
    for function in (friction, drive, relax, resample, n_variables):
        function.require(sampler.thermostat)
    advance.require(sampler.integrator, sampler.kinetics)
    if "U" in getattr(sampler.integrator, "word", "") and not joint_flow.has(sampler.kinetics, sampler.thermostat):
        raise ValueError(
            f"integrator={sampler.integrator!r} has U, which is solved for kinetics=Gaussian() with thermostat=None; "
            "give these, or a word with A and O"
        )
    if sampler._n_normals > 1 and sampler.sigma_theta > 0.0 and not isinstance(sampler.kinetics, Overdamped):
        raise ValueError(
            f"integrator={sampler.integrator!r} takes two normals for each momentum, and sigma_theta={sampler.sigma_theta:g} "
            "would need a third; give sigma_theta=0, or a word with one of N, O such as 'BAOAB'"
        )


def check_composition(sampler: Sampler) -> None:
    if sampler.noise_estimate > sampler.sigma_p * sampler.temperature:
        raise ValueError(
            f"noise_estimate={sampler.noise_estimate:g} is more than sigma_p·temperature = "
            f"{sampler.sigma_p * sampler.temperature:g}, all the noise there is to inject; raise the friction or lower it"
        )
    if not has_variables(sampler.thermostat):
        for name in ("sigma_xi", "resample_thermostat"):
            if getattr(sampler, name):
                raise ValueError(f"{name}={getattr(sampler, name)} needs a thermostat; give thermostat=NoseHoover(...)")
    if isinstance(sampler.kinetics, Overdamped):
        if sampler.sigma_theta == 0.0:
            raise ValueError("sigma_theta=0.0 without kinetics leaves nothing that moves; give sigma_theta above 0")
        if has_variables(sampler.thermostat) or sampler.resample_momentum:
            raise ValueError(
                "kinetics=None has no momentum for a thermostat or resample_momentum to act on; leave them out"
            )
    elif sampler.sigma_theta + sampler.sigma_p == 0.0 and not sampler.resample_momentum:
        raise ValueError("sigma_theta=0, sigma_p=0 and no resample_momentum leave no noise; give one of them above 0")


def warn_if_stiff(sampler: Sampler) -> None:
    """A kinetics is a spring of stiffness K'', at most that near p = 0, and the step must resolve how friction stops it.

    (Whether it resolves how the posterior's forces move it, h²U''K'', is seen when there are draws: `bias.foreseen`.)
    """
    longest = longest_of(sampler.schedule)
    if not isinstance(sampler.kinetics, MonomialGamma) or longest is None:
        return
    stiffness = sampler.stiffest * longest * sampler.sigma_p
    if not stiffness <= 0.3 * (1.0 + 1e-9):
        units = (
            ""
            if not isinstance(sampler.scale, float) or sampler.scale != 1.0
            else '; or scale="auto" with step_size=0.1'
        )
        warnings.warn(
            f"step_size·sigma_p·max K'' = {stiffness:.2g}: above 0.3 the variance may be off by some per cent; take a "
            f"smaller step, a smaller softening, a larger mass or less friction{units}",
            UserWarning,
            stacklevel=4,
        )
