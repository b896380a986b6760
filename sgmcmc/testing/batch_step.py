"""Many copies of a chain, advanced by the real kernel on random numbers that are handed in.

The checks want steps that are functions: a state, a gradient and normals go in, a state comes out. These kernels call the same
`update` as `sgmcmc.sample`; arrays have one row per copy of the chain.
"""

from __future__ import annotations

import numpy as np

from sgmcmc.compiler.kernels import kernel
from sgmcmc.integrators.state import Noise, State
from sgmcmc.integrators.step import begin, fill_noise, update
from sgmcmc.kinetics import curvature, energy, velocity
from sgmcmc.rng import Stream

__all__ = ["draw_momenta", "draw_noise", "kinetic", "move"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@kernel
def move(dynamics, states, gradients, noise, stream, step, before, h):
    """One step of every copy, in place. Fresh momenta, where they fall due, come from the stream of the copy."""
    for k in range(states.theta.shape[0]):
        state = State(
            states.theta[k],
            states.p[k],
            states.xi[k],
            states.variance[k],
            states.loss[k],
            states.bend[k],
            states.span[k],
            states.pending[k],
        )
        own = Stream(stream.key0, stream.key1, np.uint32(stream.chain + k))
        update(dynamics, state, gradients[k], noise, k, own, step, before, h)


@kernel
def draw_noise(dynamics, noise, stream, step):
    """The normals that a run would use in this step, for every copy."""
    for k in range(noise.theta.shape[0]):
        own = Stream(stream.key0, stream.key1, np.uint32(stream.chain + k))
        fill_noise(dynamics, Noise(noise.p[k : k + 1], noise.theta[k : k + 1], noise.xi[k : k + 1]), 1, own, step, 0)


@kernel
def draw_momenta(dynamics, p, stream):
    """The momenta that a run would start with, for every copy."""
    for k in range(p.shape[0]):
        begin(dynamics, p[k], Stream(stream.key0, stream.key1, np.uint32(stream.chain + k)))


@kernel
def kinetic(kinetics, p, values):
    """K, K' and K'' at every p, as the rows of `values`."""
    for i in range(p.size):
        values[0, i] = energy(kinetics, p[i])
        values[1, i] = velocity(kinetics, p[i])
        values[2, i] = curvature(kinetics, p[i])
