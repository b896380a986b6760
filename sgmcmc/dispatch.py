"""Parts of your own: `open_function`, `implements`, `leaf` and `loop` (see `sgmcmc.compiler.open_functions`)."""

from __future__ import annotations

from sgmcmc.compiler.open_functions import (
    OpenFunction,
    implements,
    implements_by_type,
    leaf,
    loop,
    open_function,
    open_functions,
    simulate_device,
)
from sgmcmc.compiler.precision import like

__all__ = [
    "OpenFunction",
    "implements",
    "implements_by_type",
    "leaf",
    "like",
    "loop",
    "open_function",
    "open_functions",
    "simulate_device",
]
