"""Golden draws: one digest per preset × model × minibatch × precision × engine, to see which draws a change of the code changes.

    python validation/golden_draws.py --write golden.json     with the code before
    python validation/golden_draws.py --compare golden.json   with the code after: names every case whose bits differ

Draws are the same bits on one kind of processor with one version of NumPy, Numba and LLVM; the file says on which.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import sgmcmc as sg
from sgmcmc.schedules import Cyclical, PolynomialDecay

RNG = np.random.default_rng(7)
X = RNG.normal(size=(120, 3))
Y = RNG.random(120) < 1 / (1 + np.exp(-X @ [1.0, -1.0, 0.5]))
WIDE = RNG.normal(size=(120, 20))

PRESETS: dict[str, Callable[[Any], sg.Sampler]] = {
    "SGLD": lambda h: sg.SGLD(0.02 if h is None else h),
    "SGHMC": lambda h: sg.SGHMC(0.1 if h is None else h),
    "SGNHT": lambda h: sg.SGNHT(0.1 if h is None else h),
    "SGNHT, per chain": lambda h: sg.SGNHT(0.1 if h is None else h, per="chain"),
    "SGMGT, a = 1": lambda h: sg.SGMGT(0.1 if h is None else h, 1.0),
    "SGMGT-D, a = 1": lambda h: sg.SGMGTD(0.1 if h is None else h, 1.0),
    "SGMGT-D, a = 1.5": lambda h: sg.SGMGTD(0.1 if h is None else h, 1.5),
    "SGMGT-D, a = 2": lambda h: sg.SGMGTD(0.1 if h is None else h, 2.0),
    "SGMGT-D, a = 1, fixed centre": lambda h: sg.SGMGTD(0.1 if h is None else h, 1.0, center="fixed"),
    "SGMGT-D, a = 1, Euler": lambda h: sg.SGMGTD(0.02 if h is None else h, 1.0, integrator=sg.integrators.Euler()),
}
SCHEDULES = {"constant": None, "decaying": PolynomialDecay(0.05), "cyclical": Cyclical(0.05, 40)}


def plain(theta: Any, data: Any, rows: Any) -> Any:
    """A regression in plain Python."""
    return data[0][rows].T @ (data[0][rows] @ theta - data[1][rows])


def models() -> dict[str, tuple[Any, dict[str, Any]]]:
    """A model by the engine that runs it, and the options of `sample`."""
    few, many = sg.models.Gaussian(np.zeros(4), 1.0), sg.models.Gaussian(np.zeros(20), 1.0)
    python = sg.Potential(plain, dim=3, data=(X, Y.astype(float)))
    logistic = sg.models.LogisticRegression(X, Y)
    return {
        "packed, exact": (few, {}),
        "packed, B = 1": (few, {"gradient_noise": 1.0}),
        "loop, exact": (many, {}),
        "packed, all rows": (logistic, {}),
        "packed, 10 rows": (logistic, {"batch_size": 10}),
        "packed, 10 rows, reshuffled": (logistic, {"batch_size": 10, "minibatch": "shuffle"}),
        "loop, 10 rows": (sg.models.LogisticRegression(WIDE, Y), {"batch_size": 10}),
        "Python, 10 rows": (python, {"batch_size": 10}),
    }


def cases() -> Iterator[tuple[str, Callable[[], np.ndarray]]]:
    """A name, and what makes its draws."""
    for preset, make in PRESETS.items():
        sampler = make(None)
        for engine, (model, options) in models().items():
            for dtype in ("float64", "float32"):
                run = {"dtype": dtype, **options}
                yield f"{preset}; {engine}; {dtype}", lambda m=model, s=sampler, o=run: sampled(m, s, **o)
        for name in ("decaying", "cyclical"):
            model = models()["packed, B = 1"][0]
            made = make(SCHEDULES[name])
            yield f"{preset}; packed, B = 1, {name}; float64", lambda m=model, s=made: sampled(m, s, gradient_noise=1.0)
        yield f"{preset}; ask and tell; float64", lambda s=sampler: told(s)


def sampled(model: Any, sampler: sg.Sampler, **options: Any) -> np.ndarray:
    quiet = {"progress": False, "warn": False, "on_divergence": "drop"}
    return sg.sample(model, sampler, 60, warmup=60, chains=3, seed=5, threads=1, **quiet, **options).draws


def told(sampler: sg.Sampler) -> np.ndarray:
    state, found, rng = sampler.init(np.full(5, 0.5), seed=5), [], np.random.default_rng(5)
    for _ in range(120):
        state = sampler.step(state, state.theta + rng.standard_normal(5))
        found.append(state.theta.copy())
    return np.array(found)


def digest(draws: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(draws).tobytes()).hexdigest()[:16]


def machine() -> dict[str, str]:
    """What the bits depend on beside the code."""
    import llvmlite.binding

    found = {name: version(name) for name in ("numpy", "numba", "llvmlite", "scipy")}
    return found | {
        "processor": llvmlite.binding.get_host_cpu_name(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def found(only: str = "") -> dict[str, str]:
    from tqdm.auto import tqdm

    warnings.simplefilter("ignore")
    chosen = [(name, make) for name, make in cases() if only in name]
    return {name: digest(make()) for name, make in tqdm(chosen, unit="case", file=sys.stderr)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="write the digests of this code here")
    parser.add_argument("--compare", type=Path, help="name the cases whose digest is not the one in this file")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    given = parser.parse_args()
    now = found(given.only)
    if given.write is not None:
        given.write.write_text(json.dumps({"machine": machine(), "draws": now}, indent=1, ensure_ascii=False) + "\n")
    if given.compare is None:
        return 0
    before = json.loads(given.compare.read_text())
    if before["machine"] != machine():
        print(f"other machine or versions: {before['machine']} then, {machine()} now; differing bits may mean nothing")
    changed = [name for name, value in now.items() if before["draws"].get(name) != value]
    print("\n".join(changed))
    print(f"{len(changed)} of {len(now)} cases differ")
    return int(bool(changed))


if __name__ == "__main__":
    raise SystemExit(main())
