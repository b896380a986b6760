"""The CUDA kernels in Numba's simulator are the CPU's loop: every kinetics, integrator, thermostat, model and minibatch.

States agree to 1e-12 in double precision, where they are equal but for the order of a few sums, and to 1e-6 in single. All
cases, single precision and the mutants take minutes: they run where SGMCMC_REQUIRE names `simulator`, as continuous integration
does. Elsewhere some of the cases do, in double precision, with a device that does not measure as negative control.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT, HERE = Path(__file__).parents[2], Path(__file__).parents[1] / "support"
TOLERANCE = {"float64": 1e-12, "float32": 1e-6}
WHOLE = "simulator" in os.environ.get("SGMCMC_REQUIRE", "").split(",")
long = pytest.mark.skipif(not WHOLE, reason="takes minutes: set SGMCMC_REQUIRE=simulator to run it")
PRECISIONS = ["float64", pytest.param("float32", marks=long)]
RUNS = [("some", 17)] if not WHOLE else [("float64", 93), ("float32", 93)]
RUNS += [("block some", 10)] if not WHOLE else [("block float64", 58), ("block float32", 57)]


def simulate(what: str, script: str = "cuda_simulation.py", folder: Path = HERE) -> dict:
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(folder / script), what],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("what", "count"), RUNS)
def test_every_case_is_the_loop_of_the_cpu(what, count):
    cases, tolerance = simulate(what), TOLERANCE["float32" if what.endswith("float32") else "float64"]
    assert len(cases) >= count
    wrong = {}
    for name, found in cases.items():
        assert found.pop("moves") > 0.0, name
        assert found.keys() >= {
            "draws",
            "theta",
            "p",
            "xi",
            "variance",
            "loss",
            "bend",
            "span",
            "pending",
            "step",
            "before",
        }
        off = {part: size for part, size in found.items() if not size <= tolerance}
        if off:
            wrong[name] = off
    assert wrong == {}


@pytest.mark.parametrize("what", ["measured", "block measured"])
def test_a_device_that_does_not_measure_the_gradient_noise_is_seen(what):
    found = simulate(what if WHOLE else what.replace("measured", "some measured"))
    assert len(found) >= (15 if WHOLE else 2)
    for name, (smallest, difference) in found.items():
        assert smallest > 0.0, name  # V was measured on the CPU
        assert difference > 1e-6, name  # a million times what the test above allows


@pytest.mark.parametrize("what", ["shapes", pytest.param("block shapes", marks=long)])
def test_rows_are_the_cpus_and_draws_do_not_depend_on_blocks_chunks_devices_or_interruptions(what):
    found = simulate(what)
    assert len(found) == 11
    assert {name for name, right in found.items() if not right} == set()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_update_of_device_arrays_is_that_of_the_host(precision):
    found = simulate(f"update {precision}")
    assert len(found) >= 40
    assert {name: size for name, size in found.items() if not size <= TOLERANCE[precision]} == {}


@pytest.mark.parametrize("precision", PRECISIONS)
def test_running_moments_are_those_of_the_states_that_a_loop_on_device_arrays_saw(precision):
    found = simulate(f"moments {precision}")
    assert len(found) == 6
    assert {name: size for name, size in found.items() if not size <= 1e-14} == {}  # double precision in both


MUTANTS = {  # the first is none: a copy that is right must pass. What is wrong: (file, text, other text, what to run)
    "nothing": ("run/gpu/loop.py", "range(chunk.steps)", "range(chunk.steps)", "shapes"),
    "one step too many": ("run/gpu/loop.py", "range(chunk.steps)", "range(chunk.steps + 1)", "shapes"),
    "missing guard": ("run/gpu/kernels.py", "    if i < which.size:", "    if i >= 0:", "shapes"),
    "chain and coordinate swapped": (
        "run/gpu/loop.py",
        "Stream(key0, key1, number)",
        "Stream(key0, number, key1)",
        "shapes",
    ),
    # (A thread behind the last coordinate has empty slices and does no harm; one too few does.)
    "coordinate guard": (
        "gpu/update_kernel.py",
        "    if low < sizes.theta:",
        "    if low + 4 < sizes.theta:",
        "update float64",
    ),
    "normals of the first four": ("gpu/update.py", "stream, step, low)", "stream, step, 0)", "update float64"),
    "moments of the first four": (
        "gpu/update_kernel.py",
        "state.theta, low, min(low + 4, sizes.theta)",
        "state.theta, 0, 4",
        "moments float64",
    ),
    "moments without an end": (
        "gpu/update_kernel.py",
        "low, min(low + 4, sizes.theta)",
        "low, low + 4",
        "moments float64",
    ),
    "column of a neighbour": ("run/gpu/loop.py", "state.p.T[chain]", "state.p.T[0]", "shapes"),
    "rows of a neighbour": ("run/gpu/loop.py", "    return chain\n", "    return 0 * chain\n", "shapes"),
    "nothing in a block": ("run/gpu/block.py", "LANES = 32", "LANES = 32", "block shapes"),
    "features twice": ("run/gpu/block.py", "s % width, part, LANES)", "s % width, part, lanes)", "block few"),
    "momenta of the first four": (
        "run/gpu/block.py",
        "BEFORE_THE_FIRST_STEP, low)",
        "BEFORE_THE_FIRST_STEP, 0)",
        "block few",
    ),
    "the last strip alone": ("run/gpu/block.py", "slope[j] + found if first > 0 else found", "found", "block few"),
    "nothing in a few": ("run/gpu/measure.py", "half if first", "half if first", "few"),
    "nothing in a few blocks": ("run/gpu/measure.py", "half if first", "half if first", "block few"),
    "rows of this step twice": ("run/gpu/measure.py", "step + 1 if first and half == 0", "step if first", "block few"),
    "halves of another size": (
        "run/gpu/measure.py",
        "half if first and not whole",
        "half + 1 if first and not whole",
        "few",
    ),
    "nothing kept": ("run/gpu/measure.py", "own.difference[j] = own.slope[j]", "own.difference[j] = 0.0", "block few"),
    "variances of the first four": (
        "run/gpu/measure.py",
        "variance[min(low, variables) : min(high, variables)]",
        "variance[0 : min(high - low, variables)]",
        "block few",
    ),
    "a sum without its last part": ("run/gpu/block.py", "range(1, LANES)", "range(1, 8)", "block few"),
}


@long
@pytest.mark.parametrize("name", list(MUTANTS))
def test_a_mutant_is_caught_by_the_simulator(name, tmp_path):
    file, text, other, what = MUTANTS[name]
    copy = tmp_path / "sgmcmc"
    source = ROOT / "sgmcmc"
    for path in source.rglob("*.py"):
        target = copy / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    victim = copy / file
    assert text in victim.read_text()
    victim.write_text(victim.read_text().replace(text, other))
    script = tmp_path / "cuda_simulation.py"  # beside the copy: the directory of a script comes first in sys.path
    script.write_bytes((HERE / "cuda_simulation.py").read_bytes())
    try:
        found = simulate(what, folder=tmp_path)
        right = all(value is True or (value is not False and value < 1e-12) for value in found.values())
    except AssertionError:
        right = False  # it did not even run
    assert right == (text == other)
