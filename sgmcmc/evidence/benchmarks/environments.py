"""Which library runs in which Python, whether it is there, and what to do if it is not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

__all__ = ["NEEDS", "OLD", "Environments"]

NEEDS = {  # contestant: the distributions without which it cannot run
    "sgmcmc": ("sgmcmc",),
    "numpy": ("numpy",),
    "blackjax": ("blackjax", "jax"),
    "blackjax+tuned": ("blackjax", "jax"),
    "blackjax+pinned": ("blackjax", "jax"),
    "posteriors": ("posteriors", "torch"),
    "numpyro": ("numpyro", "jax"),
    "jax": ("jax",),
    "torch": ("torch",),
    "sgmcmcjax": ("sgmcmcjax", "jax"),
}
OLD = ("sgmcmcjax",)  # imports modules that JAX dropped after 2024
OLD_REMEDY = (
    'needs a JAX of 2024 in an environment of its own: `pip install "SGMCMCJax==0.2.13" "jax==0.4.30" "jaxlib==0.4.30" '
    '"numpy<2" "scipy<1.14"`, and give its interpreter with `--old-python`'
)
_ASK = """
import importlib.metadata as m, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = m.version(name)
    except m.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


class Environments:
    """This interpreter, and perhaps an older one; asked once what they have."""

    def __init__(self, old_python: Path | None = None) -> None:
        if old_python is not None and not old_python.is_file():
            raise ValueError(f"--old-python {old_python} is no file; give the python of an environment with SGMCMCJax")
        self.old = None if old_python is None else str(old_python.absolute())
        self.versions = _versions(sys.executable)
        self.old_versions = {} if self.old is None else _versions(self.old)

    def python_of(self, who: str) -> str:
        return self.old if who in OLD and self.old is not None else sys.executable

    def missing(self, who: str) -> str:
        """One sentence if `who` cannot run, with the remedy; else nothing."""
        there = self.old_versions if who in OLD else self.versions
        absent = [name for name in NEEDS[who] if name not in there and name != "sgmcmc"]
        if who in OLD and self.old is None:
            return f"{who} {OLD_REMEDY}"
        if absent and who in OLD:
            return f"{absent[0]} is not installed for {self.old}; {who} {OLD_REMEDY}"
        if absent:
            return f'{absent[0]} is not installed; `pip install "sgmcmc[peers]"` brings it'
        return ""


def _versions(python: str) -> dict[str, str]:
    names = sorted(
        {name for needs in NEEDS.values() for name in needs} | {"numba", "llvmlite", "jaxlib", "arviz-stats"}
    )
    done = subprocess.run([python, "-c", _ASK, *names], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(f"{python} does not run: {done.stderr.strip()[-200:]}")
    return dict(json.loads(done.stdout))
