"""Which way to machine code: through `numba_bridge`, which knows Numba's insides, or the slower `plain`, on its public API alone.

Plain is chosen by SGMCMC_PLAIN_NUMBA=1, and by itself where the bridge does not fit the Numba that is installed.
"""

from __future__ import annotations

import importlib
import os
import warnings
from typing import Any

import numba

from sgmcmc.checks import RunWarning

__all__ = [
    "TESTED",
    "cuda_driver",
    "declare",
    "dumps",
    "keep_device_kernel",
    "kernel",
    "plain_because",
    "registers_of",
]

TESTED = (0, 61), (0, 68)  # the oldest and the newest minor version of Numba, as docs/versions.md has them


def plain_because() -> str | None:
    """Why the plain way is taken; None if it is not."""
    if os.environ.get("SGMCMC_PLAIN_NUMBA", "0") not in ("", "0"):
        return "SGMCMC_PLAIN_NUMBA is set"
    minor = tuple(int(part) for part in numba.__version__.split(".")[:2])
    if not TESTED[0] <= minor <= TESTED[1]:
        oldest, newest = (".".join(map(str, version)) for version in TESTED)
        return f"Numba {numba.__version__} is not between {oldest} and {newest}, the versions that this sgmcmc was tested with"
    try:
        from sgmcmc.compiler import numba_bridge
    except (ImportError, AttributeError) as error:
        return f"Numba {numba.__version__} is not what its bridge expects ({error})"
    missing = numba_bridge.missing()
    return f"Numba {numba.__version__} has no {', '.join(missing)}" if missing else None


def _chosen() -> Any:
    reason = plain_because()
    if reason is None:
        return importlib.import_module("sgmcmc.compiler.numba_bridge")
    if not reason.startswith("SGMCMC_PLAIN_NUMBA"):
        warnings.warn(
            f"{reason}: sgmcmc uses Numba's public API alone. Draws are of the same law, and the same up to rounding; the first "
            "call of each sampler takes about five times as long to compile. A newer sgmcmc, or the Numba of docs/versions.md, "
            "mends this; SGMCMC_PLAIN_NUMBA=1 chooses it without this warning",
            RunWarning,
            stacklevel=2,
        )
    return importlib.import_module("sgmcmc.compiler.plain")


_backend = _chosen()
declare, kernel, dumps = _backend.declare, _backend.kernel, _backend.dumps
keep_device_kernel, cuda_driver, registers_of = _backend.keep_device_kernel, _backend.cuda_driver, _backend.registers_of
keep_parts = _backend.keep_parts
