"""One measurement of this package in a process of its own.

``python -m sgmcmc.evidence.benchmarks.worker CONFIG.json FOLDER RESULT.json``
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sgmcmc.evidence.benchmarks.alone.clock import peak_megabytes, stay_on

__all__ = ["main"]


def main(arguments: list[str]) -> None:
    config, folder, out = json.loads(Path(arguments[0]).read_text()), Path(arguments[1]), Path(arguments[2])
    stay_on(config.get("threads"))  # before Numba counts the cores
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stiff settings of a grid lose by their score
        record = _measure(config)(config, folder)
    out.write_text(json.dumps(record | {"peak_mb": peak_megabytes()}))


def _measure(config: dict[str, Any]) -> Callable[[dict[str, Any], Path], dict[str, Any]]:
    from sgmcmc.evidence.benchmarks import chores, ours

    measures = {
        "wells": ours.wells,
        "logistic": ours.logistic,
        "gaussian": ours.gaussian,
        "memory": ours.memory,
        "efficiency": ours.efficiency,
        "update": chores.update,
        "normals": chores.normals,
        "many normals": chores.many_normals,
        "triad": chores.triad,
    }
    return measures[config.get("problem", config["case"])]


if __name__ == "__main__":
    main(sys.argv[1:])
