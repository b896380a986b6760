"""The defaults, as a newcomer meets them: five presets with nothing given but the step size, on twelve posteriors.

    python docs/newcomer.py       docs/newcomer.md

The step size is a tenth of the smallest standard deviation of the posterior (for SGLD a twentieth of its square), the batch 100
rows. A run is right if all standard deviations are within 5 % + 4 standard errors of the reference, and all means within 5 % of a
standard deviation + 4 standard errors. If `sample` warns, its remedy is followed to the letter, up to five times.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import sgmcmc as sg

HERE = Path(__file__).parent
PRESETS = {"SGLD": sg.SGLD, "SGHMC": sg.SGHMC, "SGNHT": sg.SGNHT, "SGMGT": sg.SGMGT, "SGMGTD": sg.SGMGTD}


class Problem(NamedTuple):
    """A model, its posterior's means and standard deviations, and the rows of a batch (None: all of them)."""

    model: Any
    mean: np.ndarray
    sd: np.ndarray
    batch: int | None


def gaussian(sd: float, correlation: float = 0.0) -> Problem:
    covariance = sd**2 * (correlation + (1.0 - correlation) * np.eye(5))
    return Problem(sg.models.Gaussian(np.zeros(5), covariance), np.zeros(5), np.full(5, sd), None)


def linear(rows: int, mixed: float = 0.0) -> Problem:
    rng = np.random.default_rng(rows)
    X = rng.normal(size=(rows, 5)) + mixed * rng.normal(size=(rows, 1))
    y = X @ rng.normal(size=5) + rng.normal(size=rows)
    precision = X.T @ X + np.eye(5) / 100.0
    sd = np.sqrt(np.diag(np.linalg.inv(precision)))
    batch = min(100, rows // 2)
    return Problem(sg.models.LinearRegression(X, y), np.linalg.solve(precision, X.T @ y), sd, batch)


def logistic(rows: int, offset: float) -> Problem:
    """Skew: few of the labels are True; the reference is a long run with all rows and short steps."""
    rng = np.random.default_rng(rows)
    X = rng.normal(size=(rows, 3))
    y = rng.random(rows) < 1 / (1 + np.exp(-(X @ [1.0, -1.0, 0.5] - offset)))
    model = sg.models.LogisticRegression(X, y, intercept=True, prior=sg.priors.Gaussian(5.0))
    run = sg.sample(
        model, sg.SGHMC(0.1, scale="auto"), 10_000, warmup=2000, thin=20, chains=8, seed=1, progress=False, warn=False
    )
    return Problem(model, run.draws.mean(axis=(0, 1)), run.draws.std(axis=(0, 1)), 50)


PROBLEMS = {
    "Gaussian, sd 0.001": lambda: gaussian(1e-3),
    "Gaussian, sd 0.1": lambda: gaussian(0.1),
    "Gaussian, sd 10": lambda: gaussian(10.0),
    "Gaussian, sd 1000": lambda: gaussian(1e3),
    "Gaussian, correlation 0.9": lambda: gaussian(1.0, 0.9),
    "linear, N = 100": lambda: linear(100),
    "linear, N = 1000": lambda: linear(1000),
    "linear, N = 10,000": lambda: linear(10_000),
    "linear, N = 100,000": lambda: linear(100_000),
    "linear, N = 1000, correlated": lambda: linear(1000, 2.0),
    "logistic, N = 200": lambda: logistic(200, 1.0),
    "logistic, N = 400, skew": lambda: logistic(400, 3.0),
}


class Attempt(NamedTuple):
    """What a newcomer types."""

    preset: str
    keywords: dict[str, Any]  # of the sampler
    options: dict[str, Any]  # of `sample`


def first(preset: str, problem: Problem) -> Attempt:
    least = float(problem.sd.min())
    step = 0.05 * least**2 if preset == "SGLD" else 0.1 * least
    return Attempt(preset, {"step_size": step}, {"warmup": 2000, "thin": 10, "batch_size": problem.batch})


def run(attempt: Attempt, problem: Problem) -> tuple[bool, list[str]]:
    """Whether it is right, and what `sample` said."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        sampler = PRESETS[attempt.preset](**attempt.keywords)
        try:
            trace = sg.sample(problem.model, sampler, 2000, chains=8, seed=3, progress=False, **attempt.options)
        except sg.DivergenceError as error:
            return False, [str(error)]
    return is_right(trace, problem), [str(w.message) for w in heard]


def is_right(trace: Any, problem: Problem) -> bool:
    """Means and standard deviations beside the reference; errors by the scatter between chains."""
    x = (np.asarray(trace.draws) - problem.mean) / problem.sd
    means, squares, n = x.mean(axis=1), (x**2).mean(axis=1), len(x)
    off = abs(means.mean(axis=0)) - 4.0 * means.std(axis=0, ddof=1) / n**0.5
    wide = abs(np.sqrt(squares.mean(axis=0)) - 1.0) - 4.0 * 0.5 * squares.std(axis=0, ddof=1) / n**0.5
    return bool((off < 0.05).all() and (wide < 0.05).all())


def followed(attempt: Attempt, said: str) -> Attempt:
    """The first remedy of a warning that this function knows how to type."""
    kind, keywords, options = attempt.preset, dict(attempt.keywords), dict(attempt.options)
    step, batch, gamma = (
        re.search(rf"{name}=([0-9.e+-]+|None)", said) for name in ("step_size", "batch_size", "gamma")
    )
    try_step = re.search(r"try a step size of ([0-9.e+-]+)", said)
    if "take SGNHT(" in said:
        kind, keywords = "SGNHT", {"step_size": 0.1, "scale": "auto"}
    elif 'scale="auto" with step_size=0.1' in said:
        keywords |= {"step_size": 0.1, "scale": "auto"}
    elif "not mixed" in said and options["thin"] < 1000:
        options |= {"thin": 5 * options["thin"], "warmup": 5 * options["warmup"]}
    elif batch is not None:
        options["batch_size"] = None if batch[1] == "None" else int(batch[1])
    elif gamma is not None:
        keywords["gamma"] = float(gamma[1])
    elif step is not None or try_step is not None:
        keywords["step_size"] = float((step or try_step)[1].rstrip("."))  # type: ignore[index]
    else:
        keywords["step_size"] = 0.25 * keywords["step_size"]  # "take a smaller step"
    return Attempt(kind, keywords, options)


def cell(preset: str, problem: Problem) -> str:
    """right; warned → followed → right; or what is left."""
    attempt, words = first(preset, problem), []
    for _ in range(6):
        right, said = run(attempt, problem)
        if not said:
            return " → ".join([*words, "right" if right else "**SILENT**"])
        words.append(("right, " if right else "") + "warned")
        attempt = followed(attempt, said[0])
    return " → ".join(words)


def main() -> None:
    from tqdm.auto import tqdm

    rows = []
    for name, make in tqdm(PROBLEMS.items(), unit="problem"):
        problem = make()
        rows.append(f"| {name} | " + " | ".join(cell(preset, problem) for preset in PRESETS) + " |")
        print(rows[-1], flush=True)
    head = [f"| posterior | {' | '.join(PRESETS)} |", "|---|" + "---|" * len(PRESETS)]
    text = " ".join(line.strip() for line in str(__doc__).split("\n")[4:])
    (HERE / "newcomer.md").write_text(
        "\n".join(["# The defaults, as a newcomer meets them", "", text.strip(), "", *head, *rows, ""])
    )


if __name__ == "__main__":
    main()
