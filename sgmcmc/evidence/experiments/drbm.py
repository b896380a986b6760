"""Digits by a discriminative RBM with 500 hidden units: test accuracy of the predictive average against iterations.

Minibatches of 100 rows of MNIST; 1500 iterations, as in the paper, and beside it 20 epochs (12,000 iterations). Step size and
friction of every sampler, and σ_θ where there is one, are tuned on 5000 rows of the training part, by the accuracy after 600
iterations; SGD and RMSprop by their step size. The predictive average is over draws from the second fifth of the run on. All
in float32.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sgmcmc.evidence.experiments.harness import Contestant, interval, run_tasks, screen, unfinished
from sgmcmc.evidence.experiments.loop import Optimiser, run_chain
from sgmcmc.evidence.experiments.page import write_section, write_table

__all__ = ["run"]

SETTING = (
    "MNIST, 500 hidden units, batches of 100 rows, prior N(0, 1) on every weight, float32. Accuracy is that of the "
    "predictive average over draws from the second fifth of the run on. Step size, friction and σ_θ are tuned on 5000 rows of "
    "the training part, by the accuracy after 600 iterations; the optimisers by their step size. ± is the 95 % interval "
    "over seeds. The time is that of one core, tests included."
)
HIDDEN, BATCH, ROWS = 500, 100, 60_000
PUBLISHED = 0.976  # the paper's best


def _make(
    kind: str,
    a: float | None,
    step_size: float,
    friction: float = 10.0,
    sigma_theta: float = 0.0,
    resample: bool = True,
) -> Any:
    import sgmcmc as sg

    period: dict[str, Any] = {} if resample else {"resample_momentum": None, "resample_thermostat": None}
    if kind == "SGLD":
        return sg.SGLD(step_size)
    if kind == "SGNHT":
        return sg.SGNHT(step_size, friction)
    if kind == "SGMGT":
        return sg.SGMGT(step_size, a=float(a or 1.0), diffusion=friction, **period)
    if kind == "SGMGTD":
        return sg.SGMGTD(step_size, a=float(a or 1.0), sigma_theta=sigma_theta, sigma_p=friction, **period)
    return Optimiser(kind, step_size, ROWS)


def contestants() -> list[Contestant]:
    ranges = {"step_size": (1e-3, 1e-2), "friction": (1.0, 100.0)}
    diffused = ranges | {"sigma_theta": (1e-4, 1e-1)}
    found = [
        Contestant("SGD", partial(_make, "SGD", None), {"step_size": (1e-2, 1.0)}),
        Contestant("RMSprop", partial(_make, "RMSprop", None), {"step_size": (1e-4, 1e-2)}),
        Contestant("SGLD", partial(_make, "SGLD", None), {"step_size": (1e-7, 1e-4)}),
        Contestant("SGNHT", partial(_make, "SGNHT", None), ranges),
    ]
    for kind, own in (("SGMGT", ranges), ("SGMGT-D", diffused)):
        found += [Contestant(f"{kind}, a = {a}", partial(_make, kind.replace("-", ""), float(a)), own) for a in (1, 2)]
    return found


def chain(
    sampler: Any, folder: str | None, validate: bool, steps: int, seed: int, looks: int, rows: int | None = None
) -> dict[str, Any]:
    """One run: accuracy of the last draw and of the predictive average, and the path of a few weights."""
    from sgmcmc import datasets
    from sgmcmc.models import DRBM

    data = datasets.load("mnist", folder)
    if validate:
        X, y, X_test, y_test = data.X[5000:], data.y[5000:], data.X[:5000], data.y[:5000]
    else:
        X, y, X_test, y_test = data.X, data.y, data.X_test, data.y_test
    model = DRBM(X, y, HIDDEN)
    picked = np.random.default_rng(5).choice(model.dim, 4, replace=False)
    total, count = np.zeros((len(X_test), 10)), 0
    curve, paths = [], []

    def look(step: int, theta: Any) -> None:
        nonlocal count
        p = model.probabilities(theta, X_test)
        if step > steps // 5:
            total[:] += p
            count += 1
        average = total if count else p
        curve.append((step, float((p.argmax(1) == y_test).mean()), float((average.argmax(1) == y_test).mean())))
        paths.append(theta[picked].copy())

    begin = time.process_time()
    fine = run_chain(
        model, sampler, model.init(seed).astype(np.float32), steps, BATCH, seed, max(1, steps // looks), look
    )
    accuracy = curve[-1][2] if fine and curve else 0.0
    return {"accuracy": accuracy, "curve": curve, "paths": np.array(paths), "seconds": time.process_time() - begin}


def score(contestant: Contestant, setting: dict[str, float], folder: str | None, steps: int, seed: int) -> float:
    """Errors on 5000 rows that were held out."""
    return 1.0 - float(chain(contestant.sampler(setting), folder, True, steps, seed + 1000, 6)["accuracy"])


def final(name: str, sampler: Any, folder: str | None, steps: int, seed: int, looks: int) -> dict[str, Any]:
    return chain(sampler, folder, False, steps, seed, looks) | {"sampler": name, "steps": steps, "seed": seed}


def run(quick: bool, out: Path, seed: int = 0, progress: bool = True, folder: str | None = None) -> dict[str, Any]:
    """Tune, run, write drbm.md, drbm.csv, drbm-tuning.csv and two pictures into `out`."""
    import pandas as pd

    begin, keep = time.perf_counter(), unfinished(out, "drbm")
    budget, tuning, steps, long, seeds = (2, 100, 300, 0, 1) if quick else (12, 600, 1500, 12_000, 5)
    everyone = [c for c in contestants() if not quick or c.name in ("SGD", "SGLD", "SGNHT", "SGMGT-D, a = 1")]
    winners, tried = screen(
        everyone, score, budget, seed, (folder, tuning, seed), "drbm, tuning", "error", progress, keep
    )
    samplers = {c.name: c.sampler(s) for c, s in winners}
    for c, s in winners:
        if c.name.startswith("SGMGT"):
            samplers[f"{c.name}, no resampling"] = partial(c.make, resample=False)(**s)
    runs = [
        (name, s, folder, steps, seed + k, 30)
        for name, s in samplers.items()
        for k in range(min(3, seeds) if name.endswith("no resampling") else seeds)
    ]
    if long:
        plain = [(name, s) for name, s in samplers.items() if "no resampling" not in name]
        runs += [(name, s, folder, long, seed + k, 40) for k in range(seeds) for name, s in plain]
    results = list(run_tasks(final, runs, "drbm, runs", progress, keep))
    rows = []
    for name in samplers:
        mean, half = interval([r["accuracy"] for r in results if r["sampler"] == name and r["steps"] == steps])
        longer = interval([r["accuracy"] for r in results if r["sampler"] == name and r["steps"] == long])
        row: dict[str, Any] = {"sampler": name, f"accuracy, {steps} iterations": mean, "±": half}
        row |= {"accuracy, 20 epochs": longer[0], "± ": longer[1]}
        row |= {
            "ms per iteration": 1e3
            * float(np.mean([r["seconds"] / r["steps"] for r in results if r["sampler"] == name]))
        }
        row |= {"setting": dict(next((s for c, s in winners if name.startswith(c.name)), {}))}
        rows.append(row)
    table = pd.DataFrame(rows)
    published = pd.DataFrame([{"sampler": "published best", f"accuracy, {steps} iterations": PUBLISHED}])
    tables = [write_table(pd.concat([published, table]), out, "drbm")]
    tried.to_csv(out / "drbm-tuning.csv", index=False)
    pictures = [draw(results, steps, long, out / "drbm.png"), draw_paths(results, steps, out / "drbm-traces.png")]
    remarks = _remarks(table, steps)
    write_section(
        out, "drbm", "Digits by a discriminative RBM", SETTING, tables, pictures, remarks, quick,
        time.perf_counter() - begin, seed,
    )  # fmt: skip
    return {"table": table, "results": results, "picture": pictures[0], "pictures": pictures, "remarks": remarks}


def _remarks(table: Any, steps: int) -> list[str]:
    """What the figures say, in sentences."""
    short, long = f"accuracy, {steps} iterations", "accuracy, 20 epochs"
    by_name = table.set_index("sampler")
    samplers = [n for n in by_name.index if n not in ("SGD", "RMSprop")]
    best = by_name.loc[samplers, short].idxmax()
    said = [
        f"After {steps} iterations the best sampler is {best} with {by_name.loc[best, short]:.4f}; "
        f"the paper's best is {PUBLISHED}."
    ]
    if by_name[long].notna().any():
        top = by_name.loc[samplers, long].idxmax()
        said.append(f"After 20 epochs the best is {top} with {by_name.loc[top, long]:.4f}; "
                    f"SGD has {by_name.loc['SGD', long]:.4f}, RMSprop {by_name.loc['RMSprop', long]:.4f}.")  # fmt: skip
    for name in samplers:
        other = f"{name}, no resampling"
        if other in by_name.index:
            change = 100.0 * (by_name.loc[name, short] - by_name.loc[other, short])
            said.append(f"Resampling changes {name} by {change:+.2f} points of accuracy after {steps} iterations.")
    return said


def draw(results: list[dict[str, Any]], steps: int, long: int, path: Path) -> Path:
    """Accuracy of the predictive average against iterations, with the published best."""
    from sgmcmc.plots import COLOURS, blank_figure

    figure = blank_figure(11.0, 4.8)
    lengths = [n for n in (steps, long) if any(r["steps"] == n for r in results)]
    axes = np.atleast_1d(figure.subplots(1, len(lengths)))
    names = list(dict.fromkeys(r["sampler"] for r in results))
    kinds = [n for n in names if "no resampling" not in n]
    for axis, n in zip(axes, lengths, strict=True):
        for name in names:
            own = [r for r in results if r["sampler"] == name and r["steps"] == n and r["curve"]]
            if not own:
                continue
            size = min(len(r["curve"]) for r in own)
            curve = np.mean([np.array(r["curve"][:size]) for r in own], axis=0)
            plain = name.removesuffix(", no resampling")
            axis.plot(curve[:, 0], curve[:, 2], color=COLOURS[kinds.index(plain) % 7], ls="-" if plain == name else ":", lw=1.6,
                      marker="s" if kinds.index(plain) >= 7 else None, ms=3, label=name)  # fmt: skip
        axis.axhline(PUBLISHED, color="#333333", ls="--", lw=1, label="published best, 0.976")
        axis.set(
            xlabel="iteration",
            ylabel="test accuracy of the predictive average",
            ylim=(0.85, 0.99),
            title=f"{n:,} iterations of 100 rows",
        )
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncol=4, frameon=False, fontsize=8)
    figure.savefig(path, dpi=140)
    return path


def draw_paths(results: list[dict[str, Any]], steps: int, path: Path) -> Path:
    """The same four weights in every sampler's first run."""
    from sgmcmc.plots import COLOURS, blank_figure

    first = {
        r["sampler"]: r
        for r in reversed(results)
        if r["steps"] == steps and len(r["paths"]) and "no resampling" not in r["sampler"]
    }
    figure = blank_figure(11.0, 5.0)
    columns = 4
    axes = np.atleast_1d(figure.subplots(-(-len(first) // columns), columns, sharex=True, squeeze=False)).ravel()
    for axis, (name, r) in zip(axes, reversed(first.items()), strict=False):
        for k in range(4):
            axis.plot([c[0] for c in r["curve"]], r["paths"][:, k], color=COLOURS[k], lw=1.0)
        axis.set_title(name, fontsize=9)
    for axis in axes[len(first) :]:
        axis.set_visible(False)
    figure.supxlabel("iteration", fontsize=9)
    figure.supylabel("four weights", fontsize=9)
    figure.savefig(path, dpi=140)
    return path
