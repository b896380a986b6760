"""The contest of samplers on a recurrent network: tuning on the validation part, long runs with checkpoints, one row for each.

Every method has the same number of settings, each run for the same few epochs and scored by the validation loss of its predictive
average; the best one is run for the full number. SGD and RMSprop are tuned by their step size, the samplers by step size, and
friction or σ_θ where they have it; what else there is has the published value.
"""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import sgmcmc.datasets as datasets
from sgmcmc.compiler import fingerprints
from sgmcmc.evidence.experiments import kept, loop, recurrent
from sgmcmc.evidence.experiments.harness import Contestant, Setting, run_tasks, screen
from sgmcmc.evidence.experiments.recurrent import Plan, run_epochs
from sgmcmc.models import lstm, lstm_pass

__all__ = ["Budget", "contestants", "cost_of", "hold", "row_of"]

SOFTENING = {1: 5.0, 2: 3.0}  # published, as are σ_ξ = 0.01, γ = 1 and the mass 1
LONGER = {
    1: 1.0,
    2: 4.0,
}  # steps, for velocities whose root mean square is 0.85 (a = 1) and 0.26 (a = 2), and 1 for SGNHT
QUICK = ("SGD", "SGLD", "SGNHT", "SGMGT-D, a = 1")


class Budget(NamedTuple):
    """How much is spent: settings per method, plans of tuning and of final runs, epochs that the best SGMGT-D comes to."""

    settings: int
    tuning: Plan
    final: Plan
    further: int | None = None


def _make(kind: str, a: int, rows: int, step_size: float, friction: float = 10.0, sigma_theta: float = 0.0) -> Any:
    import sgmcmc as sg

    if kind == "SGLD":
        return sg.SGLD(step_size)
    if kind == "SGNHT":
        return sg.SGNHT(step_size, friction)
    if kind == "SGMGT":
        return sg.SGMGT(step_size, a, SOFTENING[a], friction)
    if kind == "SGMGT-D":
        return sg.SGMGTD(step_size, a, SOFTENING[a], sigma_theta, friction, 0.01)
    return loop.Optimiser(kind, step_size, rows)


def contestants(steps: int, reach: float = 1.0) -> list[Contestant]:
    """Everybody, with ranges for data of so many steps: U grows with them, and the time scale of its dynamics with their root.

    Ranges of step sizes are alike in how far a step goes: for a = 2, whose momenta are slow, they are longer in time. (With those
    of a = 1 the longest steps were the best for a = 2 on every data set.)

    reach : by how much longer the steps of samplers with momenta may be than that says.
    """
    time = np.sqrt(13_807 / steps)  # the ranges were found on JSB
    ranges = {"step_size": (5e-4 * reach * time, 1e-2 * reach * time), "friction": (3.0, 100.0)}
    diffused = ranges | {"sigma_theta": (1e-6, 1e-3)}
    found = [
        Contestant("SGD", partial(_make, "SGD", 0, steps), {"step_size": (3e-2 / time, 10.0 / time)}),
        Contestant("RMSprop", partial(_make, "RMSprop", 0, steps), {"step_size": (1e-4, 3e-2)}),
        Contestant("SGLD", partial(_make, "SGLD", 0, steps), {"step_size": (2e-6 * time, 1e-3 * time)}),
        Contestant("SGNHT", partial(_make, "SGNHT", 0, steps), ranges),
    ]
    for kind, own in (("SGMGT", ranges), ("SGMGT-D", diffused)):
        for a, longer in LONGER.items():
            low, high = own["step_size"]
            scaled = own | {"step_size": (low * longer, high * longer)}
            found.append(Contestant(f"{kind}, a = {a}", partial(_make, kind, a, steps), scaled))
    return found


def hold(
    name: str, problem: Callable[..., Any], place: tuple[Any, ...], budget: Budget, steps: int, quick: bool,
    folder: Path, progress: bool, reach: float = 1.0,
) -> tuple[list[dict[str, Any]], Any]:  # fmt: skip
    """Tune and run everybody; gives the results and all that was tried.

    problem(*place) gives the model and its validation and test data; it is called in the processes that run. What is found is
    kept in `folder`, and so are checkpoints: a later call for more epochs goes on from there.
    """
    everyone = [c for c in contestants(steps, reach) if not quick or c.name in QUICK]
    folder.mkdir(parents=True, exist_ok=True)
    rest, sources = (problem, place, budget.tuning), _sources(problem)
    chosen, tried = screen(
        everyone, score, budget.settings, budget.final.seed, rest, f"{name}, tuning", "loss", progress, folder, sources
    )
    tasks = [(c, s, problem, place, budget.final, str(folder)) for c, s in chosen]
    news = partial(_news, folder)
    results = list(run_tasks(final, tasks, f"{name}, runs", progress, folder, news, sources))
    if budget.further is not None and budget.further > budget.final.epochs:
        mine = [k for k, r in enumerate(results) if r["sampler"].startswith("SGMGT-D")]
        best = tasks[min(mine, key=lambda k: results[k]["valid"])]
        longer = (*best[:4], best[4]._replace(epochs=budget.further), best[5], True)
        results += list(run_tasks(final, [longer], f"{name}, going on", progress, folder, news, sources))
    return results, tried


def score(contestant: Contestant, setting: Setting, problem: Any, place: tuple[Any, ...], plan: Plan) -> float:
    """The validation loss of a tuning run, by a seed of its own."""
    model, tests = problem(*place)
    own = plan._replace(seed=plan.seed + 1000)
    return float(run_epochs(model, (tests[0], tests[0]), contestant.sampler(setting), own)["valid"])


def final(
    contestant: Contestant,
    setting: Setting,
    problem: Any,
    place: tuple[Any, ...],
    plan: Plan,
    folder: str,
    further: bool = False,
) -> dict[str, Any]:
    """A full run, from its checkpoint if there is one; with `further` from a copy of that, which is left as it is."""
    model, tests = problem(*place)
    known_by = kept.digest(_sources(problem), contestant, setting, problem, place, plan._replace(epochs=0))
    checkpoint = Path(folder) / f"checkpoint-{known_by}.npz"
    if further:
        first, checkpoint = checkpoint, checkpoint.with_name(f"further-{known_by}.npz")
        if first.exists() and not checkpoint.exists():
            shutil.copy(first, checkpoint)
    line = checkpoint.with_suffix(".txt")

    def tell(text: str) -> None:
        line.write_text(f"{contestant.name}: {text}", encoding="utf-8")

    found = run_epochs(model, tests, contestant.sampler(setting), plan, checkpoint, tell)
    line.unlink(missing_ok=True)
    return found | {"sampler": f"{contestant.name}, continued" if further else contestant.name, "setting": setting}


def _sources(problem: Callable[..., Any]) -> bytes:
    """What a run depends on: all that is compiled, the loop, the network, the data, and the functions at hand.

    An edited plot ends no run, nor does it forget an hour of tuning.
    """
    files = (recurrent, loop, lstm, lstm_pass, datasets)
    functions = (problem, _make, score, final)
    texts = [Path(str(m.__file__)).read_bytes() for m in files] + [inspect.getsource(f).encode() for f in functions]
    return fingerprints.package_fingerprint() + b"".join(texts)


def _news(folder: Path) -> str:
    """What the runs at work last said."""
    lines = []
    for path in sorted(folder.glob("*.txt"), key=lambda p: p.stat().st_mtime)[-2:]:
        try:
            lines.append(path.read_text(encoding="utf-8"))
        except OSError:  # it has just ended
            continue
    return "; ".join(lines)


def cost_of(results: list[dict[str, Any]]) -> str:
    """What the runs of the table took; tuning, which comes on top, may have been done in another call."""
    return f"{sum(r['seconds'] for r in results) / 60.0:.0f} minutes of one core for the runs in the table"


def row_of(result: dict[str, Any], figure: Callable[[float], float], what: str) -> dict[str, Any]:
    """A row of the table: the figures of the predictive average and of single draws, and what they cost."""
    curve = np.array(result["curve"])
    best = int(np.argmin(curve[:, 1]))
    return {
        "sampler": result["sampler"],
        f"test {what}": figure(result["test"]),
        f"validation {what}": figure(result["valid"]),
        "best draw alone": figure(float(curve[best, 3])),
        "last draw alone": figure(result["alone"]),
        "epochs": result["epochs"],
        "core s per epoch": result["seconds"] / max(1, result["epochs"]),
        "shortened": result["clipped"],
        "setting": result["setting"],
    }
