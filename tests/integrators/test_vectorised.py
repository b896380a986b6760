"""The hot loops of the update are vectorised: vector instructions in the compiled code, and nothing of the other precision."""

from __future__ import annotations

import re

import numpy as np
import pytest
from llvmlite import binding

import sgmcmc as sg
from sgmcmc.compiler import numba_bridge
from sgmcmc.compiler.kernels import OPTIONS
from sgmcmc.integrators import Moment
from sgmcmc.integrators.flows import (
    apply_friction_with_scratch,
    begin_diffusion,
    drift,
    end_diffusion,
    kick,
)
from sgmcmc.integrators.fused_aoa import fused_aoa
from sgmcmc.integrators.fused_faf import fused_faf
from sgmcmc.thermostats import Center, learn

pytestmark = pytest.mark.skipif(
    "avx2" not in binding.get_host_cpu_features().flatten(), reason="asks for AVX2 instructions"
)
DIM = 512
LINEAR, ROOT, GAUSSIAN = sg.SGMGTD(0.01, a=1.0), sg.SGMGTD(0.01, a=2.0), sg.SGNHT(0.01)


class Nowhere:
    """Nothing is kept: of code that comes from the disk Numba cannot show the assembly."""

    def key_of(self, *_types):
        return ""

    def load(self, _key):
        return None

    def save(self, _key, _data):
        pass


def compiled(function):
    """As a kernel is."""
    return numba_bridge.kernel(function, OPTIONS, Nowhere(), lambda compile_for, _engine: compile_for)


def friction_only(dynamics, kinetics, state, normals, h):
    apply_friction_with_scratch(kinetics, dynamics.thermostat, dynamics.sigma_p, state.p, state.xi, h, normals)


def aoa_only(dynamics, kinetics, state, normals, h):
    d = dynamics
    return fused_aoa(d.thermostat, d.scale, d.crosstalk, kinetics, d, state, normals, h, h, h)


def drift_only(dynamics, kinetics, state, normals, h):
    return drift(kinetics, dynamics.scale, dynamics, state, h, True, h, h)


def noise_only(dynamics, kinetics, state, normals, h):
    end_diffusion(dynamics.scale, h, state.theta, state.pending, normals, h)
    kick(state.p, normals, normals, dynamics.scale, h, h)
    begin_diffusion(dynamics.scale, dynamics, state, normals, h)


def learn_only(dynamics, kinetics, state, normals, h):
    moment, center = Moment(7, h, h, 0), Center(h, h)
    learn(dynamics.noise, dynamics.thermostat, kinetics, h, h, center, state, h, h, moment)


def faf_only(dynamics, kinetics, state, normals, h):
    d, moment, center = dynamics, Moment(8, h, h, 0), Center(h, h)
    return fused_faf(d.thermostat, kinetics, d.scale, d, state, moment, False, h, center, normals, state.bend)


# function, sampler, least numbers of vector divisions and square roots
CASES = {
    "a = 1, F A F": (faf_only, LINEAR, 2, 2),
    "a = 1, learning": (learn_only, LINEAR, 3, 1),
    "a = 2, learning": (learn_only, ROOT, 5, 5),
    "a = 1, friction": (friction_only, LINEAR, 1, 1),
    "a = 2, friction": (friction_only, ROOT, 2, 2),
    "a = 1, drift": (drift_only, LINEAR, 1, 0),
    "a = 2, drift": (drift_only, ROOT, 1, 1),
    "a = 1, drift, units": (drift_only, sg.SGMGTD(0.01, a=1.0, scale=np.full(DIM, 0.5)), 1, 0),
    "SGNHT, A O A": (aoa_only, GAUSSIAN, 1, 1),
    "SGNHT, A O A, units": (aoa_only, sg.SGNHT(0.01, scale=np.full(DIM, 0.5)), 1, 1),
    "noise": (noise_only, LINEAR, 0, 1),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_the_loops_of_the_update_are_vectorised(name, dtype):
    function, sampler, divisions, roots = CASES[name]
    text = assembly(function, sampler, dtype)
    packed, other = ("ps", "pd") if dtype is np.float32 else ("pd", "ps")
    assert len(re.findall(rf"\tvdiv{packed}\s.*%[yz]mm", text)) >= divisions
    assert len(re.findall(rf"\tvsqrt{packed}\s.*%[yz]mm", text)) >= roots
    assert len(re.findall(rf"\tvfn?m(?:add|sub)\d+{packed}\s.*%[yz]mm", text)) >= 4
    assert not re.search(rf"\tv(?:mul|add|div|sqrt){other}\s", text)


def assembly(function, sampler, dtype):
    dynamics = sampler.dynamics(DIM, dtype, inferred=True)
    arguments = (
        dynamics,
        dynamics.kinetics,
        sampler.start(np.zeros(DIM, dtype), inferred=True),
        np.zeros(DIM, dtype),
        dtype(0.01),
    )
    fresh = compiled(function)
    fresh(*arguments)
    return fresh.inspect_asm(fresh.signatures[0])


def one_after_another(dynamics, kinetics, state, normals, h):
    for i in range(1, state.p.size):
        state.p[i] = np.sqrt(state.p[i - 1] / (h + normals[i]))


def test_a_loop_that_cannot_be_vectorised_is_seen():
    text = assembly(one_after_another, LINEAR, np.float32)
    assert not re.search(r"\tvdivps\s.*%[yz]mm", text)
