"""The steps of an LSTM layer through time, forward and back: a small product of BLAS's, then all gates of a unit at once.

    i, f, o = σ(z_i), σ(z_f), σ(z_o),  g = tanh z_g,   z = x W + h⁻ R + b
    c = f c⁻ + i g,   h = o tanh c

A row of z is [z_i, z_f, z_g, z_o]. The products with the recurrent weights R are taken for four sequences at a time: those are
small enough for OpenBLAS to use the weights where they lie, in the cache. One with eight sequences takes four times as long.
"""

from __future__ import annotations

import numpy as np

from sgmcmc.compiler.kernels import kernel
from sgmcmc.compiler.open_functions import loop
from sgmcmc.elementary import sigmoid, tanh

__all__ = ["FOUR", "backward_steps", "forward_steps"]

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

FOUR = 4  # sequences


@loop(apart=True)
def open_gates(z, rest, before, cell, squashed, out):
    """From z + rest and the cell before: the gates (in the place of z), the cell, tanh of it, and h = `out`."""
    n = out.size
    z_i, z_f, z_g, z_o = z[:n], z[n : 2 * n], z[2 * n : 3 * n], z[3 * n :]
    r_i, r_f, r_g, r_o = rest[:n], rest[n : 2 * n], rest[2 * n : 3 * n], rest[3 * n :]
    for j in range(n):
        i, f = sigmoid(z_i[j] + r_i[j]), sigmoid(z_f[j] + r_f[j])
        g, o = tanh(z_g[j] + r_g[j]), sigmoid(z_o[j] + r_o[j])
        c = f * before[j] + i * g
        s = tanh(c)
        z_i[j], z_f[j], z_g[j], z_o[j] = i, f, g, o
        cell[j], squashed[j], out[j] = c, s, o * s


@loop(apart=True)
def close_gates(z, slope, cell_slope, before, squashed):
    """∂/∂z in the place of the gates, from ∂/∂h = slope and ∂/∂c; `cell_slope` becomes that of the cell before."""
    n = slope.size
    z_i, z_f, z_g, z_o = z[:n], z[n : 2 * n], z[2 * n : 3 * n], z[3 * n :]
    for j in range(n):
        i, f, g, o, s = z_i[j], z_f[j], z_g[j], z_o[j], squashed[j]
        d = cell_slope[j] + slope[j] * o * (1.0 - s * s)
        z_i[j] = d * g * i * (1.0 - i)
        z_f[j] = d * before[j] * f * (1.0 - f)
        z_g[j] = d * i * (1.0 - g * g)
        z_o[j] = slope[j] * s * o * (1.0 - o)
        cell_slope[j] = d * f


@loop(apart=True)
def add_to(total, part):
    """total += part, a row."""
    for j in range(total.size):
        total[j] += part[j]


@kernel
def forward_steps(gates, R, h, c, squashed, room, low, high):
    """All steps of the sequences low … high − 1. `gates` (time, sequence, 4 units) comes with x W + b and leaves with the gates.

    h and c are one step longer: [0] is the state before the first.
    """
    for t in range(gates.shape[0]):
        for b in range(low, high, FOUR):
            top = min(b + FOUR, high)
            np.dot(h[t, b:top], R, room[b:top])
            for k in range(b, top):
                open_gates(gates[t, k], room[k], c[t, k], c[t + 1, k], squashed[t, k], h[t + 1, k])


@kernel
def backward_steps(gates, R, slopes, c, squashed, cell_slopes, room, low, high):
    """Back through time: ∂/∂z in the place of the gates, given ∂/∂h of what is above in `slopes`; the future is added to it."""
    last = gates.shape[0] - 1
    for t in range(last, -1, -1):
        for b in range(low, high, FOUR):
            top = min(b + FOUR, high)
            if t < last:
                np.dot(gates[t + 1, b:top], R.T, room[b:top])
                for k in range(b, top):
                    add_to(slopes[t, k], room[k])
            for k in range(b, top):
                close_gates(gates[t, k], slopes[t, k], cell_slopes[k], c[t, k], squashed[t, k])
