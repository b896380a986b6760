"""LDA and the discriminative RBM for docs/better.py: targets without a known truth, whose error is that of predictions.

Every contestant has the same number of settings, each run for the same number of steps and scored on held-out training data; the
best is run from five seeds. SGMGT-D, ours and the paper's, spends half of its settings on a = 1 and half on a = 2.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from targets import paper

import sgmcmc as sg
from sgmcmc import diagnostics
from sgmcmc.evidence.experiments import drbm, lda
from sgmcmc.evidence.experiments.harness import Contestant, run_tasks, settings

SETTINGS, SEEDS, EVERY, PICKED = 16, (21, 22, 23, 24, 25), 10, 8
LDA_STEP = 0.07  # as in the experiments, where the scale of θ is tuned in its place
STEPS = {"lda": (1000, 5000), "drbm": (600, 1500)}  # of a run for tuning, of a final one
RANGES: dict[str, dict[str, tuple[float, float]]] = {
    "lda": {"scale": (0.03, 3.0), "friction": (0.3, 30.0), "sigma_theta": (0.01, 0.5)},
    "drbm": {"step_size": (2e-4, 1e-2), "friction": (1.0, 100.0), "sigma_theta": (1e-4, 1e-1)},
}


def make(
    kind: str, a: float, friction: float, step_size: float = LDA_STEP, scale: float = 1.0, sigma_theta: float = 0.0
) -> Any:
    """A sampler; the resampling periods and σ_ξ are the defaults."""
    if kind == "SGHMC, BAOAB":
        return sg.SGHMC(step_size, friction, scale=scale)
    if kind == "SGNHT, BADODAB":
        return sg.SGNHT(step_size, friction, scale=scale)
    maker = sg.SGMGTD if kind == "SGMGT-D" else paper
    return maker(step_size, a=a, sigma_theta=sigma_theta, sigma_p=friction, scale=scale)


def entrants(target: str) -> dict[str, list[Contestant]]:
    """By name, the one or two forms of a contestant."""
    found = {}
    for kind, forms in (
        ("SGMGT-D", (1.0, 2.0)),
        ("SGMGT-D, the paper's", (1.0, 2.0)),
        ("SGHMC, BAOAB", (0.0,)),
        ("SGNHT, BADODAB", (0.0,)),
    ):
        ranges = {k: v for k, v in RANGES[target].items() if k != "sigma_theta" or kind.startswith("SGMGT-D")}
        found[kind] = [Contestant(f"{kind}, {a:g}", partial(make, kind, a), ranges) for a in forms]
    return found


class Watched:
    """A sampler that notes a few coordinates on its way."""

    def __init__(self, sampler: Any) -> None:
        self.sampler, self.path, self.steps = sampler, [], 0

    def init(self, theta: Any, seed: int = 0) -> Any:
        self.picked = np.random.default_rng(5).choice(theta.size, PICKED, replace=False)
        return self.sampler.init(theta, seed=seed)

    def step(self, state: Any, gradient: Any, inplace: bool = True) -> Any:
        state = self.sampler.step(state, gradient, inplace=inplace)
        self.steps += 1
        if self.steps % EVERY == 0:
            self.path.append(state.theta[self.picked].copy())
        return state


def run(target: str, contestant: Contestant, setting: dict[str, float], validate: bool, seed: int) -> dict[str, Any]:
    """One run: the error of its predictions, and the path of a few coordinates after the first fifth."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of stiff settings, which lose by their score
        sampler = Watched(contestant.make(**setting))
    steps = STEPS[target][0 if validate else 1]
    if target == "lda":
        error = lda.chain(sampler, None, "icml", validate, steps, steps // 5, seed)["perplexity"]
    else:
        error = 1.0 - drbm.chain(sampler, None, validate, steps, seed, 6 if validate else 30)["accuracy"]
    path = np.array(sampler.path, np.float64)
    return {"error": float(error), "path": path[len(path) // 5 :]}


def score(target: str, contestant: Contestant, setting: dict[str, float]) -> float:
    error = run(target, contestant, setting, True, 1000)["error"]
    return error if np.isfinite(error) else np.inf


def measured(target: str) -> list[dict[str, Any]]:
    """Rows of docs/better.csv."""
    groups = entrants(target)
    tasks = [
        (name, target, c, s)
        for name, forms in groups.items()
        for c in forms
        for s in settings(c, SETTINGS // len(forms), 0)
    ]
    scores = list(run_tasks(score, [t[1:] for t in tasks], f"{target}, tuning"))
    rows = []
    for name in groups:
        own = [(value, t) for value, t in zip(scores, tasks, strict=True) if t[0] == name]
        _, (_, _, contestant, setting) = min(own, key=lambda pair: pair[0])
        runs = list(run_tasks(run, [(target, contestant, setting, False, seed) for seed in SEEDS], f"{target}, {name}"))
        length = min(len(r["path"]) for r in runs)
        paths = np.stack([r["path"][:length] for r in runs])
        whole = np.isfinite(paths).all() and length > 10
        sizes = [diagnostics.ess(paths[:, :, k]) for k in range(PICKED)] if whole else [0.0]
        ess = 1000.0 * float(np.median(sizes)) / (len(SEEDS) * 0.8 * STEPS[target][1])
        said = f"{contestant.name}: " + ", ".join(f"{k}={v:.3g}" for k, v in setting.items())
        rows += [
            {"sampler": name, "setting": said, "seed": seed, "error": r["error"], "ESS": ess}
            for seed, r in zip(SEEDS, runs, strict=True)
        ]
    return rows
