"""Kernels from the disk cache: loaded without their intermediate code, which is there when somebody links it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numba.core import config

SCRIPT = """
import sys
import numba
import numpy as np
from sgmcmc import loading
from sgmcmc.potentials.contract import full_energy
from sgmcmc.models import Gaussian

loaded, parsed, rebuild, link = [], [], loading.LeanCache.rebuild, loading._Loaded._get_module_for_linking
loading.LeanCache.rebuild = lambda *a: (loaded.append(1), rebuild(*a))[1]
loading._Loaded._get_module_for_linking = lambda self: (parsed.append(1), link(self))[1]
model, theta, rows = Gaussian(np.zeros(3), 2.0), np.arange(3.0), np.arange(0)

@numba.njit
def twice(model, theta, rows):
    return 2.0 * full_energy(model, theta, rows, 1.0)

print(full_energy(model, theta, rows, 1.0), len(loaded), len(parsed))
if sys.argv[1] == "link":
    print(twice(model, theta, rows), len(loaded), len(parsed) > 0)
"""


def words_of(tmp_path, *arguments):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PATH": ""}
    done = subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True, env=environment, check=True
    )
    return [line.split() for line in done.stdout.splitlines()]


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
def test_a_loaded_kernel_runs_unparsed_and_can_still_be_linked(tmp_path):
    energy = 5.0 / 4.0 + 1.5 * np.log(4.0 * np.pi)
    ((first, compiled, parsed),) = words_of(tmp_path, "run")
    assert (float(first), compiled, parsed) == (pytest.approx(energy), "0", "0")
    (second, linked) = words_of(tmp_path, "link")
    assert second == [first, "1", "0"]  # from the cache, and nobody has asked for what is behind it
    assert float(linked[0]) == 2.0 * float(first)
    assert linked[1:] == ["1", "True"]
