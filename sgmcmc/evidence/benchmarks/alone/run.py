"""One measurement of a peer, as a plain script: ``python run.py CONFIG.json FOLDER RESULT.json``.

The folder it stands in is loaded as a package of its own, `alone`, so that no `sgmcmc` is needed or touched.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MEASURES = {  # (case, library): the file that measures it
    ("wells", "blackjax"): "jax_wells",
    ("wells", "blackjax+tuned"): "jax_wells",
    ("wells", "blackjax+pinned"): "jax_wells",
    ("wells", "sgmcmcjax"): "jax_wells",
    ("wells", "posteriors"): "torch_wells",
    ("wells", "numpy"): "numpy_wells",
    ("logistic", "blackjax"): "jax_logistic",
    ("logistic", "blackjax+pinned"): "jax_logistic",
    ("logistic", "sgmcmcjax"): "jax_logistic",
    ("logistic", "posteriors"): "torch_logistic",
    ("logistic", "numpy"): "numpy_logistic",
    ("gaussian", "blackjax"): "jax_gaussian",
    ("update", "blackjax"): "jax_update",
    ("update", "sgmcmcjax"): "jax_update",
    ("update", "jax"): "jax_update",
    ("update", "posteriors"): "torch_update",
    ("update", "numpy"): "numpy_update",
    ("normals", "numpy"): "peer_normals",
    ("normals", "jax"): "peer_normals",
    ("normals", "torch"): "peer_normals",
    ("start", ""): "starting",
    ("efficiency", "blackjax"): "jax_efficiency",
    ("efficiency", "sgmcmcjax"): "jax_efficiency",
    ("efficiency", "posteriors"): "torch_logistic",
    ("nuts", "blackjax"): "nuts",
    ("nuts", "numpyro"): "nuts",
}


def file_of(config: dict[str, Any]) -> str | None:
    """The file here that measures an entry of the table; None for what is measured by the package itself."""
    problem = config.get("problem", config["case"])
    return MEASURES.get((problem, "" if problem == "start" else config["who"]))


def load() -> None:
    """This folder as the package `alone`, wherever it lies."""
    spec = importlib.util.spec_from_file_location("alone", HERE / "__init__.py", submodule_search_locations=[str(HERE)])
    if spec is None or spec.loader is None:
        raise ImportError(f"{HERE} has no __init__.py; install the package again")
    module = importlib.util.module_from_spec(spec)
    sys.modules["alone"] = module
    spec.loader.exec_module(module)


def main() -> None:
    sys.path[:] = [p for p in sys.path if Path(p).resolve() != HERE.resolve()]  # its files are no top-level modules
    config, folder, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]), Path(sys.argv[3])
    load()
    clock = importlib.import_module("alone.clock")
    clock.stay_on(config.get("threads"))
    record = importlib.import_module(f"alone.{file_of(config)}").measure(config, folder)
    out.write_text(json.dumps(record | {"peak_mb": clock.peak_megabytes()}))


if __name__ == "__main__":
    main()
