"""The machine and the versions that figures belong to."""

from __future__ import annotations

import os
import platform
from datetime import date
from pathlib import Path
from typing import Any

from sgmcmc.evidence.benchmarks.environments import Environments
from sgmcmc.threads import usable_cores

__all__ = ["cpu_name", "facts"]


def facts(environments: Environments) -> dict[str, Any]:
    """What the file of results says about where and when."""
    import sgmcmc

    return {
        "date": date.today().isoformat(),
        "cpu": cpu_name(),
        "cores": usable_cores(),
        "platform": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {"sgmcmc": sgmcmc.__version__} | environments.versions,
        "old_versions": environments.old_versions,
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
