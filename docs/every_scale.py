"""Right at every scale: presets × a × units × temperature × mass × friction × θ-noise × schedules × gradient noise × precision.

    python docs/every_scale.py            every pair of levels, at least 500 cells, under an hour: docs/every-scale.md and .csv
    python docs/every_scale.py --cells 60 a part of it, as the tests run it

Each cell is a run of `sg.sample` on a Gaussian (or a linear regression in minibatches) whose posterior is known, from exact
starts, in units in which its standard deviation is 1e-3 to 1e3. Friction, σ_θ and noise are given in natural units, where it
is 1. A cell is right if the variance of θ is within 1 % + 4 standard errors of the truth; the integrators' own bias is 0 for
BAOAB and for halfway noise on Gaussians, and counted as an error elsewhere. Otherwise `sample`, or the sampler when it was
made, must have said why, in a warning other than "not mixed".
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import sgmcmc as sg
from sgmcmc.schedules import Cyclical, PolynomialDecay

HERE = Path(__file__).parent
DIM, H, ROWS, BATCH = 8, 0.05, 200, 20
LEVELS: dict[str, list[Any]] = {
    "preset": ["SGLD", "SGHMC", "SGNHT", "SGMGT", "SGMGTD"],
    "a": [0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0],
    "units": [1e-3, 0.1, 1.0, 10.0, 1e3],
    "temperature": [0.1, 1.0, 10.0],
    "mass": [0.5, 1.0, 5.0],
    "friction": [0.01, 0.1, 1.0, 10.0],
    "sigma_theta": [0.01, 0.1, 1.0, 10.0],
    "schedule": ["constant", "decaying", "cyclical"],
    "noise": ["exact", "B = 1", "B = 5", "B = 20", "minibatch"],
    "dtype": ["float64", "float32"],
}
CAUSES = (
    "heats it",
    "enters θ",
    "noise of one step",
    "fast for the step",
    "resolve the kinetics",
    "sigma_p·max K",
    "temperature",
    "diverged",
    "left the finite numbers",
)
UNUSED = {
    "SGLD": ("a", "mass", "friction", "sigma_theta"),
    "SGHMC": ("a", "mass", "sigma_theta"),
    "SGNHT": ("a", "mass", "sigma_theta"),
    "SGMGT": ("sigma_theta",),
    "SGMGTD": (),
}


class Cell(NamedTuple):
    preset: str
    a: float
    units: float
    temperature: float
    mass: float
    friction: float
    sigma_theta: float
    schedule: str
    noise: str
    dtype: str

    def is_unused(self, name: str) -> bool:
        return name in UNUSED[self.preset]


# ---- the design -----------------------------------------------------------------------------------------------------------


def design(cells: int, seed: int = 0) -> list[Cell]:
    """At least so many cells in which every pair of levels occurs that a sampler can have."""
    rng = np.random.default_rng(seed)
    wanted = set(_pairs_that_can_be())
    found: list[Cell] = []
    while wanted or len(found) < cells:
        tries = [_random_cell(rng) for _ in range(20)]
        best = max(tries, key=lambda cell: len(wanted & set(_pairs(cell))))
        wanted -= set(_pairs(best))
        found.append(best)
    return found


def _random_cell(rng: np.random.Generator) -> Cell:
    cell = Cell(**{name: levels[rng.integers(len(levels))] for name, levels in LEVELS.items()})
    # Half of all cells are the flagship's: it alone has all axes.
    cell = cell._replace(preset="SGMGTD") if rng.random() < 0.4 else cell
    usual = {"a": 1.0, "mass": 1.0, "friction": 1.0, "sigma_theta": 0.1}
    return cell._replace(**{name: usual[name] for name in UNUSED[cell.preset]})


def _pairs(cell: Cell) -> list[tuple[Any, ...]]:
    used = [(name, value) for name, value in cell._asdict().items() if not cell.is_unused(name)]
    return list(itertools.combinations(used, 2))


def _pairs_that_can_be() -> list[tuple[Any, ...]]:
    found = []
    for (one, two), preset in itertools.product(itertools.combinations(LEVELS, 2), LEVELS["preset"]):
        if one in UNUSED[preset] or two in UNUSED[preset]:
            continue
        firsts = [preset] if one == "preset" else LEVELS[one]
        found += [((one, a), (two, b)) for a, b in itertools.product(firsts, LEVELS[two])]
    return found


# ---- a cell ---------------------------------------------------------------------------------------------------------------


def schedule_of(cell: Cell) -> Any:
    h = H * cell.units if cell.preset != "SGLD" else H * cell.units**2
    return {"constant": h, "decaying": PolynomialDecay(h, offset=2000.0), "cyclical": Cyclical(h, 500)}[cell.schedule]


def sampler_of(cell: Cell) -> sg.Sampler:
    """The preset with friction, σ_θ, γ and σ_ξ of these natural units in units of θ."""
    s, T = cell.units, cell.temperature
    h, friction, gamma = schedule_of(cell), cell.friction / s, 1.0 / (T * s * s)
    if cell.preset == "SGLD":
        return sg.SGLD(h, T)
    if cell.preset == "SGHMC":
        return sg.SGHMC(h, friction, temperature=T)
    if cell.preset == "SGNHT":
        return sg.SGNHT(h, friction, gamma, T)
    if cell.preset == "SGMGT":
        return sg.SGMGT(h, cell.a, diffusion=friction, gamma=gamma, temperature=T, mass=cell.mass)
    noise = {"sigma_theta": cell.sigma_theta * s, "sigma_p": friction, "sigma_xi": 0.1 / s**3}
    return sg.SGMGTD(h, cell.a, **noise, gamma=gamma, temperature=T, mass=cell.mass)


def model_of(cell: Cell) -> Any:
    """A posterior N(0, units² I); by minibatches, a regression with orthogonal columns."""
    if cell.noise != "minibatch":
        return sg.models.Gaussian(np.zeros(DIM), cell.units**2)
    rng = np.random.default_rng(1)
    full = np.linalg.qr(np.column_stack([rng.normal(size=(ROWS, DIM)), rng.normal(size=ROWS)]))[0]
    X, y = full[:, :DIM] / cell.units, full[:, DIM] * np.sqrt(ROWS)  # y is orthogonal to X: the mean is 0
    return sg.models.LinearRegression(X, y, prior=sg.priors.Flat())


def run(cell: Cell, seed: int, chains: int = 128, draws: int = 1600, thin: int = 10) -> dict[str, Any]:
    options: dict[str, Any] = {
        "seed": seed,
        "dtype": cell.dtype,
        "thin": thin,
        "progress": False,
        "on_divergence": "drop",
    }
    if cell.noise.startswith("B"):
        options["gradient_noise"] = float(cell.noise.split("=")[1]) / cell.units**2
    if cell.noise == "minibatch":
        options["batch_size"] = BATCH
    sd = cell.units * cell.temperature**0.5
    start = sd * np.random.default_rng(seed).standard_normal((chains, DIM))
    begin = time.perf_counter()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            model, sampler = model_of(cell), sampler_of(cell)
            trace = sg.sample(model, sampler, draws, warmup=1000, chains=chains, init=start, **options)
            found = figures(np.asarray(trace.draws, float) / sd)
        except (sg.DivergenceError, ValueError) as error:
            found = {"variance": np.nan, "error": np.nan, "kurtosis": np.nan, "correlation": np.nan}
            warnings.warn(str(error), sg.RunWarning, stacklevel=1)
    told = [str(w.message) for w in said if not str(w.message).startswith("this run is not mixed")]
    found |= {"said": " | ".join(told), "seconds": time.perf_counter() - begin}
    off = abs(found["variance"] - 1.0)
    right = bool(off <= 0.01 + 4.0 * found["error"])
    return cell._asdict() | found | {"verdict": "right" if right else ("warned" if told else "SILENT")}


def figures(x: np.ndarray) -> dict[str, float]:
    """Variance about 0 with its standard error over chains, E[θ⁴]/3 by variance², and the mean correlation of neighbours."""
    own = (x**2).mean(axis=(1, 2))
    variance = float(own.mean())
    kurtosis = float((x**4).mean() / 3.0 / variance**2)
    neighbours = float((x[..., 1:] * x[..., :-1]).mean() / variance)
    return {
        "variance": variance,
        "error": float(own.std(ddof=1) / np.sqrt(own.size)),
        "kurtosis": kurtosis,
        "correlation": neighbours,
    }


# ---- the page -------------------------------------------------------------------------------------------------------------


def page(table: pd.DataFrame, seconds: float) -> str:
    """The page, from the table alone."""
    counts = {verdict: int((table["verdict"] == verdict).sum()) for verdict in ("right", "warned", "SILENT")}
    right, silent = table[table["verdict"] == "right"], table[table["verdict"] == "SILENT"]
    told = table["said"].fillna("") != ""
    causes = table[table["verdict"] == "warned"]["said"].str.extract(f"({'|'.join(CAUSES)})")[0].value_counts()
    mean, error = right["variance"].mean(), right["variance"].std() / len(right) ** 0.5
    lines = [
        "# Right at every scale",
        "",
        f"{len(table)} cells in which every pair of levels occurs, {seconds / 60:.0f} minutes (`python docs/every_scale.py`): "
        f"**{counts['right']} right**, {counts['warned']} not right and warned of, **{counts['SILENT']} silent failures**.",
        "",
        "Right: the variance of θ is within 1 % + 4 standard errors of the truth. The median standard error is "
        f"{table['error'].median():.2%}, the largest of a right cell {right['error'].max():.1%}; a large one says less. "
        f"Of the cells that are right, the mean of variance ÷ truth is {mean:.4f} ± {error:.4f}, that of E[θ⁴]/(3 E[θ²]²) "
        f"{right['kurtosis'].mean():.4f}, that of the correlation of neighbouring coordinates {right['correlation'].mean():.4f}. "
        f"{int(told.sum())} cells have a warning; {int((told & (table['verdict'] == 'right')).sum())} of them are right "
        "within their error all the same.",
        "",
        "| axis | levels |",
        "|---|---|",
        *(f"| {name} | {', '.join(str(v) for v in levels)} |" for name, levels in LEVELS.items()),
        "",
        f"Natural units: θ has a standard deviation of √T, h = {H} (the longest step of a schedule), Var ξ = 1, p and ξ "
        f"are fresh every 100 steps in SGMGT and SGMGT-D. A minibatch is {BATCH} of {ROWS} rows. All numbers are in "
        "`docs/every-scale.csv`.",
        "",
        "## By preset and noise: right / warned / silent",
        "",
        _crossed(table),
        "",
        "## What the warnings of cells that are not right name",
        "",
        "| words | cells |",
        "|---|---|",
        *(f"| … {cause} … | {n} |" for cause, n in causes.items()),
        "",
    ]
    return "\n".join(lines + (["## Silent failures", "", _rows(silent), ""] if len(silent) else []))


def _crossed(table: pd.DataFrame) -> str:
    rows = ["| preset | " + " | ".join(LEVELS["noise"]) + " |", "|---|" + "---|" * len(LEVELS["noise"])]
    for preset in LEVELS["preset"]:
        cells = []
        for noise in LEVELS["noise"]:
            own = table[(table["preset"] == preset) & (table["noise"] == noise)]["verdict"]
            cells.append(" / ".join(str(int((own == v).sum())) for v in ("right", "warned", "SILENT")))
        rows.append(f"| {preset} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _rows(table: pd.DataFrame) -> str:
    names = [*LEVELS, "variance", "error"]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    shown = [
        [f"{row[n]:.4g}" if isinstance(row[n], float) else str(row[n]) for n in names]
        for row in table.to_dict("records")
    ]
    return "\n".join(lines + [f"| {' | '.join(cells)} |" for cells in shown])


def main() -> None:
    from tqdm.auto import tqdm

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=500, help="at least so many (500)")
    parser.add_argument("--seed", type=int, default=0, help="of the design and of the runs (0)")
    parser.add_argument("--checkpoint", type=Path, help="a .csv that a stopped run goes on from")
    parser.add_argument("--out", type=Path, default=HERE / "every-scale.md", help="the page; its .csv stands beside it")
    given = parser.parse_args()
    cells = design(given.cells, given.seed)
    done: list[dict[str, Any]] = []
    if given.checkpoint is not None and given.checkpoint.exists():
        done = pd.read_csv(given.checkpoint, keep_default_na=False, na_values=["nan"]).to_dict("records")
    for number in tqdm(range(len(done), len(cells)), initial=len(done), total=len(cells), unit="cell", file=sys.stderr):
        done.append(run(cells[number], given.seed + number))
        if given.checkpoint is not None:
            pd.DataFrame(done).to_csv(given.checkpoint, index=False)
    table = pd.DataFrame(done)
    given.out.write_text(page(table, float(table["seconds"].sum())))
    table.drop(columns="seconds").round(5).to_csv(given.out.with_suffix(".csv"), index=False)
    print(table["verdict"].value_counts().to_string())


if __name__ == "__main__":
    main()
