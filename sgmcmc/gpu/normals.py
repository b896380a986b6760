"""Normals of one step for one GPU thread, without scratch memory."""

from __future__ import annotations

from typing import Any

from sgmcmc.compiler.open_functions import loop
from sgmcmc.integrators.state import is_turn
from sgmcmc.rng import NOISE_P, NOISE_THETA, NOISE_XI
from sgmcmc.rng.normals import four_normals

__all__ = ["fill_column", "fill_step_noise"]


@loop
def fill_column(out: Any, stream: Any, step: Any, purpose: Any, first: Any) -> Any:
    """out[j] = the normal of coordinate first + j in this step, for a `first` that is a multiple of 4."""
    zero = out.dtype.type(0)
    for group in range((out.size + 3) // 4):
        z = four_normals(zero, stream, step, first // 4 + group, purpose)
        for j in range(min(4, out.size - 4 * group)):
            out[4 * group + j] = (z[0] if j == 0 else z[1]) if j < 2 else (z[2] if j == 2 else z[3])


@loop
def fill_step_noise(dynamics: Any, noise: Any, stream: Any, step: Any, first: Any) -> Any:
    """The normals of one step for the coordinates from `first` on: those of p, θ and ξ that the step uses."""
    if noise.p.size > 0:
        fill_column(noise.p, stream, step, NOISE_P, first)
    if dynamics.sigma_theta > 0.0 or dynamics.n_normals > 1:
        fill_column(noise.theta, stream, step, NOISE_THETA, first)
    if noise.xi.size > 0 and (dynamics.sigma_xi > 0.0 or is_turn(dynamics.resample_thermostat, step)):
        fill_column(noise.xi, stream, step, NOISE_XI, first)
