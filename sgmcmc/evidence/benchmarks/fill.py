"""Normals alone, in a kernel: what a noise costs before anything is done with it."""

from __future__ import annotations

from sgmcmc.compiler.kernels import kernel
from sgmcmc.rng import USER, fill_normals

__all__ = ["fill"]

# mypy: disable-error-code="no-untyped-def"


@kernel
def fill(out, stream, step, times):
    """Fill `out`, of shape (1, n), so many times, each time with the normals of another step."""
    for i in range(times):
        fill_normals(out, stream, step + i, USER, 0)
