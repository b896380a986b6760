"""A soak: one run is killed at random moments, again and again, and must still have the draws of a run that was left alone.

    python validation/soak.py 600

Every round takes the next case, starts a process that samples with a checkpoint as often as it can, kills it (kill -9) after
a random time, a few times over, lets it finish, and compares every bit. Prints one line per round and the count of kills; ends
with 1 at the first difference.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CASES = ("lanes", "group", "python", "moments", "processes")

CHILD = """
import sys
from concurrent.futures import ProcessPoolExecutor
import numpy as np
import sgmcmc as sg

def plain(theta):
    return theta

def main(case, folder, alone):
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(60, 3)), rng.random(60) < 0.5
    logistic = sg.models.LogisticRegression(X, y)
    model = {"lanes": sg.models.Gaussian(np.zeros(3), 1.0), "python": sg.Potential(plain, dim=3)}.get(case, logistic)
    options = {"draws": 2000, "warmup": 10, "thin": {"lanes": 1500, "python": 4}.get(case, 300), "chains": 3, "seed": 5}
    options |= {"progress": False, "minibatch": "shuffle", "batch_size": 16 if model is logistic else None}
    options |= {"keep": "moments"} if case == "moments" else {}
    if not alone:
        options |= {"checkpoint": folder + "/run.npz", "checkpoint_every": 0.0, "resume": True}
    if case == "processes" and not alone:
        with ProcessPoolExecutor(2) as pool:
            trace = sg.sample(model, sg.SGNHT(0.02), executor=pool, **options)
    else:
        trace = sg.sample(model, sg.SGNHT(0.02), **options)
    result = np.stack([trace.moments.mean, trace.moments.variance]) if case == "moments" else trace.draws
    np.save(folder + ("/alone.npy" if alone else "/done.npy"), result)

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3] == "alone")
"""


def start(script: Path, case: str, folder: Path, how: str = "killed") -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(script), case, str(folder), how])


def soak_round(script: Path, case: str, chooser: random.Random) -> int:
    """Kill a run a few times; how often. An AssertionError if its end is not that of a run left alone."""
    kills = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for _ in range(chooser.randrange(2, 8)):
            child = start(script, case, folder)
            try:
                child.wait(chooser.uniform(0.3, 1.6))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
                kills += 1
        for how in ("killed", "alone"):
            assert start(script, case, folder, how).wait() == 0, f"a run of {case} failed after {kills} kills"
        same = np.array_equal(np.load(folder / "done.npy"), np.load(folder / "alone.npy"))
        assert same, f"the draws of {case} differ after {kills} kills"
    return kills


def soak(seconds: float, seed: int) -> int:
    """Rounds for so many seconds; how many kills there were."""
    chooser, begin, kills, rounds = random.Random(seed), time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory() as name:
        script = Path(name) / "child.py"
        script.write_text(CHILD, encoding="utf-8")
        while time.monotonic() - begin < seconds:
            case = CASES[rounds % len(CASES)]
            killed = soak_round(script, case, chooser)
            kills, rounds = kills + killed, rounds + 1
            print(f"round {rounds}: {case}, {killed} kills, the same bits", flush=True)
    print(
        f"{kills} kills in {rounds} rounds, {time.monotonic() - begin:.0f} s: every run had the bits of one left alone"
    )
    return kills


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", type=float, nargs="?", default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    try:
        soak(arguments.seconds, arguments.seed)
    except AssertionError as error:
        sys.exit(str(error))
