"""Kernels of your own: `kernel` (see `sgmcmc.compiler.kernels`)."""

from __future__ import annotations

from sgmcmc.compiler.kernels import kernel

__all__ = ["kernel"]
