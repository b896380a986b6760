"""Topics of abstracts: test perplexity of latent Dirichlet allocation with 30 topics, by sampler and step size.

Minibatches of 16 documents, 5000 iterations of which 1000 are burn-in, step sizes 0.04 to 0.1. Other parameters of each sampler
(friction, and the scale that one unit of step size means) are tuned at the step size 0.07, by perplexity on a fifth of the
training documents. Perplexity is that of document completion: the tokens of a test document are dealt at random into two
halves; its topics are inferred from the one half by Gibbs sampling, p(w) of the tokens of the other half is averaged over draws
of θ, and the perplexity is exp(−mean log p(w)). Beside it: collapsed Gibbs sampling with all the data, and the unigram model.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sgmcmc.evidence.experiments.harness import Contestant, interval, run_tasks, screen, unfinished
from sgmcmc.evidence.experiments.loop import run_chain
from sgmcmc.evidence.experiments.page import write_section, write_table

__all__ = ["run"]

SETTING = (
    "30 topics, β = 0.1, batches of 16 documents, 5000 iterations of which the first fifth is burn-in. Friction and the "
    "scale of θ are tuned at h = 0.07 by the perplexity of a fifth of the training documents. Perplexity is that of document "
    "completion: half of the tokens of a test document give its topics, by Gibbs sampling; p(w) of the other "
    "half is averaged over draws of θ."
)
TOPICS, BATCH, STEPS, BURN = 30, 16, 5000, 1000
STEP_SIZES = (0.04, 0.07, 0.1)
UNIGRAM = {"icml": 1040.4, "reuters": 2799.7}  # test perplexity of word frequencies, smoothed by 0.1


def _make(kind: str, a: float | None, step_size: float, scale: float, friction: float = 1.0) -> Any:
    import sgmcmc as sg

    if kind == "SGLD":
        return sg.SGLD(step_size, scale=scale)
    if kind == "SGNHT":
        return sg.SGNHT(step_size, friction, scale=scale)
    if kind == "SGMGT":
        return sg.SGMGT(step_size, a=float(a or 1.0), diffusion=friction, scale=scale)
    return sg.SGMGTD(step_size, a=float(a or 1.0), sigma_p=friction, scale=scale)


def contestants() -> list[Contestant]:
    ranges = {"scale": (0.03, 3.0), "friction": (0.3, 30.0)}
    found = [
        Contestant("SGLD", partial(_make, "SGLD", None), {"scale": (0.01, 1.0)}),
        Contestant("SGNHT", partial(_make, "SGNHT", None), ranges),
    ]
    for kind in ("SGMGT", "SGMGT-D"):
        found += [
            Contestant(f"{kind}, a = {a}", partial(_make, kind.replace("-", ""), float(a)), ranges) for a in (1, 2)
        ]
    return found


def _problem(folder: str | None, name: str, validate: bool) -> tuple[Any, Any, Any]:
    """A model of the training documents and the documents to predict: a fifth of the training part, or the test part."""
    from sgmcmc import datasets
    from sgmcmc.models import LDA

    corpus = datasets.load(name, folder)
    held = np.arange(corpus.train.size) % 5 == 0
    train, test = (corpus.train[~held], corpus.train[held]) if validate else (corpus.train, corpus.test)
    model = LDA(corpus.indptr, corpus.indices, corpus.counts, corpus.vocab.size, TOPICS, documents=train)
    return corpus, model, test


def perplexity(probability: Any, held: Any) -> float:
    used = held > 0
    return float(np.exp(-(held[used] * np.log(probability[used])).sum() / held[used].sum()))


def chain(
    sampler: Any, folder: str | None, name: str, validate: bool, steps: int, burn: int, seed: int
) -> dict[str, Any]:
    """One run: the perplexity of the predictive average, and how it fell."""
    _, model, test = _problem(folder, name, validate)
    seen, held = model.halves()
    held = np.where(np.isin(_document_of(model), test), held, 0)
    total, count, curve = np.zeros(held.size), 0, []
    theta = np.log(np.random.default_rng(seed).gamma(1.0, 1.0, model.dim) + 0.01).astype(np.float32)

    def look(step: int, at: Any) -> None:
        nonlocal count
        p = model.completion(at, test, seen, held)
        if step > burn:
            total[:] += p
            count += 1
        curve.append((step, perplexity(total / count if count else p, held)))

    begin = time.perf_counter()
    fine = run_chain(model, sampler, theta, steps, BATCH, seed, max(1, steps // 50), look)
    seconds = time.perf_counter() - begin
    return {"perplexity": curve[-1][1] if fine and curve else np.inf, "curve": curve, "seconds": seconds}


def _document_of(model: Any) -> Any:
    return np.repeat(np.arange(model.indptr.size - 1), np.diff(model.indptr))


def score(
    contestant: Contestant, setting: dict[str, float], folder: str | None, name: str, steps: int, seed: int
) -> float:
    sampler = contestant.sampler(setting | {"step_size": 0.07})
    return float(chain(sampler, folder, name, True, steps, steps // 5, seed + 1000)["perplexity"])


def final(
    contestant: Contestant, setting: dict[str, float], h: float, folder: str | None, name: str, steps: int, seed: int
) -> dict[str, Any]:
    sampler = contestant.sampler(setting | {"step_size": h})
    found = chain(sampler, folder, name, False, steps, steps // 5, seed)
    return found | {"sampler": contestant.name, "h": h, "seed": seed, "setting": setting}


def gibbs(folder: str | None, name: str, sweeps: int, seed: int) -> float:
    """Collapsed Gibbs sampling on the training documents: perplexity of the average over its second half."""
    _, model, test = _problem(folder, name, False)
    seen, held = model.halves()
    held = np.where(np.isin(_document_of(model), test), held, 0)
    total = np.zeros(held.size)
    draws = model.collapsed_gibbs(sweeps, seed, keep=20)
    for phi in draws:
        total += model.completion_of(phi, test, seen, held)
    return perplexity(total / len(draws), held)


def run(
    quick: bool, out: Path, seed: int = 0, progress: bool = True, folder: str | None = None, name: str = "icml"
) -> dict[str, Any]:
    """Tune, run, write lda.md, lda.csv, lda-tuning.csv and lda.png into `out`."""
    import pandas as pd

    begin, keep = time.perf_counter(), unfinished(out, "lda")
    budget, tuning, steps, seeds, sizes = (4, 300, 1000, 1, (0.06,)) if quick else (8, 1000, STEPS, 5, STEP_SIZES)
    rest = folder, name, tuning, seed
    chosen, tried = screen(contestants(), score, budget, seed, rest, "lda, tuning", "perplexity", progress, keep)
    runs = [(c, s, h, folder, name, steps, seed + k) for c, s in chosen for h in sizes for k in range(seeds)]
    results = list(run_tasks(final, runs, "lda, step sizes", progress, keep))
    reference = list(
        run_tasks(
            gibbs,
            [(folder, name, 100 if quick else 500, seed + k) for k in range(2)],
            "lda, collapsed Gibbs",
            progress,
            keep,
        )
    )
    rows = []
    for c, setting in chosen:
        row: dict[str, Any] = {"sampler": c.name}
        for h in sizes:
            row[f"h = {h:g}"] = _figure([r["perplexity"] for r in results if r["sampler"] == c.name and r["h"] == h])
        row |= {
            "setting": setting,
            "s per run": float(np.mean([r["seconds"] for r in results if r["sampler"] == c.name])),
        }
        rows.append(row)
    rows.append({"sampler": "collapsed Gibbs, all data"} | {f"h = {h:g}": f"{np.mean(reference):.1f}" for h in sizes})
    rows.append({"sampler": "unigram"} | {f"h = {h:g}": f"{UNIGRAM[name]:.1f}" for h in sizes})
    table = pd.DataFrame(rows)
    tables = [write_table(table, out, "lda")]
    tried.to_csv(out / "lda-tuning.csv", index=False)
    picture = draw(results, float(np.mean(reference)), UNIGRAM[name], sizes, out / "lda.png")
    remarks = _remarks(results, float(np.mean(reference)), UNIGRAM[name])
    write_section(
        out, "lda", "Topics of abstracts", SETTING, tables, [picture], remarks, quick, time.perf_counter() - begin, seed
    )
    return {"table": table, "results": results, "gibbs": reference, "picture": picture, "remarks": remarks}


def _figure(values: list[float]) -> str:
    """Mean ± half-width of the interval over the runs that came to an end, and how many did not."""
    lost = int((~np.isfinite(values)).sum())
    if lost == len(values):
        return "diverged"
    mean, half = interval(values)
    return f"{mean:.1f}" + (f" ± {half:.1f}" if np.isfinite(half) else "") + (f" ({lost} diverged)" if lost else "")


def _remarks(results: list[dict[str, Any]], reference: float, unigram: float) -> list[str]:
    """What the figures say, in sentences."""
    means: dict[tuple[str, float], float] = {}
    for r in results:
        key = r["sampler"], r["h"]
        means[key] = float(np.mean([q["perplexity"] for q in results if (q["sampler"], q["h"]) == key]))
    (name, h), least = min(means.items(), key=lambda item: item[1])
    below = sum(m < unigram for m in means.values())
    best = {n: min(m for (k, _), m in means.items() if k == n) for n, _ in means}
    ranking = ", ".join(f"{n} {m:.0f}" for n, m in sorted(best.items(), key=lambda item: item[1]))
    return [
        f"The least perplexity is {least:.0f}, by {name} at h = {h:g}; the unigram model has {unigram:.0f}, collapsed Gibbs "
        f"sampling with all the data {reference:.0f}. {below} of {len(means)} combinations are below the unigram model in every "
        "run" + ("; the others have runs that diverge." if below < len(means) else "."),
        f"At its best step size: {ranking}.",
        "The paper's corpus was never published, so perplexities cannot be compared with its table, only the ranking can.",
    ]


def draw(results: list[dict[str, Any]], reference: float, unigram: float, sizes: tuple[float, ...], path: Path) -> Path:
    """Perplexity against step size, and its fall in a run."""
    from sgmcmc.plots import COLOURS, blank_figure

    figure = blank_figure(11.0, 4.5)
    left, right = figure.subplots(1, 2)
    for colour, name in zip(COLOURS, dict.fromkeys(r["sampler"] for r in results), strict=False):
        own = [r for r in results if r["sampler"] == name]
        points = [interval([r["perplexity"] for r in own if r["h"] == h]) for h in sizes]
        left.errorbar(
            sizes,
            [m for m, _ in points],
            [0.0 if np.isnan(w) else w for _, w in points],
            color=colour,
            marker="o",
            capsize=3,
            label=name,
        )
        finite = [r for r in own if r["curve"]]
        if finite:
            middle = min(finite, key=lambda r: r["perplexity"])
            right.plot(*np.array(middle["curve"]).T, color=colour, label=f"{name}, h = {middle['h']:g}")
    for axis in (left, right):
        axis.axhline(reference, color="#333333", ls="--", lw=1, label="collapsed Gibbs, all data")
        axis.set(ylabel="test perplexity")
    right.axhline(unigram, color="#999999", ls=":", lw=1, label="unigram")
    left.set(xlabel="step size h", title="After the last iteration, mean over seeds ± 95 %")
    right.set(xlabel="iteration", title="Best run of each sampler")
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncol=4, frameon=False, fontsize=9)
    figure.savefig(path, dpi=140)
    return path
