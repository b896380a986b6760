"""Checks that see wrong samplers: the validation suite, for your own sampler, kinetics, integrator or library.

    report = sg.testing.check(sg.SGMGTD(1e-3, a=2))
    report.verdict                      # "right", "wrong" or "not resolved"; report.passed only if right
    report.power                        # per check, the smallest error that it would have seen
    report.table                        # check, subject, figure, bound, passed, detail, power, verdict

`check` runs what suits the thing it is given. The single checks: `check_stationarity` (Fokker–Planck), `check_invariance` and
`measure_order` (one step from the exact law), `check_lyapunov` (linear problems, exactly), `check_momentum_law`,
`check_resampling`, `check_calibration` (whole models), `check_streams` (random numbers), `check_black_box` (any library's
step), `ksd_test` and `occupancy` (draws you have).
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "BlackBox": "adapter",
    "Finding": "report",
    "Kernel": "under_test",
    "Law": "laws",
    "Reference": "reference",
    "Report": "report",
    "Target": "targets",
    "as_black_box": "adapter",
    "check": "verdict",
    "check_as_it_is": "as_it_is",
    "check_black_box": "black_box",
    "check_calibration": "calibration",
    "check_invariance": "invariance",
    "check_lyapunov": "lyapunov",
    "check_momentum_law": "marginals",
    "check_resampling": "resampling",
    "check_stationarity": "fokker_planck",
    "check_streams": "streams",
    "ksd": "stein",
    "ksd_test": "stein",
    "measure_order": "invariance",
    "measure_rates": "rates",
    "momentum_law": "laws",
    "occupancy": "stein",
    "run_suite": "sgmcmc.evidence.validation.suite",
    "stationary_covariance": "lyapunov",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES[name]
    return getattr(importlib.import_module(home if "." in home else f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
