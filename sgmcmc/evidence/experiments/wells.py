"""Five wells: how many a sampler finds in 200,000 noisy steps, and how near its draws come to the truth.

Gradient noise N(0, 2B) with B = 1. Counting wells alone rewards a step size that is too large: a hot chain visits everything.
So samplers are tuned and ranked by the total variation between the draws of a chain and the truth, over 50 bins of equal
probability. The shares of the wells alone would not do either: SGNHT with h = 0.165 has them right within 0.05, and the law
within each well far too narrow. The published claim is 1, 3 and 5 wells for SGNHT, SGMGT and SGMGT-D (a = 2).
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sgmcmc.evidence.experiments.harness import Contestant, Winner, interval, run_tasks, tune, unfinished
from sgmcmc.evidence.experiments.page import write_section, write_table
from sgmcmc.evidence.experiments.wells_contestants import NOISE, contestants, heirs

__all__ = ["run"]

STEPS, THIN, BINS = 200_000, 10, 50
SETTING = (
    "200,000 steps with gradient noise N(0, 2), from the middle well, no warm-up. Tuned and ranked by the total variation (TV) "
    "between a chain's draws and the truth, over 50 bins of equal probability; TV of wells is that between the shares of the "
    "wells and their masses, W1 the Wasserstein distance. Counting wells alone rewards a step size that is too large: a hot "
    "chain visits everything. The shares of wells alone reward steps at which the law within each well is wrong. Settings are in "
    "units of the thermal mass M of the momenta, 1/E K'², so that ranges mean the same for all: the step is step_size·√M, the "
    "friction diffusion·√M, γ gamma·M, σ_θ sigma_theta/√M; softening is c, period the number of steps between fresh p and ξ. "
    "SGMGT also tries SGNHT's best setting with its softening at 0.1, where its momenta are nearly Gaussian, and SGMGT-D tries "
    "SGMGT's with little noise on θ."
)
PUBLISHED = {"SGNHT": 1, "SGMGT, a = 2": 3, "SGMGT-D, a = 2": 5}


def draws_of(sampler: Any, chains: int, seed: int, steps: int = STEPS) -> np.ndarray[Any, Any]:
    """(chain, draw) of chains that start in the middle well, as the paper's do, without warm-up: finding wells is the task."""
    import sgmcmc as sg

    model = sg.models.FiveWell()
    trace = sg.sample(
        model,
        sampler,
        draws=steps // THIN,
        thin=THIN,
        warmup=0,
        chains=chains,
        seed=seed,
        init=np.full((chains, 1), model.WELLS[2]),
        gradient_noise=NOISE,
        threads=1,
        progress=False,
        warn=False,
        on_divergence="drop",
    )
    if trace.draws.shape[0] < chains:  # one run that ends in infinity is a sampler that does not work at this setting
        raise FloatingPointError(f"{chains - trace.draws.shape[0]} of {chains} chains diverged")
    return trace.draws[:, :, 0]


def true_masses() -> np.ndarray[Any, Any]:
    """The probability of each of the six wells, the sixth being negligible."""
    from sgmcmc.models import FiveWell
    from sgmcmc.testing.targets import FIVE_WELLS

    edges = np.array([-np.inf, *FiveWell.BARRIERS, np.inf])
    law = FIVE_WELLS.law()
    return np.diff(np.concatenate(([0.0], law.cdf(edges[1:-1]), [1.0])))


def occupancies(draws: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The share of each chain's draws in each well: (chain, well)."""
    from sgmcmc.models import FiveWell

    place = np.searchsorted(np.asarray(FiveWell.BARRIERS), draws)
    return np.stack([(place == k).mean(axis=1) for k in range(len(FiveWell.BARRIERS) + 1)], axis=1)


def wells_variation(shares: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The total variation between the shares of wells and their masses, for each chain."""
    distance: np.ndarray[Any, Any] = 0.5 * np.abs(shares - true_masses()).sum(axis=-1)
    return distance


def bin_shares(draws: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The share of each chain's draws in each of 50 bins of equal probability: (chain, bin)."""
    from sgmcmc.testing.targets import FIVE_WELLS

    place = np.searchsorted(FIVE_WELLS.law().quantile(np.arange(1, BINS) / BINS), draws)
    shares: np.ndarray[Any, Any] = np.stack([np.bincount(row, minlength=BINS) for row in place]) / draws.shape[1]
    return shares


def total_variation(shares: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Between the shares of bins and the truth, for each chain."""
    distance: np.ndarray[Any, Any] = 0.5 * np.abs(shares - 1.0 / BINS).sum(axis=-1)
    return distance


def wasserstein(draws: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The Wasserstein distance of order 1 of each chain's draws to the truth: ∫ |F_n⁻¹ − F⁻¹| du."""
    from sgmcmc.testing.targets import FIVE_WELLS

    u = (np.arange(4000) + 0.5) / 4000
    exact = FIVE_WELLS.law().quantile(u)
    distance: np.ndarray[Any, Any] = np.abs(np.quantile(draws, u, axis=1).T - exact).mean(axis=1)
    return distance


def score(contestant: Contestant, setting: dict[str, float], stage: int, steps: int = STEPS) -> float:
    """Mean total variation of a few chains; the seeds are not those of the results."""
    draws = draws_of(contestant.sampler(setting), 4 if stage == 0 else 16, 1000 + stage, steps)
    return float(total_variation(bin_shares(draws)).mean())


def result(winner: Winner, seeds: int, steps: int, seed: int) -> dict[str, Any]:
    """The figures of one sampler over fresh seeds, and one chain to look at."""
    draws = draws_of(winner.contestant.sampler(winner.setting), seeds, seed, steps)
    shares, bins = occupancies(draws), bin_shares(draws)
    visited = (shares[:, :5] > 0.0).sum(axis=1)
    return {
        "sampler": winner.contestant.name,
        "visited": visited,
        "tv": total_variation(bins),
        "pooled": float(total_variation(bins.mean(axis=0))),
        "wells_tv": wells_variation(shares),
        "w1": wasserstein(draws),
        "shares": shares,
        "setting": winner.setting,
        "trace": draws[0, :: max(1, draws.shape[1] // 2000)],
        "histogram": np.histogram(draws, bins=np.linspace(-3.0, 3.0, 241))[0] / draws.size / 0.025,
    }


def long_shares(winner: Winner, chains: int, steps: int, seed: int) -> np.ndarray[Any, Any]:
    """Where chains with an eighth of the step spend a longer run: (chain, well)."""
    setting = dict(winner.setting) | {"step_size": winner.setting["step_size"] / 8.0}
    return occupancies(draws_of(winner.contestant.sampler(setting), chains, seed, steps))


def against_masses(shares: np.ndarray[Any, Any]) -> Any:
    """The mean share of each well beside its mass, in standard errors over chains."""
    import pandas as pd

    error = shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
    mean, mass = shares.mean(axis=0), true_masses()
    z = (mean - mass) / np.maximum(error, 1e-12)
    wells = range(1, len(mass) + 1)
    return pd.DataFrame({"well": wells, "mass": mass, "share": mean, "standard error": error, "z": z}).iloc[:5]


def run(quick: bool, out: Path, seed: int = 0, progress: bool = True) -> dict[str, Any]:
    """Tune, run, write wells.md, wells.csv, wells-tuning.csv, wells-limit.csv and wells.png into `out`."""
    import pandas as pd

    begin, keep = time.perf_counter(), unfinished(out, "wells")
    budget, seeds, steps = (4, 8, STEPS) if quick else (64, 20, STEPS)
    judge = partial(score, steps=STEPS // 20) if quick else score
    winners, tried = tune(contestants(), judge, budget, seed, "wells", progress, keep, heirs)
    out.mkdir(parents=True, exist_ok=True)
    tried.to_csv(out / "wells-tuning.csv", index=False)
    results = list(run_tasks(result, [(w, seeds, steps, seed) for w in winners], "wells, fresh seeds", progress, keep))
    results.sort(key=lambda r: float(r["tv"].mean()))
    table = pd.DataFrame([_row(r) for r in results])
    tables = [write_table(table, out, "wells")]
    best = next(r["sampler"] for r in results if r["sampler"].startswith("SGMGT-D"))
    winner = next(w for w in winners if w.contestant.name == best)
    groups, long = (4, 2 * STEPS) if quick else (16, 40 * STEPS)
    tasks = [(winner, 4, long, seed + 1 + k) for k in range(groups)]
    limits = against_masses(np.concatenate(list(run_tasks(long_shares, tasks, "wells, long run", progress, keep))))
    tables += [
        f"{best} with an eighth of the step, {4 * groups} chains of {long:,} steps:",
        write_table(limits, out, "wells-limit"),
    ]
    picture = draw(results, out / "wells.png")
    remarks = _remarks(results, limits)
    write_section(
        out, "wells", "Five wells", SETTING, tables, [picture], remarks, quick, time.perf_counter() - begin, seed
    )
    return {
        "table": table,
        "limits": limits,
        "picture": picture,
        "results": results,
        "remarks": remarks,
    }


def _row(r: dict[str, Any]) -> dict[str, Any]:
    tv, wells, w1 = interval(r["tv"]), interval(r["wells_tv"]), interval(r["w1"])
    return {
        "sampler": r["sampler"],
        "wells, mean": float(r["visited"].mean()),
        "wells, fewest": int(r["visited"].min()),
        "wells, published": PUBLISHED.get(r["sampler"], np.nan),
        "TV per chain": f"{tv[0]:.3f} ± {tv[1]:.3f}",
        "TV pooled": r["pooled"],
        "TV of wells": f"{wells[0]:.3f} ± {wells[1]:.3f}",
        "W1 per chain": f"{w1[0]:.3f} ± {w1[1]:.3f}",
        "setting": r["setting"],
    }


def _remarks(results: list[dict[str, Any]], limits: Any) -> list[str]:
    """What the figures say, in sentences."""
    by_name = {r["sampler"]: r for r in results}
    best = next(r for r in results if r["sampler"].startswith("SGMGT-D"))
    seeds = best["tv"].size
    said = [
        f"{best['sampler']} visits all five wells in {int((best['visited'] == 5).sum())} of {seeds} seeds, with a total "
        f"variation of {best['tv'].mean():.3f} per chain and {best['pooled']:.3f} pooled."
    ]
    for name in (n for n in ("SGNHT", "SGHMC") if n in by_name):
        gap, half = interval(by_name[name]["tv"] - best["tv"])
        verdict = (
            "no difference" if abs(gap) <= half else ("farther from the truth" if gap > 0.0 else "nearer to the truth")
        )
        said.append(
            f"{name}, tuned the same way: {by_name[name]['tv'].mean():.3f} per chain, {by_name[name]['pooled']:.3f} pooled; "
            f"per chain {gap:+.3f} ± {half:.3f}, {verdict}."
        )
    softened = best["setting"].get("softening", np.inf)
    heavy = [r for r in results if r["setting"].get("softening", 0.0) >= 0.5]
    if softened < 0.5 and heavy:
        said.append(
            f"The best {best['sampler']} has softening {softened:g}: its momenta are nearly Gaussian, and it is nearly SGNHT. "
            f"The best sampler with heavy tails is {heavy[0]['sampler']}, softening {heavy[0]['setting']['softening']:g}: "
            f"{heavy[0]['tv'].mean():.3f} per chain, {heavy[0]['pooled']:.3f} pooled."
        )
    fewer = [
        f"{r['sampler']} in {int((r['visited'] < 5).sum())} of {seeds} seeds" for r in results if r["visited"].min() < 5
    ]
    said.append(
        f"Tuned by the distance to the truth, {'all others' if fewer else 'all samplers'} visit all five wells in every seed"
        + (f"; {' and '.join(fewer)} not. " if fewer else ". ")
        + "One well for SGNHT and three for SGMGT, as published, do not reproduce: an effect of settings, we believe."
    )
    counts = ", ".join(
        f"{n} {by_name[n]['visited'].mean():.1f} (published {k})" for n, k in PUBLISHED.items() if n in by_name
    )
    said += [f"Wells per chain: {counts}."] if counts else []
    z = float(np.abs(limits["z"]).max())
    said.append(f"With an eighth of the step and a longer run the occupancies come to the masses: largest |z| {z:.1f}.")
    return said


def draw(results: list[dict[str, Any]], path: Path) -> Path:
    """Densities against the truth, and traces."""
    from sgmcmc.plots import COLOURS, blank_figure
    from sgmcmc.testing.targets import FIVE_WELLS

    best = next(r["sampler"] for r in results if r["sampler"].startswith("SGMGT-D"))
    names = dict.fromkeys((best, "SGNHT", "SGMGT, a = 2", "SGMGT-D, a = 2", "SGHMC"))
    shown = [r for n in names for r in results if r["sampler"] == n]
    figure = blank_figure(11.0, 7.0)
    grid = figure.add_gridspec(len(shown), 2)
    left = figure.add_subplot(grid[:, 0])
    x = np.linspace(-3.0, 3.0, 1001)
    left.fill_between(x, FIVE_WELLS.law().density(x), color="#D9D9D9", label="truth")
    middles = np.linspace(-3.0, 3.0, 241)[:-1] + 0.0125
    for colour, r in zip(COLOURS, shown, strict=False):
        tv = float(r["tv"].mean())
        left.plot(middles, r["histogram"], color=colour, lw=1.5, label=f"{r['sampler']} (TV {tv:.2f})")
    left.set(
        xlabel="θ", ylabel="density", title=f"Draws of {results[0]['tv'].size} chains against the truth", xlim=(-3, 3)
    )
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncol=3, frameon=False)
    for k, (colour, r) in enumerate(zip(COLOURS, shown, strict=False)):
        axis = figure.add_subplot(grid[k, 1])
        axis.plot(np.linspace(0, STEPS / 1000, r["trace"].size), r["trace"], color=colour, lw=0.4)
        axis.set(ylim=(-2.6, 2.6), ylabel="θ", xlim=(0, STEPS / 1000))
        published = PUBLISHED.get(r["sampler"])
        said = "" if published is None else f"; published: {published}"
        axis.set_title(f"{r['sampler']}: {r['visited'].mean():.1f} wells per chain{said}", fontsize=10)
        if k < len(shown) - 1:
            axis.set_xticklabels([])
    axis.set_xlabel("step, thousands")
    figure.savefig(path, dpi=140)
    return path
